//! The state machine of one call: outcomes and elapsed time in, the next action out. It reads no clock and draws no
//! entropy; `now` is a span since any epoch that the driver picks.
//!
//! | state | `begin` | `on_answer` | `on_outcome` | `hedge` | `cancel` |
//! | --- | --- | --- | --- | --- | --- |
//! | Ready | Ask, Attempt, Stop | misuse | Ignored | Ignored | Stop |
//! | Asking to admit | misuse | Ask, Attempt, Retry (`cooling_down`), Stop | Ignored | Ignored | Stop |
//! | `InFlight` | misuse | misuse | Done, Ask, Retry, Fallback, Stop; Pending beside a sibling | Ask, Attempt, Pending | Pending |
//! | Asking to hedge | misuse | Attempt, Pending | misuse | Ignored | Pending |
//! | Asking to repeat | misuse | Retry, Fallback, Stop | Ignored | Ignored | Stop |
//! | Waiting | Retry (`too_early`), or as Ready | misuse | Ignored | Ignored | Stop |
//! | Ended | misuse; Stop once cancelled | Stop where an answer was due | Ignored | Ignored | Stop |
//!
//! `on_outcome` answers the first failure of a kind that can be repaired with `Retry` (`repair`) at once, or asks its run
//! first. The attempt is counted by the call, and not by its target; no guard hears of it.
//!
//! An outcome is answered once: one of an attempt that was superseded or already decided is Ignored, one of an attempt
//! never issued is misuse. `first_item` is Pending for an attempt in flight, Ignored for any other. `begin` is in
//! `begin.rs`, `on_outcome` in `outcome.rs`, what leaving a target and ending means in `leaving.rs`; attempts beside each
//! other are in `hedge.rs`, records and events in `records.rs`, snapshots in `snapshot.rs`. This file holds the state and
//! what they share.

mod begin;
mod hedge;
mod leaving;
mod outcome;
mod records;
mod snapshot;

pub use snapshot::{Restore, SnapshotError};

use crate::action::{Action, Misuse, RetryReason, Step, Stop, StopReason};
use crate::failure::{Category, Kind, KindSet};
use crate::guard::{Permit, Settle, Usage, Verdict};
use crate::trace::{Ids, Masks, Receipt};
use crate::{Policy, Span};

/// One logical call: its attempts, its deadline, its receipts. Times inside count from its first `begin`.
///
/// ```
/// use reprieve::{Action, Call, Failure, Kind, Outcome, Policy, Span};
///
/// let mut call = Call::new(Policy::default(), 7);
/// let now = Span::from_secs(100);
/// let Action::Attempt { number: 1, .. } = call.begin(now)?.action else { panic!() };
/// let failed = Outcome::failed(Failure::of(Kind::RateLimit));
/// let Action::Retry { after, .. } = call.on_outcome(now, 1, failed)?.action else { panic!() };
/// let Action::Attempt { number: 2, .. } = call.begin(now.plus(after))?.action else { panic!() };
/// assert!(matches!(call.on_outcome(now.plus(after), 2, Outcome::success())?.action, Action::Done));
/// # Ok::<(), reprieve::Misuse>(())
/// ```
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact of the call; the states are in `state`")]
pub struct Call {
    policy: Policy,
    seed: u64,
    state: State,
    /// The driver's clock at the first `begin` (or restore), and the call's own time at that moment.
    origin: Option<Span>,
    carried: Span,
    /// The latest moment seen; time never goes backwards.
    time: Span,
    deadline: Span,
    /// An outer bound on the driver's clock: a run's deadline, a visible outer attempt's.
    ends_by: Option<Span>,
    cancelled: bool,
    guarded: bool,
    recorded: bool,
    /// The call ended while an answer of its guards was due: what it grants must be given back.
    unanswered: bool,
    /// The chain has waited for a cooling target.
    cooled: bool,
    attempts: u32,
    waited: Span,
    target: usize,
    on_target: OnTarget,
    /// The target that the guards are being asked for.
    asked: usize,
    /// The soonest return of a target that is only cooling, in this `begin`.
    cooling: Option<Span>,
    /// The targets that failed or whose breaker was open, as bits.
    spoken: u32,
    /// When each target may be back, where a server or guard said so.
    returns: Vec<(usize, Span)>,
    began: Span,
    first_item: Option<Span>,
    /// From when on another attempt may join those in flight; the end of time where none may.
    joinable: Span,
    /// The attempts in flight, where one has joined another since the last `begin`.
    hedging: Option<Box<hedge::Hedging>>,
    /// The kinds that can still be repaired, each once.
    repairs: KindSet,
    /// A retry was paid for and has not begun.
    owed: u32,
    outbox: Vec<Settle>,
    receipts: Vec<Receipt>,
    written: Written,
    /// What an unrecorded first-try success used.
    used: Option<Box<Usage>>,
    ids: Option<Box<Ids>>,
    masks: Masks,
    /// What a listener has not heard yet; `None` without a listener.
    events: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Asking(Asked),
    InFlight,
    Waiting(Span),
    Ended(Option<Stop>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Admit,
    Hedge,
    Repeat { delay: Span, reason: RetryReason },
}

/// What is counted per target, and forgotten when it is left.
#[derive(Clone, Copy, Debug, Default)]
struct OnTarget {
    attempts: u32,
    /// Attempts beside these whose failure was repaired: they count nowhere.
    repaired: u32,
    /// How many ended with each kind.
    kinds: [u16; Kind::COUNT],
    /// The last decorrelated wait.
    previous: Option<Span>,
    breaker: Option<Permit>,
    bench: Option<Permit>,
    /// The breaker's state that the attempt was admitted in, which outlives the permit.
    under: Option<&'static str>,
    /// What the retry budget charged for the attempt under way.
    cost: u32,
    /// The last failure here was the service's fault.
    fault: bool,
}

/// How much of the records a driver has taken.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    receipts: usize,
    ended: bool,
}

