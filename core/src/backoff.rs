//! Curves: how the wait grows with the attempts on one target. Integers only; products and quotients are floored.

use crate::Span;
use crate::jitter::{DrawFor, Jitter, draw};
use crate::policy::{Backoff, Millionths};

/// The shape of a wait's growth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Curve {
    /// Always the base.
    Constant,
    /// The base times n.
    Linear,
    /// The base, multiplied by the factor step by step.
    Exponential(Millionths),
    /// U\[base, 3 x the previous wait\], its own jitter.
    Decorrelated,
    /// These waits in order; the last one repeats.
    Schedule(Vec<Span>),
}

impl Backoff {
    /// The curve's wait after attempt `n` on a target (from 1), before cap and jitter. Decorrelated has no curve of
    /// its own and answers its base.
    #[must_use]
    pub fn curve(&self, n: u32) -> Span {
        let n = n.max(1);
        match &self.curve {
            Curve::Constant | Curve::Decorrelated => self.base,
            Curve::Linear => self.base.scaled(u64::from(n), 1),
            Curve::Exponential(factor) => self.exponential(*factor, n),
            Curve::Schedule(waits) => {
                let last = waits.len().saturating_sub(1);
                waits.get(last.min(n as usize - 1)).copied().unwrap_or(self.base)
            }
        }
    }

    /// Multiplies step by step, so that every platform floors at the same places, and stops at the cap.
    fn exponential(&self, factor: Millionths, n: u32) -> Span {
        let mut wait = self.base;
        for _ in 1..n {
            let next = wait.scaled(factor.0, Millionths::ONE.0);
            if wait >= self.max || next == wait {
                break;
            }
            wait = next;
        }
        wait
    }

    /// The wait after attempt `n` on this target: the curve, capped and jittered. `attempt` is the last number issued
    /// in the call, `previous` the last wait drawn on this target (decorrelated only).
    #[must_use]
    pub fn wait(&self, jitter: Jitter, seed: u64, attempt: u32, n: u32, previous: Option<Span>) -> Span {
        if self.curve == Curve::Decorrelated {
            let high = previous.unwrap_or(self.base).scaled(3, 1).max(self.base);
            return draw(seed, attempt, DrawFor::Jitter, self.base, high).min(self.max);
        }
        let (low, high) = jitter.interval(self.curve(n), self.max);
        draw(seed, attempt, DrawFor::Jitter, low, high)
    }
}
