//! Moments: the three HTTP date forms, RFC 3339, and dates in prose. All as milliseconds since 1970.

use crate::text::said;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAY_MS: i64 = 86_400_000;

/// An HTTP date (RFC 9110 §5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT` or
/// `Sun Nov  6 08:49:37 1994`. A two-digit year more than 50 years ahead of `now_ms` is in the past.
pub(super) fn http(text: &str, now_ms: Option<i64>) -> Option<i64> {
    if let Some((weekday, rest)) = text.split_once(',') {
        let rest = rest.strip_prefix(' ')?;
        let mut parts = rest.split(' ');
        let first = parts.next()?;
        let (day, month, year) = if first.as_bytes().contains(&b'-') {
            DAYS.iter().find(|name| **name == weekday)?;
            let mut date = first.split('-');
            let parsed = (date.next()?, date.next()?, full_year(digits(date.next()?, 2)?, now_ms));
            date.next().is_none().then_some(parsed)?
        } else {
            short_day(weekday)?;
            (first, parts.next()?, digits(parts.next()?, 4)?)
        };
        let time = clock(parts.next()?)?;
        (parts.next()? == "GMT" && parts.next().is_none()).then_some(())?;
        return moment(year, month_number(month)?, digits(day, 2)?, time);
    }
    let mut parts = text.split(' ').filter(|part| !part.is_empty());
    short_day(parts.next()?)?;
    let month = month_number(parts.next()?)?;
    let day = parts.next()?;
    let day = digits(day, day.len().clamp(1, 2))?;
    let time = clock(parts.next()?)?;
    let year = digits(parts.next()?, 4)?;
    parts.next().is_none().then_some(())?;
    moment(year, month, day, time)
}

/// RFC 3339: `2026-09-01T00:00:00Z`, with a fraction of the second (rounded up) and an offset.
pub(super) fn rfc3339(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let zone = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at(zone);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    // In units of a thousandth: the fraction in milliseconds.
    let fraction_ms = super::number::nanos(&said!["0.", fraction], 1000)?;
    let offset = match zone.as_bytes()[0] {
        b'Z' | b'z' => (zone.len() == 1).then_some(0)?,
        sign => {
            let (hours, minutes) = zone[1..].split_once(':')?;
            let offset = (digits(hours, 2)? * 60 + digits(minutes, 2)?) * 60_000;
            if sign == b'-' { -offset } else { offset }
        }
    };
    let (year, month, day) = calendar(date)?;
    Some(moment(year, month, day, clock(time)?)? + i64::try_from(fraction_ms).ok()? - offset)
}

/// A date in prose at the start of a lower-case `text`: `2026-09-01 at 00:00 utc`, `2026-09-01t00:00:00z`.
pub(super) fn spoken(text: &str) -> Option<i64> {
    let end = |from: &str| from.find(|c: char| !matches!(c, '0'..='9' | '-' | ':' | '.' | 't' | 'z' | '+'));
    let compact = &text[..end(text).unwrap_or(text.len())];
    if let Some(moment) = rfc3339(compact.trim_end_matches('.')) {
        return Some(moment);
    }
    let (date, rest) = text.split_once(' ')?;
    let rest = rest.strip_prefix("at ").unwrap_or(rest);
    let (time, zone) = rest.split_once(' ')?;
    let zone = zone.split(|c: char| !c.is_ascii_alphabetic()).next()?;
    matches!(zone, "utc" | "gmt" | "z").then_some(())?;
    let (year, month, day) = calendar(date)?;
    let time = clock(time).or_else(|| clock(&said![time, ":00"]))?;
    moment(year, month, day, time)
}

/// `YYYY-MM-DD`.
fn calendar(text: &str) -> Option<(i64, i64, i64)> {
    let mut parts = text.split('-');
    let date = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    parts.next().is_none().then_some(date)
}

/// `HH:MM:SS`, as milliseconds of the day. A leap second is one second.
fn clock(text: &str) -> Option<i64> {
    let mut parts = text.split(':');
    let (h, m, s) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    (h < 24 && m < 60 && s <= 60 && parts.next().is_none()).then_some(((h * 60 + m) * 60 + s) * 1000)
}

/// Exactly `width` ASCII digits.
fn digits(text: &str, width: usize) -> Option<i64> {
    (text.len() == width && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
}

fn short_day(text: &str) -> Option<()> {
    DAYS.iter().any(|name| name[..3] == *text).then_some(())
}

fn month_number(text: &str) -> Option<i64> {
    (1..).zip(MONTHS).find(|(_, name)| *name == text).map(|(number, _)| number)
}

/// The year a two-digit year means. Without a clock the usual pivot is 1970.
fn full_year(short: i64, now_ms: Option<i64>) -> i64 {
    let Some(now_ms) = now_ms else { return if short < 70 { 2000 + short } else { 1900 + short } };
    let this_year = 1970 + now_ms.div_euclid(DAY_MS) * 400 / 146_097;
    let year = this_year - this_year.rem_euclid(100) + short;
    if year > this_year + 50 { year - 100 } else { year }
}

/// Days from 1970 by counting 400-year eras that begin on 1 March (Hinnant, `days_from_civil`).
fn moment(year: i64, month: i64, day: i64, of_day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let shifted = year - i64::from(month <= 2);
    let era = shifted.div_euclid(400);
    let of_era = shifted.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(days * DAY_MS + of_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_are_the_same_moment() {
        for text in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(http(text, Some(784_111_747_000)), Some(784_111_777_000), "{text}");
        }
    }

    #[test]
    fn a_two_digit_year_is_at_most_fifty_years_ahead() {
        let in_2023 = Some(1_696_004_797_000);
        assert_eq!(http("Sunday, 06-Nov-94 08:49:37 GMT", in_2023), Some(784_111_777_000));
        assert_eq!(http("Sunday, 06-Nov-94 08:49:37 GMT", None), Some(784_111_777_000));
        assert_eq!(full_year(73, in_2023), 2073);
        assert_eq!(full_year(74, in_2023), 1974);
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for text in [
            "",
            ",",
            "Zun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Sun, 29 Feb 2023 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Nov 1994 08:49:37 GMT x",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun Nov 6 08:49:37",
            "Sun, ٠٦ Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(http(text, None), None, "{text}");
        }
    }

    #[test]
    fn rfc_3339_has_fractions_and_offsets() {
        assert_eq!(rfc3339("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(rfc3339("1970-01-01T00:00:00.0001Z"), Some(1));
        assert_eq!(rfc3339("1970-01-01T01:30:00+01:30"), Some(0));
        assert_eq!(rfc3339("1969-12-31T23:00:00-01:00"), Some(0));
        assert_eq!(rfc3339("2000-02-29T00:00:00Z"), Some(951_782_400_000));
        for text in ["1970-01-01", "1970-01-01T00:00:00", "1970-13-01T00:00:00Z", "1970-01-01T00:00:00Zx", "é-T+"] {
            assert_eq!(rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn prose_says_at_and_a_zone() {
        let midnight = Some(1_788_220_800_000);
        assert_eq!(spoken("2026-09-01 at 00:00 utc."), midnight);
        assert_eq!(spoken("2026-09-01 00:00:00 utc"), midnight);
        assert_eq!(spoken("2026-09-01t00:00:00z."), midnight);
        assert_eq!(spoken("2026-09-01 at 00:00"), None);
        assert_eq!(spoken("2026-09-01 at 00:00 local"), None);
    }
}
