//! What a call shows of itself between its steps: state, counts, whether an attempt is the last, receipts and lines.
//! The vectors compare actions; these are what drivers hand on to users.

use reprieve::guard::{
    self, Answer, Asks, Grant, Guards, Permit, Purpose, Refusal, RefusedBy, Run, RunConfig, Settle, Usage, Verdict,
};
use reprieve::trace::Masks;
use reprieve::{
    Action, Call, Category, Evidence, Failure, Kind, KindSet, Misuse, Outcome, Policy, Restore, RetryReason, Span,
    Step, Stop, StopReason,
};
use serde_json::Value;

const NOW: Span = Span::from_secs(1);

fn policy(json: &str) -> Policy {
    Policy::from_json(json).unwrap()
}

fn failed(kind: Kind) -> Outcome {
    Outcome::failed(Failure::of(kind))
}

/// Fails the attempt in flight, waits and begins the next.
fn again(call: &mut Call) {
    let step = call.on_outcome(NOW, call.attempts(), failed(Kind::Timeout)).unwrap();
    assert!(matches!(step.action, Action::Retry { .. } | Action::Fallback { .. }), "{:?}", step.action);
    let step = call.begin(Span::from_secs(60 * u64::from(call.attempts()))).unwrap();
    assert!(matches!(step.action, Action::Attempt { .. }), "{:?}", step.action);
}

#[test]
fn it_names_its_state() {
    let mut call = Call::new(Policy::default(), 7).guarded();
    assert_eq!(call.state(), "ready");
    let _ask = call.begin(NOW).unwrap();
    assert_eq!(call.state(), "asking");
    let _attempt = call.on_answer(NOW, Answer::Granted(Grant::default())).unwrap();
    assert_eq!(call.state(), "in_flight");
    let _ask = call.on_outcome(NOW, 1, failed(Kind::Timeout)).unwrap();
    assert_eq!(call.state(), "asking");
    let _wait = call.on_answer(NOW, Answer::Granted(Grant::default())).unwrap();
    assert_eq!(call.state(), "waiting");
    let _stop = call.cancel(NOW);
    assert_eq!(call.state(), "ended");
}

#[test]
fn misuse_says_what_was_called_and_when() {
    let mut call = Call::started(Policy::default(), 7, NOW);
    let misuse: Misuse = call.begin(NOW).unwrap_err();
    assert_eq!(misuse.to_string(), "begin is not allowed while the call is in_flight");
}

