//! Attempts beside each other: a random driver joins, answers, cancels and restores, and keeps its own account of what
//! is in flight.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use reprieve::guard::{self, Guards, Run, RunConfig};
use reprieve::{Action, Call, Outcome, Policy, Restore, Span, Step, StopReason};
use serde_json::{Value, json};

use crate::random::{event, guarded_policy, span};
use crate::{WALL, config};

/// What the driver does next while attempts are in flight.
#[derive(Clone, Debug)]
enum Does {
    Hedge,
    FirstItem(Index),
    Outcome(Index, Box<Outcome>),
    Cancel,
    /// Goes on from a snapshot, elsewhere.
    Restore,
}

fn does() -> impl Strategy<Value = (Span, Does)> {
    let does = prop_oneof![
        8 => Just(Does::Hedge),
        1 => any::<Index>().prop_map(Does::FirstItem),
        5 => (any::<Index>(), event()).prop_map(|(which, event)| Does::Outcome(which, Box::new(event.outcome))),
        1 => Just(Does::Cancel),
        1 => Just(Does::Restore),
    ];
    (span(1_500), does)
}

fn hedging_policy() -> impl Strategy<Value = Policy> {
    (guarded_policy(), span(1_000), 1..4u32).prop_map(|(policy, after, max)| {
        let mut fields: Value = serde_json::from_str(&policy.to_json()).expect("JSON");
        fields["side_effects"] = json!("idempotent");
        fields["hedge"] = json!({"after": after.max(Span::from_nanos(1)).to_string(), "max": max});
        Policy::from_json(&fields.to_string()).expect("a valid policy")
    })
}

/// One call, and what its driver knows of it.
struct Driver<'a> {
    call: Call,
    guards: &'a mut Guards,
    run: &'a mut Run,
    now: Span,
    /// The attempts that have started and have neither an outcome nor been superseded.
    in_flight: BTreeSet<u32>,
    issued: u32,
    target: usize,
    /// Since the last `begin`: how many have joined, when the latest began, whether one has failed or has an item.
    joined: u32,
    latest: Span,
    over: bool,
    /// Until when a failure since the last `begin` wants the target left alone.
    wished: Span,
    cancelled: bool,
}

