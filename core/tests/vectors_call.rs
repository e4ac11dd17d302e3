//! Runs the `call` and `delay` vectors through the raw machine. A case whose first step is a plain `begin` runs a
//! second time from `Call::started`, the happy path's late start.

mod common;

use std::collections::BTreeMap;

use common::{Case, Failed, cases, check, policy_of, span, verb};
use reprieve::backoff::Point;
use reprieve::guard::{self, Guards, Run, RunConfig};
use reprieve::policy::Millionths;
use reprieve::trace::Ids;
use reprieve::{Action, Call, Kind, KindSet, Misuse, Outcome, Policy, Restore, Span, Step};
use serde_json::{Value, json};

#[test]
fn calls_decide_as_the_vectors_say() {
    let mut failed = Failed::default();
    for case in cases("call") {
        failed.run(&case, |case| World::new(case, false)?.play(case));
        if plain_begin(&case) {
            failed.run(&case, |case| World::new(case, true)?.play(case).map_err(|e| format!("from `started`: {e}")));
        }
    }
    failed.report();
}

#[test]
fn waits_are_as_the_vectors_say() {
    let mut failed = Failed::default();
    for case in cases("delay") {
        failed.run(&case, delay);
    }
    failed.report();
}

/// The case can be started late: it begins at once, and nothing but the policy bounds it.
fn plain_begin(case: &Case) -> bool {
    let bound = ["guards", "run", "options"].iter().any(|name| !case[*name].is_null());
    let bound = bound || policy_of(case).is_ok_and(|policy| policy.hedge.is_some());
    case["steps"][0]["do"] == "begin" && case["steps"][0]["expect"]["attempt"].is_object() && !bound
}

/// What a case plays in: a call, the calls that were named, and the guards they share.
struct World {
    policy: Policy,
    seed: u64,
    started: bool,
    guards: Option<Guards>,
    run: Option<Run>,
    call: Call,
    name: String,
    parked: BTreeMap<String, Call>,
    snapshot: String,
}

impl World {
    fn new(case: &Case, started: bool) -> Result<World, String> {
        let (policy, seed) = (policy_of(case)?, seed(&case["seed"]));
        let run = match &case["run"] {
            Value::Null => None,
            config => Some(Run::new(RunConfig::from_json(&config.to_string()).map_err(|e| e.to_string())?)),
        };
        let mut world = World {
            call: Call::new(policy.clone(), seed),
            policy,
            seed,
            started,
            guards: (case["guards"] == true).then(Guards::new),
            run,
            name: String::new(),
            parked: BTreeMap::new(),
            snapshot: String::new(),
        };
        world.call = world.fresh(world.policy.clone(), seed, &case["options"]);
        Ok(world)
    }

    fn fresh(&self, policy: Policy, seed: u64, options: &Value) -> Call {
        let mut call = Call::new(policy, seed).recorded();
        if self.guards.is_some() || self.run.is_some() {
            call = call.guarded();
        }
        if let Some(moment) = self.run.as_ref().and_then(Run::deadline) {
            call = call.ends_by(moment);
        }
        if let Some(moment) = options["ends_by"].as_str() {
            call = call.ends_by(span(moment));
        }
        call.with_ids(ids(options)).repairing(repairs(options))
    }

    fn play(mut self, case: &Case) -> Result<(), String> {
        for (i, step) in case["steps"].as_array().ok_or("no steps")?.iter().enumerate() {
            let at = span(step["at"].as_str().ok_or("a step needs `at`")?);
            let seen = self.act(at, &step["do"]).map_err(|e| format!("step {i}: {e}"))?;
            let Some(expect) = step.get("expect") else { continue };
            check(expect, &seen).map_err(|e| format!("step {i} at {at}, {}: {e}", step["do"]))?;
        }
        Ok(())
    }

    fn act(&mut self, at: Span, what: &Value) -> Result<Value, String> {
        let (name, body) = verb(what);
        match name {
            "begin" if self.started && self.call.state() == "ready" && self.call.attempts() == 0 => {
                self.call = Call::started(self.policy.clone(), self.seed, at).recorded();
                let timeout = self.policy.targets[0].attempt_timeout.or(self.policy.attempt_timeout);
                let timeout = timeout.unwrap_or(Span::MAX).min(self.policy.total_timeout);
                Ok(self.seen(&Action::Attempt { number: 1, target: 0, timeout, hedge_after: None }))
            }
            "begin" => {
                let step = self.call.begin(at);
                self.follow(at, step)
            }
            "cancel" => {
                let step = self.call.cancel(at);
                self.follow(at, Ok(step))
            }
            "hedge" => {
                let step = self.call.hedge(at);
                self.follow(at, Ok(step))
            }
            "first_item" => {
                let number = body["attempt"].as_u64().map_or(self.call.attempts(), |n| u32::try_from(n).unwrap());
                let step = self.call.first_item(at, number);
                self.follow(at, Ok(step))
            }
            "success" | "failure" | "evidence" => self.outcome(at, what),
            "call" => self.switch(body).map(|()| Value::Null),
            "snapshot" => {
                self.snapshot = self.call.snapshot(at, body["wall"].as_u64().ok_or("wall")?);
                Ok(Value::Null)
            }
            "restore" => self.restore(at, body),
            "report" => {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
                let ratio = body["cost_ratio"].as_f64().map(|r| Millionths((r * 1e6).round() as u64));
                self.guards.as_mut().ok_or("no guards")?.report(body["queue_depth"].as_u64(), ratio);
                Ok(Value::Null)
            }
            "run_cancel" => {
                self.run.as_mut().ok_or("no run")?.cancel(body.as_str().unwrap_or("cancelled"));
                Ok(Value::Null)
            }
            "receipts" => Ok(self.lines()?.into_iter().filter(|line| line.get("record").is_none()).collect()),
            "ended" => Ok(self.lines()?.pop().filter(|line| line["record"] == "call_ended").unwrap_or_default()),
            other => Err(format!("no such thing to do: {other}")),
        }
    }

