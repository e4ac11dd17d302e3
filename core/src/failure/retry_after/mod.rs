//! How long the server asked to wait, from the most precise place that says so.
//!
//! 1. Headers: milliseconds, then `retry-after`, then the vendors' own.
//! 2. Google's `RetryInfo` in the body.
//! 3. Other fields of the body.
//! 4. The text of the provider's message.
//! 5. The reset of an exhausted bucket.
//!
//! A place that is malformed is passed over for the next. All arithmetic is on integers, fractions of a millisecond
//! round up, and what is too large saturates: a server that asks for ever must never turn into "now".

mod bucket;
mod date;
mod field;
mod number;
mod spoken;
mod term;

use super::facts::Facts;
use super::{Evidence, RetryAfterSource};
use crate::Span;

/// Headers that hold milliseconds, before and after `retry-after`. Sources: Azure, openai-python; AWS, gRPC A6.
const MILLIS_FIRST: [&str; 2] = ["retry-after-ms", "x-ms-retry-after-ms"];
const MILLIS_LAST: [&str; 2] = ["x-amz-retry-after", PUSHBACK];
/// gRPC's pushback (proposal A6), a trailer in milliseconds.
const PUSHBACK: &str = "grpc-retry-pushback-ms";
/// Headers of vendors that hold seconds. Source: GitHub Models.
const SECONDS_LAST: [&str; 1] = ["x-ratelimit-timeremaining"];

/// The retry-after of a failure, and where it was found.
pub(super) fn find(facts: &Facts) -> Option<(Span, RetryAfterSource)> {
    let clock = Clock::of(facts.evidence);
    let from = |source| move |after| (after, source);
    header(facts.evidence, &clock)
        .map(from(RetryAfterSource::Header))
        .or_else(|| field::find(facts.error.as_ref()?, &clock).map(from(RetryAfterSource::Body)))
        .or_else(|| spoken::find(facts.message?, &clock).map(from(RetryAfterSource::Message)))
        .or_else(|| bucket::find(facts.evidence, &clock).map(from(RetryAfterSource::Reset)))
}

/// Whether the server said not to repeat: `x-should-retry: false` (`OpenAI`, Anthropic), or a pushback that is negative,
/// no number, or given more than once (gRPC A6).
pub(super) fn forbidden(evidence: &Evidence) -> bool {
    let mut should = evidence.header_values("x-should-retry");
    let mut pushback = evidence.header_values(PUSHBACK);
    should.any(|value| value.trim().eq_ignore_ascii_case("false"))
        || pushback.next().is_some_and(|first| whole_millis(first).is_none() || pushback.next().is_some())
}

/// What the dates of a response are measured against.
#[derive(Clone, Copy)]
struct Clock {
    /// Milliseconds since 1970: the response's own `Date`, else the caller's wall time.
    now_ms: Option<i64>,
}

impl Clock {
    fn of(evidence: &Evidence) -> Clock {
        let wall = evidence.wall_now_ms.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX));
        let own = evidence.header("date").and_then(|text| date::http(text, wall));
        Clock { now_ms: own.or(wall) }
    }

    /// The time until a moment: zero when it has passed, nothing when there is no clock.
    fn until(self, moment_ms: i64) -> Option<Span> {
        let left = moment_ms.saturating_sub(self.now_ms?);
        Some(Span::from_millis(u64::try_from(left).unwrap_or(0)))
    }
}

fn header(evidence: &Evidence, clock: &Clock) -> Option<Span> {
    let millis = |name: &&str| longest(evidence, name, &|text| number::span(text, number::MILLISECOND));
    MILLIS_FIRST
        .iter()
        .find_map(millis)
        .or_else(|| longest(evidence, "retry-after", &|text| seconds_or_date(text, clock)))
        .or_else(|| MILLIS_LAST.iter().filter(|name| **name != PUSHBACK || !forbidden(evidence)).find_map(millis))
        .or_else(|| SECONDS_LAST.iter().find_map(|name| longest(evidence, name, &seconds)))
}

/// The longest of a header's values: several may come from the server and from a proxy, as several lines or joined by
/// commas, and no wait is shorter than one that was asked for.
fn longest(evidence: &Evidence, name: &str, read: &dyn Fn(&str) -> Option<Span>) -> Option<Span> {
    let value = |text| read(text).or_else(|| text.split(',').filter_map(|part| read(part.trim())).max());
    evidence.header_values(name).filter_map(|text| value(text.trim())).max()
}

fn seconds(text: &str) -> Option<Span> {
    number::span(text, number::SECOND)
}

fn seconds_or_date(text: &str, clock: &Clock) -> Option<Span> {
    seconds(text).or_else(|| clock.until(date::http(text, clock.now_ms)?))
}

/// A pushback is a whole number of milliseconds.
fn whole_millis(text: &str) -> Option<Span> {
    let text = text.trim();
    text.bytes().all(|b| b.is_ascii_digit()).then(|| number::span(text, number::MILLISECOND))?
}
