//! Reading how long a call waits: backoff, jitter, retry-after, and what differs for one kind.

use super::{MOST_ATTEMPTS, attempts, not_control};
use crate::backoff::Curve;
use crate::failure::Kind;
use crate::jitter::Jitter;
use crate::json::Json;
use crate::json::at::{At, Object};
use crate::policy::fields::{Backoff, Fields, KindOverride, Millionths};
use crate::text::{joined, said};

/// Backoff, jitter and retry-after of the policy itself.
pub(super) fn waits(object: Object<'_>, f: &mut Fields) {
    if let Some(at) = object.get("backoff") {
        f.backoff = backoff(&at, &f.backoff);
    }
    if let Some(at) = object.get("jitter") {
        f.jitter = jitter(&at, f.jitter);
    }
    f.jitter = beside(&f.backoff, f.jitter, object).unwrap_or_default();
    if let Some(at) = object.get("retry_after") {
        let object = at.object(&["max", "spread"]);
        object.set("max", &mut f.retry_after.max, At::span);
        object.set("spread", &mut f.retry_after.spread, |at| at.millionths(0, 1));
    }
}

/// The jitter beside this curve. `decorrelated` draws by itself and has none: one that is written there is refused.
fn beside(backoff: &Backoff, jitter: Jitter, object: Object<'_>) -> Option<Jitter> {
    if backoff.curve != Curve::Decorrelated {
        return Some(jitter);
    }
    let written = object.get("jitter").filter(|_| jitter != Jitter::None);
    written.and_then(|at| at.refuse("\"none\" with decorrelated, which draws by itself"))
}

fn backoff(at: &At<'_>, from: &Backoff) -> Backoff {
    let object = at.object(&["kind", "base", "factor", "max", "delays"]);
    let factor = object.read("factor", |at| at.millionths(1, 1_000));
    let delays = object.read("delays", |at| at.list(1, MOST_ATTEMPTS as usize).map(|at| at.span()).collect());
    let kind = object.read("kind", |at| at.index(Curve::NAMES.len(), &|i| Curve::NAMES[i]));
    let mut curve = match kind {
        Some(i) if Curve::NAMES[i] != from.curve.name() => match i {
            0 => Curve::Constant,
            1 => Curve::Linear,
            2 => Curve::Exponential(Millionths(2_000_000)),
            3 => Curve::Decorrelated,
            _ => Curve::Schedule(Vec::new()),
        },
        None if delays.is_some() => Curve::Schedule(Vec::new()),
        _ => from.curve.clone(),
    };
    match (&mut curve, factor) {
        (Curve::Exponential(slot), Some(factor)) => *slot = factor,
        (_, Some(_)) => object.refuse("factor", &Json::Null, "nothing: only exponential has a factor"),
        _ => {}
    }
    match (&mut curve, delays) {
        (Curve::Schedule(slot), Some(delays)) => *slot = delays,
        (Curve::Schedule(slot), None) if slot.is_empty() => at.refuse("a list of delays for a schedule"),
        (_, None) => {}
        (_, Some(_)) => object.refuse("delays", &Json::Null, "nothing: only schedule has delays"),
    }
    capped(object, curve, from)
}

/// Adds base and cap. Constant and schedule know their longest wait, so their cap may be left out.
fn capped(object: Object<'_>, curve: Curve, from: &Backoff) -> Backoff {
    let written = object.read("base", At::span);
    let (base, longest) = match &curve {
        Curve::Schedule(delays) => {
            if written.is_some() {
                object.refuse::<()>("base", &Json::Null, "nothing: a schedule has delays");
            }
            (delays.first().copied().unwrap_or_default(), delays.iter().copied().max().unwrap_or_default())
        }
        _ => (written.unwrap_or(from.base), written.unwrap_or(from.base)),
    };
    let inherited = if matches!(curve, Curve::Constant | Curve::Schedule(_)) { longest } else { from.max };
    let max = object.read("max", At::span).unwrap_or(inherited);
    if max < base && !matches!(curve, Curve::Schedule(_)) {
        let value = Json::Text(said![max]);
        object.refuse::<()>("max", &value, &said!["at least the base, ", base]);
    }
    Backoff { curve, base, max }
}

fn jitter(at: &At<'_>, from: Jitter) -> Jitter {
    let object = at.object(&["kind", "ratio"]);
    let (from_kind, from_ratio) = from.parts();
    let kind = object.read("kind", |at| Jitter::NAMES[at.index(Jitter::NAMES.len(), &|i| Jitter::NAMES[i])]);
    let kind = kind.unwrap_or(from_kind);
    let written = object.read("ratio", |at| at.millionths(0, 1));
    let ratio = written.or(from_ratio.filter(|_| kind == from_kind)).unwrap_or(Millionths(500_000));
    match kind {
        "none" | "full" if written.is_some() => {
            object.refuse("ratio", &Json::Null, &said!["nothing: ", kind, " has no ratio"])
        }
        "none" => Jitter::None,
        "full" => Jitter::Full,
        "proportional" => Jitter::Proportional(ratio),
        "additive" => Jitter::Additive(ratio),
        _ => Jitter::LowerBounded(ratio),
    }
}

/// What differs for single kinds, in the order of the table of kinds.
pub(super) fn kinds(at: &At<'_>, f: &Fields) -> Vec<(Kind, KindOverride)> {
    let mut out: Vec<(Kind, KindOverride)> = Vec::new();
    for (name, at) in at.entries() {
        let Some(kind) = Kind::from_name(name).filter(|k| not_control(*k)) else {
            let names = Kind::all().filter(|k| not_control(*k)).map(Kind::name);
            return at.refuse(&said!["no such kind; the kinds are ", joined(names, ", ")]);
        };
        let place = out.iter().position(|(other, _)| *other > kind).unwrap_or(out.len());
        out.insert(place, (kind, kind_override(&at, f)));
    }
    out
}

fn kind_override(at: &At<'_>, f: &Fields) -> KindOverride {
    let object = at.object(&["backoff", "jitter", "max_attempts"]);
    let own = object.get("backoff").map(|at| backoff(&at, &f.backoff));
    let jitter = object.get("jitter").and_then(|at| {
        let jitter = jitter(&at, f.jitter);
        beside(own.as_ref().unwrap_or(&f.backoff), jitter, object)
    });
    KindOverride { backoff: own, jitter, max_attempts: object.read("max_attempts", attempts) }
}
