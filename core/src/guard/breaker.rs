//! The breaker: stops calling a service that keeps failing, and finds out with one probe whether it is back.
//!
//! | state     | event                                         | next                                          |
//! | --------- | --------------------------------------------- | --------------------------------------------- |
//! | closed    | a verdict that trips it                       | open for `open_for`                           |
//! | closed    | any other verdict                             | closed, counted; `Released` is not counted    |
//! | open      | `admit` before its time is over               | open; refused                                 |
//! | open      | `admit` after that                            | half-open, with a probe                       |
//! | half-open | `admit` while the probe's lease runs          | half-open; refused                            |
//! | half-open | `admit` without a probe, or past its lease    | half-open, with this probe                    |
//! | half-open | a probe's `Success`                           | closed, nothing counted                       |
//! | half-open | a probe's `Failed`                            | open for twice as long, up to `open_for_max`  |
//! | half-open | the current probe's `Released`                | half-open, without a probe                    |
//! | any       | a permit of another generation                | unchanged                                     |
//!
//! The generation counts the changes of state. Two probes of one half-open state (the first outlived its lease) share
//! it, and the first to report ends it for both. Only a probe's permit occupies anything, so a caller that dies costs
//! at most one lease.

use serde::{Deserialize, Serialize};

use super::window::{Counts, Window};
use super::{Permit, Refusal, RefusedBy, Verdict, time_left};
use crate::Span;
use crate::policy::{BreakerConfig, Millionths, Trip};

/// The breaker of one upstream. Its configuration comes with each call.
///
/// ```
/// use reprieve::Span;
/// use reprieve::guard::{Breaker, BreakerState, Verdict};
/// use reprieve::policy::{BreakerConfig, Trip};
///
/// let config = BreakerConfig {
///     trip: Trip::Consecutive(2),
///     open_for: Span::from_secs(30),
///     open_for_max: Span::from_secs(300),
///     probe_lease: Span::from_secs(60),
/// };
/// let (mut breaker, now) = (Breaker::default(), Span::ZERO);
/// for _ in 0..2 {
///     let permit = breaker.admit(now, &config).expect("closed");
///     breaker.settle(now, &config, permit, Verdict::Failed);
/// }
/// assert_eq!(breaker.state(now), BreakerState::Open);
/// assert_eq!(breaker.admit(now, &config).unwrap_err().resume_in, Some(Span::from_secs(30)));
/// assert_eq!(breaker.state(Span::from_secs(30)), BreakerState::HalfOpen);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    generation: u64,
    phase: Phase,
    /// Failed verdicts in a row, while closed.
    failures: u32,
    /// Verdicts of the ratio mode, while closed.
    window: Option<Window>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    #[default]
    Closed,
    Open {
        opened_at: Span,
        length: Span,
    },
    HalfOpen {
        /// When the current probe was admitted.
        probe: Option<Span>,
        /// How long it was open before: what the next opening doubles.
        length: Span,
    },
}

/// What a breaker's state is called in records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Calls pass.
    Closed,
    /// Calls are refused.
    Open,
    /// One probe may pass, or is under way.
    HalfOpen,
}

impl BreakerState {
    /// The wire name, such as `half_open`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            BreakerState::Closed => "closed",
            BreakerState::Open => "open",
            BreakerState::HalfOpen => "half_open",
        }
    }
}

impl Breaker {
    /// May an attempt start?
    ///
    /// # Errors
    /// Refused while open, and while another probe holds its lease; says when that is over.
    pub fn admit(&mut self, now: Span, config: &BreakerConfig) -> Result<Permit, Refusal> {
        match self.held(now, config) {
            None => Ok(self.take(now)),
            Some(left) => Err(Refusal { by: RefusedBy::CircuitOpen, resume_in: Some(left), waitable: false }),
        }
    }

