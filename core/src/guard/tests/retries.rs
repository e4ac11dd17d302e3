//! Benches and retry budgets of a set: whose they are, what they count, what comes back.

use super::*;

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
