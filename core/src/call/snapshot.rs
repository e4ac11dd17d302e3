//! Snapshots: a call written down as versioned JSON, to go on elsewhere, in any language.
//!
//! No permits and no guard state are in it: they belong to the place where the call ran. A snapshot is a copy; who
//! goes on with it is the user's to ensure. Times inside count from the call's first `begin`, so no clock is in it
//! but the wall time at which it was taken.

mod fields;
mod load;

use super::{Asked, Call, State};
use crate::action::{Action, Outcome, RetryReason, Step, StopReason};
use crate::failure::{Failure, Kind, KindSet};
use crate::guard::{Answer, Grant};
use crate::json::Json;
use crate::text::said;
use crate::trace::Decision;
use crate::{ConfigError, Span};

/// The version that this code writes, and the only one it reads.
const VERSION: u32 = 1;

/// How a call goes on from a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Restore {
    /// The time between snapshot and restore counts against deadline and wait. Default true.
    pub count_suspended: bool,
    /// There are guards (or a run) where it goes on.
    pub guarded: bool,
    /// An outer bound where it goes on, on the driver's clock.
    pub ends_by: Option<Span>,
    /// What can be repaired where it goes on; see [`Call::repairing`]. A changed request does not travel, so that kinds
    /// that were repaired before can be again, but for the one whose repair is the next thing to do.
    pub repairs: KindSet,
}

impl Default for Restore {
    fn default() -> Restore {
        Restore { count_suspended: true, guarded: false, ends_by: None, repairs: KindSet::EMPTY }
    }
}

/// Why a snapshot was refused. Nothing was resumed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub enum SnapshotError {
    /// It was written by a version that this one does not know.
    Version {
        /// The version it says.
        found: u64,
    },
    /// It is not what was written: cut, edited, or not a snapshot.
    Damaged(String),
    /// Its policy is not valid here.
    Policy(#[from] ConfigError),
}

impl SnapshotError {
    pub(crate) fn text(&self) -> String {
        match self {
            SnapshotError::Version { found } => {
                said!["snapshot: version ", found, " is not allowed; it takes ", VERSION]
            }
            SnapshotError::Damaged(why) => said!["snapshot: damaged: ", why],
            SnapshotError::Policy(error) => said!["snapshot: ", error.text()],
        }
    }
}

impl Call {
    /// The call as JSON. `wall_now_ms` is wall time in milliseconds since 1970.
    ///
    /// ```
    /// use reprieve::{Action, Call, Failure, Kind, Outcome, Policy, Restore, Span};
    ///
    /// let mut call = Call::new(Policy::from_json(r#"{"jitter": {"kind": "none"}}"#)?, 7);
    /// let _attempt = call.begin(Span::ZERO)?;
    /// let _wait = call.on_outcome(Span::ZERO, 1, Outcome::failed(Failure::of(Kind::Timeout)))?;
    /// let saved = call.snapshot(Span::from_millis(100), 1_700_000_000_000);
    ///
    /// // Elsewhere, on another clock, 300 ms later: what is left of the wait of 500 ms.
    /// let now = Span::from_secs(9);
    /// let (mut call, step) = Call::restore(&saved, now, 1_700_000_000_300, Restore::default())?;
    /// let Action::Retry { after, .. } = step.action else { panic!() };
    /// assert_eq!(after, Span::from_millis(100));
    /// assert!(matches!(call.begin(now.plus(after))?.action, Action::Attempt { number: 2, .. }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn snapshot(&mut self, now: Span, wall_now_ms: u64) -> String {
        if self.origin.is_some() {
            self.at(now);
        }
        let call = std::mem::replace(self, Call::new(self.policy.clone(), 0));
        let mut snapshot = fields::Snapshot { call, wall_ms: wall_now_ms, check: 0 };
        let check = checksum(&snapshot.text(0));
        let text = snapshot.text(check);
        *self = snapshot.call;
        text
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
            State::Asking(Asked::Repeat { delay, reason }) if options.guarded => Ok(call.ask_repeat(delay, reason)),
            State::Asking(_) => call.on_answer(now, Answer::Granted(Grant::default())),
            State::Ended(Some(stop)) => Ok(call.step(Action::Stop(stop))),
            State::Ended(None) => Ok(call.step(Action::Done)),
            State::Ready => Ok(call.go_on(Span::ZERO)),
            State::Waiting(until) => Ok(call.go_on(until.minus(call.time))),
        };
        let step = step.map_err(|misuse| SnapshotError::Damaged(misuse.text()))?;
        Ok((call, step))
    }

    fn began_at_all(&self) -> bool {
        self.attempts > 0 || !self.receipts.is_empty()
    }

    /// The next thing to do is a repair.
    fn repairs_next(&self) -> bool {
        let repair = RetryReason::Repair;
        match self.state {
            State::Asking(Asked::Repeat { reason, .. }) => reason == repair,
            State::Ready | State::Waiting(_) => self.receipts.last().is_some_and(|r| r.reason == Some(repair.name())),
            _ => false,
        }
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
}

/// FNV-1a, 64 bits: enough against accidents, and not meant against intent.
fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3))
}

/// Reads and checks everything before a call is gone on with. What is read is written once more: the checksum is over
/// that, so that a store may lay the JSON out anew.
fn read(json: &str, wall_now_ms: u64, options: Restore) -> Result<Call, SnapshotError> {
    let tree = Json::parse(json).map_err(|e| SnapshotError::Damaged(e.0))?;
    let mut snapshot = load::snapshot(&tree)?;
    let (wall_ms, check) = (snapshot.wall_ms, snapshot.check);
    if check != checksum(&snapshot.text(0)) {
        return Err(SnapshotError::Damaged("its checksum does not match what it says".into()));
    }
    let mut call = snapshot.call;
    // A call that has not begun has no deadline that could move.
    if options.count_suspended && call.began_at_all() {
        call.carried = call.time.plus(Span::from_millis(wall_now_ms.saturating_sub(wall_ms)));
    }
    call.guarded = options.guarded;
    call.ends_by = options.ends_by;
    let under_repair = call.receipts.last().filter(|_| call.repairs_next()).and_then(|r| r.failure.as_ref());
    let repairs = under_repair.map_or(options.repairs, |failure| options.repairs.without(failure.kind));
    Ok(call.repairing(repairs))
}
