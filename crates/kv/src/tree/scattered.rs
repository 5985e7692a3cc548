//! Which leaves' values lie apart though scans want them together.
//!
//! A spill writes values in the order of keys, and so does the next one, to another place: what a scan of a leaf reads lies in as many places as there
//! were spills. What a scan read more often than order would have had it is counted by leaf. A leaf is due to be written anew when that has cost as
//! much as writing it will: so order costs at most as much again as its absence did, and a leaf that nobody scans costs nothing.

use std::collections::HashMap;

use parking_lot::Mutex;

use super::edit::LeafNo;
use super::kvset::TreeState;
use crate::entry::Pointer;

/// Bytes whose reading and writing costs about as much as one more I/O: more on disks, fewer on fast SSDs.
const BYTES_OF_AN_IO: u64 = 64 << 10;

/// Neighbours are read together if no more bytes than these lie between them.
const GAP_BYTES: u64 = 16 << 10;

/// I/Os that scans have wasted.
#[derive(Debug, Default)]
pub(crate) struct Scattered {
    leaves: Mutex<HashMap<LeafNo, u64>>,
}

impl Scattered {
    /// A scan read what `pointers` lead to in a leaf, `loaded` of it from a device; whether the leaf is due, having `leaf_bytes` of values. What the
    /// cache had counts as neighbours: values in order stay so if some of them are cached.
    pub(crate) fn note(
        &self,
        leaf: LeafNo,
        leaf_bytes: u64,
        pointers: &mut [Pointer],
        loaded: usize,
    ) -> bool {
        let wasted = places(pointers).min(loaded as u64).saturating_sub(1);
        if wasted == 0 {
            return false;
        }
        let mut leaves = self.leaves.lock();
        let count = leaves.entry(leaf).or_default();
        *count += wasted;
        is_due(*count, leaf_bytes)
    }

    /// Takes out a leaf that is due, with what is known of leaves that there are no more.
    pub(crate) fn take(&self, tree: &TreeState) -> Option<LeafNo> {
        let mut leaves = self.leaves.lock();
        leaves.retain(|no, _| tree.leaf_by_no(*no).is_some());
        let due = leaves.iter().find(|(no, count)| is_due(**count, tree.value_bytes(**no)));
        let due = due.map(|(no, _)| *no)?;
        leaves.remove(&due);
        Some(due)
    }
}

fn is_due(wasted: u64, leaf_bytes: u64) -> bool {
    wasted * BYTES_OF_AN_IO >= leaf_bytes.max(1)
}

/// In how many places values lie.
fn places(pointers: &mut [Pointer]) -> u64 {
    pointers.sort_unstable_by_key(|pointer| (pointer.segment, pointer.offset));
    let is_apart = |pair: &&[Pointer]| {
        let [a, b] = pair else { return false };
        a.segment != b.segment || b.offset > a.offset + u64::from(a.stored_len) + GAP_BYTES
    };
    pointers.windows(2).filter(is_apart).count() as u64 + u64::from(!pointers.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Codec;

    fn pointer(segment: u64, offset: u64) -> Pointer {
        Pointer { segment, offset, stored_len: 1000, len: 1000, codec: Codec::None, checksum: 0 }
    }

    #[test]
    fn places_are_counted_whatever_their_order() {
        assert_eq!(places(&mut []), 0);
        let mut together = [pointer(1, 2000), pointer(1, 0), pointer(1, 1000), pointer(1, 19_000)];
        assert_eq!(places(&mut together), 1);
        let mut apart = [pointer(1, 0), pointer(2, 1000), pointer(1, 20_000)];
        assert_eq!(places(&mut apart), 3);
    }

    #[test]
    fn a_leaf_is_due_when_scans_have_wasted_what_order_costs() {
        let scattered = Scattered::default();
        let scan = || [pointer(1, 0), pointer(2, 0), pointer(3, 0)];
        for _ in 0..3 {
            assert!(!scattered.note(7, 8 * BYTES_OF_AN_IO, &mut scan(), 3));
            assert!(!scattered.note(8, 8 * BYTES_OF_AN_IO, &mut [pointer(1, 0)], 1));
        }
        assert!(scattered.note(7, 8 * BYTES_OF_AN_IO, &mut scan(), 3));
    }

    #[test]
    fn what_the_cache_has_between_neighbours_puts_nothing_out_of_order() {
        let scattered = Scattered::default();
        for _ in 0..100 {
            let mut in_order: Vec<Pointer> = (0..64).map(|no| pointer(1, no * 1000)).collect();
            assert!(!scattered.note(7, 1, &mut in_order, 2), "two of them, far apart, were not cached");
        }
        assert!(!scattered.note(7, 1, &mut [pointer(1, 0), pointer(2, 0)], 1), "one I/O in any case");
    }
}