#[test]
fn an_attempt_is_the_last_when_none_can_follow() {
    let last = |json: &str, attempts: &[bool]| {
        let mut call = Call::started(policy(json), 7, Span::ZERO);
        for (i, expected) in attempts.iter().enumerate() {
            assert_eq!(call.is_last(), *expected, "attempt {} of {json}", i + 1);
            if call.attempts() == call.attempts_on_target() {
                assert_eq!(call.policy().ends_with(call.attempts()), *expected, "said by the policy alone: {json}");
            }
            if i + 1 < attempts.len() {
                again(&mut call);
            }
        }
    };
    last(r#"{"max_attempts": 1}"#, &[true]);
    last(r#"{"max_attempts": 3}"#, &[false, false, true]);
    last(r#"{"max_attempts": 3, "max_attempts_total": 2}"#, &[false, true]);
    last(r#"{"max_attempts": 1, "targets": [{"id": "a"}, {"id": "b", "max_attempts": 2}]}"#, &[false, false, true]);
    last(r#"{"max_attempts": 1, "targets": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}"#, &[false, false, true]);
    last(
        r#"{"max_attempts": 2, "max_attempts_total": 3, "targets": [{"id": "a"}, {"id": "b"}]}"#,
        &[false, false, true],
    );
    last(r#"{"max_attempts_total": 1, "targets": [{"id": "a"}, {"id": "b"}]}"#, &[true]);
}

#[test]
fn attempts_are_counted_over_the_call_and_on_the_target() {
    let mut call =
        Call::started(policy(r#"{"max_attempts": 2, "targets": [{"id": "a"}, {"id": "b"}]}"#), 7, Span::ZERO);
    let mut seen = vec![(call.attempts(), call.attempts_on_target())];
    for _ in 0..3 {
        again(&mut call);
        seen.push((call.attempts(), call.attempts_on_target()));
    }
    assert_eq!(seen, [(1, 1), (2, 2), (3, 1), (4, 2)]);
}

/// A receipt is shown and written once it is closed, and written once.
#[test]
fn a_receipt_waits_for_its_decision() {
    let mut call = Call::new(Policy::default(), 7).guarded();
    let _ask = call.begin(NOW).unwrap();
    let _attempt = call.on_answer(NOW, Answer::Granted(Grant::default())).unwrap();
    let _ask = call.on_outcome(NOW, 1, failed(Kind::Timeout)).unwrap();
    assert!(call.receipts().is_empty() && call.take_lines().is_empty(), "the guards have not answered");
    let _wait = call.on_answer(NOW, Answer::Granted(Grant::default())).unwrap();
    assert_eq!(call.receipts().len(), 1);

    let attempts = |call: &mut Call| -> Vec<Value> {
        let lines = call.take_lines();
        lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["attempt"].clone()).collect()
    };
    assert_eq!(attempts(&mut call), [1]);
    assert!(attempts(&mut call).is_empty());
    let later = NOW.plus(Span::from_secs(30));
    let _ask = call.begin(later).unwrap();
    let _attempt = call.on_answer(later, Answer::Granted(Grant::default())).unwrap();
    let _ask = call.on_outcome(later, 2, failed(Kind::Timeout)).unwrap();
    let _wait = call.on_answer(later, Answer::Granted(Grant::default())).unwrap();
    assert_eq!(attempts(&mut call), [2]);
    let _stop = call.cancel(later);
    assert_eq!(attempts(&mut call), [Value::Null], "the line that ends the call");
    assert!(attempts(&mut call).is_empty());
}

/// A stream's probe settles at its first item, and at no other.
#[test]
fn a_probe_settles_at_its_first_item() {
    let permit = Permit { generation: 1, probe: true, at: NOW };
    let mut call = Call::new(Policy::default(), 7).guarded();
    assert!(call.first_item(Span::ZERO, 1).settles.is_empty(), "nothing is in flight");
    let _ask = call.begin(NOW).unwrap();
    let _attempt = call.on_answer(NOW, Answer::Granted(Grant { breaker: Some(permit), ..Grant::default() })).unwrap();
    let settled = call.first_item(NOW, 1).settles;
    assert_eq!(settled, [Settle::Breaker { target: 0, permit, verdict: Verdict::Success }]);
    assert!(call.first_item(NOW, 1).settles.is_empty());
    assert_eq!(call.time_left(), Span::from_secs(600), "the deadline starts at the first `begin`");
}

/// A permit, a cost and a run's count that were granted to an attempt that will not start.
const TOO_LATE: Grant = Grant {
    breaker: Some(Permit { generation: 1, probe: true, at: NOW }),
    bench: Some(Permit { generation: 2, probe: true, at: NOW }),
    retry_cost: 5,
    budget: None,
    run: true,
};

fn given_back() -> [Settle; 4] {
    let (breaker, bench) = (TOO_LATE.breaker.unwrap(), TOO_LATE.bench.unwrap());
    [
        Settle::Breaker { target: 0, permit: breaker, verdict: Verdict::Released },
        Settle::Bench { target: 0, permit: bench, verdict: Verdict::Released },
        Settle::Return { target: 0, cost: 5 },
        Settle::NotStarted,
    ]
}

#[test]
fn what_is_granted_too_late_is_given_back() {
    let ask = || {
        let mut call = Call::new(Policy::default(), 7).guarded();
        let _ask = call.begin(NOW).unwrap();
        call
    };
    let mut cancelled = ask();
    let _stop = cancelled.cancel(NOW);
    let step = cancelled.on_answer(NOW, Answer::Granted(TOO_LATE)).unwrap();
    assert!(matches!(step.action, Action::Stop(why) if why.reason == StopReason::Cancelled));
    assert_eq!(step.settles, given_back());
    assert!(cancelled.on_answer(NOW, Answer::Granted(TOO_LATE)).is_err(), "it is given back once");

    let step = ask().on_answer(NOW.plus(Span::from_secs(600)), Answer::Granted(TOO_LATE)).unwrap();
    assert!(matches!(step.action, Action::Stop(why) if why.reason == StopReason::DeadlineExceeded));
    assert_eq!(step.settles, given_back());

    let mut nothing = ask();
    let _stop = nothing.cancel(NOW);
    assert!(nothing.on_answer(NOW, Answer::Granted(Grant::default())).unwrap().settles.is_empty());
}

/// A call that fails keeps its receipts; one that succeeds at once keeps none unless it is recorded, and says what it
/// used all the same.
#[test]
fn a_first_try_success_needs_no_receipt() {
    let usage = || Some(Usage { input_tokens: Some(3), ..Usage::default() });
    let mut quick = Call::started(Policy::default(), 7, NOW);
    let _done = quick.on_outcome(NOW, 1, Outcome { usage: usage(), ..Outcome::success() }).unwrap();
    assert!(quick.receipts().is_empty());
    let lines = quick.take_lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(serde_json::from_str::<Value>(&lines[0]).unwrap()["input_tokens"], 3);

    let mut slow = Call::started(Policy::default(), 7, Span::ZERO);
    again(&mut slow);
    let _done = slow.on_outcome(Span::from_secs(61), 2, Outcome::success()).unwrap();
    assert_eq!(slow.receipts().len(), 2);
}

#[test]
fn a_refusal_s_receipt_survives_a_snapshot() {
    let mut call = Call::new(policy(r#"{"targets": [{"id": "a"}, {"id": "b"}]}"#), 7).guarded();
    let _ask = call.begin(NOW).unwrap();
    let refusal = Refusal { by: RefusedBy::Shed, resume_in: None, waitable: false };
    let _ask = call.on_answer(NOW, Answer::Refused(refusal)).unwrap();
    let _stop = call.on_answer(NOW, Answer::Refused(Refusal { by: RefusedBy::CircuitOpen, ..refusal })).unwrap();
    let saved = call.snapshot(NOW, 0);
    let (restored, _stop) = Call::restore(&saved, NOW, 0, Restore::default()).unwrap();
    assert_eq!(restored.receipts(), call.receipts());
    let by: Vec<_> = restored.receipts().iter().map(|receipt| receipt.refused_by).collect();
    assert_eq!(by, [Some(RefusedBy::Shed), Some(RefusedBy::CircuitOpen)]);
}

#[test]
fn evidence_is_classified_with_the_rules_of_the_policy() {
    let policy = policy(r#"{"rules": [{"when": {"status": 418}, "kind": "model_not_ready"}]}"#);
    let teapot = Evidence { status: Some(418), ..Evidence::default() };
    let failure = Outcome::from_evidence(&teapot, &policy).failure.unwrap();
    assert_eq!(failure.kind, Kind::ModelNotReady);
}

#[test]
fn a_reason_has_a_name_and_words_of_its_own() {
    let reasons = ["not_retryable", "attempts_exhausted", "deadline_exceeded", "cancelled", "unsafe_to_repeat"];
    let reasons: Vec<_> = reasons.iter().map(|name| StopReason::from_name(name).unwrap()).collect();
    assert_eq!(reasons[1].to_string(), "attempts_exhausted");
    assert_eq!(reasons[2].says(), "the time left does not allow another attempt");
}

/// What a driver has taken, what an unrecorded success used and what is not masked go on with the call.
#[test]
fn a_snapshot_keeps_what_was_taken_used_and_unmasked() {
    let masks = Masks::without(["phones"]).unwrap();
    let mut call = Call::new(Policy::default(), 7).with_masks(masks);
    let _ = call.begin(Span::ZERO).unwrap();
    let failed = Failure { message: Some("call 13812345678".into()), ..Failure::of(Kind::Timeout) };
    let _ = call.on_outcome(Span::ZERO, 1, Outcome::failed(failed)).unwrap();
    let taken = call.take_lines();
    assert!(taken[0].contains("13812345678"), "{taken:?}");

    let snapshot = call.snapshot(Span::ZERO, 0);
    let (mut restored, _) = Call::restore(&snapshot, Span::ZERO, 0, Restore::default()).unwrap();
    assert_eq!(restored.take_lines(), Vec::<String>::new(), "what was taken does not come twice");
    assert_eq!(restored.lines(), taken, "and nothing is masked that was not before");

    let mut done = Call::new(Policy::default(), 7);
    let _ = done.begin(Span::ZERO).unwrap();
    let usage = Usage { input_tokens: Some(3), ..Usage::default() };
    let _ = done.on_outcome(Span::ZERO, 1, Outcome { usage: Some(usage), ..Outcome::success() }).unwrap();
    let (restored, step) = Call::restore(&done.snapshot(Span::ZERO, 0), Span::ZERO, 0, Restore::default()).unwrap();
    assert!(matches!(step.action, Action::Done));
    assert!(restored.lines()[0].contains("\"input_tokens\":3"), "{:?}", restored.lines());
}

/// An outer bound belongs to where the call goes on.
#[test]
fn a_restored_call_is_bounded_where_it_goes_on() {
    let mut call = Call::new(Policy::default(), 7);
    let _ = call.begin(Span::ZERO).unwrap();
    let _ = call.on_outcome(Span::ZERO, 1, Outcome::failed(Failure::of(Kind::Timeout))).unwrap();
    let snapshot = call.snapshot(Span::ZERO, 0);
    let options = Restore { ends_by: Some(Span::from_secs(103)), ..Restore::default() };
    let (mut restored, _) = Call::restore(&snapshot, Span::from_secs(100), 0, options).unwrap();
    let step = restored.begin(Span::from_secs(102)).unwrap();
    assert!(matches!(step.action, Action::Attempt { timeout, .. } if timeout == Span::from_secs(1)), "{step:?}");
}

fn hedging() -> Policy {
    Policy::from_json(r#"{"hedge": {"after": "300ms"}, "total_timeout": "1s", "retry_budget": {"capacity": 100}}"#)
        .unwrap()
}

/// An attempt in flight, and the question whether another may join it.
fn asking_to_hedge() -> Call {
    let mut call = Call::new(hedging(), 7).guarded();
    let _ask = call.begin(Span::ZERO).unwrap();
    let _attempt = call.on_answer(Span::ZERO, Answer::Granted(Grant::default())).unwrap();
    let asked = call.hedge(Span::from_millis(300)).action;
    assert!(matches!(&asked, Action::Ask(asks) if asks.purpose == Purpose::Hedge), "{asked:?}");
    call
}

#[test]
fn while_a_hedge_is_asked_for_nothing_else_is_decided() {
    let now = Span::from_millis(300);
    let mut call = asking_to_hedge();
    assert_eq!(call.state(), "asking");
    assert!(call.begin(now).is_err());
    assert!(call.on_outcome(now, 1, Outcome::success()).is_err(), "its answer comes first");
    assert!(matches!(call.hedge(now).action, Action::Ignored));
    let joined = call.on_answer(now, Answer::Granted(Grant::default())).unwrap().action;
    assert!(matches!(joined, Action::Attempt { number: 2, .. }), "{joined:?}");
    assert!(call.on_answer(now, Answer::Granted(Grant::default())).is_err(), "it was answered");
}

/// What was granted too late is given back, and the attempt in flight goes on.
#[test]
fn a_hedge_that_is_granted_too_late_is_given_back() {
    let now = Span::from_millis(300);
    let mut cancelled = asking_to_hedge();
    assert!(matches!(cancelled.cancel(now).action, Action::Pending));
    let mut answered = asking_to_hedge();
    assert!(matches!(answered.first_item(now, 1).action, Action::Pending));
    for (mut call, at) in [(cancelled, now), (answered, now), (asking_to_hedge(), Span::from_secs(1))] {
        let grant = Grant { retry_cost: 14, run: true, ..Grant::default() };
        let step = call.on_answer(at, Answer::Granted(grant)).unwrap();
        assert!(matches!(step.action, Action::Pending), "{step:?}");
        assert_eq!(step.settles, [Settle::Return { target: 0, cost: 14 }, Settle::NotStarted]);
        assert!(matches!(call.on_outcome(at, 1, Outcome::success()).unwrap().action, Action::Done));
    }
}

/// All or nothing: what the run refuses, the retry budget is not charged for.
#[test]
fn a_hedge_that_the_run_refuses_costs_nothing() {
    let policy = hedging();
    let asks = Asks { policy: policy.clone(), target: 0, purpose: Purpose::Hedge };
    let mut guards = Guards::new();
    for (most, left) in [(0, 100), (1, 86)] {
        let mut run = Run::new(RunConfig { attempts: Some(most), ..RunConfig::default() });
        let answer = guard::answer(Span::ZERO, Some(&mut guards), Some(&mut run), &asks);
        assert_eq!(matches!(answer, Answer::Granted(grant) if grant.run && grant.retry_cost == 14), most == 1);
        assert_eq!(guards.budget(&policy, 0, Span::ZERO), Some(left));
    }
}

fn is_repair(step: &Step) -> bool {
    matches!(step.action, Action::Retry { after: Span::ZERO, reason: RetryReason::Repair, .. })
}

/// While a kind can be repaired another attempt may follow; in all there may still be no more.
#[test]
fn no_attempt_is_the_last_before_its_repair() {
    let repairs = KindSet::of(&[Kind::AuthFailed]);
    let mut call = Call::new(policy(r#"{"max_attempts": 1}"#), 7).repairing(repairs);
    let _ = call.begin(NOW).unwrap();
    assert!(!call.is_last());
    assert!(is_repair(&call.on_outcome(NOW, 1, failed(Kind::AuthFailed)).unwrap()));
    let _ = call.begin(NOW).unwrap();
    assert!(call.is_last());
    assert_eq!((call.attempts(), call.attempts_on_target()), (2, 1));

    let mut call = Call::new(policy(r#"{"max_attempts_total": 1}"#), 7).repairing(repairs);
    let _ = call.begin(NOW).unwrap();
    assert!(call.is_last());
}

#[test]
fn decisions_to_stop_are_not_repaired() {
    for kind in Kind::all().filter(|kind| kind.category() == Category::Control) {
        let mut call = Call::new(Policy::default(), 7).repairing(Kind::all().collect());
        let _ = call.begin(NOW).unwrap();
        let step = call.on_outcome(NOW, 1, failed(kind)).unwrap();
        assert!(matches!(step.action, Action::Stop(_)), "{kind}: {:?}", step.action);
    }
}

/// A snapshot taken while the guards are asked for the repaired attempt: the repair is still the next thing to do.
#[test]
fn a_repair_that_has_not_begun_is_not_bought_twice() {
    let repairs = KindSet::of(&[Kind::AuthFailed]);
    let mut call = Call::new(Policy::default(), 7).guarded().repairing(repairs);
    let _ = call.begin(NOW).unwrap();
    let _ = call.on_answer(NOW, Answer::Granted(Grant::default())).unwrap();
    let _ = call.on_outcome(NOW, 1, failed(Kind::AuthFailed)).unwrap();
    let _ = call.on_answer(NOW, Answer::Granted(Grant::default())).unwrap();
    let _ = call.begin(NOW).unwrap();
    assert_eq!(call.state(), "asking");
    let options = Restore { repairs, ..Restore::default() };
    let (mut restored, step) = Call::restore(&call.snapshot(NOW, 0), NOW, 0, options).unwrap();
    assert!(is_repair(&step), "{step:?}");
    let _ = restored.begin(NOW).unwrap();
    let step = restored.on_outcome(NOW, 2, failed(Kind::AuthFailed)).unwrap();
    assert!(matches!(step.action, Action::Stop(Stop { reason: StopReason::NotRetryable, .. })), "{step:?}");
}
