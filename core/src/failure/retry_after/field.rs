//! Fields of the body that say how long to wait.

use super::super::body::ErrorBody;
use super::{Clock, date, number, term};
use crate::Span;
use crate::json::Json;
use crate::text::said;

/// Fields that hold a length of time, and the unit of a bare number. Sources: Codex, Hugging Face, LLM7.
const LENGTHS: [(&str, u64); 5] = [
    ("retry_after_ms", number::MILLISECOND),
    ("retry_after", number::SECOND),
    ("retry_after_seconds", number::SECOND),
    ("resets_in_seconds", number::SECOND),
    ("estimated_time", number::SECOND),
];
/// The field that holds a moment, in seconds since 1970. Source: Codex.
const MOMENT: &str = "resets_at";

/// The wait that the error's fields ask for.
pub(super) fn find(error: &ErrorBody, clock: &Clock) -> Option<Span> {
    let length = |(key, unit): &(&str, u64)| length(error.field(&[key])?, *unit);
    let moment = || {
        let seconds = error.field(&[MOMENT])?.as_u64()?;
        clock.until(i64::try_from(seconds).ok()?.saturating_mul(1000))
    };
    retry_info(error).or_else(|| quota_reset(error, clock)).or_else(|| LENGTHS.iter().find_map(length)).or_else(moment)
}

/// Google's `RetryInfo.retryDelay`: `"34.07s"`, or `{"seconds": 34, "nanos": 74824224}`.
fn retry_info(error: &ErrorBody) -> Option<Span> {
    let (_, info) = error.details().find(|(name, _)| *name == "RetryInfo")?;
    match info.get("retryDelay").or_else(|| info.get("retry_delay"))? {
        Json::Text(text) => term::compact(text),
        parts @ Json::Map(_) => {
            let part = |key| parts.get(key).map_or(Some(0), Json::as_u64);
            let nanos = part("seconds")?.saturating_mul(number::SECOND).saturating_add(part("nanos")?);
            Some(number::whole_millis(nanos))
        }
        _ => None,
    }
}

/// Google's `ErrorInfo.metadata`: `quotaResetDelay`, else `quotaResetTimeStamp`.
fn quota_reset(error: &ErrorBody, clock: &Clock) -> Option<Span> {
    let (_, info) = error.details().find(|(name, _)| *name == "ErrorInfo")?;
    let text = |key: &str| info.get("metadata")?.get(key)?.as_str();
    let delay = text("quotaResetDelay").and_then(term::compact);
    delay.or_else(|| clock.until(date::rfc3339(text("quotaResetTimeStamp")?)?))
}

/// A number in `unit`, or a text with a number or with terms.
fn length(value: &Json, unit: u64) -> Option<Span> {
    match value {
        Json::Whole(number) => number::span(&said![number], unit),
        Json::Number(number) => number::json(*number, unit),
        Json::Text(text) => number::span(text, unit).or_else(|| term::compact(text)),
        _ => None,
    }
}
