//! A call that speaks JSON, and asks the guards it is lent in place: its binding never sees an `Ask`.

use super::{Refused, moment, read, seed_of, surface};
use crate::guard::{self, Answer, Grant, Guards, Run, Settle};
use crate::json::at::At;
use crate::trace::{Ids, Masks};
use crate::{Action, Call, Category, KindSet, Outcome, Policy, Restore, Span, Step};

/// The guards and the run of a call, lent to it for one question. How they are shared is the binding's.
#[derive(Debug, Default)]
pub struct Peers<'a> {
    /// Breakers, budgets, cooldowns, load.
    pub guards: Option<&'a mut Guards>,
    /// The run that the call is part of.
    pub run: Option<&'a mut Run>,
}

/// One call for a binding that speaks JSON and counts time in nanoseconds since its epoch.
///
/// ```
/// use reprieve::Policy;
/// use reprieve::wire::{Machine, Peers};
///
/// let policy = Policy::from_json(r#"{"jitter": {"kind": "none"}}"#)?;
/// let mut call = Machine::new(&policy, "7", "{}", &Peers::default())?;
/// assert!(call.begin(0.0, Peers::default())?.contains(r#""number":1"#));
/// let next = call.on_outcome(5.0, 1, r#"{"failure": {"kind": "timeout"}}"#, Peers::default())?;
/// assert_eq!(next, r#"{"retry":{"after_ns":500000000,"reason":"timeout"}}"#);
/// # Ok::<(), reprieve::wire::Refused>(())
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    call: Call,
    /// What a restored call is to do next.
    restored: String,
}

/// Options of a new call.
#[derive(Default)]
struct Options {
    ids: Option<Ids>,
    ends_by: Option<Span>,
    recorded: bool,
    heard: bool,
    unmask: Vec<String>,
    repairs: KindSet,
}

impl Options {
    fn read(at: &At<'_>) -> Options {
        let fields = at.object(&["ids", "endsBy", "recorded", "heard", "unmask", "repairs"]);
        let mut options = Options::default();
        fields.fill("ids", &mut options.ids);
        fields.fill("endsBy", &mut options.ends_by);
        fields.fill("recorded", &mut options.recorded);
        fields.fill("heard", &mut options.heard);
        options.unmask = fields.maybe("unmask", |at| at.items(At::words)).unwrap_or_default();
        options.repairs = fields.maybe("repairs", repairs).unwrap_or_default();
        options
    }
}

fn repairs(at: &At<'_>) -> KindSet {
    at.kinds(|kind| kind.category() != Category::Control)
}

impl Machine {
    /// A call that has not begun. `options` is JSON: `ids`, `endsBy`, `recorded`, `heard`, `unmask`, `repairs`.
    ///
    /// # Errors
    /// A seed that is no decimal u64, an option that is not one.
    pub fn new(policy: &Policy, seed: &str, options: &str, peers: &Peers<'_>) -> Result<Machine, Refused> {
        let call = Call::new(policy.clone(), seed_of(seed)?);
        Machine::with(call, options, peers)
    }

    /// The call whose first attempt the driver began by itself at `t0`: without guards, or because they were calm then
    /// ([`Guards::calm`] answered `calm`).
    ///
    /// # Errors
    /// As [`Machine::new`].
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number came from here")]
    pub fn started(
        policy: &Policy,
        seed: &str,
        t0: f64,
        options: &str,
        calm: Option<f64>,
        peers: &Peers<'_>,
    ) -> Result<Machine, Refused> {
        let (seed, t0) = (seed_of(seed)?, moment(t0));
        if peers.guards.is_none() {
            return Machine::with(Call::started(policy.clone(), seed, t0), options, peers);
        }
        let mut machine = Machine::with(Call::new(policy.clone(), seed), options, peers)?;
        let _ask = machine.call.begin(t0)?;
        let grant = Grant::calm(policy, calm.map_or(0, |generation| generation as u64), t0);
        let _attempt = machine.call.on_answer(t0, Answer::Granted(grant))?;
        Ok(machine)
    }

    /// The call of a snapshot; what it does next is [`Machine::restored`]. `options` is JSON: `countSuspended`,
    /// `endsBy`, `repairs`.
    ///
    /// # Errors
    /// A snapshot that is damaged or of another version, an option that is not one.
    pub fn restore(
        snapshot: &str,
        now: f64,
        wall_now_ms: f64,
        options: &str,
        mut peers: Peers<'_>,
    ) -> Result<Machine, Refused> {
        let asked = read("options", options, |at| {
            let fields = at.object(&["countSuspended", "endsBy", "repairs"]);
            let guarded = peers.guards.is_some() || peers.run.is_some();
            let mut how = Restore { guarded, ..Restore::default() };
            fields.fill("countSuspended", &mut how.count_suspended);
            fields.fill("endsBy", &mut how.ends_by);
            how.repairs = fields.maybe("repairs", repairs).unwrap_or_default();
            how
        })?;
        let run_ends = peers.run.as_ref().and_then(|run| run.deadline());
        let how = Restore { ends_by: asked.ends_by.into_iter().chain(run_ends).min(), ..asked };
        let now = moment(now);
        let (call, step) = Call::restore(snapshot, now, moment(wall_now_ms).as_nanos(), how)?;
        let mut machine = Machine { call, restored: String::new() };
        machine.restored = machine.follow(now, step, &mut peers)?;
        Ok(machine)
    }

