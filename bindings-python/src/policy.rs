//! A policy, and how Python's values become one.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PySet, PyString, PyTuple};
use reprieve::backoff::Point;
use reprieve::policy::Input;
use reprieve::{ConfigError, Span};

use crate::error;

/// A validated policy.
#[pyclass(frozen, module = "reprieve._native")]
pub struct Policy(pub reprieve::Policy);

/// A bare number is a duration in seconds.
const UNIT: Option<Span> = Some(Span::from_secs(1));

#[pymethods]
impl Policy {
    /// A policy of these fields over the empty one, or over `start`.
    #[new]
    #[pyo3(signature = (fields, start=None))]
    fn new(fields: &Bound<'_, PyDict>, start: Option<&Bound<'_, Policy>>) -> PyResult<Policy> {
        let py = fields.py();
        let start = start.map_or_else(reprieve::Policy::default, |policy| policy.get().0.clone());
        start.replace(&input(fields)?, UNIT).map(Policy).map_err(|e| config_error(py, &e))
    }

    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Policy> {
        reprieve::Policy::from_json(text).map(Policy).map_err(|e| config_error(py, &e))
    }

    #[staticmethod]
    fn preset(py: Python<'_>, name: &str) -> PyResult<Policy> {
        reprieve::Policy::preset(name).map(Policy).map_err(|e| config_error(py, &e))
    }

    #[staticmethod]
    fn preset_names() -> Vec<&'static str> {
        reprieve::Policy::preset_names().collect()
    }

    #[staticmethod]
    fn for_skill(id: &str, manifests: &Bound<'_, PyAny>) -> PyResult<Policy> {
        let py = manifests.py();
        reprieve::Policy::for_skill(id, &input(manifests)?, UNIT).map(Policy).map_err(|e| config_error(py, &e))
    }

    fn to_json(&self) -> String {
        self.0.to_json()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Policy>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.to_json().hash(&mut hasher);
        hasher.finish()
    }

    /// The kind is tried again by this policy.
    fn retries(&self, kind: &str) -> bool {
        reprieve::Kind::from_name(kind).is_some_and(|kind| self.0.retry_on.contains(kind))
    }

    /// The ids of the targets, in order.
    #[getter]
    fn targets(&self) -> Vec<&str> {
        self.0.targets.iter().map(|target| target.id.as_str()).collect()
    }

    /// `bounded`, `independent` or `refuse`.
    #[getter]
    fn nested(&self) -> &'static str {
        self.0.nested.name()
    }

    /// The policy needs guards: a breaker, a retry budget, a cooldown or shedding is set.
    #[getter]
    fn guarded(&self) -> bool {
        self.0.guarded()
    }

    /// Slow attempts are joined by others.
    #[getter]
    fn hedged(&self) -> bool {
        self.0.hedge.is_some()
    }

    /// Attempts, time and targets, for people.
    #[getter]
    fn summary(&self) -> String {
        let (p, targets) = (&self.0, self.targets().join(" -> "));
        format!("{} attempts within {} on {targets}", p.max_attempts, p.total_timeout)
    }

    /// How many attempts the first target may get.
    #[getter]
    fn max_attempts_of_first(&self) -> u32 {
        self.0.max_attempts_of_first()
    }

    /// No attempt can follow this one, if it and all before it were made on the first target.
    fn ends_with(&self, number: u32) -> bool {
        self.0.ends_with(number)
    }

    /// The same policy with no more than `most` attempts on any target.
    fn capped(&self, most: u32) -> Policy {
        Policy(self.0.capped(most))
    }

    /// How long the first attempt may take, in nanoseconds.
    #[getter]
    fn first_timeout_ns(&self) -> u64 {
        self.0.first_timeout().as_nanos()
    }

    /// The wait after attempt `attempt`, the `n`th on its target, when any wait fits, in nanoseconds. `previous_ns` is
    /// the last decorrelated wait.
    #[pyo3(signature = (kind, seed, attempt, n, *, previous_ns=None, retry_after_ns=None))]
    #[expect(clippy::too_many_arguments, reason = "options by name, in Python")]
    fn delay_ns(
        &self,
        py: Python<'_>,
        kind: &str,
        seed: u64,
        attempt: u32,
        n: u32,
        previous_ns: Option<u64>,
        retry_after_ns: Option<u64>,
    ) -> PyResult<u64> {
        let known = reprieve::Kind::from_name(kind);
        let kind = known.ok_or_else(|| error(py, "ConfigError", ("kind", kind, "the name of a kind")))?;
        let at = Point { seed, attempt, n, previous: previous_ns.map(Span::from_nanos) };
        let wish = retry_after_ns.map(Span::from_nanos);
        Ok(self.0.delay(self.0.backoff_after(kind, at), wish, at, Span::MAX).as_nanos())
    }

    /// How long a connection may take to open, in seconds.
    #[getter]
    fn connect_timeout(&self) -> Option<f64> {
        self.0.connect_timeout.map(Span::as_secs_f64)
    }

    /// Of streams: the mode, and the timeouts of the first item, of idleness and of silence, in nanoseconds.
    #[getter]
    fn stream(&self) -> (&'static str, Option<u64>, Option<u64>, Option<u64>) {
        let stream = self.0.stream;
        let [first, idle, silence] = [stream.first_item_timeout, stream.idle_timeout, stream.silence_timeout];
        let ns = |timeout: Option<Span>| timeout.map(Span::as_nanos);
        (stream.mode.name(), ns(first), ns(idle), ns(silence))
    }
}

