//! What a call answers: the core's action, read field by field. Durations are in nanoseconds and, for people, seconds.

use pyo3::prelude::*;
use reprieve::{Action as Core, Redeliver, Span};

/// What to do next. `kind` is `attempt`, `retry`, `fallback`, `pending`, `ignored`, `stop` or `done`.
#[pyclass(frozen, module = "reprieve")]
pub struct Action {
    pub action: Core,
    /// Names the targets.
    pub policy: reprieve::Policy,
}

impl Action {
    fn after_span(&self) -> Option<Span> {
        match self.action {
            Core::Retry { after, .. } | Core::Fallback { after, .. } => Some(after),
            _ => None,
        }
    }

    fn hedge_span(&self) -> Option<Span> {
        match self.action {
            Core::Attempt { hedge_after, .. } => hedge_after,
            _ => None,
        }
    }

    fn timeout_span(&self) -> Option<Span> {
        match self.action {
            Core::Attempt { timeout, .. } => Some(timeout),
            _ => None,
        }
    }

    fn resume_span(&self) -> Option<Span> {
        match self.action {
            Core::Stop(stop) => stop.resume_in,
            _ => None,
        }
    }

    fn redeliver(&self) -> Option<Redeliver> {
        match self.action {
            Core::Retry { redeliver, .. } | Core::Fallback { redeliver, .. } => redeliver,
            _ => None,
        }
    }
}

#[pymethods]
impl Action {
    #[getter]
    fn kind(&self) -> &'static str {
        match self.action {
            Core::Ask(_) => "ask",
            Core::Attempt { .. } => "attempt",
            Core::Retry { .. } => "retry",
            Core::Fallback { .. } => "fallback",
            Core::Pending => "pending",
            Core::Ignored => "ignored",
            Core::Stop(_) => "stop",
            Core::Done => "done",
        }
    }

    /// Of an attempt: its number.
    #[getter]
    fn number(&self) -> Option<u32> {
        match self.action {
            Core::Attempt { number, .. } => Some(number),
            _ => None,
        }
    }

    /// Of an attempt or fallback: the target's id.
    #[getter]
    fn target(&self) -> Option<&str> {
        match self.action {
            Core::Attempt { target, .. } | Core::Fallback { target, .. } => Some(&self.policy.targets[target].id),
            _ => None,
        }
    }

    /// Of an attempt: how long it may take, in nanoseconds.
    #[getter]
    fn timeout_ns(&self) -> Option<u64> {
        self.timeout_span().map(Span::as_nanos)
    }

    /// Of an attempt: how long it may take, in seconds.
    #[getter]
    fn timeout(&self) -> Option<f64> {
        self.timeout_span().map(Span::as_secs_f64)
    }

    /// Of an attempt: how long after its start another may join it, in nanoseconds.
    #[getter]
    fn hedge_after_ns(&self) -> Option<u64> {
        self.hedge_span().map(Span::as_nanos)
    }

    /// Of an attempt: how long after its start another may join it, in seconds.
    #[getter]
    fn hedge_after(&self) -> Option<f64> {
        self.hedge_span().map(Span::as_secs_f64)
    }

    /// Of a retry or fallback: how long to sleep first, in nanoseconds.
    #[getter]
    fn after_ns(&self) -> Option<u64> {
        self.after_span().map(Span::as_nanos)
    }

    /// Of a retry or fallback: how long to sleep first, in seconds.
    #[getter]
    fn after(&self) -> Option<f64> {
        self.after_span().map(Span::as_secs_f64)
    }

    /// Of a retry, fallback or stop: why.
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        match self.action {
            Core::Retry { reason, .. } => Some(reason.name()),
            Core::Fallback { reason, .. } => Some(reason.name()),
            Core::Stop(stop) => Some(stop.reason.name()),
            _ => None,
        }
    }

    /// Of a stop: `failed` or `human`.
    #[getter]
    fn disposition(&self) -> Option<&'static str> {
        match self.action {
            Core::Stop(stop) => Some(stop.disposition.name()),
            _ => None,
        }
    }

    /// Of a stop: when it may work, in nanoseconds.
    #[getter]
    fn resume_in_ns(&self) -> Option<u64> {
        self.resume_span().map(Span::as_nanos)
    }

    /// Of a stop: when it may work, in seconds.
    #[getter]
    fn resume_in(&self) -> Option<f64> {
        self.resume_span().map(Span::as_secs_f64)
    }

    /// Of a retry or fallback of a stream: how many items the consumer is to discard.
    #[getter]
    fn discard(&self) -> Option<u64> {
        match self.redeliver()? {
            Redeliver::Discard(items) => Some(items),
            Redeliver::Resume(_) => None,
        }
    }

    /// Of a retry or fallback of a stream: how many items the function is to resume after.
    #[getter]
    fn resume(&self) -> Option<u64> {
        match self.redeliver()? {
            Redeliver::Resume(items) => Some(items),
            Redeliver::Discard(_) => None,
        }
    }

    /// The action as JSON, the same in every language.
    fn to_json(&self) -> String {
        self.action.to_json(&self.policy)
    }

    fn __repr__(&self) -> String {
        format!("<Action {}>", self.to_json())
    }
}
