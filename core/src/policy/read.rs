//! Reading a policy: what was written, applied onto the fields it starts from, then checked as a whole.
//!
//! Everything is read into a copy; an error leaves nothing half applied.

use super::at::{At, Object, Read};
use super::fields::{
    Backoff, BreakerConfig, CooldownConfig, Fields, KindOverride, Millionths, Nested, RetryAfter, RetryBudgetConfig,
    ShedConfig, SideEffects, Stream, StreamMode, Target, Trip,
};
use super::input::Input;
use crate::Span;
use crate::backoff::Curve;
use crate::failure::{Category, Kind, Rule, When};
use crate::jitter::Jitter;

/// More attempts than this on one target is no retrying any more.
const MOST_ATTEMPTS: u32 = 10_000;
/// Targets are counted in the bits of a word.
pub(super) const MOST_TARGETS: usize = 32;
const NOT_BUILT: &str = "nothing yet: it is not built; leave the field out";

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
pub(super) fn fields(start: &Fields, written: &Input, unit: Option<Span>) -> Read<Fields> {
    let object = At::root(written, unit).object(FIELDS)?;
    let mut f = start.clone();
    bounds(&object, &mut f)?;
    waits(&object, &mut f)?;
    object.set("retry_on", &mut f.retry_on, |at| at.kinds(may_retry))?;
    object.set("fallback_on", &mut f.fallback_on, |at| at.kinds(not_control))?;
    if let Some(at) = object.get("kinds") {
        f.kinds = kinds(&at, &f)?;
    }
    object.set("rules", &mut f.rules, |at| at.list(0, 1_000)?.iter().map(rule).collect())?;
    object.set("side_effects", &mut f.side_effects, |at| {
        at.choice(&[("idempotent", SideEffects::Idempotent), ("unsafe", SideEffects::Unsafe)])
    })?;
    object.set("nested", &mut f.nested, |at| {
        at.choice(&[("bounded", Nested::Bounded), ("independent", Nested::Independent), ("refuse", Nested::Refuse)])
    })?;
    object.set("requires_human_fallback", &mut f.requires_human_fallback, At::flag)?;
    object.set("priority", &mut f.priority, |at| at.count32(0, 1_000))?;
    object.set("targets", &mut f.targets, targets)?;
    guards(&object, &mut f)?;
    object.set("stream", &mut f.stream, |at| stream(at, start.stream))?;
    whole(&object, &f)?;
    Ok(f)
}

/// What no `retry_on` may name: nothing the caller decided, and nothing that repeating cannot change.
fn may_retry(kind: Kind) -> bool {
    not_control(kind) && !matches!(kind, Kind::NoEvidence | Kind::BusinessRejection)
}

fn not_control(kind: Kind) -> bool {
    kind.category() != Category::Control
}

/// The bounds in number and time.
fn bounds(object: &Object<'_>, f: &mut Fields) -> Read<()> {
    let attempts = |at: &At<'_>| at.count32(1, MOST_ATTEMPTS);
    let timeout = |at: &At<'_>| at.unless_null(At::positive_span);
    object.set("max_attempts", &mut f.max_attempts, attempts)?;
    object.set("max_attempts_total", &mut f.max_attempts_total, |at| at.unless_null(attempts))?;
    object.set("connect_timeout", &mut f.connect_timeout, timeout)?;
    object.set("attempt_timeout", &mut f.attempt_timeout, timeout)?;
    object.set("total_timeout", &mut f.total_timeout, At::positive_span)?;
    object.set("min_attempt_time", &mut f.min_attempt_time, At::span)?;
    object.set("max_total_wait", &mut f.max_total_wait, |at| at.unless_null(At::span))
}

/// Backoff, jitter and retry-after of the policy itself.
fn waits(object: &Object<'_>, f: &mut Fields) -> Read<()> {
    if let Some(at) = object.get("backoff") {
        f.backoff = backoff(&at, &f.backoff)?;
    }
    if let Some(at) = object.get("jitter") {
        f.jitter = jitter(&at, f.jitter)?;
    }
    lone_jitter(object, &f.backoff, &mut f.jitter)?;
    let mut out: RetryAfter = f.retry_after;
    object.set("retry_after", &mut f.retry_after, |at| {
        let object = at.object(&["max", "spread"])?;
        object.set("max", &mut out.max, At::span)?;
        object.set("spread", &mut out.spread, |at| at.millionths(0, 1))?;
        Ok(out)
    })
}

/// `decorrelated` draws by itself: a jitter beside it is refused where it is written, and else does not matter.
fn lone_jitter(object: &Object<'_>, backoff: &Backoff, jitter: &mut Jitter) -> Read<()> {
    if backoff.curve != Curve::Decorrelated {
        return Ok(());
    }
    match object.get("jitter") {
        Some(at) if *jitter != Jitter::None => Err(at.refuse("\"none\" with decorrelated, which draws by itself")),
        _ => {
            *jitter = Jitter::default();
            Ok(())
        }
    }
}

