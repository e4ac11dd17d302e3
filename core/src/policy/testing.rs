//! A policy for tests of machines that need one, without its text.

use std::sync::Arc;

use super::{Fields, Policy};

/// The empty policy, changed by `change` and not validated.
pub(crate) fn policy(change: impl FnOnce(&mut Fields)) -> Policy {
    let mut fields = Fields::default();
    change(&mut fields);
    Policy(Arc::new(fields))
}
