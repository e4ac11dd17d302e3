//! What is written about a call, and what must never be: masking.

pub mod mask;