fn backoff(at: &At<'_>, from: &Backoff) -> Read<Backoff> {
    let object = at.object(&["kind", "base", "factor", "max", "delays"])?;
    let factor = object.read("factor", |at| at.millionths(1, 1_000))?;
    let delays = object
        .read("delays", |at| at.list(1, MOST_ATTEMPTS as usize)?.iter().map(At::span).collect::<Read<Vec<_>>>())?;
    let fresh = [
        ("constant", Curve::Constant),
        ("linear", Curve::Linear),
        ("exponential", Curve::Exponential(Millionths(2_000_000))),
        ("decorrelated", Curve::Decorrelated),
        ("schedule", Curve::Schedule(Vec::new())),
    ];
    let names: Vec<_> = fresh.iter().enumerate().map(|(i, (name, _))| (*name, i)).collect();
    let mut curve = match object.read("kind", |at| at.choice(&names))? {
        Some(i) if std::mem::discriminant(&fresh[i].1) != std::mem::discriminant(&from.curve) => fresh[i].1.clone(),
        None if delays.is_some() => Curve::Schedule(Vec::new()),
        _ => from.curve.clone(),
    };
    match (&mut curve, factor) {
        (Curve::Exponential(slot), Some(factor)) => *slot = factor,
        (_, Some(_)) => return Err(object.refuse("factor", &Input::Null, "nothing: only exponential has a factor")),
        _ => {}
    }
    match (&mut curve, delays) {
        (Curve::Schedule(slot), Some(delays)) => *slot = delays,
        (Curve::Schedule(slot), None) if !slot.is_empty() => {}
        (Curve::Schedule(_), None) => return Err(at.refuse("a list of delays for a schedule")),
        (_, Some(_)) => return Err(object.refuse("delays", &Input::Null, "nothing: only schedule has delays")),
        _ => {}
    }
    capped(&object, curve, from)
}

/// Adds base and cap. Constant and schedule know their longest wait, so their cap may be left out.
fn capped(object: &Object<'_>, curve: Curve, from: &Backoff) -> Read<Backoff> {
    let written = object.read("base", At::span)?;
    let (base, longest) = match &curve {
        Curve::Schedule(_) if written.is_some() => {
            return Err(object.refuse("base", &Input::Null, "nothing: a schedule has delays"));
        }
        Curve::Schedule(delays) => (delays[0], delays.iter().copied().max().unwrap_or_default()),
        _ => (written.unwrap_or(from.base), written.unwrap_or(from.base)),
    };
    let inherited = if matches!(curve, Curve::Constant | Curve::Schedule(_)) { longest } else { from.max };
    let max = object.read("max", At::span)?.unwrap_or(inherited);
    if max < base && !matches!(curve, Curve::Schedule(_)) {
        let value = Input::Text(max.to_string());
        return Err(object.refuse("max", &value, format!("at least the base, {base}")));
    }
    Ok(Backoff { curve, base, max })
}

fn jitter(at: &At<'_>, from: Jitter) -> Read<Jitter> {
    let object = at.object(&["kind", "ratio"])?;
    let kinds = ["none", "full", "lower_bounded", "proportional", "additive"].map(|name| (name, name));
    let (from_kind, from_ratio) = match from {
        Jitter::None => ("none", None),
        Jitter::Full => ("full", None),
        Jitter::LowerBounded(r) => ("lower_bounded", Some(r)),
        Jitter::Proportional(r) => ("proportional", Some(r)),
        Jitter::Additive(r) => ("additive", Some(r)),
    };
    let kind = object.read("kind", |at| at.choice(&kinds))?.unwrap_or(from_kind);
    let written = object.read("ratio", |at| at.millionths(0, 1))?;
    let ratio = written.or(from_ratio.filter(|_| kind == from_kind)).unwrap_or(Millionths(500_000));
    Ok(match kind {
        "none" | "full" if written.is_some() => {
            return Err(object.refuse("ratio", &Input::Null, format!("nothing: {kind} has no ratio")));
        }
        "none" => Jitter::None,
        "full" => Jitter::Full,
        "proportional" => Jitter::Proportional(ratio),
        "additive" => Jitter::Additive(ratio),
        _ => Jitter::LowerBounded(ratio),
    })
}

