//! The reset of an exhausted bucket: vendors' `…ratelimit…reset…` headers, and the `RateLimit` structured field.
//!
//! A bucket with something remaining does not hold the call back; one that does not say counts as exhausted. Of
//! several exhausted ones the longest holds.

use super::{Clock, date, number, term};
use crate::Span;
use crate::failure::Evidence;
use crate::text::{holds, places, said};

/// What a part of a header's name says, where it is about a reset.
const RESET: &str = "reset";
/// From here on a bare number is a moment in seconds since 1970, perhaps with a fraction, and from the second on in
/// milliseconds.
const EPOCH_SECONDS: u64 = 1_000_000_000;
const EPOCH_MILLIS: u64 = 1_000_000_000_000;

/// The longest reset of the exhausted buckets.
pub(super) fn find(evidence: &Evidence, clock: &Clock) -> Option<Span> {
    let mut longest = None;
    for (name, value) in &evidence.headers {
        let name = name.to_ascii_lowercase();
        if name == "ratelimit" {
            longest = longest.max(structured(value));
        } else if holds(&name, "ratelimit") && name.split('-').any(|part| part == RESET) && exhausted(evidence, &name) {
            longest = longest.max(reset(value.trim(), clock));
        }
    }
    longest
}

/// Whether the bucket of a `reset` header is empty, by the `remaining` (or Anthropic's `status`) header beside it.
fn exhausted(evidence: &Evidence, reset: &str) -> bool {
    let beside = |word| {
        let at = places(reset, RESET).next()?;
        let name = said![&reset[..at], word, &reset[at + RESET.len()..]];
        evidence.header(&name).map(str::trim)
    };
    let some_left = beside("remaining").is_some_and(|left| number::nanos(left, 1).is_some_and(|n| n > 0));
    let allowed = beside("status").is_some_and(|status| status.starts_with("allowed"));
    !some_left && !allowed
}

/// `6m0s`, RFC 3339, seconds, or a moment in seconds or milliseconds since 1970.
fn reset(text: &str, clock: &Clock) -> Option<Span> {
    if let Some(span) = term::compact(text) {
        return Some(span);
    }
    let moment = |millis| clock.until(i64::try_from(number::nanos(text, millis)?).unwrap_or(i64::MAX));
    match number::nanos(text, 1) {
        Some(EPOCH_MILLIS..) => moment(1),
        Some(EPOCH_SECONDS..) => moment(1000),
        Some(_) => number::span(text, number::SECOND),
        None => clock.until(date::rfc3339(text)?),
    }
}

/// `RateLimit: "default";r=0;t=30` (IETF draft): the longest `t` of the policies with nothing remaining. A field that
/// breaks the grammar anywhere is ignored as a whole, as the draft demands.
fn structured(field: &str) -> Option<Span> {
    let mut longest = None;
    for item in field.split(',') {
        let mut parts = item.trim().split(';').map(str::trim);
        let name = parts.next()?;
        let quoted = name.len() >= 2 && name.starts_with('"') && name.ends_with('"');
        let token = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.*".contains(&b));
        (quoted || token).then_some(())?;
        let (mut left, mut wait) = (None, None);
        for part in parts {
            let (key, value) = part.split_once('=')?;
            match key {
                "r" => left = Some(number::nanos(value, 1)?),
                "t" => wait = Some(number::span(value, number::SECOND)?),
                _ => (!value.is_empty()).then_some(())?,
            }
        }
        if left.is_none_or(|left| left == 0) {
            longest = longest.max(wait);
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(headers: &[(&str, &str)]) -> Option<u64> {
        let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let evidence = Evidence { headers, ..Evidence::default() };
        find(&evidence, &Clock { now_ms: Some(1_696_004_797_000) }).map(|span| span.as_nanos() / 1_000_000)
    }

    #[test]
    fn a_structured_field_that_breaks_anywhere_is_ignored() {
        assert_eq!(found(&[("RateLimit", "\"default\";r=0;t=30")]), Some(30_000));
        assert_eq!(found(&[("RateLimit", "\"a\";r=0;t=3, \"b\";r=0;t=30, \"c\";r=5;t=300")]), Some(30_000));
        assert_eq!(found(&[("RateLimit", "\"a\";t=3")]), Some(3_000));
        assert_eq!(found(&[("RateLimit", "\"\";t=3;pk=:x:")]), Some(3_000));
        for field in [
            "default;r=0;t=",
            "\"a\";r=x;t=3",
            ";t=3",
            "\"a\";t=3,",
            "",
            "\"a\" t=3",
            "\"a;t=3",
            "a\";t=3",
            "\";t=3",
            "a b;t=3",
            "a;t=3;pk=",
        ] {
            assert_eq!(found(&[("RateLimit", field)]), None, "{field}");
        }
    }

    #[test]
    fn a_bare_number_is_a_length_or_a_moment_by_its_size() {
        assert_eq!(found(&[("x-ratelimit-reset", "60")]), Some(60_000));
        assert_eq!(found(&[("x-ratelimit-reset", "1696004857")]), Some(60_000));
        assert_eq!(found(&[("x-ratelimit-reset", "1696004857500")]), Some(60_500));
        assert_eq!(found(&[("x-ratelimit-reset", "1696004857.2504")]), Some(60_251));
        assert_eq!(found(&[("x-ratelimit-reset", "1696004796.9")]), Some(0));
        assert_eq!(found(&[("x-ratelimit-reset", "+1696004857")]), None);
        assert_eq!(found(&[("x-ratelimit-reset", "33011.382867")]), Some(33_011_383));
    }

    #[test]
    fn the_longest_of_the_exhausted_buckets_holds() {
        let headers = [
            ("x-ratelimit-reset-requests", "6m0s"),
            ("x-ratelimit-remaining-requests", "12"),
            ("X-RateLimit-Reset-Tokens", "20ms"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("anthropic-ratelimit-tokens-reset", "2023-09-29T16:26:39Z"),
        ];
        assert_eq!(found(&headers), Some(2_000));
        assert_eq!(found(&[("x-ratelimit-limit", "9"), ("x-reset", "9")]), None);
        assert_eq!(found(&[("ratelimit-reset", "9"), ("ratelimit-remaining", "some")]), Some(9_000));
        let allowed = [
            ("anthropic-ratelimit-unified-reset", "1696022797"),
            ("anthropic-ratelimit-unified-status", "allowed_warning"),
        ];
        assert_eq!(found(&allowed), None);
    }
}
