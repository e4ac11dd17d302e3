//! Records: what is written down of a call, so that somebody can say why it ended as it did.

mod event;
pub mod mask;
mod receipt;
mod timeline;

pub use event::Event;
pub use mask::{Masks, mask};
pub use receipt::{Decision, Ended, Ids, Receipt};
pub use timeline::timeline;
