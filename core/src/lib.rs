//! The decision core of reprieve.

pub mod backoff;
pub mod failure;
pub mod guard;
pub mod jitter;
pub mod policy;
mod span;
pub mod trace;

pub use failure::{Category, DecidedBy, Evidence, Failure, Kind, KindSet, RetryAfterSource, Rule, When};
pub use policy::Policy;
pub use span::{Span, SpanError};