    fn with(mut call: Call, options: &str, peers: &Peers<'_>) -> Result<Machine, Refused> {
        let options = read("options", options, Options::read)?;
        let run_ends = peers.run.as_ref().and_then(|run| run.deadline());
        for end in options.ends_by.into_iter().chain(run_ends) {
            call = call.ends_by(end);
        }
        if peers.guards.is_some() || peers.run.is_some() {
            call = call.guarded();
        }
        if options.recorded {
            call = call.recorded();
        }
        if options.heard {
            call = call.heard();
        }
        call = call.repairing(options.repairs);
        if let Some(ids) = options.ids {
            call = call.with_ids(ids);
        }
        let masks = Masks::without(&options.unmask).map_err(|e| surface::unknown("unmask", &e))?;
        Ok(Machine { call: call.with_masks(masks), restored: String::new() })
    }

    /// The next action: to begin.
    ///
    /// # Errors
    /// Misuse: an attempt is in flight, or the call has ended.
    pub fn begin(&mut self, now: f64, mut peers: Peers<'_>) -> Result<String, Refused> {
        let step = self.call.begin(moment(now))?;
        self.follow(moment(now), step, &mut peers)
    }

    /// The next action after an attempt's outcome, which is JSON ([`Outcome::from_json`]).
    ///
    /// # Errors
    /// Misuse: no attempt of this number was issued. What is no outcome.
    pub fn on_outcome(
        &mut self,
        now: f64,
        attempt: u32,
        outcome: &str,
        mut peers: Peers<'_>,
    ) -> Result<String, Refused> {
        let outcome = Outcome::from_json(outcome, self.call.policy())?;
        let step = self.call.on_outcome(moment(now), attempt, outcome)?;
        self.follow(moment(now), step, &mut peers)
    }

    /// Cancels the call.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn cancel(&mut self, now: f64, mut peers: Peers<'_>) -> Result<String, Refused> {
        let step = self.call.cancel(moment(now));
        self.follow(moment(now), step, &mut peers)
    }

    /// An attempt has its first item: `pending`, or `ignored` where another one was first.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn first_item(&mut self, now: f64, attempt: u32, mut peers: Peers<'_>) -> Result<String, Refused> {
        let step = self.call.first_item(moment(now), attempt);
        self.follow(moment(now), step, &mut peers)
    }

    /// The latest attempt is slow: whether another joins it.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub fn hedge(&mut self, now: f64, mut peers: Peers<'_>) -> Result<String, Refused> {
        let step = self.call.hedge(moment(now));
        self.follow(moment(now), step, &mut peers)
    }

    /// What a restored call is to do next; empty for any other.
    #[must_use]
    pub fn restored(&self) -> &str {
        &self.restored
    }

    /// The call written down, to go on elsewhere.
    pub fn snapshot(&mut self, now: f64, wall_now_ms: f64) -> String {
        self.call.snapshot(moment(now), moment(wall_now_ms).as_nanos())
    }

    /// The record lines since the last time, as a JSON list of texts.
    pub fn take_lines(&mut self) -> String {
        super::texts(self.call.take_lines())
    }

    /// Every record line so far, as a JSON list of texts.
    #[must_use]
    pub fn lines(&self) -> String {
        super::texts(self.call.lines())
    }

    /// The events since the last time, as a JSON list of texts.
    pub fn take_events(&mut self) -> String {
        super::texts(self.call.take_events())
    }

    /// The last failure as JSON.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        self.call.last_failure().map(crate::Failure::to_json)
    }

    /// The call itself, to look at.
    #[must_use]
    pub fn call(&self) -> &Call {
        &self.call
    }

    fn settle(&self, now: Span, settles: &[Settle], peers: &mut Peers<'_>) {
        let (guards, run) = (peers.guards.as_deref_mut(), peers.run.as_deref_mut());
        guard::settle(now, guards, run, self.call.policy(), settles);
    }

    /// Settles, and lets the guards answer until there is something to do.
    fn follow(&mut self, now: Span, mut step: Step, peers: &mut Peers<'_>) -> Result<String, Refused> {
        loop {
            self.settle(now, &step.settles, peers);
            let Action::Ask(asks) = &step.action else {
                return Ok(step.action.to_json(self.call.policy()));
            };
            let answer = guard::answer(now, peers.guards.as_deref_mut(), peers.run.as_deref_mut(), asks);
            step = self.call.on_answer(now, answer)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Machine, Peers};
    use crate::guard::Guards;
    use crate::{Policy, Span};

    fn lend(guards: &mut Guards) -> Peers<'_> {
        Peers { guards: Some(guards), run: None }
    }

    #[test]
    fn a_call_that_a_driver_began_in_a_calm_is_the_one_that_asked() {
        let policy =
            Policy::from_json(r#"{"breaker": {"consecutive_failures": 1}, "max_attempts": 1}"#).expect("a policy");
        let (mut one, mut other) = (Guards::new(), Guards::new());
        let mut asked = Machine::new(&policy, "7", "{}", &lend(&mut one)).expect("a call");
        asked.begin(5.0, lend(&mut one)).expect("an attempt");
        let calm = crate::wire::calm(&other, &policy, 5.0);
        let mut began = Machine::started(&policy, "7", 5.0, "{}", calm, &lend(&mut other)).expect("a call");
        assert_eq!(asked.snapshot(6.0, 0.0), began.snapshot(6.0, 0.0));

        let failure = r#"{"failure": {"kind": "server_error"}}"#;
        let ends = [(&mut asked, &mut one), (&mut began, &mut other)]
            .map(|(machine, guards)| machine.on_outcome(7.0, 1, failure, lend(guards)).expect("a stop"));
        assert_eq!(ends[0], ends[1]);
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
        assert_eq!(one.breaker_state(&policy, 0, Span::ZERO), Some("open"));
    }
}
