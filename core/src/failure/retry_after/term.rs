//! Durations made of terms: Go's `1m26.4s`, protobuf's `34.07s`, and prose such as `1 hour and 5 minutes`.

use super::number;
use crate::Span;
use crate::text::is_letter;

/// Units, and their length in nanoseconds.
const UNITS: [(&[&str], u64); 7] = [
    (&["d", "day", "days"], 86_400_000_000_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000_000_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000_000_000),
    (&["s", "sec", "secs", "second", "seconds"], 1_000_000_000),
    (&["ms", "msec", "millisecond", "milliseconds"], 1_000_000),
    (&["us", "µs", "μs", "microsecond", "microseconds"], 1_000),
    (&["ns", "nanosecond", "nanoseconds"], 1),
];

/// A whole text such as `6m0s`, `7.66s`, `120ms`, `0`: terms without spaces, short units, no sign.
pub(super) fn compact(text: &str) -> Option<Span> {
    if text == "0" {
        return Some(Span::ZERO);
    }
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanos, _, tail) = term(rest, "")?;
        total = total.saturating_add(nanos);
        rest = tail;
    }
    (!text.is_empty()).then(|| number::whole_millis(total))
}

/// A duration at the start of a lower-case text: terms of ever smaller units, with spaces, commas and "and" between.
pub(super) fn leading(text: &str) -> Option<Span> {
    let (mut total, mut smallest, mut rest) = term(text, " ")?;
    while let Some((nanos, unit, tail)) = term(joined(rest), " ") {
        if unit >= smallest {
            break;
        }
        total = total.saturating_add(nanos);
        (smallest, rest) = (unit, tail);
    }
    Some(number::whole_millis(total))
}

/// What follows the words that join two terms.
fn joined(text: &str) -> &str {
    let text = text.trim_start_matches([' ', ',']);
    text.strip_prefix("and ").unwrap_or(text)
}

/// One `<number><gap><unit>`: its nanoseconds, its unit's length, and the rest.
fn term<'a>(text: &'a str, gap: &str) -> Option<(u64, u64, &'a str)> {
    let whole = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    // A point belongs to the number only before a digit: "20s." ends a sentence, "20." says nothing.
    let fraction = text[whole..]
        .strip_prefix('.')
        .map_or(0, |rest| rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
    let (digits, rest) = text.split_at(if fraction > 0 { whole + 1 + fraction } else { whole });
    let rest = rest.strip_prefix(gap).unwrap_or(rest);
    let end = rest.find(|c: char| !is_letter(c)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    let unit = UNITS.iter().find(|(names, _)| names.contains(&name))?.1;
    Some((number::nanos(digits, unit)?, unit, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_is_gos_and_protobufs_grammar() {
        let cases = [
            ("0", 0),
            ("0s", 0),
            ("1s", 1_000),
            ("20ms", 20),
            ("6m0s", 360_000),
            ("2m59.56s", 179_560),
            ("12h34m16s", 45_256_000),
            ("34.074824224s", 34_075),
            ("539.477544ms", 540),
            ("1ns", 1),
            ("3µs", 1),
        ];
        for (text, ms) in cases {
            assert_eq!(compact(text), Some(Span::from_millis(ms)), "{text}");
        }
        for text in ["", "-1s", "+1s", "1", "s", "1 s", "1.s", "1s ", "1x", "1m-1s", "٢s", "é"] {
            assert_eq!(compact(text), None, "{text}");
        }
        assert_eq!(compact("99999999999999999999999999999999999999999999h"), Some(Span::MAX));
    }

    #[test]
    fn prose_has_long_names_and_stops_where_it_ends() {
        let cases = [
            ("22 seconds.", 22_000),
            ("1 second", 1_000),
            ("1m26.4s.", 86_400),
            ("1 hour and 5 minutes, please", 3_900_000),
            ("2 days, 3 hours", 183_600_000),
            ("20s, 5s more", 20_000),
            ("5 minutes or so", 300_000),
        ];
        for (text, ms) in cases {
            assert_eq!(leading(text), Some(Span::from_millis(ms)), "{text}");
        }
        for text in ["20", "20.", "a while", "20 requests", ""] {
            assert_eq!(leading(text), None, "{text}");
        }
    }
}
