//! The evidence of one failure, read once: what the provider said, wherever it said it.

use std::borrow::Cow;

use super::Evidence;
use super::body::{Document, ErrorBody};
use crate::json::Json;
use crate::text::{after_last, said};

/// Messages are cut here, in every binding alike: 8 KiB, at a character's boundary.
const LONGEST_MESSAGE: usize = 8 << 10;

/// A longer text is no code.
const LONGEST_CODE: usize = 256;

/// The fields that hold a code, in the order they are believed.
const CODES: [&str; 4] = ["code", "Code", "error_code", "status_code"];
/// The fields that hold a type; Google's is `status`.
const TYPES: [&str; 4] = ["type", "__type", "status", "Type"];
/// The fields that hold the message.
const MESSAGES: [&str; 8] =
    ["message", "Message", "msg", "error_msg", "status_msg", "detail", "error_description", "title"];

/// Evidence, with the provider's words picked out.
pub(super) struct Facts<'a> {
    pub evidence: &'a Evidence,
    /// The status of the response, or the one an error body names where there is no better.
    pub status: Option<u16>,
    /// The JSON document of the body.
    pub document: Option<&'a Json>,
    /// The body is there and blank.
    pub blank: bool,
    /// The error in it.
    pub error: Option<ErrorBody<'a>>,
    /// The provider's codes, most specific first.
    pub codes: Vec<Cow<'a, str>>,
    /// The provider's types.
    pub types: Vec<&'a str>,
    /// The provider's message: the only text that is searched.
    pub message: Option<&'a str>,
    /// What the error says of itself; it may hold the whole body, so only the user's rules look at it.
    pub own_message: Option<&'a str>,
    /// The failure came inside an answer that had begun.
    pub in_stream: bool,
}

impl Evidence {
    /// The first header of this name, without case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Every header of this name, without case.
    pub(super) fn header_values<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl<'a> Facts<'a> {
    /// Reads `evidence`, whose body is `document`.
    pub(super) fn gather(evidence: &'a Evidence, document: &'a Document<'a>) -> Facts<'a> {
        let success = evidence.status.is_some_and(is_success);
        let error = document.json().and_then(ErrorBody::find).filter(|e| e.explicit || !success);
        let codes = codes(evidence, error);
        let own_message = evidence.message.as_deref().map(cut);
        Facts {
            status: effective_status(evidence, error, &codes),
            document: document.json(),
            blank: matches!(document, Document::Blank),
            types: types(evidence, error),
            message: message(evidence, document, error).map(cut),
            own_message,
            in_stream: evidence.in_stream || (success && document.framed()),
            evidence,
            error,
            codes,
        }
    }

    /// Whether any code or type is such a word.
    pub(super) fn any_word(&self, test: &dyn Fn(&str) -> bool) -> bool {
        self.codes.iter().any(|code| test(code)) || self.types.iter().any(|word| test(word))
    }

    /// The code to report: the first that is a word, else the first.
    pub(super) fn code(&self) -> Option<&str> {
        let word = self.codes.iter().find(|code| !is_number(code));
        word.or(self.codes.first()).map(AsRef::as_ref)
    }
}

/// Whether a status says success.
pub(super) fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

/// At most 8 KiB of `text`.
fn cut(text: &str) -> &str {
    let mut end = text.len().min(LONGEST_MESSAGE);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn codes<'a>(evidence: &'a Evidence, error: Option<ErrorBody<'a>>) -> Vec<Cow<'a, str>> {
    let mut codes: Vec<Cow<str>> = evidence.provider_code.as_deref().map(Cow::Borrowed).into_iter().collect();
    let Some(error) = error else { return codes };
    let mut add = |value: Option<&'a Json>| codes.extend(value.and_then(word));
    error.details().for_each(|(_, detail)| add(detail.get("reason")));
    for key in CODES {
        add(error.object.get(key));
    }
    add(error.object.get("innererror").and_then(|inner| inner.get("code")));
    add(error.outer.get("code"));
    // `{"error": "rate_limit_exceeded", "message": ...}`: a single word is a code, a sentence a message.
    let single = |value: &&Json| value.as_str().is_none_or(|text| text.bytes().all(|b| b.is_ascii_graphic()));
    add(error.outer.get("error").filter(single));
    codes
}

fn types<'a>(evidence: &'a Evidence, error: Option<ErrorBody<'a>>) -> Vec<&'a str> {
    let mut types: Vec<&str> = evidence.provider_type.as_deref().into_iter().collect();
    types.extend(evidence.header("x-amzn-errortype").map(aws_name));
    if let Some(error) = error {
        types.extend(error.member);
        types.extend(TYPES.iter().filter_map(|key| error.object.get(key)?.as_str()).map(aws_name));
    }
    types
}

/// AWS writes `com.amazon.coral#ThrottlingException:http://...`.
fn aws_name(text: &str) -> &str {
    let name = after_last(text, b'#');
    name.split(':').next().unwrap_or(name).trim()
}

/// A code, which may be a string or a whole number.
fn word(value: &Json) -> Option<Cow<'_, str>> {
    match value {
        Json::Text(text) if !text.is_empty() && text.len() <= LONGEST_CODE => Some(Cow::Borrowed(text)),
        Json::Whole(number) => Some(Cow::Owned(said![number])),
        _ => None,
    }
}

fn message<'a>(evidence: &'a Evidence, document: &'a Document<'a>, error: Option<ErrorBody<'a>>) -> Option<&'a str> {
    if let Document::Plain { text, .. } = document {
        return Some(text);
    }
    let said = error.and_then(|error| {
        let text = |key: &&str| Some(error.object.get(key)?.as_str()?).filter(|text| !cut(text).trim().is_empty());
        let around = || error.outer.get("message").and_then(Json::as_str);
        MESSAGES.iter().find_map(text).or_else(|| error.outer.get("error")?.as_str()).or_else(around)
    });
    // An error that carries a provider's code and no body (gRPC) speaks with the provider's own words.
    let coded = evidence.provider_code.is_some() || evidence.provider_type.is_some();
    said.or(evidence.message.as_deref().filter(|_| coded && evidence.body.is_none()))
}

/// A response's own status; under success, or without one, the status that the error body or a code names.
fn effective_status(evidence: &Evidence, error: Option<ErrorBody>, codes: &[Cow<str>]) -> Option<u16> {
    let own = evidence.status;
    if own.is_some_and(|status| !is_success(status)) {
        return own;
    }
    let named = codes.iter().find_map(|code| code.parse().ok().filter(|n| is_error(*n)));
    let field = || {
        let value = error?.field(&["status", "status_code", "statusCode"])?;
        value.as_u64().and_then(|n| u16::try_from(n).ok()).filter(|n| is_error(*n))
    };
    named.or_else(field).or(own)
}

fn is_error(status: u16) -> bool {
    (400..600).contains(&status)
}
