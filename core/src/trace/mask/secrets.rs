//! Keys and tokens, by the four ways in which a text gives one away: a URL with credentials, a name with a value, a
//! scheme (`Bearer`, `Basic`) before it, a known beginning. A new provider's key is one row in [`BEGINNINGS`].

use super::{Masks, Rewrite, run};
use std::borrow::Cow;
use std::ops::Range;

/// Stands for whatever was there, of whatever length.
pub(super) const HIDDEN: &str = "***";

const KEYS: Masks = Masks::KEYS;
const TOKENS: Masks = Masks::TOKENS;

/// Credentials that are known by their beginning, which is kept; of two that fit, the longer stands first. Then what
/// belongs to the rest beside ASCII letters and digits, and the least length of the rest.
const BEGINNINGS: &[(&[&str], &str, usize, Masks)] = &[
    // Anthropic, OpenAI, OpenRouter, and the many that took `sk-` over: DeepSeek, Moonshot, DashScope.
    (&["sk-ant-", "sk-proj-", "sk-or-", "sk-"], "_-", 8, KEYS),
    // Groq, Stripe, Alibaba, GitHub; GitHub's newer ones, Slack.
    (&["gsk_", "sk_live_", "sk_test_", "LTAI", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"], "", 8, KEYS),
    (&["github_pat_", "xoxb-", "xoxp-"], "_-", 8, KEYS),
    // AWS (two), Tencent, Volcengine, Hugging Face, Fireworks, Replicate, Mailgun.
    (&["AKIA", "ASIA", "AKID", "AKLT", "hf_", "fw_", "r8_", "key-"], "", 16, KEYS),
    // Google, xAI, Perplexity, NVIDIA, Cerebras, Together, LangSmith, GitLab.
    (&["AIza", "xai-", "pplx-", "nvapi-", "csk-", "tgp_v1_", "lsv2_", "glpat-"], "_-", 16, KEYS),
    // Baidu.
    (&["bce-v3/"], "_-/", 16, KEYS),
    // A JWT, Google's OAuth.
    (&["eyJ", "ya29."], "_-.", 16, TOKENS),
];

/// Where a name counts as one.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Anywhere,
    /// Only before `=`: "token: x" is prose.
    Assigned,
    /// Only as a parameter of a URL.
    Query,
}

/// Names whose values are secrets, without `_`, `-` and upper case: the first also stands for `X-Api-Key`, `apiKey` and
/// `OPENAI_API_KEY`.
const NAMES: &[(&[&str], Place, Masks)] = &[
    (&["apikey", "accesskey", "secretkey", "privatekey", "subscriptionkey"], Place::Anywhere, KEYS),
    (&["clientsecret", "secret", "password", "passwd"], Place::Anywhere, KEYS),
    (&["signature"], Place::Assigned, KEYS),
    (&["key", "sig"], Place::Query, KEYS),
    (&["authorization", "accesstoken", "refreshtoken", "idtoken"], Place::Anywhere, TOKENS),
    (&["authtoken", "sessiontoken", "securitytoken"], Place::Anywhere, TOKENS),
    (&["token"], Place::Assigned, TOKENS),
];

/// Masks keys and tokens. No look-ahead that finds nothing reaches past where the next one could begin, beyond a fixed
/// number of bytes, so the whole is linear.
pub(super) fn secrets(text: &str, masks: Masks) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = Rewrite::new(text);
    let mut at = if masks.has(KEYS) || masks.has(TOKENS) { 0 } else { bytes.len() };
    while at < bytes.len() {
        if let Some(secret) = secret_at(bytes, at, masks) {
            at = secret.end;
            out.replace(secret, HIDDEN);
        } else {
            at += 1;
        }
    }
    out.finish()
}

/// What to hide where something that gives a secret away begins at `at`. Ranges begin and end beside ASCII.
fn secret_at(bytes: &[u8], at: usize, masks: Masks) -> Option<Range<usize>> {
    if masks.has(KEYS) && bytes[at..].starts_with(b"://") {
        return user_info(bytes, at + 3);
    }
    if !bytes[at].is_ascii_alphabetic() || !begins_word(bytes, at) {
        return None;
    }
    for (names, place, _) in NAMES.iter().filter(|row| masks.has(row.2)) {
        if let Some(secret) = names.iter().find_map(|name| named(bytes, at, name, *place)) {
            return Some(secret);
        }
    }
    let scheme = if masks.has(TOKENS) { after_scheme(bytes, at) } else { None };
    if scheme.is_some() {
        return scheme;
    }
    let mut on = BEGINNINGS.iter().filter(|row| masks.has(row.3));
    on.find_map(|(beginnings, extra, least, _)| beginnings.iter().find_map(|b| known(bytes, at, b, extra, *least)))
}

