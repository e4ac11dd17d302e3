//! The decision core of reprieve.

pub mod action;
pub mod backoff;
pub mod failure;
pub mod guard;
pub mod jitter;
pub mod policy;
mod span;

pub use action::{Action, Disposition, Misuse, Outcome, Redeliver, RetryReason, Step, Stop, StopReason};
pub use failure::{Category, DecidedBy, Evidence, Failure, Kind, KindSet, RetryAfterSource, Rule, When};
pub use policy::{ConfigError, Policy};
pub use span::{Span, SpanError};
