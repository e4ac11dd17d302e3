//! Snapshots: a call written down as versioned JSON, to go on elsewhere, in any language.
//!
//! No permits and no guard state are in it: they belong to the place where the call ran. A snapshot is a copy; who
//! goes on with it is the user's to ensure. Times inside count from the call's first `begin`, so no clock is in it
//! but the wall time at which it was taken.

use serde::{Deserialize, Serialize};

use super::hedge::{Hedging, Sibling};
use super::{Asked, Call, OnTarget, State, Written};
use crate::action::{Action, Disposition, Outcome, RetryReason, Step, Stop, StopReason};
use crate::failure::{Failure, Kind};
use crate::guard::{Answer, Grant, RefusedBy, Usage};
use crate::trace::{Decision, Ids, Masks, Receipt};
use crate::{ConfigError, Policy, Span};

/// The version that this code writes, and the only one it reads.
const VERSION: u32 = 1;

/// How a call goes on from a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Restore {
    /// The time between snapshot and restore counts against deadline and wait. Default true.
    pub count_suspended: bool,
    /// The driver there can run attempts beside each other.
    pub hedged: bool,
    /// There are guards (or a run) where it goes on.
    pub guarded: bool,
    /// An outer bound where it goes on, on the driver's clock.
    pub ends_by: Option<Span>,
}

impl Default for Restore {
    fn default() -> Restore {
        Restore { count_suspended: true, hedged: false, guarded: false, ends_by: None }
    }
}