fn kinds(at: &At<'_>, f: &Fields) -> Read<Vec<(Kind, KindOverride)>> {
    let mut out = Vec::new();
    for (name, at) in at.entries()? {
        let known = Kind::from_name(name).filter(|k| not_control(*k));
        let kind = known.ok_or_else(|| {
            let names: Vec<_> = Kind::all().filter(|k| not_control(*k)).map(Kind::name).collect();
            at.refuse(format!("no such kind; the kinds are {}", names.join(", ")))
        })?;
        let object = at.object(&["backoff", "jitter", "max_attempts"])?;
        let mut own = KindOverride {
            backoff: object.read("backoff", |at| backoff(at, &f.backoff))?,
            jitter: object.read("jitter", |at| jitter(at, f.jitter))?,
            max_attempts: object.read("max_attempts", |at| at.count32(1, MOST_ATTEMPTS))?,
        };
        if let Some(mut drawn) = own.jitter {
            lone_jitter(&object, own.backoff.as_ref().unwrap_or(&f.backoff), &mut drawn)?;
            own.jitter = Some(drawn);
        }
        out.push((kind, own));
    }
    out.sort_by_key(|(kind, _)| *kind);
    Ok(out)
}

fn rule(at: &At<'_>) -> Read<Rule> {
    let object = at.object(&["when", "kind"])?;
    let when = object.need("when", |at| {
        let object = at.object(&["error", "status", "code", "type", "message"])?;
        let status = object.read("status", |at| at.count32(100, 599))?;
        let when = When {
            error: object.read("error", At::text)?,
            status: status.and_then(|s| u16::try_from(s).ok()),
            code: object.read("code", At::text)?,
            error_type: object.read("type", At::text)?,
            message: object.read("message", At::text)?,
        };
        if when == When::default() {
            return Err(at.refuse("at least one of error, status, code, type, message"));
        }
        Ok(when)
    })?;
    Ok(Rule { when, kind: object.need("kind", |at| at.kind(|_| true))? })
}

fn targets(at: &At<'_>) -> Read<Vec<Target>> {
    let mut out: Vec<Target> = Vec::new();
    for at in at.list(1, MOST_TARGETS)? {
        let object = at.object(&["id", "account", "upstream", "max_attempts", "attempt_timeout"])?;
        let id = object.need("id", At::text)?;
        if out.iter().any(|t| t.id == id) {
            return Err(object.refuse("id", &Input::Null, "an id that no other target has"));
        }
        out.push(Target {
            id,
            account: object.read("account", |at| at.unless_null(At::text))?.flatten(),
            upstream: object.read("upstream", |at| at.unless_null(At::text))?.flatten(),
            max_attempts: object.read("max_attempts", |at| at.count32(1, MOST_ATTEMPTS))?,
            attempt_timeout: object.read("attempt_timeout", |at| at.unless_null(At::positive_span))?.flatten(),
        });
    }
    Ok(out)
}

fn guards(object: &Object<'_>, f: &mut Fields) -> Read<()> {
    object.set("breaker", &mut f.breaker, |at| at.unless_null(breaker))?;
    object.set("retry_budget", &mut f.retry_budget, |at| at.unless_null(retry_budget))?;
    object.set("cooldown", &mut f.cooldown, |at| {
        at.unless_null(|at| {
            let object = at.object(&["max", "bench"])?;
            let mut out = CooldownConfig::default();
            object.set("max", &mut out.max, At::positive_span)?;
            object.set("bench", &mut out.bench, At::positive_span)?;
            Ok(out)
        })
    })?;
    object.set("shed", &mut f.shed, |at| at.unless_null(shed))?;
    for (name, known) in [
        ("limits", ["requests_per_minute", "tokens_per_minute", "concurrency"].as_slice()),
        ("hedge", ["after", "max"].as_slice()),
    ] {
        if let Some(at) = object.get(name) {
            at.unless_null(|at| {
                let object = at.object(known)?;
                for name in known.iter().filter(|n| **n != "after") {
                    object.read(name, |at| at.count(1, 1_000_000_000))?;
                }
                object.read("after", At::positive_span)?;
                Err::<(), _>(at.refuse(NOT_BUILT))
            })?;
        }
    }
    Ok(())
}

