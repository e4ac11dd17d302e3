//! Receipts: the audit record of one attempt or refusal, and the line that ends a call. One JSON object each.
//!
//! A receipt keeps the failure as it was classified; text is masked when the line is written.

use super::mask::{Masks, mask};
use crate::action::StopReason;
use crate::failure::{Failure, Kind};
use crate::guard::{RefusedBy, Usage};
use crate::json::form::{Form, Record};
use crate::json::{self, Fields};
use crate::{Policy, Span};

/// What names a call in its records. Drawn by the driver; the core draws nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// What wrapping a client changed in it; stands in the `call_ended` line alone.
    pub client: Option<String>,
}

impl Ids {
    /// Only where there is one: most calls are not made through a wrapped client.
    fn write_client(&self, out: &mut Fields<'_>) {
        if let Some(client) = self.client.as_deref() {
            out.text("client", client);
        }
    }

    /// How every line begins.
    fn head(&self, out: &mut Fields<'_>) {
        out.text("trace_id", self.trace_id.as_str());
        out.text("scene", self.scene.as_deref());
        out.text("prompt_version", self.prompt_version.as_deref());
    }

    /// How every line ends: the outer attempt, and what was used.
    fn tail(&self, out: &mut Fields<'_>, used: Option<&Usage>) {
        out.text("outer_trace_id", self.outer_trace_id.as_deref());
        out.number("input_tokens", used.and_then(|u| u.input_tokens));
        out.number("output_tokens", used.and_then(|u| u.output_tokens));
        out.decimal("cost", used.and_then(|u| u.cost_nanos), 9);
        out.text("currency", used.and_then(|u| u.currency.as_deref()));
    }
}

impl Record for Ids {
    fn fields(&mut self, form: &mut Form<'_, '_>) {
        form.field("trace_id", &mut self.trace_id);
        form.field("idempotency_key", &mut self.idempotency_key);
        form.field("scene", &mut self.scene);
        form.field("prompt_version", &mut self.prompt_version);
        form.field("outer_trace_id", &mut self.outer_trace_id);
        if self.client.is_some() || !form.writes() {
            form.field("client", &mut self.client);
        }
    }
}

/// What was decided after an attempt or refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Decision {
    /// The call succeeded.
    #[default]
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
        use Decision::{Done, Fallback, Pending, Retry, Stop, Superseded};
        [Done, Retry, Fallback, Stop, Pending, Superseded].into_iter().find(|d| d.name() == name)
    }
}

/// The record of one attempt, or of a refusal by a guard. Times count from the call's first `begin`.
#[derive(Clone, Debug, Default, PartialEq)]
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

    /// The receipt as one line of JSON, masked. Field names and their order are frozen.
    #[must_use]
    pub fn to_json(&self, ids: &Ids, policy: &Policy, masks: Masks) -> String {
        let ms = Span::as_millis_rounded;
        json::object(|out| {
            ids.head(out);
            out.count("attempt", self.attempt);
            out.count("retry_count", self.retry_count);
            out.text("target", policy.targets[self.target].id.as_str());
            out.flag("fallback_used", self.target > 0);
            out.text("fallback_target_id", self.fallback(policy));
            out.number("started_ms", ms(self.started));
            out.number("latency_ms", ms(self.ended.minus(self.started)));
            out.number("first_item_ms", self.first_item.map(|at| ms(at.minus(self.started))));
            out.number("delivered", self.delivered);
            out.text("outcome", self.outcome());
            self.write_failure(out, masks);
            out.text("decision", self.decision.name());
            out.text("reason", self.reason);
            out.number("backoff_ms", self.backoff.map(ms));
            let failure = self.failure.as_ref();
            out.number("retry_after_ms", failure.and_then(|f| f.retry_after).map(ms));
            let source = failure.and_then(|f| f.retry_after_source);
            out.text("retry_after_source", source.map(crate::RetryAfterSource::name));
            out.number("delay_ms", self.delay.map(ms));
            out.number("time_left_ms", ms(self.time_left));
            out.number("budget_before", self.budget.map(|b| b.0));
            out.number("budget_after", self.budget.map(|b| b.1));
            out.text("breaker", self.breaker);
            out.text("guard_store", self.guard_store);
            ids.tail(out, self.usage.as_ref());
        })
    }

    fn write_failure(&self, out: &mut Fields<'_>, masks: Masks) {
        let failure = self.failure.as_ref();
        out.text("kind", failure.map(|f| f.kind.name()));
        out.text("category", failure.map(|f| f.kind.category().name()));
        for (name, text) in [("code", failure.map(|f| &f.code)), ("message", failure.map(|f| &f.message))] {
            let masked = text.and_then(|text| text.as_deref()).map(|text| mask(text, masks));
            out.text(name, masked.as_deref());
        }
        out.text("decided_by", failure.map(|f| f.decided_by.name()));
    }
}

impl Ended {
    /// The `call_ended` line as JSON; what the attempts used is added up from their receipts, and from
    /// a success that has none. Field names and their order are frozen.
    #[must_use]
    pub fn to_json(&self, ids: &Ids, policy: &Policy, receipts: &[Receipt], unrecorded: Option<&Usage>) -> String {
        let used = Usage::total(receipts.iter().filter_map(|r| r.usage.as_ref()).chain(unrecorded));
        json::object(|out| {
            out.text("record", "call_ended");
            ids.head(out);
            let outcome = match self.stop {
                None => "success",
                Some(stop) if stop.reason == StopReason::Cancelled => "cancelled",
                Some(_) => "failure",
            };
            out.text("outcome", outcome);
            out.text("decision", if self.stop.is_some() { Decision::Stop } else { Decision::Done }.name());
            out.text("reason", self.stop.map(|s| s.reason.name()));
            out.text("disposition", self.stop.map(|s| s.disposition.name()));
            out.count("attempts", self.attempts);
            out.count("retries", self.attempts.saturating_sub(1));
            out.text("target", policy.targets[self.target].id.as_str());
            out.flag("fallback_used", self.target > 0);
            out.number("elapsed_ms", self.elapsed.as_millis_rounded());
            out.number("waited_ms", self.waited.as_millis_rounded());
            out.number("resume_in_ms", self.stop.and_then(|s| s.resume_in).map(Span::as_millis_rounded));
            out.text("idempotency_key", ids.idempotency_key.as_deref());
            ids.write_client(out);
            ids.tail(out, Some(&used));
        })
    }
}
