//! One event of a stream: does it carry content, and does it end the answer?
//!
//! A stream may be tried again without anybody noticing until its first *content* has reached the consumer. Start
//! frames, role-only deltas, block openings and pings are no content: a driver holds them back. Known are the events of
//! `OpenAI` (chat completions and responses) and of servers like it, Anthropic, Gemini, Bedrock's converse-stream, and
//! the parts of the Vercel AI SDK. Of any other shape every event is content: nothing is held back, nothing repeated.
//!
//! Fields that are `null` or empty say nothing, because clients' objects, written as JSON, are full of them.

use crate::failure::{Kind, ending, finish_of, is_error_event};
use crate::json::Json;

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

fn object(event: &str) -> Option<Json> {
    Json::parse(event).ok().filter(|event| event.as_map().is_some())
}

/// What an event of a known shape says.
#[derive(Clone, Copy)]
struct Seen {
    content: bool,
    /// It ends the answer by being there; most ends are a finish reason.
    end: bool,
}

const HELD: Seen = Seen { content: false, end: false };

fn shape(event: &Json) -> Option<Seen> {
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

fn typed(event: &Json) -> Option<Seen> {
    let name = event.get("type")?.as_str()?;
    let fits = |known: &str| name == known || (known.ends_with('.') && name.starts_with(known));
    let (_, part) = TYPES.iter().find(|(known, _)| fits(known))?;
    Some(match part {
        Part::Held => HELD,
        Part::Block => Seen { content: says(event), end: false },
        Part::End => Seen { content: false, end: true },
        Part::Answer => Seen { content: event.find("response/output").is_some_and(full), end: true },
    })
}

/// `OpenAI`'s chat completions, and legacy completions: `choices`. A list of none holds usage or a filter's results.
fn chat(event: &Json) -> Option<Seen> {
    let choices = event.get("choices")?.as_list()?;
    let speaks = |choice: &Json| ["delta", "message", "text"].iter().any(|key| choice.get(key).is_some_and(says));
    Some(Seen { content: choices.iter().any(speaks), end: false })
}

/// Gemini, as its API and as its Python client write it.
fn gemini(event: &Json) -> Option<Seen> {
    const ABOUT: [&str; 5] = ["candidates", "usageMetadata", "usage_metadata", "promptFeedback", "prompt_feedback"];
    let about = |key: &&str| event.get(key).is_some_and(|value| value.as_list().is_some() || value.as_map().is_some());
    ABOUT.iter().find(|key| about(key))?;
    let candidates = event.get("candidates").and_then(Json::as_list).unwrap_or_default();
    let parts = |candidate: &'_ Json| {
        candidate.find("content/parts").and_then(Json::as_list).unwrap_or_default().iter().any(says)
    };
    Some(Seen { content: candidates.iter().any(parts), end: false })
}

/// Bedrock's converse-stream: one member each, named after what it is.
fn converse(event: &Json) -> Option<Seen> {
    const QUIET: [&str; 4] = ["messageStart", "contentBlockStart", "contentBlockStop", "messageStop"];
    let mut members = event.as_map()?.iter().filter(|(_, value)| value.as_map().is_some());
    let (Some((name, member)), None) = (members.next(), members.next()) else { return None };
    if name == "contentBlockDelta" {
        return Some(Seen { content: says(member), end: false });
    }
    let usage = || name == "metadata" && member.get("usage").is_some();
    (QUIET.contains(&name.as_str()) || usage()).then_some(HELD)
}

/// Whether there is something in a text, or in an object beyond what names it.
fn says(value: &Json) -> bool {
    let Some(fields) = value.as_map() else { return full(value) };
    fields.iter().any(|(name, value)| match name.as_str() {
        name if NAMES.contains(&name) => false,
        name if BLOCKS.contains(&name) => says(value),
        _ => full(value),
    })
}

/// Numbers and switches are no content.
fn full(value: &Json) -> bool {
    match value {
        Json::Text(text) => !text.is_empty(),
        Json::List(items) => !items.is_empty(),
        Json::Map(fields) => !fields.is_empty(),
        Json::Null | Json::Flag(_) | Json::Whole(_) | Json::Number(_) => false,
    }
}
