//! The decision core of reprieve.
