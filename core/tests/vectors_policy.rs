//! Runs the `policy` and `number` vectors: what is refused and how an error names it, how a valid policy is written
//! back, and which nanoseconds a number or text becomes.

mod common;

use common::{Case, Failed, cases, check};
use reprieve::policy::Input;
use reprieve::{ConfigError, Policy, Span};
use serde_json::Value;

#[test]
fn policies_are_read_as_the_vectors_say() {
    let mut failed = Failed::default();
    for case in cases("policy") {
        failed.run(&case, policy);
    }
    failed.report();
}

#[test]
fn numbers_become_the_nanoseconds_the_vectors_say() {
    let mut failed = Failed::default();
    for case in cases("number") {
        failed.run(&case, number);
    }
    failed.report();
}

fn policy(case: &Case) -> Result<(), String> {
    let unit = unit(case)?;
    match (build(case, unit), &case["expect"]["error"]) {
        (Ok(built), Value::Null) => {
            check(&case["expect"]["valid"], &serde_json::from_str(&built.to_json()).expect("JSON"))?;
            round_trips(&built)
        }
        (Err(error), Value::Null) => Err(format!("refused: {error}")),
        (Ok(built), _) => Err(format!("accepted: {}", built.to_json())),
        (Err(error), expected) => names(expected, &error),
    }
}

/// From JSON text, a preset, or fields; then replaced.
fn build(case: &Case, unit: Option<Span>) -> Result<Policy, ConfigError> {
    let read = |fields: &Value| Input::parse(&fields.to_string()).expect("the case is JSON");
    let start = match (case["text"].as_str(), case["preset"].as_str()) {
        (Some(text), _) => Policy::from_json(text)?,
        (None, Some(name)) => Policy::preset(name)?,
        (None, None) => Policy::default().replace(&read(&case["policy"]), unit)?,
    };
    if case["replace"].is_null() { Ok(start) } else { start.replace(&read(&case["replace"]), unit) }
}

/// What is written reads back, as fields and as text.
fn round_trips(policy: &Policy) -> Result<(), String> {
    let again = Policy::from_json(&policy.to_json()).map_err(|e| format!("what is written is refused: {e}"))?;
    if again == *policy { Ok(()) } else { Err(format!("reads back as {}", again.to_json())) }
}

/// Field and value must be the same; what is allowed is prose, and compared where the case gives it.
fn names(expected: &Value, error: &ConfigError) -> Result<(), String> {
    for (part, seen) in [("field", &error.field), ("value", &error.value), ("allowed", &error.allowed)] {
        if expected[part].as_str().is_some_and(|want| want != seen) {
            return Err(format!("expected {part} {}, saw {seen}: {error}", expected[part]));
        }
    }
    Ok(())
}

fn number(case: &Case) -> Result<(), String> {
    let seen = match (case["text"].as_str(), case["number"].as_f64()) {
        (Some(text), _) => Span::parse(text),
        (None, Some(number)) => Span::from_number(number, unit(case)?.ok_or("a number needs a unit")?),
        (None, None) => return Err("neither text nor a number".into()),
    };
    match (seen, case["expect"]["ns"].as_u64(), case["expect"]["error"].as_str()) {
        (Ok(span), Some(ns), None) if span.as_nanos() == ns => Ok(()),
        (Err(error), None, Some(part)) if error.to_string().contains(part) => Ok(()),
        (seen, ..) => Err(format!("expected {}, saw {seen:?}", case["expect"])),
    }
}

fn unit(case: &Case) -> Result<Option<Span>, String> {
    match case["unit"].as_str() {
        None => Ok(None),
        Some("s") => Ok(Some(Span::from_secs(1))),
        Some("ms") => Ok(Some(Span::from_millis(1))),
        Some(other) => Err(format!("no such unit: {other}")),
    }
}
