//! Runs the conformance cases of topic `stream`.

mod common;

use common::{Failed, cases};
use reprieve::stream::{finishes, item};

#[test]
fn every_event_is_read_as_the_rules_say() {
    let mut failed = Failed::default();
    for case in cases("stream") {
        failed.run(&case, |case| {
            let event = case["event"].as_str().map_or_else(|| case["event"].to_string(), str::to_owned);
            let (seen, ends) = (item(&event).name(), finishes(&event));
            let same = case["expect"] == seen && case["finishes"].as_bool().is_none_or(|want| want == ends);
            if same {
                Ok(())
            } else {
                Err(format!("expected {} {}, saw {seen} {ends}", case["expect"], case["finishes"]))
            }
        });
    }
    failed.report();
}
