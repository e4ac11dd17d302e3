//! The native half of reprieve for Node: what `driver/engine.ts` names, one line each over the core's JSON.
//!
//! Nothing here decides anything, and a panic becomes an error: it never crosses into Node.

#![allow(clippy::needless_pass_by_value, reason = "napi hands text over by value")]

mod call;
mod functions;
mod guards;
mod policy;

use reprieve::wire::Refused;

/// An error whose message is JSON, for the driver to make its own of.
fn thrown(refused: impl Into<Refused>) -> napi::Error {
    napi::Error::from_reason(refused.into().to_json())
}
