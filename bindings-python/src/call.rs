//! The raw machine of one call. Local guards are asked in place, so that Python never sees an `Ask`.

use pyo3::prelude::*;
use reprieve::guard;
use reprieve::trace::Ids;
use reprieve::{Kind, KindSet, Outcome, Restore, Span, Step};

use crate::action::Action;
use crate::error;
use crate::failure::masks;
use crate::guards::{Guards, Run};
use crate::policy::Policy;

/// The raw machine of one call. Times are nanoseconds since any one epoch.
#[pyclass(module = "reprieve")]
#[expect(clippy::struct_field_names, reason = "it is the call, and what stands beside it")]
pub struct Call {
    call: reprieve::Call,
    guards: Option<Py<Guards>>,
    run: Option<Py<Run>>,
}

#[pymethods]
impl Call {
    /// A call that has not begun. `ids` is JSON: `trace_id` and as needed `idempotency_key`, `scene`,
    /// `prompt_version`, `outer_trace_id`, `client`. `ends_by` is a moment on the driver's clock.
    /// `repairs` are the kinds that can be repaired.
    #[new]
    #[pyo3(signature = (policy, seed, *, ids=None, guards=None, run=None, ends_by=None, recorded=true, heard=false, unmask=Vec::new(), repairs=Vec::new()))]
    #[expect(clippy::too_many_arguments, reason = "options by name, in Python")]
    fn new(
        py: Python<'_>,
        policy: &Policy,
        seed: u64,
        ids: Option<&str>,
        guards: Option<Py<Guards>>,
        run: Option<Py<Run>>,
        ends_by: Option<u64>,
        recorded: bool,
        heard: bool,
        unmask: Vec<String>,
        repairs: Vec<String>,
    ) -> PyResult<Call> {
        let call = reprieve::Call::new(policy.0.clone(), seed).repairing(kinds(py, &repairs)?);
        Call::with(py, call, ids, guards, run, ends_by, recorded, heard, &unmask)
    }

    /// The call whose first attempt a driver began by itself at `t0`.
    #[staticmethod]
    #[pyo3(signature = (policy, seed, t0, *, ids=None, unmask=Vec::new(), repairs=Vec::new()))]
    fn started(
        py: Python<'_>,
        policy: &Policy,
        seed: u64,
        t0: u64,
        ids: Option<&str>,
        unmask: Vec<String>,
        repairs: Vec<String>,
    ) -> PyResult<Call> {
        let call = reprieve::Call::started(policy.0.clone(), seed, Span::from_nanos(t0));
        let call = call.repairing(kinds(py, &repairs)?);
        Call::with(py, call, ids, None, None, None, true, false, &unmask)
    }

    fn begin(&mut self, py: Python<'_>, now_ns: u64) -> PyResult<Action> {
        let now = Span::from_nanos(now_ns);
        let step = self.call.begin(now).map_err(|e| error(py, "MisuseError", (e.to_string(),)))?;
        self.follow(py, now, step)
    }

    /// Takes an outcome (JSON: `success`, `failure` or `evidence`, and what stands beside them).
    fn on_outcome(&mut self, py: Python<'_>, now_ns: u64, number: u32, outcome: &str) -> PyResult<Action> {
        let now = Span::from_nanos(now_ns);
        let outcome = Outcome::from_json(outcome, self.call.policy())
            .map_err(|e| error(py, "ConfigError", (e.what, outcome, e.why)))?;
        let step =
            self.call.on_outcome(now, number, outcome).map_err(|e| error(py, "MisuseError", (e.to_string(),)))?;
        self.follow(py, now, step)
    }

    fn cancel(&mut self, py: Python<'_>, now_ns: u64) -> PyResult<Action> {
        let now = Span::from_nanos(now_ns);
        let step = self.call.cancel(now);
        self.follow(py, now, step)
    }

    /// An attempt (the latest unless said) has its first item: `pending`, or `ignored` where another was first.
    #[pyo3(signature = (now_ns, number=None))]
    fn first_item(&mut self, py: Python<'_>, now_ns: u64, number: Option<u32>) -> PyResult<Action> {
        let now = Span::from_nanos(now_ns);
        let step = self.call.first_item(now, number.unwrap_or(self.call.attempts()));
        self.follow(py, now, step)
    }

    /// The latest attempt is slow: another that joins it, or `pending`.
    fn hedge(&mut self, py: Python<'_>, now_ns: u64) -> PyResult<Action> {
        let now = Span::from_nanos(now_ns);
        let step = self.call.hedge(now);
        self.follow(py, now, step)
    }

    /// The call as JSON. `cancelled` marks only the copy: its driver has yet to tell this one.
    #[pyo3(signature = (now_ns, wall_now_ms, *, cancelled=false))]
    fn snapshot(&mut self, now_ns: u64, wall_now_ms: u64, cancelled: bool) -> String {
        let now = Span::from_nanos(now_ns);
        if !cancelled {
            return self.call.snapshot(now, wall_now_ms);
        }
        let mut copy = self.call.clone();
        let _ = copy.cancel(now);
        copy.snapshot(now, wall_now_ms)
    }

