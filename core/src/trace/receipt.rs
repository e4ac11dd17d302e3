//! Receipts: the audit record of one attempt or refusal, and the line that ends a call. One JSON object each.
//!
//! A receipt keeps the failure as it was classified; text is masked when the line is written.

use std::borrow::Cow;

use serde::Serialize;

use super::json;
use super::mask::{Masks, mask};
use crate::action::StopReason;
use crate::failure::{Failure, Kind};
use crate::guard::{RefusedBy, Usage};
use crate::{Policy, Span};

/// What names a call in its records. Drawn by the driver; the core draws nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ids {
    /// 32 hexadecimal digits, as in W3C trace context.
    pub trace_id: String,
    /// One key for the whole call, for servers that recognise a repeated request.
    pub idempotency_key: Option<String>,
    /// Where in the product the call is made.
    pub scene: Option<String>,
    /// Which prompt it uses.
    pub prompt_version: Option<String>,
    /// The trace id of the visible outer attempt this call runs in.
    pub outer_trace_id: Option<String>,
}

/// What was decided after an attempt or refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The call succeeded.
    Done,
    /// It is tried again.
    Retry,
    /// It goes to another target.
    Fallback,
    /// It gives up.
    Stop,
    /// Nothing yet: another attempt was in flight beside it.
    Pending,
    /// It came too late: another attempt beside it had an answer before.
    Superseded,
}

impl Decision {
    /// The wire name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Decision::Done => "done",
            Decision::Retry => "retry",
            Decision::Fallback => "fallback",
            Decision::Stop => "stop",
            Decision::Pending => "pending",
            Decision::Superseded => "superseded",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Decision> {
        let (ends, others) = (
            [Decision::Done, Decision::Stop],
            [Decision::Retry, Decision::Fallback, Decision::Pending, Decision::Superseded],
        );
        ends.into_iter().chain(others).find(|d| d.name() == name)
    }
}

/// The record of one attempt, or of a refusal by a guard. Times count from the call's first `begin`.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// The attempt's number; `None` for a refusal.
    pub attempt: Option<u32>,
    /// Attempts issued before this one.
    pub retry_count: u32,
    /// The index of the target.
    pub target: usize,
    /// When the attempt began.
    pub started: Span,
    /// When its outcome came.
    pub ended: Span,
    /// When a stream's first item came.
    pub first_item: Option<Span>,
    /// Items that reached the consumer.
    pub delivered: u64,
    /// What went wrong.
    pub failure: Option<Failure>,
    /// Which guard refused.
    pub refused_by: Option<RefusedBy>,
    /// What was decided.
    pub decision: Decision,
    /// Why: a kind's name, a stop reason, `cooling_down`; `None` after a success.
    pub reason: Option<&'static str>,
    /// The backoff that was drawn.
    pub backoff: Option<Span>,
    /// The wait that was decided.
    pub delay: Option<Span>,
    /// What was left of the deadline.
    pub time_left: Span,
    /// The retry budget's tokens before and after.
    pub budget: Option<(u64, u64)>,
    /// The breaker's state the attempt ran under.
    pub breaker: Option<&'static str>,
    /// Where the guards' state lives.
    pub guard_store: Option<&'static str>,
    /// What the attempt used.
    pub usage: Option<Usage>,
}

/// How a call ended, and what it took in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// `None` after a success.
    pub stop: Option<crate::Stop>,
    /// Attempts issued.
    pub attempts: u32,
    /// The index of the last target aimed at.
    pub target: usize,
    /// From the first `begin` to the end.
    pub elapsed: Span,
    /// Waits charged.
    pub waited: Span,
}

/// A receipt as it is written: field names and their order are frozen.
#[derive(Serialize)]
struct Line<'a> {
    trace_id: &'a str,
    scene: Option<&'a str>,
    prompt_version: Option<&'a str>,
    attempt: Option<u32>,
    retry_count: u32,
    target: &'a str,
    fallback_used: bool,
    fallback_target_id: Option<&'a str>,
    started_ms: u64,
    latency_ms: u64,
    first_item_ms: Option<u64>,
    delivered: u64,
    outcome: &'static str,
    kind: Option<&'static str>,
    category: Option<&'static str>,
    code: Option<Cow<'a, str>>,
    message: Option<Cow<'a, str>>,
    decided_by: Option<&'static str>,
    decision: &'static str,
    reason: Option<&'static str>,
    backoff_ms: Option<u64>,
    retry_after_ms: Option<u64>,
    retry_after_source: Option<&'static str>,
    delay_ms: Option<u64>,
    time_left_ms: u64,
    budget_before: Option<u64>,
    budget_after: Option<u64>,
    breaker: Option<&'static str>,
    guard_store: Option<&'static str>,
    outer_trace_id: Option<&'a str>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost: Option<f64>,
    currency: Option<&'a str>,
}

