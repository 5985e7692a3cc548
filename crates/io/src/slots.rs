//! Memory in slots of one size.
//!
//! What an allocator hands out in pieces comes free in pieces: a program that drops every second kilobyte of what it
//! keeps is no smaller than before. Whoever keeps much, and has to be able to give it back, fills slots and empties
//! whole ones.

use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A mapping of zeroed slots. A slot takes no memory until it is written to, and none from when it was given back.
pub struct Slots {
    start: NonNull<u8>,
    slot_bytes: usize,
    count: usize,
}

// SAFETY: the mapping is owned by this value alone, as by a boxed slice.
unsafe impl Send for Slots {}
// SAFETY: bytes are changed through `&mut self` alone.
unsafe impl Sync for Slots {}

impl Slots {
    /// So many slots of `slot_bytes` each, which have to be a multiple of 4,096; none if the kernel refuses.
    ///
    /// # Panics
    /// If they are not.
    #[must_use]
    pub fn new(slot_bytes: usize, count: usize) -> Slots {
        assert!(slot_bytes > 0 && slot_bytes.is_multiple_of(4096), "slots of {slot_bytes} bytes");
        let none = Slots { start: NonNull::dangling(), slot_bytes, count: 0 };
        let bytes = slot_bytes.checked_mul(count).filter(|bytes| (1..=isize::MAX as usize).contains(bytes));
        let Some(bytes) = bytes else { return none };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
        let Some(start) = mapped.ok().and_then(|start| NonNull::new(start.cast::<u8>())) else { return none };
        // Of a huge page all 2 MiB are there as soon as a byte is.
        // SAFETY: the range is what was mapped, and the advice changes no contents.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxNoHugepage) };
        Slots { start, slot_bytes, count }
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// All bytes, slot by slot.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped, readable and initialized (the kernel's are zeros), and nobody changes them
        // while `self` is borrowed. Without slots the address dangles, which an empty slice may.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.slot_bytes * self.count) }
    }

    /// The same, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `self` is borrowed by the caller alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.slot_bytes * self.count) }
    }

    /// A slot takes no memory from now on, until it is written to; its bytes are zeros again. (Where the system's pages
    /// are larger than a slot it takes as much as before.)
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn give_back(&mut self, no: usize) {
        let range = no * self.slot_bytes..(no + 1) * self.slot_bytes;
        let are_whole = self.slot_bytes.is_multiple_of(rustix::param::page_size());
        let slot = &mut self.bytes_mut()[range];
        if !are_whole {
            slot.fill(0);
            return;
        }
        // SAFETY: the range is whole pages of a private anonymous mapping that nobody else has a reference into; they
        // are zeros from now on, which is a value that bytes may have.
        let advised = unsafe { madvise(slot.as_mut_ptr().cast(), slot.len(), Advice::LinuxDontNeed) };
        if advised.is_err() {
            slot.fill(0);
        }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        if self.count > 0 {
            // SAFETY: exactly what was mapped, and all references into it have ended.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.slot_bytes * self.count) };
        }
    }
}

impl std::fmt::Debug for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Slots { slot_bytes, count, .. } = self;
        f.debug_struct("Slots").field("slot_bytes", slot_bytes).field("count", count).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_was_given_back_is_empty_and_the_others_are_not() {
        let mut slots = Slots::new(8192, 3);
        assert_eq!((slots.count(), slots.bytes().len()), (3, 3 * 8192));
        assert!(slots.bytes().iter().all(|byte| *byte == 0));
        slots.bytes_mut().fill(7);
        slots.give_back(1);
        let slot = |no: usize| &slots.bytes()[no * 8192..(no + 1) * 8192];
        let is = |no, value| slot(no).iter().all(|byte| *byte == value);
        assert!(is(0, 7) && is(1, 0) && is(2, 7));
        slots.bytes_mut()[8192] = 1;
        assert_eq!(slots.bytes()[8192], 1, "it can be used again");
    }

    #[test]
    fn freed_slots_give_their_memory_back() {
        let resident = || {
            let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
            let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
            pages * rustix::param::page_size()
        };
        let mut slots = Slots::new(64 << 10, 4096);
        slots.bytes_mut().fill(7);
        let before = resident();
        (0..4096).for_each(|no| slots.give_back(no));
        let after = resident();
        assert!(before > after + (200 << 20), "{before} and {after}");
    }

    #[test]
    fn failed_mmap_yields_an_empty_slab() {
        for count in [0, usize::MAX, 1 << 40] {
            let mut slots = Slots::new(4096, count);
            assert_eq!((slots.count(), slots.bytes().len(), slots.bytes_mut().len()), (0, 0, 0));
        }
    }
}
