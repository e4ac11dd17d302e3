//! Records: what is written down of a call, so that somebody can say why it ended as it did.

mod event;
pub mod mask;
mod receipt;

pub use event::Event;
pub use mask::{Masks, mask};
pub use receipt::{Decision, Ended, Ids, Receipt};

/// One line of JSON. Numbers and text alone cannot fail to be written.
fn json(line: &impl serde::Serialize) -> String {
    serde_json::to_string(line).unwrap_or_default()
}
