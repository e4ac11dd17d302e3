//! Records: what is written down of a call, so that somebody can say why it ended as it did.

pub mod mask;
mod receipt;

pub use mask::{Masks, mask};
pub use receipt::{Decision, Ended, Ids, Receipt};
