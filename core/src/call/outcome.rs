//! `on_outcome`: what follows an attempt? In this order: success, cancelled, a repair, retryable at all, safe to repeat,
//! the reasons to leave the target, and else a retry.

use super::{Asked, Call, State};
use crate::Span;
use crate::action::{Action, Misuse, Outcome, RetryReason, Step, StopReason};
use crate::backoff::Point;
use crate::failure::{Category, Failure, Kind};
use crate::guard::{Answer, Asks, Purpose, RefusedBy, Settle, Verdict};
use crate::policy::{Nested, SideEffects, StreamMode};
use crate::trace::{Decision, Receipt};

impl Call {
    /// Takes the outcome of the attempt with this number.
    ///
    /// # Errors
    /// [`Misuse`] for an attempt that was never issued.
    pub fn on_outcome(&mut self, now: Span, number: u32, outcome: Outcome) -> Result<Step, Misuse> {
        if number == 0 || number > self.attempts {
            return Err(self.misuse("on_outcome of an attempt that was never issued"));
        }
        if self.state == State::Asking(Asked::Hedge) {
            return Err(self.misuse("on_outcome"));
        }
        if !self.is_in_flight(number) {
            return Ok(self.step(Action::Ignored));
        }
        self.at(now);
        let _turned = self.turn_to(number);
        self.deadline = self.deadline.plus(outcome.delivering);
        if self.guarded {
            self.tell(Settle::Used { usage: outcome.usage.clone() });
        }
        Ok(match outcome.failure {
            None => self.succeeded(number, outcome),
            Some(_) => self.failed(number, outcome),
        })
    }

    fn succeeded(&mut self, number: u32, outcome: Outcome) -> Step {
        self.supersede();
        self.verdict(Verdict::Success);
        let (target, cost) = (self.target, self.on_target.cost);
        if self.on_target.attempts == 1 && self.on_target.repaired == 0 && self.hedging.is_none() {
            self.tell(Settle::Refund { target });
        } else if cost > 0 {
            self.tell(Settle::Return { target, cost });
        }
        if self.recorded || !self.receipts.is_empty() {
            let receipt = self.receipt(number, outcome);
            self.receipts.push(receipt);
            self.close(Decision::Done, None, None);
        } else {
            self.used = outcome.usage.map(Box::new);
        }
        self.state = State::Ended(None);
        self.event("succeeded", |event| event.attempt = number);
        self.step(Action::Done)
    }

    fn failed(&mut self, number: u32, mut outcome: Outcome) -> Step {
        let Some(mut failure) = outcome.failure.take() else { return self.succeeded(number, outcome) };
        let (kind, own_wish) = (failure.kind, failure.retry_after);
        self.spoken |= 1 << self.target;
        let wish = self.wish(own_wish);
        self.note_return(self.target, wish);
        if self.in_company() && !self.cancelled {
            return self.pend(number, failure, outcome);
        }
        self.supersede();
        failure.retry_after = wish;
        let ended_so = &mut self.on_target.kinds[kind as usize];
        *ended_so = ended_so.saturating_add(1);
        let decided = self.decide(&failure, &outcome);
        if let Next::Repair = decided {
            self.overlook(kind);
        } else {
            self.blames(kind, own_wish);
        }
        // A bench's probe is one attempt: the account may be probed again, by this call too.
        if let Some(permit) = self.on_target.bench.take() {
            self.tell(Settle::Bench { target: self.target, permit, verdict: Verdict::Released });
        }
        self.event_of_failure(number, kind);

        let mut receipt = self.receipt(number, Outcome { failure: Some(failure), ..outcome });
        if let Next::Retry { backoff, .. } | Next::Leave { backoff: Some(backoff), .. } = decided {
            receipt.backoff = Some(backoff);
        }
        self.receipts.push(receipt);
        match decided {
            Next::Stop(reason) => self.stop(reason),
            Next::Leave { reason, .. } => self.leave(reason),
            Next::Repair => self.repeat(Span::ZERO, RetryReason::Repair),
            Next::Retry { delay, .. } => self.repeat(delay, RetryReason::Kind(kind)),
        }
    }

