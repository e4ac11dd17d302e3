//! Everything the core does, once, as a program: `.ci/no-imports` builds it for wasm32 and checks that the module asks
//! its host for nothing. What is not called here is not in the module, and so not checked.

use std::hint::black_box;

use reprieve::failure::classify;
use reprieve::guard::{self, Guards, Run, RunConfig};
use reprieve::policy::Input;
use reprieve::stream::{finishes, item};
use reprieve::trace::mask::{Masks, mask};
use reprieve::trace::timeline;
use reprieve::wire::{self, Machine, Peers};
use reprieve::{Action, Call, Evidence, Kind, Outcome, Policy, Restore, Span, Step};

/// What the core answers to some bytes. They are hidden from the optimiser, so that nothing is worked out beforehand.
fn exercise(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(black_box(bytes));
    // One line for each part of the core; a new part adds its own here.
    let answers = [
        Span::parse(&text).map_or_else(|e| e.to_string(), |span| span.to_string()),
        Kind::from_name(&text).map_or_else(String::new, |kind| kind.to_string()),
        Masks::without([&text]).map_or_else(|e| e.to_string(), |_| String::new()),
        mask(&text, black_box(Masks::ALL)).into_owned(),
        Policy::from_json(&text).map_or_else(|e| e.to_string(), |policy| policy.to_json()),
        Policy::preset(&text).map_or_else(|e| e.to_string(), |policy| policy.to_json()),
        skill(&text),
        Evidence::from_json(&text).map_or_else(|e| e.to_string(), |e| classify(&e, &[]).to_json()),
        if finishes(&text) { item(&text).name().to_owned() } else { String::new() },
        call(&text).join("\n"),
        timeline(&text, call(&text)),
        machine(&text).unwrap_or_else(|e| e.to_json()),
        Call::restore(&text, Span::ZERO, 0, Restore::default())
            .map_or_else(|e| e.to_string(), |(c, _)| c.lines().join("")),
    ];

    black_box(answers).iter().map(String::len).sum()
}

fn skill(text: &str) -> String {
    let manifests = Input::parse(text).unwrap_or(Input::Null);
    Policy::for_skill(text, &manifests, None).map_or_else(|e| e.to_string(), |policy| policy.to_json())
}

/// A call as the bindings that speak JSON make it, with attempts beside each other.
fn machine(text: &str) -> Result<String, wire::Refused> {
    let policy = wire::policy(r#"{"hedge": {"after": 1}}"#, None)?;
    let mut call = Machine::new(&policy, "7", "{}", &Peers::default())?;
    call.begin(0.0, Peers::default())?;
    call.hedge(1e6, Peers::default())?;
    call.first_item(2e6, 2, Peers::default())?;
    call.on_outcome(3e6, 2, text, Peers::default())
}

/// A guarded call of two targets in a run, to its end, by way of a snapshot.
fn call(text: &str) -> Vec<String> {
    let policy = Policy::preset("llm").unwrap_or_default();
    let (mut guards, mut run) = (Guards::new(), Run::new(RunConfig::default()));
    let mut call = Call::new(policy, black_box(7)).guarded().recorded().heard();
    let mut now = Span::ZERO;
    for _ in 0..8 {
        let Ok(step) = call.begin(now) else { break };
        if !matches!(follow(&mut call, &mut guards, &mut run, now, step), Action::Attempt { .. }) {
            break;
        }
        let Ok(outcome) = Outcome::from_json(text, call.policy()) else { break };
        let Ok(step) = call.on_outcome(now, call.attempts(), outcome) else { break };
        match follow(&mut call, &mut guards, &mut run, now, step) {
            Action::Retry { after, .. } => now = now.plus(after),
            Action::Fallback { .. } => {}
            _ => break,
        }
        let snapshot = call.snapshot(now, 0);
        let options = Restore { guarded: true, ..Restore::default() };
        let Ok((restored, _)) = Call::restore(&snapshot, now, 0, options) else { break };
        call = restored;
    }
    let _ = call.cancel(now);
    let mut lines = call.take_lines();
    lines.extend(call.take_events());
    lines.push(guards.describe(now));
    lines.push(run.report());
    lines
}

fn follow(call: &mut Call, guards: &mut Guards, run: &mut Run, now: Span, mut step: Step) -> Action {
    loop {
        guard::settle(now, Some(guards), Some(run), call.policy(), &step.settles);
        let Action::Ask(asks) = &step.action else { return step.action };
        let answer = guard::answer(now, Some(guards), Some(run), asks);
        let Ok(next) = call.on_answer(now, answer) else { return step.action };
        step = next;
    }
}

fn main() {
    let inputs: [&[u8]; 8] = [
        b"1m30s",
        b"rate_limit",
        b"phones",
        b"\xff",
        br#"{"max_attempts": 5}"#,
        br#"{"status": 429, "headers": [["retry-after", "2"]]}"#,
        br#"{"failure": {"kind": "timeout"}}"#,
        br#"{"evidence": {"status": 529, "body": "{}"}}"#,
    ];
    let length: usize = inputs.into_iter().map(exercise).sum();
    black_box(length);
}
