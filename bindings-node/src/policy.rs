//! A validated policy.

use napi::Result;
use napi::bindgen_prelude::{Either, Undefined};
use napi_derive::napi;
use reprieve::{Kind, wire};

use crate::{maybe, thrown};

#[napi]
pub struct Policy(pub(crate) reprieve::Policy);

#[napi]
impl Policy {
    #[napi(constructor, catch_unwind)]
    pub fn new(fields: String, start: Option<&Policy>) -> Result<Policy> {
        wire::policy(&fields, start.map(|policy| &policy.0)).map(Policy).map_err(thrown)
    }

    #[napi(factory, catch_unwind)]
    pub fn from_json(text: String) -> Result<Policy> {
        reprieve::Policy::from_json(&text).map(Policy).map_err(thrown)
    }

    #[napi(factory, catch_unwind)]
    pub fn preset(name: String) -> Result<Policy> {
        reprieve::Policy::preset(&name).map(Policy).map_err(thrown)
    }

    #[napi(catch_unwind)]
    pub fn preset_names() -> String {
        wire::texts(reprieve::Policy::preset_names())
    }

    #[napi(factory, catch_unwind)]
    pub fn for_skill(id: String, manifests: String) -> Result<Policy> {
        wire::for_skill(&id, &manifests).map(Policy).map_err(thrown)
    }

    #[napi(catch_unwind)]
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }

    #[napi(catch_unwind)]
    pub fn targets(&self) -> String {
        wire::texts(self.0.targets.iter().map(|target| target.id.as_str()))
    }

    #[napi(catch_unwind)]
    pub fn guarded(&self) -> bool {
        self.0.guarded()
    }

    #[napi(catch_unwind)]
    pub fn hedged(&self) -> bool {
        self.0.hedge.is_some()
    }

    #[napi(catch_unwind)]
    pub fn nested(&self) -> &'static str {
        self.0.nested.name()
    }

    #[napi(catch_unwind)]
    pub fn first_timeout_ns(&self) -> f64 {
        wire::nanos(self.0.first_timeout())
    }

    #[napi(catch_unwind)]
    pub fn ends_with(&self, number: u32) -> bool {
        self.0.ends_with(number)
    }

    #[napi(catch_unwind)]
    pub fn repeats(&self, seed: String, t0: f64, now: f64, outcome: String) -> Result<Either<f64, Undefined>> {
        wire::repeats(&self.0, &seed, t0, now, &outcome).map(maybe).map_err(thrown)
    }

    #[napi(catch_unwind)]
    pub fn connect_timeout_ns(&self) -> Either<f64, Undefined> {
        maybe(self.0.connect_timeout.map(wire::nanos))
    }

    #[napi(catch_unwind)]
    pub fn retries(&self, kind: String) -> bool {
        Kind::from_name(&kind).is_some_and(|kind| self.0.retry_on.contains(kind))
    }

    #[napi(catch_unwind)]
    pub fn capped(&self, most: u32) -> Policy {
        Policy(self.0.capped(most))
    }

    #[napi(catch_unwind)]
    pub fn delay(
        &self,
        kind: String,
        seed: String,
        attempt: u32,
        n: u32,
        previous_ns: Option<f64>,
        retry_after_ns: Option<f64>,
    ) -> Result<f64> {
        wire::delay(&self.0, &kind, &seed, (attempt, n), previous_ns, retry_after_ns).map_err(thrown)
    }
}
