//! Reading how long a call waits: backoff, jitter, retry-after, and what differs for one kind.

use super::{MOST_ATTEMPTS, not_control};
use crate::backoff::Curve;
use crate::failure::Kind;
use crate::jitter::Jitter;
use crate::json::Json;
use crate::json::at::{At, Object, Read};
use crate::policy::fields::{Backoff, Fields, KindOverride, Millionths, RetryAfter};
use crate::text::{joined, said};

/// Backoff, jitter and retry-after of the policy itself.
pub(super) fn waits(object: Object<'_>, f: &mut Fields) -> Read<()> {
    if let Some(at) = object.get("backoff") {
        f.backoff = backoff(&at, &f.backoff)?;
    }
    if let Some(at) = object.get("jitter") {
        f.jitter = jitter(&at, f.jitter)?;
    }
    f.jitter = beside(&f.backoff, f.jitter, object)?.unwrap_or_default();
    let mut out: RetryAfter = f.retry_after;
    object.set("retry_after", &mut f.retry_after, |at| {
        let object = at.object(&["max", "spread"])?;
        object.set("max", &mut out.max, At::span)?;
        object.set("spread", &mut out.spread, |at| at.millionths(0, 1))?;
        Ok(out)
    })
}

/// The jitter beside this curve. `decorrelated` draws by itself and has none: one that is written there is refused.
fn beside(backoff: &Backoff, jitter: Jitter, object: Object<'_>) -> Read<Option<Jitter>> {
    match object.get("jitter") {
        _ if backoff.curve != Curve::Decorrelated => Ok(Some(jitter)),
        Some(at) if jitter != Jitter::None => Err(at.refuse("\"none\" with decorrelated, which draws by itself")),
        _ => Ok(None),
    }
}

fn backoff(at: &At<'_>, from: &Backoff) -> Read<Backoff> {
    let object = at.object(&["kind", "base", "factor", "max", "delays"])?;
    let factor = object.read("factor", |at| at.millionths(1, 1_000))?;
    let delays = object
        .read("delays", |at| at.list(1, MOST_ATTEMPTS as usize)?.map(|at| at.span()).collect::<Read<Vec<_>>>())?;
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
        (_, Some(_)) => return Err(object.refuse("factor", &Json::Null, "nothing: only exponential has a factor")),
        _ => {}
    }
    match (&mut curve, delays) {
        (Curve::Schedule(slot), Some(delays)) => *slot = delays,
        (Curve::Schedule(slot), None) if !slot.is_empty() => {}
        (Curve::Schedule(_), None) => return Err(at.refuse("a list of delays for a schedule")),
        (_, Some(_)) => return Err(object.refuse("delays", &Json::Null, "nothing: only schedule has delays")),
        _ => {}
    }
    capped(object, curve, from)
}

/// Adds base and cap. Constant and schedule know their longest wait, so their cap may be left out.
fn capped(object: Object<'_>, curve: Curve, from: &Backoff) -> Read<Backoff> {
    let written = object.read("base", At::span)?;
    let (base, longest) = match &curve {
        Curve::Schedule(_) if written.is_some() => {
            return Err(object.refuse("base", &Json::Null, "nothing: a schedule has delays"));
        }
        Curve::Schedule(delays) => (delays[0], delays.iter().copied().max().unwrap_or_default()),
        _ => (written.unwrap_or(from.base), written.unwrap_or(from.base)),
    };
    let inherited = if matches!(curve, Curve::Constant | Curve::Schedule(_)) { longest } else { from.max };
    let max = object.read("max", At::span)?.unwrap_or(inherited);
    if max < base && !matches!(curve, Curve::Schedule(_)) {
        let value = Json::Text(said![max]);
        return Err(object.refuse("max", &value, &said!["at least the base, ", base]));
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
            return Err(object.refuse("ratio", &Json::Null, &said!["nothing: ", kind, " has no ratio"]));
        }
        "none" => Jitter::None,
        "full" => Jitter::Full,
        "proportional" => Jitter::Proportional(ratio),
        "additive" => Jitter::Additive(ratio),
        _ => Jitter::LowerBounded(ratio),
    })
}

/// What differs for single kinds, in the order of the table of kinds.
pub(super) fn kinds(at: &At<'_>, f: &Fields) -> Read<Vec<(Kind, KindOverride)>> {
    let mut out = Vec::new();
    for (name, at) in at.entries()? {
        let known = Kind::from_name(name).filter(|k| not_control(*k));
        let kind = known.ok_or_else(|| {
            let names: Vec<_> = Kind::all().filter(|k| not_control(*k)).map(Kind::name).collect();
            at.refuse_owned(said!["no such kind; the kinds are ", joined(names, ", ")])
        })?;
        let object = at.object(&["backoff", "jitter", "max_attempts"])?;
        let own = object.read("backoff", |at| backoff(at, &f.backoff))?;
        let jitter = object.read("jitter", |at| {
            let jitter = jitter(at, f.jitter)?;
            beside(own.as_ref().unwrap_or(&f.backoff), jitter, object)
        })?;
        let max_attempts = object.read("max_attempts", |at| at.count32(1, MOST_ATTEMPTS))?;
        out.push((kind, KindOverride { backoff: own, jitter: jitter.flatten(), max_attempts }));
    }
    out.sort_by_key(|(kind, _)| *kind);
    Ok(out)
}
