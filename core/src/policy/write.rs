//! Writing a policy: every field with its value, in the form `read` takes. What is unset is left out.

use super::fields::{
    Backoff, BreakerConfig, Fields, KindOverride, Millionths, RetryBudgetConfig, SideEffects, Target, Trip,
};
use crate::backoff::Curve;
use crate::failure::{KindSet, Rule};
use crate::jitter::Jitter;
use crate::json::{self, Fields as Out};
use crate::text::said;
use crate::{Span, failure};

/// The policy as JSON.
pub(super) fn json(f: &Fields) -> String {
    json::object(|out| {
        out.count("max_attempts", f.max_attempts);
        maybe_span(out, "connect_timeout", f.connect_timeout);
        maybe_span(out, "attempt_timeout", f.attempt_timeout);
        span(out, "total_timeout", f.total_timeout);
        span(out, "min_attempt_time", f.min_attempt_time);
        maybe_span(out, "max_total_wait", f.max_total_wait);
        maybe_count(out, "max_attempts_total", f.max_attempts_total);
        backoff(out, &f.backoff);
        jitter(out, f.jitter, &f.backoff);
        out.object("retry_after", |out| {
            span(out, "max", f.retry_after.max);
            ratio(out, "spread", f.retry_after.spread);
        });
        kinds(out, "retry_on", f.retry_on);
        kinds(out, "fallback_on", f.fallback_on);
        out.object("kinds", |out| {
            for (kind, own) in &f.kinds {
                out.object(kind.name(), |out| kind_override(out, own, f));
            }
        });
        out.list("rules", |out| f.rules.iter().for_each(|r| out.object(|out| rule(out, r))));
        out.text("side_effects", side_effects(f.side_effects));
        out.text("nested", f.nested.name());
        out.flag("requires_human_fallback", f.requires_human_fallback);
        out.count("priority", f.priority);
        out.list("targets", |out| f.targets.iter().for_each(|t| out.object(|out| target(out, t))));
        guards(out, f);
        out.object("stream", |out| {
            out.text("mode", f.stream.mode.name());
            maybe_span(out, "first_item_timeout", f.stream.first_item_timeout);
            maybe_span(out, "idle_timeout", f.stream.idle_timeout);
            maybe_span(out, "silence_timeout", f.stream.silence_timeout);
        });
    })
}

fn guards(out: &mut Out<'_>, f: &Fields) {
    if let Some(b) = &f.breaker {
        out.object("breaker", |out| breaker(out, b));
    }
    if let Some(b) = &f.retry_budget {
        out.object("retry_budget", |out| retry_budget(out, b));
    }
    if let Some(c) = &f.cooldown {
        out.object("cooldown", |out| {
            span(out, "max", c.max);
            span(out, "bench", c.bench);
        });
    }
    if let Some(s) = &f.shed {
        out.object("shed", |out| {
            if let Some(depth) = s.queue_depth {
                out.number("queue_depth", depth);
            }
            if let Some(r) = s.cost_ratio {
                ratio(out, "cost_ratio", r);
            }
            out.count("below_priority", s.below_priority);
        });
    }
    if let Some(h) = &f.hedge {
        out.object("hedge", |out| {
            span(out, "after", h.after);
            out.count("max", h.max);
        });
    }
}

fn span(out: &mut Out<'_>, name: &str, span: Span) {
    out.text(name, said![span].as_str());
}

fn maybe_span(out: &mut Out<'_>, name: &str, value: Option<Span>) {
    if let Some(value) = value {
        span(out, name, value);
    }
}

fn maybe_count(out: &mut Out<'_>, name: &str, count: Option<u32>) {
    if let Some(count) = count {
        out.count(name, count);
    }
}

fn maybe_text(out: &mut Out<'_>, name: &str, text: Option<&String>) {
    if let Some(text) = text {
        out.text(name, text.as_str());
    }
}

fn ratio(out: &mut Out<'_>, name: &str, r: Millionths) {
    out.decimal(name, r.0, 6);
}

fn kinds(out: &mut Out<'_>, name: &str, set: KindSet) {
    out.list(name, |out| set.iter().for_each(|kind| out.text(kind.name())));
}

fn backoff(out: &mut Out<'_>, b: &Backoff) {
    out.object("backoff", |out| {
        out.text("kind", b.curve.name());
        match &b.curve {
            Curve::Schedule(delays) => {
                out.list("delays", |out| delays.iter().for_each(|d| out.text(said![d].as_str())));
            }
            _ => span(out, "base", b.base),
        }
        span(out, "max", b.max);
        if let Curve::Exponential(factor) = b.curve {
            ratio(out, "factor", factor);
        }
    });
}

/// Nothing beside decorrelated, which draws by itself.
fn jitter(out: &mut Out<'_>, j: Jitter, beside: &Backoff) {
    if beside.curve == Curve::Decorrelated {
        return;
    }
    let (kind, r) = j.parts();
    out.object("jitter", |out| {
        out.text("kind", kind);
        if let Some(r) = r {
            ratio(out, "ratio", r);
        }
    });
}

fn kind_override(out: &mut Out<'_>, own: &KindOverride, f: &Fields) {
    if let Some(b) = &own.backoff {
        backoff(out, b);
    }
    if let Some(j) = own.jitter {
        jitter(out, j, own.backoff.as_ref().unwrap_or(&f.backoff));
    }
    maybe_count(out, "max_attempts", own.max_attempts);
}

fn rule(out: &mut Out<'_>, rule: &Rule) {
    let failure::When { error, status, code, error_type, message } = &rule.when;
    out.object("when", |out| {
        maybe_text(out, "error", error.as_ref());
        maybe_count(out, "status", status.map(u32::from));
        maybe_text(out, "code", code.as_ref());
        maybe_text(out, "type", error_type.as_ref());
        maybe_text(out, "message", message.as_ref());
    });
    out.text("kind", rule.kind.name());
}

fn target(out: &mut Out<'_>, t: &Target) {
    out.text("id", t.id.as_str());
    maybe_text(out, "account", t.account.as_ref());
    maybe_text(out, "upstream", t.upstream.as_ref());
    maybe_count(out, "max_attempts", t.max_attempts);
    maybe_span(out, "attempt_timeout", t.attempt_timeout);
}

fn breaker(out: &mut Out<'_>, b: &BreakerConfig) {
    match b.trip {
        Trip::Consecutive(n) => out.count("consecutive_failures", n),
        Trip::Ratio { window, min_calls, ratio: r } => {
            span(out, "window", window);
            out.count("min_calls", min_calls);
            ratio(out, "ratio", r);
        }
    }
    span(out, "open_for", b.open_for);
    span(out, "open_for_max", b.open_for_max);
    span(out, "probe_lease", b.probe_lease);
}

fn retry_budget(out: &mut Out<'_>, b: &RetryBudgetConfig) {
    match *b {
        RetryBudgetConfig::Tokens { capacity, retry_cost, throttle_cost, refund } => {
            out.count("capacity", capacity);
            out.count("retry_cost", retry_cost);
            out.count("throttle_cost", throttle_cost);
            out.count("refund", refund);
        }
        RetryBudgetConfig::Ratio { ratio: r, min_per_second, window } => {
            ratio(out, "ratio", r);
            out.count("min_per_second", min_per_second);
            span(out, "window", window);
        }
    }
}

const fn side_effects(value: SideEffects) -> &'static str {
    match value {
        SideEffects::Idempotent => "idempotent",
        SideEffects::Unsafe => "unsafe",
    }
}
