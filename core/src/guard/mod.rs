//! Guards: state that calls share, and the words calls and guards speak with each other.
//!
//! A call never touches a guard. It hands the driver an [`Asks`]; the driver shows it to [`answer`], and gives the
//! [`Answer`] back to the call. What a call has to tell its guards comes with each step as a list of [`Settle`]s,
//! applied by [`settle`] before the step is acted on. Every machine here takes `now` as an argument.

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

/// What an [`Asks`] is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// May an attempt start? Asked in this order: cooldown and bench, breaker, (limits), shedding, run budget.
    Admit {
        /// No attempt of this call has been aimed at this target yet.
        first: bool,
    },
    /// May this failure be retried? Asked in this order: would the run refuse the next attempt (a look, no charge);
    /// retry budget (charged).
    Repeat {
        /// The kind of the failure.
        kind: Kind,
    },
}

/// What guards answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes to all.
    Granted(Grant),
    /// One said no; what the others had granted was released and nothing was charged.
    Refused(Refusal),
}

/// What was granted, for the call to keep and hand back in a [`Settle`].
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

/// What one attempt used.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// Cost in billionths of the currency's unit.
    pub cost_nanos: Option<u64>,
    /// The currency, such as `USD`.
    pub currency: Option<String>,
}

impl Usage {
    /// The cost in the currency's unit, for people; what is counted are the billionths.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people; the billionths stay exact inside")]
    pub fn cost(&self) -> Option<f64> {
        self.cost_nanos.map(|nanos| nanos as f64 / 1e9)
    }

    /// The sum; a number that none of them knows stays unknown. Costs in different currencies are not added up.
    pub fn total<'a>(all: impl Iterator<Item = &'a Usage>) -> Usage {
        fn add(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
            more.map_or(sum, |more| Some(sum.unwrap_or(0).saturating_add(more)))
        }
        let mut total = Usage::default();
        let mut mixed = false;
        for usage in all {
            total.input_tokens = add(total.input_tokens, usage.input_tokens);
            total.output_tokens = add(total.output_tokens, usage.output_tokens);
            total.cost_nanos = add(total.cost_nanos, usage.cost_nanos);
            mixed |= total.currency.is_some() && usage.currency.is_some() && total.currency != usage.currency;
            total.currency = total.currency.or_else(|| usage.currency.clone());
        }
        if mixed {
            total.cost_nanos = None;
            total.currency = None;
        }
        total
    }
}
