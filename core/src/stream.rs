//! One event of a stream: does it carry content, and does it end the answer?
//!
//! A stream may be tried again without anybody noticing until its first *content* has reached the consumer. Start
//! frames, role-only deltas, block openings and pings are no content: a driver holds them back. Known are the events of
//! `OpenAI` (chat completions and responses) and of servers like it, Anthropic, Gemini, Bedrock's converse-stream, and
//! the parts of the Vercel AI SDK. Of any other shape every event is content: nothing is held back, nothing repeated.
//!
//! Fields that are `null` or empty say nothing, because clients' objects, written as JSON, are full of them.

use serde_json::{Map, Value};

use crate::failure::{Kind, ending, finish_of, is_error_event};

/// What one event of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// Nothing to show or use yet: held back until content comes.
    Held,
    /// Text, a refusal, reasoning, a tool call: what a consumer could show or use.
    Content,
    /// The answer ends here, well or cut at its limit of length.
    End,
    /// Content, and the end.
    ContentEnd,
    /// The answer failed: an error under a status that said success, or a finish that says filtered or refused.
    Error,
}

impl Item {
    /// The wire name, such as `content_end`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Item::Held => "held",
            Item::Content => "content",
            Item::End => "end",
            Item::ContentEnd => "content_end",
            Item::Error => "error",
        }
    }
}

/// Reads one event, which is JSON: what stands behind `data:`, or a client's own object written as JSON. Text that is
/// no JSON object is content, but for the `[DONE]` that ends a stream.
///
/// ```
/// use reprieve::stream::{Item, item};
///
/// assert_eq!(item(r#"{"choices": [{"delta": {"role": "assistant", "content": ""}}]}"#), Item::Held);
/// assert_eq!(item(r#"{"choices": [{"delta": {"content": "Hel"}}]}"#), Item::Content);
/// assert_eq!(item(r#"{"choices": [{"delta": {}, "finish_reason": "stop"}]}"#), Item::End);
/// assert_eq!(item("[DONE]"), Item::End);
/// assert_eq!(item(r#"{"type": "error", "error": {"type": "overloaded_error"}}"#), Item::Error);
/// ```
#[must_use]
pub fn item(event: &str) -> Item {
    let Some(event) = object(event) else {
        return if event.trim() == "[DONE]" { Item::End } else { Item::Content };
    };
    let finish = finish_of(&event);
    if is_error_event(&event) || ending(&event).is_some_and(|kind| kind != Kind::Truncated) {
        return Item::Error;
    }
    let seen = shape(&event);
    let content = seen.is_none_or(|seen| seen.content);
    match (content, finish.is_some() || seen.is_some_and(|seen| seen.end)) {
        (false, false) => Item::Held,
        (true, false) => Item::Content,
        (false, true) => Item::End,
        (true, true) => Item::ContentEnd,
    }
}

/// Whether a stream of such events ends with an event that says so: without one it was cut. False where nothing is
/// known of the shape.
///
/// ```
/// use reprieve::stream::finishes;
///
/// assert!(finishes(r#"{"choices": [{"delta": {"content": "Hel"}}]}"#));
/// assert!(!finishes(r#"{"word": "Hel"}"#));
/// ```
#[must_use]
pub fn finishes(event: &str) -> bool {
    object(event).is_some_and(|event| shape(&event).is_some())
}

fn object(event: &str) -> Option<Value> {
    serde_json::from_str(event).ok().filter(Value::is_object)
}

/// What an event of a known shape says.
#[derive(Clone, Copy)]
struct Seen {
    content: bool,
    /// It ends the answer by being there; most ends are a finish reason.
    end: bool,
}

const HELD: Seen = Seen { content: false, end: false };

fn shape(event: &Value) -> Option<Seen> {
    let event = event.as_object()?;
    typed(event).or_else(|| chat(event)).or_else(|| gemini(event)).or_else(|| converse(event))
}

/// What an event of a known type is.
#[derive(Clone, Copy)]
enum Part {
    /// Never content.
    Held,
    /// Content if one of its fields carries something.
    Block,
    /// The end.
    End,
    /// The end, with the whole answer once more.
    Answer,
}

