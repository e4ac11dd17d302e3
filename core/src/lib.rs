//! The decision core of reprieve.

pub mod action;
pub mod backoff;
mod call;
pub mod failure;
pub mod guard;
pub mod jitter;
pub mod policy;
mod span;
pub mod trace;
pub mod wire;

pub use action::{Action, Disposition, Misuse, Outcome, Redeliver, RetryReason, Step, Stop, StopReason};
pub use call::{Call, Restore, SnapshotError};
pub use failure::{Category, DecidedBy, Evidence, Failure, Kind, KindSet, RetryAfterSource, Rule, When};
pub use policy::{ConfigError, Policy};
pub use span::{Span, SpanError};
