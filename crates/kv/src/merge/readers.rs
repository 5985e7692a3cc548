//! Who reads what a merge may drop.
//!
//! What a bulk load brings has the number of the load's beginning, since what was written meanwhile is newer, and is
//! seen from its end on. Who reads at a number in between sees what was there before. So a version has two numbers: its
//! own, by which it is newer or older than others of its key, and the one that it is seen from. They differ only for
//! loads.

use crate::entry::SequenceNo;

/// A bulk load that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    /// The number of all that it brought, and of nothing else.
    pub(crate) begin: SequenceNo,
    /// Readers at this number or a larger one see the load.
    pub(crate) end: SequenceNo,
}

/// Sequence numbers that somebody reads at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Readers {
    /// Ascending.
    pub(crate) numbers: Vec<SequenceNo>,
    /// The loads that some of them do not see though they read at a number behind the load's own.
    pub(crate) loads: Vec<Load>,
}

impl Readers {
    /// Returns whether somebody reads at `from` or later, and before `to`.
    pub(crate) fn has(&self, from: SequenceNo, to: SequenceNo) -> bool {
        let index = self.numbers.partition_point(|number| *number < from);
        self.numbers.get(index).is_some_and(|number| *number < to)
    }

    /// The number from which on a version is seen whose own is `sequence`.
    pub(crate) fn seen_from(&self, sequence: SequenceNo) -> SequenceNo {
        let load = self.loads.iter().find(|load| load.begin == sequence);
        load.map_or(sequence, |load| load.end)
    }

    /// Returns the numbers of the loads that a reader at `number` does not see.
    #[cfg(test)]
    pub(crate) fn unseen_at(&self, number: SequenceNo) -> Vec<SequenceNo> {
        self.loads.iter().filter(|load| load.hides_from(number)).map(|load| load.begin).collect()
    }
}

impl Load {
    /// Returns true if a reader at `number` does not see the load although its own number is smaller.
    pub(crate) fn hides_from(&self, number: SequenceNo) -> bool {
        self.begin <= number && number < self.end
    }
}
