//! The example driver, run as a test so that what people copy keeps working.

#[path = "../examples/driver.rs"]
#[allow(dead_code, reason = "an example's `main` is nobody's here")]
mod driver;

use std::io::{self, BufRead, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;

/// A sink that the test can read.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What the three calls have written and shown.
fn play() -> (Vec<Value>, String) {
    let (sink, mut shown) = (Lines::default(), Vec::new());
    driver::demo(&driver::Driver::new(sink.clone()), &mut shown).unwrap();
    let written = sink.0.lock().unwrap().clone();
    let records = written.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    (records, String::from_utf8(shown).unwrap())
}

#[test]
fn the_example_plays_its_three_calls() {
    // Where the machine stands still at the wrong moment, the last call is cancelled before it waits: then once more.
    let waited = |(records, _): &(Vec<Value>, String)| records.len() == 9 && records[7]["decision"] == "retry";
    let (records, shown) = (0..10).map(|_| play()).find(waited).expect("the last call is cancelled while it waits");
    let told: Vec<_> = records.iter().map(|r| [&r["kind"], &r["decision"], &r["reason"]].map(Value::as_str)).collect();
    let ended = |decision, reason| [None, Some(decision), reason];
    assert_eq!(
        told,
        [
            [Some("transport"), Some("retry"), Some("transport")],
            [Some("rate_limit"), Some("retry"), Some("rate_limit")],
            ended("done", None),
            ended("done", None),
            [Some("not_found"), Some("fallback"), Some("not_retryable")],
            ended("done", None),
            ended("done", None),
            [Some("rate_limit"), Some("retry"), Some("rate_limit")],
            ended("stop", Some("cancelled")),
        ]
    );
    assert!(records[1]["delay_ms"].as_u64() >= Some(60), "it waits as long as the server asked");
    assert!(records[8]["elapsed_ms"].as_u64() < Some(50_000), "a cancel ends the wait");

    assert!(shown.contains("   2  primary  rate_limit   -> retry    after "), "{shown}");
}
