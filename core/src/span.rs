//! `Span`: a length of time, or a moment as a length since the driver's epoch, in whole nanoseconds.
//!
//! Arithmetic saturates and never wraps. Nothing here reads a clock, and no float survives past the boundary: a
//! number that comes from a binding is turned into nanoseconds once, in [`Span::from_number`].

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{Say, said};

/// A non-negative length of time in whole nanoseconds. Arithmetic saturates.
///
/// ```
/// use reprieve::Span;
/// assert_eq!(Span::parse("1.5s"), Ok(Span::from_millis(1_500)));
/// assert_eq!(Span::from_secs(90).to_string(), "1m30s");
/// ```
///
/// Serialized it is its nanoseconds, a plain number: that is for the core's own documents. Where people write
/// durations, they write text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Span(u64);

/// The units a duration may be written in, longest first, with their length in nanoseconds.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Why a duration was refused. The policy adds the field's name and the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.says())]
pub enum SpanError {
    /// Not `<number><unit>`, such as `"300ms"`.
    Grammar,
    /// NaN or infinite.
    NotFinite,
    /// Below zero.
    Negative,
    /// More than 90 days.
    TooLong,
    /// Finer than a nanosecond.
    TooFine,
}

impl SpanError {
    pub(crate) const fn says(self) -> &'static str {
        match self {
            SpanError::Grammar => {
                "a duration is a number with a unit (ns, us, ms, s, m, h, d), such as \"300ms\", \"1.5s\" or \"1m30s\""
            }
            SpanError::NotFinite => "a duration is a finite number",
            SpanError::Negative => "a duration is not negative",
            SpanError::TooLong => "the longest duration is 90 days",
            SpanError::TooFine => "a duration is a whole number of nanoseconds",
        }
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The end of representable time: what a saturated sum stays at.
    pub const MAX: Span = Span(u64::MAX);
    /// The longest duration a policy accepts: 90 days.
    pub const LONGEST: Span = Span(90 * 86_400_000_000_000);

    /// From whole nanoseconds.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Span {
        Span(ns)
    }

    /// From whole milliseconds, saturating.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Span {
        Span(ms.saturating_mul(1_000_000))
    }

    /// From whole seconds, saturating.
    #[must_use]
    pub const fn from_secs(s: u64) -> Span {
        Span(s.saturating_mul(1_000_000_000))
    }

    /// The whole nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds, half up: how records show time.
    #[must_use]
    pub const fn as_millis_rounded(self) -> u64 {
        self.0 / 1_000_000 + (self.0 % 1_000_000 >= 500_000) as u64
    }

    /// Seconds as a float, for people and for Python; never used to decide.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people; the nanoseconds stay exact inside")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The sum, at most [`Span::MAX`].
    #[must_use]
    pub const fn plus(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }

    /// The difference, at least zero: a clock that goes backwards stands still.
    #[must_use]
    pub const fn minus(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }

    /// `self * numerator / denominator`, floored and saturating. A zero denominator gives [`Span::MAX`].
    #[must_use]
    pub fn scaled(self, numerator: u64, denominator: u64) -> Span {
        if denominator == 0 {
            return Span::MAX;
        }
        let (whole, rest) = (self.0 / denominator, self.0 % denominator);
        let part = match rest.checked_mul(numerator) {
            Some(product) => product / denominator,
            None => part_of(rest, numerator, denominator),
        };
        Span(whole.saturating_mul(numerator).saturating_add(part))
    }

    /// The nearest span to a wide count of nanoseconds.
    #[must_use]
    pub fn saturating_from(ns: u128) -> Span {
        Span(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// A binding's number in units of `unit`: their product as floats, rounded to whole nanoseconds, ties to even.
    ///
    /// # Errors
    /// NaN, infinite, negative, or longer than 90 days.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded by LONGEST, below 2^53"
    )]
    pub fn from_number(number: f64, unit: Span) -> Result<Span, SpanError> {
        if !number.is_finite() {
            return Err(SpanError::NotFinite);
        }
        let ns = (number * unit.0 as f64).round_ties_even();
        if number < 0.0 {
            Err(SpanError::Negative)
        } else if ns > Span::LONGEST.0 as f64 {
            Err(SpanError::TooLong)
        } else {
            Ok(Span(ns as u64))
        }
    }

    /// Parses `"300ms"`, `"1.5s"`, `"1m30s"`: numbers with units, added up, exact to the nanosecond.
    ///
    /// # Errors
    /// [`SpanError`] says which rule the text broke.
    pub fn parse(text: &str) -> Result<Span, SpanError> {
        Span::parse_any(text).and_then(|span| if span > Span::LONGEST { Err(SpanError::TooLong) } else { Ok(span) })
    }

    /// [`Span::parse`] without the bound of 90 days: a server may ask for more than a policy may say.
    pub(crate) fn parse_any(text: &str) -> Result<Span, SpanError> {
        let mut rest = text.trim();
        if rest.starts_with('-') {
            return Err(SpanError::Negative);
        }
        if rest.is_empty() {
            return Err(SpanError::Grammar);
        }
        let mut total = Span::ZERO;
        while !rest.is_empty() {
            let (span, tail) = parse_term(rest)?;
            total = total.plus(span);
            rest = tail;
        }
        Ok(total)
    }
}

