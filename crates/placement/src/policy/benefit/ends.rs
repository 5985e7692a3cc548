//! Where a query's streams are.
//!
//! An index that was filled by splits, or several of them in turn, is read in more than one stream: each read begins
//! where one of the last ones ended, though not the very last. Disks, and what reads ahead for them, follow some dozens
//! of such streams at once, so these reads cost them no more than a scan's.
//!
//! Invariant: there are no more places than [`MOST_ENDS`]; a stream has one, its end.

/// Streams that are followed: as many as a disk's read-ahead remembers.
const MOST_ENDS: usize = 64;

#[derive(Debug, Clone, Default)]
pub(super) struct Ends {
    /// In bytes.
    places: Vec<u64>,
    /// The one that goes next.
    next: usize,
}

impl Ends {
    /// Notes a read; whether it goes on where an earlier one ended.
    pub(super) fn note(&mut self, begins: u64, ends: u64) -> bool {
        if let Some(place) = self.places.iter_mut().find(|place| **place == begins) {
            *place = ends;
            return true;
        }
        if self.places.len() < MOST_ENDS {
            self.places.push(ends);
        } else {
            self.places[self.next] = ends;
            self.next = (self.next + 1) % MOST_ENDS;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_streams_continue_and_old_ones_expire() {
        let mut ends = Ends::default();
        let streams = [0, 1000, 5000];
        assert_eq!(streams.map(|begins| ends.note(begins, begins + 10)), [false; 3]);
        for page in 1..9 {
            assert_eq!(
                streams.map(|begins| ends.note(begins + page * 10, begins + page * 10 + 10)),
                [true; 3]
            );
        }
        assert!(!ends.note(10, 20), "no stream ends there any more");
        (0..MOST_ENDS as u64).for_each(|no| assert!(!ends.note(10_000 + 100 * no, 10_010 + 100 * no)));
        assert!(!ends.note(90, 100), "others came since");
    }
}
