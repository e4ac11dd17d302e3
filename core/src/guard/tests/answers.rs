//! What calls are answered: the order of the rules, all or nothing, with and without guards and a run.

use super::*;

#[test]
fn without_guards_and_run_all_is_granted() {
    let policy = guarded(|_| ());
    let granted = answer(Span::ZERO, None, None, &ask(&policy, PRIMARY, Purpose::Admit { first: true }));
    assert_eq!(granted, Answer::Granted(Grant::default()));
    let repeat = Purpose::Repeat { kind: Kind::Timeout };
    assert_eq!(answer(Span::ZERO, None, None, &ask(&policy, PRIMARY, repeat)), granted);
    let nobody = answer(Span::ZERO, Some(&mut Guards::new()), None, &ask(&policy, 9, repeat));
    assert_eq!(nobody, Answer::Granted(Grant::default()));
}

#[test]
fn a_policy_without_guards_is_not_held_by_what_others_left_in_the_set() {
    let (policy, plain) = (guarded(|_| ()), policy(|fields| fields.targets = guarded(|_| ()).targets.clone()));
    let mut guards = Guards::new();
    open(&mut guards, &policy, PRIMARY, 0);
    fail(&mut guards, &policy, PRIMARY, 0, Kind::Billing, None);
    assert_eq!(admit(&mut guards, &plain, PRIMARY, 1), Ok(Grant::default()));
    assert_eq!(guards.breaker_state(&plain, PRIMARY, secs(1)), None);
    assert_eq!(guards.resume_in(&plain, PRIMARY, secs(1)), None);
    fail(&mut guards, &plain, BACKUP, 0, Kind::Overloaded, Some(secs(9)));
    assert!(json(&guards.describe(secs(1)))["cooling_upstreams"].as_object().is_some_and(serde_json::Map::is_empty));
}

#[test]
fn refusals_come_in_the_order_of_the_rules() {
    let policy = guarded(|_| ());
    let (mut guards, mut run) = (Guards::new(), Run::new(RunConfig { attempts: Some(0), ..RunConfig::default() }));
    open(&mut guards, &policy, PRIMARY, 0);
    guards.report(Some(101), None);
    fail(&mut guards, &policy, PRIMARY, 0, Kind::RateLimit, Some(secs(10)));
    run.cancel("stop");
    let by = |guards: &mut Guards, run: &mut Run, at: u64| {
        let asks = ask(&policy, PRIMARY, Purpose::Admit { first: true });
        result(answer(secs(at), Some(guards), Some(run), &asks)).expect_err("refused").by
    };
    assert_eq!(by(&mut guards, &mut run, 1), RefusedBy::RunEnded);
    let mut run = Run::new(RunConfig { attempts: Some(0), ..RunConfig::default() });
    assert_eq!(by(&mut guards, &mut run, 1), RefusedBy::CoolingDown);
    assert_eq!(by(&mut guards, &mut run, 10), RefusedBy::CircuitOpen);
    assert_eq!(by(&mut guards, &mut run, 30), RefusedBy::Shed);
    guards.report(Some(100), None);
    assert_eq!(by(&mut guards, &mut run, 30), RefusedBy::RunBudget);
}

#[test]
fn a_refusal_takes_no_probe_and_charges_nothing() {
    let policy = guarded(|_| ());
    let mut guards = Guards::new();
    open(&mut guards, &policy, PRIMARY, 0);
    guards.take_transitions();
    fail(&mut guards, &policy, PRIMARY, 0, Kind::Billing, Some(secs(30)));
    let mut full = Run::new(RunConfig { attempts: Some(0), ..RunConfig::default() });
    let asks = ask(&policy, PRIMARY, Purpose::Admit { first: true });
    let refused = result(answer(secs(30), Some(&mut guards), Some(&mut full), &asks)).expect_err("no attempts");
    assert_eq!(refused.by, RefusedBy::RunBudget);
    assert_eq!(guards.take_transitions(), []);

    let mut run = Run::new(RunConfig { attempts: Some(2), ..RunConfig::default() });
    let grant = result(answer(secs(30), Some(&mut guards), Some(&mut run), &asks)).expect("both probes are free");
    assert!(grant.run && grant.breaker.is_some_and(|p| p.probe) && grant.bench.is_some_and(|p| p.probe));

    let refused = result(answer(secs(30), Some(&mut guards), Some(&mut run), &asks)).expect_err("probes are out");
    assert_eq!((refused.by, refused.resume_in), (RefusedBy::CoolingDown, Some(secs(60))));
    assert_eq!(json(&run.report())["attempts"]["used"], 1);
}

#[test]
fn a_run_is_settled_with_or_without_guards() {
    let policy = policy(|_| ());
    let mut run = Run::new(RunConfig { estimate_tokens: 100, ..RunConfig::default() });
    for _ in 0..3 {
        let asks = ask(&policy, PRIMARY, Purpose::Admit { first: true });
        assert!(result(answer(Span::ZERO, None, Some(&mut run), &asks)).expect("no limits").run);
    }
    let usage = Usage { input_tokens: Some(7), output_tokens: Some(5), ..Usage::default() };
    let settles = [Settle::Used { usage: Some(usage) }, Settle::NotStarted, Settle::Used { usage: None }];
    settle(Span::ZERO, None, Some(&mut run), &policy, &settles);
    let report = json(&run.report());
    assert_eq!((&report["tokens"]["used"], &report["tokens"]["reserved"]), (&112.into(), &0.into()));
    assert_eq!((&report["attempts"]["used"], &report["unknown_usage"]), (&2.into(), &1.into()));
}
