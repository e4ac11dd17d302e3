//! A policy: validated, immutable configuration that holds data and never functions.
//!
//! The same JSON works in every language. `fields` says what there is, `read` and `write` how it is written, `preset`
//! holds the ready-made ones, `skill` builds a chain from skill manifests.

mod error;
mod fields;
mod preset;
mod read;
mod skill;
#[cfg(test)]
pub(crate) mod testing;
mod write;

pub use crate::json::Json as Input;
pub use error::ConfigError;
pub use fields::{
    Backoff, BreakerConfig, CooldownConfig, Fields, Hedge, KindOverride, Millionths, Nested, RetryAfter,
    RetryBudgetConfig, ShedConfig, SideEffects, Stream, StreamMode, Target, Trip,
};

use std::sync::Arc;

use crate::Span;
use crate::failure::Kind;
use crate::text::{joined, said};

/// Validated, immutable configuration. Cloning shares it.
///
/// ```
/// use reprieve::{Policy, Span};
///
/// let policy = Policy::from_json(r#"{"max_attempts": 5, "total_timeout": "30s"}"#)?;
/// assert_eq!(policy.max_attempts, 5);
/// assert_eq!(policy.total_timeout, Span::from_secs(30));
/// assert_eq!(Policy::from_json(&policy.to_json())?, policy);
/// # Ok::<(), reprieve::ConfigError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy(Arc<Fields>);

impl std::ops::Deref for Policy {
    type Target = Fields;
    fn deref(&self) -> &Fields {
        &self.0
    }
}

impl Policy {
    /// Reads a policy from JSON. What it does not say is as in the empty policy.
    ///
    /// # Errors
    /// [`ConfigError`] names the field, the value and what is allowed there.
    pub fn from_json(text: &str) -> Result<Policy, ConfigError> {
        Policy::default().replace(&parsed(text)?, None)
    }

    /// This policy with other values for the fields that `written` names. A bare number is a duration in `unit`s,
    /// as Python (seconds) and JS (milliseconds) write them; without a unit it is refused, as in JSON.
    ///
    /// ```
    /// use reprieve::policy::Input;
    /// use reprieve::{Policy, Span};
    ///
    /// let written = Input::parse(r#"{"max_attempts": 2, "total_timeout": 1.5}"#)?;
    /// let policy = Policy::preset("llm")?.replace(&written, Some(Span::from_secs(1)))?;
    /// assert_eq!((policy.max_attempts, policy.total_timeout), (2, Span::from_millis(1_500)));
    /// assert_eq!(policy.targets.len(), 2, "the rest is the preset's");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ConfigError`] names the field, the value and what is allowed there.
    pub fn replace(&self, written: &Input, unit: Option<Span>) -> Result<Policy, ConfigError> {
        read::fields(&self.0, written, unit).map(|fields| Policy(Arc::new(fields))).map_err(|e| *e)
    }

    /// This policy with no more than `most` attempts on any target: what tests of retrying code want.
    #[must_use]
    pub fn capped(&self, most: u32) -> Policy {
        let most = most.max(1);
        let mut fields = (*self.0).clone();
        fields.max_attempts = fields.max_attempts.min(most);
        for target in &mut fields.targets {
            target.max_attempts = target.max_attempts.map(|own| own.min(most));
        }
        Policy(Arc::new(fields))
    }

    /// The ready-made policy of this name: `interactive`, `batch`, `reasoning`, `router`, `guard`, `tool`, `llm`,
    /// `chat_model`, `aws_standard` or `single`.
    ///
    /// # Errors
    /// [`ConfigError`] lists the names.
    pub fn preset(name: &str) -> Result<Policy, ConfigError> {
        match preset::PRESETS.iter().find(|preset| preset.0 == name) {
            Some((_, json)) => Policy::from_json(json),
            None => Err(ConfigError {
                field: "preset".into(),
                value: Input::Text(name.into()).text(),
                allowed: said!["one of ", joined(Policy::preset_names(), ", ")],
            }),
        }
    }

    /// The names of the presets.
    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        preset::PRESETS.iter().map(|preset| preset.0)
    }

    /// A policy whose chain comes from skill manifests: the skill, then its `fallback_skill_id`. One level only: what
    /// the fallback names as its own fallback is not followed. `manifests` is a list of manifests with `skill_id`, or
    /// an object from skill id to manifest; of each, `fallback_skill_id`, `priority`, `timeout_per_call` and
    /// `requires_human_fallback` are read, and whatever else it holds is left alone. `unit` is what a bare number means
    /// as a duration, as in [`Policy::replace`].
    ///
    /// ```
    /// use reprieve::Policy;
    /// use reprieve::policy::Input;
    ///
    /// let manifests = r#"{"search": {"fallback_skill_id": "lite", "timeout_per_call": "10s"}, "lite": {}}"#;
    /// let policy = Policy::for_skill("search", &Input::parse(manifests)?, None)?;
    /// let chain: Vec<&str> = policy.targets.iter().map(|target| target.id.as_str()).collect();
    /// assert_eq!(chain, ["search", "lite"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ConfigError`] for a manifest that names no skill, a skill or fallback that no manifest describes, or a bad
    /// value.
    pub fn for_skill(id: &str, manifests: &Input, unit: Option<Span>) -> Result<Policy, ConfigError> {
        skill::fields(id, manifests, unit).map(|fields| Policy(Arc::new(fields))).map_err(|e| *e)
    }

    /// A breaker, a retry budget, a cooldown or shedding is set: its calls need guards.
    #[must_use]
    pub fn guarded(&self) -> bool {
        self.breaker.is_some() || self.retry_budget.is_some() || self.cooldown.is_some() || self.shed.is_some()
    }

    /// How long a call's first attempt may take.
    #[must_use]
    pub fn first_timeout(&self) -> Span {
        let own = self.targets[0].attempt_timeout.or(self.attempt_timeout);
        own.unwrap_or(Span::MAX).min(self.total_timeout)
    }

    /// How many attempts the first target may get.
    #[must_use]
    pub fn max_attempts_of_first(&self) -> u32 {
        let own = self.targets[0].max_attempts.unwrap_or(self.max_attempts);
        self.max_attempts_total.map_or(own, |total| own.min(total))
    }

    /// No attempt can follow this one, if it and all before it were made on the first target.
    #[must_use]
    pub fn ends_with(&self, number: u32) -> bool {
        let own = self.targets[0].max_attempts.unwrap_or(self.max_attempts);
        self.max_attempts_total.is_some_and(|total| number >= total) || (self.targets.len() == 1 && number >= own)
    }

    /// The whole policy as JSON that [`Policy::from_json`] reads back.
    #[must_use]
    pub fn to_json(&self) -> String {
        write::json(&self.0)
    }

    /// What differs for this kind.
    #[must_use]
    pub fn for_kind(&self, kind: Kind) -> Option<&KindOverride> {
        self.kinds.iter().find(|(k, _)| *k == kind).map(|(_, own)| own)
    }
}

pub(crate) fn parsed(text: &str) -> Result<Input, ConfigError> {
    Input::parse(text).map_err(|error| ConfigError {
        field: "policy".into(),
        value: Input::Text(text.into()).text(),
        allowed: said!["JSON (", error.0, ")"],
    })
}
