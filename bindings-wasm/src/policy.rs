//! A validated policy.

use reprieve::{Kind, wire};
use wasm_bindgen::prelude::*;

use crate::optional::SomePolicy;
use crate::thrown;

#[wasm_bindgen]
#[derive(Clone)]
pub struct Policy(pub(crate) reprieve::Policy);

#[wasm_bindgen]
impl Policy {
    #[wasm_bindgen(constructor)]
    pub fn new(fields: &str, start: Option<SomePolicy>) -> Result<Policy, JsError> {
        wire::policy(fields, start.map(|start| start.handle().0).as_ref()).map(Policy).map_err(thrown)
    }

    #[wasm_bindgen(js_name = fromJson)]
    pub fn from_json(text: &str) -> Result<Policy, JsError> {
        reprieve::Policy::from_json(text).map(Policy).map_err(thrown)
    }

    #[wasm_bindgen]
    pub fn preset(name: &str) -> Result<Policy, JsError> {
        reprieve::Policy::preset(name).map(Policy).map_err(thrown)
    }

    #[wasm_bindgen(js_name = presetNames)]
    pub fn preset_names() -> String {
        wire::texts(reprieve::Policy::preset_names())
    }

    #[wasm_bindgen(js_name = forSkill)]
    pub fn for_skill(id: &str, manifests: &str) -> Result<Policy, JsError> {
        wire::for_skill(id, manifests).map(Policy).map_err(thrown)
    }

    #[wasm_bindgen]
    pub fn handle(&self) -> Policy {
        self.clone()
    }

    #[wasm_bindgen(js_name = toJson)]
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }

    #[wasm_bindgen]
    pub fn targets(&self) -> String {
        wire::texts(self.0.targets.iter().map(|target| target.id.as_str()))
    }

    #[wasm_bindgen]
    pub fn guarded(&self) -> bool {
        self.0.guarded()
    }

    #[wasm_bindgen]
    pub fn hedged(&self) -> bool {
        self.0.hedge.is_some()
    }

    #[wasm_bindgen]
    pub fn nested(&self) -> String {
        self.0.nested.name().into()
    }

    #[wasm_bindgen(js_name = firstTimeoutNs)]
    pub fn first_timeout_ns(&self) -> f64 {
        wire::nanos(self.0.first_timeout())
    }

    #[wasm_bindgen(js_name = endsWith)]
    pub fn ends_with(&self, number: u32) -> bool {
        self.0.ends_with(number)
    }

    #[wasm_bindgen]
    pub fn repeats(&self, seed: &str, t0: f64, now: f64, outcome: &str) -> Result<Option<f64>, JsError> {
        wire::repeats(&self.0, seed, t0, now, outcome).map_err(thrown)
    }

    #[wasm_bindgen(js_name = connectTimeoutNs)]
    pub fn connect_timeout_ns(&self) -> Option<f64> {
        self.0.connect_timeout.map(wire::nanos)
    }

    #[wasm_bindgen]
    pub fn retries(&self, kind: &str) -> bool {
        Kind::from_name(kind).is_some_and(|kind| self.0.retry_on.contains(kind))
    }

    #[wasm_bindgen]
    pub fn capped(&self, most: u32) -> Policy {
        Policy(self.0.capped(most))
    }

    #[wasm_bindgen]
    pub fn delay(
        &self,
        kind: &str,
        seed: &str,
        attempt: u32,
        n: u32,
        previous_ns: Option<f64>,
        retry_after_ns: Option<f64>,
    ) -> Result<f64, JsError> {
        wire::delay(&self.0, kind, seed, (attempt, n), previous_ns, retry_after_ns).map_err(thrown)
    }
}