impl Driver<'_> {
    /// Does what the script says until the call ends or the script does.
    fn drive(&mut self, script: &[(Span, Does)]) {
        let mut step = self.call.begin(self.now).expect("fresh");
        let mut script = script.iter();
        loop {
            let action = self.follow(step);
            self.agrees();
            if let Action::Stop(_) | Action::Done = action {
                return self.ended();
            }
            if let Action::Retry { after, .. } | Action::Fallback { after, .. } = action {
                assert!(self.in_flight.is_empty());
                self.now = self.now.plus(after);
                (self.joined, self.over, self.wished) = (0, false, Span::ZERO);
                step = self.call.begin(self.now).expect("its wait is over");
                continue;
            }
            let Some((gap, does)) = script.next() else { return };
            self.now = self.now.plus(*gap);
            step = self.does(does);
        }
    }

    fn does(&mut self, does: &Does) -> Step {
        self.ignores_the_others();
        match does {
            Does::Hedge => self.call.hedge(self.now),
            Does::FirstItem(which) => {
                let number = self.one(*which);
                let step = self.call.first_item(self.now, number);
                assert!(matches!(step.action, Action::Pending));
                self.in_flight.retain(|other| *other == number);
                self.over = true;
                step
            }
            Does::Outcome(which, outcome) => self.outcome(self.one(*which), outcome.as_ref().clone()),
            Does::Cancel => {
                let step = self.call.cancel(self.now);
                assert!(matches!(step.action, Action::Pending));
                self.cancelled = true;
                step
            }
            Does::Restore => {
                let saved = self.call.snapshot(self.now, WALL);
                let options = Restore { guarded: true, ..Restore::default() };
                let (call, step) = Call::restore(&saved, self.now, WALL, options).expect("whole");
                self.call = call;
                self.in_flight.clear();
                step
            }
        }
    }

    fn one(&self, which: Index) -> u32 {
        *self.in_flight.iter().nth(which.index(self.in_flight.len())).expect("something is in flight")
    }

    fn outcome(&mut self, number: u32, outcome: Outcome) -> Step {
        let failure = outcome.failure.clone();
        self.in_flight.remove(&number);
        let step = self.call.on_outcome(self.now, number, outcome).expect("it is in flight");
        let Some(failure) = failure else {
            assert!(matches!(step.action, Action::Done));
            self.in_flight.clear();
            return step;
        };
        self.over = true;
        self.wished = self.wished.max(failure.retry_after.map_or(Span::ZERO, |wish| self.now.plus(wish)));
        if self.cancelled {
            assert!(matches!(step.action, Action::Stop(end) if end.reason == StopReason::Cancelled));
            self.in_flight.clear();
        } else {
            let pending = matches!(step.action, Action::Pending);
            assert_eq!(pending, !self.in_flight.is_empty(), "one decision, once nothing is in flight");
        }
        step
    }

    /// What is not in flight is never decided again.
    fn ignores_the_others(&mut self) {
        for number in (1..=self.issued).filter(|number| !self.in_flight.contains(number)) {
            let step = self.call.on_outcome(self.now, number, Outcome::success()).expect("it was issued");
            assert!(matches!(step.action, Action::Ignored) && step.settles.is_empty());
            let step = self.call.first_item(self.now, number);
            assert!(matches!(step.action, Action::Ignored) && step.settles.is_empty());
        }
        assert!(self.call.on_outcome(self.now, self.issued + 1, Outcome::success()).is_err(), "never issued");
    }

    fn follow(&mut self, mut step: Step) -> Action {
        let policy = self.call.policy().clone();
        loop {
            guard::settle(self.now, Some(self.guards), Some(self.run), &policy, &step.settles);
            let Action::Ask(asks) = &step.action else { break };
            let answer = guard::answer(self.now, Some(self.guards), Some(self.run), asks);
            step = self.call.on_answer(self.now, answer).expect("an answer is due");
        }
        match step.action {
            Action::Attempt { number, target, timeout, hedge_after } => {
                assert_eq!(number, self.issued + 1, "every attempt is numbered once");
                let hedge = policy.hedge.expect("it hedges");
                if self.in_flight.is_empty() {
                    self.target = target;
                } else {
                    self.joined += 1;
                    assert_eq!(target, self.target, "beside the others");
                    assert!(self.joined <= hedge.max && self.now >= self.latest.plus(hedge.after));
                    assert!(!self.over && !self.cancelled, "only what is slow is joined");
                }
                assert!(policy.max_attempts_total.is_none_or(|most| number <= most));
                assert!(hedge_after.is_none_or(|after| after == hedge.after && after < timeout));
                self.in_flight.insert(number);
                (self.issued, self.latest) = (number, self.now);
            }
            Action::Retry { after, .. } => assert!(self.now.plus(after) >= self.wished, "no wish is cut short"),
            _ => {}
        }
        step.action
    }

    /// The run counts what the driver counts: nothing is charged twice, nothing is forgotten.
    fn agrees(&self) {
        let report: Value = serde_json::from_str(&self.run.report()).expect("JSON");
        let counted = &report["attempts"];
        assert_eq!(counted["in_flight"], json!(self.in_flight.len()));
        assert_eq!(counted["used"], json!(self.issued));
        assert_eq!(self.call.attempts(), self.issued);
    }

    fn ended(&self) {
        assert!(self.in_flight.is_empty());
        let mut numbers: Vec<_> = self.call.receipts().iter().filter_map(|receipt| receipt.attempt).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=self.issued).collect::<Vec<_>>(), "one receipt for each attempt");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn siblings_are_decided_once(
        policy in hedging_policy(),
        seed: u64,
        most in option::of(1..6u64),
        script in vec(does(), 60),
    ) {
        let (mut guards, mut run) = (Guards::new(), Run::new(RunConfig { attempts: most, ..RunConfig::default() }));
        let mut driver = Driver {
            call: Call::new(policy, seed).recorded().guarded(),
            guards: &mut guards,
            run: &mut run,
            now: Span::from_secs(9),
            in_flight: BTreeSet::new(),
            issued: 0,
            target: 0,
            joined: 0,
            latest: Span::ZERO,
            over: false,
            wished: Span::ZERO,
            cancelled: false,
        };
        driver.drive(&script);
    }
}
