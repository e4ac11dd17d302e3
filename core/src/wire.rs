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
    mask, moment, nanos, policy, repeats, report, run, says, take_transitions, texts, timeline,
};

use crate::action::{Action, Outcome, Redeliver, Stop};
use crate::failure::{Failure, classify};
use crate::guard::{RunConfig, Transition, Usage};
use crate::json::at::{self, At};
use crate::json::form::{self, Value};
use crate::json::{self, Fields, Json};
use crate::text::said;
use crate::trace::Ids;
use crate::{Evidence, Policy, Span};

/// What a binding handed over is not what the core takes; says where and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct WireError {
    /// What was being read.
    pub what: &'static str,
    /// What is wrong with it, and what is allowed.
    pub why: String,
}

impl WireError {
    fn text(&self) -> String {
        said![self.what, ": ", self.why]
    }
}

impl Outcome {
    /// Reads an outcome: `success`, `failure` (already classified) or `evidence` (to be classified with the policy's
    /// rules), and beside it `delivered`, `delivering`, `retry_if`, `backoff`, `usage`.
    ///
    /// # Errors
    /// [`WireError`] for what is not JSON or not an outcome.
    pub fn from_json(text: &str, policy: &Policy) -> Result<Outcome, WireError> {
        let (mut outcome, evidence) = read("outcome", text, Outcome::read)?;
        if let Some(evidence) = evidence {
            outcome.failure = Some(classify(&evidence, &policy.rules));
        }
        Ok(outcome)
    }

    /// The outcome, and the evidence that is still to be classified.
    fn read(at: &At<'_>) -> (Outcome, Option<Evidence>) {
        let fields = at.object(&OUTCOME);
        let mut outcome = Outcome::success();
        let success = fields.get("success").filter(|at| !at.is_null());
        if let Some(at) = &success {
            at.object(&[]);
        }
        fields.fill("failure", &mut outcome.failure);
        let evidence = fields.maybe("evidence", Evidence::read);
        let given = [success.is_some(), outcome.failure.is_some(), evidence.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            at.refuse::<()>("one of success, failure, evidence");
        }
        fields.fill("delivered", &mut outcome.delivered);
        fields.fill("delivering", &mut outcome.delivering);
        outcome.usage = fields.maybe("usage", used);
        fields.fill("retry_if", &mut outcome.retry_if);
        fields.fill("backoff", &mut outcome.backoff);
        (outcome, evidence)
    }
}

impl Failure {
    /// Reads a failure that somebody else classified: `kind`, and as known `code`, `message`, `retry_after`,
    /// `may_have_executed`, `retry_forbidden`, `inner_trace`.
    ///
    /// # Errors
    /// [`WireError`] for an unknown kind or field.
    pub fn from_json(text: &str) -> Result<Failure, WireError> {
        let mut failure = None;
        read("failure", text, |at| Value::read(&mut failure, at))?;
        Ok(failure.unwrap_or_else(|| Failure::of(crate::Kind::Unknown)))
    }

    /// The failure as JSON, as [`Failure::from_json`] reads it.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::object(|out| form::write(out, &mut self.clone()))
    }
}

impl Ids {
    /// Reads what names a call: `trace_id`, and as needed `idempotency_key`, `scene`, `prompt_version`,
    /// `outer_trace_id`, `client`.
    ///
    /// # Errors
    /// [`WireError`] for an unknown field or a value of another type.
    pub fn from_json(text: &str) -> Result<Ids, WireError> {
        let mut ids = Ids::default();
        read("ids", text, |at| form::read(at, &mut ids)).map(|()| ids)
    }
}

impl Transition {
    /// A breaker's change of state as one record line; `at_ms` is on the driver's clock.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::object(|out| {
            out.text("record", "breaker");
            out.text("key", self.key.as_str());
            out.text("from", self.from.name());
            out.text("to", self.to.name());
            out.number("at_ms", self.at.as_millis_rounded());
        })
    }
}

impl Evidence {
    /// Reads evidence: an object of facts, or a text where the message is all that is known.
    ///
    /// # Errors
    /// [`WireError`] for an unknown field or a value of another type.
    pub fn from_json(text: &str) -> Result<Evidence, WireError> {
        read("evidence", text, Evidence::read)
    }
}