    /// The verdict of a call that held `permit`.
    pub fn settle(&mut self, now: Span, config: &BreakerConfig, permit: Permit, verdict: Verdict) {
        if permit.generation != self.generation {
            return;
        }
        match (self.phase, verdict) {
            (Phase::Closed, Verdict::Success) => self.count(now, config, permit.at, false),
            (Phase::Closed, Verdict::Failed) => self.count(now, config, permit.at, true),
            (Phase::HalfOpen { .. }, Verdict::Success) => self.enter(Phase::Closed),
            (Phase::HalfOpen { length, .. }, Verdict::Failed) => {
                let doubled = length.plus(length).min(config.open_for_max).max(config.open_for);
                self.enter(Phase::Open { opened_at: now, length: doubled });
            }
            // A probe that outlived its lease must not free the place of the one that took over.
            (Phase::HalfOpen { probe: Some(at), length }, Verdict::Released) if at == permit.at => {
                self.phase = Phase::HalfOpen { probe: None, length };
            }
            _ => {}
        }
    }

    /// How long it goes on refusing; `None` when it would admit.
    #[must_use]
    pub fn held(&self, now: Span, config: &BreakerConfig) -> Option<Span> {
        match self.phase {
            Phase::Closed => None,
            Phase::Open { opened_at, length } => time_left(now, opened_at, length),
            Phase::HalfOpen { probe, .. } => time_left(now, probe?, config.probe_lease),
        }
    }

    /// Its state now. An open one whose time is over is half-open.
    #[must_use]
    pub fn state(&self, now: Span) -> BreakerState {
        match self.phase {
            Phase::Open { opened_at, length } if time_left(now, opened_at, length).is_none() => BreakerState::HalfOpen,
            _ => self.last_state(),
        }
    }

    /// It refuses, or is only probing.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase != Phase::Closed
    }

    /// The state it was last put into, whatever the time: what transitions are told by.
    pub(super) fn last_state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// How long until it may half-open, for people; the lease of a probe is not known here.
    pub(super) fn half_open_in(&self, now: Span) -> Option<Span> {
        match self.phase {
            Phase::Open { opened_at, length } => time_left(now, opened_at, length),
            _ => None,
        }
    }

    /// Its generation, while it would admit a call and that call's success would change nothing.
    pub(super) fn calm(&self, config: &BreakerConfig) -> Option<u64> {
        let counts_successes = matches!(config.trip, Trip::Ratio { .. });
        (self.phase == Phase::Closed && self.failures == 0 && !counts_successes).then_some(self.generation)
    }

    /// Nothing would be lost by forgetting it.
    pub(super) fn is_idle(&self, now: Span) -> bool {
        let counted = self.window.as_ref().is_some_and(|window| window.sum(now) != Counts::default());
        !self.is_open() && self.failures == 0 && !counted
    }

    /// The permit, once [`Breaker::held`] has answered `None`.
    pub(super) fn take(&mut self, now: Span) -> Permit {
        match self.phase {
            Phase::Closed => {}
            Phase::Open { length, .. } => self.enter(Phase::HalfOpen { probe: Some(now), length }),
            Phase::HalfOpen { length, .. } => self.phase = Phase::HalfOpen { probe: Some(now), length },
        }
        Permit { generation: self.generation, probe: self.is_open(), at: now }
    }

    /// Counts a verdict while closed, in the slot in which the call was sent, and opens when it trips.
    fn count(&mut self, now: Span, config: &BreakerConfig, sent: Span, failed: bool) {
        self.failures = if failed { self.failures.saturating_add(1) } else { 0 };
        let trips = match config.trip {
            Trip::Consecutive(limit) => failed && self.failures >= limit,
            Trip::Ratio { window: length, min_calls, ratio } => {
                let window = self.window.get_or_insert_default();
                window.fit(now, length);
                window.add(sent, Counts { whole: 1, part: u64::from(failed) });
                reaches(window.sum(now), min_calls, ratio)
            }
        };
        if trips {
            self.enter(Phase::Open { opened_at: now, length: config.open_for });
        }
    }

    /// A change of state: a new generation, nothing counted.
    fn enter(&mut self, phase: Phase) {
        *self = Breaker { generation: self.generation.saturating_add(1), phase, failures: 0, window: None };
    }
}

/// Enough calls, and enough of them failed. Compared as products, so that no division rounds.
fn reaches(calls: Counts, min_calls: u32, ratio: Millionths) -> bool {
    calls.part > 0
        && calls.whole >= u64::from(min_calls)
        && u128::from(calls.part) * u128::from(Millionths::ONE.0) >= u128::from(ratio.0) * u128::from(calls.whole)
}