    /// The call of a snapshot, and its next action.
    #[staticmethod]
    #[pyo3(signature = (snapshot, now_ns, wall_now_ms, *, count_suspended=true, guards=None, run=None, ends_by=None, repairs=Vec::new()))]
    #[expect(clippy::too_many_arguments, reason = "options by name, in Python")]
    fn restore(
        py: Python<'_>,
        snapshot: &str,
        now_ns: u64,
        wall_now_ms: u64,
        count_suspended: bool,
        guards: Option<Py<Guards>>,
        run: Option<Py<Run>>,
        ends_by: Option<u64>,
        repairs: Vec<String>,
    ) -> PyResult<(Call, Action)> {
        let now = Span::from_nanos(now_ns);
        let guarded = guards.is_some() || run.is_some();
        let ends_by = earliest(py, ends_by, run.as_ref());
        let options = Restore { count_suspended, guarded, ends_by, repairs: kinds(py, &repairs)? };
        let (call, step) = reprieve::Call::restore(snapshot, now, wall_now_ms, options)
            .map_err(|e| error(py, "SnapshotError", (e.to_string(),)))?;
        let mut call = Call { call, guards, run };
        let action = call.follow(py, now, step)?;
        Ok((call, action))
    }

    /// Record lines since the last time.
    fn take_lines(&mut self) -> Vec<String> {
        self.call.take_lines()
    }

    /// Event lines since the last time.
    fn take_events(&mut self) -> Vec<String> {
        self.call.take_events()
    }

    /// Every record line so far.
    fn lines(&self) -> Vec<String> {
        self.call.lines()
    }

    /// The last classified failure.
    #[getter]
    fn failure(&self) -> Option<crate::failure::Failure> {
        self.call.last_failure().cloned().map(Into::into)
    }

    #[getter]
    fn state(&self) -> &'static str {
        self.call.state()
    }

    #[getter]
    fn attempts(&self) -> u32 {
        self.call.attempts()
    }

    #[getter]
    fn attempts_on_target(&self) -> u32 {
        self.call.attempts_on_target()
    }

    #[getter]
    fn is_last(&self) -> bool {
        self.call.is_last()
    }

    #[getter]
    fn time_left_ns(&self) -> u64 {
        self.call.time_left().as_nanos()
    }

    /// Its trace id; empty where it was given none.
    #[getter]
    fn trace_id(&self) -> &str {
        self.call.ids().map_or("", |ids| ids.trace_id.as_str())
    }
}

impl Call {
    #[expect(clippy::too_many_arguments, reason = "the two constructors' options")]
    fn with(
        py: Python<'_>,
        mut call: reprieve::Call,
        ids: Option<&str>,
        guards: Option<Py<Guards>>,
        run: Option<Py<Run>>,
        ends_by: Option<u64>,
        recorded: bool,
        heard: bool,
        unmask: &[String],
    ) -> PyResult<Call> {
        if guards.is_some() || run.is_some() {
            call = call.guarded();
        }
        if let Some(moment) = earliest(py, ends_by, run.as_ref()) {
            call = call.ends_by(moment);
        }
        if recorded {
            call = call.recorded();
        }
        if heard {
            call = call.heard();
        }
        if !unmask.is_empty() {
            call = call.with_masks(masks(py, unmask)?);
        }
        if let Some(ids) = ids {
            let read = Ids::from_json(ids).map_err(|e| error(py, "ConfigError", ("ids", ids, e.why)))?;
            call = call.with_ids(read);
        }
        Ok(Call { call, guards, run })
    }

    fn settle(&self, py: Python<'_>, now: Span, settles: &[guard::Settle]) {
        if settles.is_empty() {
            return;
        }
        let mut guards = self.guards.as_ref().map(|g| g.bind(py).get().lock());
        let mut run = self.run.as_ref().map(|r| r.bind(py).get().lock());
        guard::settle(now, guards.as_deref_mut(), run.as_deref_mut(), self.call.policy(), settles);
    }

    /// Settles, and lets the local guards answer until there is something to do.
    fn follow(&mut self, py: Python<'_>, now: Span, mut step: Step) -> PyResult<Action> {
        loop {
            self.settle(py, now, &step.settles);
            let reprieve::Action::Ask(asks) = &step.action else {
                return Ok(Action { action: step.action, policy: self.call.policy().clone() });
            };
            let answer = {
                let mut guards = self.guards.as_ref().map(|g| g.bind(py).get().lock());
                let mut run = self.run.as_ref().map(|r| r.bind(py).get().lock());
                guard::answer(now, guards.as_deref_mut(), run.as_deref_mut(), asks)
            };
            step = self.call.on_answer(now, answer).map_err(|e| error(py, "MisuseError", (e.to_string(),)))?;
        }
    }
}

/// The kinds of these names.
fn kinds(py: Python<'_>, names: &[String]) -> PyResult<KindSet> {
    let kind =
        |name: &String| Kind::from_name(name).ok_or_else(|| error(py, "ConfigError", ("repairs", name, "a kind")));
    names.iter().map(kind).collect()
}

/// The outer bound of a call: what it was given, or its run's deadline where that comes first.
fn earliest(py: Python<'_>, ends_by: Option<u64>, run: Option<&Py<Run>>) -> Option<Span> {
    let run_ends = run.and_then(|run| run.bind(py).get().lock().deadline());
    ends_by.map(Span::from_nanos).into_iter().chain(run_ends).min()
}
