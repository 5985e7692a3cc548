//! Aligned heap memory for buffers that the arena has no room for, with a small stock of recycled ones.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use parking_lot::Mutex;

use super::{BUFFER_ALIGNMENT, LARGEST_POOLED_BUFFER};

/// Recycled memory is kept up to so many bytes: four times those of the arena, and without one the most.
const LEAST_STOCK_BYTES: usize = 4 << 20;
const MOST_STOCK_BYTES: usize = 16 << 20;

const CLASSES: usize = (LARGEST_POOLED_BUFFER / BUFFER_ALIGNMENT).ilog2() as usize + 1;

/// The capacity of a heap buffer of `len` bytes: a power of two while it may be recycled, whole alignment units beyond.
pub(super) fn capacity_for(len: usize) -> usize {
    if len <= LARGEST_POOLED_BUFFER {
        len.next_power_of_two().max(BUFFER_ALIGNMENT)
    } else {
        len.next_multiple_of(BUFFER_ALIGNMENT)
    }
}

fn layout(capacity: usize) -> Layout {
    Layout::from_size_align(capacity, BUFFER_ALIGNMENT).expect("a buffer is smaller than the address space")
}

/// Memory that waits to be used again; all of it is initialised and 4 KiB aligned.
struct Stock {
    classes: [Vec<NonNull<u8>>; CLASSES],
    bytes: usize,
    bytes_in_use: usize,
}

// SAFETY: the stock owns what its pointers point to.
unsafe impl Send for Stock {}

pub(super) struct Heap {
    stock: Mutex<Stock>,
    /// Most bytes of the stock.
    most_bytes: usize,
}

fn class_of(capacity: usize) -> Option<usize> {
    (capacity <= LARGEST_POOLED_BUFFER).then(|| (capacity / BUFFER_ALIGNMENT).ilog2() as usize)
}

impl Heap {
    /// Memory beside an arena of `arena_bytes`.
    pub(super) fn new(arena_bytes: usize) -> Heap {
        let most_bytes = match arena_bytes {
            0 => MOST_STOCK_BYTES,
            bytes => bytes.saturating_mul(4).clamp(LEAST_STOCK_BYTES, MOST_STOCK_BYTES),
        };
        Heap {
            most_bytes,
            stock: Mutex::new(Stock { classes: [const { Vec::new() }; CLASSES], bytes: 0, bytes_in_use: 0 }),
        }
    }

    pub(super) fn bytes_in_use(&self) -> usize {
        self.stock.lock().bytes_in_use
    }

    /// `capacity` initialised bytes, for a capacity from [`capacity_for`].
    pub(super) fn take(&self, capacity: usize) -> NonNull<u8> {
        {
            let mut stock = self.stock.lock();
            stock.bytes_in_use += capacity;
            if let Some(bytes) = class_of(capacity).and_then(|class| stock.classes[class].pop()) {
                stock.bytes -= capacity;
                return bytes;
            }
        }
        let layout = layout(capacity);
        // SAFETY: the capacity is never 0.
        let bytes = unsafe { alloc_zeroed(layout) };
        NonNull::new(bytes).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// Takes memory back.
    ///
    /// # Safety
    /// `bytes` came from [`take`](Self::take) of this heap with this capacity and is used by nobody any more.
    pub(super) unsafe fn give_back(&self, bytes: NonNull<u8>, capacity: usize) {
        {
            let mut stock = self.stock.lock();
            stock.bytes_in_use -= capacity;
            if let Some(class) = class_of(capacity)
                && stock.bytes + capacity <= self.most_bytes
            {
                stock.bytes += capacity;
                stock.classes[class].push(bytes);
                return;
            }
        }
        // SAFETY: allocated by `take` with this very layout, and given up by the caller.
        unsafe { dealloc(bytes.as_ptr(), layout(capacity)) }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        let stock = self.stock.get_mut();
        for (class, list) in stock.classes.iter_mut().enumerate() {
            for bytes in list.drain(..) {
                // SAFETY: the stock owns it, and its class tells the capacity it was allocated with.
                unsafe { dealloc(bytes.as_ptr(), layout(BUFFER_ALIGNMENT << class)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_idle_stock_of_buffers_follows_the_arena() {
        for (arena_bytes, kept) in [(0, 16 << 20), (1 << 20, 4 << 20), (64 << 20, 16 << 20)] {
            let heap = Heap::new(arena_bytes);
            let taken: Vec<_> = (0..20).map(|_| heap.take(1 << 20)).collect();
            for bytes in taken {
                // SAFETY: taken above with this capacity, and used by nobody.
                unsafe { heap.give_back(bytes, 1 << 20) };
            }
            let stock_bytes = heap.stock.lock().bytes;
            assert_eq!((stock_bytes, heap.bytes_in_use()), (kept, 0), "an arena of {arena_bytes}");
        }
    }
}
