//! The core's functions.

use std::sync::OnceLock;
use std::time::Instant;

use napi::{Either, Result};
use napi_derive::napi;
use reprieve::wire;

use crate::policy::Policy;
use crate::thrown;

#[napi(catch_unwind)]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// The addon is loaded once for all threads, and so is its epoch: their guards tell one time.
#[napi(catch_unwind)]
pub fn now() -> f64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    wire::nanos(EPOCH.get_or_init(Instant::now).elapsed().into())
}

#[napi(catch_unwind)]
pub fn classify(evidence: String, policy: Option<&Policy>) -> Result<String> {
    wire::classify_json(&evidence, policy.map(|policy| &policy.0)).map_err(thrown)
}

#[napi(catch_unwind)]
pub fn kinds() -> String {
    wire::kinds()
}

#[napi(catch_unwind)]
pub fn says(reason: String) -> &'static str {
    wire::says(&reason)
}

#[napi(catch_unwind)]
pub fn stream_item(event: String) -> &'static str {
    reprieve::stream::item(&event).name()
}

#[napi(catch_unwind)]
pub fn stream_finishes(event: String) -> bool {
    reprieve::stream::finishes(&event)
}

#[napi(catch_unwind)]
pub fn timeline(trace_id: String, lines: String) -> Result<String> {
    wire::timeline(&trace_id, &lines).map_err(thrown)
}

#[napi(catch_unwind)]
pub fn mask(text: String, off: String) -> Result<String> {
    wire::mask(&text, &off).map_err(thrown)
}

#[napi(catch_unwind)]
pub fn parse_duration(value: Either<String, f64>, unit_ns: f64) -> Result<f64> {
    match value {
        Either::A(text) => wire::duration_of_text(&text),
        Either::B(number) => wire::duration_of_number(number, unit_ns),
    }
    .map_err(thrown)
}
