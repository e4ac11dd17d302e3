//! The raw machine of one call.

use reprieve::wire::{Machine, Peers, Refused};
use wasm_bindgen::prelude::*;

use crate::guards::{Guards, Run};
use crate::optional::{SomeGuards, SomeRun};
use crate::policy::Policy;
use crate::thrown;

#[wasm_bindgen]
pub struct Call {
    machine: Machine,
    peers: Shared,
}

#[wasm_bindgen]
impl Call {
    #[wasm_bindgen(constructor)]
    pub fn new(
        policy: &Policy,
        seed: &str,
        options: &str,
        guards: Option<SomeGuards>,
        run: Option<SomeRun>,
    ) -> Result<Call, JsError> {
        let peers = Shared::of(guards, run);
        let machine = peers.lend(|peers| Machine::new(&policy.0, seed, options, &peers)).map_err(thrown)?;
        Ok(Call { machine, peers })
    }

    #[wasm_bindgen]
    pub fn started(
        policy: &Policy,
        seed: &str,
        t0: f64,
        options: &str,
        calm: Option<f64>,
        guards: Option<SomeGuards>,
    ) -> Result<Call, JsError> {
        let peers = Shared::of(guards, None);
        let made = peers.lend(|peers| Machine::started(&policy.0, seed, t0, options, calm, &peers));
        Ok(Call { machine: made.map_err(thrown)?, peers })
    }

    #[wasm_bindgen]
    pub fn restore(
        snapshot: &str,
        now: f64,
        wall_now_ms: f64,
        options: &str,
        guards: Option<SomeGuards>,
        run: Option<SomeRun>,
    ) -> Result<Call, JsError> {
        let peers = Shared::of(guards, run);
        let restored = peers.lend(|peers| Machine::restore(snapshot, now, wall_now_ms, options, peers));
        Ok(Call { machine: restored.map_err(thrown)?, peers })
    }

    #[wasm_bindgen]
    pub fn begin(&mut self, now: f64) -> Result<String, JsError> {
        self.ask(&mut |machine, peers| machine.begin(now, peers))
    }

    #[wasm_bindgen(js_name = onOutcome)]
    pub fn on_outcome(&mut self, now: f64, attempt: u32, outcome: &str) -> Result<String, JsError> {
        self.ask(&mut |machine, peers| machine.on_outcome(now, attempt, outcome, peers))
    }

    #[wasm_bindgen]
    pub fn cancel(&mut self, now: f64) -> Result<String, JsError> {
        self.ask(&mut |machine, peers| machine.cancel(now, peers))
    }

    #[wasm_bindgen(js_name = firstItem)]
    pub fn first_item(&mut self, now: f64, attempt: u32) -> Result<String, JsError> {
        self.ask(&mut |machine, peers| machine.first_item(now, attempt, peers))
    }

    #[wasm_bindgen]
    pub fn hedge(&mut self, now: f64) -> Result<String, JsError> {
        self.ask(&mut |machine, peers| machine.hedge(now, peers))
    }

    #[wasm_bindgen]
    pub fn restored(&self) -> String {
        self.machine.restored().into()
    }

    #[wasm_bindgen]
    pub fn snapshot(&mut self, now: f64, wall_now_ms: f64) -> String {
        self.machine.snapshot(now, wall_now_ms)
    }

    #[wasm_bindgen(js_name = takeLines)]
    pub fn take_lines(&mut self) -> String {
        self.machine.take_lines()
    }

    #[wasm_bindgen]
    pub fn lines(&self) -> String {
        self.machine.lines()
    }

    #[wasm_bindgen(js_name = takeEvents)]
    pub fn take_events(&mut self) -> String {
        self.machine.take_events()
    }

    #[wasm_bindgen]
    pub fn failure(&self) -> Option<String> {
        self.machine.failure()
    }

    #[wasm_bindgen]
    pub fn state(&self) -> String {
        self.machine.call().state().into()
    }

    #[wasm_bindgen]
    pub fn attempts(&self) -> u32 {
        self.machine.call().attempts()
    }

    #[wasm_bindgen(js_name = attemptsOnTarget)]
    pub fn attempts_on_target(&self) -> u32 {
        self.machine.call().attempts_on_target()
    }

    #[wasm_bindgen(js_name = isLast)]
    pub fn is_last(&self) -> bool {
        self.machine.call().is_last()
    }

    #[wasm_bindgen(js_name = traceId)]
    pub fn trace_id(&self) -> String {
        self.machine.call().ids().map_or_else(String::new, |ids| ids.trace_id.clone())
    }
}

/// What a question to the machine is answered with: an action, as JSON.
type Question<'q> = &'q mut dyn FnMut(&mut Machine, Peers<'_>) -> Result<String, Refused>;

impl Call {
    /// One question, with what the call shares. Not generic, so that its code stands once.
    fn ask(&mut self, question: Question<'_>) -> Result<String, JsError> {
        self.peers.lend(|peers| question(&mut self.machine, peers)).map_err(thrown)
    }
}

/// The guards and the run that a call shares with others.
#[derive(Default)]
struct Shared {
    guards: Option<Guards>,
    run: Option<Run>,
}

impl Shared {
    fn of(guards: Option<SomeGuards>, run: Option<SomeRun>) -> Shared {
        Shared { guards: guards.map(|guards| guards.handle()), run: run.map(|run| run.handle()) }
    }

    /// Lends both for one question.
    fn lend<T>(&self, ask: impl FnOnce(Peers<'_>) -> T) -> T {
        let mut guards = self.guards.as_ref().map(Guards::borrow);
        let mut run = self.run.as_ref().map(Run::borrow);
        ask(Peers { guards: guards.as_deref_mut(), run: run.as_deref_mut() })
    }
}