    /// The failure speaks against the target, and the guards hear of it.
    pub(super) fn blames(&mut self, kind: Kind, retry_after: Option<Span>) {
        self.on_target.fault = kind.service_fault();
        self.tell(Settle::Failed { target: self.target, kind, retry_after });
    }

    pub(super) fn event_of_failure(&mut self, number: u32, kind: Kind) {
        self.event("attempt_failed", |event| {
            event.attempt = number;
            event.kind = Some(kind.name());
            event.category = Some(kind.category().name());
        });
    }

    /// The failure of this kind is repaired: it is the request's, and speaks neither against the target nor for it.
    fn overlook(&mut self, kind: Kind) {
        self.repairs = self.repairs.without(kind);
        let on = &mut self.on_target;
        let ended_so = &mut on.kinds[kind as usize];
        *ended_so = ended_so.saturating_sub(1);
        on.attempts = on.attempts.saturating_sub(1);
        on.repaired = on.repaired.saturating_add(1);
        on.fault = false;
        // A probe is one attempt: the next one asks for a probe of its own.
        if on.breaker.is_some_and(|permit| permit.probe) {
            self.verdict(Verdict::Released);
        }
    }

    fn repeat(&mut self, delay: Span, reason: RetryReason) -> Step {
        if self.guarded { self.ask_repeat(delay, reason) } else { self.wait(delay, reason) }
    }

    /// Rules 1 to 4 and 6, but for what only guards know.
    fn decide(&mut self, failure: &Failure, outcome: &Outcome) -> Next {
        let kind = failure.kind;
        if self.cancelled || kind == Kind::Cancelled {
            return Next::Stop(StopReason::Cancelled);
        }
        let forbidden = self.forbidden(failure, outcome);
        if forbidden.is_none() && self.repairable(kind) {
            return Next::Repair;
        }
        let revivable = kind.category() != Category::Control;
        let listed = self.policy.retry_on.contains(kind) && !failure.retry_forbidden;
        let retries = revivable && outcome.retry_if.unwrap_or(listed);
        let falls_back = self.policy.fallback_on.contains(kind) && outcome.retry_if != Some(true);
        if !retries && !falls_back {
            return Next::Stop(StopReason::NotRetryable);
        }
        if let Some(reason) = forbidden {
            return Next::Stop(reason);
        }
        if let Some(reason) = self.used_up(failure, falls_back) {
            return Next::Leave { reason, backoff: None };
        }
        let (backoff, delay) = self.delay(failure, outcome.backoff);
        match self.fits(delay) {
            Ok(()) => Next::Retry { backoff, delay },
            Err(reason) => Next::Leave { reason, backoff: Some(backoff) },
        }
    }

    /// Why nothing may follow, on any target.
    fn forbidden(&self, failure: &Failure, outcome: &Outcome) -> Option<StopReason> {
        let modes = [StreamMode::BeforeFirstItem, StreamMode::Buffered];
        if outcome.delivered > 0 && modes.contains(&self.policy.stream.mode) {
            Some(StopReason::AlreadyDelivered)
        } else if self.policy.side_effects == SideEffects::Unsafe && failure.may_have_executed {
            Some(StopReason::UnsafeToRepeat)
        } else {
            None
        }
    }

    /// A changed request may do what this one did not: whatever the policy says of the kind, and whatever the server
    /// says of repeating the same. A service that failed its breaker's probe is not cured by it.
    fn repairable(&self, kind: Kind) -> bool {
        let probe = self.on_target.breaker.is_some_and(|permit| permit.probe);
        self.repairs.contains(kind)
            && !(probe && kind.service_fault())
            && !self.total_reached()
            && self.fits(Span::ZERO).is_ok()
    }

