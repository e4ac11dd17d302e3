//! The JSON that bindings and vectors speak with the core: outcomes in, actions out. The same everywhere, so that no
//! binding mirrors a type by hand.
//!
//! Durations come in as text with a unit or as whole nanoseconds, and go out as whole nanoseconds.
//!
//! A binding that speaks JSON throughout needs no more than this module: [`Machine`] is a whole call, the functions of
//! `surface.rs` are the rest of what it exports, and [`Refused`] is what it throws.

mod machine;
mod refused;
mod surface;

pub use machine::{Machine, Peers};
pub use refused::Refused;
pub use surface::{
    breaker_state, calm, classify as classify_json, delay, duration_of_number, duration_of_text, for_skill, kinds,
    mask, moment, nanos, policy, report, run, says, take_transitions, texts,
};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::action::{Action, Outcome, Redeliver, Stop};
use crate::failure::{Failure, classify};
use crate::guard::{RunConfig, Transition, Usage};
use crate::trace::Ids;
use crate::{Evidence, Policy, Span};

/// What a binding handed over is not what the core takes; says where and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {why}")]
pub struct WireError {
    /// What was being read.
    pub what: &'static str,
    /// What is wrong with it, and what is allowed.
    pub why: String,
}

/// A duration as text with a unit, or as whole nanoseconds.
#[derive(Clone, Copy, Default)]
struct WireSpan(Span);

impl<'de> Deserialize<'de> for WireSpan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WireSpan, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Nanos(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Nanos(ns) => Ok(WireSpan(Span::from_nanos(ns))),
            Written::Text(text) => Span::parse_any(&text).map(WireSpan).map_err(serde::de::Error::custom),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireOutcome {
    success: Option<Empty>,
    failure: Option<Failure>,
    evidence: Option<Evidence>,
    #[serde(default)]
    delivered: u64,
    #[serde(default)]
    delivering: WireSpan,
    retry_if: Option<bool>,
    backoff: Option<WireSpan>,
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost: Option<f64>,
    currency: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireRun {
    attempts: Option<u64>,
    tokens: Option<u64>,
    cost: Option<f64>,
    deadline: Option<WireSpan>,
    #[serde(default)]
    estimate_tokens: u64,
    estimate_cost: Option<f64>,
}

impl Outcome {
    /// Reads an outcome: `success`, `failure` (already classified) or `evidence` (to be classified with the policy's
    /// rules), and beside it `delivered`, `delivering`, `retry_if`, `backoff`, `usage`.
    ///
    /// # Errors
    /// [`WireError`] for what is not JSON or not an outcome.
    pub fn from_json(text: &str, policy: &Policy) -> Result<Outcome, WireError> {
        let wire: WireOutcome = read("outcome", text)?;
        let failure = match (wire.success, wire.failure, wire.evidence) {
            (Some(Empty {}), None, None) => None,
            (None, Some(failure), None) => Some(failure),
            (None, None, Some(evidence)) => Some(classify(&evidence, &policy.rules)),
            _ => return Err(refuse("outcome", "it takes one of success, failure, evidence")),
        };
        Ok(Outcome {
            failure,
            delivered: wire.delivered,
            delivering: wire.delivering.0,
            usage: wire.usage.map(WireUsage::into_usage).transpose()?,
            retry_if: wire.retry_if,
            backoff: wire.backoff.map(|b| b.0),
        })
    }
}

impl Failure {
    /// Reads a failure that somebody else classified: `kind`, and as known `code`, `message`, `retry_after`,
    /// `may_have_executed`, `retry_forbidden`, `inner_trace`.
    ///
    /// # Errors
    /// [`WireError`] for an unknown kind or field.
    pub fn from_json(text: &str) -> Result<Failure, WireError> {
        read("failure", text)
    }

    /// The failure as JSON, as [`Failure::from_json`] reads it.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl Ids {
    /// Reads what names a call: `trace_id`, and as needed `idempotency_key`, `scene`, `prompt_version`,
    /// `outer_trace_id`.
    ///
    /// # Errors
    /// [`WireError`] for an unknown field or a value of another type.
    pub fn from_json(text: &str) -> Result<Ids, WireError> {
        read("ids", text)
    }
}

impl Transition {
    /// A breaker's change of state as one record line; `at_ms` is on the driver's clock.
    #[must_use]
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            record: &'static str,
            key: &'a str,
            from: &'static str,
            to: &'static str,
            at_ms: u64,
        }
        let (from, to) = (self.from.name(), self.to.name());
        let line = Line { record: "breaker", key: &self.key, from, to, at_ms: self.at.as_millis_rounded() };
        serde_json::to_string(&line).unwrap_or_default()
    }
}

