//! Masking: personal data and secrets are taken out of a text before anything is written.
//!
//! | set | what | becomes |
//! | --- | --- | --- |
//! | `ids` | 18 digits, or 17 and `X` or `x` | `110101********888X`: keeps 6 and 4 |
//! | `cards` | 16 to 20 digits that are no id | `6222********7890`: keeps 4 and 4 |
//! | `phones` | 11 digits, the first 1 and the second 3 to 9 | `138****5678`: keeps 3 and 4 |
//! | `serials` | `SN` and 16 digits | `SN1234********3456`: keeps 4 and 4 |
//! | `keys` | provider keys, named keys and passwords, credentials in a URL | `sk-ant-***`, `api_key=***`, `https://***@host` |
//! | `tokens` | `Bearer` and `Basic`, `Authorization`, named tokens, JWTs | `Bearer ***`, `access_token=***`, `eyJ***` |
//! | `emails` | addresses, also with `%40` | `z***@example.com`: keeps the first letter and the domain |
//!
//! All are on by default, and each can be switched off by itself. Where one text is several things the earlier row of
//! the first four decides: `138101199003078888` is an id and no phone. With `ids` off it is a card, because it has 18
//! digits. Secrets and addresses are looked for before numbers, so `13812345678@qq.com` becomes `1***@qq.com`.
//!
//! # Numbers: whole runs of ASCII digits
//! A run is as long as it can be, and ends at anything that is not an ASCII digit: a letter, `_`, `.`, `-`, a space, the
//! end. So a serial of 30 digits and a time in milliseconds (13) stay; `tel13812345678`, `u_13812345678` and
//! `手机13812345678号` are masked. What follows from that, on purpose:
//! - a number written in groups (`4111 1111 1111 1111`) stays, and so does one with its country code in front
//!   (`8613812345678` is a run of 13; `+86 13812345678` is masked);
//! - a time in microseconds (16) or nanoseconds (19) and a fraction of 16 to 20 digits (`0.30000000000000004`) read as
//!   cards, and a hexadecimal id may by chance hold a run that reads as a phone or a card; nothing tells them apart;
//! - full-width and other scripts' digits stay, and end a run.
//!
//! # Secrets: rather too much than too little
//! Of a secret nothing is kept, not even its length: only what names it, such as `sk-ant-` or `x-api-key: `. After a name
//! whatever stands there counts as its value (`api_key: required` loses a word); without one, a key needs a known
//! beginning, and a word after `Bearer` or `Basic` is a token unless it reads as prose ("Bearer token is missing").
//! An address needs a domain with a dot (`root@localhost` stays); letters of scripts that write no spaces end its local
//! part, so that the sentence before it stays. The text is taken as it is written: what is only hidden in `\u0031` or
//! base64 is not seen.
//!
//! Masking what was masked changes nothing, and the time taken grows with the length of the text alone.

mod secrets;

use std::borrow::Cow;
use std::ops::Range;

use crate::text::{is_letter, is_word, joined, said};

/// Which sets of data are masked. All of them, by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Masks(u8);

/// A name that is none of the sets that can be switched off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct UnknownMask(pub String);

impl UnknownMask {
    pub(crate) fn text(&self) -> String {
        said!["no mask is called \"", self.0, "\"; the masks are ", joined(Masks::NAMES, ", ")]
    }
}

impl Masks {
    /// What the sets are called, in the order in which they decide.
    pub const NAMES: [&'static str; 7] = ["ids", "cards", "phones", "serials", "keys", "tokens", "emails"];
    /// Every set.
    pub const ALL: Masks = Masks(0b111_1111);

    const IDS: Masks = Masks(1);
    const CARDS: Masks = Masks(1 << 1);
    const PHONES: Masks = Masks(1 << 2);
    const SERIALS: Masks = Masks(1 << 3);
    const KEYS: Masks = Masks(1 << 4);
    const TOKENS: Masks = Masks(1 << 5);
    const EMAILS: Masks = Masks(1 << 6);

    /// All sets but these.
    ///
    /// ```
    /// use reprieve::trace::mask::{Masks, mask};
    /// let masks = Masks::without(["phones"])?;
    /// assert_eq!(mask("13812345678, a@b.cn", masks), "13812345678, a***@b.cn");
    /// assert!(Masks::without(["phone"]).unwrap_err().to_string().contains("the masks are ids, cards, phones"));
    /// # Ok::<(), reprieve::trace::mask::UnknownMask>(())
    /// ```
    ///
    /// # Errors
    /// A name that is not one of [`Masks::NAMES`].
    pub fn without(names: impl IntoIterator<Item: AsRef<str>>) -> Result<Masks, UnknownMask> {
        names.into_iter().try_fold(Masks::ALL, |masks, name| {
            let name = name.as_ref();
            let bit = Masks::NAMES.iter().position(|n| *n == name).ok_or_else(|| UnknownMask(name.to_owned()))?;
            Ok(Masks(masks.0 & !(1 << bit)))
        })
    }

    /// The names of the sets that are switched off.
    pub fn off(self) -> impl Iterator<Item = &'static str> {
        (0..).zip(Masks::NAMES).filter(move |(bit, _)| self.0 & (1 << bit) == 0).map(|(_, name)| name)
    }

    const fn has(self, set: Masks) -> bool {
        self.0 & set.0 != 0
    }
}

impl Default for Masks {
    fn default() -> Masks {
        Masks::ALL
    }
}

