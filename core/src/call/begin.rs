//! `begin`: may an attempt start, and on which target? In this order: cancelled, too early, time left, guards, attempt.

use super::{Asked, Call, State};
use crate::Span;
use crate::action::{Action, Misuse, RetryReason, Step, StopReason};
use crate::guard::{Answer, Asks, Grant, Purpose, Refusal, RefusedBy, Settle, Verdict};
use crate::jitter::{DrawFor, draw};
use crate::policy::Millionths;
use crate::trace::{Decision, Receipt};

impl Call {
    /// Begins the first attempt, or the one after a wait or fallback.
    ///
    /// # Errors
    /// [`Misuse`] while an attempt is in flight, an answer is due, or after the end.
    pub fn begin(&mut self, now: Span) -> Result<Step, Misuse> {
        let until = match self.state {
            State::Ended(Some(stop)) if self.cancelled => return Ok(self.step(Action::Stop(stop))),
            State::InFlight | State::Asking(_) | State::Ended(_) => return Err(self.misuse("begin")),
            State::Waiting(until) => until,
            State::Ready => Span::ZERO,
        };
        let now = self.at(now);
        if now < until {
            let (after, reason) = (until.minus(now), RetryReason::TooEarly);
            self.waits(after, reason);
            return Ok(self.step(Action::Retry { after, reason, redeliver: None }));
        }
        self.state = State::Ready;
        if !self.time_allows() {
            return Ok(self.stop(StopReason::DeadlineExceeded));
        }
        self.cooling = None;
        Ok(if self.guarded { self.ask(self.target) } else { self.attempt(self.target) })
    }

    /// Takes the guards' answer to the latest `Ask`.
    ///
    /// # Errors
    /// [`Misuse`] where no answer is due.
    pub fn on_answer(&mut self, now: Span, answer: Answer) -> Result<Step, Misuse> {
        match (self.state, answer) {
            (State::Asking(Asked::Admit), answer) => {
                self.at(now);
                Ok(match answer {
                    Answer::Granted(grant) => self.admitted(grant),
                    Answer::Refused(refusal) => self.refused(refusal),
                })
            }
            (State::Asking(Asked::Hedge), answer) => {
                self.at(now);
                Ok(self.hedge_answered(answer))
            }
            (State::Asking(Asked::Repeat { delay, reason }), answer) => {
                self.at(now);
                Ok(self.answered(delay, reason, answer))
            }
            (State::Ended(Some(stop)), answer) if self.unanswered => {
                self.unanswered = false;
                if let Answer::Granted(grant) = answer {
                    self.give_back(grant);
                }
                Ok(self.step(Action::Stop(stop)))
            }
            _ => Err(self.misuse("on_answer")),
        }
    }

    fn ask(&mut self, target: usize) -> Step {
        self.asked = target;
        self.state = State::Asking(Asked::Admit);
        let first = target != self.target || self.on_target.attempts + self.on_target.repaired == 0;
        self.step(Action::Ask(Asks { policy: self.policy.clone(), target, purpose: Purpose::Admit { first } }))
    }

    /// All guards granted; time may have passed since they were asked, so the deadline has a last word.
    fn admitted(&mut self, grant: Grant) -> Step {
        self.state = State::Ready;
        if !self.time_allows() {
            self.give_back(grant);
            return self.stop(StopReason::DeadlineExceeded);
        }
        if self.asked != self.target {
            self.leave_target();
        }
        self.on_target.breaker = grant.breaker.or(self.on_target.breaker);
        self.on_target.under = self.on_target.breaker.map(|p| if p.probe { "half_open" } else { "closed" });
        self.on_target.bench = grant.bench.or(self.on_target.bench);
        self.attempt(self.asked)
    }

    /// Starts an attempt; the targets before this one are left for good.
    pub(super) fn attempt(&mut self, target: usize) -> Step {
        self.target = target;
        self.attempts = self.attempts.saturating_add(1);
        self.on_target.attempts = self.on_target.attempts.saturating_add(1);
        self.on_target.cost = std::mem::take(&mut self.owed);
        self.began = self.time;
        self.first_item = None;
        self.hedging = None;
        self.start(None)
    }

    /// The attempt that was counted last, under way.
    pub(super) fn start(&mut self, reason: Option<&'static str>) -> Step {
        let target = self.target;
        self.state = State::InFlight;
        let own = self.policy.targets[target].attempt_timeout.or(self.policy.attempt_timeout);
        let timeout = own.unwrap_or(Span::MAX).min(self.time_left());
        let hedge_after = self.hedge_after(timeout);
        self.joinable = hedge_after.map_or(Span::MAX, |after| self.time.plus(after));
        self.event("attempt_started", |event| {
            event.timeout_ms = Some(timeout.as_millis_rounded());
            event.reason = reason;
        });
        self.step(Action::Attempt { number: self.attempts, target, timeout, hedge_after })
    }

