//! A chunk: where it lies and what was done to it.
//!
//! A chunk's home is one physical chunk of one class, or none (never written: it reads as zeros). It may have a mirror
//! in a faster class. Both are words, read without a lock by whoever has the leaf; they change under the journal's lock
//! only, so that a checkpoint sees all of a change or nothing.
//!
//! Invariant: an object's chunk costs less than 64 bytes of memory, all included ([`table`]); a test counts.

pub(crate) mod table;

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::statistics::Heat;

/// A physical chunk: a class and the number of the chunk in it.
///
/// ```
/// use tanada_volume::Place;
///
/// let place = Place { class: 1, no: 42 };
/// assert!(place > Place { class: 0, no: 43 }); // by class first
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the class, the same as long as the class is there.
    pub class: u8,
    /// Which chunk of the class.
    pub no: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "physical chunk {} of class number {}", self.no, self.class)
    }
}

const MAPPED: u64 = 1 << 63;
const FRESH: u64 = 1 << 62;

/// Where a chunk lies; zero for nowhere.
#[derive(Debug, Default)]
pub(crate) struct PlaceCell(AtomicU64);

impl PlaceCell {
    pub(crate) fn get(&self) -> Option<Place> {
        let word = self.0.load(Ordering::Acquire);
        (word & MAPPED != 0).then_some(Place { class: (word >> 32) as u8, no: word as u32 })
    }

    /// The place, if the metadata know of it (or are about to).
    pub(crate) fn get_journaled(&self) -> Option<Place> {
        (self.0.load(Ordering::Acquire) & FRESH == 0).then(|| self.get()).flatten()
    }

    pub(crate) fn set(&self, place: Option<Place>) {
        let word = place.map_or(0, |place| MAPPED | u64::from(place.class) << 32 | u64::from(place.no));
        self.0.store(word, Ordering::Release);
    }

    /// Sets a place that the metadata do not know of yet.
    pub(crate) fn set_fresh(&self, place: Place) {
        let word = MAPPED | FRESH | u64::from(place.class) << 32 | u64::from(place.no);
        self.0.store(word, Ordering::Release);
    }
}

/// One logical chunk of an object.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) home: PlaceCell,
    pub(crate) mirror: PlaceCell,
    pub(crate) heat: Heat,
    pub(crate) bytes_read: AtomicU64,
    pub(crate) bytes_written: AtomicU64,
    pub(crate) reads: AtomicU32,
    pub(crate) writes: AtomicU32,
    pub(crate) sequential: AtomicU32,
}

impl Chunk {
    pub(crate) fn is_unused(&self) -> bool {
        self.reads.load(Ordering::Relaxed) == 0 && self.writes.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_as_it_was_put() {
        let cell = PlaceCell::default();
        assert_eq!(cell.get(), None);
        let place = Place { class: 63, no: u32::MAX };
        cell.set_fresh(place);
        assert_eq!((cell.get(), cell.get_journaled()), (Some(place), None));
        cell.set(Some(place));
        assert_eq!((cell.get(), cell.get_journaled()), (Some(place), Some(place)));
        cell.set(None);
        assert_eq!(cell.get(), None);
    }

    #[test]
    fn a_chunk_takes_less_than_64_bytes_with_all_that_leads_to_it() {
        let leaf = size_of::<table::Leaf>()
            + 2 * size_of::<usize>()
            + size_of::<Option<std::sync::Arc<table::Leaf>>>();
        let chunks = table::CHUNKS_PER_LEAF as usize;
        // The directory of leaves may be half empty, and two bits a chunk say what is free in its class and its
        // mirror's.
        let all = leaf + size_of::<usize>() + chunks.div_ceil(4);
        assert!(all < 64 * chunks, "{} bytes a chunk", all as f64 / chunks as f64);
    }
}
