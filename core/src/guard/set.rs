//! The guard set: every machine that calls share, by key, and the questions asked of them together.
//!
//! A target's `upstream` keys its breaker and its overload; its `account` the rate limits and benches; its `id` the
//! retry budget. A question is first looked up everywhere and only then taken, so that a refusal has nothing to give
//! back.

use super::keyed::{Idle, Keyed};
use super::{Breaker, BreakerState, Charge, Cooldown, Grant, Load, Permit, Refusal, RefusedBy, RetryBudget, Verdict};
use crate::failure::Kind;
use crate::json::{self, Fields};
use crate::policy::{Millionths, Target};
use crate::{Policy, Span};

/// The lease of a bench's probe where no breaker says.
const PROBE_LEASE: Span = Span::from_secs(60);

/// The most transitions that are kept until somebody takes them; the oldest are dropped.
const MOST_TRANSITIONS: usize = 1_000;

/// The guards that calls share. Holds state only: what it is judged by comes with each call's policy. Policies that
/// share a key should agree on its configuration.
///
/// Memory is bounded: 10,000 keys a map, of which the idle and then the oldest are forgotten first.
#[derive(Clone, Debug, Default)]
pub struct Guards {
    breakers: Keyed<Breaker>,
    cooldown: Cooldown,
    budgets: Keyed<RetryBudget>,
    load: Load,
    transitions: Vec<Transition>,
}

/// A breaker's change of state, for the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The upstream's key.
    pub key: String,
    /// The state before.
    pub from: BreakerState,
    /// The state after.
    pub to: BreakerState,
    /// When, on the driver's clock.
    pub at: Span,
}

impl Guards {
    /// A set that remembers nothing yet: every breaker closed, every budget full.
    #[must_use]
    pub fn new() -> Guards {
        Guards::default()
    }

    /// Takes a report of load: jobs waiting, cost as a share of what may be spent. What is left out stays as it was.
    pub fn report(&mut self, queue_depth: Option<u64>, cost_ratio: Option<Millionths>) {
        self.load.report(queue_depth, cost_ratio);
    }

