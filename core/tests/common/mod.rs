//! What the vector runners share: reading cases, counting them against the index, comparing what is expected.

#![allow(dead_code, reason = "each runner uses its part")]

use std::collections::BTreeSet;
use std::path::PathBuf;

use reprieve::policy::Input;
use reprieve::{Policy, Span};
use serde_json::Value;

pub type Case = Value;

/// The cases of a topic, from every file the index lists; counts and ids are checked.
pub fn cases(topic: &str) -> Vec<Case> {
    let index = read("index.json");
    let mut all = Vec::new();
    let mut ids = BTreeSet::new();
    for entry in index["files"].as_array().expect("index.json lists files") {
        let name = entry["file"].as_str().expect("a file has a name");
        let file = read(name);
        let found = file["cases"].as_array().unwrap_or_else(|| panic!("{name} has cases"));
        assert_eq!(Some(found.len() as u64), entry["cases"].as_u64(), "{name}: the index counts otherwise");
        assert_eq!(file["topic"], entry["topic"], "{name}: the index names another topic");
        for case in found {
            assert!(ids.insert(case["id"].to_string()), "{name}: the id {} is taken", case["id"]);
        }
        if entry["topic"] == topic {
            all.extend(found.iter().cloned());
        }
    }
    assert!(!all.is_empty(), "no cases of topic {topic}");
    all
}

fn read(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Runs every case and reports all that failed, not just the first.
#[derive(Default)]
pub struct Failed {
    ran: usize,
    failures: Vec<String>,
}

impl Failed {
    pub fn run(&mut self, case: &Case, play: impl FnOnce(&Case) -> Result<(), String>) {
        self.ran += 1;
        if let Err(why) = play(case) {
            let words = case["description"].as_str().unwrap_or_default();
            self.failures.push(format!("{}: {words}\n    {why}", case["id"].as_str().unwrap_or("?")));
        }
    }

    pub fn report(self) {
        let Failed { ran, failures } = self;
        println!("{ran} runs of cases, {} failed", failures.len());
        assert!(failures.is_empty(), "{} of {ran} failed:\n{}", failures.len(), failures.join("\n"));
    }
}

/// The policy of a case: a preset, and what replaces its fields.
pub fn policy_of(case: &Value) -> Result<Policy, String> {
    let start = match case["preset"].as_str() {
        Some(name) => Policy::preset(name).map_err(|e| e.to_string())?,
        None => Policy::default(),
    };
    if case["policy"].is_null() {
        return Ok(start);
    }
    let written = Input::parse(&case["policy"].to_string()).map_err(|e| e.to_string())?;
    start.replace(&written, None).map_err(|e| e.to_string())
}

pub fn span(text: &str) -> Span {
    Span::parse(text).unwrap_or_else(|e| panic!("{text:?}: {e}"))
}

/// A word, or the first key of an object that is one of the things to do.
pub fn verb(what: &Value) -> (&str, &Value) {
    if let Some(word) = what.as_str() {
        return (word, &Value::Null);
    }
    let object = what.as_object().expect("`do` is a word or an object");
    let verbs = [
        "success",
        "failure",
        "evidence",
        "call",
        "snapshot",
        "restore",
        "report",
        "run_cancel",
        "begin",
        "cancel",
        "hedge",
        "first_item",
    ];
    let (name, body) =
        object.iter().find(|(name, _)| verbs.contains(&name.as_str())).unwrap_or_else(|| panic!("no verb in {what}"));
    (name, body)
}

/// What is expected must be there; what is not mentioned is not compared; `null` must be absent. An expected duration
/// `x` is text, compared with the nanoseconds in `x_ns`.
pub fn check(expect: &Value, seen: &Value) -> Result<(), String> {
    if matches(expect, seen) { Ok(()) } else { Err(format!("expected {expect}\n    saw      {seen}")) }
}

fn matches(expect: &Value, seen: &Value) -> bool {
    match (expect, seen) {
        (Value::Object(fields), Value::Object(_)) => fields.iter().all(|(name, want)| {
            let nanos = &seen[format!("{name}_ns")];
            match want.as_str() {
                Some(text) if nanos.is_u64() => Span::parse(text).is_ok_and(|s| nanos.as_u64() == Some(s.as_nanos())),
                // What must be absent must be absent by either name.
                None if want.is_null() && !nanos.is_null() => false,
                _ => matches(want, &seen[name.as_str()]),
            }
        }),
        (Value::Array(want), Value::Array(got)) => {
            want.len() == got.len() && want.iter().zip(got).all(|(want, got)| matches(want, got))
        }
        (Value::Number(want), Value::Number(got)) => want.as_f64() == got.as_f64(),
        _ => expect == seen,
    }
}
