//! What a call asks of its guards, and what they answer: plain data, which a driver carries from one to the other.

use crate::action::StopReason;
use crate::failure::Kind;
use crate::{Policy, Span};

/// What a call asks of its guards, all or nothing.
#[derive(Clone, Debug)]
pub struct Asks {
    /// The policy of the call: keys, configuration, priority.
    pub policy: Policy,
    /// The index of the target asked for.
    pub target: usize,
    /// What is asked.
    pub purpose: Purpose,
}

/// What an [`Asks`] is for. In which order the guards are asked stands at [`answer`](super::answer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// May an attempt start?
    Admit {
        /// No attempt of this call has been aimed at this target yet.
        first: bool,
    },
    /// May an attempt be joined by another at the same target? It is given no permit: the call's own verdict speaks for
    /// both, and a probe is one attempt.
    Hedge,
    /// May this failure be retried?
    Repeat {
        /// The kind of the failure.
        kind: Kind,
    },
    /// May the request be repaired and tried again?
    Repair,
}

/// What guards answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes to all.
    Granted(Grant),
    /// One said no; what the others had granted was released and nothing was charged.
    Refused(Refusal),
}

/// What was granted, for the call to keep and hand back in a [`Settle`](super::Settle).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The breaker's permit.
    pub breaker: Option<Permit>,
    /// The permit of a benched account's probe.
    pub bench: Option<Permit>,
    /// What the retry budget charged.
    pub retry_cost: u32,
    /// The retry budget's tokens before and after, for the receipt.
    pub budget: Option<(u64, u64)>,
    /// The run counted an attempt and reserved its estimate.
    pub run: bool,
}

impl Grant {
    /// What a set that is calm grants a call's first attempt. `generation` is the answer of [`Guards::calm`](super::Guards::calm) then.
    #[must_use]
    pub fn calm(policy: &Policy, generation: u64, at: Span) -> Grant {
        let breaker = policy.breaker.map(|_| Permit { generation, probe: false, at });
        Grant { breaker, ..Grant::default() }
    }
}

/// A permit of a breaker or a bench. Only a probe's occupies anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// The era it was given in; a verdict from another era changes nothing.
    pub generation: u64,
    /// It is the one probe of a half-open breaker or of a benched account.
    pub probe: bool,
    /// When it was given: a call counts when it is sent.
    pub at: Span,
}

/// Who refused, and when it may look different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which guard.
    pub by: RefusedBy,
    /// When to come back, where that is known.
    pub resume_in: Option<Span>,
    /// The chain may wait for it, once: a cooling (or limited) target, never an open breaker or a benched account.
    pub waitable: bool,
}

/// The guard that refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedBy {
    /// The target is cooling down, or its account is benched.
    CoolingDown,
    /// Its breaker is open, or its probe is under way.
    CircuitOpen,
    /// A limit is reached.
    Limited,
    /// Load is shed.
    Shed,
    /// The run's budget is used up, or its deadline is over.
    RunBudget,
    /// The run was cancelled or has ended.
    RunEnded,
    /// The retry budget is empty.
    RetryBudget,
}

impl RefusedBy {
    const REASONS: [(RefusedBy, StopReason); 7] = [
        (RefusedBy::CoolingDown, StopReason::CoolingDown),
        (RefusedBy::CircuitOpen, StopReason::CircuitOpen),
        (RefusedBy::Limited, StopReason::Limited),
        (RefusedBy::Shed, StopReason::Shed),
        (RefusedBy::RunBudget, StopReason::RunBudgetExhausted),
        (RefusedBy::RunEnded, StopReason::Cancelled),
        (RefusedBy::RetryBudget, StopReason::RetryBudgetExhausted),
    ];

    /// The reason with which a call stops when this guard has the last word.
    #[must_use]
    pub const fn reason(self) -> StopReason {
        RefusedBy::REASONS[self as usize].1
    }

    pub(crate) fn from_reason(reason: StopReason) -> Option<RefusedBy> {
        RefusedBy::REASONS.iter().find(|row| row.1 == reason).map(|row| row.0)
    }
}
