//! Damaged and hostile input: bytes that are no policy, snapshots with a byte changed, and snapshots that somebody
//! edited and signed again.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use reprieve::guard::{Answer, Grant, RunConfig};
use reprieve::{Action, Call, Evidence, Failure, Kind, Outcome, Policy, Restore, Span, Step};

use crate::play::Play;
use crate::random::{policy, script};
use crate::{WALL, config};

/// Text that is nearly JSON, made of what these documents are made of.
fn nearly_json() -> impl Strategy<Value = String> {
    let tokens = vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "null",
        "true",
        "0",
        "-1",
        "1e999",
        "18446744073709551615",
        "0.5",
        "\"1s\"",
        "\"max_attempts\"",
        "\"backoff\"",
        "\"kind\"",
        "\"timeout\"",
        "\"failure\"",
        "\"success\"",
        "{}",
        "\"version\"",
        "\"check\"",
        "\"policy\"",
        "\"targets\"",
        "\"id\"",
        "\"evidence\"",
        "\"headers\"",
        "\u{1F980}",
    ];
    prop_oneof![
        vec(any::<u8>(), 0..200).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        vec(select(tokens), 0..60).prop_map(|tokens| tokens.concat()),
    ]
}

/// The snapshots that a play leaves at its waits, and one in flight.
fn snapshots() -> impl Strategy<Value = String> {
    (policy(), any::<u64>(), script(), any::<Index>()).prop_map(|(policy, seed, script, which)| {
        let mut fresh = Call::new(policy.clone(), seed);
        let mut begun = Call::started(policy.clone(), seed, Span::from_secs(1));
        let mut all = vec![fresh.snapshot(Span::ZERO, WALL), begun.snapshot(Span::from_secs(2), WALL)];
        let mut play = Play::new(Call::new(policy, seed), None, Span::ZERO);
        play.run(&script, |play, _| all.push(play.call.clone().snapshot(play.now, WALL)));
        all.push(play.call.clone().snapshot(play.now, WALL));
        all.swap_remove(which.index(all.len()))
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_text_makes_a_reader_panic(text in nearly_json()) {
        let policy = Policy::default();
        let _any = (Policy::from_json(&text), Outcome::from_json(&text, &policy), RunConfig::from_json(&text));
        let _any = (Failure::from_json(&text), Evidence::from_json(&text), Span::parse(&text));
        let _any = Call::restore(&text, Span::ZERO, WALL, Restore::default());
    }

    /// One changed byte is noticed, or changes nothing.
    #[test]
    fn a_damaged_snapshot_is_never_resumed(saved in snapshots(), at: Index, byte: u8) {
        let mut bytes = saved.clone().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let Ok(damaged) = String::from_utf8(bytes) else { return Ok(()) };
        let restore = |text: &str| {
            Call::restore(text, Span::ZERO, WALL, Restore::default()).map(|(mut call, step)| {
                (call.snapshot(Span::ZERO, WALL), step.action.to_json(call.policy()))
            })
        };
        let whole = restore(&saved).expect("it was not damaged");
        if let Ok(resumed) = restore(&damaged) {
            prop_assert_eq!(resumed, whole, "byte {} became {:?}", at, char::from(byte));
        }
    }

    /// A snapshot that somebody edited and signed again is refused or resumed; nothing panics, then or later.
    #[test]
    fn a_forged_snapshot_never_panics(saved in snapshots(), edits in vec((any::<Index>(), number()), 1..4)) {
        let mut forged = saved;
        for (which, number) in edits {
            forged = edited(&forged, which, number);
        }
        for guarded in [false, true] {
            let options = Restore { guarded, ..Restore::default() };
            if let Ok((call, step)) = Call::restore(&signed(&forged), Span::from_secs(9), WALL + 10, options) {
                play_on(call, step);
            }
        }
    }
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), Just(2), Just(65_535), Just(u64::from(u32::MAX)), Just(u64::MAX), any::<u64>()]
}

/// With one of its whole numbers replaced.
fn edited(saved: &str, which: Index, number: u64) -> String {
    let digit = |i: usize| saved.as_bytes().get(i).is_some_and(u8::is_ascii_digit);
    let starts: Vec<_> = (1..saved.len()).filter(|i| digit(*i) && saved.as_bytes()[i - 1] == b':').collect();
    let start = starts[which.index(starts.len())];
    let end = (start..saved.len()).find(|i| !digit(*i)).expect("JSON ends in a brace");
    format!("{}{number}{}", &saved[..start], &saved[end..])
}

/// With the checksum that it would have been written with.
fn signed(saved: &str) -> String {
    let start = saved.find("\"check\":").expect("a snapshot has a checksum") + 8;
    let end = start + saved[start..].find(',').expect("and more after it");
    let unsigned = format!("{}0{}", &saved[..start], &saved[end..]);
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    let check = unsigned.bytes().fold(0xCBF2_9CE4_8422_2325, hash);
    format!("{}{check}{}", &saved[..start], &saved[end..])
}

/// Goes on for a while, with failures only, and asks for everything that a call shows.
fn play_on(mut call: Call, mut step: Step) {
    let mut now = Span::from_secs(10);
    for _ in 0..20 {
        let _shown = (call.is_last(), call.time_left(), call.ended(), call.clone().take_lines());
        let next = match step.action {
            Action::Attempt { number, .. } => call.on_outcome(now, number, Outcome::failed(Failure::of(Kind::Timeout))),
            Action::Ask(_) => call.on_answer(now, Answer::Granted(Grant::default())),
            Action::Retry { after, .. } | Action::Fallback { after, .. } => {
                now = now.plus(after);
                call.begin(now)
            }
            _ => break,
        };
        let Ok(next) = next else { break };
        step = next;
    }
    let _saved = (call.cancel(now).action, call.snapshot(now, WALL), call.take_lines());
}
