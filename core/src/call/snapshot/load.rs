//! Reading a call that was written down, and checking that it can be one.

use super::{SnapshotError, VERSION};
use crate::action::{Disposition, RetryReason, Stop, StopReason};
use crate::call::hedge::{Hedging, Sibling};
use crate::call::{Asked, Call, OnTarget, State, Written};
use crate::failure::{Failure, Kind};
use crate::guard::{RefusedBy, Usage};
use crate::json::at::{At, Object, Read};
use crate::trace::{Decision, Ids, Masks, Receipt};
use crate::{ConfigError, Policy, Span};

const FIELDS: [&str; 25] = [
    "version",
    "check",
    "wall_ms",
    "policy",
    "seed",
    "state",
    "time",
    "deadline",
    "cancelled",
    "recorded",
    "cooled",
    "attempts",
    "waited",
    "target",
    "on_target",
    "spoken",
    "returns",
    "began",
    "first_item",
    "siblings",
    "receipts",
    "written",
    "used",
    "ids",
    "unmasked",
];

const RECEIPT: [&str; 18] = [
    "attempt",
    "retry_count",
    "target",
    "started",
    "ended",
    "first_item",
    "delivered",
    "failure",
    "refused_by",
    "decision",
    "reason",
    "backoff",
    "delay",
    "time_left",
    "budget",
    "breaker",
    "guard_store",
    "usage",
];

/// The call, the wall time at which it was written, and the checksum it was written with.
pub(super) fn call(at: &At<'_>) -> Result<(Call, u64, u64), SnapshotError> {
    let found = at.get("version").and_then(|at| at.value.as_u64()).unwrap_or(0);
    if found != u64::from(VERSION) {
        return Err(SnapshotError::Version { found });
    }
    let fields = at.object(&FIELDS)?;
    let policy = at.get("policy").ok_or_else(|| at.refuse("a policy"))?;
    let policy = Policy::default().replace(policy.value, None)?;
    let (mut call, wall_ms, check) = read(fields, policy)?;
    let targets = call.policy.targets.len();
    let receipts = call.receipts.iter().map(|r| r.target);
    let mut refers = receipts.chain(call.returns.iter().map(|r| r.0)).chain([call.target]);
    if refers.any(|target| target >= targets) {
        return Err(damaged("it speaks of a target that its policy does not have"));
    }
    if call.on_target.attempts.saturating_add(call.on_target.repaired) > call.attempts
        || call.written.receipts > call.receipts.len()
    {
        return Err(damaged("its counts do not agree"));
    }
    if call.siblings().any(|sibling| !(1..=call.attempts).contains(&sibling.number)) {
        return Err(damaged("it speaks of attempts that were never issued"));
    }
    if let State::Asking(Asked::Repeat { reason: RetryReason::Kind(kind), .. }) = &mut call.state {
        let failure = call.receipts.last().and_then(|r| r.failure.as_ref());
        *kind = failure.ok_or_else(|| damaged("it asks to repeat an attempt that it has no receipt of"))?.kind;
    }
    Ok((call, wall_ms, check))
}

/// What is not as it was written.
impl From<Box<ConfigError>> for SnapshotError {
    fn from(error: Box<ConfigError>) -> SnapshotError {
        SnapshotError::Damaged(error.text())
    }
}

fn damaged(what: &str) -> SnapshotError {
    SnapshotError::Damaged(what.to_owned())
}

/// Reads into a call that is there already: one thing to give back where a field is refused.
fn read(fields: Object<'_>, policy: Policy) -> Read<(Call, u64, u64)> {
    let mut call = Call::new(policy, fields.need("seed", At::big)?);
    call.state = fields.need("state", state)?;
    call.time = fields.need("time", span)?;
    call.carried = call.time;
    call.deadline = fields.need("deadline", span)?;
    call.cancelled = fields.need("cancelled", At::flag)?;
    call.recorded = fields.need("recorded", At::flag)?;
    call.cooled = fields.need("cooled", At::flag)?;
    call.attempts = fields.need("attempts", count)?;
    call.waited = fields.need("waited", span)?;
    call.target = fields.need("target", index)?;
    fields.need("on_target", |at| on_target(at, &mut call.on_target))?;
    call.spoken = fields.need("spoken", count)?;
    call.returns = fields.need("returns", |at| at.items(returns))?;
    call.began = fields.need("began", span)?;
    call.first_item = fields.maybe("first_item", span)?;
    call.hedging = Hedging::of(fields.need("siblings", |at| at.items(sibling))?);
    call.receipts = fields.need("receipts", |at| at.items(receipt))?;
    call.written = fields.need("written", written)?;
    call.used = fields.maybe("used", Usage::read)?.map(Box::new);
    call.ids = fields.maybe("ids", Ids::read)?.map(Box::new);
    call.masks = fields
        .need("unmasked", |at| Masks::without(at.items(At::words)?).map_err(|e| at.refuse_owned(e.text())))?;
    Ok((call, fields.need("wall_ms", At::big)?, fields.need("check", At::big)?))
}

fn sibling(at: &At<'_>) -> Read<Sibling> {
    let (number, began) = pair(at, count, span)?;
    Ok(Sibling { number, began, budget: None })
}

fn written(at: &At<'_>) -> Read<Written> {
    let (receipts, ended) = pair(at, index, At::flag)?;
    Ok(Written { receipts, ended })
}

fn returns(at: &At<'_>) -> Read<(usize, Span)> {
    pair(at, index, span)
}

