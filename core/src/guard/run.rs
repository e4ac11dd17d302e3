//! A run's budget, deadline and gate, shared by the calls that make up the run.
//!
//! | event            | attempts | reserved            | used                                    |
//! | ---------------- | -------- | ------------------- | --------------------------------------- |
//! | `admit`          | + 1      | + the estimate      |                                         |
//! | `used`, known    |          | - the estimate      | + what was used                         |
//! | `used`, unknown  |          | - the estimate      | + the estimate; `unknown_usage` + 1     |
//! | `not_started`    | - 1      | - the estimate      |                                         |
//!
//! `admit` refuses when the gate is closed, the deadline has come, or attempts, tokens or cost would pass their limit
//! with this attempt's estimate added to all that is used and reserved. What an attempt really uses may pass a limit;
//! then nothing more is admitted.

use serde::{Deserialize, Serialize};

use super::{Refusal, RefusedBy, Usage};
use crate::Span;
use crate::json;

/// What a run may use. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunConfig {
    /// Attempts over all its calls.
    pub attempts: Option<u64>,
    /// Tokens read and written.
    pub tokens: Option<u64>,
    /// Cost in billionths of the currency's unit. A run is counted in one currency.
    pub cost_nanos: Option<u64>,
    /// A moment on the driver's clock from which nothing more starts.
    pub deadline: Option<Span>,
    /// Tokens reserved for an attempt until its usage is known. Default 0.
    pub estimate_tokens: u64,
    /// Cost reserved for an attempt until its usage is known. Default 0.
    pub estimate_cost_nanos: u64,
}

/// A run's budget, deadline and gate.
///
/// ```
/// use reprieve::Span;
/// use reprieve::guard::{RefusedBy, Run, RunConfig};
///
/// let mut run = Run::new(RunConfig { attempts: Some(1), ..RunConfig::default() });
/// assert!(run.admit(Span::ZERO).is_ok());
/// assert_eq!(run.admit(Span::ZERO).unwrap_err().by, RefusedBy::RunBudget);
/// run.cancel("the user left");
/// assert_eq!(run.admit(Span::ZERO).unwrap_err().by, RefusedBy::RunEnded);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    config: RunConfig,
    attempts: u64,
    /// Attempts admitted whose usage is still reserved.
    in_flight: u64,
    tokens: u64,
    cost_nanos: u64,
    unknown_usage: u64,
    ended: Option<RunEnd>,
}

/// How a run's gate was closed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// Somebody cancelled it, for this reason.
    Cancelled(String),
    /// It reached this terminal state.
    State(String),
}

impl Run {
    /// A run that has used nothing yet.
    #[must_use]
    pub fn new(config: RunConfig) -> Run {
        Run { config, ..Run::default() }
    }

    /// May an attempt start? Counts it and reserves its estimate when it may.
    ///
    /// # Errors
    /// Refused when the run has ended, its deadline has come, or a budget would be passed.
    pub fn admit(&mut self, now: Span) -> Result<(), Refusal> {
        self.would_admit(now)?;
        self.attempts = self.attempts.saturating_add(1);
        self.in_flight = self.in_flight.saturating_add(1);
        Ok(())
    }

    /// The answer [`Run::admit`] would give, without charging anything.
    ///
    /// # Errors
    /// As [`Run::admit`].
    pub fn would_admit(&self, now: Span) -> Result<(), Refusal> {
        self.gate()?;
        let config = &self.config;
        let (tokens, cost_nanos) = self.reserved();
        let over = config.deadline.is_some_and(|deadline| now >= deadline)
            || config.attempts.is_some_and(|most| self.attempts >= most)
            || passes(config.tokens, self.tokens, tokens, config.estimate_tokens)
            || passes(config.cost_nanos, self.cost_nanos, cost_nanos, config.estimate_cost_nanos);
        if over { Err(refusal(RefusedBy::RunBudget)) } else { Ok(()) }
    }

