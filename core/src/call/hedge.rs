//! Hedging: an attempt that is slow is joined by another one beside it, at the same target. *Siblings* are one attempt
//! to `max_attempts` and to the rules: whatever becomes of them is decided once.
//!
//! | while a sibling is in flight  | what follows                                                        |
//! | ----------------------------- | ------------------------------------------------------------------- |
//! | one succeeds                  | Done; the others are superseded                                     |
//! | one has its first item        | it goes on alone; the others are superseded                         |
//! | one fails                     | Pending; nothing joins any more, since retries are what failures get |
//! | the last one fails            | the ordinary rules; a wish for time by an earlier one is honoured too |
//! | the call was cancelled        | the next outcome ends it; the others are superseded                 |
//!
//! A superseded attempt is the driver's to cancel; its outcome is Ignored.

use super::{Asked, Call, State};
use crate::Span;
use crate::action::{Action, Outcome, Step};
use crate::failure::Failure;
use crate::guard::{Answer, Asks, Grant, Purpose, Settle};
use crate::trace::{Decision, Receipt};

/// The attempts since the last `begin`, once there is more than one.
#[derive(Clone, Debug, Default)]
pub(super) struct Hedging {
    in_flight: Vec<Sibling>,
    joined: u32,
    /// The retry budget before and after it was charged for the one that is spoken of.
    pub(super) budget: Option<(u64, u64)>,
}

/// One of several attempts in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sibling {
    pub(super) number: u32,
    pub(super) began: Span,
    pub(super) budget: Option<(u64, u64)>,
}

impl Hedging {
    pub(super) fn of(in_flight: Vec<Sibling>) -> Option<Box<Hedging>> {
        (!in_flight.is_empty()).then(|| Box::new(Hedging { in_flight, ..Hedging::default() }))
    }
}