/// The text with every set in `masks` masked; the text itself where there is nothing to mask.
///
/// ```
/// use reprieve::trace::mask::{Masks, mask};
/// let masked = mask("用户13812345678的key是sk-proj-abcdefgh12345678", Masks::default());
/// assert_eq!(masked, "用户138****5678的key是sk-proj-***");
/// assert!(matches!(mask("rate limit reached", Masks::ALL), std::borrow::Cow::Borrowed(_)));
/// ```
#[must_use]
pub fn mask(text: &str, masks: Masks) -> Cow<'_, str> {
    let text = secrets::secrets(text, masks);
    let text = then(text, masks, emails);
    then(text, masks, numbers)
}

/// One more pass over what an earlier one left.
fn then(text: Cow<'_, str>, masks: Masks, pass: fn(&str, Masks) -> Cow<'_, str>) -> Cow<'_, str> {
    match text {
        Cow::Borrowed(text) => pass(text, masks),
        Cow::Owned(text) => match pass(&text, masks) {
            Cow::Owned(changed) => Cow::Owned(changed),
            Cow::Borrowed(_) => Cow::Owned(text),
        },
    }
}

/// A copy of a text with some of it replaced, begun only with the first replacement.
struct Rewrite<'a> {
    text: &'a str,
    copied: usize,
    out: String,
}

impl<'a> Rewrite<'a> {
    fn new(text: &'a str) -> Rewrite<'a> {
        Rewrite { text, copied: 0, out: String::new() }
    }

    /// Replaces a range that begins where the last one ended, or later.
    fn replace(&mut self, range: Range<usize>, with: &str) {
        self.out.push_str(&self.text[self.copied..range.start]);
        self.out.push_str(with);
        self.copied = range.end;
    }

    fn finish(mut self) -> Cow<'a, str> {
        if self.copied == 0 {
            return Cow::Borrowed(self.text);
        }
        self.out.push_str(&self.text[self.copied..]);
        Cow::Owned(self.out)
    }
}

/// The end of the bytes from `start` on that all belong.
fn run(bytes: &[u8], start: usize, belongs: impl Fn(u8) -> bool) -> usize {
    bytes[start..].iter().position(|b| !belongs(*b)).map_or(bytes.len(), |n| start + n)
}

/// Masks whole runs of digits.
fn numbers(text: &str, masks: Masks) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = Rewrite::new(text);
    let mut at = 0;
    loop {
        let start = run(bytes, at, |b| !b.is_ascii_digit());
        if start == bytes.len() {
            return out.finish();
        }
        at = run(bytes, start, |b| b.is_ascii_digit());
        if let Some((kept, end, stars)) = number(bytes, start, at, masks) {
            out.replace(start + kept..end - 4, stars);
            at = end;
        }
    }
}

/// How a run of digits is masked: how many stay in front, where it ends (an id may end in X), the stars between. The
/// order of the arms is the order of the rules.
fn number(bytes: &[u8], start: usize, end: usize, masks: Masks) -> Option<(usize, usize, &'static str)> {
    const EIGHT: &str = "********";
    match end - start {
        18 if masks.has(Masks::IDS) => Some((6, end, EIGHT)),
        17 if masks.has(Masks::IDS) && matches!(bytes.get(end), Some(b'X' | b'x')) => Some((6, end + 1, EIGHT)),
        16..=20 if masks.has(Masks::CARDS) => Some((4, end, EIGHT)),
        11 if masks.has(Masks::PHONES) && matches!(bytes[start..], [b'1', b'3'..=b'9', ..]) => Some((3, end, "****")),
        16 if masks.has(Masks::SERIALS) && bytes[..start].ends_with(b"SN") => Some((4, end, EIGHT)),
        _ => None,
    }
}

/// Masks the local parts of e-mail addresses but for their first letter.
fn emails(text: &str, masks: Masks) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = Rewrite::new(text);
    let mut floor = 0; // A local part never reaches back over an earlier sign: each byte is looked at once from there.
    let mut at = if masks.has(Masks::EMAILS) { 0 } else { bytes.len() };
    while at < bytes.len() {
        let sign = match bytes[at..] {
            [b'@', ..] => 1,
            [b'%', b'4', b'0', ..] => 3,
            _ => 0,
        };
        if sign == 0 {
            at += 1;
            continue;
        }
        let before = &text[floor..at];
        let local = &before[before.trim_end_matches(in_local_part).len()..];
        let mut letters = local.char_indices().filter(|(_, c)| is_word(*c));
        if let (Some((first, c)), true) = (letters.next(), begins_with_domain(&text[at + sign..])) {
            out.replace(at - local.len() + first + c.len_utf8()..at, secrets::HIDDEN);
        }
        at += sign;
        floor = at;
    }
    out.finish()
}

/// ASCII letters, digits and the usual signs; beyond ASCII, letters of scripts that put spaces between words.
fn in_local_part(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '.' | '_' | '%' | '+' | '-')
        || (!c.is_ascii() && c < '\u{2E80}' && is_word(c))
}

/// A dot somewhere between a label and two letters: so `pkg@1.2.3` and `root@localhost` are no addresses.
fn begins_with_domain(text: &str) -> bool {
    let end = text.find(|c: char| !is_word(c) && c != '.' && c != '-').unwrap_or(text.len());
    let mut labels = text[..end].split('.');
    let mut before = labels.next().unwrap_or("");
    labels.any(|label| {
        let found = !before.is_empty() && label.chars().take(2).filter(|c| is_letter(*c)).count() == 2;
        before = label;
        found
    })
}
