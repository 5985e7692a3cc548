//! Many range tombstones, prepared for the question which of them hide a key.
//!
//! The ranges are cut at each other's ends into *fragments* that do not overlap; each lists the sequence numbers of the
//! newest tombstones over it. A question is a binary search. Ranges that lie in each other would make lists as long as
//! there are tombstones, in each fragment: a list ends after [`MAX_LISTED_NUMBERS`], and who asks as of so long ago
//! that no listed one is old enough has all tombstones looked through.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::entry::{RangeTombstone, SequenceNo};

/// Most sequence numbers that a fragment lists.
const MAX_LISTED_NUMBERS: usize = 8;

#[derive(Debug, Clone)]
struct Fragment {
    start: Bytes,
    /// Newest first.
    sequences: Vec<SequenceNo>,
    /// There are older numbers than those listed.
    has_more: bool,
}

/// Range tombstones of one or several sources.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeTombstones {
    /// By first key.
    all: Vec<RangeTombstone>,
    /// By first key; each ends where the next one begins, and the last one without end.
    fragments: Vec<Fragment>,
}

impl RangeTombstones {
    /// Takes time in proportion to the number of tombstones and its logarithm, however they lie.
    pub(crate) fn new(mut all: Vec<RangeTombstone>) -> RangeTombstones {
        all.retain(|tombstone| tombstone.end.as_ref().is_none_or(|end| tombstone.start < *end));
        all.sort_by(|a, b| a.start.cmp(&b.start).then(b.sequence.cmp(&a.sequence)).then(a.end.cmp(&b.end)));
        all.dedup();
        let starts = all.iter().map(|tombstone| &tombstone.start);
        let mut ends: Vec<(&Bytes, SequenceNo)> =
            all.iter().filter_map(|tombstone| Some((tombstone.end.as_ref()?, tombstone.sequence))).collect();
        ends.sort();
        let mut cuts: Vec<&Bytes> = starts.chain(ends.iter().map(|(end, _)| *end)).collect();
        cuts.sort();
        cuts.dedup();
        let mut fragments: Vec<Fragment> = Vec::with_capacity(cuts.len());
        // Open tombstones at the beginning of the fragment, newest first.
        let mut open: BTreeMap<Reverse<SequenceNo>, usize> = BTreeMap::new();
        let mut next_start = all.iter().peekable();
        let mut next_end = ends.iter().peekable();
        for start in cuts {
            while let Some((_, sequence)) = next_end.next_if(|(end, _)| *end == start) {
                if let Some(count) = open.get_mut(&Reverse(*sequence)) {
                    *count -= 1;
                    if *count == 0 {
                        open.remove(&Reverse(*sequence));
                    }
                }
            }
            while let Some(tombstone) = next_start.next_if(|tombstone| tombstone.start == *start) {
                *open.entry(Reverse(tombstone.sequence)).or_default() += 1;
            }
            let sequences = open.keys().take(MAX_LISTED_NUMBERS).map(|sequence| sequence.0).collect();
            fragments.push(Fragment {
                start: start.clone(),
                sequences,
                has_more: open.len() > MAX_LISTED_NUMBERS,
            });
        }
        RangeTombstones { all, fragments }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// By first key, each once.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RangeTombstone> {
        self.all.iter()
    }

    /// The newest of those over `key` that `snapshot` sees: it hides the versions of `key` with smaller sequence
    /// numbers.
    #[inline]
    pub(crate) fn newest_over(&self, key: &[u8], snapshot: SequenceNo) -> Option<SequenceNo> {
        self.newest_in(self.fragment_of(key)?, key, snapshot)
    }

