//! Runs the conformance cases of topic `classify`, and checks the files against the index.

use std::collections::HashSet;
use std::path::PathBuf;

use reprieve::failure::{Evidence, Failure, Kind, Rule, When, classify};
use reprieve::{RetryAfterSource, Span};
use serde_json::Value;

#[test]
fn every_case_is_classified_as_the_rules_say() {
    let mut ids = HashSet::new();
    let mut wrong = Vec::new();
    let index = read("index.json");
    let files: Vec<&Value> = list(&index, "files").iter().filter(|file| file["topic"] == "classify").collect();
    assert_eq!(files.len(), 3);
    for file in files {
        let document = read(text(file, "file"));
        let cases = list(&document, "cases");
        assert_eq!(Some(cases.len() as u64), file["cases"].as_u64(), "cases of {}", file["file"]);
        for case in cases {
            assert!(ids.insert(text(case, "id").to_owned()), "{} stands twice", case["id"]);
            assert!(!text(case, "description").is_empty());
            wrong.extend(differences(case).into_iter().map(|line| format!("{}: {line}", text(case, "id"))));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// What differs between the case's expectation and what was decided.
fn differences(case: &Value) -> Vec<String> {
    let evidence = Evidence::from_json(&case["evidence"].to_string()).expect("evidence");
    let rules: Vec<Rule> = case["rules"].as_array().into_iter().flatten().map(rule).collect();
    let failure = classify(&evidence, &rules);
    let expect = case["expect"].as_object().expect("an object");
    assert!(!expect.is_empty());
    let differs = |(field, wanted): (&String, &Value)| {
        let same = if field == "retry_after" && wanted.is_string() {
            wanted.as_str().map(nanos) == failure.retry_after.map(Span::as_nanos)
        } else {
            *wanted == seen(&failure, field)
        };
        (!same).then(|| format!("{field}: expected {wanted}, saw {} ({})", seen(&failure, field), failure.decided_by))
    };
    expect.iter().filter_map(differs).collect()
}

fn seen(failure: &Failure, field: &str) -> Value {
    match field {
        "kind" => failure.kind.name().into(),
        "category" => failure.category().name().into(),
        "code" => failure.code.clone().into(),
        "retry_after" => failure.retry_after.map(|after| after.to_string()).into(),
        "retry_after_source" => failure.retry_after_source.map(RetryAfterSource::name).into(),
        "decided_by" => failure.decided_by.name().into(),
        "may_have_executed" => failure.may_have_executed.into(),
        "retry_forbidden" => failure.retry_forbidden.into(),
        other => panic!("no such expectation: {other}"),
    }
}

/// A duration; one beyond 90 days, which a policy would refuse, is written in nanoseconds.
fn nanos(text: &str) -> u64 {
    let whole = text.strip_suffix("ns").and_then(|digits| digits.parse().ok());
    whole.unwrap_or_else(|| Span::parse(text).expect("a duration").as_nanos())
}

fn rule(value: &Value) -> Rule {
    let when = &value["when"];
    let word = |key: &str| when[key].as_str().map(str::to_owned);
    Rule {
        when: When {
            error: word("error"),
            status: when["status"].as_u64().map(|n| u16::try_from(n).expect("a status")),
            code: word("code"),
            error_type: word("type"),
            message: word("message"),
        },
        kind: Kind::from_name(text(value, "kind")).expect("a kind"),
    }
}

fn read(file: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(file);
    serde_json::from_str(&std::fs::read_to_string(path).expect(file)).expect(file)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} in {value}"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key} in {value}"))
}
