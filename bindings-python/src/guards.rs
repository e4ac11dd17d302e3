//! Guards and runs: state that calls share. Locked only inside one call into the core, never while Python runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use reprieve::Span;
use reprieve::guard::RunConfig;
use reprieve::policy::Millionths;

use crate::policy::Policy;
use crate::{error, now};

/// Breakers, retry budgets, cooldowns and reported load.
#[pyclass(frozen, module = "reprieve._native")]
pub struct Guards(Mutex<reprieve::guard::Guards>);

impl Guards {
    pub fn lock(&self) -> MutexGuard<'_, reprieve::guard::Guards> {
        // Nothing inside can panic half-way through a change that matters: take it as it is.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Guards {
    #[new]
    fn new() -> Guards {
        Guards(Mutex::default())
    }

    /// Takes a report of load.
    #[pyo3(signature = (queue_depth=None, cost_ratio=None))]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be within 0 and 1e6")]
    fn report(&self, py: Python<'_>, queue_depth: Option<i64>, cost_ratio: Option<f64>) -> PyResult<()> {
        let depth = queue_depth.map(u64::try_from).transpose().map_err(|_| {
            error(py, "ConfigError", ("queue_depth", queue_depth, "a whole number that is not negative"))
        })?;
        let ratio = match cost_ratio {
            None => None,
            Some(ratio) if (0.0..=1e6).contains(&ratio) => Some(Millionths((ratio * 1e6).round_ties_even() as u64)),
            Some(ratio) => return Err(error(py, "ConfigError", ("cost_ratio", ratio, "a number from 0 to 1e6"))),
        };
        self.lock().report(depth, ratio);
        Ok(())
    }

    /// Forgets everything: every breaker closed, every budget full.
    fn reset(&self) {
        *self.lock() = reprieve::guard::Guards::new();
    }

    /// What is open, cooling, benched or spent, as JSON.
    #[pyo3(signature = (now_ns=None))]
    fn describe(&self, now_ns: Option<u64>) -> String {
        self.lock().describe(now_ns.map_or_else(now, Span::from_nanos))
    }

    /// The state of a target's breaker: `closed`, `open`, `half_open`, or nothing without a breaker.
    #[pyo3(signature = (policy, target, now_ns=None))]
    fn breaker_state(&self, policy: &Policy, target: &str, now_ns: Option<u64>) -> Option<&'static str> {
        let index = policy.0.targets.iter().position(|t| t.id == target)?;
        self.lock().breaker_state(&policy.0, index, now_ns.map_or_else(now, Span::from_nanos))
    }

    /// The changes of breakers since the last time, as JSON.
    fn take_transitions(&self) -> Vec<String> {
        let taken = self.lock().take_transitions();
        taken.iter().map(reprieve::guard::Transition::to_json).collect()
    }
}

/// A run: a budget, a deadline and a gate that its calls share.
#[pyclass(frozen, module = "reprieve._native")]
pub struct Run(Mutex<reprieve::guard::Run>);

impl Run {
    pub fn lock(&self) -> MutexGuard<'_, reprieve::guard::Run> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Run {
    /// A run of this JSON: attempts, tokens, cost, `deadline` (nanoseconds on the native clock), estimates.
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Run> {
        let config =
            RunConfig::from_json(config).map_err(|e| error(py, "ConfigError", ("run", config, e.to_string())))?;
        Ok(Run(Mutex::new(reprieve::guard::Run::new(config))))
    }

    fn cancel(&self, reason: &str) {
        self.lock().cancel(reason);
    }

    fn end(&self, state: &str) {
        self.lock().end(state);
    }

    /// Counts and budget, as JSON.
    fn report(&self) -> String {
        self.lock().report()
    }

    /// It was cancelled or has ended.
    #[getter]
    fn ended(&self) -> bool {
        self.lock().ended().is_some()
    }
}
