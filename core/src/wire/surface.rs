//! The rest of what a binding that speaks JSON exports, so that each of its functions is one line.

use super::{Refused, read, seed_of};
use crate::backoff::Point;
use crate::guard::{Guards, Run, RunConfig, Transition};
use crate::json::at::At;
use crate::json::{self, Json};
use crate::policy::Millionths;
use crate::trace::mask::{Masks, UnknownMask, mask as masked};
use crate::{Action, Call, Evidence, Kind, Outcome, Policy, Span, StopReason};

/// A bare number is a duration in milliseconds, as JS has it.
const UNIT: Option<Span> = Some(Span::from_millis(1));

/// A binding's number of nanoseconds: a moment or a duration. Fractions are cut, what is no number is zero.
#[must_use]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, which is the rule")]
pub fn moment(ns: f64) -> Span {
    Span::from_nanos(ns as u64)
}

/// A duration as a binding's number; exact for whatever a policy can say.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "90 days of nanoseconds are below 2^53")]
pub fn nanos(span: Span) -> f64 {
    span.as_nanos() as f64
}

/// A list of texts as JSON.
#[must_use]
pub fn texts(list: impl IntoIterator<Item: Into<String>>) -> String {
    json::list(|out| list.into_iter().for_each(|text| out.text(&text.into())))
}

/// A policy of these fields (JSON) over `start`, or over the empty one.
///
/// # Errors
/// A field or value that is not allowed.
pub fn policy(fields: &str, start: Option<&Policy>) -> Result<Policy, Refused> {
    let written = crate::policy::parsed(fields)?;
    Ok(start.unwrap_or(&Policy::default()).replace(&written, UNIT)?)
}

/// A chain from skill manifests (JSON).
///
/// # Errors
/// As [`Policy::for_skill`].
pub fn for_skill(id: &str, manifests: &str) -> Result<Policy, Refused> {
    let written =
        Json::parse(manifests).map_err(|e| Refused::value("manifests", &Json::Text(manifests.into()), &e.0))?;
    Ok(Policy::for_skill(id, &written, UNIT)?)
}

/// The wait after attempt `attempt`, the `n`th on its target, when any wait fits; in nanoseconds.
///
/// # Errors
/// A kind or seed that is none.
pub fn delay(
    policy: &Policy,
    kind: &str,
    seed: &str,
    (attempt, n): (u32, u32),
    previous_ns: Option<f64>,
    retry_after_ns: Option<f64>,
) -> Result<f64, Refused> {
    let kind =
        Kind::from_name(kind).ok_or_else(|| Refused::value("kind", &Json::Text(kind.into()), "the name of a kind"))?;
    let at = Point { seed: seed_of(seed)?, attempt, n, previous: previous_ns.map(moment) };
    Ok(nanos(policy.delay(policy.backoff_after(kind, at), retry_after_ns.map(moment), at, Span::MAX)))
}

/// How long the second attempt may take, in nanoseconds, where it follows at once: where the first one, which the
/// driver began by itself at `t0`, is answered now with a retry that waits for nothing. Then nothing has to be
/// remembered but the outcome: a machine is made, and told of it, when the second attempt fails, too. `None` where
/// anything else follows.
///
/// # Errors
/// A seed that is no decimal u64, what is no outcome.
pub fn repeats(policy: &Policy, seed: &str, t0: f64, now: f64, outcome: &str) -> Result<Option<f64>, Refused> {
    let (mut call, now) = (Call::started(policy.clone(), seed_of(seed)?, moment(t0)), moment(now));
    let told = call.on_outcome(now, 1, Outcome::from_json(outcome, policy)?)?;
    if !matches!(told.action, Action::Retry { after: Span::ZERO, .. }) {
        return Ok(None);
    }
    let begun = call.begin(now)?;
    Ok(if let Action::Attempt { timeout, .. } = begun.action { Some(nanos(timeout)) } else { None })
}

/// A failure (JSON) from evidence (JSON), with the rules of a policy where one is given.
///
/// # Errors
/// What is no evidence.
pub fn classify(evidence: &str, policy: Option<&Policy>) -> Result<String, Refused> {
    let evidence = read("evidence", evidence, Evidence::read)?;
    Ok(crate::failure::classify(&evidence, policy.map_or(&[], |policy| &policy.rules)).to_json())
}

