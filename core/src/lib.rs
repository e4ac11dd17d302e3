//! The retry engine for calls that fail: to language models, to tools, to any service.
//!
//! This crate decides and does nothing else. It reads no clock, draws no entropy, sleeps and sends nothing: outcomes
//! and elapsed time go in, the next [`Action`] comes out. The same inputs give the same decisions in every language
//! that drives it, to the nanosecond. Whoever calls it, a *driver*, runs the attempts and does the sleeping.
//!
//! # The loop
//!
//! A driver is one loop, the same in every language. This is a whole one:
//!
//! ```
//! use std::thread::sleep;
//! use std::time::Instant;
//!
//! use reprieve::{Action, Call, Evidence, Misuse, Outcome, Policy, Span, Stop};
//!
//! /// Calls `attempt` as the policy says; answers its value, or the last failure and why the call stopped.
//! fn retry<T>(
//!     policy: &Policy,
//!     seed: u64,
//!     mut attempt: impl FnMut(&str, Span) -> Result<T, Evidence>,
//! ) -> Result<Result<T, (Option<Evidence>, Stop)>, Misuse> {
//!     let clock = Instant::now();
//!     let now = || Span::from(clock.elapsed());
//!     let mut call = Call::new(policy.clone(), seed);
//!     let (mut value, mut failed) = (None, None);
//!     let mut step = call.begin(now())?;
//!     loop {
//!         step = match step.action {
//!             Action::Attempt { number, target, timeout, .. } => {
//!                 let outcome = match attempt(&policy.targets[target].id, timeout) {
//!                     Ok(answer) => {
//!                         value = Some(answer);
//!                         Outcome::success()
//!                     }
//!                     Err(evidence) => Outcome::from_evidence(failed.insert(evidence), policy),
//!                 };
//!                 call.on_outcome(now(), number, outcome)?
//!             }
//!             Action::Retry { after, .. } | Action::Fallback { after, .. } => {
//!                 sleep(after.into());
//!                 call.begin(now())?
//!             }
//!             Action::Stop(stop) => return Ok(Err((failed, stop))),
//!             Action::Done => return Ok(Ok(value.expect("an attempt succeeded"))),
//!             // Asked only of a guarded call; answered only where attempts overlap or are cancelled.
//!             Action::Ask(_) | Action::Pending | Action::Ignored => unreachable!("one attempt at a time, no guards"),
//!         };
//!     }
//! }
//!
//! let policy = Policy::from_json(r#"{"backoff": {"base": "1ms", "max": "2ms"}, "total_timeout": "60s"}"#)?;
//! let mut answers = [503, 429, 200].into_iter();
//! let answer = retry(&policy, 7, |_target, _timeout| match answers.next() {
//!     Some(200) => Ok("fine"),
//!     status => Err(Evidence { status, ..Evidence::default() }),
//! })?;
//! assert_eq!(answer.unwrap(), "fine");
//!
//! let refused = retry(&policy, 7, |_, _| Err::<(), _>(Evidence { status: Some(401), ..Evidence::default() }))?;
//! assert_eq!(refused.unwrap_err().1.reason.name(), "not_retryable");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/driver.rs` is the same loop with guards, cancellation and records: copy it and make it your own. An `if`
//! about policy in a driver belongs in here.
//!
//! Where the policy hedges, an attempt carries `hedge_after`: when it has neither an outcome nor a first item by that time,
//! a driver that can run attempts beside each other calls [`Call::hedge`], and runs the `Attempt` that it may answer beside
//! those in flight. `Pending`, there or after an outcome, means to wait for the others. After `Done` or `Stop`, and after a
//! [first item](Call::first_item), the driver cancels the others.
//!
//! # Words
//!
//! | word | meaning |
//! | --- | --- |
//! | policy | validated, immutable configuration; an invalid one cannot be built; holds data, never functions: [`Policy`] |
//! | call | one logical call a user makes; owns one trace id, one deadline, one idempotency key: [`Call`] |
//! | attempt | one try; numbered from 1 over the whole call; the first one counts |
//! | target | what an attempt is aimed at: the primary, then its fallbacks in order: [`policy::Target`] |
//! | evidence | the raw facts of one failure: [`Evidence`] |
//! | failure | what evidence was classified as, with its kind, category and code: [`Failure`] |
//! | retry-after | how long the server asked us to wait, from a header, a body field or a message |
//! | action | what the driver must do next: [`Action`] |
//! | guard | state shared by calls: breaker, retry budget, cooldown, limits, shedding: [`guard::Guards`] |
//! | receipt | the audit record of one attempt or refusal; a trace is a call's receipts and how it ended: [`trace::Receipt`] |
//! | run | an agent's run, made of many calls, with a budget and a gate: [`guard::Run`] |
//!
//! # Map
//!
//! - [`policy`]: fields, presets, JSON and its validation. [`json`]: the one tree that all JSON is read into.
//! - [`Call`]: the state machine of one call; [`Call::snapshot`] writes it down to go on elsewhere.
//! - [`action`]: an [`Outcome`] in, a [`Step`] out, each with its reason.
//! - [`backoff`] and [`jitter`]: how long a wait is, and the frozen generator behind it.
//! - [`failure`]: kinds, categories, and [`classify`](failure::classify).
//! - [`guard`]: the machines that calls share; each takes `now` as an argument.
//! - [`stream`]: what one event of a stream is: held back, content, the end, an error.
//! - [`trace`]: receipts, the `call_ended` line, masking.
//! - [`wire`]: the JSON that bindings and conformance vectors speak.
//!
//! # What always holds
//!
//! No input makes it panic. No delay is negative or past its cap, none is shorter than the retry-after it honours, no
//! attempt starts after the deadline, and one outcome is never decided twice. Time that goes backwards stands still.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types)]

pub mod action;
pub mod backoff;
mod call;
pub mod failure;
pub mod guard;
pub mod jitter;
pub mod json;
pub mod policy;
mod span;
pub mod stream;
mod text;
pub mod trace;
pub mod wire;
mod words;

pub use action::{Action, Disposition, Misuse, Outcome, Redeliver, RetryReason, Step, Stop, StopReason};
pub use call::{Call, Restore, SnapshotError};
pub use failure::{Category, DecidedBy, Evidence, Failure, Kind, KindSet, RetryAfterSource, Rule, When};
pub use policy::{ConfigError, Policy};
pub use span::{Span, SpanError};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
