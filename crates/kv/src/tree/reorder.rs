//! Which leaves' values lie apart though scans want them together.
//!
//! A spill writes values in the order of keys, and so does the next one, to another place: what a scan of a leaf reads
//! lies in as many places as there were spills. A small spill scatters few values over many places, a large one keeps
//! neighbours together. So what scans wasted is counted by leaf and by segment, and those segments alone are emptied
//! that waste most for their bytes. A leaf is due when what was wasted costs as much as emptying them will: so order
//! costs at most as much again as its absence did, and a leaf that nobody scans costs nothing.
//!
//! A segment that is emptied alone becomes another one just like it, as its values are in order: it has to be brought
//! together with others that the same scans found. Where those are none that wasted anything, it is the one with the
//! next larger place.

use crate::tuning::tree::REORDER;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::Mutex;

use super::edit::LeafNo;
use super::kvset::TreeState;
use crate::entry::{Pointer, SegmentNo};

/// Waste of scans of a leaf, in bytes that could have been written instead.
#[derive(Debug, Default)]
struct Wasted {
    by_segment: HashMap<SegmentNo, u64>,
    /// The part of it that a second segment shares: the one with the next larger part of those scans.
    beside: HashMap<(SegmentNo, SegmentNo), u64>,
    total: u64,
    /// Waste at which the leaf is checked.
    look_at: u64,
}

/// Waste of scans, by leaf.
#[derive(Debug, Default)]
pub(crate) struct ScanWaste {
    leaves: Mutex<BTreeMap<LeafNo, Wasted>>,
}

impl ScanWaste {
    /// A scan read what `pointers` lead to in a leaf, `loaded` of it from devices; whether the leaf, having
    /// `leaf_bytes` of values, is worth a look. What the cache had counts as neighbours: values in order stay so if
    /// some of them are cached.
    pub(crate) fn note(
        &self,
        leaf: LeafNo,
        leaf_bytes: u64,
        pointers: &mut [Pointer],
        loaded: usize,
    ) -> bool {
        let mut found: Vec<(SegmentNo, u64, u64)> =
            places(pointers).into_iter().map(|(segment, (places, bytes))| (segment, places, bytes)).collect();
        let all: u64 = found.iter().map(|(_, places, _)| places).sum();
        let read = all.min(loaded as u64);
        if read <= REORDER.min_places as u64 {
            return false;
        }
        found.sort_unstable_by_key(|(_, _, bytes)| std::cmp::Reverse(*bytes));
        let mut leaves = self.leaves.lock();
        let wasted = leaves.entry(leaf).or_default();
        let mut beside = None;
        for (index, (segment, places, bytes)) in found.into_iter().enumerate() {
            let more = places - u64::from(index < REORDER.min_places);
            let short = (more * REORDER.target_io_bytes).saturating_sub(bytes);
            let wasted_bytes = short * (REORDER.io_cost_bytes / REORDER.target_io_bytes) * read / all;
            if wasted_bytes > 0 {
                *wasted.by_segment.entry(segment).or_default() += wasted_bytes;
                if let Some(beside) = beside.filter(|_| index >= REORDER.min_places) {
                    *wasted.beside.entry((segment, beside)).or_default() += wasted_bytes / more;
                }
                wasted.total += wasted_bytes;
            }
            beside = Some(segment);
        }
        let is_due = wasted.total >= wasted.look_at.max(REORDER.min_wasted_bytes);
        if is_due {
            wasted.look_at =
                wasted.total + (leaf_bytes / REORDER.checks_per_cost).max(REORDER.min_wasted_bytes);
        }
        is_due
    }

    /// Takes out a leaf that is due, and what is to be emptied of it, with what is known of leaves that there are no
    /// more.
    pub(crate) fn take(&self, tree: &TreeState) -> Option<(LeafNo, BTreeSet<SegmentNo>)> {
        let mut leaves = self.leaves.lock();
        leaves.retain(|no, _| tree.leaf_by_no(*no).is_some());
        let due = leaves.iter_mut().find_map(|(no, wasted)| {
            let bytes_in = tree.values_by_segment(*no);
            wasted.by_segment.retain(|segment, _| bytes_in.contains_key(segment));
            wasted.beside.retain(|(segment, beside), _| {
                bytes_in.contains_key(segment) && bytes_in.contains_key(beside)
            });
            wasted.total = wasted.by_segment.values().sum();
            Some((*no, due(wasted, &bytes_in, tree.key_bytes(*no))?))
        })?;
        leaves.remove(&due.0);
        Some(due)
    }
}