impl Call {
    /// The `hedge_after` of the latest attempt has passed, and it has neither an outcome nor a first item: may another
    /// one join it? `Attempt` says so; `Pending` that it may not (the budget or the run refuse, `hedge.max` or
    /// `max_attempts_total` is reached, it is too early or too late), which never harms the attempts in flight;
    /// `Ignored` that there is none.
    ///
    /// ```
    /// use reprieve::{Action, Call, Outcome, Policy, Span};
    ///
    /// let mut call = Call::new(Policy::from_json(r#"{"hedge": {"after": "300ms"}}"#)?, 7);
    /// let ms = Span::from_millis;
    /// let Action::Attempt { number: 1, hedge_after, .. } = call.begin(ms(0))?.action else { panic!() };
    /// assert_eq!(hedge_after, Some(ms(300)));
    /// let Action::Attempt { number: 2, hedge_after: None, .. } = call.hedge(ms(300)).action else { panic!() };
    /// assert!(matches!(call.on_outcome(ms(350), 2, Outcome::success())?.action, Action::Done));
    /// assert!(matches!(call.on_outcome(ms(351), 1, Outcome::success())?.action, Action::Ignored));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hedge(&mut self, now: Span) -> Step {
        if self.state != State::InFlight {
            return self.step(Action::Ignored);
        }
        let now = self.at(now);
        if now < self.joinable || !self.time_allows() {
            return self.step(Action::Pending);
        }
        if !self.guarded {
            return self.join(None);
        }
        self.asked = self.target;
        self.state = State::Asking(Asked::Hedge);
        self.step(Action::Ask(Asks { policy: self.policy.clone(), target: self.target, purpose: Purpose::Hedge }))
    }

    /// The guards' word on a hedge. It may have come too late, and then is given back.
    pub(super) fn hedge_answered(&mut self, answer: Answer) -> Step {
        self.state = State::InFlight;
        match answer {
            Answer::Granted(grant) if self.joinable < Span::MAX && self.time_allows() => self.join(grant.budget),
            Answer::Granted(grant) => self.unhedged(grant),
            Answer::Refused(refusal) => {
                self.joinable = Span::MAX;
                let reason = Some(refusal.by.reason().name());
                let receipt = self.refusal_receipt(refusal);
                self.receipts.push(Receipt { decision: Decision::Pending, reason, ..receipt });
                self.step(Action::Pending)
            }
        }
    }

    fn unhedged(&mut self, grant: Grant) -> Step {
        self.give_back(grant);
        self.step(Action::Pending)
    }

    fn join(&mut self, budget: Option<(u64, u64)>) -> Step {
        let alone = Sibling { number: self.attempts, began: self.began, budget: None };
        let hedging =
            self.hedging.get_or_insert_with(|| Box::new(Hedging { in_flight: vec![alone], ..Hedging::default() }));
        hedging.joined = hedging.joined.saturating_add(1);
        self.attempts = self.attempts.saturating_add(1);
        self.began = self.time;
        hedging.in_flight.push(Sibling { number: self.attempts, began: self.began, budget });
        self.start(Some("hedge"))
    }

    /// How long the attempt that starts now may be alone; `None` where no other may join it.
    pub(super) fn hedge_after(&self, timeout: Span) -> Option<Span> {
        let hedge = self.policy.hedge?;
        let probe = self.on_target.breaker.is_some_and(|permit| permit.probe) || self.on_target.bench.is_some();
        let joined = self.hedging.as_ref().map_or(0, |hedging| hedging.joined);
        let least = self.policy.min_attempt_time.max(Span::from_nanos(1));
        let in_time = hedge.after < timeout && hedge.after.plus(least) <= self.time_left();
        (in_time && !probe && joined < hedge.max && !self.total_reached()).then_some(hedge.after)
    }

    /// The attempt is under way: its outcome counts.
    pub(super) fn is_in_flight(&self, number: u32) -> bool {
        self.is_flying()
            && match &self.hedging {
                Some(hedging) => hedging.in_flight.iter().any(|sibling| sibling.number == number),
                None => number == self.attempts,
            }
    }

    /// The attempts in flight where there have been several since the last `begin`.
    pub(super) fn siblings(&self) -> &[Sibling] {
        match &self.hedging {
            Some(hedging) if self.is_flying() => &hedging.in_flight,
            _ => &[],
        }
    }

    /// The attempt in flight that was issued last.
    pub(super) fn latest_in_flight(&self) -> u32 {
        self.siblings().iter().map(|sibling| sibling.number).max().unwrap_or(self.attempts)
    }

    fn is_flying(&self) -> bool {
        matches!(self.state, State::InFlight | State::Asking(Asked::Hedge))
    }

    /// Another attempt is in flight beside the one whose outcome has come.
    pub(super) fn in_company(&self) -> bool {
        self.hedging.as_ref().is_some_and(|hedging| !hedging.in_flight.is_empty())
    }

    /// Takes an attempt out of those in flight: it is the one that is spoken of now.
    pub(super) fn turn_to(&mut self, number: u32) -> Option<Sibling> {
        let hedging = self.hedging.as_mut()?;
        let place = hedging.in_flight.iter().position(|sibling| sibling.number == number)?;
        let sibling = hedging.in_flight.remove(place);
        hedging.budget = sibling.budget;
        self.began = sibling.began;
        Some(sibling)
    }

    /// Goes on with one attempt alone.
    pub(super) fn single_out(&mut self, number: u32) {
        let winner = self.turn_to(number);
        self.supersede();
        if let Some(hedging) = &mut self.hedging {
            hedging.in_flight.extend(winner);
        }
    }

    /// The attempts that are still in flight have come too late: what they use is not known, and their outcomes are
    /// ignored.
    pub(super) fn supersede(&mut self) {
        let rest = self.hedging.as_mut().map(|hedging| std::mem::take(&mut hedging.in_flight)).unwrap_or_default();
        for Sibling { number, began, budget } in rest {
            self.tell(Settle::Used { usage: None });
            let receipt = self.receipt(number, Outcome::success());
            let decision = Decision::Superseded;
            self.receipts.push(Receipt { decision, started: began, first_item: None, budget, ..receipt });
        }
    }

    /// A failure that decides nothing, because a sibling may still succeed.
    pub(super) fn pend(&mut self, number: u32, failure: Failure, outcome: Outcome) -> Step {
        self.joinable = Span::MAX;
        self.blames(failure.kind, failure.retry_after);
        self.event_of_failure(number, failure.kind);
        let receipt = self.receipt(number, Outcome { failure: Some(failure), ..outcome });
        self.receipts.push(Receipt { decision: Decision::Pending, ..receipt });
        self.step(Action::Pending)
    }

    /// How long the server wants to be left alone: as this failure says, or what is left of what a sibling's said.
    pub(super) fn wish(&self, own: Option<Span>) -> Option<Span> {
        let told = self.hedging.as_ref().and_then(|_| self.returns.iter().find(|(target, _)| *target == self.target));
        let left = told.map(|(_, moment)| moment.minus(self.time)).filter(|left| *left > Span::ZERO);
        own.max(left)
    }
}