fn breaker(at: &At<'_>) -> Read<BreakerConfig> {
    let object = at.object(&[
        "consecutive_failures",
        "window",
        "min_calls",
        "ratio",
        "open_for",
        "open_for_max",
        "probe_lease",
    ])?;
    let mut out = BreakerConfig::default();
    let consecutive = object.read("consecutive_failures", |at| at.count32(1, 1_000_000))?;
    let ratio = object.read("ratio", |at| at.millionths(0, 1))?;
    let window = object.read("window", At::positive_span)?;
    let min_calls = object.read("min_calls", |at| at.count32(1, 1_000_000))?;
    let by_ratio = ratio.is_some() || window.is_some() || min_calls.is_some();
    if by_ratio && consecutive.is_some() {
        return Err(at.refuse("consecutive_failures, or ratio with window and min_calls; not both"));
    }
    match (consecutive, ratio) {
        (_, Some(Millionths(0))) => return Err(object.refuse("ratio", &Input::Null, "a number above 0, up to 1")),
        (_, Some(ratio)) => {
            out.trip = Trip::Ratio {
                ratio,
                window: window.unwrap_or(Span::from_secs(10)),
                min_calls: min_calls.unwrap_or(20),
            };
        }
        (_, None) if by_ratio => return Err(at.refuse("a ratio beside window and min_calls")),
        (Some(n), None) => out.trip = Trip::Consecutive(n),
        (None, None) => {}
    }
    object.set("open_for", &mut out.open_for, At::positive_span)?;
    out.open_for_max = out.open_for_max.max(out.open_for);
    object.set("open_for_max", &mut out.open_for_max, At::positive_span)?;
    object.set("probe_lease", &mut out.probe_lease, At::positive_span)?;
    if out.open_for_max < out.open_for {
        return Err(object.refuse("open_for_max", &Input::Null, format!("at least open_for, {}", out.open_for)));
    }
    Ok(out)
}

fn retry_budget(at: &At<'_>) -> Read<RetryBudgetConfig> {
    const TOKENS: [&str; 4] = ["capacity", "retry_cost", "throttle_cost", "refund"];
    const RATIO: [&str; 3] = ["ratio", "min_per_second", "window"];
    let object = at.object(&[&TOKENS[..], &RATIO[..]].concat())?;
    let given = |names: &[&str]| names.iter().any(|name| object.get(name).is_some());
    match (given(&TOKENS), given(&RATIO)) {
        (true, true) => Err(at.refuse("capacity and costs, or ratio with min_per_second and window; not both")),
        (_, true) => Ok(RetryBudgetConfig::Ratio {
            ratio: object.read("ratio", |at| at.millionths(0, 1))?.unwrap_or(Millionths(200_000)),
            min_per_second: object.read("min_per_second", |at| at.count32(0, 1_000_000))?.unwrap_or(10),
            window: object.read("window", At::positive_span)?.unwrap_or(Span::from_secs(10)),
        }),
        (_, false) => {
            let cost = |name, default| Ok(object.read(name, |at| at.count32(0, 1_000_000))?.unwrap_or(default));
            let capacity = object.read("capacity", |at| at.count32(1, 1_000_000_000))?.unwrap_or(500);
            let (retry_cost, throttle_cost) = (cost("retry_cost", 14)?, cost("throttle_cost", 5)?);
            Ok(RetryBudgetConfig::Tokens { capacity, retry_cost, throttle_cost, refund: cost("refund", 1)? })
        }
    }
}

fn shed(at: &At<'_>) -> Read<ShedConfig> {
    let object = at.object(&["queue_depth", "cost_ratio", "below_priority"])?;
    let out = ShedConfig {
        queue_depth: object.read("queue_depth", |at| at.unless_null(|at| at.count(0, 1_000_000_000)))?.flatten(),
        cost_ratio: object.read("cost_ratio", |at| at.unless_null(|at| at.millionths(0, 1_000)))?.flatten(),
        below_priority: object.read("below_priority", |at| at.count32(0, 1_000))?.unwrap_or(5),
    };
    if out.queue_depth.is_none() && out.cost_ratio.is_none() {
        return Err(at.refuse("a queue_depth or a cost_ratio to shed above"));
    }
    Ok(out)
}

fn stream(at: &At<'_>, from: Stream) -> Read<Stream> {
    let object = at.object(&["mode", "first_item_timeout", "idle_timeout", "silence_timeout"])?;
    let timeout = |at: &At<'_>| at.unless_null(At::positive_span);
    let mut out = from;
    object.set("mode", &mut out.mode, |at| {
        at.choice(&[
            ("before_first_item", StreamMode::BeforeFirstItem),
            ("buffered", StreamMode::Buffered),
            ("restart", StreamMode::Restart),
            ("resume", StreamMode::Resume),
        ])
    })?;
    object.set("first_item_timeout", &mut out.first_item_timeout, timeout)?;
    object.set("idle_timeout", &mut out.idle_timeout, timeout)?;
    object.set("silence_timeout", &mut out.silence_timeout, timeout)?;
    Ok(out)
}

/// What only holds for the whole.
fn whole(object: &Object<'_>, f: &Fields) -> Read<()> {
    if f.total_timeout < f.min_attempt_time {
        let value = Input::Text(f.total_timeout.to_string());
        let allowed = format!("at least min_attempt_time, {}", f.min_attempt_time);
        return Err(object.refuse("total_timeout", &value, allowed));
    }
    Ok(())
}