/// The segments to be emptied of a leaf that has this many bytes in each, and of keys, which are rewritten as well; if
/// that is due.
fn due(wasted: &Wasted, bytes_in: &BTreeMap<SegmentNo, u64>, key_bytes: u64) -> Option<BTreeSet<SegmentNo>> {
    let found = wasted.by_segment.iter().filter_map(|(no, wasted)| Some((*no, *wasted, *bytes_in.get(no)?)));
    let found = found.filter(|(_, wasted, bytes)| wasted * REORDER.min_waste_divisor >= *bytes);
    let found: BTreeMap<SegmentNo, u64> = found.map(|(no, wasted, _)| (no, wasted)).collect();
    let (mut emptied, mut saved) = (BTreeSet::new(), 0);
    for (no, wasted_by_it) in &found {
        let beside = wasted.beside.iter().filter(|((segment, _), _)| segment == no);
        let needs_another: u64 = beside.clone().map(|(_, bytes)| bytes).sum();
        let has_another = wasted
            .beside
            .iter()
            .filter(|((a, b), _)| (a == no && found.contains_key(b)) || (b == no && found.contains_key(a)));
        let has_another: u64 = has_another.map(|(_, bytes)| bytes).sum();
        if needs_another * 2 > *wasted_by_it && has_another * 2 < needs_another {
            let beside = beside.filter_map(|((_, no), wasted)| Some((*no, *wasted, *bytes_in.get(no)?)));
            let beside = beside.filter(|(_, wasted, bytes)| wasted * REORDER.min_waste_divisor >= *bytes);
            let beside: Vec<SegmentNo> = beside.map(|(no, _, _)| no).collect();
            if beside.is_empty() {
                continue;
            }
            emptied.extend(beside);
        }
        emptied.insert(*no);
        saved += wasted_by_it;
    }
    let cost = key_bytes + emptied.iter().filter_map(|no| bytes_in.get(no)).sum::<u64>();
    (saved >= cost && !emptied.is_empty()).then_some(emptied)
}

