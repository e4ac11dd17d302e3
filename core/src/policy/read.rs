//! Reading a policy: what was written, applied onto the fields it starts from, then checked as a whole.
//!
//! Everything is read into a copy; an error leaves nothing half applied.

mod guards;
mod waits;

use super::fields::{Fields, Nested, SideEffects, Stream, StreamMode, Target};
use crate::Span;
use crate::failure::{Category, Kind, Rule, When};
use crate::json::Json;
use crate::json::at::{self, At, Object, Read};
use crate::text::said;

/// More attempts than this on one target is no retrying any more.
const MOST_ATTEMPTS: u32 = 10_000;
/// A call remembers in the bits of a word which of its targets have failed.
const MOST_TARGETS: usize = 32;

const FIELDS: &[&str] = &[
    "max_attempts",
    "connect_timeout",
    "attempt_timeout",
    "total_timeout",
    "min_attempt_time",
    "max_total_wait",
    "max_attempts_total",
    "backoff",
    "jitter",
    "retry_after",
    "retry_on",
    "fallback_on",
    "kinds",
    "rules",
    "side_effects",
    "nested",
    "requires_human_fallback",
    "priority",
    "targets",
    "breaker",
    "retry_budget",
    "cooldown",
    "shed",
    "limits",
    "hedge",
    "stream",
];

/// The fields of `start`, with what was written over them. `unit` is what a bare number means as a duration.
pub(super) fn fields(start: &Fields, written: &Json, unit: Option<Span>) -> Read<Fields> {
    let mut f = start.clone();
    at::read("policy", written, unit, &mut |at| fill(at.object(FIELDS), &mut f))?;
    Ok(f)
}

fn fill(object: Object<'_>, f: &mut Fields) {
    bounds(object, f);
    waits::waits(object, f);
    object.set("retry_on", &mut f.retry_on, |at| at.kinds(may_retry));
    object.set("fallback_on", &mut f.fallback_on, |at| at.kinds(may_fall_back));
    if let Some(at) = object.get("kinds") {
        f.kinds = waits::kinds(&at, f);
    }
    object.set("rules", &mut f.rules, |at| at.list(0, 1_000).map(|at| rule(&at)).collect());
    object.set("side_effects", &mut f.side_effects, |at| {
        at.choice(&[("idempotent", SideEffects::Idempotent), ("unsafe", SideEffects::Unsafe)])
    });
    object.set("nested", &mut f.nested, |at| {
        at.choice(&[("bounded", Nested::Bounded), ("independent", Nested::Independent), ("refuse", Nested::Refuse)])
    });
    object.set("requires_human_fallback", &mut f.requires_human_fallback, At::flag);
    object.set("priority", &mut f.priority, |at| at.count32(0, 1_000));
    object.set("targets", &mut f.targets, targets);
    guards::guards(object, f);
    if let Some(at) = object.get("stream") {
        stream(&at, &mut f.stream);
    }
    whole(object, f);
}

/// What no `retry_on` may name: nothing the caller decided, and nothing that repeating cannot change.
fn may_retry(kind: Kind) -> bool {
    not_control(kind) && !matches!(kind, Kind::NoEvidence | Kind::BusinessRejection)
}

/// What an inner call's breaker or shedding refused may be tried elsewhere; what was called off may not.
fn may_fall_back(kind: Kind) -> bool {
    !matches!(kind, Kind::Cancelled | Kind::BudgetExhausted)
}

fn not_control(kind: Kind) -> bool {
    kind.category() != Category::Control
}

fn attempts(at: &At<'_>) -> u32 {
    at.count32(1, MOST_ATTEMPTS)
}

/// The bounds in number and time.
fn bounds(object: Object<'_>, f: &mut Fields) {
    object.set("max_attempts", &mut f.max_attempts, attempts);
    object.unset("max_attempts_total", &mut f.max_attempts_total, attempts);
    object.unset("connect_timeout", &mut f.connect_timeout, At::positive_span);
    object.unset("attempt_timeout", &mut f.attempt_timeout, At::positive_span);
    object.set("total_timeout", &mut f.total_timeout, At::positive_span);
    object.set("min_attempt_time", &mut f.min_attempt_time, At::span);
    object.unset("max_total_wait", &mut f.max_total_wait, At::span);
}

fn rule(at: &At<'_>) -> Rule {
    let object = at.object(&["when", "kind"]);
    let when = object.need("when", |at| {
        let object = at.object(&["error", "status", "code", "type", "message"]);
        let when = When {
            error: object.read("error", At::text),
            status: object.read("status", |at| u16::try_from(at.count(100, 599)).unwrap_or_default()),
            code: object.read("code", At::text),
            error_type: object.read("type", At::text),
            message: object.read("message", At::text),
        };
        if when == When::default() {
            return at.refuse("at least one of error, status, code, type, message");
        }
        when
    });
    Rule { when, kind: object.need("kind", |at| at.kind(|_| true)) }
}

fn targets(at: &At<'_>) -> Vec<Target> {
    let mut out: Vec<Target> = Vec::new();
    for at in at.list(1, MOST_TARGETS) {
        let object = at.object(&["id", "account", "upstream", "max_attempts", "attempt_timeout"]);
        let id = object.need("id", At::text);
        if out.iter().any(|t| t.id == id) {
            object.refuse::<()>("id", &Json::Null, "an id that no other target has");
        }
        out.push(Target {
            id,
            account: object.maybe("account", At::text),
            upstream: object.maybe("upstream", At::text),
            max_attempts: object.read("max_attempts", attempts),
            attempt_timeout: object.maybe("attempt_timeout", At::positive_span),
        });
    }
    out
}

fn stream(at: &At<'_>, out: &mut Stream) {
    let object = at.object(&["mode", "first_item_timeout", "idle_timeout", "silence_timeout"]);
    object.set("mode", &mut out.mode, |at| {
        at.choice(&[
            ("before_first_item", StreamMode::BeforeFirstItem),
            ("buffered", StreamMode::Buffered),
            ("restart", StreamMode::Restart),
            ("resume", StreamMode::Resume),
        ])
    });
    object.unset("first_item_timeout", &mut out.first_item_timeout, At::positive_span);
    object.unset("idle_timeout", &mut out.idle_timeout, At::positive_span);
    object.unset("silence_timeout", &mut out.silence_timeout, At::positive_span);
}

/// What only holds for the whole.
fn whole(object: Object<'_>, f: &Fields) {
    if f.total_timeout < f.min_attempt_time {
        let value = Json::Text(said![f.total_timeout]);
        let allowed = said!["at least min_attempt_time, ", f.min_attempt_time];
        object.refuse::<()>("total_timeout", &value, &allowed);
    }
    if let (Some(hedge), SideEffects::Unsafe) = (f.hedge, f.side_effects) {
        let value = Json::Map(vec![("after".into(), Json::Text(said![hedge.after]))]);
        let allowed = "nothing beside side_effects \"unsafe\": a hedge repeats a request that may be executing; \
                       leave hedge out";
        object.refuse::<()>("hedge", &value, allowed);
    }
}
