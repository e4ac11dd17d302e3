//! A set at rest: what a description leaves out, what may be forgotten, when nobody needs to ask.

use super::*;

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
