//! Guards and runs: state that calls share within one JavaScript agent. Borrowed only inside one call into the core.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use reprieve::guard;
use reprieve::json::Json;
use reprieve::wire::{self, Refused};
use wasm_bindgen::prelude::*;

use crate::policy::Policy;
use crate::thrown;

#[wasm_bindgen]
#[derive(Clone)]
pub struct Guards(Rc<RefCell<guard::Guards>>);

#[wasm_bindgen]
impl Guards {
    #[wasm_bindgen(constructor)]
    pub fn new() -> Guards {
        Guards(Rc::default())
    }

    #[wasm_bindgen]
    pub fn from(token: &str) -> Result<Guards, JsError> {
        Err(not_shared(token))
    }

    #[wasm_bindgen]
    #[expect(clippy::unused_self, reason = "a method in JavaScript, where the native engine has one")]
    pub fn share(&self) -> Result<String, JsError> {
        Err(not_shared("a set of wasm"))
    }

    #[wasm_bindgen]
    pub fn report(&self, queue_depth: Option<f64>, cost_ratio: Option<f64>) -> Result<(), JsError> {
        wire::report(&mut self.borrow(), queue_depth, cost_ratio).map_err(thrown)
    }

    #[wasm_bindgen]
    pub fn handle(&self) -> Guards {
        self.clone()
    }

    #[wasm_bindgen]
    pub fn reset(&self) {
        *self.borrow() = guard::Guards::new();
    }

    #[wasm_bindgen]
    pub fn describe(&self, now: f64) -> String {
        self.borrow().describe(wire::moment(now))
    }

    #[wasm_bindgen(js_name = breakerState)]
    pub fn breaker_state(&self, policy: &Policy, target: &str, now: f64) -> Option<String> {
        wire::breaker_state(&self.borrow(), &policy.0, target, now).map(Into::into)
    }

    #[wasm_bindgen]
    pub fn calm(&self, policy: &Policy, now: f64) -> Option<f64> {
        wire::calm(&self.borrow(), &policy.0, now)
    }

    #[wasm_bindgen(js_name = takeTransitions)]
    pub fn take_transitions(&self) -> String {
        wire::take_transitions(&mut self.borrow())
    }

    pub(crate) fn borrow(&self) -> RefMut<'_, guard::Guards> {
        self.0.borrow_mut()
    }
}

/// Each worker has a memory of its own.
fn not_shared(token: &str) -> JsError {
    thrown(Refused::value(
        "guards",
        &Json::Text(token.into()),
        "a set of the native engine, which alone shares it over worker threads",
    ))
}

#[wasm_bindgen]
#[derive(Clone)]
pub struct Run(Rc<RefCell<guard::Run>>);

#[wasm_bindgen]
impl Run {
    #[wasm_bindgen(constructor)]
    pub fn new(config: &str) -> Result<Run, JsError> {
        wire::run(config).map(|run| Run(Rc::new(RefCell::new(run)))).map_err(thrown)
    }

    #[wasm_bindgen]
    pub fn handle(&self) -> Run {
        self.clone()
    }

    #[wasm_bindgen]
    pub fn cancel(&self, reason: &str) {
        self.borrow().cancel(reason);
    }

    #[wasm_bindgen]
    pub fn end(&self, state: &str) {
        self.borrow().end(state);
    }

    #[wasm_bindgen]
    pub fn report(&self) -> String {
        self.borrow().report()
    }

    #[wasm_bindgen]
    pub fn ended(&self) -> bool {
        self.borrow().ended().is_some()
    }

    pub(crate) fn borrow(&self) -> RefMut<'_, guard::Run> {
        self.0.borrow_mut()
    }
}
