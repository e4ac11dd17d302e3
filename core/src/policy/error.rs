//! Why a policy was refused: which field, which value, and what is allowed there.

use crate::text::said;

/// An invalid policy. Nothing was built.
///
/// ```
/// let error = reprieve::Policy::from_json(r#"{"max_attempts": 0}"#).unwrap_err();
/// assert_eq!(error.field, "max_attempts");
/// assert_eq!(error.to_string(), "max_attempts: 0 is not allowed; it takes a whole number from 1 to 10000");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct ConfigError {
    /// The path of the field, such as `targets[1].id`; `policy` for the whole.
    pub field: String,
    /// The value as JSON, cut at 200 characters.
    pub value: String,
    /// What is allowed there.
    pub allowed: String,
}

impl ConfigError {
    pub(crate) fn text(&self) -> String {
        said![self.field, ": ", self.value, " is not allowed; it takes ", self.allowed]
    }
}
