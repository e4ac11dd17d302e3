//! Records: what is written down of a call, so that somebody can say why it ended as it did.

mod receipt;

pub use receipt::{Decision, Ended, Ids, Receipt};
