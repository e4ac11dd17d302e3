//! What the engine costs: one decision, one whole call, and what stands beside them.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_main};
use reprieve::failure::{Body, classify};
use reprieve::guard::{Breaker, Verdict};
use reprieve::{Action, Call, Evidence, Failure, Kind, Outcome, Policy, Restore, Span};

/// A policy under which the first failure is always tried again.
fn patient() -> Policy {
    Policy::from_json(r#"{"max_attempts": 5, "total_timeout": "60s"}"#).expect("valid")
}

fn in_flight(policy: &Policy) -> Call {
    Call::started(policy.clone(), 7, Span::ZERO)
}

fn throttled() -> Outcome {
    let failure = Failure { retry_after: Some(Span::from_millis(900)), ..Failure::of(Kind::RateLimit) };
    Outcome::failed(failure)
}

/// Outcome in, action out: what a driver pays for a failure.
fn decisions(c: &mut Criterion) {
    let policy = patient();
    let mut group = c.benchmark_group("decision");
    group.bench_function("failing_step", |b| {
        b.iter_batched_ref(
            || (in_flight(&policy), Some(throttled())),
            |(call, outcome)| call.on_outcome(Span::from_millis(3), 1, outcome.take().expect("once")),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("failing_step_second", |b| {
        b.iter_batched_ref(
            || {
                let mut call = in_flight(&policy);
                let _wait = call.on_outcome(Span::from_millis(3), 1, throttled());
                let _attempt = call.begin(Span::from_secs(5));
                (call, Some(throttled()))
            },
            |(call, outcome)| call.on_outcome(Span::from_secs(6), 2, outcome.take().expect("once")),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("begin_after_wait", |b| {
        b.iter_batched_ref(
            || {
                let mut call = in_flight(&policy);
                let _wait = call.on_outcome(Span::from_millis(3), 1, throttled());
                call
            },
            |call| call.begin(Span::from_secs(5)),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

fn calls(c: &mut Criterion) {
    let policy = patient();
    let mut group = c.benchmark_group("call");
    group.bench_function("succeeds", |b| {
        b.iter(|| {
            let mut call = Call::new(policy.clone(), 7);
            let _attempt = call.begin(Span::ZERO);
            let done = call.on_outcome(Span::from_millis(3), 1, Outcome::success()).expect("in flight");
            assert!(matches!(done.action, Action::Done));
        });
    });
    group.bench_function("started_then_fails", |b| {
        b.iter(|| {
            let mut call = in_flight(black_box(&policy));
            call.on_outcome(Span::from_millis(3), 1, Outcome::failed(Failure::of(Kind::Timeout)))
        });
    });
    group.bench_function("snapshot", |b| {
        let mut call = in_flight(&policy);
        let _wait = call.on_outcome(Span::from_millis(3), 1, throttled());
        b.iter(|| call.snapshot(Span::from_millis(5), 1_700_000_000_000));
    });
    group.bench_function("restore", |b| {
        let mut call = in_flight(&policy);
        let _wait = call.on_outcome(Span::from_millis(3), 1, throttled());
        let saved = call.snapshot(Span::from_millis(5), 1_700_000_000_000);
        b.iter(|| Call::restore(&saved, Span::ZERO, 1_700_000_000_100, Restore::default()).expect("whole"));
    });
    group.finish();
}

/// What stands beside the machine: failures understood, policies read, a guard asked.
fn around(c: &mut Criterion) {
    let evidence = Evidence {
        status: Some(429),
        headers: vec![
            ("content-type".into(), "application/json".into()),
            ("retry-after".into(), "2".into()),
            ("x-ratelimit-remaining-requests".into(), "0".into()),
            ("x-ratelimit-reset-requests".into(), "1s".into()),
        ],
        body: Some(Body::Text(
            r#"{"error": {"message": "Rate limit reached for gpt-4o in organization org-1 on requests per min (RPM):
            Limit 500, Used 500, Requested 1. Please try again in 1.2s.", "type": "requests", "param": null,
            "code": "rate_limit_exceeded"}}"#
                .replace('\n', " "),
        )),
        ..Evidence::default()
    };
    assert_eq!(classify(&evidence, &[]).kind, Kind::RateLimit);
    c.bench_function("classify_openai_429", |b| b.iter(|| classify(black_box(&evidence), &[])));

    let llm = Policy::preset("llm").expect("a preset");
    let text = llm.to_json();
    c.bench_function("policy_from_json", |b| b.iter(|| Policy::from_json(black_box(&text)).expect("valid")));

    let config = llm.breaker.expect("the preset has a breaker");
    let mut breaker = Breaker::default();
    c.bench_function("breaker_admit_and_settle", |b| {
        b.iter(|| {
            let permit = breaker.admit(black_box(Span::from_secs(1)), black_box(&config)).expect("closed");
            breaker.settle(black_box(Span::from_secs(2)), black_box(&config), permit, Verdict::Success);
        });
    });
}

// Expanded by hand, because what `criterion_group!` makes has no docs.
mod benches {
    use super::{around, calls, decisions};
    criterion::criterion_group!(all, decisions, calls, around);
}
criterion_main!(benches::all);
