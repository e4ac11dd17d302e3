//! Reading a call that was written down, and checking that it can be one.

use super::{SnapshotError, VERSION};
use crate::action::{Disposition, RetryReason, Stop, StopReason};
use crate::call::hedge::{Hedging, Sibling};
use crate::call::{Asked, Call, OnTarget, State, Written};
use crate::failure::{Failure, Kind};
use crate::guard::{RefusedBy, Usage};
use crate::json::Json;
use crate::json::at::{self, At};
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
pub(super) fn call(tree: &Json) -> Result<(Call, u64, u64), SnapshotError> {
    let found = tree.get("version").and_then(Json::as_u64).unwrap_or(0);
    if found != u64::from(VERSION) {
        return Err(SnapshotError::Version { found });
    }
    let policy = match tree.get("policy") {
        Some(policy) => Policy::default().replace(policy, None)?,
        None => Policy::default(),
    };
    let (mut call, wall_ms, check) = at::read("snapshot", tree, None, |at| read(at, policy))?;
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

fn read(at: &At<'_>, policy: Policy) -> (Call, u64, u64) {
    let fields = at.object(&FIELDS);
    if fields.get("policy").is_none() {
        at.refuse::<()>("a policy");
    }
    let mut call = Call::new(policy, fields.need("seed", At::big));
    call.state = fields.need("state", state);
    call.time = fields.need("time", span);
    call.carried = call.time;
    call.deadline = fields.need("deadline", span);
    call.cancelled = fields.need("cancelled", At::flag);
    call.recorded = fields.need("recorded", At::flag);
    call.cooled = fields.need("cooled", At::flag);
    call.attempts = fields.need("attempts", count);
    call.waited = fields.need("waited", span);
    call.target = fields.need("target", index);
    call.on_target = fields.need("on_target", on_target);
    call.spoken = fields.need("spoken", count);
    call.returns = fields.need("returns", |at| at.items(returns));
    call.began = fields.need("began", span);
    call.first_item = fields.maybe("first_item", span);
    call.hedging = Hedging::of(fields.need("siblings", |at| at.items(sibling)));
    call.receipts = fields.need("receipts", |at| at.items(receipt));
    call.written = fields.need("written", written);
    call.used = fields.maybe("used", Usage::read).map(Box::new);
    call.ids = fields.maybe("ids", Ids::read).map(Box::new);
    call.masks = fields.need("unmasked", |at| {
        Masks::without(at.items(At::words)).unwrap_or_else(|unknown| at.refuse(&unknown.text()))
    });
    (call, fields.need("wall_ms", At::big), fields.need("check", At::big))
}

fn sibling(at: &At<'_>) -> Sibling {
    let (number, began) = pair(at, count, span);
    Sibling { number, began, budget: None }
}

fn written(at: &At<'_>) -> Written {
    let (receipts, ended) = pair(at, index, At::flag);
    Written { receipts, ended }
}

fn returns(at: &At<'_>) -> (usize, Span) {
    pair(at, index, span)
}

fn budget(at: &At<'_>) -> (u64, u64) {
    pair(at, At::big, At::big)
}

fn span(at: &At<'_>) -> Span {
    Span::from_nanos(at.big())
}

fn count(at: &At<'_>) -> u32 {
    at.count32(0, u32::MAX)
}

fn index(at: &At<'_>) -> usize {
    count(at) as usize
}

fn pair<'a, A: Default, B: Default>(at: &'a At<'a>, first: fn(&At<'a>) -> A, second: fn(&At<'a>) -> B) -> (A, B) {
    let mut items = at.list(2, 2);
    match (items.next(), items.next()) {
        (Some(a), Some(b)) => (first(&a), second(&b)),
        _ => at.refuse("a list of 2 entries"),
    }
}

