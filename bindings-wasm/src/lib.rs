//! reprieve for browsers and edge runtimes: what `driver/engine.ts` names, one line each over the core's JSON.
//!
//! Nothing here decides anything, and nothing here calls into JavaScript but for a handle (`optional.rs`).

mod call;
mod functions;
mod guards;
#[cfg(target_arch = "wasm32")]
mod memory;
mod optional;
mod policy;

use reprieve::wire::Refused;
use wasm_bindgen::JsError;

/// An error whose message is JSON, for the driver to make its own of.
fn thrown(refused: impl Into<Refused>) -> JsError {
    JsError::new(&refused.into().to_json())
}
