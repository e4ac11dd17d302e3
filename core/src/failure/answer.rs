//! How an answer ended: a success by its status that is none by what it says. The same tables read a whole answer, the
//! frames of an event stream, and each event of a stream.

use super::Kind;
use crate::json::Json;

/// Where the common APIs say why an answer ended, as paths.
const REASONS: [&str; 14] = [
    "choices/0/finish_reason",
    "candidates/0/finishReason",
    "candidates/0/finish_reason",
    "promptFeedback/blockReason",
    "prompt_feedback/block_reason",
    "stop_reason",
    "delta/stop_reason",
    "stopReason",
    "messageStop/stopReason",
    "finishReason",
    "finishReason/unified",
    "incomplete_details/reason",
    "response/incomplete_details/reason",
    "done_reason",
];

/// What the reasons mean. Sources: the API references of `OpenAI`, Anthropic, Google, AWS and `OpenRouter`.
const MEANINGS: [(Kind, &[&str]); 3] = [
    (Kind::Truncated, &["length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"]),
    (
        Kind::ContentFiltered,
        &[
            "content_filter",
            "content-filter",
            "content_filtered",
            "refusal",
            "guardrail_intervened",
            "safety",
            "recitation",
            "blocklist",
            "prohibited_content",
            "spii",
            "image_safety",
        ],
    ),
    (Kind::StreamInterrupted, &["error"]),
];

/// Where Gemini says that it gives no answer at all, whatever the reason.
const BLOCKED: [&str; 2] = ["promptFeedback/blockReason", "prompt_feedback/block_reason"];

/// Where an answer's content would be; a list of none is no answer.
const CONTENTS: [&str; 3] = ["choices", "candidates", "content"];

/// The reason an answer gives for its end, or `None` when it has not ended or does not say.
pub(crate) fn finish_of(document: &Json) -> Option<&str> {
    const NONE_YET: [&str; 2] = ["", "FINISH_REASON_UNSPECIFIED"];
    REASONS.iter().filter_map(|path| document.find(path)?.as_str()).find(|reason| !NONE_YET.contains(reason))
}

/// What the ending of an answer means, or `None` when it ended well or says nothing.
pub(crate) fn ending(document: &Json) -> Option<Kind> {
    let says = |path: &str| document.find(path).and_then(Json::as_str);
    if says("choices/0/message/refusal").is_some() {
        return Some(Kind::ContentFiltered);
    }
    let blocked = BLOCKED.iter().any(|path| says(path).is_some());
    let reason = REASONS.iter().filter_map(|path| says(path)).find_map(meaning);
    reason.or(blocked.then_some(Kind::ContentFiltered))
}

/// Whether a document is an answer with nothing in it.
pub(super) fn is_empty(document: &Json) -> bool {
    CONTENTS.iter().any(|key| document.get(key).and_then(Json::as_list).is_some_and(<[Json]>::is_empty))
}

fn meaning(reason: &str) -> Option<Kind> {
    let known = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(reason));
    MEANINGS.iter().find(|(_, words)| known(words)).map(|(kind, _)| *kind)
}
