//! Writing a policy: every field with its value, in the form `read` takes. What is unset is left out.

use serde_json::{Map, Value, json};

use super::fields::{
    Backoff, BreakerConfig, Fields, KindOverride, Millionths, RetryBudgetConfig, SideEffects, StreamMode, Target, Trip,
};
use crate::backoff::Curve;
use crate::failure::{KindSet, Rule};
use crate::jitter::Jitter;
use crate::{Span, failure};

/// The policy as JSON.
pub(super) fn value(f: &Fields) -> Value {
    let mut out = Map::new();
    put(&mut out, "max_attempts", f.max_attempts);
    put(&mut out, "connect_timeout", f.connect_timeout.map(span));
    put(&mut out, "attempt_timeout", f.attempt_timeout.map(span));
    put(&mut out, "total_timeout", span(f.total_timeout));
    put(&mut out, "min_attempt_time", span(f.min_attempt_time));
    put(&mut out, "max_total_wait", f.max_total_wait.map(span));
    put(&mut out, "max_attempts_total", f.max_attempts_total);
    put(&mut out, "backoff", backoff(&f.backoff));
    put(&mut out, "jitter", jitter(f.jitter, &f.backoff));
    put(&mut out, "retry_after", json!({"max": span(f.retry_after.max), "spread": ratio(f.retry_after.spread)}));
    put(&mut out, "retry_on", kinds(f.retry_on));
    put(&mut out, "fallback_on", kinds(f.fallback_on));
    let overrides: Map<_, _> =
        f.kinds.iter().map(|(kind, own)| (kind.name().to_owned(), kind_override(own, f))).collect();
    put(&mut out, "kinds", overrides);
    put(&mut out, "rules", f.rules.iter().map(rule).collect::<Vec<_>>());
    put(&mut out, "side_effects", side_effects(f.side_effects));
    put(&mut out, "nested", f.nested.name());
    put(&mut out, "requires_human_fallback", f.requires_human_fallback);
    put(&mut out, "priority", f.priority);
    put(&mut out, "targets", f.targets.iter().map(target).collect::<Vec<_>>());
    put(&mut out, "breaker", f.breaker.as_ref().map(breaker));
    put(&mut out, "retry_budget", f.retry_budget.as_ref().map(retry_budget));
    put(&mut out, "cooldown", f.cooldown.map(|c| json!({"max": span(c.max), "bench": span(c.bench)})));
    put(
        &mut out,
        "shed",
        f.shed.map(|s| {
            let mut out = Map::new();
            put(&mut out, "queue_depth", s.queue_depth);
            put(&mut out, "cost_ratio", s.cost_ratio.map(ratio));
            put(&mut out, "below_priority", s.below_priority);
            out
        }),
    );
    put(&mut out, "hedge", f.hedge.map(|h| json!({"after": span(h.after), "max": h.max})));
    let mut stream = Map::new();
    put(&mut stream, "mode", stream_mode(f.stream.mode));
    put(&mut stream, "first_item_timeout", f.stream.first_item_timeout.map(span));
    put(&mut stream, "idle_timeout", f.stream.idle_timeout.map(span));
    put(&mut stream, "silence_timeout", f.stream.silence_timeout.map(span));
    put(&mut out, "stream", stream);
    Value::Object(out)
}

/// Adds a field, unless there is nothing to say.
fn put(out: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    let value = value.into();
    if !value.is_null() {
        out.insert(name.to_owned(), value);
    }
}

fn span(span: Span) -> String {
    span.to_string()
}

#[expect(clippy::cast_precision_loss, reason = "ratios and factors are far below 2^53 millionths")]
fn ratio(r: Millionths) -> Value {
    json!(r.0 as f64 / 1e6)
}

fn kinds(set: KindSet) -> Vec<Value> {
    set.iter().map(|k| k.name().into()).collect()
}

