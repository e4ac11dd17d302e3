//! `answer` and `settle` over a whole guard set: order, all or nothing, keys, what reaches which machine.

use super::{
    Answer, Asks, Breaker, BreakerState, Grant, Guards, Purpose, Refusal, RefusedBy, RetryBudget, Run, RunConfig,
    Settle, Usage, Verdict, answer, settle,
};
use crate::failure::Kind;
use crate::policy::testing::{policy, target};
use crate::policy::{BreakerConfig, CooldownConfig, Fields, Millionths, RetryBudgetConfig, ShedConfig, Target, Trip};
use crate::{Policy, Span};

const PRIMARY: usize = 0;
const BACKUP: usize = 1;

/// Two targets of one account, at different upstreams, and every guard configured.
fn guarded(change: impl FnOnce(&mut Fields)) -> Policy {
    policy(|fields| {
        let at = |id: &str, upstream: &str| Target {
            account: Some("acme".to_owned()),
            upstream: Some(upstream.to_owned()),
            ..target(id)
        };
        fields.targets = vec![at("primary", "openai"), at("backup", "azure")];
        fields.breaker = Some(BreakerConfig {
            trip: Trip::Consecutive(2),
            open_for: secs(30),
            open_for_max: secs(300),
            probe_lease: secs(60),
        });
        fields.retry_budget =
            Some(RetryBudgetConfig::Tokens { capacity: 20, retry_cost: 14, throttle_cost: 5, refund: 1 });
        fields.cooldown = Some(CooldownConfig { max: secs(300), bench: secs(300) });
        fields.shed = Some(ShedConfig { queue_depth: Some(100), cost_ratio: None, below_priority: 6 });
        change(fields);
    })
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

fn secs(s: u64) -> Span {
    Span::from_secs(s)
}

fn ask(policy: &Policy, target: usize, purpose: Purpose) -> Asks {
    Asks { policy: policy.clone(), target, purpose }
}

fn admit(guards: &mut Guards, policy: &Policy, target: usize, at: u64) -> Result<Grant, Refusal> {
    result(answer(secs(at), Some(guards), None, &ask(policy, target, Purpose::Admit { first: true })))
}

fn result(answer: Answer) -> Result<Grant, Refusal> {
    match answer {
        Answer::Granted(grant) => Ok(grant),
        Answer::Refused(refusal) => Err(refusal),
    }
}

fn fail(guards: &mut Guards, policy: &Policy, target: usize, at: u64, kind: Kind, retry_after: Option<Span>) {
    settle(secs(at), Some(guards), None, policy, &[Settle::Failed { target, kind, retry_after }]);
}

fn verdict(guards: &mut Guards, policy: &Policy, target: usize, at: u64, grant: Grant, verdict: Verdict) {
    let permit = grant.breaker.expect("a breaker is configured");
    settle(secs(at), Some(guards), None, policy, &[Settle::Breaker { target, permit, verdict }]);
}

/// Opens the breaker of a target's upstream.
fn open(guards: &mut Guards, policy: &Policy, target: usize, at: u64) {
    for _ in 0..2 {
        let grant = admit(guards, policy, target, at).expect("closed");
        verdict(guards, policy, target, at, grant, Verdict::Failed);
    }
}

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
fn a_breaker_belongs_to_the_upstream_and_tells_its_transitions() {
    let policy = guarded(|_| ());
    let mut guards = Guards::new();
    open(&mut guards, &policy, PRIMARY, 0);
    assert_eq!(guards.breaker_state(&policy, PRIMARY, secs(1)), Some("open"));
    assert_eq!(guards.breaker_state(&policy, BACKUP, secs(1)), Some("closed"));
    assert_eq!(guards.resume_in(&policy, PRIMARY, secs(1)), Some(secs(29)));
    assert_eq!(guards.resume_in(&policy, BACKUP, secs(1)), None);
    assert_eq!(json(&guards.describe(secs(1)))["breakers"]["openai"]["half_open_in_ms"], 29_000);
    assert_eq!(guards.breaker_state(&policy, PRIMARY, secs(30)), Some("half_open"));

    let probe = admit(&mut guards, &policy, PRIMARY, 31).expect("a probe");
    verdict(&mut guards, &policy, PRIMARY, 32, probe, Verdict::Success);
    let seen: Vec<_> = guards.take_transitions().into_iter().map(|t| (t.key, t.from, t.to, t.at)).collect();
    let key = || "openai".to_owned();
    assert_eq!(
        seen,
        [
            (key(), BreakerState::Closed, BreakerState::Open, secs(0)),
            (key(), BreakerState::Open, BreakerState::HalfOpen, secs(31)),
            (key(), BreakerState::HalfOpen, BreakerState::Closed, secs(32)),
        ]
    );
    assert_eq!(guards.take_transitions(), []);
}

#[test]
fn a_ratio_breaker_remembers_successes_and_never_opens_on_them_alone() {
    let with = |ratio| {
        let trip = Trip::Ratio { window: secs(10), min_calls: 2, ratio: Millionths(ratio) };
        guarded(|fields| fields.breaker.as_mut().expect("configured").trip = trip)
    };
    let (half, any) = (with(500_000), with(0));
    let mut guards = Guards::new();
    for (policy, outcome, state) in [
        (&any, Verdict::Success, "closed"),
        (&any, Verdict::Success, "closed"),
        (&any, Verdict::Success, "closed"),
        (&half, Verdict::Failed, "closed"),
        (&half, Verdict::Failed, "closed"),
        (&half, Verdict::Failed, "open"),
    ] {
        let grant = admit(&mut guards, policy, PRIMARY, 0).expect("closed");
        verdict(&mut guards, policy, PRIMARY, 0, grant, outcome);
        assert_eq!(guards.breaker_state(policy, PRIMARY, Span::ZERO), Some(state));
    }
}

#[test]
fn policies_with_different_windows_do_not_empty_each_others() {
    let with = |window| {
        let trip = Trip::Ratio { window: secs(window), min_calls: 4, ratio: Millionths::ONE };
        guarded(|fields| fields.breaker.as_mut().expect("configured").trip = trip)
    };
    let (short, long) = (with(10), with(20));
    let mut guards = Guards::new();
    for policy in [&short, &long, &short, &long] {
        let grant = admit(&mut guards, policy, PRIMARY, 0).expect("closed");
        verdict(&mut guards, policy, PRIMARY, 0, grant, Verdict::Failed);
    }
    assert_eq!(guards.breaker_state(&short, PRIMARY, Span::ZERO), Some("open"));
}

#[test]
fn the_return_is_that_of_the_longest_hold() {
    let policy = guarded(|_| ());
    let mut guards = Guards::new();
    open(&mut guards, &policy, PRIMARY, 0);
    fail(&mut guards, &policy, PRIMARY, 0, Kind::RateLimit, Some(secs(10)));
    assert_eq!(guards.resume_in(&policy, PRIMARY, Span::ZERO), Some(secs(30)));
    fail(&mut guards, &policy, PRIMARY, 0, Kind::RateLimit, Some(secs(40)));
    assert_eq!(guards.resume_in(&policy, PRIMARY, Span::ZERO), Some(secs(40)));
}

#[test]
fn transitions_that_nobody_takes_are_bounded() {
    let policy = guarded(|_| ());
    let mut guards = Guards::new();
    open(&mut guards, &policy, PRIMARY, 0);
    for i in 1..=600 {
        let probe = admit(&mut guards, &policy, PRIMARY, i * 300).expect("a probe");
        verdict(&mut guards, &policy, PRIMARY, i * 300, probe, Verdict::Failed);
    }
    let kept = guards.take_transitions();
    assert_eq!((kept.len(), kept.last().map(|last| last.at)), (1_000, Some(secs(600 * 300))));
}

#[test]
fn a_bench_holds_every_target_of_its_account_until_its_probe_succeeds() {
    let policy = guarded(|_| ());
    let mut guards = Guards::new();
    fail(&mut guards, &policy, PRIMARY, 0, Kind::AuthFailed, None);
    let refused = admit(&mut guards, &policy, BACKUP, 1).expect_err("benched");
    assert_eq!((refused.by, refused.resume_in, refused.waitable), (RefusedBy::CoolingDown, Some(secs(299)), false));
    let permit = admit(&mut guards, &policy, BACKUP, 300).expect("one probe").bench.expect("of the bench");
    assert!(admit(&mut guards, &policy, PRIMARY, 300).is_err());
    let lifted = Settle::Bench { target: BACKUP, permit, verdict: Verdict::Success };
    settle(secs(301), Some(&mut guards), None, &policy, &[lifted]);
    assert_eq!(admit(&mut guards, &policy, PRIMARY, 301).map(|grant| grant.bench), Ok(None));
}

#[test]
fn a_bench_probe_is_leased_as_the_breaker_says_or_for_a_minute() {
    let quick = guarded(|fields| fields.breaker.as_mut().expect("configured").probe_lease = secs(5));
    let bare = guarded(|fields| fields.breaker = None);
    for (policy, lease) in [(quick, 5), (bare, 60)] {
        let mut guards = Guards::new();
        fail(&mut guards, &policy, PRIMARY, 0, Kind::Billing, Some(secs(1)));
        assert!(admit(&mut guards, &policy, PRIMARY, 1).is_ok());
        assert_eq!(admit(&mut guards, &policy, PRIMARY, 1).unwrap_err().resume_in, Some(secs(lease)));
        assert!(admit(&mut guards, &policy, PRIMARY, 1 + lease).is_ok());
    }
}

#[test]
fn a_retry_budget_belongs_to_the_target_and_is_charged_last() {
    let policy = guarded(|_| ());
    let (mut guards, mut run) = (Guards::new(), Run::new(RunConfig { attempts: Some(1), ..RunConfig::default() }));
    let repeat = ask(&policy, PRIMARY, Purpose::Repeat { kind: Kind::Timeout });
    let grant = result(answer(Span::ZERO, Some(&mut guards), Some(&mut run), &repeat)).expect("20 tokens");
    assert_eq!(grant, Grant { retry_cost: 14, budget: Some((20, 6)), ..Grant::default() });
    let refused = result(answer(Span::ZERO, Some(&mut guards), Some(&mut run), &repeat)).expect_err("6 tokens");
    assert_eq!(refused.by, RefusedBy::RetryBudget);
    assert_eq!(guards.budget(&policy, PRIMARY, Span::ZERO), Some(6));
    assert_eq!(guards.budget(&policy, BACKUP, Span::ZERO), Some(20));

    run.admit(Span::ZERO).expect("its one attempt");
    let throttle = ask(&policy, PRIMARY, Purpose::Repeat { kind: Kind::Overloaded });
    let refused =
        result(answer(Span::ZERO, Some(&mut guards), Some(&mut run), &throttle)).expect_err("the run is full");
    assert_eq!((refused.by, guards.budget(&policy, PRIMARY, Span::ZERO)), (RefusedBy::RunBudget, Some(6)));

    let back = [Settle::Return { target: PRIMARY, cost: 14 }, Settle::Refund { target: PRIMARY }];
    settle(Span::ZERO, Some(&mut guards), None, &policy, &back);
    assert_eq!(guards.budget(&policy, PRIMARY, Span::ZERO), Some(20));
}

#[test]
fn ratio_budgets_count_first_attempts_that_were_admitted() {
    let policy = guarded(|fields| {
        fields.retry_budget =
            Some(RetryBudgetConfig::Ratio { ratio: Millionths::ONE, min_per_second: 0, window: secs(10) });
    });
    let mut guards = Guards::new();
    admit(&mut guards, &policy, PRIMARY, 0).expect("open");
    let again = ask(&policy, PRIMARY, Purpose::Admit { first: false });
    assert!(result(answer(Span::ZERO, Some(&mut guards), None, &again)).is_ok());
    guards.report(Some(101), None);
    admit(&mut guards, &policy, PRIMARY, 0).expect_err("shed");
    assert_eq!(guards.budget(&policy, PRIMARY, Span::ZERO), Some(1));
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

#[test]
fn a_description_names_what_is_not_at_rest() {
    let policy = guarded(|_| ());
    let mut guards = Guards::new();
    admit(&mut guards, &policy, PRIMARY, 0).expect("closed");
    let empty = json(&guards.describe(Span::ZERO));
    for part in ["breakers", "cooling_accounts", "cooling_upstreams", "benched_accounts", "retry_budgets"] {
        assert_eq!(empty[part], serde_json::json!({}), "{part}");
    }
    guards.report(Some(3), Some(Millionths(900_000)));
    fail(&mut guards, &policy, PRIMARY, 0, Kind::RateLimit, Some(secs(2)));
    fail(&mut guards, &policy, PRIMARY, 0, Kind::Overloaded, Some(secs(3)));
    fail(&mut guards, &policy, PRIMARY, 0, Kind::QuotaExhausted, Some(secs(4)));
    let held = json(&guards.describe(secs(1)));
    assert_eq!(held["cooling_accounts"]["acme"]["left_ms"], 1_000);
    assert_eq!(held["cooling_upstreams"]["openai"]["left_ms"], 2_000);
    assert_eq!(held["benched_accounts"]["acme"]["left_ms"], 3_000);
    assert_eq!(held["load"], serde_json::json!({"queue_depth": 3, "cost_ratio": 900_000}));
}

/// What would be lost by forgetting decides who goes first from a full map.
#[test]
fn a_machine_is_idle_when_it_remembers_nothing() {
    let consecutive = BreakerConfig {
        trip: Trip::Consecutive(2),
        open_for: secs(30),
        open_for_max: secs(300),
        probe_lease: secs(60),
    };
    let ratio = BreakerConfig {
        trip: Trip::Ratio { window: secs(10), min_calls: 5, ratio: Millionths(500_000) },
        ..consecutive
    };
    let end = |breaker: &mut Breaker, config: &BreakerConfig, verdict: Verdict| {
        let permit = breaker.admit(secs(1), config).expect("closed");
        breaker.settle(secs(1), config, permit, verdict);
    };
    let mut breaker = Breaker::default();
    assert!(breaker.is_idle(secs(1)));
    end(&mut breaker, &consecutive, Verdict::Failed);
    assert!(!breaker.is_idle(secs(1)), "one failure in a row is remembered");
    end(&mut breaker, &consecutive, Verdict::Failed);
    assert!(!breaker.is_idle(secs(1_000)), "it is open until a probe closes it");

    let mut breaker = Breaker::default();
    end(&mut breaker, &ratio, Verdict::Success);
    assert!(!breaker.is_idle(secs(1)));
    assert!(breaker.is_idle(secs(20)), "the window has passed");

    let shared = RetryBudgetConfig::Ratio { ratio: Millionths::ONE, min_per_second: 0, window: secs(10) };
    let mut budget = RetryBudget::default();
    assert!(budget.is_idle(secs(1)));
    budget.request(secs(1), &shared);
    assert!(!budget.is_idle(secs(1)) && budget.is_idle(secs(20)));
}

/// What a call does that the set admits and that succeeds at once.
fn first_try(guards: &mut Guards, policy: &Policy, at: u64) {
    let grant = admit(guards, policy, PRIMARY, at).expect("admitted");
    verdict(guards, policy, PRIMARY, at, grant, Verdict::Success);
    settle(secs(at), Some(guards), None, policy, &[Settle::Refund { target: PRIMARY }]);
}

#[test]
fn a_first_try_success_leaves_a_calm_set_as_it_is() {
    let policy = guarded(|_| ());
    let mut guards = Guards::new();
    assert_eq!(guards.calm(secs(0), &policy), Some(0));
    let before = format!("{guards:?}");
    assert_eq!(admit(&mut guards, &policy, PRIMARY, 1), Ok(Grant::calm(&policy, 0, secs(1))));
    first_try(&mut guards, &policy, 1);
    assert_eq!(format!("{guards:?}"), before);

    // Nor one that has a past. The clock stands still, so that even the time of use is the same.
    open(&mut guards, &policy, PRIMARY, 1);
    first_try(&mut guards, &policy, 40);
    let before = format!("{guards:?}");
    assert_eq!(guards.calm(secs(40), &policy), Some(3));
    assert_eq!(admit(&mut guards, &policy, PRIMARY, 40), Ok(Grant::calm(&policy, 3, secs(40))));
    first_try(&mut guards, &policy, 40);
    assert_eq!(format!("{guards:?}"), before);
}

#[test]
fn a_set_is_not_calm_while_anything_refuses_or_a_success_would_count() {
    let policy = guarded(|_| ());
    let calm = |guards: &Guards, at: u64| guards.calm(secs(at), &policy).is_some();

    // A breaker that counts, is open, and is half-open.
    let mut guards = Guards::new();
    let grant = admit(&mut guards, &policy, PRIMARY, 0).expect("closed");
    verdict(&mut guards, &policy, PRIMARY, 0, grant, Verdict::Failed);
    assert!(!calm(&guards, 0));
    first_try(&mut guards, &policy, 0);
    assert!(calm(&guards, 0));
    open(&mut guards, &policy, PRIMARY, 0);
    assert!(!calm(&guards, 1) && !calm(&guards, 99));

    // Cooling, for as long as it lasts; a bench, until its probe.
    let mut guards = Guards::new();
    fail(&mut guards, &policy, PRIMARY, 0, Kind::RateLimit, Some(secs(10)));
    fail(&mut guards, &policy, PRIMARY, 0, Kind::Overloaded, Some(secs(20)));
    assert!(!calm(&guards, 9) && !calm(&guards, 19) && calm(&guards, 20));
    fail(&mut guards, &policy, PRIMARY, 20, Kind::Billing, Some(secs(5)));
    assert!(!calm(&guards, 24) && !calm(&guards, 99));

    // A retry budget that is not full.
    let mut guards = Guards::new();
    let repeat = Purpose::Repeat { kind: Kind::Timeout };
    result(answer(secs(0), Some(&mut guards), None, &ask(&policy, PRIMARY, repeat))).expect("full");
    assert!(!calm(&guards, 0));
    settle(secs(0), Some(&mut guards), None, &policy, &[Settle::Return { target: PRIMARY, cost: 14 }]);
    assert!(calm(&guards, 0));

    // Load that sheds.
    guards.report(Some(101), None);
    assert!(!calm(&guards, 0));

    // Ratio modes count successes.
    let ratio = Millionths(500_000);
    let trip = Trip::Ratio { window: secs(10), min_calls: 5, ratio };
    let counting = guarded(|fields| fields.breaker = fields.breaker.map(|config| BreakerConfig { trip, ..config }));
    let measured = guarded(|fields| {
        fields.retry_budget = Some(RetryBudgetConfig::Ratio { ratio, min_per_second: 10, window: secs(10) });
    });
    assert_eq!(Guards::new().calm(secs(0), &counting), None);
    assert_eq!(Guards::new().calm(secs(0), &measured), None);

    // What the policy does not ask for, or what concerns its other targets, is no matter.
    let mut guards = Guards::new();
    open(&mut guards, &policy, BACKUP, 0);
    assert!(calm(&guards, 0));
    open(&mut guards, &policy, PRIMARY, 0);
    assert_eq!(guards.calm(secs(0), &guarded(|fields| fields.breaker = None)), Some(0));
}