    /// The state of the target's breaker, such as `half_open`; `None` without a breaker.
    #[must_use]
    pub fn breaker_state(&self, policy: &Policy, target: usize, now: Span) -> Option<&'static str> {
        policy.breaker.as_ref()?;
        let breaker = self.breakers.get(policy.targets.get(target)?.upstream_key());
        Some(breaker.map_or(BreakerState::Closed, |breaker| breaker.state(now)).name())
    }

    /// How long cooldown and breaker go on refusing the target; `None` when they would admit.
    #[must_use]
    pub fn resume_in(&self, policy: &Policy, target: usize, now: Span) -> Option<Span> {
        let target = policy.targets.get(target)?;
        let cooling = self.cooling(now, policy, target).and_then(|refusal| refusal.resume_in);
        cooling.max(self.broken(now, policy, target))
    }

    /// The tokens of the target's retry budget; `None` without a retry budget.
    #[must_use]
    pub fn budget(&self, policy: &Policy, target: usize, now: Span) -> Option<u64> {
        let config = policy.retry_budget.as_ref()?;
        let held = self.budgets.get(&policy.targets.get(target)?.id);
        Some(held.map_or_else(|| RetryBudget::default().tokens(now, config), |budget| budget.tokens(now, config)))
    }

    /// Whether the set is *calm* for a policy: it would admit an attempt at the first target, and a success at the first
    /// try would change nothing. The breaker is closed and has counted no failure, nothing cools or is benched, the
    /// retry budget is full, no load is shed. Never so in a ratio mode, which counts successes too.
    ///
    /// Once calm, a set stays calm until something is settled, charged or reported. A driver may meanwhile make first
    /// attempts without asking; the answer is the breaker's generation, with which [`Grant::calm`] makes up for it.
    #[must_use]
    pub fn calm(&self, now: Span, policy: &Policy) -> Option<u64> {
        let target = policy.targets.first()?;
        let idle =
            policy.cooldown.is_none_or(|_| self.cooldown.is_calm(now, target.account_key(), target.upstream_key()));
        let full = policy.retry_budget.is_none_or(|config| match self.budgets.get(&target.id) {
            Some(budget) => budget.is_calm(&config),
            None => RetryBudget::default().is_calm(&config),
        });
        let admits = policy.shed.as_ref().is_none_or(|config| self.load.admit(config, policy.priority).is_ok());
        let generation = policy.breaker.map_or(Some(0), |config| match self.breakers.get(target.upstream_key()) {
            Some(breaker) => breaker.calm(&config),
            None => Breaker::default().calm(&config),
        });
        generation.filter(|_| idle && full && admits)
    }

    /// The changes of state since the last time this was asked, oldest first. Past 1,000 the oldest are dropped.
    pub fn take_transitions(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.transitions)
    }

    /// Everything that is not at rest, for people: breakers, coolings and benches with the time left, tokens spent of
    /// retry budgets, load. As JSON.
    #[must_use]
    pub fn describe(&self, now: Span) -> String {
        let left = |out: &mut Fields<'_>, key: &str, left: Option<Span>| {
            out.object(key, |out| out.number("left_ms", left.map_or(0, Span::as_millis_rounded)));
        };
        let (accounts, upstreams) = self.cooldown.entries();
        json::object(|out| {
            out.object("breakers", |out| {
                for (key, breaker) in self.breakers.active(now).filter(|(_, breaker)| breaker.is_open()) {
                    out.object(key, |out| {
                        out.text("state", breaker.state(now).name());
                        out.number("half_open_in_ms", breaker.half_open_in(now).map(Span::as_millis_rounded));
                    });
                }
            });
            out.object("cooling_accounts", |out| {
                let cooling = accounts.active(now).filter_map(|(key, one)| Some((key, one.cooling.held(now)?)));
                cooling.for_each(|(key, rest)| left(out, key, Some(rest)));
            });
            out.object("cooling_upstreams", |out| {
                upstreams.active(now).for_each(|(key, cooling)| left(out, key, cooling.held(now)));
            });
            out.object("benched_accounts", |out| {
                let benched = accounts.active(now).filter(|(_, one)| one.bench.is_held());
                benched.for_each(|(key, one)| left(out, key, one.bench.benched(now)));
            });
            out.object("retry_budgets", |out| {
                for (key, held) in self.budgets.active(now) {
                    out.object(key, |out| out.number("spent", held.spent()));
                }
            });
            out.object("load", |out| self.load.write(out));
        })
    }

    /// Whether an attempt at the target may start. In the order of the rules: cooldown and bench, breaker, (limits),
    /// shedding.
    pub(super) fn look(&self, now: Span, policy: &Policy, target: &Target) -> Result<(), Refusal> {
        if let Some(refusal) = self.cooling(now, policy, target) {
            return Err(refusal);
        }
        if let Some(left) = self.broken(now, policy, target) {
            return Err(Refusal { by: RefusedBy::CircuitOpen, resume_in: Some(left), waitable: false });
        }
        policy.shed.as_ref().map_or(Ok(()), |config| self.load.admit(config, policy.priority))
    }

    /// Whether another attempt may join one at the target: as [`Guards::look`] says, but never as a probe.
    pub(super) fn look_beside(&self, now: Span, policy: &Policy, target: &Target) -> Result<(), Refusal> {
        self.look(now, policy, target)?;
        let probing =
            policy.breaker.is_some() && self.breakers.get(target.upstream_key()).is_some_and(Breaker::is_open);
        let benched = policy.cooldown.is_some() && self.cooldown.is_benched(target.account_key());
        let refused = [(probing, RefusedBy::CircuitOpen), (benched, RefusedBy::CoolingDown)].into_iter().find(|r| r.0);
        refused.map_or(Ok(()), |(_, by)| Err(Refusal { by, resume_in: None, waitable: false }))
    }

    /// Takes what [`Guards::look`] found free.
    pub(super) fn take(&mut self, now: Span, policy: &Policy, target: &Target, first: bool) -> Grant {
        let bench = policy.cooldown.and_then(|_| self.cooldown.take(now, target.account_key()));
        let breaker = policy.breaker.map(|_| self.breaker(now, target, |breaker| breaker.take(now)));
        if let Some(config) = policy.retry_budget.filter(|_| first) {
            self.budgets.with(&target.id, now, |budget| budget.request(now, &config));
        }
        Grant { breaker, bench, ..Grant::default() }
    }

    /// Charges a retry; `None` without a retry budget.
    pub(super) fn charge(
        &mut self,
        now: Span,
        policy: &Policy,
        target: &Target,
        kind: Kind,
    ) -> Result<Option<Charge>, Refusal> {
        let Some(config) = policy.retry_budget else { return Ok(None) };
        self.budgets.with(&target.id, now, |budget| budget.charge(now, &config, kind)).map(Some)
    }

    pub(super) fn settle_breaker(
        &mut self,
        now: Span,
        policy: &Policy,
        target: &Target,
        permit: Permit,
        verdict: Verdict,
    ) {
        if let Some(config) = policy.breaker {
            self.breaker(now, target, |breaker| breaker.settle(now, &config, permit, verdict));
        }
    }

    pub(super) fn settle_bench(&mut self, now: Span, target: &Target, permit: Permit, verdict: Verdict) {
        self.cooldown.settle(now, target.account_key(), permit, verdict);
    }

    pub(super) fn failed(
        &mut self,
        now: Span,
        policy: &Policy,
        target: &Target,
        kind: Kind,
        retry_after: Option<Span>,
    ) {
        if let Some(config) = policy.cooldown {
            let (account, upstream) = (target.account_key(), target.upstream_key());
            self.cooldown.failed(now, &config, account, upstream, kind, retry_after);
        }
    }

    pub(super) fn refund(&mut self, now: Span, policy: &Policy, target: &Target) {
        if let Some(config) = policy.retry_budget {
            self.budgets.with(&target.id, now, |budget| budget.refund(&config));
        }
    }

    pub(super) fn give_back(&mut self, now: Span, policy: &Policy, target: &Target, cost: u32) {
        if let Some(config) = policy.retry_budget {
            self.budgets.with(&target.id, now, |budget| budget.give_back(&config, cost));
        }
    }

    fn cooling(&self, now: Span, policy: &Policy, target: &Target) -> Option<Refusal> {
        policy.cooldown.as_ref()?;
        let lease = policy.breaker.map_or(PROBE_LEASE, |config| config.probe_lease);
        self.cooldown.held(now, target.account_key(), target.upstream_key(), lease)
    }

    fn broken(&self, now: Span, policy: &Policy, target: &Target) -> Option<Span> {
        let config = policy.breaker.as_ref()?;
        self.breakers.get(target.upstream_key())?.held(now, config)
    }

    /// Works on the target's breaker, and notes the change of state if there was one.
    fn breaker<R>(&mut self, now: Span, target: &Target, work: impl FnOnce(&mut Breaker) -> R) -> R {
        let key = target.upstream_key();
        let (from, result, to) = self.breakers.with(key, now, |breaker| {
            let from = breaker.last_state();
            let result = work(breaker);
            (from, result, breaker.last_state())
        });
        if from != to {
            if self.transitions.len() >= MOST_TRANSITIONS {
                self.transitions.remove(0);
            }
            self.transitions.push(Transition { key: key.to_owned(), from, to, at: now });
        }
        result
    }
}

impl Idle for Breaker {
    fn is_idle(&self, now: Span) -> bool {
        Breaker::is_idle(self, now)
    }
}

impl Idle for RetryBudget {
    fn is_idle(&self, now: Span) -> bool {
        RetryBudget::is_idle(self, now)
    }
}