    /// Returns the sequence numbers of tombstones over `key`, newest first: all that matter to a reader at one of
    /// `snapshots` or at present, and perhaps others.
    pub(crate) fn sequences_over(&self, key: &[u8], snapshots: &[SequenceNo]) -> Cow<'_, [SequenceNo]> {
        match self.fragment_of(key) {
            Some(fragment) => self.sequences_of(fragment, key, snapshots),
            None => Cow::Borrowed(&[]),
        }
    }

    fn fragment_of(&self, key: &[u8]) -> Option<&Fragment> {
        let index = self.fragments.partition_point(|fragment| *fragment.start <= *key);
        self.fragments.get(index.checked_sub(1)?)
    }

    /// `key` lies in the fragment.
    fn newest_in(&self, fragment: &Fragment, key: &[u8], snapshot: SequenceNo) -> Option<SequenceNo> {
        let listed = fragment.sequences.iter().copied().find(|sequence| *sequence <= snapshot);
        if listed.is_some() || !fragment.has_more {
            return listed;
        }
        let begun = self.all.partition_point(|tombstone| *tombstone.start <= *key);
        let over = self.all[..begun].iter().filter(|tombstone| tombstone.sequence <= snapshot);
        over.filter(|tombstone| tombstone.covers(key)).map(|tombstone| tombstone.sequence).max()
    }

    fn sequences_of<'a>(
        &self,
        fragment: &'a Fragment,
        key: &[u8],
        snapshots: &[SequenceNo],
    ) -> Cow<'a, [SequenceNo]> {
        if !fragment.has_more {
            return Cow::Borrowed(&fragment.sequences);
        }
        let readers = snapshots.iter().copied().chain([SequenceNo::MAX]);
        let mut newest: Vec<SequenceNo> =
            readers.filter_map(|snapshot| self.newest_in(fragment, key, snapshot)).collect();
        newest.sort_unstable_by_key(|sequence| Reverse(*sequence));
        newest.dedup();
        Cow::Owned(newest)
    }

    /// Returns the tombstones clipped to `start..end`: for each fragment the sequence numbers that matter to a reader
    /// at one of `snapshots` or at present, and for which `keeps` holds. Neighbours with the same number are joined.
    pub(crate) fn within(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        snapshots: &[SequenceNo],
        mut keeps: impl FnMut(&[SequenceNo], SequenceNo) -> bool,
    ) -> Vec<RangeTombstone> {
        let mut kept: Vec<RangeTombstone> = Vec::new();
        // Index of the last fragment with each number.
        let mut last: BTreeMap<SequenceNo, usize> = BTreeMap::new();
        let ends = self.fragments.iter().skip(1).map(|fragment| Some(&fragment.start)).chain([None]);
        for (fragment, fragment_end) in self.fragments.iter().zip(ends) {
            let is_before = fragment_end.is_some_and(|fragment_end| **fragment_end <= *start);
            let is_behind = end.is_some_and(|end| *fragment.start >= *end);
            if is_before || is_behind {
                continue;
            }
            let from =
                if *fragment.start < *start { Bytes::copy_from_slice(start) } else { fragment.start.clone() };
            let to = match (fragment_end, end) {
                (Some(fragment_end), Some(end)) if **fragment_end > *end => Some(Bytes::copy_from_slice(end)),
                (Some(fragment_end), _) => Some(fragment_end.clone()),
                (None, end) => end.map(Bytes::copy_from_slice),
            };
            let sequences = self.sequences_of(fragment, &fragment.start, snapshots);
            for sequence in sequences.iter().copied() {
                if !keeps(&sequences, sequence) {
                    continue;
                }
                let before = last.get(&sequence).and_then(|index| kept.get_mut(*index));
                match before.filter(|before| before.end.as_ref() == Some(&from)) {
                    Some(before) => before.end = to.clone(),
                    None => {
                        last.insert(sequence, kept.len());
                        kept.push(RangeTombstone { start: from.clone(), end: to.clone(), sequence });
                    }
                }
            }
        }
        kept
    }
}

/// Range tombstones of several sources, of each those up to a sequence number of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeenTombstones {
    sets: Vec<(Arc<RangeTombstones>, SequenceNo)>,
}

impl SeenTombstones {
    /// Adds the tombstones of one source up to `snapshot`.
    pub(crate) fn add(&mut self, set: Arc<RangeTombstones>, snapshot: SequenceNo) {
        if !set.is_empty() {
            self.sets.push((set, snapshot));
        }
    }

