//! What a call tells its guards when an attempt, or its stay at a target, is over: plain data, applied by
//! [`settle`](super::settle()).

use super::{Permit, Usage};
use crate::Span;
use crate::failure::Kind;

/// How a call left a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It worked.
    Success,
    /// The last failure there was a service fault.
    Failed,
    /// It says nothing about the service.
    Released,
}

/// What a call tells its guards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settle {
    /// The one verdict of a call on a target's breaker.
    Breaker {
        /// The target's index.
        target: usize,
        /// The permit it was given.
        permit: Permit,
        /// How it went.
        verdict: Verdict,
    },
    /// The end of a bench's probe.
    Bench {
        /// The target's index.
        target: usize,
        /// The permit it was given.
        permit: Permit,
        /// `Success` lifts the bench; anything else lets another probe.
        verdict: Verdict,
    },
    /// A failure that may cool or bench the target for the others.
    Failed {
        /// The target's index.
        target: usize,
        /// The kind of the failure.
        kind: Kind,
        /// What the server asked for.
        retry_after: Option<Span>,
    },
    /// A first-try success: the retry budget grows by its refund.
    Refund {
        /// The target's index.
        target: usize,
    },
    /// A cost comes back: the retry succeeded, or never started.
    Return {
        /// The target's index.
        target: usize,
        /// What was charged.
        cost: u32,
    },
    /// An attempt ended: the run's estimate is replaced by what was used.
    Used {
        /// What was used, where the driver knows.
        usage: Option<Usage>,
    },
    /// An attempt that was granted never started: the run takes it back.
    NotStarted,
}

impl Settle {
    /// The index of the target it is about; `None` for what is told to the run.
    #[must_use]
    pub fn target(&self) -> Option<usize> {
        match *self {
            Settle::Breaker { target, .. }
            | Settle::Bench { target, .. }
            | Settle::Failed { target, .. }
            | Settle::Refund { target }
            | Settle::Return { target, .. } => Some(target),
            Settle::Used { .. } | Settle::NotStarted => None,
        }
    }
}