/// `rest * numerator / denominator` for a rest below the denominator, bit by bit: more than 64 bits are seldom needed.
fn part_of(rest: u64, numerator: u64, denominator: u64) -> u64 {
    let (mut quotient, mut left) = (0, 0);
    for bit in (0..64).rev() {
        quotient <<= 1;
        for more in [left, if numerator >> bit & 1 == 1 { rest } else { 0 }] {
            // Both are below the denominator, and so is what is left of their sum.
            let over = left >= denominator - more;
            left = if over { left - (denominator - more) } else { left + more };
            quotient += u64::from(over);
        }
    }
    quotient
}

/// The digits behind a point, times `scale`: floored, and whether that is all. From the last digit on, each step takes a
/// tenth of what is there; where the whole comes out even, so does each step.
pub(crate) fn fraction_of(digits: &str, scale: u64) -> (u64, bool) {
    digits.bytes().rev().fold((0, true), |(part, exact), digit| {
        let sum = u64::from(digit - b'0') * scale + part;
        (sum / 10, exact && sum.is_multiple_of(10))
    })
}

/// One `<digits>[.<digits>]<unit>` at the start of `text`: its nanoseconds, and what follows.
fn parse_term(text: &str) -> Result<(Span, &str), SpanError> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(SpanError::Grammar)?;
    let (number, tail) = text.split_at(number_end);
    let unit_end = tail.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(tail.len());
    let (unit, rest) = tail.split_at(unit_end);
    let scale = UNITS.iter().find(|(name, _)| *name == unit).ok_or(SpanError::Grammar)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.as_bytes().contains(&b'.') {
        return Err(SpanError::Grammar);
    }
    if whole.len() > 18 {
        return Err(SpanError::TooLong);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return Err(SpanError::TooFine);
    }
    let (part, exact) = fraction_of(fraction, scale);
    if !exact {
        return Err(SpanError::TooFine);
    }
    let whole = whole.bytes().fold(0, |n: u64, b| n * 10 + u64::from(b - b'0'));
    Ok((Span(whole.saturating_mul(scale).saturating_add(part)), rest))
}

impl From<std::time::Duration> for Span {
    fn from(d: std::time::Duration) -> Span {
        Span::saturating_from(d.as_nanos())
    }
}

impl From<Span> for std::time::Duration {
    fn from(s: Span) -> std::time::Duration {
        std::time::Duration::from_nanos(s.0)
    }
}

/// The shortest text that [`Span::parse`] reads back: `"1m30s"`, `"300ms"`, `"0s"`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&said![self])
    }
}

impl Say for Span {
    fn say(&self, out: &mut String) {
        if self.0 == 0 {
            return out.push_str("0s");
        }
        // Whole seconds read best split into units; anything finer reads best as one decimal of one unit.
        let mut rest = self.0;
        if rest >= 60_000_000_000 {
            for (name, scale) in &UNITS[..3] {
                if rest >= *scale {
                    (rest / scale).say(out);
                    out.push_str(name);
                    rest %= scale;
                }
            }
        }
        let Some((name, scale)) = UNITS[3..].iter().find(|(_, scale)| rest >= *scale) else { return };
        decimal(rest, *scale, out);
        out.push_str(name);
    }
}

/// Appends `parts / of_one`, a power of ten, with no more places than it needs.
pub(crate) fn decimal(parts: u64, of_one: u64, out: &mut String) {
    (parts / of_one).say(out);
    let fraction = parts % of_one;
    if fraction > 0 {
        // The digit in front keeps the zeros that follow it; it is cut off again.
        let digits = said![of_one + fraction];
        out.push('.');
        out.push_str(digits[1..].trim_end_matches('0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling_is_exact_where_64_bits_are_not_enough() {
        let numbers = [0, 1, 2, 3, 999_999, 1_000_000, 1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
        for (a, b, c) in numbers.iter().flat_map(|a| numbers.iter().flat_map(move |b| numbers.map(|c| (*a, *b, c)))) {
            let exact = (u128::from(a) * u128::from(b)).checked_div(u128::from(c));
            let expected = exact.map_or(Span::MAX, Span::saturating_from);
            assert_eq!(Span(a).scaled(b, c), expected, "{a} * {b} / {c}");
        }
    }

    #[test]
    fn fractions_are_exact() {
        assert_eq!(Span::parse("0.0000000000125d"), Ok(Span(1_080)));
        assert_eq!(Span::parse("1.000000000000000001s"), Err(SpanError::TooFine));
        assert_eq!(Span::parse("0.5000000000000000000000000000000s"), Ok(Span::from_millis(500)));
    }
}