fn budget(at: &At<'_>) -> Read<(u64, u64)> {
    pair(at, At::big, At::big)
}

fn span(at: &At<'_>) -> Read<Span> {
    at.big().map(Span::from_nanos)
}

fn count(at: &At<'_>) -> Read<u32> {
    at.count32(0, u32::MAX)
}

fn index(at: &At<'_>) -> Read<usize> {
    count(at).map(|n| n as usize)
}

fn pair<'a, A, B>(
    at: &'a At<'a>,
    first: impl Fn(&At<'a>) -> Read<A>,
    second: impl Fn(&At<'a>) -> Read<B>,
) -> Read<(A, B)> {
    let mut items = at.list(2, 2)?;
    match (items.next(), items.next()) {
        (Some(a), Some(b)) => Ok((first(&a)?, second(&b)?)),
        _ => Err(at.refuse("a list of 2 entries")),
    }
}

fn state(at: &At<'_>) -> Read<State> {
    if at.value.as_map().is_none() {
        return at.choice(&[("ready", State::Ready), ("in_flight", State::InFlight), ("done", State::Ended(None))]);
    }
    let fields = at.object(&["asking_to_repeat", "waiting", "stopped"])?;
    if let Some(asked) = fields.read("asking_to_repeat", asked)? {
        return Ok(State::Asking(asked));
    }
    if let Some(until) = fields.read("waiting", |at| at.object(&["until"])?.need("until", span))? {
        return Ok(State::Waiting(until));
    }
    let stop = fields.need("stopped", |at| {
        let fields = at.object(&["reason", "human", "resume_in"])?;
        let human = fields.need("human", At::flag)?;
        Ok(Stop {
            reason: fields.need("reason", |at| named(at, StopReason::from_name))?,
            disposition: if human { Disposition::Human } else { Disposition::Failed },
            resume_in: fields.maybe("resume_in", span)?,
        })
    })?;
    Ok(State::Ended(Some(stop)))
}

/// The kind that is repeated is that of the last receipt.
fn asked(at: &At<'_>) -> Read<Asked> {
    let fields = at.object(&["delay", "repair"])?;
    let repair = fields.maybe("repair", At::flag)?.unwrap_or(false);
    let reason = if repair { RetryReason::Repair } else { RetryReason::Kind(Kind::Unknown) };
    Ok(Asked::Repeat { delay: fields.need("delay", span)?, reason })
}

fn on_target(at: &At<'_>, on: &mut OnTarget) -> Read<()> {
    let fields = at.object(&["attempts", "repaired", "kinds", "previous"])?;
    fields.need("kinds", |at| {
        for (name, at) in at.entries()? {
            let kind = Kind::from_name(name).ok_or_else(|| at.refuse("no such kind"))?;
            on.kinds[kind as usize] = u16::try_from(at.count(1, u16::MAX.into())?).unwrap_or(u16::MAX);
        }
        Ok(())
    })?;
    on.attempts = fields.need("attempts", count)?;
    on.repaired = fields.maybe("repaired", count)?.unwrap_or(0);
    on.previous = fields.maybe("previous", span)?;
    Ok(())
}

#[expect(clippy::field_reassign_with_default, reason = "one thing to give back where a field is refused")]
fn receipt(at: &At<'_>) -> Read<Receipt> {
    let fields = at.object(&RECEIPT)?;
    let mut receipt = Receipt::default();
    receipt.attempt = fields.maybe("attempt", count)?;
    receipt.retry_count = fields.need("retry_count", count)?;
    receipt.target = fields.need("target", index)?;
    receipt.started = fields.need("started", span)?;
    receipt.ended = fields.need("ended", span)?;
    receipt.first_item = fields.maybe("first_item", span)?;
    receipt.delivered = fields.need("delivered", At::big)?;
    receipt.failure = fields.maybe("failure", Failure::read)?;
    receipt.refused_by = fields.maybe("refused_by", refused_by)?;
    receipt.decision = fields.need("decision", |at| named(at, Decision::from_name))?;
    receipt.reason = fields.maybe("reason", reason)?;
    receipt.backoff = fields.maybe("backoff", span)?;
    receipt.delay = fields.maybe("delay", span)?;
    receipt.time_left = fields.need("time_left", span)?;
    receipt.budget = fields.maybe("budget", budget)?;
    receipt.breaker = fields.maybe("breaker", reason)?;
    receipt.guard_store = fields.maybe("guard_store", reason)?;
    receipt.usage = fields.maybe("usage", Usage::read)?;
    Ok(receipt)
}

fn refused_by(at: &At<'_>) -> Read<RefusedBy> {
    named(at, |name| StopReason::from_name(name).and_then(RefusedBy::from_reason))
}

fn reason(at: &At<'_>) -> Read<&'static str> {
    named(at, a_reason)
}

fn named<T>(at: &At<'_>, find: impl Fn(&str) -> Option<T>) -> Read<T> {
    at.value.as_str().and_then(find).ok_or_else(|| at.refuse("a name that this version knows"))
}

/// The static name behind a reason, a breaker's state or a guard store that a receipt may carry.
fn a_reason(name: &str) -> Option<&'static str> {
    const OTHERS: [&str; 7] = ["cooling_down", "too_early", "repair", "closed", "half_open", "open", "local"];
    let stop = StopReason::from_name(name).map(StopReason::name);
    let kind = Kind::from_name(name).map(Kind::name);
    stop.or(kind).or_else(|| OTHERS.into_iter().find(|other| *other == name))
}
