//! The user's own rules: all conditions of one hold, or it says nothing.

use super::error_type::TypeName;
use super::facts::Facts;
use super::{Rule, When};
use crate::text::{self, lowered};

/// The first rule that holds.
pub(super) fn first<'r>(rules: &'r [Rule], facts: &Facts) -> Option<&'r Rule> {
    rules.iter().find(|rule| holds(&rule.when, facts))
}

fn holds(when: &When, facts: &Facts) -> bool {
    // No condition at all would hold for everything; the policy refuses such a rule, and here it says nothing.
    *when != When::default()
        && when.error.as_deref().is_none_or(|e| facts.evidence.error_types.iter().any(|name| TypeName::new(name).is(e)))
        && when.status.is_none_or(|status| facts.evidence.status == Some(status))
        && when.code.as_deref().is_none_or(|code| facts.codes.iter().any(|c| c == code))
        && when.error_type.as_deref().is_none_or(|t| facts.types.contains(&t))
        && when.message.as_deref().is_none_or(|part| says(part, facts))
}

/// Whether the provider's message or the error's own contains `part`, without case.
fn says(part: &str, facts: &Facts) -> bool {
    let part = lowered(part);
    [facts.message, facts.own_message].into_iter().flatten().any(|text| text::holds(&lowered(text), &part))
}