/// Types of events; one that ends in a dot is the beginning of many. The first that fits counts.
const TYPES: &[(&str, Part)] = &[
    // OpenAI's responses. Its answers say again at their end what the deltas said.
    ("response.created", Part::Held),
    ("response.queued", Part::Held),
    ("response.in_progress", Part::Held),
    ("response.completed", Part::Answer),
    ("response.incomplete", Part::Answer),
    ("response.failed", Part::Answer),
    ("response.", Part::Block),
    ("keepalive", Part::Held),
    // Anthropic.
    ("message_start", Part::Held),
    ("content_block_start", Part::Block),
    ("content_block_delta", Part::Block),
    ("content_block_stop", Part::Held),
    ("message_delta", Part::Held),
    ("message_stop", Part::End),
    ("ping", Part::Held),
    // The parts of a model's stream in the Vercel AI SDK.
    ("stream-start", Part::Held),
    ("response-metadata", Part::Held),
    ("text-start", Part::Held),
    ("text-delta", Part::Block),
    ("text-end", Part::Held),
    ("reasoning-start", Part::Held),
    ("reasoning-delta", Part::Block),
    ("reasoning-end", Part::Held),
    ("tool-input-start", Part::Held),
    ("tool-input-delta", Part::Block),
    ("tool-input-end", Part::Held),
    ("finish", Part::End),
];

/// Fields that name a thing, or belong to the protocol: alone they are an opening, and no content.
const NAMES: [&str; 19] = [
    "type",
    "id",
    "index",
    "name",
    "role",
    "status",
    "phase",
    "call_id",
    "item_id",
    "tool_use_id",
    "container_id",
    "server_name",
    "server_label",
    "namespace",
    "caller",
    "encrypted_content",
    "obfuscation",
    "providerMetadata",
    "logprobs",
];

/// Fields whose object is looked into.
const BLOCKS: [&str; 4] = ["content_block", "delta", "item", "part"];

fn typed(event: &Map<String, Value>) -> Option<Seen> {
    let name = event.get("type")?.as_str()?;
    let fits = |known: &str| name == known || (known.ends_with('.') && name.starts_with(known));
    let (_, part) = TYPES.iter().find(|(known, _)| fits(known))?;
    Some(match part {
        Part::Held => HELD,
        Part::Block => Seen { content: carries(event), end: false },
        Part::End => Seen { content: false, end: true },
        Part::Answer => {
            let output = event.get("response").and_then(|response| response.get("output"));
            Seen { content: output.is_some_and(full), end: true }
        }
    })
}

/// `OpenAI`'s chat completions, and legacy completions: `choices`. A list of none holds usage or a filter's results.
fn chat(event: &Map<String, Value>) -> Option<Seen> {
    let choices = event.get("choices")?.as_array()?;
    let fields = choices.iter().flat_map(|choice| ["delta", "message", "text"].map(|key| choice.get(key)));
    Some(Seen { content: fields.flatten().any(said), end: false })
}

/// Gemini, as its API and as its Python client write it.
fn gemini(event: &Map<String, Value>) -> Option<Seen> {
    const ABOUT: [&str; 5] = ["candidates", "usageMetadata", "usage_metadata", "promptFeedback", "prompt_feedback"];
    if !ABOUT.iter().any(|key| event.get(*key).is_some_and(|value| value.is_object() || value.is_array())) {
        return None;
    }
    let candidates = event.get("candidates").and_then(Value::as_array).into_iter().flatten();
    let parts = candidates.filter_map(|candidate| candidate.pointer("/content/parts")?.as_array()).flatten();
    Some(Seen { content: parts.into_iter().any(said), end: false })
}

/// Bedrock's converse-stream: one member each, named after what it is.
fn converse(event: &Map<String, Value>) -> Option<Seen> {
    const QUIET: [&str; 4] = ["messageStart", "contentBlockStart", "contentBlockStop", "messageStop"];
    let mut members = event.iter().filter(|(_, value)| value.is_object());
    let ((name, member), None) = (members.next()?, members.next()) else { return None };
    let usage = || name == "metadata" && member.get("usage").is_some();
    if name == "contentBlockDelta" {
        return Some(Seen { content: said(member), end: false });
    }
    (QUIET.contains(&name.as_str()) || usage()).then_some(HELD)
}

/// Whether there is something in a text, or in an object beyond what names it.
fn said(value: &Value) -> bool {
    value.as_object().map_or_else(|| full(value), carries)
}

fn carries(fields: &Map<String, Value>) -> bool {
    fields.iter().any(|(name, value)| match value {
        _ if NAMES.contains(&name.as_str()) => false,
        Value::Object(block) if BLOCKS.contains(&name.as_str()) => carries(block),
        value => full(value),
    })
}

/// Numbers and switches are no content.
fn full(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
