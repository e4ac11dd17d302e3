//! The core's functions.

use reprieve::wire;
use wasm_bindgen::prelude::*;

use crate::optional::SomePolicy;
use crate::thrown;

#[wasm_bindgen]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}

#[wasm_bindgen]
pub fn classify(evidence: &str, policy: Option<SomePolicy>) -> Result<String, JsError> {
    wire::classify_json(evidence, policy.map(|policy| policy.handle().0).as_ref()).map_err(thrown)
}

#[wasm_bindgen]
pub fn kinds() -> String {
    wire::kinds()
}

#[wasm_bindgen]
pub fn says(reason: &str) -> String {
    wire::says(reason).into()
}

#[wasm_bindgen(js_name = streamItem)]
pub fn stream_item(event: &str) -> String {
    reprieve::stream::item(event).name().into()
}

#[wasm_bindgen(js_name = streamFinishes)]
pub fn stream_finishes(event: &str) -> bool {
    reprieve::stream::finishes(event)
}

#[wasm_bindgen]
pub fn timeline(trace_id: &str, lines: &str) -> Result<String, JsError> {
    wire::timeline(trace_id, lines).map_err(thrown)
}

#[wasm_bindgen]
pub fn mask(text: &str, off: &str) -> Result<String, JsError> {
    wire::mask(text, off).map_err(thrown)
}

#[wasm_bindgen(js_name = parseDuration)]
pub fn parse_duration(value: &JsValue, unit_ns: f64) -> Result<f64, JsError> {
    match value.as_string() {
        Some(text) => wire::duration_of_text(&text),
        None => wire::duration_of_number(value.as_f64().unwrap_or(f64::NAN), unit_ns),
    }
    .map_err(thrown)
}
