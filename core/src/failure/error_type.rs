//! Which error types are meant by a name, and what the known ones say.

use super::types::{self, Meaning};
use super::{Category, Kind};
use crate::text::after_last;

/// What the error itself says if it is a decision to stop. A cancelled cause further down is not the caller's.
pub(super) fn control(names: &[String]) -> Option<Kind> {
    let row = row(names.first()?)?;
    (row.kind.category() == Category::Control).then_some(row.kind)
}

/// The rows of the error's types, outermost first, decisions to stop left out.
pub(super) fn known(names: &[String]) -> impl Iterator<Item = Meaning> {
    names.iter().filter_map(|name| row(name)).filter(|row| row.kind.category() != Category::Control)
}

fn row(name: &str) -> Option<Meaning> {
    let name = TypeName::new(name);
    types::type_that(|known| name.is(known))
}

/// The name of an error's type, split once: it is compared with many.
#[derive(Clone, Copy)]
pub(super) struct TypeName<'a> {
    /// The package, where the name has one.
    first: Option<&'a str>,
    /// The class.
    last: &'a str,
}

impl<'a> TypeName<'a> {
    /// Splits `name`.
    pub(super) fn new(name: &'a str) -> TypeName<'a> {
        let last = after_last(name, b'.');
        TypeName { first: name.split_once('.').map(|(first, _)| first), last }
    }

    /// Whether it is meant by `wanted`: `a.B` is any `B` below the package `a` (libraries move classes between their
    /// modules), a bare `B` any class of that name.
    pub(super) fn is(self, wanted: &str) -> bool {
        match wanted.strip_suffix(self.last) {
            Some("") => true,
            Some(path) => path.ends_with('.') && self.first == wanted.split('.').next(),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::TypeName;

    fn names_type(wanted: &str, name: &str) -> bool {
        TypeName::new(name).is(wanted)
    }

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
