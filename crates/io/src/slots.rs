//! Memory in slots of one size.
//!
//! What an allocator hands out in pieces comes free in pieces: a program that drops every second kilobyte of what it keeps is no smaller than before. Whoever
//! keeps much, and has to be able to give it back, fills slots and empties whole ones.

use crate::mapping::Mapping;

/// A mapping of zeroed slots. A slot takes no memory until it is written to, and none from when it was given back.
pub struct Slots {
    mapping: Mapping,
    slot_bytes: usize,
    count: usize,
}

impl Slots {
    /// So many slots of `slot_bytes` each, which have to be a multiple of 4,096; none if the kernel refuses.
    ///
    /// # Panics
    /// If they are not.
    #[must_use]
    pub fn new(slot_bytes: usize, count: usize) -> Slots {
        assert!(slot_bytes > 0 && slot_bytes.is_multiple_of(4096), "slots of {slot_bytes} bytes");
        let mapping = Mapping::new(slot_bytes.checked_mul(count));
        let count = mapping.len() / slot_bytes;
        Slots { mapping, slot_bytes, count }
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
        // SAFETY: so many bytes are mapped, readable and initialized (the kernel's are zeros), and nobody changes them while `self` is borrowed. Without slots
        // the address dangles, which an empty slice may.
        unsafe { std::slice::from_raw_parts(self.mapping.start().as_ptr(), self.mapping.len()) }
    }

    /// The same, to be changed.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `self` is borrowed by the caller alone.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.start().as_ptr(), self.mapping.len()) }
    }

    /// A slot takes no memory from now on, until it is written to; its bytes are zeros again. (Where the system's pages are larger than a slot it takes as much as before.)
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn give_back(&mut self, no: usize) {
        assert!(no < self.count, "there is no slot {no}");
        let range = no * self.slot_bytes..(no + 1) * self.slot_bytes;
        let are_whole = self.slot_bytes.is_multiple_of(rustix::param::page_size());
        // SAFETY: slots begin where the system's pages do, as their size is a multiple of theirs, and `self` is borrowed by the caller alone.
        let is_given = are_whole && unsafe { self.mapping.give_back(range.clone()) };
        if !is_given {
            self.bytes_mut()[range].fill(0);
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
    fn what_was_given_back_takes_no_memory() {
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
    fn what_cannot_be_mapped_is_no_slots() {
        for count in [0, usize::MAX, 1 << 40] {
            let mut slots = Slots::new(4096, count);
            assert_eq!((slots.count(), slots.bytes().len(), slots.bytes_mut().len()), (0, 0, 0));
        }
    }
}
