//! A wait in the words of the provider's message, in English or Chinese.

use super::{Clock, date, term};
use crate::Span;
use crate::text::{lowered, places};

/// What stands before a length of time.
const BEFORE_LENGTH: [&str; 12] = [
    "again in ",
    "again after ",
    "retry in ",
    "retry after ",
    "wait ",
    "reset in ",
    "reset after ",
    "resets in ",
    "resets after ",
    "available in ",
    "ready in ",
    "back in ",
];
/// What stands before a moment.
const BEFORE_MOMENT: [&str; 5] = ["access on ", "again at ", "reset at ", "resets at ", "until "];
/// What may stand between the two.
const FILLERS: [&str; 4] = ["at least ", "about ", "approximately ", "another "];
/// Chinese units before 后, each with the one the grammar of terms knows.
const CHINESE_UNITS: [(&str, &str); 7] =
    [("毫秒", "ms"), ("秒钟", "s"), ("秒", "s"), ("分钟", "m"), ("小时", "h"), ("分", "m"), ("天", "d")];

/// The first wait that `message` asks for.
pub(super) fn find(message: &str, clock: &Clock) -> Option<Span> {
    let text = lowered(message);
    let length = first(&text, &BEFORE_LENGTH, &|rest| term::leading(filled(rest)));
    let moment = first(&text, &BEFORE_MOMENT, &|rest| clock.until(date::spoken(rest)?));
    let earlier = if moment.is_some_and(|m| length.is_none_or(|l| m.0 < l.0)) { moment } else { length };
    earlier.map(|(_, span)| span).or_else(|| chinese(&text))
}

/// The first place where one of these words is followed by something that `read` understands.
fn first(text: &str, all: &[&str], read: &dyn Fn(&str) -> Option<Span>) -> Option<(usize, Span)> {
    let after = |words: &&str| places(text, words).find_map(|at| Some((at, read(&text[at + words.len()..])?)));
    all.iter().filter_map(after).min_by_key(|(at, _)| *at)
}

fn filled(text: &str) -> &str {
    FILLERS.iter().find_map(|filler| text.strip_prefix(filler)).unwrap_or(text)
}

/// `请在1分30秒后重试`: terms before 后, and an invitation to try again after it.
fn chinese(text: &str) -> Option<Span> {
    const AFTER: &str = "后";
    places(text, AFTER).find_map(|at| {
        let next = text[at + AFTER.len()..].trim_start_matches([' ', ',', '，']);
        let invited = ["重试", "再试", "再次", "再请求", "恢复"].iter().any(|word| next.starts_with(word));
        let before = text[..at].trim_end_matches(['之', '以', ' ']);
        invited.then(|| terms_at_end(before))?
    })
}

/// The terms that a text ends with, written in Latin units.
fn terms_at_end(mut text: &str) -> Option<Span> {
    let mut terms = String::new();
    while let Some((unit, latin)) = CHINESE_UNITS.iter().find(|(unit, _)| text.ends_with(unit)) {
        let head = text[..text.len() - unit.len()].trim_end();
        let digits = head.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        terms.insert_str(0, latin);
        terms.insert_str(0, &head[digits.len()..]);
        text = digits.trim_end();
    }
    term::compact(&terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<u64> {
        find(text, &Clock { now_ms: Some(0) }).map(|span| span.as_nanos() / 1_000_000)
    }

    #[test]
    fn english_waits_follow_their_words() {
        assert_eq!(said("Please try again in 1m26.4s."), Some(86_400));
        assert_eq!(said("Retry after 1 second."), Some(1_000));
        assert_eq!(said("limit 10 per 60s exceeded. Please wait 55 seconds before retrying."), Some(55_000));
        assert_eq!(said("Please wait at least 2 minutes"), Some(120_000));
        assert_eq!(said("Your quota will reset after 12h34m16s."), Some(45_256_000));
        assert_eq!(said("access on 1970-01-01 at 00:01 UTC"), Some(60_000));
        assert_eq!(said("wait for it, then retry in 5s or wait 9s"), Some(5_000));
    }

    #[test]
    fn other_numbers_are_no_waits() {
        assert_eq!(said("limit of 20 in 60s"), None);
        assert_eq!(said("try again in a moment"), None);
        assert_eq!(said("retry after 30"), None);
        assert_eq!(said("等待30天后过期"), None);
    }

    #[test]
    fn chinese_waits_stand_before_hou() {
        assert_eq!(said("请求过于频繁,请在 30 秒后重试"), Some(30_000));
        assert_eq!(said("请1分30秒后再试"), Some(90_000));
        assert_eq!(said("请5分钟之后，重试"), Some(300_000));
        assert_eq!(said("1.5 小时后恢复。"), Some(5_400_000));
        assert_eq!(said("请稍后重试"), None);
        assert_eq!(said("后重试"), None);
    }
}