/// Every kind as JSON: `[[name, category, service fault, alert], ...]`.
#[must_use]
pub fn kinds() -> String {
    json::list(|out| {
        for kind in Kind::all() {
            out.list(|out| {
                out.text(kind.name());
                out.text(kind.category().name());
                out.flag(kind.service_fault());
                out.flag(kind.alert());
            });
        }
    })
}

/// What a stop reason says to whoever is on call.
#[must_use]
pub fn says(reason: &str) -> &'static str {
    StopReason::from_name(reason).map_or("the call ended", StopReason::says)
}

/// A timeline of records (a JSON list of lines), for people.
///
/// # Errors
/// What is no list of texts.
pub fn timeline(trace_id: &str, lines: &str) -> Result<String, Refused> {
    let lines = read("lines", lines, |at| at.items(At::words))?;
    Ok(crate::trace::timeline(trace_id, lines))
}

/// The text, masked; `off` is a JSON list of the sets to leave.
///
/// # Errors
/// A set that is none.
pub fn mask(text: &str, off: &str) -> Result<String, Refused> {
    let off = read("off", off, |at| at.items(At::words))?;
    let masks = Masks::without(&off).map_err(|e| unknown("off", &e))?;
    Ok(masked(text, masks).into_owned())
}

pub(super) fn unknown(field: &str, mask: &UnknownMask) -> Refused {
    Refused::value(field, &Json::Text(mask.0.clone()), &mask.text())
}

/// The nanoseconds of a duration: text with a unit.
///
/// # Errors
/// What is no duration.
pub fn duration_of_text(text: &str) -> Result<f64, Refused> {
    Span::parse(text).map(nanos).map_err(|e| Refused::value("duration", &Json::Text(text.into()), e.says()))
}

/// The nanoseconds of a duration: a number of `unit_ns`.
///
/// # Errors
/// NaN, infinite, negative, or longer than 90 days.
pub fn duration_of_number(number: f64, unit_ns: f64) -> Result<f64, Refused> {
    Span::from_number(number, moment(unit_ns))
        .map(nanos)
        .map_err(|e| Refused::value("duration", &Json::Number(number), e.says()))
}

/// Tells the guards about load.
///
/// # Errors
/// A depth that is no whole number, a ratio that is not from 0 to a million.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both are checked to be small and positive"
)]
pub fn report(guards: &mut Guards, queue_depth: Option<f64>, cost_ratio: Option<f64>) -> Result<(), Refused> {
    if let Some(depth) = queue_depth.filter(|depth| !(0.0..=9e15).contains(depth) || depth.fract() > 0.0) {
        return Err(Refused::value("queue_depth", &Json::Number(depth), "a whole number that is not negative"));
    }
    if let Some(ratio) = cost_ratio.filter(|ratio| !(0.0..=1e6).contains(ratio)) {
        return Err(Refused::value("cost_ratio", &Json::Number(ratio), "a number from 0 to 1e6"));
    }
    let ratio = cost_ratio.map(|ratio| Millionths((ratio * 1e6).round_ties_even() as u64));
    guards.report(queue_depth.map(|depth| depth as u64), ratio);
    Ok(())
}

/// The state of a target's breaker, by the target's id.
#[must_use]
pub fn breaker_state(guards: &Guards, policy: &Policy, target: &str, now: f64) -> Option<&'static str> {
    let index = policy.targets.iter().position(|t| t.id == target)?;
    guards.breaker_state(policy, index, moment(now))
}

/// What [`Guards::calm`] answers.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "nobody counts 2^53 changes of state")]
pub fn calm(guards: &Guards, policy: &Policy, now: f64) -> Option<f64> {
    guards.calm(moment(now), policy).map(|generation| generation as f64)
}

/// The breakers' changes of state since the last time, as a JSON list of texts.
pub fn take_transitions(guards: &mut Guards) -> String {
    texts(guards.take_transitions().iter().map(Transition::to_json))
}

/// A run of this budget (JSON).
///
/// # Errors
/// What is no budget.
pub fn run(config: &str) -> Result<Run, Refused> {
    Ok(Run::new(RunConfig::from_json(config)?))
}