impl Evidence {
    /// Reads evidence.
    ///
    /// # Errors
    /// [`WireError`] for an unknown field or a value of another type.
    pub fn from_json(text: &str) -> Result<Evidence, WireError> {
        read("evidence", text)
    }
}

impl RunConfig {
    /// Reads a run's budget: `attempts`, `tokens`, `cost`, `deadline` (on the driver's clock), `estimate_tokens`,
    /// `estimate_cost`.
    ///
    /// # Errors
    /// [`WireError`] for an unknown field or a bad value.
    pub fn from_json(text: &str) -> Result<RunConfig, WireError> {
        let wire: WireRun = read("run", text)?;
        Ok(RunConfig {
            attempts: wire.attempts,
            tokens: wire.tokens,
            cost_nanos: wire.cost.map(|c| billionths("run", "cost", c)).transpose()?,
            deadline: wire.deadline.map(|d| d.0),
            estimate_tokens: wire.estimate_tokens,
            estimate_cost_nanos: billionths("run", "estimate_cost", wire.estimate_cost.unwrap_or(0.0))?,
        })
    }
}

impl WireUsage {
    fn into_usage(self) -> Result<Usage, WireError> {
        Ok(Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cost_nanos: self.cost.map(|c| billionths("usage", "cost", c)).transpose()?,
            currency: self.currency,
        })
    }
}

/// Money as billionths, ties to even.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be finite, positive and small")]
fn billionths(what: &'static str, field: &str, amount: f64) -> Result<u64, WireError> {
    if (0.0..=1e9).contains(&amount) {
        Ok((amount * 1e9).round_ties_even() as u64)
    } else {
        Err(refuse(what, format!("{field}: {amount} is not allowed; it takes an amount from 0 to 1e9")))
    }
}

fn read<'a, T: Deserialize<'a>>(what: &'static str, text: &'a str) -> Result<T, WireError> {
    serde_json::from_str(text).map_err(|error| refuse(what, error.to_string()))
}

/// A seed as text, which carries a whole u64 where numbers cannot.
fn seed_of(text: &str) -> Result<u64, Refused> {
    text.parse().map_err(|_| Refused::value("seed", &json!(text), &"a whole number from 0 to 2^64 - 1"))
}

fn refuse(what: &'static str, why: impl Into<String>) -> WireError {
    WireError { what, why: why.into() }
}

impl Action {
    /// The action as JSON, with durations in nanoseconds and targets by their id: `{"retry": {"after_ns": ...,
    /// "reason": "timeout"}}`, `"done"`.
    #[must_use]
    pub fn to_value(&self, policy: &Policy) -> Value {
        let id = |target: usize| policy.targets[target].id.as_str();
        match self {
            Action::Ask(_) => json!("ask"),
            Action::Attempt { number, target, timeout, hedge_after } => {
                let mut body = json!({"number": number, "target": id(*target), "timeout_ns": timeout.as_nanos()});
                if let Some(after) = hedge_after {
                    body["hedge_after_ns"] = after.as_nanos().into();
                }
                json!({"attempt": body})
            }
            Action::Retry { after, reason, redeliver } => {
                with(json!({"after_ns": after.as_nanos(), "reason": reason.name()}), "retry", *redeliver)
            }
            Action::Fallback { target, after, reason, redeliver } => {
                let body = json!({"target": id(*target), "after_ns": after.as_nanos(), "reason": reason.name()});
                with(body, "fallback", *redeliver)
            }
            Action::Pending => json!("pending"),
            Action::Ignored => json!("ignored"),
            Action::Stop(Stop { reason, disposition, resume_in }) => json!({"stop": {
                "reason": reason.name(),
                "disposition": disposition.name(),
                "resume_in_ns": resume_in.map(Span::as_nanos),
            }}),
            Action::Done => json!("done"),
        }
    }
}

fn with(mut body: Value, name: &str, redeliver: Option<Redeliver>) -> Value {
    match redeliver {
        Some(Redeliver::Discard(items)) => body["discard"] = items.into(),
        Some(Redeliver::Resume(items)) => body["resume"] = items.into(),
        None => {}
    }
    json!({name: body})
}
