//! What is drawn: policies as JSON, and scripts of what happens to a call.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use reprieve::{Failure, Kind, KindSet, Outcome, Policy, Span};
use serde_json::{Map, Value, json};

/// One thing that happens, and how long after the last one.
#[derive(Clone, Debug)]
pub struct Event {
    /// How long the attempt took, or how late the driver woke.
    pub gap: Span,
    /// How the attempt ends.
    pub outcome: Outcome,
    /// Cancelled while the attempt is in flight, or while the call waits after it.
    pub cancel: Option<Cancel>,
    /// The driver also wakes in the middle of the wait.
    pub early: bool,
    /// Its clock then goes back.
    pub back: bool,
}

/// When a call is cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    InFlight,
    Waiting,
}

/// Any set of kinds.
pub fn kinds() -> impl Strategy<Value = KindSet> {
    any::<u32>().prop_map(|bits| Kind::all().filter(|kind| bits >> *kind as u32 & 1 == 1).collect())
}

/// Valid policies of every shape, without guards.
pub fn policy() -> impl Strategy<Value = Policy> {
    let bounds = (1..6u32, option::of(1..9u32), option::of(span(30_000)), 1..120_000u64, 0..3_000u64);
    let waits = (backoff(), jitter(), span(60_000), 0..=1_000_000u32, option::of(span(60_000)));
    let kinds =
        (subsequence(names(&Kind::all().filter(|kind| may_retry(*kind)).collect::<Vec<_>>()), 0..14), kind_overrides());
    (bounds, waits, kinds, vec(target(), 1..4), flags()).prop_map(|(bounds, waits, kinds, targets, flags)| {
        let (max_attempts, total, attempt_timeout, total_ms, least) = bounds;
        let (backoff, jitter, retry_after, spread, max_total_wait) = waits;
        let mut fields = flags;
        put(&mut fields, "max_attempts", json!(max_attempts));
        put(&mut fields, "max_attempts_total", json!(total));
        put(&mut fields, "attempt_timeout", json!(attempt_timeout.map(positive)));
        put(&mut fields, "total_timeout", json!(format!("{total_ms}ms")));
        put(&mut fields, "min_attempt_time", json!(format!("{}ms", least.min(total_ms))));
        put(&mut fields, "max_total_wait", json!(max_total_wait.map(|wait| wait.to_string())));
        put(&mut fields, "retry_after", json!({"max": retry_after.to_string(), "spread": f64::from(spread) / 1e6}));
        if backoff["kind"] != "decorrelated" {
            put(&mut fields, "jitter", jitter);
        }
        put(&mut fields, "backoff", backoff);
        put(&mut fields, "retry_on", json!(kinds.0));
        put(&mut fields, "kinds", Value::Object(kinds.1));
        put(&mut fields, "targets", named_targets(targets));
        Policy::from_json(&Value::Object(fields).to_string()).expect("a valid policy")
    })
}

/// The same with every guard that is built, tight enough to refuse.
pub fn guarded_policy() -> impl Strategy<Value = Policy> {
    let breaker = select(vec![
        json!({"consecutive_failures": 2, "open_for": "2s", "open_for_max": "8s", "probe_lease": "3s"}),
        json!({"ratio": 0.4, "min_calls": 2, "window": "10s"}),
        Value::Null,
    ]);
    let budget = select(vec![
        json!({"capacity": 30, "retry_cost": 14, "throttle_cost": 5, "refund": 1}),
        json!({"ratio": 0.5, "min_per_second": 0}),
        Value::Null,
    ]);
    let cooldown = select(vec![json!({"max": "5s", "bench": "4s"}), Value::Null]);
    (policy(), breaker, budget, cooldown).prop_map(|(policy, breaker, budget, cooldown)| {
        let mut fields: Value = serde_json::from_str(&policy.to_json()).expect("JSON");
        fields["breaker"] = breaker;
        fields["retry_budget"] = budget;
        fields["cooldown"] = cooldown;
        Policy::from_json(&fields.to_string()).expect("a valid policy")
    })
}

/// What happens to a call, one event for each attempt and wait. A call that goes on for longer starts it over.
pub fn script() -> impl Strategy<Value = Vec<Event>> {
    vec(event(), 30)
}

