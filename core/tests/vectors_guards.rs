//! Runs the vectors of topic `guard`: every machine alone, step by step. The words are in each file's `about`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use reprieve::guard::{Breaker, Cooldown, Load, Permit, Refusal, RefusedBy, RetryBudget, Run, RunConfig, Verdict};
use reprieve::policy::{BreakerConfig, CooldownConfig, Millionths, RetryBudgetConfig, ShedConfig, Trip};
use reprieve::{Kind, Span};
use serde_json::{Map, Value, json};

/// What a step showed, by the words of `expect`.
type Seen = Map<String, Value>;

#[test]
fn guard_vectors() {
    let (mut ids, mut failures) = (BTreeSet::new(), Vec::new());
    for file in list(&read("index.json"), "files").iter().filter(|file| file["topic"] == "guard") {
        let name = text(file, "file");
        let vectors = read(name);
        let cases = list(&vectors, "cases");
        assert_eq!(Some(cases.len() as u64), file["cases"].as_u64(), "{name}: the count in index.json differs");
        for case in cases {
            assert!(ids.insert(text(case, "id").to_owned()), "{} is there twice", case["id"]);
            failures.extend(run_case(case));
        }
    }
    assert!(!ids.is_empty(), "index.json lists no guard vectors");
    assert!(failures.is_empty(), "{} of {} cases:\n{}", failures.len(), ids.len(), failures.join("\n"));
}

/// The first step that went otherwise.
fn run_case(case: &Value) -> Option<String> {
    let mut machine = Machine::new(case);
    for (i, step) in list(case, "steps").iter().enumerate() {
        let (word, argument) = match &step["do"] {
            Value::String(word) => (word.as_str(), &Value::Null),
            other => entry(other),
        };
        let seen = machine.step(span(&step["at"]), word, argument, step["do"]["times"].as_u64());
        for (field, expected) in step["expect"].as_object().into_iter().flatten() {
            let got = seen.get(field).unwrap_or(&Value::Null);
            if *got != canonical(field, expected) {
                let (id, says) = (&case["id"], &case["description"]);
                return Some(format!("{id} step {i} {}: {field} is {got}, not {expected}\n  {says}", step["do"]));
            }
        }
    }
    None
}

/// Expected durations are compared as the text the engine writes.
fn canonical(field: &str, expected: &Value) -> Value {
    match expected {
        Value::String(_) if matches!(field, "resume_in" | "held") => json!(span(expected).to_string()),
        other => other.clone(),
    }
}

/// The machine of a case, with its configuration and the permits that were kept.
enum Machine {
    Breaker(Breaker, BreakerConfig, BTreeMap<String, Permit>),
    RetryBudget(RetryBudget, RetryBudgetConfig),
    Cooldown(Cooldown, CooldownConfig, Span, BTreeMap<String, (String, Permit)>),
    Shed(Load, ShedConfig),
    Run(Run),
}

impl Machine {
    fn new(case: &Value) -> Machine {
        let config = &case["config"];
        match text(case, "guard") {
            "breaker" => Machine::Breaker(Breaker::default(), breaker_config(config), BTreeMap::new()),
            "retry_budget" => Machine::RetryBudget(RetryBudget::default(), retry_budget_config(config)),
            "cooldown" => {
                let lease = optional_span(&case["probe_lease"]).unwrap_or(Span::from_secs(60));
                let config = CooldownConfig { max: span(&config["max"]), bench: span(&config["bench"]) };
                Machine::Cooldown(Cooldown::default(), config, lease, BTreeMap::new())
            }
            "shed" => Machine::Shed(Load::default(), shed_config(config)),
            "run" => Machine::Run(Run::new(run_config(config))),
            other => panic!("there is no guard {other}"),
        }
    }

    fn step(&mut self, at: Span, word: &str, argument: &Value, times: Option<u64>) -> Seen {
        match self {
            Machine::Breaker(breaker, config, permits) => step_breaker(breaker, config, permits, at, word, argument),
            Machine::RetryBudget(budget, config) => step_budget(budget, config, at, word, argument, times),
            Machine::Cooldown(cooldown, config, lease, permits) => {
                step_cooldown(cooldown, config, *lease, permits, at, word, argument)
            }
            Machine::Shed(load, config) => step_shed(load, config, word, argument),
            Machine::Run(run) => step_run(run, at, word, argument),
        }
    }
}