impl Receipt {
    /// How the attempt ended: `success`, `failure`, `cancelled` (also where another one beside it came first), or
    /// `refused` where a guard said no.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        match &self.failure {
            _ if self.refused_by.is_some() => "refused",
            _ if self.decision == Decision::Superseded => "cancelled",
            None => "success",
            Some(failure) if failure.kind == Kind::Cancelled => "cancelled",
            Some(_) => "failure",
        }
    }

    /// The fallback that it goes to, or that it was itself.
    fn fallback<'a>(&self, policy: &'a Policy) -> Option<&'a str> {
        let target = self.target + usize::from(self.decision == Decision::Fallback);
        (target > 0).then(|| policy.targets.get(target).map(|t| t.id.as_str())).flatten()
    }

    /// The receipt as one line of JSON, masked.
    #[must_use]
    pub fn to_json(&self, ids: &Ids, policy: &Policy, masks: Masks) -> String {
        let masked = |text: &'_ Option<String>| text.as_deref().map(|t| mask(t, masks).into_owned().into());
        let failure = self.failure.as_ref();
        let target = policy.targets[self.target].id.as_str();
        let ms = Span::as_millis_rounded;
        let usage = self.usage.as_ref();
        let line = Line {
            trace_id: &ids.trace_id,
            scene: ids.scene.as_deref(),
            prompt_version: ids.prompt_version.as_deref(),
            attempt: self.attempt,
            retry_count: self.retry_count,
            target,
            fallback_used: self.target > 0,
            fallback_target_id: self.fallback(policy),
            started_ms: ms(self.started),
            latency_ms: ms(self.ended.minus(self.started)),
            first_item_ms: self.first_item.map(|at| ms(at.minus(self.started))),
            delivered: self.delivered,
            outcome: self.outcome(),
            kind: failure.map(|f| f.kind.name()),
            category: failure.map(|f| f.kind.category().name()),
            code: failure.and_then(|f| masked(&f.code)),
            message: failure.and_then(|f| masked(&f.message)),
            decided_by: failure.map(|f| f.decided_by.name()),
            decision: self.decision.name(),
            reason: self.reason,
            backoff_ms: self.backoff.map(ms),
            retry_after_ms: failure.and_then(|f| f.retry_after).map(ms),
            retry_after_source: failure.and_then(|f| f.retry_after_source).map(crate::RetryAfterSource::name),
            delay_ms: self.delay.map(ms),
            time_left_ms: ms(self.time_left),
            budget_before: self.budget.map(|b| b.0),
            budget_after: self.budget.map(|b| b.1),
            breaker: self.breaker,
            guard_store: self.guard_store,
            outer_trace_id: ids.outer_trace_id.as_deref(),
            input_tokens: usage.and_then(|u| u.input_tokens),
            output_tokens: usage.and_then(|u| u.output_tokens),
            cost: usage.and_then(Usage::cost),
            currency: usage.and_then(|u| u.currency.as_deref()),
        };
        json(&line)
    }
}

/// The `call_ended` line: field names and their order are frozen.
#[derive(Serialize)]
struct EndedLine<'a> {
    record: &'static str,
    trace_id: &'a str,
    scene: Option<&'a str>,
    prompt_version: Option<&'a str>,
    outcome: &'static str,
    decision: &'static str,
    reason: Option<&'static str>,
    disposition: Option<&'static str>,
    attempts: u32,
    retries: u32,
    target: &'a str,
    fallback_used: bool,
    elapsed_ms: u64,
    waited_ms: u64,
    resume_in_ms: Option<u64>,
    idempotency_key: Option<&'a str>,
    outer_trace_id: Option<&'a str>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cost: Option<f64>,
    currency: Option<&'a str>,
}

impl Ended {
    /// The `call_ended` line as JSON; what the attempts used is added up from their receipts, and from
    /// a success that has none.
    #[must_use]
    pub fn to_json(&self, ids: &Ids, policy: &Policy, receipts: &[Receipt], unrecorded: Option<&Usage>) -> String {
        let used = Usage::total(receipts.iter().filter_map(|r| r.usage.as_ref()).chain(unrecorded));
        let line = EndedLine {
            record: "call_ended",
            trace_id: &ids.trace_id,
            scene: ids.scene.as_deref(),
            prompt_version: ids.prompt_version.as_deref(),
            outcome: match self.stop {
                None => "success",
                Some(stop) if stop.reason == StopReason::Cancelled => "cancelled",
                Some(_) => "failure",
            },
            decision: if self.stop.is_some() { Decision::Stop } else { Decision::Done }.name(),
            reason: self.stop.map(|s| s.reason.name()),
            disposition: self.stop.map(|s| s.disposition.name()),
            attempts: self.attempts,
            retries: self.attempts.saturating_sub(1),
            target: &policy.targets[self.target].id,
            fallback_used: self.target > 0,
            elapsed_ms: self.elapsed.as_millis_rounded(),
            waited_ms: self.waited.as_millis_rounded(),
            resume_in_ms: self.stop.and_then(|s| s.resume_in).map(Span::as_millis_rounded),
            idempotency_key: ids.idempotency_key.as_deref(),
            outer_trace_id: ids.outer_trace_id.as_deref(),
            input_tokens: used.input_tokens,
            output_tokens: used.output_tokens,
            cost: used.cost(),
            currency: used.currency.as_deref(),
        };
        json(&line)
    }
}
