//! Counts over a sliding window, in ten slots of fixed memory. Shared by the breaker's and the retry budget's ratio
//! modes.
//!
//! A slot is known by its index since the epoch, so nothing has to be shifted as time passes: a slot that has left
//! the window is skipped when summing and overwritten when its place is needed again. The window is exact to one slot:
//! a count is forgotten between 9/10 and 10/10 of its length.

use serde::{Deserialize, Serialize};

use crate::Span;

/// How many slots a window has.
const SLOTS: u64 = 10;
type Slots = [Slot; 10];

/// Counts over a sliding window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Window {
    /// The length of one slot in nanoseconds; zero, before the first [`Window::fit`], counts as one.
    width: u64,
    slots: Slots,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Slot {
    index: u64,
    counts: Counts,
}

/// What a window counts: something, and what it is measured against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    /// Calls, or requests.
    pub whole: u64,
    /// Failures, or retries.
    pub part: u64,
}

impl Window {
    /// Takes the window's length from the configuration. Policies that share a key should agree on it; where they do
    /// not, the length stays while anything is counted, or they would empty it for each other for ever.
    pub fn fit(&mut self, now: Span, length: Span) {
        let width = length.as_nanos() / SLOTS;
        if self.width != width && self.sum(now) == Counts::default() {
            *self = Window { width, slots: Slots::default() };
        }
    }

    /// Counts something that happened `at`. What is older than the window is dropped.
    pub fn add(&mut self, at: Span, counts: Counts) {
        let index = self.index(at);
        let place = usize::try_from(index % SLOTS).unwrap_or(0);
        let slot = &mut self.slots[place];
        if index > slot.index {
            *slot = Slot { index, counts: Counts::default() };
        }
        if index == slot.index {
            slot.counts.whole = slot.counts.whole.saturating_add(counts.whole);
            slot.counts.part = slot.counts.part.saturating_add(counts.part);
        }
    }

    /// What the window holds now.
    pub fn sum(&self, now: Span) -> Counts {
        let current = self.index(now);
        let inside = self.slots.iter().filter(|slot| slot.index.saturating_add(SLOTS) > current);
        inside.fold(Counts::default(), |sum, slot| Counts {
            whole: sum.whole.saturating_add(slot.counts.whole),
            part: sum.part.saturating_add(slot.counts.part),
        })
    }

    fn index(&self, at: Span) -> u64 {
        at.as_nanos() / self.width.max(1)
    }
}
