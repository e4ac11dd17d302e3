//! Objects that JavaScript may leave out. wasm-bindgen takes no reference that may be missing, so each object can give
//! out another handle on what it shares, by its own method.

use wasm_bindgen::prelude::*;

use crate::guards::{Guards, Run};
use crate::policy::Policy;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(typescript_type = "Policy")]
    pub type SomePolicy;
    #[wasm_bindgen(method)]
    pub fn handle(this: &SomePolicy) -> Policy;

    #[wasm_bindgen(typescript_type = "Guards")]
    pub type SomeGuards;
    #[wasm_bindgen(method)]
    pub fn handle(this: &SomeGuards) -> Guards;

    #[wasm_bindgen(typescript_type = "Run")]
    pub type SomeRun;
    #[wasm_bindgen(method)]
    pub fn handle(this: &SomeRun) -> Run;
}