    fn outcome(&mut self, at: Span, what: &Value) -> Result<Value, String> {
        let number = what["attempt"].as_u64().map_or(self.call.attempts(), |n| u32::try_from(n).unwrap());
        let mut wire = what.clone();
        let fields = wire.as_object_mut().ok_or("not an object")?;
        fields.remove("attempt");
        // What a success brings with it stands inside it in the vectors, beside it on the wire.
        if let Some(Value::Object(within)) = fields.get_mut("success").map(Value::take) {
            fields.insert("success".into(), json!({}));
            fields.extend(within);
        }
        let outcome = Outcome::from_json(&wire.to_string(), self.call.policy()).map_err(|e| e.to_string())?;
        let step = self.call.on_outcome(at, number, outcome);
        self.follow(at, step)
    }

    fn restore(&mut self, at: Span, body: &Value) -> Result<Value, String> {
        let guarded = self.guards.is_some() || self.run.is_some();
        let options = Restore {
            count_suspended: body["count_suspended"] != false,
            guarded,
            repairs: repairs(body),
            ..Restore::default()
        };
        let wall = body["wall"].as_u64().ok_or("wall")?;
        let (call, step) = Call::restore(&self.snapshot, at, wall, options).map_err(|e| e.to_string())?;
        self.call = call;
        self.follow(at, Ok(step))
    }

    /// Settles with the guards and lets them answer every `Ask`, as a driver does.
    fn follow(&mut self, at: Span, step: Result<Step, Misuse>) -> Result<Value, String> {
        let Ok(mut step) = step else { return Ok(json!({"error": "misuse"})) };
        loop {
            guard::settle(at, self.guards.as_mut(), self.run.as_mut(), self.call.policy(), &step.settles);
            let Action::Ask(asks) = &step.action else { return Ok(self.seen(&step.action)) };
            if self.guards.is_none() && self.run.is_none() {
                return Err("a call without guards asks".into());
            }
            let answer = guard::answer(at, self.guards.as_mut(), self.run.as_mut(), asks);
            step = self.call.on_answer(at, answer).map_err(|e| e.to_string())?;
        }
    }

    fn seen(&self, action: &Action) -> Value {
        serde_json::from_str(&action.to_json(self.call.policy())).expect("JSON")
    }

    /// Every line so far, as JSON. A copy writes them, so that asking twice shows the same.
    fn lines(&self) -> Result<Vec<Value>, String> {
        let lines = self.call.clone().take_lines();
        lines.iter().map(|line| serde_json::from_str(line).map_err(|e| e.to_string())).collect()
    }

    fn switch(&mut self, body: &Value) -> Result<(), String> {
        let name = body.as_str().or(body["name"].as_str()).unwrap_or_default().to_owned();
        let next = match body.is_string().then(|| self.parked.remove(&name)) {
            Some(Some(parked)) => parked,
            Some(None) => return Err(format!("no call is named {name}")),
            None => {
                let own = ["policy", "preset"].iter().any(|key| body.get(*key).is_some());
                let policy = if own { policy_of(body)? } else { self.policy.clone() };
                let seed = if body["seed"].is_null() { self.seed } else { seed(&body["seed"]) };
                self.fresh(policy, seed, &body["options"])
            }
        };
        let last = std::mem::replace(&mut self.call, next);
        self.parked.insert(std::mem::replace(&mut self.name, name), last);
        Ok(())
    }
}

/// The kinds that can be repaired.
fn repairs(options: &Value) -> KindSet {
    let names = options["repairs"].as_array().into_iter().flatten();
    names.map(|name| name.as_str().and_then(Kind::from_name).expect("a kind")).collect()
}

fn ids(options: &Value) -> Ids {
    let text = |name: &str| options[name].as_str().map(str::to_owned);
    Ids {
        trace_id: text("trace_id").unwrap_or_default(),
        idempotency_key: text("idempotency_key"),
        scene: text("scene"),
        prompt_version: text("prompt_version"),
        outer_trace_id: text("outer_trace_id"),
        client: text("client"),
    }
}

fn seed(value: &Value) -> u64 {
    value.as_u64().or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

/// The wait after attempt `attempt`, the `n`th on its target, when any wait fits.
fn delay(case: &Case) -> Result<(), String> {
    let policy = policy_of(case)?;
    let kind = case["kind"].as_str().and_then(Kind::from_name).ok_or("no such kind")?;
    let number = |name: &str| u32::try_from(case[name].as_u64().unwrap_or(1)).unwrap();
    let previous = case["previous"].as_str().map(span);
    let at = Point { seed: seed(&case["seed"]), attempt: number("attempt"), n: number("n"), previous };
    let wish = case["retry_after"].as_str().map(span);
    let seen = policy.delay(policy.backoff_after(kind, at), wish, at, Span::MAX);
    let expected = span(case["expect"].as_str().ok_or("expect is a duration")?);
    if seen == expected {
        Ok(())
    } else {
        Err(format!("expected {expected} ({} ns), saw {seen} ({} ns)", expected.as_nanos(), seen.as_nanos()))
    }
}
