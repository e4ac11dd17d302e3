//! Curves: how the wait grows with the attempts on one target. Integers only; products and quotients are floored.

use crate::failure::Kind;
use crate::jitter::{DrawFor, Jitter, draw};
use crate::policy::{Backoff, Millionths};
use crate::{Policy, Span};

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

impl Curve {
    /// The names in JSON, in the order of the variants.
    pub(crate) const NAMES: [&'static str; 5] = ["constant", "linear", "exponential", "decorrelated", "schedule"];

    pub(crate) const fn name(&self) -> &'static str {
        Curve::NAMES[match self {
            Curve::Constant => 0,
            Curve::Linear => 1,
            Curve::Exponential(_) => 2,
            Curve::Decorrelated => 3,
            Curve::Schedule(_) => 4,
        }]
    }
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

    /// The wait at this point of a call: the curve, capped and jittered.
    fn wait(&self, jitter: Jitter, at: Point) -> Span {
        if self.curve == Curve::Decorrelated {
            let high = at.previous.unwrap_or(self.base).scaled(3, 1).max(self.base);
            return draw(at.seed, at.attempt, DrawFor::Jitter, self.base, high).min(self.max);
        }
        let (low, high) = jitter.interval(self.curve(at.n), self.max);
        draw(at.seed, at.attempt, DrawFor::Jitter, low, high)
    }
}

/// Where in a call a wait is computed: all that its draws depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The call's seed.
    pub seed: u64,
    /// The last number issued in the call.
    pub attempt: u32,
    /// The attempts on this target.
    pub n: u32,
    /// The last wait drawn on this target; only decorrelated looks at it.
    pub previous: Option<Span>,
}

impl Policy {
    /// The backoff after a failure of this kind, before any retry-after.
    ///
    /// ```
    /// use reprieve::{Kind, Policy, Span, backoff::Point};
    /// let policy = Policy::from_json(r#"{"backoff": {"base": "1s"}, "jitter": {"kind": "none"}}"#)?;
    /// let third = Point { seed: 7, attempt: 3, n: 3, previous: None };
    /// assert_eq!(policy.backoff_after(Kind::Timeout, third), Span::from_secs(4));
    /// # Ok::<(), reprieve::ConfigError>(())
    /// ```
    #[must_use]
    pub fn backoff_after(&self, kind: Kind, at: Point) -> Span {
        let own = self.for_kind(kind);
        self.curve_for(kind).wait(own.and_then(|own| own.jitter).unwrap_or(self.jitter), at)
    }

    /// The curve of this kind, or the policy's.
    #[must_use]
    pub fn curve_for(&self, kind: Kind) -> &Backoff {
        self.for_kind(kind).and_then(|own| own.backoff.as_ref()).unwrap_or(&self.backoff)
    }

    /// The longer of a backoff and a server's wish. The wish is spread: the spread is drawn in full, then cut to
    /// `room`, the longest wait that fits; the wish itself never is.
    #[must_use]
    pub fn delay(&self, backoff: Span, wish: Option<Span>, at: Point, room: Span) -> Span {
        let Some(wish) = wish else { return backoff };
        let widest = wish.scaled(self.retry_after.spread.0, Millionths::ONE.0);
        let spread = wish.plus(draw(at.seed, at.attempt, DrawFor::Spread, Span::ZERO, widest));
        backoff.max(wish).max(spread.min(room))
    }
}
