//! What goes into the machine and what comes out: an [`Outcome`] in, a [`Step`] out, each with its reason.

use std::fmt;

use crate::failure::{Failure, Kind};
use crate::guard::{Asks, Settle, Usage};
use crate::text::said;
use crate::{Evidence, Span};

/// How one attempt ended, as the driver saw it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What went wrong; `None` is a success.
    pub failure: Option<Failure>,
    /// Items that have reached the consumer.
    pub delivered: u64,
    /// Time spent delivering them, which the deadline does not count.
    pub delivering: Span,
    /// What the attempt used, where it is known.
    pub usage: Option<Usage>,
    /// The user's `retry_if`: its word on whether this failure is tried again.
    pub retry_if: Option<bool>,
    /// The user's `backoff`: the wait it wants, capped but not jittered.
    pub backoff: Option<Span>,
}

impl Outcome {
    /// The attempt worked.
    #[must_use]
    pub fn success() -> Outcome {
        Outcome::default()
    }

    /// The attempt failed.
    #[must_use]
    pub fn failed(failure: Failure) -> Outcome {
        Outcome { failure: Some(failure), ..Outcome::default() }
    }

    /// The attempt failed, and this is what is known of it; `rules` are the policy's.
    #[must_use]
    pub fn from_evidence(evidence: &Evidence, policy: &crate::Policy) -> Outcome {
        Outcome::failed(crate::failure::classify(evidence, &policy.rules))
    }
}

/// One decision: what to tell the guards first, then what to do.
#[derive(Clone, Debug)]
#[must_use]
pub struct Step {
    /// What to do next.
    pub action: Action,
    /// What to settle with the guards before that; empty without guards.
    pub settles: Vec<Settle>,
}

/// What the driver must do next.
#[derive(Clone, Debug)]
pub enum Action {
    /// Show this to the guards, and give their answer to `on_answer`. Only with guards.
    Ask(Asks),
    /// Run an attempt.
    Attempt {
        /// Its number over the whole call, from 1.
        number: u32,
        /// The index of its target in the policy.
        target: usize,
        /// How long it may take.
        timeout: Span,
        /// How long after its start another may join it, if it has neither an outcome nor a first item by then: that is
        /// when to call `hedge`. A driver that cannot run attempts beside each other leaves it.
        hedge_after: Option<Span>,
    },
    /// Sleep, then `begin` again on the same target.
    Retry {
        /// How long to sleep.
        after: Span,
        /// Why.
        reason: RetryReason,
        /// What a stream's consumer or function is told first.
        redeliver: Option<Redeliver>,
    },
    /// Go to another target: `begin` again.
    Fallback {
        /// The index of the target that will be asked or tried next.
        target: usize,
        /// How long to sleep first; zero.
        after: Span,
        /// Why the last target was left.
        reason: StopReason,
        /// What a stream's consumer or function is told first.
        redeliver: Option<Redeliver>,
    },
    /// Wait for what is in flight.
    Pending,
    /// Drop the answer: its attempt was superseded.
    Ignored,
    /// Give up.
    Stop(Stop),
    /// The call has succeeded.
    Done,
}

/// What happens to the items of a stream that were delivered before it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redeliver {
    /// The consumer is told to discard this many.
    Discard(u64),
    /// The user's function is told to go on after this many.
    Resume(u64),
}

/// The end of a call that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// Why.
    pub reason: StopReason,
    /// Who has it now.
    pub disposition: Disposition,
    /// The shortest known time until it may work: a retry-after or a guard's return, over all targets.
    pub resume_in: Option<Span>,
}

/// Who has a call that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Nobody: it failed.
    Failed,
    /// A person: the policy says so, and every target failed or was open.
    Human,
}

impl Disposition {
    /// The wire name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Disposition::Failed => "failed",
            Disposition::Human => "human",
        }
    }
}

