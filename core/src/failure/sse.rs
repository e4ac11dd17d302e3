//! The frames of an event stream: the one that holds the error, or how the answer ended.
//!
//! Gateways bend the format: an error comes as a `data:` line, as a bare string, or as a line of JSON without `data:`.

use std::borrow::Cow;

use super::answer;
use super::body::{Document, ErrorBody, LONGEST_PLAIN};
use crate::json::Json;

/// How a stream's first line begins: a field, a comment, or JSON where the gateway left `data:` out.
const STARTS: [&str; 7] = ["data:", "event:", "id:", "retry:", ":", "{", "["];

/// The telling frame of `text`: the first that holds an error, else the last that says how the answer ended, else the
/// first that is JSON. `None` when the text is no event stream.
pub(super) fn read(text: &str) -> Option<Document<'_>> {
    // What a page or a prose text quotes further down is no frame.
    if !STARTS.iter().any(|start| text.starts_with(start)) {
        return None;
    }
    let mut frames = Frames { text };
    let mut telling: Option<Json> = None;
    while let Some(frame) = frames.next() {
        let joined = frame.data();
        match Json::parse(&joined) {
            Ok(value @ (Json::Map(_) | Json::List(_))) => {
                if ErrorBody::find(&value).is_some_and(|e| e.explicit) {
                    return Some(framed(value));
                }
                if telling.is_none() || answer::ending(&value).is_some() {
                    telling = Some(value);
                }
            }
            _ if frame.error => return Some(message(joined)),
            _ => {}
        }
    }
    Some(telling.map_or(Document::Nothing, framed))
}

fn framed(value: Json) -> Document<'static> {
    Document::Json { value: Cow::Owned(value), framed: true }
}

/// An error event whose data is a bare text: the text is the message.
fn message(data: Cow<str>) -> Document {
    let text = if let Ok(Json::Text(text)) = Json::parse(&data) { Cow::Owned(text) } else { data };
    if text.len() > LONGEST_PLAIN { Document::Nothing } else { Document::Plain { text, framed: true } }
}

/// One frame: its lines, and what they say.
struct Frame<'a> {
    /// The first line of data.
    data: Option<&'a str>,
    /// The lines of data after it.
    more: Vec<&'a str>,
    /// The event is named `error`.
    error: bool,
}

impl<'a> Frame<'a> {
    fn data(&self) -> Cow<'a, str> {
        match self.data {
            Some(first) if self.more.is_empty() => Cow::Borrowed(first),
            Some(first) => Cow::Owned(self.more.iter().fold(first.to_owned(), |all, line| all + "\n" + line)),
            None => Cow::Borrowed(""),
        }
    }
}

/// Splits a text into frames: at blank lines, and before a line of bare JSON.
struct Frames<'a> {
    text: &'a str,
}

impl<'a> Frames<'a> {
    fn next(&mut self) -> Option<Frame<'a>> {
        let mut frame = Frame { data: None, more: Vec::new(), error: false };
        while !self.text.is_empty() {
            let (line, rest) = self.text.split_once('\n').unwrap_or((self.text, ""));
            let line = line.trim_end_matches('\r');
            let bare = line.starts_with(['{', '[']);
            if bare && frame.data.is_some() {
                return Some(frame);
            }
            self.text = rest;
            if let Some(data) = line.strip_prefix("data:") {
                frame.push(data.strip_prefix(' ').unwrap_or(data));
            } else if let Some(name) = line.strip_prefix("event:") {
                frame.error |= name.trim() == "error";
            } else if bare {
                frame.push(line);
                return Some(frame);
            } else if line.is_empty() && frame.data.is_some() {
                return Some(frame);
            }
        }
        frame.data.is_some().then_some(frame)
    }
}

impl<'a> Frame<'a> {
    fn push(&mut self, line: &'a str) {
        if self.data.is_none() {
            self.data = Some(line);
        } else {
            self.more.push(line);
        }
    }
}