/// Why a snapshot was refused. Nothing was resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// It was written by a version that this one does not know.
    #[error("snapshot: version {found} is not allowed; it takes {VERSION}")]
    Version {
        /// The version it says.
        found: u64,
    },
    /// It is not what was written: cut, edited, or not a snapshot.
    #[error("snapshot: damaged: {0}")]
    Damaged(String),
    /// Its policy is not valid here.
    #[error("snapshot: {0}")]
    Policy(#[from] ConfigError),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: u32,
    /// A checksum over the rest, so that damage is noticed before anything is resumed.
    check: u64,
    wall_ms: u64,
    policy: serde_json::Value,
    seed: u64,
    state: SavedState,
    time: u64,
    deadline: u64,
    cancelled: bool,
    recorded: bool,
    cooled: bool,
    attempts: u32,
    waited: u64,
    target: usize,
    on_target: SavedTarget,
    spoken: u32,
    returns: Vec<(usize, u64)>,
    began: u64,
    first_item: Option<u64>,
    /// Attempts in flight beside each other, and when each began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    siblings: Vec<(u32, u64)>,
    receipts: Vec<SavedReceipt>,
    written: (usize, bool),
    used: Option<Usage>,
    ids: Option<Ids>,
    unmasked: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SavedState {
    Ready,
    AskingToRepeat { delay: u64 },
    InFlight,
    Waiting { until: u64 },
    Done,
    Stopped { reason: String, human: bool, resume_in: Option<u64> },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedTarget {
    attempts: u32,
    kinds: Vec<(String, u16)>,
    previous: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedReceipt {
    attempt: Option<u32>,
    retry_count: u32,
    target: usize,
    started: u64,
    ended: u64,
    first_item: Option<u64>,
    delivered: u64,
    failure: Option<Failure>,
    refused_by: Option<String>,
    decision: String,
    reason: Option<String>,
    backoff: Option<u64>,
    delay: Option<u64>,
    time_left: u64,
    budget: Option<(u64, u64)>,
    breaker: Option<String>,
    guard_store: Option<String>,
    usage: Option<Usage>,
}

impl Call {
    /// The call as JSON. `wall_now_ms` is wall time in milliseconds since 1970.
    pub fn snapshot(&mut self, now: Span, wall_now_ms: u64) -> String {
        if self.origin.is_some() {
            self.at(now);
        }
        let mut saved = self.save(wall_now_ms);
        saved.check = checksum(&saved);
        text(&saved)
    }

    /// The call that a snapshot was taken of, and its next action: the rest of its wait, the fallback it was about to
    /// begin, or its end. An attempt that was in flight comes back as failed with kind `interrupted`; of several, the
    /// latest does, and the others are superseded. A call that had not begun answers a wait of zero.
    ///
    /// # Errors
    /// [`SnapshotError`]; nothing is resumed.
    pub fn restore(json: &str, now: Span, wall_now_ms: u64, options: Restore) -> Result<(Call, Step), SnapshotError> {
        let mut call = read(json, wall_now_ms, options)?;
        if call.began_at_all() {
            call.origin = Some(now);
            call.at(now);
        }
        let step = match call.state {
            State::InFlight => {
                let number = call.latest_in_flight();
                call.single_out(number);
                call.on_outcome(now, number, Outcome::failed(Failure::of(Kind::Interrupted)))
            }
            State::Asking(Asked::Repeat { delay }) if options.guarded => {
                let kind = call.receipts.last().and_then(|r| r.failure.as_ref()).map_or(Kind::Unknown, |f| f.kind);
                Ok(call.ask_repeat(kind, delay))
            }
            State::Asking(_) => call.on_answer(now, Answer::Granted(Grant::default())),
            State::Ended(Some(stop)) => Ok(call.step(Action::Stop(stop))),
            State::Ended(None) => Ok(call.step(Action::Done)),
            State::Ready => Ok(call.go_on(Span::ZERO)),
            State::Waiting(until) => Ok(call.go_on(until.minus(call.time))),
        };
        let step = step.map_err(|misuse| SnapshotError::Damaged(misuse.to_string()))?;
        Ok((call, step))
    }

    fn began_at_all(&self) -> bool {
        self.attempts > 0 || !self.receipts.is_empty()
    }

    /// What the driver was told last, with what is left of the wait.
    fn go_on(&mut self, after: Span) -> Step {
        let last = self.receipts.last().map(|r| (r.decision, r.reason.unwrap_or_default()));
        let redeliver = self.redeliver();
        let fallback = last.filter(|(decision, _)| *decision == Decision::Fallback && self.state == State::Ready);
        self.step(match (fallback.and_then(|(_, name)| StopReason::from_name(name)), last) {
            (Some(reason), _) => Action::Fallback { target: self.target, after, reason, redeliver },
            (None, Some((_, name))) => Action::Retry { after, reason: RetryReason::from_name(name), redeliver },
            (None, None) => Action::Retry { after, reason: RetryReason::TooEarly, redeliver },
        })
    }

    fn save(&self, wall_ms: u64) -> Saved {
        let ns = Span::as_nanos;
        let on = &self.on_target;
        let kinds = Kind::all().filter(|k| on.kinds[*k as usize] > 0);
        Saved {
            version: VERSION,
            check: 0,
            wall_ms,
            policy: self.policy.to_value(),
            seed: self.seed,
            state: match self.state {
                State::Ready | State::Asking(Asked::Admit) => SavedState::Ready,
                State::Asking(Asked::Repeat { delay }) => SavedState::AskingToRepeat { delay: ns(delay) },
                State::InFlight | State::Asking(Asked::Hedge) => SavedState::InFlight,
                State::Waiting(until) => SavedState::Waiting { until: ns(until) },
                State::Ended(None) => SavedState::Done,
                State::Ended(Some(stop)) => SavedState::Stopped {
                    reason: stop.reason.name().into(),
                    human: stop.disposition == Disposition::Human,
                    resume_in: stop.resume_in.map(ns),
                },
            },
            time: ns(self.time),
            deadline: ns(self.deadline),
            cancelled: self.cancelled,
            recorded: self.recorded,
            cooled: self.cooled,
            attempts: self.attempts,
            waited: ns(self.waited),
            target: self.target,
            on_target: SavedTarget {
                attempts: on.attempts,
                kinds: kinds.map(|k| (k.name().into(), on.kinds[k as usize])).collect(),
                previous: on.previous.map(ns),
            },
            spoken: self.spoken,
            returns: self.returns.iter().map(|(target, moment)| (*target, ns(*moment))).collect(),
            began: ns(self.began),
            first_item: self.first_item.map(ns),
            siblings: self.siblings().map(|sibling| (sibling.number, ns(sibling.began))).collect(),
            receipts: self.receipts.iter().map(save_receipt).collect(),
            written: (self.written.receipts, self.written.ended),
            used: self.used.as_deref().cloned(),
            ids: self.ids.as_deref().cloned(),
            unmasked: self.masks.off().map(str::to_owned).collect(),
        }
    }
}

fn text(saved: &Saved) -> String {
    serde_json::to_string(saved).unwrap_or_default()
}

/// FNV-1a, 64 bits: enough against accidents, and not meant against intent.
fn checksum(saved: &Saved) -> u64 {
    text(saved)
        .bytes()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

fn save_receipt(r: &Receipt) -> SavedReceipt {
    let ns = Span::as_nanos;
    SavedReceipt {
        attempt: r.attempt,
        retry_count: r.retry_count,
        target: r.target,
        started: ns(r.started),
        ended: ns(r.ended),
        first_item: r.first_item.map(ns),
        delivered: r.delivered,
        failure: r.failure.clone(),
        refused_by: r.refused_by.map(|by| by.reason().name().into()),
        decision: r.decision.name().into(),
        reason: r.reason.map(Into::into),
        backoff: r.backoff.map(ns),
        delay: r.delay.map(ns),
        time_left: ns(r.time_left),
        budget: r.budget,
        breaker: r.breaker.map(Into::into),
        guard_store: r.guard_store.map(Into::into),
        usage: r.usage.clone(),
    }
}

fn damaged(what: impl Into<String>) -> SnapshotError {
    SnapshotError::Damaged(what.into())
}

/// Reads and checks everything before a call exists.
fn read(json: &str, wall_now_ms: u64, options: Restore) -> Result<Call, SnapshotError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    let Versioned { version: found } = serde_json::from_str(json).map_err(|e| damaged(e.to_string()))?;
    if found != u64::from(VERSION) {
        return Err(SnapshotError::Version { found });
    }
    let mut saved: Saved = serde_json::from_str(json).map_err(|e| damaged(e.to_string()))?;
    let check = std::mem::take(&mut saved.check);
    if check != checksum(&saved) {
        return Err(damaged("its checksum does not match what it says"));
    }
    load(saved, wall_now_ms, options)
}

fn load(saved: Saved, wall_now_ms: u64, options: Restore) -> Result<Call, SnapshotError> {
    let span = Span::from_nanos;
    let policy = Policy::from_json(&saved.policy.to_string())?;
    let targets = policy.targets.len();
    let refers = saved.receipts.iter().map(|r| r.target).chain(saved.returns.iter().map(|r| r.0)).chain([saved.target]);
    if refers.into_iter().any(|target| target >= targets) {
        return Err(damaged("it speaks of a target that its policy does not have"));
    }
    if saved.on_target.attempts > saved.attempts || saved.written.0 > saved.receipts.len() {
        return Err(damaged("its counts do not agree"));
    }
    if matches!(saved.state, SavedState::AskingToRepeat { .. }) && saved.receipts.is_empty() {
        return Err(damaged("it asks to repeat an attempt that it has no receipt of"));
    }
    let known = |(number, _): &(u32, u64)| (1..=saved.attempts).contains(number);
    if !saved.siblings.iter().all(known) || saved.siblings.len() > saved.attempts as usize {
        return Err(damaged("it speaks of attempts that were never issued"));
    }
    let suspended = Span::from_millis(wall_now_ms.saturating_sub(saved.wall_ms));
    // A call that has not begun has no deadline that could move.
    let begun = saved.attempts > 0 || !saved.receipts.is_empty();
    let suspended = if options.count_suspended && begun { suspended } else { Span::ZERO };
    let time = span(saved.time);
    let mut kinds = [0; Kind::COUNT];
    for (name, count) in &saved.on_target.kinds {
        kinds[named(name, Kind::from_name)? as usize] = *count;
    }
    Ok(Call {
        state: load_state(saved.state)?,
        carried: time.plus(suspended),
        time,
        deadline: span(saved.deadline),
        ends_by: options.ends_by,
        cancelled: saved.cancelled,
        guarded: options.guarded,
        recorded: saved.recorded,
        cooled: saved.cooled,
        attempts: saved.attempts,
        waited: span(saved.waited),
        target: saved.target,
        on_target: OnTarget {
            attempts: saved.on_target.attempts,
            kinds,
            previous: saved.on_target.previous.map(span),
            ..OnTarget::default()
        },
        spoken: saved.spoken,
        returns: saved.returns.into_iter().map(|(target, moment)| (target, span(moment))).collect(),
        began: span(saved.began),
        first_item: saved.first_item.map(span),
        hedged: options.hedged,
        hedging: Hedging::of(saved.siblings.into_iter().map(load_sibling).collect()),
        receipts: saved.receipts.into_iter().map(load_receipt).collect::<Result<_, _>>()?,
        written: Written { receipts: saved.written.0, ended: saved.written.1 },
        used: saved.used.map(Box::new),
        ids: saved.ids.map(Box::new),
        masks: Masks::without(&saved.unmasked).map_err(|e| damaged(e.to_string()))?,
        ..Call::new(policy, saved.seed)
    })
}

fn load_state(state: SavedState) -> Result<State, SnapshotError> {
    Ok(match state {
        SavedState::Ready => State::Ready,
        SavedState::AskingToRepeat { delay } => State::Asking(Asked::Repeat { delay: Span::from_nanos(delay) }),
        SavedState::InFlight => State::InFlight,
        SavedState::Waiting { until } => State::Waiting(Span::from_nanos(until)),
        SavedState::Done => State::Ended(None),
        SavedState::Stopped { reason, human, resume_in } => State::Ended(Some(Stop {
            reason: named(&reason, StopReason::from_name)?,
            disposition: if human { Disposition::Human } else { Disposition::Failed },
            resume_in: resume_in.map(Span::from_nanos),
        })),
    })
}

fn load_sibling((number, began): (u32, u64)) -> Sibling {
    Sibling { number, began: Span::from_nanos(began), budget: None }
}

fn named<T>(name: &str, find: impl Fn(&str) -> Option<T>) -> Result<T, SnapshotError> {
    find(name).ok_or_else(|| damaged(format!("{name:?} is no name that this version knows")))
}

fn load_receipt(r: SavedReceipt) -> Result<Receipt, SnapshotError> {
    let span = Span::from_nanos;
    let maybe = |name: Option<String>| name.map(|n| named(&n, a_reason)).transpose();
    Ok(Receipt {
        attempt: r.attempt,
        retry_count: r.retry_count,
        target: r.target,
        started: span(r.started),
        ended: span(r.ended),
        first_item: r.first_item.map(span),
        delivered: r.delivered,
        failure: r.failure,
        refused_by: r
            .refused_by
            .map(|n| named(&n, |n| StopReason::from_name(n).and_then(RefusedBy::from_reason)))
            .transpose()?,
        decision: named(&r.decision, Decision::from_name)?,
        reason: maybe(r.reason)?,
        backoff: r.backoff.map(span),
        delay: r.delay.map(span),
        time_left: span(r.time_left),
        budget: r.budget,
        breaker: maybe(r.breaker)?,
        guard_store: maybe(r.guard_store)?,
        usage: r.usage,
    })
}

/// The static name behind a reason, a breaker's state or a guard store that a receipt may carry.
fn a_reason(name: &str) -> Option<&'static str> {
    const OTHERS: [&str; 6] = ["cooling_down", "too_early", "closed", "half_open", "open", "local"];
    let stop = StopReason::from_name(name).map(StopReason::name);
    let kind = Kind::from_name(name).map(Kind::name);
    stop.or(kind).or_else(|| OTHERS.into_iter().find(|other| *other == name))
}
