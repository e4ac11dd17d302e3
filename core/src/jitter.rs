//! The named, frozen generator and the jitter kinds.
//!
//! The generator is SplitMix64's finaliser over a counter (Steele, Lea, Flood, "Fast splittable pseudorandom number
//! generators", 2014): every draw is a pure function of seed, attempt and purpose, so a delay can be computed again
//! from a receipt. Frozen: the delays of a seed are public API.

use crate::Span;
use crate::policy::Millionths;

/// How a wait is spread at random. `c` is the curve's wait, cut so that no draw passes the cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jitter {
    /// Exactly c.
    None,
    /// U\[0, c\].
    Full,
    /// U\[c(1-r), c\]. The default, with r = 0.5: never close to no wait at all.
    LowerBounded(Millionths),
    /// U\[c(1-r), c(1+r)\].
    Proportional(Millionths),
    /// U\[c, c(1+r)\].
    Additive(Millionths),
}

impl Jitter {
    /// The names in JSON.
    pub(crate) const NAMES: [&'static str; 5] = ["none", "full", "lower_bounded", "proportional", "additive"];

    /// The name, and the ratio where there is one.
    pub(crate) const fn parts(self) -> (&'static str, Option<Millionths>) {
        match self {
            Jitter::None => (Jitter::NAMES[0], None),
            Jitter::Full => (Jitter::NAMES[1], None),
            Jitter::LowerBounded(r) => (Jitter::NAMES[2], Some(r)),
            Jitter::Proportional(r) => (Jitter::NAMES[3], Some(r)),
            Jitter::Additive(r) => (Jitter::NAMES[4], Some(r)),
        }
    }
}

impl Default for Jitter {
    fn default() -> Jitter {
        Jitter::LowerBounded(Millionths(500_000))
    }
}

/// What a draw is for; each purpose of an attempt has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrawFor {
    /// The backoff's jitter.
    Jitter = 0,
    /// The spread on a retry-after.
    Spread = 1,
    /// The spread on a cooldown.
    Cooling = 2,
}

/// The increment of SplitMix64: the golden ratio in 64 bits.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's finaliser.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A whole number of nanoseconds from `low` to `high`, both included, for this seed, attempt and purpose.
#[must_use]
pub fn draw(seed: u64, attempt: u32, purpose: DrawFor, low: Span, high: Span) -> Span {
    let counter = 8u64.wrapping_mul(u64::from(attempt)).wrapping_add(purpose as u64);
    let x = mix(mix(seed.wrapping_add(GOLDEN)).wrapping_add(GOLDEN.wrapping_mul(counter)));
    let width = u128::from(high.minus(low).as_nanos()) + 1;
    low.plus(Span::saturating_from((u128::from(x) * width) >> 64))
}

impl Jitter {
    /// The interval a wait of `curve` is drawn from; its end never passes `max`.
    #[must_use]
    pub fn interval(self, curve: Span, max: Span) -> (Span, Span) {
        const ONE: u64 = Millionths::ONE.0;
        let upto = |r: Millionths| curve.min(max.scaled(ONE, ONE + r.0));
        match self {
            Jitter::None => (curve.min(max), curve.min(max)),
            Jitter::Full => (Span::ZERO, curve.min(max)),
            Jitter::LowerBounded(r) => (curve.min(max).scaled(ONE - r.0, ONE), curve.min(max)),
            Jitter::Proportional(r) => (upto(r).scaled(ONE - r.0, ONE), upto(r).scaled(ONE + r.0, ONE)),
            Jitter::Additive(r) => (upto(r), upto(r).scaled(ONE + r.0, ONE)),
        }
    }
}
