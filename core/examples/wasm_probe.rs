//! Everything the core does, once, as a program: `.ci/no-imports` builds it for wasm32 and checks that the module asks
//! its host for nothing. What is not called here is not in the module, and so not checked.

use reprieve::trace::mask::{Masks, mask};
use reprieve::{Kind, Span};
use std::hint::black_box;

/// What the core answers to some bytes. They are hidden from the optimiser, so that nothing is worked out beforehand.
fn exercise(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(black_box(bytes));
    // One line for each part of the core; a new part adds its own here.
    let answers = [
        Span::parse(&text).map_or_else(|e| e.to_string(), |span| span.to_string()),
        Kind::from_name(&text).map_or_else(String::new, |kind| kind.to_string()),
        Masks::without([&text]).map_or_else(|e| e.to_string(), |_| String::new()),
        mask(&text, black_box(Masks::ALL)).into_owned(),
    ];

    black_box(answers).iter().map(String::len).sum()
}

fn main() {
    let length: usize = [&b"1m30s"[..], b"rate_limit", b"phones", b"\xff"].into_iter().map(exercise).sum();
    black_box(length);
}
