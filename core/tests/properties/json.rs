//! The reader of JSON is held against a well-kept one: it takes the same texts, and reads the same out of them.

use proptest::prelude::*;
use reprieve::json::Json;
use serde_json::{Map, Value};

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (any::<u32>(), -6..6_i32)
            .prop_map(|(digits, exponent)| f64::from(digits) * 10_f64.powi(exponent))
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A text that is JSON, or has been until something of it was taken away or put in.
fn texts() -> impl Strategy<Value = String> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8, prop::sample::select(MARKS)), 0..3);
    (values(), any::<bool>(), changes).prop_map(|(value, pretty, changes)| {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let mut text: Vec<char> = text.expect("JSON").chars().collect();
        for (place, change, mark) in changes {
            let at = place.index(text.len() + 1);
            match change {
                0 => text.insert(at, mark),
                1 if at < text.len() => text[at] = mark,
                _ if at < text.len() => drop(text.remove(at)),
                _ => {}
            }
        }
        text.into_iter().collect()
    })
}

const MARKS: &[char] = &[
    '{', '}', '[', ']', '"', ',', ':', '\\', '/', '0', '1', '9', '.', 'e', 'E', '+', '-', 't', 'n', 'u', ' ', '\n',
    '\t', '\u{1}', 'é',
];

fn same(ours: &Json, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Json::Null, Value::Null) => true,
        (Json::Flag(a), Value::Bool(b)) => a == b,
        (Json::Text(a), Value::String(b)) => a == b,
        (Json::Whole(a), Value::Number(b)) => b.as_u64() == Some(*a),
        // Of more than 15 digits the last one may differ.
        (Json::Number(a), Value::Number(b)) => {
            b.as_f64().is_some_and(|b| (a - b).abs() <= 2.0 * f64::EPSILON * b.abs().max(f64::MIN_POSITIVE))
        }
        (Json::List(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        // A key that is given twice is kept twice; the last one counts.
        (Json::Map(a), Value::Object(b)) => {
            a.iter().all(|(name, _)| b.contains_key(name))
                && b.iter().all(|(name, value)| ours.get(name).is_some_and(|ours| same(ours, value)))
        }
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_is_what_is_written(text in texts()) {
        match (Json::parse(&text), serde_json::from_str::<Value>(&text)) {
            (Ok(ours), Ok(theirs)) => prop_assert!(same(&ours, &theirs), "{text}: {ours:?} for {theirs:?}"),
            (Err(_), Err(_)) => {}
            (ours, theirs) => prop_assert!(false, "{text}: {ours:?} for {theirs:?}"),
        }
    }

    /// What every setting and every header is: up to 15 digits, and an exponent that is no wonder.
    #[test]
    fn numbers_of_15_digits_are_exact(digits in 0..1_000_000_000_000_000_u64, exponent in -22..=22_i32, minus: bool) {
        let text = format!("{}{digits}e{exponent}", if minus { "-" } else { "" });
        let expected: f64 = text.parse().expect("a number");
        let read = match Json::parse(&text).expect("JSON") {
            Json::Number(number) => number,
            #[expect(clippy::cast_precision_loss, reason = "15 digits fit")]
            Json::Whole(number) => number as f64,
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(read.to_bits(), expected.to_bits(), "{}", text);
    }
}
