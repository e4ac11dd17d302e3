//! What holds for every policy and every course of events: random policies, played through random scripts.
//!
//! The scripts are the same each time, so that what has passed passes again. Others, and more of them:
//! `PROPTEST_RNG_SEED=2 PROPTEST_CASES=50000 cargo test --release -p reprieve --test properties`.

mod damage;
mod hedging;
mod json;
mod model;
mod play;
mod random;

use play::Play;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use random::{guarded_policy, kinds, policy, script, span};
use reprieve::guard::Guards;
use reprieve::{Action, Call, Outcome, Policy, Restore, Span};

const WALL: u64 = 1_700_000_000_000;

fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    let rng_seed = if asked.rng_seed == RngSeed::Random { RngSeed::Fixed(1) } else { asked.rng_seed };
    // Failures are turned into vectors or plain tests, not into a file of seeds.
    ProptestConfig { rng_seed, failure_persistence: None, ..asked }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_step_keeps_the_rules(policy in policy(), seed: u64, epoch in span(1_000_000), script in script()) {
        Play::new(Call::new(policy, seed), None, epoch).run(&script, |_, _| ());
    }

    /// The same where requests can be mended after some kinds.
    #[test]
    fn repairs_keep_the_rules(policy in policy(), seed: u64, repairs in kinds(), script in script()) {
        Play::new(Call::new(policy, seed), None, Span::ZERO).repairing(repairs).run(&script, |_, _| ());
    }

    /// Several calls in a row share guards, so that breakers open, budgets run dry and targets cool down.
    #[test]
    fn guards_only_ever_take_away(
        policy in guarded_policy(),
        seed: u64,
        calls in vec((script(), span(6_000), kinds()), 1..6),
    ) {
        let (mut guards, mut now) = (Guards::new(), Span::ZERO);
        for (script, pause, repairs) in calls {
            let mut play = Play::new(Call::new(policy.clone(), seed), Some(&mut guards), now).repairing(repairs);
            play.run(&script, |_, _| ());
            now = play.now.plus(pause);
        }
    }

    /// A snapshot at any wait, restored at once, goes on exactly as the call that was never stopped.
    #[test]
    fn a_restored_call_goes_on_as_if_nothing_had_been(policy in policy(), seed: u64, script in script()) {
        let mut forks = Vec::new();
        let mut play = Play::new(Call::new(policy, seed), None, Span::from_secs(5));
        play.run(&script, |play, action| {
            if play.seen {
                let saved = play.call.clone().snapshot(play.now, WALL);
                let (call, step) = Call::restore(&saved, play.now, WALL, Restore::default()).expect("whole");
                assert_eq!(step.action.to_json(call.policy()), action.to_json(call.policy()));
                forks.push((play.fork(call), step));
            }
        });
        for (mut fork, step) in forks {
            fork.go_on(step, &script, |_, _| ());
            prop_assert_eq!(&fork.log, &play.log);
            prop_assert_eq!(fork.lines(), play.lines());
        }
    }

    /// The happy path's late start is `new` and `begin`.
    #[test]
    fn started_is_new_and_begin(policy in policy(), seed: u64, epoch in span(1_000_000), script in script()) {
        let mut plain = Play::new(Call::new(policy.clone(), seed), None, epoch);
        let first = plain.call.begin(epoch).expect("fresh");
        assert!(matches!(first.action, Action::Attempt { number: 1, target: 0, .. }));
        plain.go_on(first.clone(), &script, |_, _| ());
        let mut late = Play::new(Call::started(policy, seed, epoch), None, epoch);
        late.go_on(first, &script, |_, _| ());
        prop_assert_eq!(plain.log.clone(), late.log.clone());
        prop_assert_eq!(plain.lines(), late.lines());
    }

    /// The same inputs give the same decisions, and a different seed only other waits.
    #[test]
    fn nothing_but_the_inputs_decides(policy in policy(), seed: u64, script in script()) {
        let play = || {
            let mut play = Play::new(Call::new(policy.clone(), seed), None, Span::ZERO);
            play.run(&script, |_, _| ());
            play
        };
        prop_assert_eq!(play().log, play().log);
    }

    #[test]
    fn what_a_policy_writes_it_reads(policy in guarded_policy()) {
        let again = Policy::from_json(&policy.to_json()).expect("it was written by a policy");
        prop_assert_eq!(&again, &policy);
        prop_assert_eq!(again.to_json(), policy.to_json());
    }

    /// Times at the end of time neither panic nor wrap.
    #[test]
    fn the_end_of_time_is_no_different(policy in policy(), seed: u64, script in script(), late in span(100_000)) {
        let mut call = Call::new(policy, seed);
        let mut now = Span::MAX.minus(late);
        let mut step = call.begin(now).expect("fresh");
        for event in &script {
            now = now.plus(event.gap);
            step = match step.action {
                Action::Attempt { number, .. } => {
                    let outcome = Outcome { delivering: Span::MAX, ..event.outcome.clone() };
                    call.on_outcome(now, number, outcome).expect("in flight")
                }
                Action::Retry { after, .. } | Action::Fallback { after, .. } => {
                    now = now.plus(after);
                    match call.begin(now) {
                        Ok(step) => step,
                        Err(_) => break,
                    }
                }
                _ => break,
            };
        }
    }
}