impl State {
    const fn name(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Asking(_) => "asking",
            State::InFlight => "in_flight",
            State::Waiting(_) => "waiting",
            State::Ended(_) => "ended",
        }
    }
}

impl Call {
    /// A call under this policy. The seed decides every random draw.
    #[must_use]
    // In the browser's module the code of it stands once; elsewhere the happy path has it in place.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    pub fn new(policy: Policy, seed: u64) -> Call {
        let deadline = policy.total_timeout;
        Call {
            policy,
            seed,
            state: State::Ready,
            origin: None,
            carried: Span::ZERO,
            time: Span::ZERO,
            deadline,
            ends_by: None,
            cancelled: false,
            guarded: false,
            recorded: false,
            unanswered: false,
            cooled: false,
            attempts: 0,
            waited: Span::ZERO,
            target: 0,
            on_target: OnTarget::default(),
            asked: 0,
            cooling: None,
            spoken: 0,
            returns: Vec::new(),
            began: Span::ZERO,
            first_item: None,
            joinable: Span::MAX,
            hedging: None,
            repairs: KindSet::EMPTY,
            owed: 0,
            outbox: Vec::new(),
            receipts: Vec::new(),
            written: Written::default(),
            used: None,
            ids: None,
            masks: Masks::default(),
            events: None,
        }
    }

    /// The happy path's late start: the call whose first attempt a driver began by itself at `t0`. Equal to `new`
    /// and `begin` at `t0`, for a call without guards or an outer bound.
    #[must_use]
    pub fn started(policy: Policy, seed: u64, t0: Span) -> Call {
        let mut call = Call::new(policy, seed);
        call.at(t0);
        let _attempt = call.attempt(0);
        call
    }

    /// Asks guards before it attempts and before it retries. Before the first `begin`.
    #[must_use]
    pub fn guarded(mut self) -> Call {
        self.guarded = true;
        self
    }

    /// Never lasts beyond this moment of the driver's clock: a run's deadline, or a visible outer attempt's.
    #[must_use]
    pub fn ends_by(mut self, moment: Span) -> Call {
        self.ends_by = Some(self.ends_by.map_or(moment, |other| other.min(moment)));
        self
    }

    /// Keeps a receipt of a first-try success too; a call that fails always keeps its receipts.
    #[must_use]
    pub fn recorded(mut self) -> Call {
        self.recorded = true;
        self
    }

    /// Names the call in its records.
    #[must_use]
    pub fn with_ids(mut self, ids: Ids) -> Call {
        self.ids = Some(Box::new(ids));
        self
    }

    /// The driver can change the request after a failure of these kinds. The first failure of each is answered with a
    /// `Retry` at once, whose reason is `repair`: one attempt more, which does not count into `max_attempts`. Control
    /// kinds cannot be repaired.
    #[must_use]
    pub fn repairing(mut self, kinds: KindSet) -> Call {
        self.repairs = kinds.iter().filter(|kind| kind.category() != Category::Control).collect();
        self
    }

    /// What is masked in its records; everything by default.
    #[must_use]
    pub fn with_masks(mut self, masks: Masks) -> Call {
        self.masks = masks;
        self
    }

    /// Tells a listener what happens: see [`Call::take_events`].
    #[must_use]
    pub fn heard(mut self) -> Call {
        self.events = Some(Vec::new());
        self
    }

    /// Cancels the call, in any state. An attempt in flight is only marked: `Pending`, and its outcome ends the call;
    /// of several, the first outcome that comes.
    pub fn cancel(&mut self, now: Span) -> Step {
        match self.state {
            State::InFlight | State::Asking(Asked::Hedge) => {
                self.at(now);
                self.cancelled = true;
                self.joinable = Span::MAX;
                self.step(Action::Pending)
            }
            State::Ended(stop) => {
                let again = stop.unwrap_or(self.stopping(StopReason::Cancelled));
                self.step(Action::Stop(Stop { reason: StopReason::Cancelled, ..again }))
            }
            State::Ready | State::Waiting(_) | State::Asking(_) => {
                self.at(now);
                self.unanswered = matches!(self.state, State::Asking(_));
                self.stop(StopReason::Cancelled)
            }
        }
    }

    /// An attempt has its first item. `Pending`: it goes on, alone from now on, and a stream's probe settles here.
    /// `Ignored`: it is not in flight, because another one had its first item before; drop it.
    pub fn first_item(&mut self, now: Span, number: u32) -> Step {
        if !self.is_in_flight(number) {
            return self.step(Action::Ignored);
        }
        if self.first_item.is_none() {
            self.first_item = Some(self.at(now));
            self.joinable = Span::MAX;
            self.single_out(number);
            if self.on_target.breaker.is_some_and(|p| p.probe) {
                self.verdict(Verdict::Success);
            }
        }
        self.step(Action::Pending)
    }

    /// The policy of the call.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The state's name: `ready`, `asking`, `in_flight`, `waiting` or `ended`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        self.state.name()
    }

    /// Attempts issued so far.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Attempts issued on the current target, without those that were repaired: the n of a user's own backoff.
    #[must_use]
    pub fn attempts_on_target(&self) -> u32 {
        self.on_target.attempts
    }

    /// No attempt can follow the one in flight, whatever comes of it. A hedge that joins it does not follow it.
    #[must_use]
    pub fn is_last(&self) -> bool {
        let target = &self.policy.targets[self.target];
        let here = self.on_target.attempts >= target.max_attempts.unwrap_or(self.policy.max_attempts);
        let last_target = self.target + 1 >= self.policy.targets.len();
        self.total_reached() || (here && last_target && self.repairs.is_empty())
    }

    /// What is left of the deadline at the latest moment seen.
    #[must_use]
    pub fn time_left(&self) -> Span {
        let outer = match (self.ends_by, self.origin) {
            (Some(ends_by), Some(origin)) => self.carried.plus(ends_by.minus(origin)),
            _ => Span::MAX,
        };
        self.deadline.min(outer).minus(self.time)
    }

    // What `begin` and `on_outcome` share.

    /// Takes the driver's clock: the call's own time, which starts at its first `begin` and never goes backwards.
    fn at(&mut self, now: Span) -> Span {
        let origin = *self.origin.get_or_insert(now);
        self.time = self.time.max(self.carried.plus(now.minus(origin)));
        self.time
    }

    fn step(&mut self, action: Action) -> Step {
        Step { action, settles: std::mem::take(&mut self.outbox) }
    }

    fn misuse(&self, called: &'static str) -> Misuse {
        Misuse { called, state: self.state.name() }
    }

    fn tell(&mut self, settle: Settle) {
        if self.guarded {
            self.outbox.push(settle);
        }
    }

    fn total_reached(&self) -> bool {
        self.policy.max_attempts_total.is_some_and(|most| self.attempts >= most)
    }

    /// The time left is positive and at least `min_attempt_time`.
    fn time_allows(&self) -> bool {
        let left = self.time_left();
        left > Span::ZERO && left >= self.policy.min_attempt_time
    }

    /// Whether a wait leaves time for an attempt, and whether the waits charged allow it.
    fn fits(&self, delay: Span) -> Result<(), StopReason> {
        let attempt = self.policy.min_attempt_time.max(Span::from_nanos(1));
        if delay.plus(attempt) > self.time_left() {
            Err(StopReason::DeadlineExceeded)
        } else if self.policy.max_total_wait.is_some_and(|most| self.waited.plus(delay) > most) {
            Err(StopReason::WaitExhausted)
        } else {
            Ok(())
        }
    }
}
