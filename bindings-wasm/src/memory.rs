//! Memory for the module: blocks of a power of two, each size with a list of those that were given back.
//! The standard allocator is a twentieth of the module. What is asked for here is small and short-lived, so that blocks
//! come back and are handed out again; a page lives as long as its module.

#![expect(unsafe_code, reason = "an allocator hands out raw memory")]
#![expect(clippy::cast_ptr_alignment, reason = "every block starts at a multiple of 16")]

use std::alloc::{GlobalAlloc, Layout};
use std::arch::wasm32::memory_grow;
use std::cell::Cell;
use std::ptr::null_mut;

#[global_allocator]
static BLOCKS: Blocks = Blocks { free: [const { Cell::new(null_mut()) }; 32], next: Cell::new(0), end: Cell::new(0) };

const PAGE: usize = 1 << 16;
/// The smallest block, 2^4 bytes: no type here asks for more than 16 bytes of alignment.
const SMALLEST: u32 = 4;

struct Blocks {
    /// The blocks of 2^n bytes that are free, as a list: each holds the address of the next one.
    free: [Cell<*mut u8>; 32],
    /// What was never handed out lies between these addresses.
    next: Cell<usize>,
    end: Cell<usize>,
}

// SAFETY: the module has one thread.
unsafe impl Sync for Blocks {}

/// The n of a block of 2^n bytes that holds this.
fn class(layout: Layout) -> u32 {
    layout.size().max(layout.align()).next_power_of_two().trailing_zeros().max(SMALLEST)
}

// SAFETY: a block is handed out once until it is given back, is as large as asked for, and starts at a multiple of 16.
unsafe impl GlobalAlloc for Blocks {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class(layout);
        let list = &self.free[class as usize % 32];
        let found = list.get();
        if found.is_null() {
            return self.fresh(1 << class);
        }
        // SAFETY: whoever gave the block back wrote this address.
        list.set(unsafe { found.cast::<*mut u8>().read() });
        found
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let list = &self.free[class(layout) as usize % 32];
        // SAFETY: the block is the giver's, at least 16 bytes of it, and nobody else looks at it from now on.
        unsafe { block.cast::<*mut u8>().write(list.get()) };
        list.set(block);
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller vouches for both layouts.
        unsafe {
            let wanted = Layout::from_size_align_unchecked(size, layout.align());
            if class(wanted) == class(layout) {
                return block;
            }
            let moved = self.alloc(wanted);
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, size.min(layout.size()));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

impl Blocks {
    /// A block that was never handed out; null where the host gives no more memory.
    fn fresh(&self, size: usize) -> *mut u8 {
        if self.end.get() - self.next.get() < size {
            let pages = size.div_ceil(PAGE);
            let before = memory_grow(0, pages);
            if before == usize::MAX {
                return null_mut();
            }
            // What is left of the last pages stays unused, unless the new ones follow it.
            if self.end.get() != before * PAGE {
                self.next.set(before * PAGE);
            }
            self.end.set((before + pages) * PAGE);
        }
        let block = self.next.get();
        self.next.set(block + size);
        block as *mut u8
    }
}
