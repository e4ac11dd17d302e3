//! The raw machine of one call.

use napi::Result;
use napi::bindgen_prelude::{Either, Undefined};
use napi_derive::napi;
use reprieve::wire::{Machine, Peers};

use crate::guards::{Guards, Run};
use crate::policy::Policy;
use crate::{maybe, thrown};

#[napi]
pub struct Call {
    machine: Machine,
    peers: Shared,
}

#[napi]
impl Call {
    #[napi(constructor, catch_unwind)]
    pub fn new(
        policy: &Policy,
        seed: String,
        options: String,
        guards: Option<&Guards>,
        run: Option<&Run>,
    ) -> Result<Call> {
        let peers = Shared::of(guards, run);
        let machine = peers.lend(|peers| Machine::new(&policy.0, &seed, &options, &peers)).map_err(thrown)?;
        Ok(Call { machine, peers })
    }

    #[napi(factory, catch_unwind)]
    pub fn started(
        policy: &Policy,
        seed: String,
        t0: f64,
        options: String,
        calm: Option<f64>,
        guards: Option<&Guards>,
    ) -> Result<Call> {
        let peers = Shared::of(guards, None);
        let made = peers.lend(|peers| Machine::started(&policy.0, &seed, t0, &options, calm, &peers));
        Ok(Call { machine: made.map_err(thrown)?, peers })
    }

    #[napi(factory, catch_unwind)]
    pub fn restore(
        snapshot: String,
        now: f64,
        wall_now_ms: f64,
        options: String,
        guards: Option<&Guards>,
        run: Option<&Run>,
    ) -> Result<Call> {
        let peers = Shared::of(guards, run);
        let restored = peers.lend(|peers| Machine::restore(&snapshot, now, wall_now_ms, &options, peers));
        Ok(Call { machine: restored.map_err(thrown)?, peers })
    }

    #[napi(catch_unwind)]
    pub fn begin(&mut self, now: f64) -> Result<String> {
        self.peers.lend(|peers| self.machine.begin(now, peers)).map_err(thrown)
    }

    #[napi(catch_unwind)]
    pub fn on_outcome(&mut self, now: f64, attempt: u32, outcome: String) -> Result<String> {
        self.peers.lend(|peers| self.machine.on_outcome(now, attempt, &outcome, peers)).map_err(thrown)
    }

    #[napi(catch_unwind)]
    pub fn cancel(&mut self, now: f64) -> Result<String> {
        self.peers.lend(|peers| self.machine.cancel(now, peers)).map_err(thrown)
    }

    #[napi(catch_unwind)]
    pub fn first_item(&mut self, now: f64, attempt: u32) -> Result<String> {
        self.peers.lend(|peers| self.machine.first_item(now, attempt, peers)).map_err(thrown)
    }

    #[napi(catch_unwind)]
    pub fn hedge(&mut self, now: f64) -> Result<String> {
        self.peers.lend(|peers| self.machine.hedge(now, peers)).map_err(thrown)
    }

    #[napi(catch_unwind)]
    pub fn restored(&self) -> &str {
        self.machine.restored()
    }

    #[napi(catch_unwind)]
    pub fn snapshot(&mut self, now: f64, wall_now_ms: f64) -> String {
        self.machine.snapshot(now, wall_now_ms)
    }

    #[napi(catch_unwind)]
    pub fn take_lines(&mut self) -> String {
        self.machine.take_lines()
    }

    #[napi(catch_unwind)]
    pub fn lines(&self) -> String {
        self.machine.lines()
    }

    #[napi(catch_unwind)]
    pub fn take_events(&mut self) -> String {
        self.machine.take_events()
    }

    #[napi(catch_unwind)]
    pub fn failure(&self) -> Either<String, Undefined> {
        maybe(self.machine.failure())
    }

    #[napi(catch_unwind)]
    pub fn state(&self) -> &'static str {
        self.machine.call().state()
    }

    #[napi(catch_unwind)]
    pub fn attempts(&self) -> u32 {
        self.machine.call().attempts()
    }

    #[napi(catch_unwind)]
    pub fn attempts_on_target(&self) -> u32 {
        self.machine.call().attempts_on_target()
    }

    #[napi(catch_unwind)]
    pub fn is_last(&self) -> bool {
        self.machine.call().is_last()
    }

    #[napi(catch_unwind)]
    pub fn trace_id(&self) -> &str {
        self.machine.call().ids().map_or("", |ids| &ids.trace_id)
    }
}

/// The guards and the run that a call shares with others.
#[derive(Default)]
struct Shared {
    guards: Option<Guards>,
    run: Option<Run>,
}

impl Shared {
    fn of(guards: Option<&Guards>, run: Option<&Run>) -> Shared {
        Shared { guards: guards.cloned(), run: run.cloned() }
    }

    /// Lends both, locked, for one question.
    fn lend<T>(&self, ask: impl FnOnce(Peers<'_>) -> T) -> T {
        let mut guards = self.guards.as_ref().map(Guards::lock);
        let mut run = self.run.as_ref().map(Run::lock);
        ask(Peers { guards: guards.as_deref_mut(), run: run.as_deref_mut() })
    }
}
