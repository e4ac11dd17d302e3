//! A policy for tests of machines that need one, without reading or validation.

use std::sync::Arc;

use super::{Backoff, Fields, Millionths, Nested, Policy, RetryAfter, SideEffects, Stream, Target};
use crate::Span;
use crate::backoff::Curve;
use crate::failure::KindSet;
use crate::jitter::Jitter;

/// A policy of one target named `primary` and no guards, changed by `change`.
pub(crate) fn policy(change: impl FnOnce(&mut Fields)) -> Policy {
    let mut fields = Fields {
        max_attempts: 3,
        connect_timeout: None,
        attempt_timeout: None,
        total_timeout: Span::from_secs(600),
        min_attempt_time: Span::ZERO,
        max_total_wait: None,
        max_attempts_total: None,
        backoff: Backoff {
            curve: Curve::Exponential(Millionths(2_000_000)),
            base: Span::from_millis(500),
            max: Span::from_secs(20),
        },
        jitter: Jitter::default(),
        retry_after: RetryAfter { max: Span::from_secs(60), spread: Millionths(100_000) },
        retry_on: KindSet::retriable(),
        fallback_on: KindSet::EMPTY,
        kinds: Vec::new(),
        rules: Vec::new(),
        side_effects: SideEffects::default(),
        nested: Nested::default(),
        requires_human_fallback: false,
        priority: 5,
        targets: vec![target("primary")],
        breaker: None,
        retry_budget: None,
        cooldown: None,
        shed: None,
        stream: Stream::default(),
    };
    change(&mut fields);
    Policy(Arc::new(fields))
}

/// A target with nothing but a name.
pub(crate) fn target(id: &str) -> Target {
    Target {
        id: id.to_owned(),
        account: None,
        upstream: None,
        max_attempts: None,
        attempt_timeout: None,
        connect_timeout: None,
    }
}