    /// Why the call leaves its target whatever the wait would be.
    fn used_up(&self, failure: &Failure, falls_back: bool) -> Option<StopReason> {
        let on = &self.on_target;
        let target = &self.policy.targets[self.target];
        let own = self.policy.for_kind(failure.kind).and_then(|own| own.max_attempts);
        let nested = failure.inner_trace.is_some() && self.policy.nested != Nested::Independent;
        if falls_back {
            Some(StopReason::NotRetryable)
        } else if nested {
            Some(StopReason::AttemptsExhausted)
        } else if on.breaker.is_some_and(|permit| permit.probe) {
            Some(StopReason::CircuitOpen)
        } else if on.attempts >= target.max_attempts.unwrap_or(self.policy.max_attempts)
            || self.total_reached()
            || own.is_some_and(|most| u32::from(on.kinds[failure.kind as usize]) >= most)
        {
            Some(StopReason::AttemptsExhausted)
        } else if failure.retry_after.is_some_and(|wish| wish > self.policy.retry_after.max) {
            Some(StopReason::RetryAfterTooLong)
        } else {
            None
        }
    }

    /// Backoff and wait. A user's own backoff is capped and takes the place of the drawn one.
    fn delay(&mut self, failure: &Failure, user: Option<Span>) -> (Span, Span) {
        let (kind, on) = (failure.kind, &self.on_target);
        let point = Point { seed: self.seed, attempt: self.attempts, n: on.attempts, previous: on.previous };
        let drawn = self.policy.backoff_after(kind, point);
        let backoff = user.map_or(drawn, |wish| wish.min(self.policy.curve_for(kind).max));
        let delay = self.policy.delay(backoff, failure.retry_after, point, self.room());
        self.on_target.previous = Some(drawn);
        (backoff, delay)
    }

    /// The longest wait that fits.
    fn room(&self) -> Span {
        let attempt = self.policy.min_attempt_time.max(Span::from_nanos(1));
        let by_wait = self.policy.max_total_wait.map_or(Span::MAX, |most| most.minus(self.waited));
        self.time_left().minus(attempt).min(by_wait)
    }

    pub(super) fn ask_repeat(&mut self, delay: Span, reason: RetryReason) -> Step {
        self.asked = self.target;
        self.state = State::Asking(Asked::Repeat { delay, reason });
        let purpose = match reason {
            RetryReason::Kind(kind) => Purpose::Repeat { kind },
            RetryReason::Repair | RetryReason::TooEarly | RetryReason::CoolingDown => Purpose::Repair,
        };
        self.step(Action::Ask(Asks { policy: self.policy.clone(), target: self.target, purpose }))
    }

    /// The guards' word on a retry: it is paid for, or the call leaves the target.
    pub(super) fn answered(&mut self, delay: Span, reason: RetryReason, answer: Answer) -> Step {
        match answer {
            Answer::Granted(grant) => {
                self.owed = grant.retry_cost;
                if let Some(receipt) = self.receipts.last_mut() {
                    receipt.budget = grant.budget;
                }
                self.wait(delay, reason)
            }
            Answer::Refused(refusal) if refusal.by == RefusedBy::RunEnded => self.stop(StopReason::Cancelled),
            // Only the run was asked, and it has no attempt for another target either.
            Answer::Refused(refusal) if reason == RetryReason::Repair => self.stop(refusal.by.reason()),
            Answer::Refused(refusal) => self.leave(refusal.by.reason()),
        }
    }

    pub(super) fn receipt(&self, number: u32, outcome: Outcome) -> Receipt {
        Receipt {
            attempt: Some(number),
            retry_count: number - 1,
            started: self.began,
            first_item: self.first_item,
            delivered: outcome.delivered,
            failure: outcome.failure,
            budget: self.hedging.as_ref().and_then(|hedging| hedging.budget),
            breaker: self.on_target.under,
            usage: outcome.usage,
            ..self.receipt_for(self.target)
        }
    }
}

/// What the rules say before guards are asked.
enum Next {
    Stop(StopReason),
    Leave { reason: StopReason, backoff: Option<Span> },
    Repair,
    Retry { backoff: Span, delay: Span },
}
