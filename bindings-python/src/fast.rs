//! The happy path: a callable that runs the first attempt by itself, and has made nothing yet when it succeeds.
//!
//! While an attempt of a plain function runs, a frame on a thread-local stack says so; `current_attempt()` and nested
//! calls look there. Under greenlets a thread's stack is not one flow of control: there the driver's `contextvars`
//! are used instead (`set_fast(False)`).

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::now;

/// The first attempt of a call that is under way on this thread.
struct Frame {
    owner: Py<PyAny>,
    began: u64,
    /// What was drawn when somebody asked, for the call to keep.
    ids: Option<Py<PyAny>>,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

static FAST: AtomicBool = AtomicBool::new(true);

/// Whether calls may take the happy path. Off under a virtual clock and under greenlets.
#[pyfunction]
pub fn set_fast(on: bool) {
    FAST.store(on, Ordering::Relaxed);
}

/// The time, or zero where the happy path may not be taken: it is off, or a plain function's attempt is under way here.
#[pyfunction]
pub fn fast_now() -> u64 {
    if FAST.load(Ordering::Relaxed) && FRAMES.with_borrow(Vec::is_empty) { now().as_nanos().max(1) } else { 0 }
}

/// Of an attempt: for whom, when it began, its ids.
type Visible = (Py<PyAny>, u64, Py<PyAny>);

/// The innermost attempt on this thread that the happy path runs: the policy, when it began, and its ids, which `draw`
/// makes the first time somebody asks.
#[pyfunction]
pub fn current_frame(py: Python<'_>, draw: &Bound<'_, PyAny>) -> PyResult<Option<Visible>> {
    let found = FRAMES.with_borrow(|frames| {
        frames.last().map(|f| (f.owner.clone_ref(py), f.began, f.ids.as_ref().map(|i| i.clone_ref(py))))
    });
    let Some((owner, began, ids)) = found else { return Ok(None) };
    if let Some(ids) = ids {
        return Ok(Some((owner, began, ids)));
    }
    let ids = draw.call0()?.unbind();
    FRAMES.with_borrow_mut(|frames| {
        if let Some(frame) = frames.last_mut() {
            frame.ids = Some(ids.clone_ref(py));
        }
    });
    Ok(Some((owner, began, ids)))
}

/// Takes the frame away however the function ends.
struct Running;

impl Running {
    fn start(frame: Frame) -> Running {
        FRAMES.with_borrow_mut(|frames| frames.push(frame));
        Running
    }

    fn finish(self) -> Option<Frame> {
        std::mem::forget(self);
        FRAMES.with_borrow_mut(Vec::pop)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        FRAMES.with_borrow_mut(Vec::pop);
    }
}

/// A function under a policy. Calls it; a failure is handed to the driver, with the first attempt already made.
#[pyclass(frozen, dict, weakref, module = "reprieve")]
pub struct Retrying {
    function: Py<PyAny>,
    owner: Py<PyAny>,
    /// `driver(owner, function, args, kwargs, started)`; `started` is the failed first attempt, or `None`.
    driver: Py<PyAny>,
    /// Nothing but the policy bounds the calls: no guard, sink, listener, run or other option.
    plain: bool,
}

#[pymethods]
impl Retrying {
    #[new]
    fn new(function: Py<PyAny>, owner: Py<PyAny>, driver: Py<PyAny>, plain: bool) -> Retrying {
        Retrying { function, owner, driver, plain }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let function = self.function.bind(py);
        if !self.plain || !FAST.load(Ordering::Relaxed) || inside(py)? {
            return self.driver.bind(py).call1((&self.owner, function, args, kwargs, py.None()));
        }
        let began = now().as_nanos();
        let running = Running::start(Frame { owner: self.owner.clone_ref(py), began, ids: None });
        let result = function.call(args, kwargs);
        let frame = running.finish();
        match result {
            Err(error) if error.is_instance_of::<PyException>(py) => {
                let ids = frame.and_then(|frame| frame.ids);
                let started = (began, error.into_value(py), ids);
                self.driver.bind(py).call1((&self.owner, function, args, kwargs, started))
            }
            other => other,
        }
    }

    /// A method, where it stands in a class.
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        instance: Option<&Bound<'py, PyAny>>,
        _owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(instance) = instance.filter(|i| !i.is_none()) else { return Ok(slf.clone().into_any()) };
        method_type(slf.py())?.call1((slf, instance))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<reprieve {}>", self.function.bind(py).repr()?))
    }
}

/// An outer attempt is visible here: on the stack of this thread, or as a context variable.
fn inside(py: Python<'_>) -> PyResult<bool> {
    static CURRENT: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
    if FRAMES.with_borrow(|frames| !frames.is_empty()) {
        return Ok(true);
    }
    let current = CURRENT.get_or_try_init(py, || {
        py.import("reprieve._current")?.getattr("CURRENT")?.getattr("get").map(Bound::unbind)
    })?;
    let found = current.bind(py).call0()?;
    Ok(!found.is_none() && !found.getattr("ended")?.is_truthy()?)
}

fn method_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static METHOD: pyo3::sync::PyOnceLock<Py<PyType>> = pyo3::sync::PyOnceLock::new();
    METHOD.import(py, "types", "MethodType")
}