    /// The newest over `key`.
    #[inline]
    pub(crate) fn newest_over(&self, key: &[u8]) -> Option<SequenceNo> {
        self.sets.iter().filter_map(|(set, snapshot)| set.newest_over(key, *snapshot)).max()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(key: u8) -> Bytes {
        Bytes::from(vec![key])
    }

    fn tombstones() -> impl Strategy<Value = Vec<RangeTombstone>> {
        let tombstone =
            (0u8..20, proptest::option::of(0u8..20), 1u64..50).prop_map(|(start, end, sequence)| {
                RangeTombstone { start: key(start), end: end.map(key), sequence }
            });
        // Few, and so many that lists end before they do.
        prop_oneof![
            proptest::collection::vec(tombstone.clone(), 0..12),
            proptest::collection::vec(tombstone, 20..80),
        ]
    }

    fn newest(all: &[RangeTombstone], key: &[u8], snapshot: SequenceNo) -> Option<SequenceNo> {
        let over = all.iter().filter(|tombstone| tombstone.covers(key) && tombstone.sequence <= snapshot);
        over.map(|tombstone| tombstone.sequence).max()
    }

    proptest! {
        #[test]
        fn fragments_answer_as_the_list_does(all in tombstones(), snapshot in 0u64..52) {
            let prepared = RangeTombstones::new(all.clone());
            for key in 0..22u8 {
                prop_assert_eq!(prepared.newest_over(&[key], snapshot), newest(&all, &[key], snapshot));
                let listed = prepared.sequences_over(&[key], &[snapshot]);
                prop_assert!(listed.is_sorted_by(|a, b| a > b));
                for snapshot in [snapshot, SequenceNo::MAX] {
                    let first = listed.iter().copied().find(|sequence| *sequence <= snapshot);
                    prop_assert_eq!(first, newest(&all, &[key], snapshot));
                }
            }
        }

        #[test]
        fn tombstones_clipped_to_a_range_hide_the_same_keys_there(
            all in tombstones(),
            start in 0u8..20,
            end in proptest::option::of(0u8..22),
            mut snapshots in proptest::collection::vec(0u64..52, 0..5),
        ) {
            snapshots.sort_unstable();
            let prepared = RangeTombstones::new(all.clone());
            let end = end.map(|end| vec![end]);
            let within = prepared.within(&[start], end.as_deref(), &snapshots, |_, _| true);
            for key in 0..22u8 {
                for snapshot in snapshots.iter().copied().chain([SequenceNo::MAX]) {
                    let is_inside = key >= start && end.as_ref().is_none_or(|end| key < end[0]);
                    let expected = if is_inside { newest(&all, &[key], snapshot) } else { None };
                    prop_assert_eq!(newest(&within, &[key], snapshot), expected);
                }
            }
        }
    }

    /// As a queue is trimmed: each deletes what those before it did, and more.
    #[test]
    fn nested_range_tombstones_are_stored_once() {
        const COUNT: u64 = 20_000;
        let number = |no: u64| Bytes::copy_from_slice(&no.to_be_bytes());
        let all =
            (1..=COUNT).map(|no| RangeTombstone { start: Bytes::new(), end: Some(number(no)), sequence: no });
        let prepared = RangeTombstones::new(all.collect());
        let listed: usize = prepared.fragments.iter().map(|fragment| fragment.sequences.len()).sum();
        assert!(listed <= MAX_LISTED_NUMBERS * (COUNT as usize + 1), "{listed}");
        assert_eq!(prepared.newest_over(&number(7), SequenceNo::MAX), Some(COUNT));
        assert_eq!(prepared.newest_over(&number(7), 9), Some(9));
        assert_eq!(prepared.newest_over(&number(9), 9), None);
        // Nobody reads at an earlier moment: the last one is enough.
        let kept = prepared.within(b"", None, &[], |all, sequence| all.first() == Some(&sequence));
        assert_eq!(kept, [RangeTombstone { start: Bytes::new(), end: Some(number(COUNT)), sequence: COUNT }]);
    }
}
