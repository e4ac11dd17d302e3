//! Guards: state that calls share, and the words calls and guards speak with each other.
//!
//! A call never touches a guard. It hands the driver an [`Asks`]; the driver shows it to [`answer`], and gives the
//! [`Answer`] back to the call. What a call has to tell its guards comes with each step as a list of [`Settle`]s,
//! applied by [`settle`] before the step is acted on. Every machine here takes `now` as an argument.

mod asks;
mod breaker;
mod cooldown;
mod keyed;
mod retry_budget;
mod run;
mod set;
mod shed;
#[cfg(test)]
mod tests;
mod told;
mod usage;
mod window;

pub use asks::{Answer, Asks, Grant, Permit, Purpose, Refusal, RefusedBy};
pub use breaker::{Breaker, BreakerState};
pub use cooldown::{Bench, Cooldown, Cooling};
pub use retry_budget::{Charge, RetryBudget};
pub use run::{Run, RunConfig, RunEnd};
pub use set::{Guards, Transition};
pub use shed::Load;
pub use told::{Settle, Verdict};
pub use usage::Usage;

use crate::failure::Kind;
use crate::policy::Target;
use crate::{Policy, Span};

/// Answers what a call asks, all or nothing: a refusal has taken and charged nothing. Without guards or without a run,
/// their part is granted.
///
/// | purpose | asked, in this order |
/// | --- | --- |
/// | `Admit` | the run's gate, cooldown and bench, breaker, shedding, the run's budget (charged) |
/// | `Repeat` | whether the run would refuse the next attempt (a look, no charge), the retry budget (charged) |
/// | `Hedge` | as `Admit` and `Repeat` together: it is an attempt and a repetition |
/// | `Repair` | whether the run would refuse the next attempt |
///
/// ```
/// use reprieve::guard::{Guards, answer, settle};
/// use reprieve::{Action, Call, Failure, Kind, Outcome, Policy, Span};
///
/// let policy = Policy::from_json(r#"{"max_attempts": 1, "breaker": {"consecutive_failures": 1}}"#)?;
/// let (mut guards, now) = (Guards::new(), Span::ZERO);
/// let mut call = Call::new(policy.clone(), 7).guarded();
///
/// let Action::Ask(asks) = call.begin(now)?.action else { panic!() };
/// let step = call.on_answer(now, answer(now, Some(&mut guards), None, &asks))?;
/// assert!(matches!(step.action, Action::Attempt { number: 1, .. }));
///
/// let stop = call.on_outcome(now, 1, Outcome::failed(Failure::of(Kind::ServerError)))?;
/// settle(now, Some(&mut guards), None, &policy, &stop.settles);
/// assert_eq!(guards.breaker_state(&policy, 0, now), Some("open"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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

/// Applies what a call has to tell, in order. [`answer()`] has an example.
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
