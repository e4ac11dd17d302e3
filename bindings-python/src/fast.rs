//! The happy path: a callable that runs the first attempt by itself, and has made nothing yet when it succeeds.
//!
//! While an attempt of a plain function runs, a frame on a thread-local stack says so; `current_attempt()` and nested
//! calls look there. Under greenlets (gevent, eventlet, `SQLAlchemy`'s asyncio) a thread's stack is not one flow of
//! control: once `greenlet` has been imported, every attempt is a context variable of the driver's.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pyo3::exceptions::{PyAttributeError, PyException};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{PyTraverseError, PyVisit};

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

/// Whether calls may take the happy path. Off under a virtual clock.
#[pyfunction]
pub fn set_fast(on: bool) {
    FAST.store(on, Ordering::Relaxed);
}

/// The time, or zero where the happy path may not be taken: it is off, or a plain function's attempt is under way here.
#[pyfunction]
pub fn fast_now(py: Python<'_>) -> PyResult<u64> {
    Ok(if FAST.load(Ordering::Relaxed) && !framed(py)? { now().as_nanos().max(1) } else { 0 })
}

/// Of an attempt: for whom, when it began, its ids.
type Visible = (Py<PyAny>, u64, Py<PyAny>);

/// The innermost attempt on this thread that the happy path runs: the policy, when it began, and its ids, which `draw`
/// makes the first time somebody asks.
#[pyfunction]
pub fn current_frame(py: Python<'_>, draw: &Bound<'_, PyAny>) -> PyResult<Option<Visible>> {
    if !framed(py)? {
        return Ok(None);
    }
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
    /// It is a Python function, which becomes a method where it stands in a class.
    is_function: bool,
}

#[pymethods]
impl Retrying {
    #[new]
    fn new(function: &Bound<'_, PyAny>, owner: Py<PyAny>, driver: Py<PyAny>, plain: bool) -> PyResult<Retrying> {
        let is_function = function.get_type().is(function_type(function.py())?);
        Ok(Retrying { function: function.clone().unbind(), owner, driver, plain, is_function })
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let function = self.function.bind(py);
        if !self.plain || !FAST.load(Ordering::Relaxed) || greenlets(py)? || inside(py)? {
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
            Ok(value) if value.get_type().is(coroutine_type(py)?) => {
                adopt(py)?.call1((&self.owner, function, args, kwargs, value))
            }
            other => other,
        }
    }

    /// Where it stands in a class: a method, if the function itself would be one. A builtin or an object is not.
    fn __get__<'py>(
        slf: &Bound<'py, Self>,
        instance: Option<&Bound<'py, PyAny>>,
        owner: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let function = slf.get().function.bind(slf.py());
        let binds = |instance| match function.get_type().getattr_opt("__get__")? {
            Some(get) => PyResult::Ok(!get.call1((function, instance, owner))?.is(function)),
            None => Ok(false),
        };
        match instance.filter(|i| !i.is_none()) {
            Some(instance) if slf.get().is_function || binds(instance)? => {
                method_type(slf.py())?.call1((slf, instance))
            }
            _ => Ok(slf.clone().into_any()),
        }
    }

    /// Its call by name, `f.__call__`, is a Python function. Celery takes the module and the arguments of a task from
    /// there, and what a native type has in its place knows neither.
    fn __getattribute__<'py>(slf: &Bound<'py, Self>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        static BY_NAME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if name == "__call__" {
            return BY_NAME.import(slf.py(), "reprieve._functions", "called_by_name")?.call1((slf,));
        }
        slf.py().get_type::<PyAny>().getattr("__getattribute__")?.call1((slf, name))
    }

    /// What the one before does not find, of which `PyO3` would say the name alone.
    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        let kind = slf.get_type();
        Err(PyAttributeError::new_err(format!("'{}' object has no attribute '{name}'", kind.fully_qualified_name()?)))
    }

    /// By its name, as functions are pickled.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.getattr("__qualname__")
    }

    /// What a cycle may go through: a function's closure often holds the function itself.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.function)?;
        visit.call(&self.owner)?;
        visit.call(&self.driver)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<reprieve {}>", self.function.bind(py).repr()?))
    }
}

/// An outer attempt is visible here: on the stack of this thread, or as a context variable.
fn inside(py: Python<'_>) -> PyResult<bool> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if framed(py)? {
        return Ok(true);
    }
    let current = CURRENT.get_or_try_init(py, || {
        py.import("reprieve._current")?.getattr("CURRENT")?.getattr("get").map(Bound::unbind)
    })?;
    let found = current.bind(py).call0()?;
    Ok(!found.is_none() && !found.getattr("ended")?.is_truthy()?)
}

/// An attempt on this thread's stack is this flow of control's.
fn framed(py: Python<'_>) -> PyResult<bool> {
    Ok(FRAMES.with_borrow(|frames| !frames.is_empty()) && !greenlets(py)?)
}

/// Greenlets are in use in this process. Looked for again whenever modules have been imported.
fn greenlets(py: Python<'_>) -> PyResult<bool> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    static FOUND: AtomicBool = AtomicBool::new(false);
    if FOUND.load(Ordering::Relaxed) {
        return Ok(true);
    }
    let modules =
        MODULES.get_or_try_init(py, || Ok::<_, PyErr>(py.import("sys")?.getattr("modules")?.cast_into()?.unbind()))?;
    let modules = modules.bind(py);
    if SEEN.swap(modules.len(), Ordering::Relaxed) != modules.len() && modules.contains("greenlet")? {
        FOUND.store(true, Ordering::Relaxed);
    }
    Ok(FOUND.load(Ordering::Relaxed))
}

/// What goes on with a plain function that has answered a coroutine, as the methods of async clients do.
fn adopt(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static ADOPT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    ADOPT.import(py, "reprieve._aio", "adopt")
}

fn coroutine_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static COROUTINE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    COROUTINE.import(py, "types", "CoroutineType")
}

fn function_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static FUNCTION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    FUNCTION.import(py, "types", "FunctionType")
}

fn method_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static METHOD: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    METHOD.import(py, "types", "MethodType")
}
