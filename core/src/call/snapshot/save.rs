//! Writing a call down.

use super::VERSION;
use crate::Span;
use crate::action::{Disposition, RetryReason, Stop};
use crate::call::{Asked, Call, OnTarget, State};
use crate::failure::Kind;
use crate::json::{self, Fields};
use crate::trace::Receipt;

/// The call as JSON; `check` is the checksum of this text with a checksum of zero.
pub(super) fn text(call: &Call, wall_ms: u64, check: u64) -> String {
    json::object(|out| {
        out.count("version", VERSION);
        out.number("check", check);
        out.number("wall_ms", wall_ms);
        out.json("policy", &call.policy.to_json());
        out.number("seed", call.seed);
        state(out, call.state);
        span(out, "time", call.time);
        span(out, "deadline", call.deadline);
        out.flag("cancelled", call.cancelled);
        out.flag("recorded", call.recorded);
        out.flag("cooled", call.cooled);
        out.count("attempts", call.attempts);
        span(out, "waited", call.waited);
        out.number("target", call.target as u64);
        out.object("on_target", |out| on_target(out, &call.on_target));
        out.count("spoken", call.spoken);
        out.list("returns", |out| {
            for (target, moment) in &call.returns {
                out.list(|out| {
                    out.number(*target as u64);
                    out.number(moment.as_nanos());
                });
            }
        });
        span(out, "began", call.began);
        maybe_span(out, "first_item", call.first_item);
        out.list("siblings", |out| {
            for sibling in call.siblings() {
                out.list(|out| {
                    out.number(u64::from(sibling.number));
                    out.number(sibling.began.as_nanos());
                });
            }
        });
        out.list("receipts", |out| call.receipts.iter().for_each(|r| out.object(|out| receipt(out, r))));
        out.list("written", |out| {
            out.number(call.written.receipts as u64);
            out.flag(call.written.ended);
        });
        match &call.used {
            Some(used) => out.object("used", |out| used.write(out)),
            None => out.text("used", None),
        }
        match &call.ids {
            Some(ids) => out.object("ids", |out| ids.write(out)),
            None => out.text("ids", None),
        }
        out.list("unmasked", |out| call.masks.off().for_each(|name| out.text(name)));
    })
}

fn span(out: &mut Fields<'_>, name: &str, span: Span) {
    out.number(name, span.as_nanos());
}

fn maybe_span(out: &mut Fields<'_>, name: &str, span: Option<Span>) {
    out.number(name, span.map(Span::as_nanos));
}

fn state(out: &mut Fields<'_>, state: State) {
    match state {
        State::Ready | State::Asking(Asked::Admit) => out.text("state", "ready"),
        State::InFlight | State::Asking(Asked::Hedge) => out.text("state", "in_flight"),
        State::Ended(None) => out.text("state", "done"),
        State::Asking(Asked::Repeat { delay, reason }) => out.object("state", |out| {
            out.object("asking_to_repeat", |out| {
                span(out, "delay", delay);
                if reason == RetryReason::Repair {
                    out.flag("repair", true);
                }
            });
        }),
        State::Waiting(until) => out.object("state", |out| out.object("waiting", |out| span(out, "until", until))),
        State::Ended(Some(Stop { reason, disposition, resume_in })) => out.object("state", |out| {
            out.object("stopped", |out| {
                out.text("reason", reason.name());
                out.flag("human", disposition == Disposition::Human);
                maybe_span(out, "resume_in", resume_in);
            });
        }),
    }
}

fn on_target(out: &mut Fields<'_>, on: &OnTarget) {
    out.count("attempts", on.attempts);
    if on.repaired > 0 {
        out.count("repaired", on.repaired);
    }
    out.object("kinds", |out| {
        for kind in Kind::all().filter(|kind| on.kinds[*kind as usize] > 0) {
            out.count(kind.name(), u32::from(on.kinds[kind as usize]));
        }
    });
    maybe_span(out, "previous", on.previous);
}

fn receipt(out: &mut Fields<'_>, r: &Receipt) {
    out.count("attempt", r.attempt);
    out.count("retry_count", r.retry_count);
    out.number("target", r.target as u64);
    span(out, "started", r.started);
    span(out, "ended", r.ended);
    maybe_span(out, "first_item", r.first_item);
    out.number("delivered", r.delivered);
    match &r.failure {
        Some(failure) => out.object("failure", |out| failure.write(out)),
        None => out.text("failure", None),
    }
    out.text("refused_by", r.refused_by.map(|by| by.reason().name()));
    out.text("decision", r.decision.name());
    out.text("reason", r.reason);
    maybe_span(out, "backoff", r.backoff);
    maybe_span(out, "delay", r.delay);
    span(out, "time_left", r.time_left);
    match r.budget {
        Some((before, after)) => out.list("budget", |out| {
            out.number(before);
            out.number(after);
        }),
        None => out.text("budget", None),
    }
    out.text("breaker", r.breaker);
    out.text("guard_store", r.guard_store);
    match &r.usage {
        Some(usage) => out.object("usage", |out| usage.write(out)),
        None => out.text("usage", None),
    }
}
