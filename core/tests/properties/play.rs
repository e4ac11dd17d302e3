//! Plays a script through a call, as a driver would, with every misuse a driver may try on the way.

use reprieve::guard::{self, Guards};
use reprieve::{Action, Call, KindSet, RetryReason, Span, Step};
use serde_json::Value;

use crate::model::Model;
use crate::random::{Cancel, Event};

/// A call on its way through a script.
pub struct Play<'a> {
    pub call: Call,
    pub now: Span,
    /// Every action, in the form that bindings see.
    pub log: Vec<Value>,
    /// The call has seen this moment: its clock has not just gone back.
    pub seen: bool,
    guards: Option<&'a mut Guards>,
    model: Model,
    /// The account before the latest action.
    before: Model,
    turn: usize,
}

impl<'a> Play<'a> {
    pub fn new(call: Call, guards: Option<&'a mut Guards>, now: Span) -> Play<'a> {
        let call = if guards.is_some() { call.guarded() } else { call };
        let model = Model::new(call.policy().clone(), now);
        let before = model.clone();
        Play { call: call.recorded(), now, log: Vec::new(), seen: true, guards, model, before, turn: 0 }
    }

    /// The same with a driver that can mend requests after these kinds.
    pub fn repairing(mut self, kinds: KindSet) -> Play<'a> {
        self.call = self.call.repairing(kinds);
        self.model.repairs = kinds;
        self.before = self.model.clone();
        self
    }

    /// This play with another call in the place of its own, before its latest action.
    pub fn fork(&self, call: Call) -> Play<'static> {
        let log = self.log[..self.log.len() - 1].to_vec();
        let (model, before) = (self.before.clone(), self.before.clone());
        Play { call, now: self.now, log, seen: true, guards: None, model, before, turn: self.turn }
    }

    /// From the first `begin` to the end.
    pub fn run(&mut self, script: &[Event], at_wait: impl FnMut(&Self, &Action)) {
        let step = self.call.begin(self.now).expect("a fresh call begins");
        self.go_on(step, script, at_wait);
    }

    /// From this step to the end; `at_wait` sees the play at every wait.
    pub fn go_on(&mut self, mut step: Step, script: &[Event], mut at_wait: impl FnMut(&Self, &Action)) {
        loop {
            let action = self.follow(step);
            let event = &script[self.turn % script.len()];
            step = match action {
                Action::Attempt { number, .. } => self.attempt(number, event),
                Action::Retry { after, .. } | Action::Fallback { after, .. } => {
                    at_wait(self, &action);
                    self.wait(after, event)
                }
                _ => return self.ended(),
            };
            self.turn += 1;
        }
    }

    /// Lets the guards have their say, then checks and logs the action.
    fn follow(&mut self, mut step: Step) -> Action {
        loop {
            let policy = self.call.policy().clone();
            guard::settle(self.now, self.guards.as_deref_mut(), None, &policy, &step.settles);
            let Action::Ask(asks) = &step.action else { break };
            let answer = guard::answer(self.now, self.guards.as_deref_mut(), None, asks);
            step = self.call.on_answer(self.now, answer).expect("an answer is due");
        }
        self.before = self.model.clone();
        let moment = if self.seen { self.now } else { Span::ZERO };
        self.model.action(moment, &step.action);
        self.log.push(serde_json::from_str(&step.action.to_json(self.call.policy())).expect("JSON"));
        step.action
    }

    fn attempt(&mut self, number: u32, event: &Event) -> Step {
        assert!(self.call.begin(self.now).is_err(), "misuse in flight");
        let started = self.now;
        self.now = self.now.plus(event.gap);
        self.seen = !event.back;
        let moment = if event.back { started.minus(event.gap) } else { self.now };
        if event.cancel == Some(Cancel::InFlight) {
            assert!(matches!(self.call.cancel(moment).action, Action::Pending));
            self.model.cancelled(moment);
        }
        let state = self.call.state();
        assert!(self.call.on_outcome(moment, number + 1, event.outcome.clone()).is_err(), "never issued");
        assert!(self.call.on_outcome(moment, 0, event.outcome.clone()).is_err(), "never issued");
        if number > 1 {
            self.ignored(moment, number - 1, event);
        }
        assert_eq!(self.call.state(), state, "misuse changes nothing");

        self.model.outcome(moment, &event.outcome);
        let step = self.call.on_outcome(moment, number, event.outcome.clone()).expect("it is in flight");
        self.ignored(moment, number, event);
        step
    }

    /// One outcome never gets two decisions.
    fn ignored(&mut self, moment: Span, number: u32, event: &Event) {
        let again = self.call.on_outcome(moment, number, event.outcome.clone()).expect("it was issued");
        assert!(matches!(again.action, Action::Ignored));
        assert!(again.settles.is_empty());
    }

    fn wait(&mut self, after: Span, event: &Event) -> Step {
        let half = after.scaled(1, 2);
        if event.early && half > Span::ZERO && self.seen {
            let step = self.call.begin(self.now.plus(half)).expect("a spurious wake");
            let Action::Retry { after: rest, reason, redeliver: None } = step.action else { panic!("{step:?}") };
            assert_eq!((rest, reason), (after.minus(half), RetryReason::TooEarly));
            self.now = self.now.plus(half);
            return self.slept(rest, event);
        }
        self.slept(after, event)
    }

    fn slept(&mut self, after: Span, event: &Event) -> Step {
        self.seen = true;
        if event.cancel == Some(Cancel::Waiting) {
            self.now = self.now.plus(after.scaled(1, 3));
            self.model.cancelled(self.now);
            return self.call.cancel(self.now);
        }
        self.now = self.now.plus(after).plus(event.gap.scaled(1, 8));
        self.call.begin(self.now).expect("a wait is over")
    }

    fn ended(&mut self) {
        let ended = self.call.ended().expect("nothing is left to do");
        assert_eq!(ended.attempts, self.model.attempts());
        let again = self.call.begin(self.now);
        assert!(again.is_err() || matches!(again, Ok(Step { action: Action::Stop(_), .. })), "nothing starts again");
        let numbers: Vec<_> = self.call.receipts().iter().filter_map(|receipt| receipt.attempt).collect();
        assert_eq!(numbers, (1..=ended.attempts).collect::<Vec<_>>(), "one receipt for each attempt");
    }

    /// The records of the whole call, as JSON.
    pub fn lines(&self) -> Vec<Value> {
        let mut call = self.call.clone();
        let lines = call.take_lines().iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert!(call.take_lines().is_empty(), "a line is written once");
        lines
    }
}
