//! A policy: validated, immutable configuration that holds data and never functions.

mod fields;
#[cfg(test)]
pub(crate) mod testing;

pub use fields::{
    Backoff, BreakerConfig, CooldownConfig, Fields, KindOverride, Millionths, Nested, RetryAfter, RetryBudgetConfig,
    ShedConfig, SideEffects, Stream, StreamMode, Target, Trip,
};

use std::sync::Arc;

/// Validated, immutable configuration. Cloning shares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy(Arc<Fields>);

impl std::ops::Deref for Policy {
    type Target = Fields;
    fn deref(&self) -> &Fields {
        &self.0
    }
}
