//! The user's own rules: all conditions of one hold, or it says nothing.

use super::facts::Facts;
use super::{Rule, When};

/// The first rule that holds.
pub(super) fn first<'r>(rules: &'r [Rule], facts: &Facts) -> Option<&'r Rule> {
    rules.iter().find(|rule| holds(&rule.when, facts))
}

/// Whether a type's name is meant by `wanted`: `a.B` is any `B` below the package `a` (libraries move classes between
/// their modules), a bare `B` any class of that name.
pub(super) fn names_type(wanted: &str, name: &str) -> bool {
    let last = |path: &str| path.rsplit('.').next().map(str::len);
    let (Some(wanted_len), Some(name_len)) = (last(wanted), last(name)) else { return false };
    let same_last = wanted[wanted.len() - wanted_len..] == name[name.len() - name_len..];
    same_last && (!wanted.contains('.') || (name.contains('.') && wanted.split('.').next() == name.split('.').next()))
}

fn holds(when: &When, facts: &Facts) -> bool {
    // No condition at all would hold for everything; the policy refuses such a rule, and here it says nothing.
    *when != When::default()
        && when.error.as_deref().is_none_or(|e| facts.evidence.error_types.iter().any(|name| names_type(e, name)))
        && when.status.is_none_or(|status| facts.evidence.status == Some(status))
        && when.code.as_deref().is_none_or(|code| facts.codes.iter().any(|c| c == code))
        && when.error_type.as_deref().is_none_or(|t| facts.types.contains(&t))
        && when.message.as_deref().is_none_or(|part| says(part, facts))
}

/// Whether the provider's message or the error's own contains `part`, without case.
fn says(part: &str, facts: &Facts) -> bool {
    let part = part.to_lowercase();
    [facts.message, facts.own_message].into_iter().flatten().any(|text| text.to_lowercase().contains(&part))
}

#[cfg(test)]
mod tests {
    use super::names_type;

    #[test]
    fn a_dotted_name_compares_first_and_last_segment() {
        assert!(names_type("shop.StockBusy", "shop.errors.StockBusy"));
        assert!(names_type("shop.old.StockBusy", "shop.StockBusy"));
        assert!(!names_type("shop.StockBusy", "bank.StockBusy"));
        assert!(!names_type("shop.StockBusy", "StockBusy"));
        assert!(!names_type("shop.StockBusy", "shop.errors.NotStockBusy"));
    }

    #[test]
    fn a_bare_name_is_any_class_of_that_name() {
        assert!(names_type("StockBusy", "shop.errors.StockBusy"));
        assert!(names_type("StockBusy", "StockBusy"));
        assert!(!names_type("Busy", "shop.StockBusy"));
        assert!(!names_type("", "shop.StockBusy"));
    }
}