    /// One guard refused. A refusal by the run stops; any other asks for the next target, and after the last one the
    /// call waits for a cooling target, once, or stops with the last refusal's reason.
    fn refused(&mut self, refusal: Refusal) -> Step {
        let asked = self.asked;
        self.repay();
        self.receipts.push(self.refusal_receipt(refusal));
        let reason = refusal.by.reason();
        if matches!(refusal.by, RefusedBy::RunBudget | RefusedBy::RunEnded) {
            return self.stop(reason);
        }
        self.note_return(asked, refusal.resume_in);
        if refusal.by == RefusedBy::CircuitOpen {
            self.spoken |= 1 << asked;
        }
        if let (true, Some(rest)) = (refusal.waitable, refusal.resume_in) {
            self.cooling = Some(self.cooling.map_or(rest, |soonest| soonest.min(rest)));
        }
        if asked + 1 < self.policy.targets.len() {
            self.close(Decision::Fallback, Some(reason.name()), None);
            self.event_on(asked + 1, "fallback", |event| event.reason = Some(reason.name()));
            return self.ask(asked + 1);
        }
        match self.cooling.and_then(|rest| self.cooling_wait(rest)) {
            Some(delay) => {
                self.cooled = true;
                self.wait(delay, RetryReason::CoolingDown)
            }
            None => self.stop(reason),
        }
    }

    /// The wait for the soonest cooling target: its return plus a spread, where that fits.
    fn cooling_wait(&self, rest: Span) -> Option<Span> {
        if self.cooled || rest > self.policy.retry_after.max {
            return None;
        }
        let widest = rest.scaled(self.policy.retry_after.spread.0, Millionths::ONE.0);
        let delay = rest.plus(draw(self.seed, self.attempts, DrawFor::Cooling, Span::ZERO, widest));
        self.fits(delay).is_ok().then_some(delay)
    }

    /// Sleeps: the wait is charged now, whether or not it is slept to its end.
    pub(super) fn wait(&mut self, delay: Span, reason: RetryReason) -> Step {
        let redeliver = self.redeliver();
        self.close(Decision::Retry, Some(reason.name()), Some(delay));
        self.waited = self.waited.plus(delay);
        self.state = State::Waiting(self.time.plus(delay));
        self.waits(delay, reason);
        self.step(Action::Retry { after: delay, reason, redeliver })
    }

    fn waits(&mut self, delay: Span, reason: RetryReason) {
        let name = match reason {
            RetryReason::Kind(_) | RetryReason::Repair => "will_retry",
            RetryReason::TooEarly | RetryReason::CoolingDown => "waiting",
        };
        self.event(name, |event| {
            event.reason = Some(reason.name());
            event.delay_ms = Some(delay.as_millis_rounded());
        });
    }

    /// Gives back what was granted to an attempt that will not start.
    pub(super) fn give_back(&mut self, grant: Grant) {
        let target = self.asked;
        let verdict = Verdict::Released;
        if let Some(permit) = grant.breaker {
            self.tell(Settle::Breaker { target, permit, verdict });
        }
        if let Some(permit) = grant.bench {
            self.tell(Settle::Bench { target, permit, verdict });
        }
        if grant.retry_cost > 0 {
            self.tell(Settle::Return { target, cost: grant.retry_cost });
        }
        if grant.run {
            self.tell(Settle::NotStarted);
        }
    }

    pub(super) fn refusal_receipt(&self, refusal: Refusal) -> Receipt {
        Receipt {
            refused_by: Some(refusal.by),
            breaker: (refusal.by == RefusedBy::CircuitOpen).then_some("open"),
            ..self.receipt_for(self.asked)
        }
    }

    /// A receipt opened now, with what is the same for attempts and refusals.
    pub(super) fn receipt_for(&self, target: usize) -> Receipt {
        Receipt {
            attempt: None,
            retry_count: self.attempts,
            target,
            started: self.time,
            ended: self.time,
            first_item: None,
            delivered: 0,
            failure: None,
            refused_by: None,
            decision: Decision::Stop,
            reason: None,
            backoff: None,
            delay: None,
            time_left: self.time_left(),
            budget: None,
            breaker: None,
            guard_store: self.guarded.then_some("local"),
            usage: None,
        }
    }
}
