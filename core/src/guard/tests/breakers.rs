//! Breakers of a set: whose they are, what trips them, what they tell.

use super::*;

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