/// Why a call sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryReason {
    /// An attempt failed with this kind.
    Kind(Kind),
    /// It woke before its wait was over; this is the rest.
    TooEarly,
    /// Every target refused, and one of them is only cooling down.
    CoolingDown,
    /// An attempt failed, and the request is repaired before the next one.
    Repair,
}

impl RetryReason {
    /// The wire name: a kind's name, `too_early`, `cooling_down` or `repair`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            RetryReason::Kind(kind) => kind.name(),
            RetryReason::TooEarly => "too_early",
            RetryReason::CoolingDown => "cooling_down",
            RetryReason::Repair => "repair",
        }
    }

    /// The reason with this wire name; an unknown one reads as `too_early`, which decides nothing.
    pub(crate) fn from_name(name: &str) -> RetryReason {
        match Kind::from_name(name) {
            Some(kind) => RetryReason::Kind(kind),
            None => [RetryReason::CoolingDown, RetryReason::Repair]
                .into_iter()
                .find(|reason| reason.name() == name)
                .unwrap_or(RetryReason::TooEarly),
        }
    }
}

macro_rules! stop_reasons {
    ($($(#[$doc:meta])* $variant:ident $name:literal $says:literal;)*) => {
        /// Why a call stopped, or left a target.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum StopReason { $($(#[$doc])* $variant,)* }

        /// Every reason: its wire name, and what it says to whoever is on call.
        const REASONS: &[(StopReason, &str, &str)] = &[$((StopReason::$variant, $name, $says),)*];
    };
}

stop_reasons! {
    /// The kind is in neither `retry_on` nor, where there is a target left, `fallback_on`.
    NotRetryable "not_retryable" "this kind of failure is not retried";
    /// The attempts of the target, or of the call, are used up.
    AttemptsExhausted "attempts_exhausted" "all attempts failed";
    /// The time left does not allow another attempt.
    DeadlineExceeded "deadline_exceeded" "the time left does not allow another attempt";
    /// The server asks for a longer wait than the policy accepts.
    RetryAfterTooLong "retry_after_too_long" "the server asks for a longer wait than retry_after.max";
    /// The next wait would pass `max_total_wait`.
    WaitExhausted "wait_exhausted" "the next wait would pass max_total_wait";
    /// The target's retry budget is empty.
    RetryBudgetExhausted "retry_budget_exhausted" "the retry budget is empty";
    /// The run's budget is used up.
    RunBudgetExhausted "run_budget_exhausted" "the run's budget is used up";
    /// The breaker is open, or its probe failed.
    CircuitOpen "circuit_open" "the circuit breaker is open";
    /// The target is cooling down or benched.
    CoolingDown "cooling_down" "the target is cooling down";
    /// A limit is reached.
    Limited "limited" "a limit is reached";
    /// Load is shed.
    Shed "shed" "load is being shed";
    /// The caller or the run cancelled.
    Cancelled "cancelled" "the call was cancelled";
    /// Items of a stream had reached the consumer.
    AlreadyDelivered "already_delivered" "part of the answer was already delivered";
    /// The call has side effects and may have executed.
    UnsafeToRepeat "unsafe_to_repeat" "the call may have executed, and side_effects is \"unsafe\"";
}

impl StopReason {
    /// The wire name, such as `attempts_exhausted`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        REASONS[self as usize].1
    }

    /// What it says to whoever is on call.
    #[must_use]
    pub const fn says(self) -> &'static str {
        REASONS[self as usize].2
    }

    /// The reason with this wire name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<StopReason> {
        REASONS.iter().find(|row| row.1 == name).map(|row| row.0)
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The driver called the machine in a way that no state allows. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Misuse {
    /// What was called.
    pub called: &'static str,
    /// The state it was called in.
    pub state: &'static str,
}

impl Misuse {
    pub(crate) fn text(&self) -> String {
        said![self.called, " is not allowed while the call is ", self.state]
    }
}