    /// Whether the gate is open.
    ///
    /// # Errors
    /// Refused once the run was cancelled or has ended.
    pub fn gate(&self) -> Result<(), Refusal> {
        if self.ended.is_some() { Err(refusal(RefusedBy::RunEnded)) } else { Ok(()) }
    }

    /// An attempt ended: what it used replaces its estimate. What is not known is charged as estimated, a part that is
    /// known at the least, and counted as unknown: tokens unless both numbers are there, cost where cost is budgeted.
    pub fn used(&mut self, usage: Option<&Usage>) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let (input, output) = usage.map_or((None, None), |usage| (usage.input_tokens, usage.output_tokens));
        let known = input.unwrap_or(0).saturating_add(output.unwrap_or(0));
        let whole = input.is_some() && output.is_some();
        let tokens = if whole { known } else { known.max(self.config.estimate_tokens) };
        let cost = usage.and_then(|usage| usage.cost_nanos);

        self.tokens = self.tokens.saturating_add(tokens);
        self.cost_nanos = self.cost_nanos.saturating_add(cost.unwrap_or(self.config.estimate_cost_nanos));
        if !whole || (cost.is_none() && self.config.cost_nanos.is_some()) {
            self.unknown_usage = self.unknown_usage.saturating_add(1);
        }
    }

    /// An attempt that was admitted never started: takes count and reservation back.
    pub fn not_started(&mut self) {
        if self.in_flight > 0 {
            self.in_flight -= 1;
            self.attempts = self.attempts.saturating_sub(1);
        }
    }

    /// Closes the gate: nothing starts any more. The first closing stays.
    pub fn cancel(&mut self, reason: &str) {
        self.ended.get_or_insert_with(|| RunEnd::Cancelled(reason.to_owned()));
    }

    /// Closes the gate because the run reached a terminal state, such as `SUCCEEDED`. The first closing stays.
    pub fn end(&mut self, state: &str) {
        self.ended.get_or_insert_with(|| RunEnd::State(state.to_owned()));
    }

    /// How the gate was closed, if it was.
    #[must_use]
    pub fn ended(&self) -> Option<&RunEnd> {
        self.ended.as_ref()
    }

    /// The moment on the driver's clock from which nothing more starts.
    #[must_use]
    pub fn deadline(&self) -> Option<Span> {
        self.config.deadline
    }

    /// What was used, what is reserved and what the limits are, for people and records. As JSON.
    #[must_use]
    pub fn report(&self) -> String {
        let (tokens, cost_nanos) = self.reserved();
        json::object(|out| {
            out.object("attempts", |out| {
                out.number("used", self.attempts);
                out.number("in_flight", self.in_flight);
                out.number("limit", self.config.attempts);
            });
            out.object("tokens", |out| {
                out.number("used", self.tokens);
                out.number("reserved", tokens);
                out.number("limit", self.config.tokens);
            });
            out.object("cost_nanos", |out| {
                out.number("used", self.cost_nanos);
                out.number("reserved", cost_nanos);
                out.number("limit", self.config.cost_nanos);
            });
            out.number("unknown_usage", self.unknown_usage);
            match &self.ended {
                None => out.text("ended", None),
                Some(RunEnd::Cancelled(reason)) => out.object("ended", |out| out.text("cancelled", reason.as_str())),
                Some(RunEnd::State(state)) => out.object("ended", |out| out.text("state", state.as_str())),
            }
        })
    }

    /// Tokens and cost reserved for what is in flight.
    fn reserved(&self) -> (u64, u64) {
        let times = |estimate: u64| estimate.saturating_mul(self.in_flight);
        (times(self.config.estimate_tokens), times(self.config.estimate_cost_nanos))
    }
}

/// A limit is used up, or one more estimate would pass it.
fn passes(limit: Option<u64>, used: u64, reserved: u64, estimate: u64) -> bool {
    let taken = used.saturating_add(reserved);
    limit.is_some_and(|limit| taken >= limit || taken.saturating_add(estimate) > limit)
}

fn refusal(by: RefusedBy) -> Refusal {
    Refusal { by, resume_in: None, waitable: false }
}