fn backoff(b: &Backoff) -> Value {
    let (kind, more) = match &b.curve {
        Curve::Constant => ("constant", None),
        Curve::Linear => ("linear", None),
        Curve::Exponential(factor) => ("exponential", Some(("factor", ratio(*factor)))),
        Curve::Decorrelated => ("decorrelated", None),
        Curve::Schedule(delays) => {
            ("schedule", Some(("delays", delays.iter().map(|d| span(*d)).collect::<Vec<_>>().into())))
        }
    };
    let mut out = Map::new();
    put(&mut out, "kind", kind);
    put(&mut out, "base", (kind != "schedule").then(|| span(b.base)));
    put(&mut out, "max", span(b.max));
    if let Some((name, value)) = more {
        put(&mut out, name, value);
    }
    out.into()
}

/// Nothing beside decorrelated, which draws by itself.
fn jitter(j: Jitter, beside: &Backoff) -> Value {
    let (kind, r) = match j {
        _ if beside.curve == Curve::Decorrelated => return Value::Null,
        Jitter::None => ("none", None),
        Jitter::Full => ("full", None),
        Jitter::LowerBounded(r) => ("lower_bounded", Some(r)),
        Jitter::Proportional(r) => ("proportional", Some(r)),
        Jitter::Additive(r) => ("additive", Some(r)),
    };
    let mut out = Map::new();
    put(&mut out, "kind", kind);
    put(&mut out, "ratio", r.map(ratio));
    out.into()
}

fn kind_override(own: &KindOverride, f: &Fields) -> Value {
    let mut out = Map::new();
    put(&mut out, "backoff", own.backoff.as_ref().map(backoff));
    put(&mut out, "jitter", own.jitter.map(|j| jitter(j, own.backoff.as_ref().unwrap_or(&f.backoff))));
    put(&mut out, "max_attempts", own.max_attempts);
    out.into()
}

fn rule(rule: &Rule) -> Value {
    let failure::When { error, status, code, error_type, message } = &rule.when;
    let mut when = Map::new();
    put(&mut when, "error", error.clone());
    put(&mut when, "status", *status);
    put(&mut when, "code", code.clone());
    put(&mut when, "type", error_type.clone());
    put(&mut when, "message", message.clone());
    json!({"when": when, "kind": rule.kind.name()})
}

fn target(t: &Target) -> Value {
    let mut out = Map::new();
    put(&mut out, "id", t.id.clone());
    put(&mut out, "account", t.account.clone());
    put(&mut out, "upstream", t.upstream.clone());
    put(&mut out, "max_attempts", t.max_attempts);
    put(&mut out, "attempt_timeout", t.attempt_timeout.map(span));
    out.into()
}

fn breaker(b: &BreakerConfig) -> Value {
    let mut out = Map::new();
    match b.trip {
        Trip::Consecutive(n) => put(&mut out, "consecutive_failures", n),
        Trip::Ratio { window, min_calls, ratio: r } => {
            put(&mut out, "window", span(window));
            put(&mut out, "min_calls", min_calls);
            put(&mut out, "ratio", ratio(r));
        }
    }
    put(&mut out, "open_for", span(b.open_for));
    put(&mut out, "open_for_max", span(b.open_for_max));
    put(&mut out, "probe_lease", span(b.probe_lease));
    out.into()
}

fn retry_budget(b: &RetryBudgetConfig) -> Value {
    match *b {
        RetryBudgetConfig::Tokens { capacity, retry_cost, throttle_cost, refund } => {
            json!({"capacity": capacity, "retry_cost": retry_cost, "throttle_cost": throttle_cost, "refund": refund})
        }
        RetryBudgetConfig::Ratio { ratio: r, min_per_second, window } => {
            json!({"ratio": ratio(r), "min_per_second": min_per_second, "window": span(window)})
        }
    }
}

const fn side_effects(value: SideEffects) -> &'static str {
    match value {
        SideEffects::Idempotent => "idempotent",
        SideEffects::Unsafe => "unsafe",
    }
}

const fn stream_mode(value: StreamMode) -> &'static str {
    match value {
        StreamMode::BeforeFirstItem => "before_first_item",
        StreamMode::Buffered => "buffered",
        StreamMode::Restart => "restart",
        StreamMode::Resume => "resume",
    }
}
