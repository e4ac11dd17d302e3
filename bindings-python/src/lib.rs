//! The native half of reprieve for Python: the core's types as they are, and the callable of the happy path.
//!
//! Nothing here decides anything. No lock is held while user code runs: guards are locked only inside one call into
//! the core.

#![allow(clippy::needless_pass_by_value, reason = "PyO3 hands a function its arguments by value")]

mod action;
mod call;
mod failure;
mod fast;
mod guards;
mod policy;

use std::sync::OnceLock;
use std::time::Instant;

use pyo3::prelude::*;
use reprieve::Span;

/// Monotonic time in nanoseconds since the first time somebody asked: the epoch of every driver in this process.
fn now() -> Span {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    EPOCH.get_or_init(Instant::now).elapsed().into()
}

/// Monotonic nanoseconds on the clock that calls are timed with.
#[pyfunction(name = "now")]
fn now_ns() -> u64 {
    now().as_nanos()
}

/// An error of the package's own, by the name it has in `reprieve._errors`.
fn error<'py>(py: Python<'py>, class: &str, args: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let made = py.import("reprieve._errors").and_then(|m| m.getattr(class)).and_then(|class| class.call1(args));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

#[pymodule]
mod _native {
    #[pymodule_export]
    use super::action::Action;
    #[pymodule_export]
    use super::call::Call;
    #[pymodule_export]
    use super::failure::{
        Failure, classify, kinds, mask, parse_duration, says, stream_finishes, stream_item, timeline,
    };
    #[pymodule_export]
    use super::fast::{Retrying, current_frame, fast_now, set_fast};
    #[pymodule_export]
    use super::guards::{Guards, Run};
    #[pymodule_export]
    use super::now_ns;
    #[pymodule_export]
    use super::policy::Policy;
}
