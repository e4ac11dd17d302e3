//! Finding what the provider said: the document in a response's body, and the error object in the document.
//!
//! A body is untrusted and often echoes the user's own input, so text is never searched as a whole: a document is
//! parsed, and only the fields of its error are read.

use std::borrow::Cow;

use super::{Body, Evidence, provider, sse};
use crate::json::Json;
use crate::text::after_last;

/// Longer bodies are not parsed, in any binding: 1 MiB, far above any provider's error.
pub(super) const LONGEST_BODY: usize = 1 << 20;
/// A plain text longer than this is more than a message: 1 KiB.
pub(super) const LONGEST_PLAIN: usize = 1 << 10;

/// What a body turned out to be.
pub(super) enum Document<'a> {
    /// Nothing to read: absent, too long, a web page, or broken.
    Nothing,
    /// There is a body, and it is blank.
    Blank,
    /// A JSON document, perhaps from a frame of an event stream.
    Json { value: Cow<'a, Json>, framed: bool },
    /// A short plain text, which is the message itself.
    Plain { text: Cow<'a, str>, framed: bool },
}

impl<'a> Document<'a> {
    /// Reads the body of `evidence`.
    pub(super) fn read(evidence: &'a Evidence) -> Document<'a> {
        match &evidence.body {
            None => Document::Nothing,
            Some(Body::Json(Json::Text(text))) => Document::of_text(text, None),
            Some(Body::Json(value)) => Document::Json { value: Cow::Borrowed(value), framed: false },
            Some(Body::Text(text)) => Document::of_text(text, evidence.header("content-type")),
        }
    }

    fn of_text(text: &'a str, content_type: Option<&str>) -> Document<'a> {
        if text.len() > LONGEST_BODY {
            return Document::Nothing;
        }
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Document::Blank;
        }
        if matches!(text.as_bytes()[0], b'{' | b'[' | b'"') {
            match Json::parse(text) {
                // A JSON string is a bare message, or a document that was encoded twice.
                Ok(Json::Text(inner)) => return Document::of_inner(inner),
                Ok(value) => return Document::Json { value: Cow::Owned(value), framed: false },
                Err(_) => {}
            }
        }
        sse::read(text).unwrap_or_else(|| Document::plain(Cow::Borrowed(text), content_type))
    }

    fn of_inner(inner: String) -> Document<'a> {
        match Json::parse(&inner) {
            Ok(value @ Json::Map(_)) => Document::Json { value: Cow::Owned(value), framed: false },
            _ => Document::plain(Cow::Owned(inner), None),
        }
    }

    fn plain(text: Cow<'a, str>, content_type: Option<&str>) -> Document<'a> {
        let markup = matches!(text.as_bytes().first(), Some(b'<' | b'{' | b'['));
        let other = content_type.is_some_and(|t| !t.trim_start().to_ascii_lowercase().starts_with("text/plain"));
        if markup || other || text.len() > LONGEST_PLAIN {
            Document::Nothing
        } else {
            Document::Plain { text, framed: false }
        }
    }

    /// Whether it came as a frame of an event stream.
    pub(super) fn framed(&self) -> bool {
        matches!(self, Document::Json { framed: true, .. } | Document::Plain { framed: true, .. })
    }

    /// The JSON document, if it is one.
    pub(super) fn json(&self) -> Option<&Json> {
        if let Document::Json { value, .. } = self { Some(value) } else { None }
    }
}

/// The error that a document holds.
#[derive(Clone, Copy)]
pub(super) struct ErrorBody<'d> {
    /// The object with the error's fields.
    pub object: &'d Json,
    /// The object around it, or the same one.
    pub outer: &'d Json,
    /// The name of the event stream's member that holds it, such as `throttlingException`.
    pub member: Option<&'d str>,
    /// The document says itself that it is an error; a top-level object is one only under an error status.
    pub explicit: bool,
}

/// How deep an error may be wrapped. Every known provider needs two steps; more is somebody's echo.
const DEEPEST: usize = 4;
/// The fields that hold an error, or a list of one.
const HOLDERS: [&str; 2] = ["error", "Error"];
/// The fields that hold one where the object around them says nothing itself; beside words they are mere details.
const SILENT_HOLDERS: [&str; 4] = ["errors", "detail", "base_resp", "response"];
/// The words of an object that speaks for itself.
const WORDS: [&str; 4] = ["code", "message", "msg", "Code"];

impl<'d> ErrorBody<'d> {
    /// Finds the error in a document.
    pub(super) fn find(document: &'d Json) -> Option<ErrorBody<'d>> {
        let outer = object_of(document)?;
        let mut found = ErrorBody { object: outer, outer, member: None, explicit: says_error(outer) };
        for _ in 0..DEEPEST {
            let Some((key, inner)) = found.step() else { break };
            let response = key == "response";
            // A `response` without an error inside is an answer, not a wrapped error.
            if response && inner.get("error").is_none_or(Json::is_null) {
                break;
            }
            let member = key.ends_with("Exception").then_some(key);
            found = ErrorBody { object: inner, outer, member, explicit: true };
        }
        Some(found)
    }

    /// One step inwards: the first holder that holds an object.
    fn step(&self) -> Option<(&'d str, &'d Json)> {
        let held = |keys: &[&'d str]| keys.iter().find_map(|key| Some((*key, object_of(self.object.get(key)?)?)));
        let silent = !WORDS.iter().any(|key| self.object.get(key).is_some());
        held(&HOLDERS).or_else(|| held(&SILENT_HOLDERS).filter(|_| silent)).or_else(|| {
            let [(key, value)] = self.object.as_map()? else { return None };
            key.ends_with("Exception").then_some((key.as_str(), map(value)?))
        })
    }

    /// The first of `keys` that is a field of the error, or of the object around it.
    pub(super) fn field(&self, keys: &[&str]) -> Option<&'d Json> {
        keys.iter().find_map(|key| self.object.get(key)).or_else(|| keys.iter().find_map(|key| self.outer.get(key)))
    }

    /// Google's `details`: objects with an `@type`.
    pub(super) fn details(&self) -> impl Iterator<Item = (&'d str, &'d Json)> + use<'d> {
        let list = self.object.get("details").and_then(Json::as_list);
        list.into_iter().flatten().filter_map(|detail| {
            let detail = map(detail)?;
            Some((after_last(detail.get("@type")?.as_str()?, b'.'), detail))
        })
    }
}

/// Whether an event of a stream is an error: it says so, holds one, or bears a code that is known. An event may be
/// anything, so that what would do under an error status (a `code`, a `detail`) is not enough.
pub(crate) fn is_error_event(event: &Json) -> bool {
    let word = |path: &str| event.find(path).and_then(Json::as_str);
    let fields = |path: &str| event.find(path).and_then(Json::as_map);
    let holds =
        |path| word(path).is_some_and(|text| !text.is_empty()) || fields(path).is_some_and(|map| !map.is_empty());
    let known = |code: &str| provider::specific(code).or_else(|| provider::generic(code)).is_some();
    let member = match event.as_map() {
        Some([(name, Json::Map(_))]) => name.ends_with("Exception"),
        _ => false,
    };
    member
        || ["type", "object"].iter().any(|key| word(key) == Some("error"))
        || word("type") == Some("response.failed")
        || ["error", "response/error"].into_iter().any(holds)
        || (word("message").is_some() && word("code").is_some_and(known))
}

/// The object itself, or the first of a list.
fn object_of(value: &Json) -> Option<&Json> {
    match value {
        Json::List(items) => map(items.first()?),
        _ => map(value),
    }
}

/// The value, if it is an object.
fn map(value: &Json) -> Option<&Json> {
    value.as_map().map(|_| value)
}

/// Whether a top-level object says of itself that it is an error.
fn says_error(map: &Json) -> bool {
    let text = |key: &str| map.get(key).and_then(Json::as_str);
    ["error", "code", "__type"].iter().any(|key| text(key).is_some())
        || ["type", "object"].iter().any(|key| text(key) == Some("error"))
}