fn step_breaker(
    breaker: &mut Breaker,
    config: &BreakerConfig,
    permits: &mut BTreeMap<String, Permit>,
    at: Span,
    word: &str,
    argument: &Value,
) -> Seen {
    let mut seen = Seen::new();
    match word {
        "admit" => {
            let answer = breaker.admit(at, config);
            seen = answered(answer.as_ref().err());
            if let Ok(permit) = answer {
                seen.insert("probe".to_owned(), permit.probe.into());
                permits.insert(name(argument).to_owned(), permit);
            }
        }
        "calls" => {
            let (word, times) = entry(argument);
            for _ in 0..number(times) {
                let permit = breaker.admit(at, config).expect("a call of `calls` is admitted");
                breaker.settle(at, config, permit, verdict(word));
            }
        }
        "state" => {}
        _ => breaker.settle(at, config, permits[name(argument)], verdict(word)),
    }
    seen.insert("state".to_owned(), breaker.state(at).name().into());
    seen.insert("held".to_owned(), breaker.held(at, config).map(|left| left.to_string()).into());
    seen
}

fn step_budget(
    budget: &mut RetryBudget,
    config: &RetryBudgetConfig,
    at: Span,
    word: &str,
    argument: &Value,
    times: Option<u64>,
) -> Seen {
    let mut seen = Seen::new();
    match word {
        "retry" => {
            let mut count = 0;
            for _ in 0..times.unwrap_or(1) {
                let answer = budget.charge(at, config, kind(argument));
                seen = answered(answer.as_ref().err());
                if let Ok(charge) = answer {
                    count += 1;
                    seen.insert("cost".to_owned(), charge.cost.into());
                    seen.insert("before".to_owned(), charge.before.into());
                    seen.insert("after".to_owned(), charge.after.into());
                }
            }
            seen.insert("count".to_owned(), count.into());
        }
        "request" => (0..number(argument)).for_each(|_| budget.request(at, config)),
        "refund" => (0..number(argument)).for_each(|_| budget.refund(config)),
        "return" => budget.give_back(config, small(argument)),
        "look" => {}
        other => panic!("a retry budget does not know {other}"),
    }
    seen.insert("tokens".to_owned(), budget.tokens(at, config).into());
    seen
}

fn step_cooldown(
    cooldown: &mut Cooldown,
    config: &CooldownConfig,
    lease: Span,
    permits: &mut BTreeMap<String, (String, Permit)>,
    at: Span,
    word: &str,
    argument: &Value,
) -> Seen {
    let keys = || (text(argument, "account"), text(argument, "upstream"));
    match word {
        "failure" => {
            let (account, upstream) = keys();
            let retry_after = optional_span(&argument["retry_after"]);
            cooldown.failed(at, config, account, upstream, kind(&argument["kind"]), retry_after);
            Seen::new()
        }
        "admit" => {
            let (account, upstream) = keys();
            let answer = cooldown.admit(at, account, upstream, lease);
            let mut seen = answered(answer.as_ref().err());
            if let Ok(Some(permit)) = answer {
                seen.insert("probe".to_owned(), permit.probe.into());
                permits.insert(text(argument, "permit").to_owned(), (account.to_owned(), permit));
            }
            seen
        }
        _ => {
            let (account, permit) = &permits[name(argument)];
            cooldown.settle(at, account, *permit, verdict(word));
            Seen::new()
        }
    }
}

fn step_shed(load: &mut Load, config: &ShedConfig, word: &str, argument: &Value) -> Seen {
    match word {
        "report" => {
            load.report(argument["queue_depth"].as_u64(), millionths(&argument["cost_ratio"]));
            Seen::new()
        }
        "admit" => answered(load.admit(config, small(&argument["priority"])).as_ref().err()),
        other => panic!("shedding does not know {other}"),
    }
}

fn step_run(run: &mut Run, at: Span, word: &str, argument: &Value) -> Seen {
    let mut seen = Seen::new();
    match word {
        "admit" => seen = answered(run.admit(at).as_ref().err()),
        "peek" => seen = answered(run.would_admit(at).as_ref().err()),
        "used" => run.used(serde_json::from_value::<Option<_>>(argument.clone()).expect("a usage").as_ref()),
        "not_started" => run.not_started(),
        "cancel" => run.cancel(name(argument)),
        "end" => run.end(name(argument)),
        "look" => {}
        other => panic!("a run does not know {other}"),
    }
    let report: Value = serde_json::from_str(&run.report()).expect("JSON");
    for (word, part, field) in [
        ("attempts", "attempts", "used"),
        ("in_flight", "attempts", "in_flight"),
        ("tokens", "tokens", "used"),
        ("reserved_tokens", "tokens", "reserved"),
        ("cost_nanos", "cost_nanos", "used"),
        ("reserved_cost_nanos", "cost_nanos", "reserved"),
    ] {
        seen.insert(word.to_owned(), report[part][field].clone());
    }
    seen.insert("unknown_usage".to_owned(), report["unknown_usage"].clone());
    seen.insert("ended".to_owned(), report["ended"].clone());
    seen
}

