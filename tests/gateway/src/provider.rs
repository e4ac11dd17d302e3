//! What the shapes of the providers have in common.

use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::body::Bytes;
use serde_json::Value;

use crate::made::Made;
use crate::prompt::{Malformed, Prompt};

/// A provider's wire format: bodies, error tables and stream frames. Frames are whole, with their blank line.
pub trait Provider: Sync {
    /// The header that carries the id of a request.
    fn request_id_header(&self) -> &'static str;
    /// The id of a request, in the provider's spelling.
    fn request_id(&self, exchange: &Exchange) -> String;

    fn fault(&self, problem: &Problem, exchange: &Exchange) -> Fault;
    fn error_body(&self, fault: &Fault, exchange: &Exchange) -> Value;
    fn answer_body(&self, answer: &Answer, exchange: &Exchange) -> Value;

    /// What precedes the first content; an answer without any has no content block to open.
    fn opening(&self, has_content: bool, exchange: &Exchange) -> Vec<String>;
    fn ping(&self) -> &'static str;
    /// How many pings an ordinary stream has.
    fn usual_pings(&self) -> usize;
    fn delta(&self, index: usize, exchange: &Exchange) -> String;
    fn closing(&self, answer: &Answer, exchange: &Exchange) -> Vec<String>;
    /// An answer that is made to measure, whole; nothing where the shape has none.
    fn made_body(&self, _: &Made, _: &Exchange) -> Option<Value> {
        None
    }
    /// The same, streamed.
    fn made_frames(&self, _: &Made, _: &Exchange) -> Option<Vec<String>> {
        None
    }
    /// The error event of a stream that failed on the way.
    fn stream_error(&self) -> Value;
    /// The error event's frame.
    fn event(&self, body: &Value) -> String;

    /// The type of its streams.
    fn stream_type(&self) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    /// A frame as it travels.
    fn frame(&self, text: String) -> Bytes {
        text.into()
    }
}

/// One request and what identifies its answer.
pub struct Exchange {
    pub prompt: Prompt,
    /// The address that was asked for: path and query.
    pub address: String,
    /// 24 hex digits, different for each request.
    pub id: String,
    pub now: SystemTime,
}

impl Exchange {
    pub fn new(sequence: u64, prompt: Prompt, address: String) -> Self {
        let mixed = sequence.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Self { prompt, address, id: format!("{mixed:016x}{sequence:08x}"), now: SystemTime::now() }
    }

    pub fn epoch_seconds(&self) -> u64 {
        self.now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }
}

/// Why a request is refused; each provider has words of its own for it.
#[derive(Debug, PartialEq)]
pub enum Problem {
    Status(u16),
    Quota,
    Daily,
    Context,
    Malformed(Malformed),
    TooLarge,
    /// A mistake in the test itself, under a type that no provider has.
    Test(&'static str, String),
}

/// A refusal in a provider's words.
#[derive(Debug)]
pub struct Fault {
    pub status: u16,
    pub kind: Option<&'static str>,
    pub code: Option<&'static str>,
    pub param: Option<&'static str>,
    pub message: String,
    pub headers: Vec<(&'static str, String)>,
}

/// A row of a provider's error table; `{model}` in a message is the model that was asked for.
pub struct Row {
    pub status: u16,
    pub kind: Option<&'static str>,
    pub code: Option<&'static str>,
    pub param: Option<&'static str>,
    pub message: &'static str,
}

impl Row {
    pub fn fault(&self, exchange: &Exchange) -> Fault {
        Fault {
            status: self.status,
            kind: self.kind,
            code: self.code,
            param: self.param,
            message: self.message.replace("{model}", &exchange.prompt.model),
            headers: Vec::new(),
        }
    }
}

/// How far the allowance of `#[daily]` is away: 7 h 12 min.
pub const DAILY_RESET_S: u64 = 7 * 3600 + 12 * 60;

/// An answer: so many deltas of the same text, from one of them on, and how it ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    pub from: usize,
    pub deltas: usize,
    pub finish: Finish,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Finish {
    Stop,
    Filtered,
    Truncated,
}

impl Answer {
    /// This many deltas, or the rest of the text, after what of it is there already.
    pub fn after(prefill: &str, deltas: Option<usize>, finish: Finish) -> Self {
        let from = (1..TEXT.len()).find(|from| TEXT[..*from].concat() == prefill).unwrap_or(0);
        Self { from, deltas: deltas.unwrap_or(TEXT.len() - from), finish }
    }

    pub fn indices(&self) -> Range<usize> {
        self.from..self.from + self.deltas
    }

    pub fn text(&self) -> String {
        self.indices().map(delta_text).collect()
    }
}

/// Some of it is not ASCII, so that a reader which splits characters is found out.
const TEXT: [&str; 9] = ["The", " gateway", " answers", ":", " all", " is", " well", ",", " 世界é"];

/// The text of a delta; past the end of the answer it starts again.
pub fn delta_text(index: usize) -> &'static str {
    TEXT[index % TEXT.len()]
}
