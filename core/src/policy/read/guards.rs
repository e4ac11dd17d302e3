//! Reading what guards are configured with and when attempts are hedged, and refusing what is not built yet.

use crate::Span;
use crate::json::Json;
use crate::json::at::{At, Object, Read};
use crate::policy::fields::{
    BreakerConfig, CooldownConfig, Fields, Hedge, Millionths, RetryBudgetConfig, ShedConfig, Trip,
};
use crate::text::said;

/// More requests than this beside each other hide no slowness any more.
const MOST_HEDGES: u32 = 100;

/// Every guard's part of the policy, and hedging; `null` leaves one out.
pub(super) fn guards(object: Object<'_>, f: &mut Fields) -> Read<()> {
    object.set("breaker", &mut f.breaker, |at| at.unless_null(breaker))?;
    object.set("retry_budget", &mut f.retry_budget, |at| at.unless_null(retry_budget))?;
    object.set("cooldown", &mut f.cooldown, |at| at.unless_null(cooldown))?;
    object.set("shed", &mut f.shed, |at| at.unless_null(shed))?;
    object.set("hedge", &mut f.hedge, |at| at.unless_null(hedge))?;
    not_built(object, "limits", &["requests_per_minute", "tokens_per_minute", "concurrency"])
}

fn hedge(at: &At<'_>) -> Read<Hedge> {
    let object = at.object(&["after", "max"])?;
    let after = object.need("after", At::positive_span)?;
    Ok(Hedge { after, max: object.read("max", |at| at.count32(1, MOST_HEDGES))?.unwrap_or(1) })
}

/// Validates a part that nothing honours yet, and refuses it even when it is valid.
fn not_built(object: Object<'_>, name: &'static str, fields: &[&'static str]) -> Read<()> {
    let Some(at) = object.get(name).filter(|at| !at.is_null()) else { return Ok(()) };
    let part = at.object(fields)?;
    for field in fields {
        part.read(field, |at| at.count(1, 1_000_000_000)).map(drop)?;
    }
    Err(at.refuse("nothing yet: it is not built; leave the field out"))
}

fn breaker(at: &At<'_>) -> Read<BreakerConfig> {
    const FIELDS: [&str; 7] =
        ["consecutive_failures", "window", "min_calls", "ratio", "open_for", "open_for_max", "probe_lease"];
    let object = at.object(&FIELDS)?;
    let mut out = BreakerConfig::default();
    if let Some(trip) = trip(at, object)? {
        out.trip = trip;
    }
    object.set("open_for", &mut out.open_for, At::positive_span)?;
    out.open_for_max = out.open_for_max.max(out.open_for);
    object.set("open_for_max", &mut out.open_for_max, At::positive_span)?;
    object.set("probe_lease", &mut out.probe_lease, At::positive_span)?;
    if out.open_for_max < out.open_for {
        return Err(object.refuse("open_for_max", &Json::Null, &said!["at least open_for, ", out.open_for]));
    }
    Ok(out)
}

/// What opens the breaker: failures in a row, or a share of the calls, never both.
fn trip(at: &At<'_>, object: Object<'_>) -> Read<Option<Trip>> {
    let consecutive = object.read("consecutive_failures", |at| at.count32(1, 1_000_000))?;
    let ratio = object.read("ratio", |at| at.millionths(0, 1))?;
    let window = object.read("window", At::positive_span)?;
    let min_calls = object.read("min_calls", |at| at.count32(1, 1_000_000))?;
    let by_ratio = ratio.is_some() || window.is_some() || min_calls.is_some();
    match (consecutive, ratio) {
        (Some(_), _) if by_ratio => {
            Err(at.refuse("consecutive_failures, or ratio with window and min_calls; not both"))
        }
        (Some(n), _) => Ok(Some(Trip::Consecutive(n))),
        (None, Some(Millionths(0))) => Err(object.refuse("ratio", &Json::Null, "a number above 0, up to 1")),
        (None, Some(ratio)) => Ok(Some(Trip::Ratio {
            ratio,
            window: window.unwrap_or(Span::from_secs(10)),
            min_calls: min_calls.unwrap_or(20),
        })),
        (None, None) if by_ratio => Err(at.refuse("a ratio beside window and min_calls")),
        (None, None) => Ok(None),
    }
}

fn cooldown(at: &At<'_>) -> Read<CooldownConfig> {
    let object = at.object(&["max", "bench"])?;
    let mut out = CooldownConfig::default();
    object.set("max", &mut out.max, At::positive_span)?;
    object.set("bench", &mut out.bench, At::positive_span)?;
    Ok(out)
}

fn retry_budget(at: &At<'_>) -> Read<RetryBudgetConfig> {
    const TOKENS: [&str; 4] = ["capacity", "retry_cost", "throttle_cost", "refund"];
    const RATIO: [&str; 3] = ["ratio", "min_per_second", "window"];
    let object = at.object(&[&TOKENS[..], &RATIO[..]].concat())?;
    let given = |names: &[&'static str]| names.iter().any(|name| object.get(name).is_some());
    match (given(&TOKENS), given(&RATIO)) {
        (true, true) => Err(at.refuse("capacity and costs, or ratio with min_per_second and window; not both")),
        (_, true) => Ok(RetryBudgetConfig::Ratio {
            ratio: object.read("ratio", |at| at.millionths(0, 1))?.unwrap_or(Millionths(200_000)),
            min_per_second: object.read("min_per_second", |at| at.count32(0, 1_000_000))?.unwrap_or(10),
            window: object.read("window", At::positive_span)?.unwrap_or(Span::from_secs(10)),
        }),
        (_, false) => {
            let cost = |name, default| object.read(name, |at| at.count32(0, 1_000_000)).map(|n| n.unwrap_or(default));
            let capacity = object.read("capacity", |at| at.count32(1, 1_000_000_000))?.unwrap_or(500);
            let (retry_cost, throttle_cost) = (cost("retry_cost", 14)?, cost("throttle_cost", 5)?);
            Ok(RetryBudgetConfig::Tokens { capacity, retry_cost, throttle_cost, refund: cost("refund", 1)? })
        }
    }
}

fn shed(at: &At<'_>) -> Read<ShedConfig> {
    let object = at.object(&["queue_depth", "cost_ratio", "below_priority"])?;
    let out = ShedConfig {
        queue_depth: object.maybe("queue_depth", |at| at.count(0, 1_000_000_000))?,
        cost_ratio: object.maybe("cost_ratio", |at| at.millionths(0, 1_000))?,
        below_priority: object.read("below_priority", |at| at.count32(0, 1_000))?.unwrap_or(5),
    };
    if out.queue_depth.is_none() && out.cost_ratio.is_none() {
        return Err(at.refuse("a queue_depth or a cost_ratio to shed above"));
    }
    Ok(out)
}