fn state(at: &At<'_>) -> State {
    if at.value.as_map().is_none() {
        return at.choice(&[("ready", State::Ready), ("in_flight", State::InFlight), ("done", State::Ended(None))]);
    }
    let fields = at.object(&["asking_to_repeat", "waiting", "stopped"]);
    if let Some(asked) = fields.read("asking_to_repeat", asked) {
        return State::Asking(asked);
    }
    if let Some(until) = fields.read("waiting", |at| at.object(&["until"]).need("until", span)) {
        return State::Waiting(until);
    }
    State::Ended(Some(fields.need("stopped", |at| {
        let fields = at.object(&["reason", "human", "resume_in"]);
        let human = fields.need("human", At::flag);
        Stop {
            reason: fields.need("reason", |at| named(at, StopReason::from_name).unwrap_or(StopReason::Cancelled)),
            disposition: if human { Disposition::Human } else { Disposition::Failed },
            resume_in: fields.maybe("resume_in", span),
        }
    })))
}

/// The kind that is repeated is that of the last receipt.
fn asked(at: &At<'_>) -> Asked {
    let fields = at.object(&["delay", "repair"]);
    let repair = fields.maybe("repair", At::flag).unwrap_or(false);
    let reason = if repair { RetryReason::Repair } else { RetryReason::Kind(Kind::Unknown) };
    Asked::Repeat { delay: fields.need("delay", span), reason }
}

fn on_target(at: &At<'_>) -> OnTarget {
    let fields = at.object(&["attempts", "repaired", "kinds", "previous"]);
    let mut on = OnTarget::default();
    if let Some(at) = fields.get("kinds") {
        for (name, at) in at.entries() {
            match Kind::from_name(name) {
                Some(kind) => on.kinds[kind as usize] = u16::try_from(at.count(1, u16::MAX.into())).unwrap_or(u16::MAX),
                None => at.refuse("no such kind"),
            }
        }
    }
    on.attempts = fields.need("attempts", count);
    on.repaired = fields.maybe("repaired", count).unwrap_or(0);
    on.previous = fields.maybe("previous", span);
    on
}

#[expect(clippy::field_reassign_with_default, reason = "read in place: a receipt is large")]
fn receipt(at: &At<'_>) -> Receipt {
    let fields = at.object(&RECEIPT);
    let mut receipt = Receipt::default();
    receipt.attempt = fields.maybe("attempt", count);
    receipt.retry_count = fields.need("retry_count", count);
    receipt.target = fields.need("target", index);
    receipt.started = fields.need("started", span);
    receipt.ended = fields.need("ended", span);
    receipt.first_item = fields.maybe("first_item", span);
    receipt.delivered = fields.need("delivered", At::big);
    receipt.failure = fields.maybe("failure", Failure::read);
    receipt.refused_by =
        fields.maybe("refused_by", |at| named(at, |name| RefusedBy::from_reason(StopReason::from_name(name)?))).flatten();
    receipt.decision = fields.need("decision", |at| named(at, Decision::from_name)).unwrap_or_default();
    receipt.reason = fields.maybe("reason", reason).flatten();
    receipt.backoff = fields.maybe("backoff", span);
    receipt.delay = fields.maybe("delay", span);
    receipt.time_left = fields.need("time_left", span);
    receipt.budget = fields.maybe("budget", budget);
    receipt.breaker = fields.maybe("breaker", reason).flatten();
    receipt.guard_store = fields.maybe("guard_store", reason).flatten();
    receipt.usage = fields.maybe("usage", Usage::read);
    receipt
}

fn reason(at: &At<'_>) -> Option<&'static str> {
    named(at, a_reason)
}

fn named<T>(at: &At<'_>, find: fn(&str) -> Option<T>) -> Option<T> {
    at.value.as_str().and_then(find).or_else(|| at.refuse("a name that this version knows"))
}

/// The static name behind a reason, a breaker's state or a guard store that a receipt may carry.
fn a_reason(name: &str) -> Option<&'static str> {
    const OTHERS: [&str; 7] = ["cooling_down", "too_early", "repair", "closed", "half_open", "open", "local"];
    let stop = StopReason::from_name(name).map(StopReason::name);
    let kind = Kind::from_name(name).map(Kind::name);
    stop.or(kind).or_else(|| OTHERS.into_iter().find(|other| *other == name))
}
