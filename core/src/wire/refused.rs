//! What a binding throws: any of the core's errors, as one line of JSON.

use std::fmt::Display;

use super::WireError;
use crate::json;
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
    pub fn value(field: &str, value: &dyn Display, allowed: &dyn Display) -> Refused {
        let (value, allowed) = (value.to_string(), allowed.to_string());
        Refused::Config(ConfigError { field: field.into(), value, allowed })
    }

    /// `{"error": "config", "field", "value", "allowed"}`, or `{"error": "misuse" | "snapshot" | "wire", "message"}`.
    #[must_use]
    pub fn to_json(&self) -> String {
        json::object(|out| {
            let kind = match self {
                Refused::Config(error) => {
                    out.text("error", "config");
                    out.text("field", error.field.as_str());
                    out.text("value", error.value.as_str());
                    out.text("allowed", error.allowed.as_str());
                    return;
                }
                Refused::Misuse(_) => "misuse",
                Refused::Snapshot(_) => "snapshot",
                Refused::Wire(_) => "wire",
            };
            out.text("error", kind);
            out.text("message", self.to_string().as_str());
        })
    }
}
