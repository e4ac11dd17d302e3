//! What attempts used: tokens and cost, for records and for a run's budget.

use crate::json::form::{Form, Record};

/// What one attempt used.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// Cost in billionths of the currency's unit.
    pub cost_nanos: Option<u64>,
    /// The currency, such as `USD`.
    pub currency: Option<String>,
}

impl Record for Usage {
    fn fields(&mut self, form: &mut Form<'_, '_>) {
        form.field("input_tokens", &mut self.input_tokens);
        form.field("output_tokens", &mut self.output_tokens);
        form.field("cost_nanos", &mut self.cost_nanos);
        form.field("currency", &mut self.currency);
    }
}

impl Usage {
    /// The cost in the currency's unit, for people; what is counted are the billionths.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people; the billionths stay exact inside")]
    pub fn cost(&self) -> Option<f64> {
        self.cost_nanos.map(|nanos| nanos as f64 / 1e9)
    }

    /// The sum; a number that none of them knows stays unknown. Costs in different currencies are not added up.
    pub fn total<'a>(all: impl IntoIterator<Item = &'a Usage>) -> Usage {
        fn add(sum: Option<u64>, more: Option<u64>) -> Option<u64> {
            more.map_or(sum, |more| Some(sum.unwrap_or(0).saturating_add(more)))
        }
        let mut total = Usage::default();
        let mut mixed = false;
        for usage in all {
            total.input_tokens = add(total.input_tokens, usage.input_tokens);
            total.output_tokens = add(total.output_tokens, usage.output_tokens);
            total.cost_nanos = add(total.cost_nanos, usage.cost_nanos);
            mixed |= total.currency.is_some() && usage.currency.is_some() && total.currency != usage.currency;
            total.currency = total.currency.or_else(|| usage.currency.clone());
        }
        if mixed {
            total.cost_nanos = None;
            total.currency = None;
        }
        total
    }
}
