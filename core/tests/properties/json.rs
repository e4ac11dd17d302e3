//! The reader of JSON is held against a well-kept one: it takes the same texts, and reads the same out of them.

use proptest::prelude::*;
use reprieve::json::Json;
use serde_json::{Map, Value};

use crate::config;

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
        (Json::Number(a), Value::Number(b)) => b.as_f64().is_some_and(|b| a.to_bits() == b.to_bits()),
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
    #![proptest_config(ProptestConfig { cases: 8 * config().cases, ..config() })]

    #[test]
    fn what_is_read_is_what_is_written(text in texts()) {
        match (Json::parse(&text), serde_json::from_str::<Value>(&text)) {
            (Ok(ours), Ok(theirs)) => prop_assert!(same(&ours, &theirs), "{text}: {ours:?} for {theirs:?}"),
            (Err(_), Err(_)) => {}
            (ours, theirs) => prop_assert!(false, "{text}: {ours:?} for {theirs:?}"),
        }
    }

    #[test]
    fn a_number_is_read_as_the_nearest_float(text in numbers()) {
        let expected: f64 = text.parse().expect("a number");
        match Json::parse(&text) {
            Ok(Json::Number(number)) => prop_assert_eq!(number.to_bits(), expected.to_bits(), "{}", text),
            Ok(Json::Whole(number)) => prop_assert_eq!(number.to_string(), text),
            other => prop_assert!(other.is_err() && expected.is_infinite(), "{}: {:?}", text, other),
        }
    }

    #[test]
    fn a_number_is_written_as_the_shortest_text_that_is_read_as_it(number in floats()) {
        let text = Json::Number(number).to_string();
        prop_assert_eq!(text.parse(), Ok(number));
        // Of two that are as short and as near, ours is the even one, and the other the upper one.
        let exact = format!("{number:.1100}");
        let is_tie = exact.trim_end_matches('0') == format!("{text}5") && text.ends_with(['0', '2', '4', '6', '8']);
        prop_assert!(is_tie || text == number.to_string(), "{} for {}", text, number);
    }
}

/// Any float that is shown whole, in 200 characters, and those that reckoning with money and time leaves.
fn floats() -> impl Strategy<Value = f64> {
    let any = (any::<bool>(), any::<u64>(), -590..590_i32).prop_map(|(minus, bits, twos)| {
        f64::from_bits(bits >> 12 | 1023 << 52) * if minus { -1.0 } else { 1.0 } * 2_f64.powi(twos)
    });
    let reckoned = (1..1_000_000_u32, 1..1_000_000_u32).prop_map(|(a, b)| f64::from(a) / 1e6 + f64::from(b) / 1e4);
    prop_oneof![any, reckoned]
}

/// Numbers of all lengths, and those that are, or nearly are, halfway between two floats.
fn numbers() -> impl Strategy<Value = String> {
    let halfway = ((1_u64 << 52)..(1 << 53), 1..=31_u32, prop::sample::select(&["0", "1", "00000000000000000001"][..]))
        .prop_map(|(low, twos, tail)| (2 * u128::from(low) + 1, twos, tail))
        // Divided by two as often as by ten, once multiplied by five as often.
        .prop_flat_map(|(halves, twos, tail)| {
            let (down, up) = (halves * 5_u128.pow(twos), halves << (twos - 1));
            prop_oneof![Just(format!("{down}.{tail}e-{twos}")), Just(format!("{up}.{tail}"))]
        });
    prop_oneof![
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?",
        "(0|[1-9][0-9]{0,2000})(\\.[0-9]{1,2000})?",
        halfway,
    ]
}
