//! The last write to every key, roughly: who read a key a moment ago learns without a search that nobody has written it
//! since.
//!
//! Each key has one of a few thousand places by its hash, and a place has the number of the last write to any of its
//! keys. A place whose number is not newer than what was read says that the key is unchanged; a newer one says nothing,
//! for it may be another key's. Between reading a key and writing it there are some tens or hundreds of other commits,
//! so that few have to search.
//!
//! It is made when it is asked for first. Invariant: for every write since then the place of its key, or `all`, has its
//! number or a newer one.

use crate::entry::SequenceNo;

/// Slots of the table: 32 KiB, which fits into the cache of a core.
const SLOTS: usize = 1 << 12;

#[derive(Debug)]
pub(crate) struct LastWrites {
    places: Box<[SequenceNo; SLOTS]>,
    /// Number of the last write that may have been to any key.
    all: SequenceNo,
}

impl LastWrites {
    /// Nothing is known of the writes up to `now`.
    pub(crate) fn new(now: SequenceNo) -> LastWrites {
        LastWrites { places: Box::new([0; SLOTS]), all: now }
    }

    #[inline]
    pub(crate) fn note(&mut self, hash: u64, sequence: SequenceNo) {
        self.places[place(hash)] = sequence;
    }

    /// A write to keys that nobody counted.
    pub(crate) fn note_all(&mut self, sequence: SequenceNo) {
        self.all = sequence;
    }

    /// Returns whether a key of this hash may have been written after `since`.
    #[inline]
    pub(crate) fn may_be_after(&self, hash: u64, since: SequenceNo) -> bool {
        self.all.max(self.places[place(hash)]) > since
    }
}

#[inline]
fn place(hash: u64) -> usize {
    hash as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_before_the_creation_of_last_writes_are_unknown() {
        let last = LastWrites::new(7);
        assert!(last.may_be_after(1, 6));
        assert!(!last.may_be_after(1, 7));
    }

    #[test]
    fn a_changed_key_is_never_reported_unchanged() {
        let mut last = LastWrites::new(0);
        let mut written = std::collections::HashMap::new();
        for sequence in 1..20_000u64 {
            let hash = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
            last.note(hash, sequence);
            written.insert(hash, sequence);
        }
        for (hash, sequence) in written {
            assert!(last.may_be_after(hash, sequence - 1));
        }
        // The newest is in nobody's place.
        let newest = 19_999u64.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        assert!(!last.may_be_after(newest, 19_999));
        last.note_all(20_000);
        assert!(last.may_be_after(newest, 19_999) && !last.may_be_after(newest, 20_000));
    }
}
