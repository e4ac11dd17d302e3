//! Shedding: under reported load, less important calls are refused before they start.

use serde::{Deserialize, Serialize};

use super::{Refusal, RefusedBy};
use crate::json::Fields;
use crate::policy::{Millionths, ShedConfig};

/// The load as last reported. What was never reported sheds nothing.
///
/// ```
/// use reprieve::guard::Load;
/// use reprieve::policy::ShedConfig;
///
/// let config = ShedConfig { queue_depth: Some(1_000), cost_ratio: None, below_priority: 5 };
/// let mut load = Load::default();
/// load.report(Some(1_001), None);
/// assert!(load.admit(&config, 4).is_err());
/// assert!(load.admit(&config, 5).is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Load {
    /// Jobs waiting.
    queue_depth: Option<u64>,
    /// Cost as a share of what may be spent, in millionths.
    cost_ratio: Option<u64>,
}

impl Load {
    pub(super) fn write(&self, out: &mut Fields<'_>) {
        out.number("queue_depth", self.queue_depth);
        out.number("cost_ratio", self.cost_ratio);
    }

    /// Takes a report; what it leaves out stays as it was, so that two reporters do not erase each other.
    pub fn report(&mut self, queue_depth: Option<u64>, cost_ratio: Option<Millionths>) {
        self.queue_depth = queue_depth.or(self.queue_depth);
        self.cost_ratio = cost_ratio.map(|ratio| ratio.0).or(self.cost_ratio);
    }

    /// May a call of this priority start?
    ///
    /// # Errors
    /// Refused when its priority is below `below_priority` and a threshold is passed; being at it is not passing it.
    pub fn admit(&self, config: &ShedConfig, priority: u32) -> Result<(), Refusal> {
        let deep = over(self.queue_depth, config.queue_depth);
        let costly = over(self.cost_ratio, config.cost_ratio.map(|ratio| ratio.0));
        if priority < config.below_priority && (deep || costly) {
            return Err(Refusal { by: RefusedBy::Shed, resume_in: None, waitable: false });
        }
        Ok(())
    }
}

/// Both are known, and the report is above the threshold.
fn over(reported: Option<u64>, threshold: Option<u64>) -> bool {
    reported.zip(threshold).is_some_and(|(reported, threshold)| reported > threshold)
}