fn answered(refusal: Option<&Refusal>) -> Seen {
    let Some(refusal) = refusal else { return Seen::from_iter([("granted".to_owned(), true.into())]) };
    let by = match refusal.by {
        RefusedBy::CoolingDown => "cooling_down",
        RefusedBy::CircuitOpen => "circuit_open",
        RefusedBy::Limited => "limited",
        RefusedBy::Shed => "shed",
        RefusedBy::RunBudget => "run_budget",
        RefusedBy::RunEnded => "run_ended",
        RefusedBy::RetryBudget => "retry_budget",
    };
    Seen::from_iter([
        ("refused".to_owned(), by.into()),
        ("resume_in".to_owned(), refusal.resume_in.map(|left| left.to_string()).into()),
        ("waitable".to_owned(), refusal.waitable.into()),
    ])
}

fn breaker_config(config: &Value) -> BreakerConfig {
    let trip = match millionths(&config["ratio"]) {
        Some(ratio) => Trip::Ratio { window: span(&config["window"]), min_calls: small(&config["min_calls"]), ratio },
        None => Trip::Consecutive(small(&config["consecutive_failures"])),
    };
    let [open_for, open_for_max, probe_lease] =
        ["open_for", "open_for_max", "probe_lease"].map(|field| span(&config[field]));
    BreakerConfig { trip, open_for, open_for_max, probe_lease }
}

fn retry_budget_config(config: &Value) -> RetryBudgetConfig {
    match millionths(&config["ratio"]) {
        Some(ratio) => RetryBudgetConfig::Ratio {
            ratio,
            min_per_second: small(&config["min_per_second"]),
            window: span(&config["window"]),
        },
        None => RetryBudgetConfig::Tokens {
            capacity: small(&config["capacity"]),
            retry_cost: small(&config["retry_cost"]),
            throttle_cost: small(&config["throttle_cost"]),
            refund: small(&config["refund"]),
        },
    }
}

fn shed_config(config: &Value) -> ShedConfig {
    ShedConfig {
        queue_depth: config["queue_depth"].as_u64(),
        cost_ratio: millionths(&config["cost_ratio"]),
        below_priority: small(&config["below_priority"]),
    }
}

fn run_config(config: &Value) -> RunConfig {
    RunConfig {
        attempts: config["attempts"].as_u64(),
        tokens: config["tokens"].as_u64(),
        cost_nanos: config["cost_nanos"].as_u64(),
        deadline: optional_span(&config["deadline"]),
        estimate_tokens: config["estimate_tokens"].as_u64().unwrap_or(0),
        estimate_cost_nanos: config["estimate_cost_nanos"].as_u64().unwrap_or(0),
    }
}

fn verdict(word: &str) -> Verdict {
    match word {
        "success" => Verdict::Success,
        "failed" => Verdict::Failed,
        "released" => Verdict::Released,
        other => panic!("{other} is no verdict"),
    }
}

/// A ratio, exactly: a number of milliseconds has as many nanoseconds as the number has millionths.
fn millionths(value: &Value) -> Option<Millionths> {
    let number = value.as_number()?;
    Some(Millionths(Span::parse(&format!("{number}ms")).expect("a ratio").as_nanos()))
}

fn kind(value: &Value) -> Kind {
    Kind::from_name(name(value)).expect("a kind")
}

fn span(value: &Value) -> Span {
    optional_span(value).expect("a duration")
}

fn optional_span(value: &Value) -> Option<Span> {
    value.as_str().map(|text| Span::parse(text).expect("a duration"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}

fn small(value: &Value) -> u32 {
    u32::try_from(number(value)).expect("a number of 32 bits")
}

fn name(value: &Value) -> &str {
    value.as_str().expect("a name")
}

/// The word of `{"word": argument}`, which may have `times` beside it.
fn entry(value: &Value) -> (&str, &Value) {
    let mut entries = value.as_object().expect("a word and its argument").iter();
    entries.find(|(word, _)| *word != "times").map(|(word, argument)| (word.as_str(), argument)).expect("a word")
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} is missing in {value}"))
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field].as_array().unwrap_or_else(|| panic!("{field} is missing"))
}

fn read(file: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}