/// In how many places of which segments values lie, and how many bytes of them.
fn places(pointers: &mut [Pointer]) -> BTreeMap<SegmentNo, (u64, u64)> {
    pointers.sort_unstable_by_key(|pointer| (pointer.segment, pointer.offset));
    let mut found: BTreeMap<SegmentNo, (u64, u64)> = BTreeMap::new();
    let mut end = None;
    for pointer in &*pointers {
        let is_near = end.is_some_and(|(segment, end)| {
            segment == pointer.segment && pointer.offset <= u64::saturating_add(end, REORDER.max_gap_bytes)
        });
        let (places, bytes) = found.entry(pointer.segment).or_default();
        *places += u64::from(!is_near);
        *bytes += u64::from(pointer.stored_len);
        end = Some((pointer.segment, pointer.offset.saturating_add(u64::from(pointer.stored_len))));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Codec;

    fn pointer(segment: u64, offset: u64) -> Pointer {
        Pointer { segment, offset, stored_len: 1000, len: 1000, codec: Codec::None, checksum: 0 }
    }

    fn wasted(scattered: &ScanWaste, leaf: LeafNo) -> Wasted {
        scattered.leaves.lock().remove(&leaf).unwrap_or_default()
    }

    #[test]
    fn places_are_counted_whatever_their_order() {
        assert_eq!(places(&mut []), BTreeMap::new());
        let mut together = [pointer(1, 2000), pointer(1, 0), pointer(1, 1000), pointer(1, 19_000)];
        assert_eq!(places(&mut together), BTreeMap::from([(1, (1, 4000))]));
        let mut apart = [pointer(1, 0), pointer(2, 1000), pointer(1, 20_000)];
        assert_eq!(places(&mut apart), BTreeMap::from([(1, (2, 2000)), (2, (1, 1000))]));
    }

    #[test]
    fn reordering_is_due_when_wasted_reads_exceed_its_cost() {
        let scattered = ScanWaste::default();
        // In four places, of which two have to be.
        let of_one = (REORDER.target_io_bytes - 1000) * 4;
        let mut looks = 0;
        for _ in 0..100 {
            let mut scan = [pointer(1, 0), pointer(2, 0), pointer(3, 0), pointer(3, 1000), pointer(4, 0)];
            scan[4].stored_len = 1500;
            looks += u64::from(scattered.note(7, 64 * 30 * of_one, &mut scan, 5));
            assert!(!scattered.note(8, 1, &mut [pointer(1, 0)], 1), "one I/O there has to be");
        }
        assert!((3..=7).contains(&looks), "{looks}");
        let wasted = wasted(&scattered, 7);
        assert_eq!((wasted.by_segment[&2], wasted.by_segment.get(&3)), (100 * of_one, None));
        let bytes = |bytes: u64| BTreeMap::from([(1, bytes), (2, bytes), (3, bytes)]);
        assert_eq!(due(&wasted, &bytes(100 * of_one), 0), Some(BTreeSet::from([1, 2])));
        assert_eq!(due(&wasted, &bytes(100 * of_one), 1), None, "keys cost as well");
        assert_eq!(due(&wasted, &BTreeMap::new(), 0), None, "they have gone");
    }

    #[test]
    fn contiguous_values_are_not_rewritten() {
        let scattered = ScanWaste::default();
        for _ in 0..100 {
            let together = (0..50).map(|no| pointer(1, no * 1000));
            let apart = [pointer(2, 0), pointer(2, 50_000), pointer(3, 0)];
            let mut scan: Vec<Pointer> = together.chain(apart).collect();
            scattered.note(7, 1 << 30, &mut scan, 53);
        }
        let wasted = wasted(&scattered, 7);
        let bytes = BTreeMap::from([(1, 1 << 30), (2, 5 << 20), (3, 5 << 20)]);
        assert_eq!(due(&wasted, &bytes, 100_000), Some(BTreeSet::from([2, 3])));
    }

    #[test]
    fn a_single_stray_segment_is_reordered_with_its_neighbour() {
        let scattered = ScanWaste::default();
        for no in 0..100 {
            let most = (0..50).map(|no| pointer(1, no * 1000));
            let beside = pointer(2 + no % 2, 0);
            let others = [beside, Pointer { offset: 1000, ..beside }, pointer(4, 0)];
            let mut scan: Vec<Pointer> = most.chain(others).collect();
            scattered.note(7, 1 << 30, &mut scan, 53);
        }
        let wasted = wasted(&scattered, 7);
        let of_all = wasted.by_segment[&4];
        let bytes = |beside| BTreeMap::from([(1, 1 << 30), (2, beside), (3, beside), (4, 1 << 20)]);
        assert_eq!(due(&wasted, &bytes(1 << 20), 100_000), Some(BTreeSet::from([2, 3, 4])));
        assert_eq!(due(&wasted, &bytes(of_all / 2), 100_000), None, "that does not make good for it yet");
        assert_eq!(due(&wasted, &bytes(of_all * 3), 100_000), None, "alone it would be as it was");
    }

    #[test]
    fn reordered_values_are_not_due_again() {
        let scattered = ScanWaste::default();
        for _ in 0..1000 {
            let left = (0..48).map(|no| pointer(1, no * 1000));
            let mut scan: Vec<Pointer> = left.chain([pointer(2, 0), pointer(2, 1000)]).collect();
            assert!(!scattered.note(7, 1, &mut scan, 50));
        }
        assert_eq!(wasted(&scattered, 7).total, 0);
    }

    #[test]
    fn cached_values_between_neighbours_do_not_count_as_gaps() {
        let scattered = ScanWaste::default();
        for _ in 0..100 {
            let mut in_order: Vec<Pointer> = (0..64).map(|no| pointer(1, no * 1000)).collect();
            assert!(!scattered.note(7, 1, &mut in_order, 2), "two of them, far apart, were not cached");
        }
        assert!(!scattered.note(7, 1, &mut [pointer(1, 0), pointer(2, 0)], 1), "one I/O in any case");
    }
}
