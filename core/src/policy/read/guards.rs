//! Reading what guards are configured with and when attempts are hedged, and refusing what is not built yet.

use crate::Span;
use crate::json::Json;
use crate::json::at::{At, Object};
use crate::policy::fields::{
    BreakerConfig, CooldownConfig, Fields, Hedge, Millionths, RetryBudgetConfig, ShedConfig, Trip,
};
use crate::text::said;

/// More requests than this beside each other hide no slowness any more.
const MOST_HEDGES: u32 = 100;

/// Every guard's part of the policy, and hedging; `null` leaves one out.
pub(super) fn guards(object: Object<'_>, f: &mut Fields) {
    object.unset("breaker", &mut f.breaker, breaker);
    object.unset("retry_budget", &mut f.retry_budget, retry_budget);
    object.unset("cooldown", &mut f.cooldown, cooldown);
    object.unset("shed", &mut f.shed, shed);
    object.unset("hedge", &mut f.hedge, hedge);
    object.maybe("limits", not_built);
}

fn hedge(at: &At<'_>) -> Hedge {
    let object = at.object(&["after", "max"]);
    let after = object.need("after", At::positive_span);
    Hedge { after, max: object.read("max", |at| at.count32(1, MOST_HEDGES)).unwrap_or(1) }
}

/// Validates a part that nothing honours yet, and refuses it even when it is valid.
fn not_built(at: &At<'_>) {
    const FIELDS: [&str; 3] = ["requests_per_minute", "tokens_per_minute", "concurrency"];
    let part = at.object(&FIELDS);
    for field in FIELDS {
        part.read(field, |at| at.count(1, 1_000_000_000));
    }
    at.refuse::<()>("nothing yet: it is not built; leave the field out");
}

fn breaker(at: &At<'_>) -> BreakerConfig {
    const FIELDS: [&str; 7] =
        ["consecutive_failures", "window", "min_calls", "ratio", "open_for", "open_for_max", "probe_lease"];
    let object = at.object(&FIELDS);
    let mut out = BreakerConfig::default();
    if let Some(trip) = trip(at, object) {
        out.trip = trip;
    }
    object.set("open_for", &mut out.open_for, At::positive_span);
    out.open_for_max = out.open_for_max.max(out.open_for);
    object.set("open_for_max", &mut out.open_for_max, At::positive_span);
    object.set("probe_lease", &mut out.probe_lease, At::positive_span);
    if out.open_for_max < out.open_for {
        object.refuse::<()>("open_for_max", &Json::Null, &said!["at least open_for, ", out.open_for]);
    }
    out
}

/// What opens the breaker: failures in a row, or a share of the calls, never both.
fn trip(at: &At<'_>, object: Object<'_>) -> Option<Trip> {
    let consecutive = object.read("consecutive_failures", |at| at.count32(1, 1_000_000));
    let ratio = object.read("ratio", |at| at.millionths(0, 1));
    let window = object.read("window", At::positive_span);
    let min_calls = object.read("min_calls", |at| at.count32(1, 1_000_000));
    let by_ratio = ratio.is_some() || window.is_some() || min_calls.is_some();
    match (consecutive, ratio) {
        (Some(_), _) if by_ratio => at.refuse("consecutive_failures, or ratio with window and min_calls; not both"),
        (Some(n), _) => Some(Trip::Consecutive(n)),
        (None, Some(Millionths(0))) => object.refuse("ratio", &Json::Null, "a number above 0, up to 1"),
        (None, Some(ratio)) => Some(Trip::Ratio {
            ratio,
            window: window.unwrap_or(Span::from_secs(10)),
            min_calls: min_calls.unwrap_or(20),
        }),
        (None, None) if by_ratio => at.refuse("a ratio beside window and min_calls"),
        (None, None) => None,
    }
}

fn cooldown(at: &At<'_>) -> CooldownConfig {
    let object = at.object(&["max", "bench"]);
    let mut out = CooldownConfig::default();
    object.set("max", &mut out.max, At::positive_span);
    object.set("bench", &mut out.bench, At::positive_span);
    out
}

fn retry_budget(at: &At<'_>) -> RetryBudgetConfig {
    const FIELDS: [&str; 7] =
        ["capacity", "retry_cost", "throttle_cost", "refund", "ratio", "min_per_second", "window"];
    let object = at.object(&FIELDS);
    let (tokens, ratio) = FIELDS.split_at(4);
    let given = |names: &[&'static str]| names.iter().any(|name| object.get(name).is_some());
    let by_ratio = given(ratio);
    if by_ratio && given(tokens) {
        at.refuse::<()>("capacity and costs, or ratio with min_per_second and window; not both");
    }
    let cost = |name: &str, default| object.read(name, |at| at.count32(0, 1_000_000)).unwrap_or(default);
    if by_ratio {
        return RetryBudgetConfig::Ratio {
            ratio: object.read("ratio", |at| at.millionths(0, 1)).unwrap_or(Millionths(200_000)),
            min_per_second: cost("min_per_second", 10),
            window: object.read("window", At::positive_span).unwrap_or(Span::from_secs(10)),
        };
    }
    RetryBudgetConfig::Tokens {
        capacity: object.read("capacity", |at| at.count32(1, 1_000_000_000)).unwrap_or(500),
        retry_cost: cost("retry_cost", 14),
        throttle_cost: cost("throttle_cost", 5),
        refund: cost("refund", 1),
    }
}

fn shed(at: &At<'_>) -> ShedConfig {
    let object = at.object(&["queue_depth", "cost_ratio", "below_priority"]);
    let out = ShedConfig {
        queue_depth: object.maybe("queue_depth", |at| at.count(0, 1_000_000_000)),
        cost_ratio: object.maybe("cost_ratio", |at| at.millionths(0, 1_000)),
        below_priority: object.read("below_priority", |at| at.count32(0, 1_000)).unwrap_or(5),
    };
    if out.queue_depth.is_none() && out.cost_ratio.is_none() {
        at.refuse::<()>("a queue_depth or a cost_ratio to shed above");
    }
    out
}
