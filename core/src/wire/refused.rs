//! What a binding throws: any of the core's errors, as one line of JSON.

use super::WireError;
use crate::json::{self, Json};
use crate::{ConfigError, Misuse, SnapshotError};

/// Why the core did not do what a binding asked. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A value is not allowed where it stands.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A call was used out of order.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// A snapshot that cannot be gone on from.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// JSON that is not what it should be.
    #[error(transparent)]
    Wire(#[from] WireError),
}

impl Refused {
    /// A value that is not allowed.
    #[must_use]
    pub fn value(field: &str, value: &Json, allowed: &str) -> Refused {
        Refused::Config(ConfigError { field: field.into(), value: value.text(), allowed: allowed.into() })
    }

    /// `{"error": "config", "field", "value", "allowed"}`, or `{"error": "misuse" | "snapshot" | "wire", "message"}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::object(|out| {
            let (kind, message) = match self {
                Refused::Config(error) => {
                    out.text("error", "config");
                    out.text("field", error.field.as_str());
                    out.text("value", error.value.as_str());
                    out.text("allowed", error.allowed.as_str());
                    return;
                }
                Refused::Misuse(error) => ("misuse", error.text()),
                Refused::Snapshot(error) => ("snapshot", error.text()),
                Refused::Wire(error) => ("wire", error.text()),
            };
            out.text("error", kind);
            out.text("message", message.as_str());
        })
    }
}
