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

#[test]
fn the_example_plays_its_three_calls() {
    let (sink, mut shown) = (Lines::default(), Vec::new());
    driver::demo(&driver::Driver::new(sink.clone()), &mut shown).unwrap();

    let written = sink.0.lock().unwrap().clone();
    let records: Vec<Value> = written.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
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
    assert!(records[8]["elapsed_ms"].as_u64() < Some(2_000), "a cancel ends the wait");

    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("   2  primary  rate_limit   -> retry    after "), "{shown}");
}