/// Whether a word begins at `at`: after no letter or digit, at a hump (`apiKey`), after `\n` or `%3D` written out.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    match bytes[..at] {
        [] | [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true,
        [.., before] => {
            !before.is_ascii_alphanumeric() || (before.is_ascii_lowercase() && bytes[at].is_ascii_uppercase())
        }
    }
}

/// `user:password` before the `@` of a URL's host.
fn user_info(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let end = run(bytes, start, |b| b.is_ascii_graphic() && !b"/?#\"'`<>\\()".contains(&b));
    let sign = bytes[start..end].iter().rposition(|b| *b == b'@')?;
    unless_hidden(bytes, start..start + sign)
}

/// A key that begins in a known way, and is long enough to be one.
fn known(bytes: &[u8], at: usize, beginning: &str, extra: &str, least: usize) -> Option<Range<usize>> {
    bytes[at..].starts_with(beginning.as_bytes()).then_some(())?;
    let start = at + beginning.len();
    let end = run(bytes, start, |b| b.is_ascii_alphanumeric() || extra.as_bytes().contains(&b));
    let end = trim(bytes, start..end, b'.');
    (end - start >= least).then_some(start..end)
}

/// `Bearer` or `Basic` and a token. A short word in lower case is prose.
fn after_scheme(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let (start, least) =
        if let Some(start) = scheme(bytes, at, "bearer") { (start, 2) } else { (scheme(bytes, at, "basic")?, 8) };
    let end = run(bytes, start, |b| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b));
    let token = &bytes[start..trim(bytes, start..end, b'.')];
    let prose = token.len() < 20 && token.iter().skip(1).all(u8::is_ascii_lowercase);
    if prose || token.len() < least {
        return None;
    }
    let padded = run(bytes, end, |b| b == b'=');
    Some(start..if padded > end { padded } else { start + token.len() })
}

/// Where what comes after a scheme and blanks begins.
fn scheme(bytes: &[u8], at: usize, name: &str) -> Option<usize> {
    let end = at + name.len();
    bytes.get(at..end)?.eq_ignore_ascii_case(name.as_bytes()).then_some(())?;
    let start = blanks(bytes, end);
    (start > end).then_some(start)
}

/// A name, `:`, `=`, `=>` or `>`, and its value: in quotes up to the quote or the line's end, else up to a delimiter.
fn named(bytes: &[u8], at: usize, name: &str, place: Place) -> Option<Range<usize>> {
    if place == Place::Query && !matches!(bytes[..at], [.., b'?' | b'&']) {
        return None;
    }
    let end = name_end(bytes, at, name)?;
    let sign = blanks(bytes, run(bytes, end, |b| b"\\\"'".contains(&b)));
    let after = run(bytes, sign, |b| b":=>".contains(&b));
    if after == sign || (place != Place::Anywhere && bytes[sign] != b'=') {
        return None;
    }
    let start = blanks(bytes, after);
    let (start, quote) = match bytes[start..] {
        [b'b' | b'\\', quote @ (b'"' | b'\''), ..] => (start + 2, Some(quote)),
        [quote @ (b'"' | b'\''), ..] => (start + 1, Some(quote)),
        _ => (start, None),
    };
    let schemes = ["bearer", "basic", "token", "digest"];
    let start = schemes.iter().find_map(|name| scheme(bytes, start, name)).unwrap_or(start);
    let end = match quote {
        Some(quote) => trim(bytes, start..run(bytes, start, |b| b != quote && b != b'\n'), b'\\'),
        None => trim(bytes, start..run(bytes, start, in_bare_value), b'.'),
    };
    unless_hidden(bytes, start..end)
}

/// The end of a name at `at`, in any case and with a `_` or `-` between letters.
fn name_end(bytes: &[u8], at: usize, name: &str) -> Option<usize> {
    name.bytes().try_fold(at, |at, letter| {
        let at = at + usize::from(matches!(bytes.get(at), Some(b'_' | b'-')));
        bytes.get(at)?.eq_ignore_ascii_case(&letter).then_some(at + 1)
    })
}

fn in_bare_value(b: u8) -> bool {
    b.is_ascii_graphic() && !b"&,;\"'`\\<>()[]{}|".contains(&b)
}

fn blanks(bytes: &[u8], start: usize) -> usize {
    run(bytes, start, |b| b == b' ' || b == b'\t')
}

/// The end of a range without any such bytes at its end.
fn trim(bytes: &[u8], range: Range<usize>, what: u8) -> usize {
    bytes[range.clone()].iter().rposition(|b| *b != what).map_or(range.start, |n| range.start + n + 1)
}

/// The range, unless there is nothing in it or it was hidden before.
fn unless_hidden(bytes: &[u8], range: Range<usize>) -> Option<Range<usize>> {
    let value = &bytes[range.clone()];
    (!value.is_empty() && value != HIDDEN.as_bytes()).then_some(range)
}
