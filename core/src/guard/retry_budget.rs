//! The retry budget of one target: retries stay a bounded share of the load, however many calls are failing.
//!
//! Tokens mode is a bucket: a retry takes its cost, a first-try success adds `refund`, and a cost comes back when the
//! retry succeeded or never started. Ratio mode counts over a window: as many retries as a share of the requests plus
//! a floor; there a retry counts once it was granted, whatever became of it, or retries that succeed would be free and
//! could double the load. Neither looks at requests in flight, which grow exactly when retries must shrink.

use serde::{Deserialize, Serialize};

use super::window::{Counts, Window};
use super::{Refusal, RefusedBy};
use crate::Span;
use crate::failure::Kind;
use crate::policy::{Millionths, RetryBudgetConfig};

/// The retry budget of one target. Its configuration comes with each call.
///
/// ```
/// use reprieve::guard::RetryBudget;
/// use reprieve::policy::RetryBudgetConfig;
/// use reprieve::{Kind, Span};
///
/// let config = RetryBudgetConfig::Tokens { capacity: 500, retry_cost: 14, throttle_cost: 5, refund: 1 };
/// let mut budget = RetryBudget::default();
/// let charge = budget.charge(Span::ZERO, &config, Kind::Timeout).expect("full");
/// assert_eq!((charge.cost, charge.before, charge.after), (14, 500, 486));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryBudget {
    /// Tokens taken and not given back. Counted from full, so that a new budget need not know its capacity.
    spent: u64,
    /// Requests and retries of the ratio mode.
    window: Option<Window>,
}

/// What a retry was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The cost; 1 in ratio mode.
    pub cost: u32,
    /// The tokens before; in ratio mode the retries left.
    pub before: u64,
    /// The tokens after.
    pub after: u64,
}

impl RetryBudget {
    /// May a failure of this kind be retried? Charges its cost when it may.
    ///
    /// # Errors
    /// Refused when there are fewer tokens than the retry costs.
    pub fn charge(&mut self, now: Span, config: &RetryBudgetConfig, kind: Kind) -> Result<Charge, Refusal> {
        let before = self.tokens(now, config);
        let cost = match *config {
            RetryBudgetConfig::Tokens { throttle_cost, .. } if kind.throttle() => throttle_cost,
            RetryBudgetConfig::Tokens { retry_cost, .. } => retry_cost,
            RetryBudgetConfig::Ratio { .. } => 1,
        };
        if before < u64::from(cost) {
            return Err(Refusal { by: RefusedBy::RetryBudget, resume_in: None, waitable: false });
        }
        match *config {
            RetryBudgetConfig::Tokens { .. } => self.spent = self.spent.saturating_add(u64::from(cost)),
            RetryBudgetConfig::Ratio { window, .. } => self.count(now, window, Counts { whole: 0, part: 1 }),
        }
        Ok(Charge { cost, before, after: before - u64::from(cost) })
    }

    /// A call's first attempt on this target starts: what ratio mode measures retries against.
    pub fn request(&mut self, now: Span, config: &RetryBudgetConfig) {
        if let RetryBudgetConfig::Ratio { window, .. } = *config {
            self.count(now, window, Counts { whole: 1, part: 0 });
        }
    }

    /// A call succeeded at its first try. Nothing in ratio mode.
    pub fn refund(&mut self, config: &RetryBudgetConfig) {
        if let RetryBudgetConfig::Tokens { refund, .. } = *config {
            self.spent = self.spent.saturating_sub(u64::from(refund));
        }
    }

    /// A cost comes back: the retry succeeded, or never started. Nothing in ratio mode.
    pub fn give_back(&mut self, config: &RetryBudgetConfig, cost: u32) {
        if let RetryBudgetConfig::Tokens { .. } = *config {
            self.spent = self.spent.saturating_sub(u64::from(cost));
        }
    }

    /// The tokens left; in ratio mode the retries left.
    #[must_use]
    pub fn tokens(&self, now: Span, config: &RetryBudgetConfig) -> u64 {
        match *config {
            RetryBudgetConfig::Tokens { capacity, .. } => u64::from(capacity).saturating_sub(self.spent),
            RetryBudgetConfig::Ratio { ratio, min_per_second, window } => {
                let counts = self.window.as_ref().map_or(Counts::default(), |held| held.sum(now));
                retries_left(counts, ratio, min_per_second, window)
            }
        }
    }

    /// It is full, and a first-try success would change nothing.
    pub(super) fn is_calm(&self, config: &RetryBudgetConfig) -> bool {
        matches!(config, RetryBudgetConfig::Tokens { .. }) && self.spent == 0
    }

    /// Nothing would be lost by forgetting it.
    pub(super) fn is_idle(&self, now: Span) -> bool {
        self.spent == 0 && self.window.as_ref().is_none_or(|window| window.sum(now) == Counts::default())
    }

    /// What was spent of a bucket, for people.
    pub(super) fn spent(&self) -> u64 {
        self.spent
    }

    fn count(&mut self, now: Span, length: Span, counts: Counts) {
        let window = self.window.get_or_insert_default();
        window.fit(now, length);
        window.add(now, counts);
    }
}

/// The share of the requests plus the floor, less the retries. The rests of both are added up in billionths of a retry,
/// so that only whole retries are granted.
fn retries_left(counts: Counts, ratio: Millionths, min_per_second: u32, window: Span) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let share = counts.whole.saturating_mul(ratio.0);
    let (least, length) = (u64::from(min_per_second), window.as_nanos());
    let part = least.saturating_mul(length % SECOND);
    let whole =
        (share / Millionths::ONE.0).saturating_add(least.saturating_mul(length / SECOND)).saturating_add(part / SECOND);
    let rests = share % Millionths::ONE.0 * 1_000 + part % SECOND;
    whole.saturating_add(rests / SECOND).saturating_sub(counts.part)
}