impl RunConfig {
    /// Reads a run's budget: `attempts`, `tokens`, `cost`, `deadline` (on the driver's clock), `estimate_tokens`,
    /// `estimate_cost`.
    ///
    /// # Errors
    /// [`WireError`] for an unknown field or a bad value.
    pub fn from_json(text: &str) -> Result<RunConfig, WireError> {
        read("run", text, |at| {
            let fields = at.object(&RUN);
            let mut run = RunConfig::default();
            fields.fill("attempts", &mut run.attempts);
            fields.fill("tokens", &mut run.tokens);
            run.cost_nanos = fields.maybe("cost", money);
            fields.fill("deadline", &mut run.deadline);
            fields.fill("estimate_tokens", &mut run.estimate_tokens);
            run.estimate_cost_nanos = fields.maybe("estimate_cost", money).unwrap_or(0);
            run
        })
    }
}

const OUTCOME: [&str; 8] =
    ["success", "failure", "evidence", "delivered", "delivering", "retry_if", "backoff", "usage"];
const USAGE: [&str; 4] = ["input_tokens", "output_tokens", "cost", "currency"];
const RUN: [&str; 6] = ["attempts", "tokens", "cost", "deadline", "estimate_tokens", "estimate_cost"];

fn used(at: &At<'_>) -> Usage {
    let fields = at.object(&USAGE);
    let mut usage = Usage::default();
    fields.fill("input_tokens", &mut usage.input_tokens);
    fields.fill("output_tokens", &mut usage.output_tokens);
    usage.cost_nanos = fields.maybe("cost", money);
    fields.fill("currency", &mut usage.currency);
    usage
}

/// Money as billionths, ties to even.
fn money(at: &At<'_>) -> u64 {
    at.parts(0, 1_000_000_000, 1e9)
}

/// Reads JSON; whatever is refused in it is told as one error.
fn read<T: Default>(what: &'static str, text: &str, mut reader: impl FnMut(&At<'_>) -> T) -> Result<T, WireError> {
    let mut out = T::default();
    read_text(what, text, &mut |at| out = reader(at)).map(|()| out)
}

fn read_text(what: &'static str, text: &str, reader: &mut dyn FnMut(&At<'_>)) -> Result<(), WireError> {
    let tree = Json::parse(text).map_err(|error| WireError { what, why: error.0 })?;
    at::read(what, &tree, None, reader).map_err(|error| WireError { what, why: error.text() })
}

/// A seed as text, which carries a whole u64 where numbers cannot.
fn seed_of(text: &str) -> Result<u64, Refused> {
    let refused = || Refused::value("seed", &Json::Text(text.into()), "a whole number from 0 to 2^64 - 1");
    text.parse().map_err(|_| refused())
}

impl Action {
    /// The action as JSON, with durations in nanoseconds and targets by their id: `{"retry": {"after_ns": ...,
    /// "reason": "timeout"}}`, `"done"`.
    #[must_use]
    pub fn to_json(&self, policy: &Policy) -> String {
        let id = |target: usize| policy.targets[target].id.as_str();
        let word = match self {
            Action::Ask(_) => "ask",
            Action::Pending => "pending",
            Action::Ignored => "ignored",
            Action::Done => "done",
            Action::Attempt { number, target, timeout, hedge_after } => {
                return named("attempt", |out| {
                    out.count("number", *number);
                    out.text("target", id(*target));
                    out.number("timeout_ns", timeout.as_nanos());
                    if let Some(after) = hedge_after {
                        out.number("hedge_after_ns", after.as_nanos());
                    }
                });
            }
            Action::Retry { after, reason, redeliver } => {
                return named("retry", |out| waiting(out, *after, reason.name(), *redeliver));
            }
            Action::Fallback { target, after, reason, redeliver } => {
                return named("fallback", |out| {
                    waiting(out, *after, reason.name(), *redeliver);
                    out.text("target", id(*target));
                });
            }
            Action::Stop(Stop { reason, disposition, resume_in }) => {
                return named("stop", |out| {
                    out.text("disposition", disposition.name());
                    out.text("reason", reason.name());
                    out.number("resume_in_ns", resume_in.map(Span::as_nanos));
                });
            }
        };
        said!["\"", word, "\""]
    }
}

fn named(name: &str, fill: impl FnOnce(&mut Fields<'_>)) -> String {
    json::object(|out| out.object(name, fill))
}

/// What a wait is; its fields are in the order of their names.
fn waiting(out: &mut Fields<'_>, after: Span, reason: &str, redeliver: Option<Redeliver>) {
    out.number("after_ns", after.as_nanos());
    if let Some(Redeliver::Discard(items)) = redeliver {
        out.number("discard", items);
    }
    out.text("reason", reason);
    if let Some(Redeliver::Resume(items)) = redeliver {
        out.number("resume", items);
    }
}
