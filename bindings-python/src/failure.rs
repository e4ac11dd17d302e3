//! Failures, evidence and the small functions of the core that Python hands on.

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use reprieve::trace::Masks;
use reprieve::{Evidence, Kind, Span};

use crate::error;
use crate::policy::Policy;

/// One classified failure.
#[pyclass(frozen, module = "reprieve", eq)]
pub struct Failure {
    pub what: reprieve::Failure,
    /// What the attempt raised.
    error: Option<Py<PyAny>>,
    /// What the attempt answered, and `check` refused.
    value: Option<Py<PyAny>>,
}

impl From<reprieve::Failure> for Failure {
    fn from(failure: reprieve::Failure) -> Failure {
        Failure { what: failure, error: None, value: None }
    }
}

/// What it is, not where it came from.
impl PartialEq for Failure {
    fn eq(&self, other: &Failure) -> bool {
        self.what == other.what
    }
}

#[pymethods]
impl Failure {
    /// The same, with what it came from.
    fn of(&self, error: Option<Py<PyAny>>, value: Option<Py<PyAny>>) -> Failure {
        Failure { what: self.what.clone(), error, value }
    }

    /// What the attempt raised; there for a `repair`, and nowhere else.
    #[getter]
    fn error(&self) -> Option<&Py<PyAny>> {
        self.error.as_ref()
    }

    /// What the attempt answered and `check` refused; there for a `repair`, and nowhere else.
    #[getter]
    fn value(&self) -> Option<&Py<PyAny>> {
        self.value.as_ref()
    }

    /// An exception leads to frames, and they may lead back here.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.error)?;
        visit.call(&self.value)
    }

    /// What it is, such as `rate_limit`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.what.kind.name()
    }

    /// `retriable`, `need_human`, `fatal` or `control`.
    #[getter]
    fn category(&self) -> &'static str {
        self.what.category().name()
    }

    /// The provider's own code.
    #[getter]
    fn code(&self) -> Option<&str> {
        self.what.code.as_deref()
    }

    /// The provider's message, at most 8 KiB.
    #[getter]
    fn message(&self) -> Option<&str> {
        self.what.message.as_deref()
    }

    /// How long the server asked to wait, in seconds.
    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.what.retry_after.map(Span::as_secs_f64)
    }

    /// Where that was found: `header`, `body`, `message` or `reset`.
    #[getter]
    fn retry_after_source(&self) -> Option<&'static str> {
        self.what.retry_after_source.map(reprieve::RetryAfterSource::name)
    }

    /// Which rule decided the kind.
    #[getter]
    fn decided_by(&self) -> &'static str {
        self.what.decided_by.name()
    }

    /// Trying again may help.
    #[getter]
    fn retriable(&self) -> bool {
        self.what.retriable()
    }

    /// It speaks against the service.
    #[getter]
    fn service_fault(&self) -> bool {
        self.what.service_fault()
    }

    /// A person has to look at it.
    #[getter]
    fn alert(&self) -> bool {
        self.what.alert()
    }

    /// The request may have had an effect on the server.
    #[getter]
    fn may_have_executed(&self) -> bool {
        self.what.may_have_executed
    }

    /// The server said not to repeat.
    #[getter]
    fn retry_forbidden(&self) -> bool {
        self.what.retry_forbidden
    }

    /// A failure that somebody else classified, from JSON with at least `kind`.
    #[staticmethod]
    fn from_json(py: Python<'_>, json: &str) -> PyResult<Failure> {
        let read = reprieve::Failure::from_json(json);
        read.map(Failure::from).map_err(|e| error(py, "ConfigError", ("failure", json, e.why)))
    }

    /// The failure as JSON, as an outcome takes it.
    fn to_json(&self) -> String {
        self.what.to_json()
    }

    fn __str__(&self) -> String {
        self.what.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Failure {}>", self.what)
    }
}

/// Classifies evidence (JSON), with the rules of a policy where one is given.
#[pyfunction]
#[pyo3(signature = (evidence, policy=None))]
pub fn classify(py: Python<'_>, evidence: &str, policy: Option<&Bound<'_, Policy>>) -> PyResult<Failure> {
    let read = Evidence::from_json(evidence).map_err(|e| error(py, "ConfigError", ("evidence", evidence, e.why)))?;
    let rules = policy.map_or(&[][..], |policy| &policy.get().0.rules);
    Ok(reprieve::failure::classify(&read, rules).into())
}

/// Every kind with its category, whether it is the service's fault, and whether it raises an alert.
#[pyfunction]
pub fn kinds() -> Vec<(&'static str, &'static str, bool, bool)> {
    Kind::all().map(|k| (k.name(), k.category().name(), k.service_fault(), k.alert())).collect()
}

/// What a stop reason says to whoever is on call.
#[pyfunction]
pub fn says(reason: &str) -> &'static str {
    reprieve::StopReason::from_name(reason).map_or("the call ended", reprieve::StopReason::says)
}

/// What one event of a stream (JSON) is: `held`, `content`, `end`, `content_end` or `error`.
#[pyfunction]
pub fn stream_item(event: &str) -> &'static str {
    reprieve::stream::item(event).name()
}

/// A stream of such events (JSON) ends with one that says so; without it, it was cut.
#[pyfunction]
pub fn stream_finishes(event: &str) -> bool {
    reprieve::stream::finishes(event)
}

/// A timeline of records, for people.
#[pyfunction]
pub fn timeline(trace_id: &str, lines: Vec<String>) -> String {
    reprieve::trace::timeline(trace_id, lines)
}

/// The text with personal data and secrets masked; `off` names the sets to leave.
#[pyfunction]
#[pyo3(signature = (text, off=Vec::new()))]
pub fn mask(py: Python<'_>, text: &str, off: Vec<String>) -> PyResult<String> {
    Ok(reprieve::trace::mask(text, masks(py, &off)?).into_owned())
}

pub fn masks(py: Python<'_>, off: &[String]) -> PyResult<Masks> {
    Masks::without(off).map_err(|e| error(py, "ConfigError", ("unmask", e.0.clone(), e.to_string())))
}

/// A duration's nanoseconds: text with a unit, or a number of seconds.
#[pyfunction]
#[pyo3(signature = (value, unit_ns=1_000_000_000))]
pub fn parse_duration(py: Python<'_>, value: &Bound<'_, PyAny>, unit_ns: u64) -> PyResult<u64> {
    let read = match value.extract::<f64>() {
        Ok(number) if !value.is_instance_of::<pyo3::types::PyBool>() => {
            Span::from_number(number, Span::from_nanos(unit_ns))
        }
        _ => Span::parse(&value.str()?.to_string_lossy()),
    };
    let shown = value.repr()?.to_string_lossy().into_owned();
    read.map(Span::as_nanos).map_err(|e| error(py, "ConfigError", ("duration", shown, e.to_string())))
}