pub fn event() -> impl Strategy<Value = Event> {
    let cancel = prop_oneof![20 => Just(None), 1 => Just(Some(Cancel::InFlight)), 1 => Just(Some(Cancel::Waiting))];
    (span(8_000), outcome(), cancel, any::<bool>(), prop::bool::weighted(0.1))
        .prop_map(|(gap, outcome, cancel, early, back)| Event { gap, outcome, cancel, early, back })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let failure = (select(Kind::all().collect::<Vec<_>>()), option::weighted(0.3, span(90_000)), any::<[bool; 2]>());
    let failure =
        (failure, prop::bool::weighted(0.03), prop::bool::weighted(0.05)).prop_map(|(base, inner, forbidden)| {
            let (kind, retry_after, [executed, coded]) = base;
            Failure {
                retry_after,
                may_have_executed: executed,
                code: coded.then(|| "code".into()),
                inner_trace: inner.then(|| "4bf92f3577b34da6a3ce929d0e0e4736".into()),
                retry_forbidden: forbidden,
                ..Failure::of(kind)
            }
        });
    let user = (option::weighted(0.1, any::<bool>()), option::weighted(0.1, span(90_000)));
    let stream = (prop_oneof![9 => Just(0u64), 1 => 1..50u64], prop_oneof![9 => Just(Span::ZERO), 1 => span(5_000)]);
    (option::weighted(0.9, failure), user, stream).prop_map(
        |(failure, (retry_if, backoff), (delivered, delivering))| Outcome {
            failure,
            retry_if,
            backoff,
            delivered,
            delivering,
            usage: None,
        },
    )
}

/// Mostly round milliseconds, sometimes to the nanosecond, sometimes zero.
pub fn span(most_ms: u64) -> impl Strategy<Value = Span> {
    prop_oneof![
        1 => Just(Span::ZERO),
        6 => (1..=most_ms).prop_map(Span::from_millis),
        3 => (0..=most_ms * 1_000_000).prop_map(Span::from_nanos),
    ]
}

fn backoff() -> impl Strategy<Value = Value> {
    let curve = select(vec!["constant", "linear", "exponential", "decorrelated", "schedule"]);
    (curve, span(5_000), span(20_000), 1_000_000..9_000_000u32, vec(span(9_000), 1..5)).prop_map(
        |(kind, base, more, factor, delays)| {
            let delays: Vec<_> = delays.iter().map(Span::to_string).collect();
            let max = base.plus(more).to_string();
            match kind {
                "schedule" => json!({"kind": kind, "delays": delays, "max": max}),
                "exponential" => {
                    json!({"kind": kind, "base": base.to_string(), "max": max, "factor": f64::from(factor) / 1e6})
                }
                _ => json!({"kind": kind, "base": base.to_string(), "max": max}),
            }
        },
    )
}

fn jitter() -> impl Strategy<Value = Value> {
    let kinds = select(vec!["none", "full", "lower_bounded", "proportional", "additive"]);
    (kinds, 0..=1_000_000u32).prop_map(|(kind, ratio)| match kind {
        "none" | "full" => json!({"kind": kind}),
        _ => json!({"kind": kind, "ratio": f64::from(ratio) / 1e6}),
    })
}

fn kind_overrides() -> impl Strategy<Value = Map<String, Value>> {
    let own = (option::of(backoff()), option::of(1..4u32));
    vec((select(vec!["rate_limit", "timeout", "server_error", "conflict"]), own), 0..3).prop_map(|all| {
        let own = |(backoff, most): (Option<Value>, Option<u32>)| {
            let mut fields = Map::new();
            put(&mut fields, "backoff", json!(backoff));
            put(&mut fields, "max_attempts", json!(most));
            Value::Object(fields)
        };
        all.into_iter().map(|(kind, fields)| (kind.to_owned(), own(fields))).collect()
    })
}

fn target() -> impl Strategy<Value = (Option<u32>, Option<Span>)> {
    (option::of(1..4u32), option::of(span(10_000)))
}

fn named_targets(targets: Vec<(Option<u32>, Option<Span>)>) -> Value {
    let named = targets.into_iter().enumerate().map(|(i, (most, timeout))| {
        let mut fields = Map::new();
        put(&mut fields, "id", json!(format!("t{i}")));
        put(&mut fields, "max_attempts", json!(most));
        put(&mut fields, "attempt_timeout", json!(timeout.map(positive)));
        Value::Object(fields)
    });
    named.collect()
}

fn flags() -> impl Strategy<Value = Map<String, Value>> {
    let words = (
        select(vec!["idempotent", "idempotent", "unsafe"]),
        select(vec!["bounded", "independent", "refuse"]),
        select(vec!["before_first_item", "buffered", "restart", "resume"]),
        any::<bool>(),
    );
    (words, subsequence(names(&[Kind::QuotaExhausted, Kind::Billing, Kind::NotFound, Kind::Overloaded]), 0..4))
        .prop_map(|((side_effects, nested, mode, human), fallback_on)| {
            let flags = json!({
                "side_effects": side_effects,
                "nested": nested,
                "stream": {"mode": mode},
                "requires_human_fallback": human,
                "fallback_on": fallback_on,
            });
            flags.as_object().cloned().expect("an object")
        })
}

fn may_retry(kind: Kind) -> bool {
    kind.category().name() != "control" && !matches!(kind, Kind::NoEvidence | Kind::BusinessRejection)
}

fn names(kinds: &[Kind]) -> Vec<&'static str> {
    kinds.iter().map(|kind| kind.name()).collect()
}

fn positive(span: Span) -> String {
    span.max(Span::from_nanos(1)).to_string()
}

fn put(fields: &mut Map<String, Value>, name: &str, value: Value) {
    if !value.is_null() {
        fields.insert(name.to_owned(), value);
    }
}
