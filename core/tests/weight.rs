//! What a call weighs: bytes of state beside its receipts, and allocations on the happy path.

use allocation_counter::measure;
use reprieve::{Action, Call, Failure, Kind, Outcome, Policy, Span};

#[test]
fn a_call_is_small() {
    let size = size_of::<Call>();
    println!("a call is {size} bytes, an outcome {}, a step {}", size_of::<Outcome>(), size_of::<reprieve::Step>());
    assert!(size < 512, "a call is {size} bytes");
}

#[test]
fn a_call_that_succeeds_first_time_allocates_nothing() {
    let policy = Policy::default();
    let plain = measure(|| {
        let mut call = Call::new(policy.clone(), 7);
        let step = call.begin(Span::ZERO).unwrap();
        assert!(matches!(step.action, Action::Attempt { number: 1, .. }));
        let step = call.on_outcome(Span::from_millis(3), 1, Outcome::success()).unwrap();
        assert!(matches!(step.action, Action::Done));
    });
    assert_eq!(plain.count_total, 0, "{plain:?}");
    let started = measure(|| {
        let mut call = Call::started(policy.clone(), 7, Span::ZERO);
        assert!(matches!(call.on_outcome(Span::from_millis(3), 1, Outcome::success()).unwrap().action, Action::Done));
    });
    assert_eq!(started.count_total, 0, "{started:?}");
}

/// What a failure allocates is its receipt's place, and nothing more.
#[test]
fn a_failure_allocates_room_for_its_receipts_once() {
    let policy = Policy::default();
    let mut call = Call::started(policy.clone(), 7, Span::ZERO);
    let failed = measure(|| {
        let _wait = call.on_outcome(Span::from_millis(3), 1, Outcome::failed(Failure::of(Kind::Timeout))).unwrap();
    });
    println!("the first failure allocates {} times, {} bytes", failed.count_total, failed.bytes_total);
    assert_eq!(failed.count_total, 1, "{failed:?}");

    let _attempt = call.begin(Span::from_secs(2)).unwrap();
    let second = measure(|| {
        let _wait = call.on_outcome(Span::from_secs(3), 2, Outcome::failed(Failure::of(Kind::Timeout))).unwrap();
    });
    assert_eq!(second.count_total, 0, "{second:?}");
}
