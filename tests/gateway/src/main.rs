//! The fault gateway.
fn main() {}