pub fn config_error(py: Python<'_>, e: &ConfigError) -> PyErr {
    error(py, "ConfigError", (&e.field, &e.value, &e.allowed))
}

/// No policy is nested deeper; what is (a dict that holds itself) is cut here and refused by its field.
const DEEPEST: usize = 32;

/// A Python value as a policy may hold it. Iterables that are not lists, tuples, sets or mappings are refused.
fn input(value: &Bound<'_, PyAny>) -> PyResult<Input> {
    within(value, DEEPEST)
}

fn within(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Input> {
    let inner = |value: &Bound<'_, PyAny>| within(value, depth - 1);
    if depth == 0 {
        Ok(Input::Text("…".into()))
    } else if value.is_none() {
        Ok(Input::Null)
    } else if let Ok(flag) = value.cast::<PyBool>() {
        Ok(Input::Flag(flag.is_true()))
    } else if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        // An int too large for a float is no value of any field.
        Ok(Input::Number(value.extract().unwrap_or(f64::INFINITY)))
    } else if let Ok(text) = value.cast::<PyString>() {
        Ok(Input::Text(text.to_string_lossy().into_owned()))
    } else if let Ok(micros) = timedelta_micros(value) {
        Ok(Input::Text(format!("{micros}us")))
    } else if let Ok(map) = value.cast::<PyMapping>() {
        let items = map.items()?;
        items
            .iter()
            .map(|item| Ok((item.get_item(0)?.str()?.to_string_lossy().into_owned(), inner(&item.get_item(1)?)?)))
            .collect::<PyResult<_>>()
            .map(Input::Map)
    } else if value.is_instance_of::<PyList>()
        || value.is_instance_of::<PyTuple>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>()
    {
        value.try_iter()?.map(|item| inner(&item?)).collect::<PyResult<_>>().map(Input::List)
    } else {
        Ok(Input::Text(value.repr().map_or_else(|_| "?".into(), |r| r.to_string_lossy().into_owned())))
    }
}

/// Exact, where `total_seconds` is not.
fn timedelta_micros(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    let part = |name: &str| value.getattr(name).and_then(|v| v.extract::<i64>()).map(i128::from);
    let class = value.py().import("datetime")?.getattr("timedelta")?;
    if !value.is_instance(&class)? {
        return Err(pyo3::exceptions::PyTypeError::new_err("not a timedelta"));
    }
    Ok((part("days")? * 86_400 + part("seconds")?) * 1_000_000 + part("microseconds")?)
}
