//! Guards: state that calls share, and the words calls and guards speak with each other.
//!
//! A call never touches a guard. It hands the driver an [`Asks`]; the driver shows it to [`answer`], and gives the
//! [`Answer`] back to the call. What a call has to tell its guards comes with each step as a list of [`Settle`]s,
//! applied by [`settle`] before the step is acted on. Every machine here takes `now` as an argument.

mod breaker;
mod cooldown;
mod keyed;
mod retry_budget;
mod run;
mod set;
mod shed;
#[cfg(test)]
mod tests;
mod window;

pub use breaker::{Breaker, BreakerState};
pub use cooldown::{Bench, Cooldown, Cooling};
pub use retry_budget::{Charge, RetryBudget};
pub use run::{Run, RunConfig, RunEnd};
pub use set::{Guards, Transition};
pub use shed::Load;

use crate::action::StopReason;
use crate::failure::Kind;
use crate::json::form::{Form, Record};
use crate::policy::Target;
use crate::{Policy, Span};

/// Answers what a call asks, all or nothing. Without guards or without a run, their part is granted.
///
/// An attempt is admitted by, in this order: the run's gate, cooldown and bench, the breaker, shedding, the run's
/// budget. A retry by a look at the run, then the retry budget; a repair by the look alone. A hedge by all of these: it
/// is an attempt and a repetition.
#[must_use]
pub fn answer(now: Span, guards: Option<&mut Guards>, run: Option<&mut Run>, asks: &Asks) -> Answer {
    let policy = &asks.policy;
    // A target that is not in the policy is nobody's to guard.
    let Some(target) = policy.targets.get(asks.target) else { return Answer::Granted(Grant::default()) };
    let granted = match asks.purpose {
        Purpose::Admit { first } => admit(now, guards, run, policy, target, first),
        Purpose::Hedge => hedge(now, guards, run, policy, target),
        Purpose::Repeat { kind } => repeat(now, guards, run, policy, target, kind),
        Purpose::Repair => run.map_or(Ok(()), |run| run.would_admit(now)).map(|()| Grant::default()),
    };
    granted.map_or_else(Answer::Refused, Answer::Granted)
}

fn admit(
    now: Span,
    guards: Option<&mut Guards>,
    run: Option<&mut Run>,
    policy: &Policy,
    target: &Target,
    first: bool,
) -> Result<Grant, Refusal> {
    if let Some(run) = &run {
        run.gate()?;
    }
    if let Some(guards) = &guards {
        guards.look(now, policy, target)?;
    }
    // Nothing was taken yet, so that the run, asked last, may still refuse.
    let counted = run.map(|run| run.admit(now)).transpose()?.is_some();
    let grant = guards.map_or_else(Grant::default, |guards| guards.take(now, policy, target, first));
    Ok(Grant { run: counted, ..grant })
}

fn hedge(
    now: Span,
    guards: Option<&mut Guards>,
    mut run: Option<&mut Run>,
    policy: &Policy,
    target: &Target,
) -> Result<Grant, Refusal> {
    if let Some(run) = &run {
        run.gate()?;
    }
    if let Some(guards) = &guards {
        guards.look_beside(now, policy, target)?;
    }
    // A look before the retry budget is charged, so that a refusal has nothing to give back.
    if let Some(run) = &run {
        run.would_admit(now)?;
    }
    // Nobody has failed; what joins a slow attempt costs what a timeout's retry does.
    let grant = repeat(now, guards, None, policy, target, Kind::Timeout)?;
    let run = run.as_mut().map(|run| run.admit(now)).transpose()?.is_some();
    Ok(Grant { run, ..grant })
}

fn repeat(
    now: Span,
    guards: Option<&mut Guards>,
    run: Option<&mut Run>,
    policy: &Policy,
    target: &Target,
    kind: Kind,
) -> Result<Grant, Refusal> {
    if let Some(run) = run {
        run.would_admit(now)?;
    }
    let charge = guards.map(|guards| guards.charge(now, policy, target, kind)).transpose()?.flatten();
    Ok(charge.map_or_else(Grant::default, |charge| Grant {
        retry_cost: charge.cost,
        budget: Some((charge.before, charge.after)),
        ..Grant::default()
    }))
}

/// Applies what a call has to tell, in order.
pub fn settle(
    now: Span,
    mut guards: Option<&mut Guards>,
    mut run: Option<&mut Run>,
    policy: &Policy,
    settles: &[Settle],
) {
    for settle in settles {
        match settle {
            Settle::Used { usage } => {
                if let Some(run) = run.as_deref_mut() {
                    run.used(usage.as_ref());
                }
            }
            Settle::NotStarted => {
                if let Some(run) = run.as_deref_mut() {
                    run.not_started();
                }
            }
            _ => {
                if let Some(guards) = guards.as_deref_mut() {
                    settle_guards(now, guards, policy, settle);
                }
            }
        }
    }
}

fn settle_guards(now: Span, guards: &mut Guards, policy: &Policy, settle: &Settle) {
    let Some(target) = settle.target().and_then(|index| policy.targets.get(index)) else { return };
    match *settle {
        Settle::Breaker { permit, verdict, .. } => guards.settle_breaker(now, policy, target, permit, verdict),
        Settle::Bench { permit, verdict, .. } => guards.settle_bench(now, target, permit, verdict),
        Settle::Failed { kind, retry_after, .. } => guards.failed(now, policy, target, kind, retry_after),
        Settle::Refund { .. } => guards.refund(now, policy, target),
        Settle::Return { cost, .. } => guards.give_back(now, policy, target, cost),
        Settle::Used { .. } | Settle::NotStarted => {}
    }
}

/// What is left of `length` since `since`; `None` when it is over. A clock that is behind stands still.
fn time_left(now: Span, since: Span, length: Span) -> Option<Span> {
    let left = since.plus(length).minus(now.max(since));
    (left > Span::ZERO).then_some(left)
}

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
    /// May an attempt be joined by another at the same target? Asked in the order of `Admit`, and charged like a retry,
    /// too. It is given no permit: the call's own verdict speaks for both, and a probe is one attempt.
    Hedge,
    /// May this failure be retried? Asked in this order: would the run refuse the next attempt (a look, no charge);
    /// retry budget (charged).
    Repeat {
        /// The kind of the failure.
        kind: Kind,
    },
    /// May the request be repaired and tried again? Asked: would the run refuse the next attempt (a look, no charge).
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

impl Grant {
    /// What a set that is calm grants a call's first attempt. `generation` is the answer of [`Guards::calm`] then.
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

impl Record for Usage {
    fn fields(&mut self, form: &mut Form<'_, '_>) {
        form.field("input_tokens", &mut self.input_tokens);
        form.field("output_tokens", &mut self.output_tokens);
        form.field("cost_nanos", &mut self.cost_nanos);
        form.field("currency", &mut self.currency);
    }
}

impl Usage {
    /// The cost in the currency's unit, for people; what is counted are the billionths.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people; the billionths stay exact inside")]
    pub fn cost(&self) -> Option<f64> {
        self.cost_nanos.map(|nanos| nanos as f64 / 1e9)
    }

    /// The sum; a number that none of them knows stays unknown. Costs in different currencies are not added up.
    pub fn total<'a>(all: impl IntoIterator<Item = &'a Usage>) -> Usage {
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
