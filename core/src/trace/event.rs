//! Events: what a listener hears while a call runs. Plain data, one frozen schema in every language.

use super::Ids;
use crate::json;

/// What happened. Every event has the same fields; what does not apply is `null`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    /// `attempt_started`, `attempt_failed`, `will_retry` (a wait after a failure), `fallback`, `waiting` (a wait for
    /// another reason), `succeeded` or `gave_up`.
    pub event: &'static str,
    /// The call's trace id.
    pub trace_id: &'a str,
    /// The call's scene.
    pub scene: Option<&'a str>,
    /// The call's prompt version.
    pub prompt_version: Option<&'a str>,
    /// Time since the call's first `begin`.
    pub at_ms: u64,
    /// The attempt's number: the one that started or ended; of a wait or end, the last one issued.
    pub attempt: u32,
    /// The id of the target: of a fallback, the next one.
    pub target: &'a str,
    /// How long an attempt that started may take.
    pub timeout_ms: Option<u64>,
    /// The kind of the failure.
    pub kind: Option<&'static str>,
    /// Its category.
    pub category: Option<&'static str>,
    /// Why: of a wait, a fallback or an end.
    pub reason: Option<&'static str>,
    /// How long a wait is.
    pub delay_ms: Option<u64>,
    /// When a call that gave up may work.
    pub resume_in_ms: Option<u64>,
    /// Who has a call that gave up.
    pub disposition: Option<&'static str>,
}

impl<'a> Event<'a> {
    /// An event of this name in the call with these ids.
    #[must_use]
    pub fn named(event: &'static str, ids: Option<&'a Ids>) -> Event<'a> {
        Event {
            event,
            trace_id: ids.map_or("", |i| i.trace_id.as_str()),
            scene: ids.and_then(|i| i.scene.as_deref()),
            prompt_version: ids.and_then(|i| i.prompt_version.as_deref()),
            ..Event::default()
        }
    }

    /// The event as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::object(|out| {
            out.text("event", self.event);
            out.text("trace_id", self.trace_id);
            out.text("scene", self.scene);
            out.text("prompt_version", self.prompt_version);
            out.number("at_ms", self.at_ms);
            out.count("attempt", self.attempt);
            out.text("target", self.target);
            out.number("timeout_ms", self.timeout_ms);
            out.text("kind", self.kind);
            out.text("category", self.category);
            out.text("reason", self.reason);
            out.number("delay_ms", self.delay_ms);
            out.number("resume_in_ms", self.resume_in_ms);
            out.text("disposition", self.disposition);
        })
    }
}
