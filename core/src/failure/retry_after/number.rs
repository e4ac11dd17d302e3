//! Decimal numbers, exactly: ASCII digits, at most one point, no sign, no exponent.

use crate::span::fraction_of;
use crate::{Span, json};

/// One second and one millisecond, in nanoseconds.
pub(super) const SECOND: u64 = 1_000_000_000;
pub(super) const MILLISECOND: u64 = 1_000_000;

/// `text` times `unit` nanoseconds, rounded up to whole milliseconds. `inf`, `nan`, `-3`, `1_0`, `+5`, `1e3` and
/// digits of other scripts are no numbers here.
pub(super) fn span(text: &str, unit: u64) -> Option<Span> {
    nanos(text, unit).map(whole_millis)
}

/// `text` times `unit` nanoseconds, rounded up to whole nanoseconds, saturating.
pub(super) fn nanos(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let (part, exact) = fraction_of(fraction, unit);
    let whole = whole.bytes().fold(0, |n: u64, b| n.saturating_mul(10).saturating_add(u64::from(b - b'0')));
    Some(whole.saturating_mul(unit).saturating_add(part + u64::from(!exact)))
}

/// A JSON number times `unit` nanoseconds; its shortest text is what was written.
pub(super) fn json(number: f64, unit: u64) -> Option<Span> {
    span(&json::shown(number), unit)
}

/// Rounds nanoseconds up to whole milliseconds.
pub(super) fn whole_millis(nanos: u64) -> Span {
    Span::from_millis(nanos.div_ceil(MILLISECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_round_up_to_whole_milliseconds() {
        let cases = [("250.5", 251), ("0.000000000000000000000001", 1), ("0.0", 0), ("7", 7), ("1.0", 1), ("007", 7)];
        for (text, ms) in cases {
            assert_eq!(span(text, MILLISECOND), Some(Span::from_millis(ms)), "{text}");
        }
        assert_eq!(span("34.074824224", SECOND), Some(Span::from_millis(34_075)));
    }

    #[test]
    fn what_is_too_large_saturates() {
        assert_eq!(span(&"9".repeat(10_000), SECOND), Some(Span::MAX));
        assert_eq!(span("9223372037", SECOND), Some(Span::from_millis(9_223_372_037_000)));
        assert_eq!(json(1e300, SECOND), Some(Span::MAX));
        assert_eq!(json(1e16, MILLISECOND), Some(Span::MAX));
    }

    #[test]
    fn a_json_number_is_read_as_written() {
        assert_eq!(json(118.03, SECOND), Some(Span::from_millis(118_030)));
        assert_eq!(json(1.5e-7, SECOND), Some(Span::from_millis(1)));
        assert_eq!(json(1e-300, SECOND), Some(Span::from_millis(1)));
        assert_eq!(json(-1.0, SECOND), None);
        assert_eq!(json(-1e-9, SECOND), None);
    }

    #[test]
    fn only_ascii_digits_are_numbers() {
        for text in ["", ".", "1.", ".5", "1.2.3", "-3", "+5", "1e3", "inf", "nan", "1_0", "²", "٢", "1 0", "0x1"] {
            assert_eq!(span(text, SECOND), None, "{text}");
        }
    }
}
