//! Guards and runs: state that calls share, also over worker threads. Locked only inside one call into the core, always
//! guards before run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use napi::Result;
use napi::bindgen_prelude::{Either, Undefined};
use napi_derive::napi;
use reprieve::guard;
use reprieve::json::Json;
use reprieve::wire::{self, Refused};

use crate::policy::Policy;
use crate::{maybe, thrown};

type Held = Mutex<guard::Guards>;

/// The sets that other threads may open, by token. They live as long as somebody holds them.
static SHARED: Mutex<BTreeMap<String, Weak<Held>>> = Mutex::new(BTreeMap::new());

#[napi]
#[derive(Clone)]
pub struct Guards(Arc<Held>);

#[napi]
impl Guards {
    #[napi(constructor, catch_unwind)]
    pub fn new() -> Guards {
        Guards(Arc::default())
    }

    #[napi(factory, catch_unwind)]
    pub fn from(token: String) -> Result<Guards> {
        let found = lock(&SHARED).get(&token).and_then(Weak::upgrade);
        found.map(Guards).ok_or_else(|| {
            thrown(Refused::value("guards", &Json::Text(token), "the token of a set that is in use in this process"))
        })
    }

    #[napi(catch_unwind)]
    pub fn share(&self) -> String {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut shared = lock(&SHARED);
        shared.retain(|_, held| held.strong_count() > 0);
        let mine = Arc::downgrade(&self.0);
        if let Some((token, _)) = shared.iter().find(|(_, held)| held.ptr_eq(&mine)) {
            return token.clone();
        }
        // A token of another process opens nothing here.
        let token = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        shared.insert(token.clone(), mine);
        token
    }

    #[napi(catch_unwind)]
    pub fn report(&self, queue_depth: Option<f64>, cost_ratio: Option<f64>) -> Result<()> {
        wire::report(&mut self.lock(), queue_depth, cost_ratio).map_err(thrown)
    }

    #[napi(catch_unwind)]
    pub fn reset(&self) {
        *self.lock() = guard::Guards::new();
    }

    #[napi(catch_unwind)]
    pub fn describe(&self, now: f64) -> String {
        self.lock().describe(wire::moment(now))
    }

    #[napi(catch_unwind)]
    pub fn breaker_state(&self, policy: &Policy, target: String, now: f64) -> Either<&'static str, Undefined> {
        maybe(wire::breaker_state(&self.lock(), &policy.0, &target, now))
    }

    #[napi(catch_unwind)]
    pub fn calm(&self, policy: &Policy, now: f64) -> Either<f64, Undefined> {
        maybe(wire::calm(&self.lock(), &policy.0, now))
    }

    #[napi(catch_unwind)]
    pub fn take_transitions(&self) -> String {
        wire::take_transitions(&mut self.lock())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, guard::Guards> {
        lock(&self.0)
    }
}

#[napi]
#[derive(Clone)]
pub struct Run(Arc<Mutex<guard::Run>>);

#[napi]
impl Run {
    #[napi(constructor, catch_unwind)]
    pub fn new(config: String) -> Result<Run> {
        wire::run(&config).map(|run| Run(Arc::new(Mutex::new(run)))).map_err(thrown)
    }

    #[napi(catch_unwind)]
    pub fn cancel(&self, reason: String) {
        self.lock().cancel(&reason);
    }

    #[napi(catch_unwind)]
    pub fn end(&self, state: String) {
        self.lock().end(&state);
    }

    #[napi(catch_unwind)]
    pub fn report(&self) -> String {
        self.lock().report()
    }

    #[napi(catch_unwind)]
    pub fn ended(&self) -> bool {
        self.lock().ended().is_some()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, guard::Run> {
        lock(&self.0)
    }
}

/// A panic half-way leaves nothing that matters half-done: take it as it is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
