//! Many range tombstones, prepared for the question which of them hide a key.
//!
//! The ranges are cut at each other's ends into *fragments* that do not overlap; each has the sequence numbers of the tombstones over it,
//! newest first. A question is a binary search.

use bytes::Bytes;

use crate::entry::{RangeTombstone, SequenceNo};

#[derive(Debug, Clone)]
struct Fragment {
    start: Bytes,
    /// Newest first.
    sequences: Vec<SequenceNo>,
}

/// Range tombstones of one or several sources.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeTombstones {
    all: Vec<RangeTombstone>,
    /// By first key; each ends where the next one begins, and the last one without end.
    fragments: Vec<Fragment>,
}

impl RangeTombstones {
    pub(crate) fn new(mut all: Vec<RangeTombstone>) -> RangeTombstones {
        all.retain(|tombstone| tombstone.end.as_ref().is_none_or(|end| tombstone.start < *end));
        all.sort_by(|a, b| a.start.cmp(&b.start).then(b.sequence.cmp(&a.sequence)).then(a.end.cmp(&b.end)));
        all.dedup();
        let starts = all.iter().map(|tombstone| &tombstone.start);
        let ends = all.iter().filter_map(|tombstone| tombstone.end.as_ref());
        let mut cuts: Vec<Bytes> = starts.chain(ends).cloned().collect();
        cuts.sort();
        cuts.dedup();
        let mut fragments: Vec<Fragment> = Vec::with_capacity(cuts.len());
        let mut open: Vec<&RangeTombstone> = Vec::new();
        let mut next = all.iter().peekable();
        for start in cuts {
            open.retain(|tombstone| tombstone.covers(&start));
            while let Some(tombstone) = next.next_if(|tombstone| tombstone.start == start) {
                open.push(tombstone);
            }
            let mut sequences: Vec<SequenceNo> = open.iter().map(|tombstone| tombstone.sequence).collect();
            sequences.sort_unstable_by(|a, b| b.cmp(a));
            sequences.dedup();
            fragments.push(Fragment { start, sequences });
        }
        RangeTombstones { all, fragments }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// By first key, each once.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RangeTombstone> {
        self.all.iter()
    }

    /// The newest of those over `key` that `snapshot` sees: it hides the versions of `key` with smaller sequence numbers.
    #[inline]
    pub(crate) fn newest_over(&self, key: &[u8], snapshot: SequenceNo) -> Option<SequenceNo> {
        if self.fragments.is_empty() {
            return None;
        }
        self.sequences_over(key).iter().copied().find(|sequence| *sequence <= snapshot)
    }

    /// The sequence numbers of those over `key`, newest first.
    pub(crate) fn sequences_over(&self, key: &[u8]) -> &[SequenceNo] {
        let index = self.fragments.partition_point(|fragment| *fragment.start <= *key);
        match index.checked_sub(1) {
            Some(index) => &self.fragments[index].sequences,
            None => &[],
        }
    }

    /// What of them lies in `start..end` and has to be kept, cut to it: for each fragment the sequence numbers for which `keeps` holds.
    /// Neighbours with the same number become one again.
    pub(crate) fn within(
        &self,
        start: &[u8],
        end: Option<&[u8]>,
        mut keeps: impl FnMut(&[SequenceNo], SequenceNo) -> bool,
    ) -> Vec<RangeTombstone> {
        let mut kept: Vec<RangeTombstone> = Vec::new();
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
            for sequence in &fragment.sequences {
                if !keeps(&fragment.sequences, *sequence) {
                    continue;
                }
                let mut neighbours = kept.iter_mut().rev();
                let before = neighbours.find(|before| before.sequence == *sequence);
                match before.filter(|before| before.end.as_ref() == Some(&from)) {
                    Some(before) => before.end = to.clone(),
                    None => {
                        kept.push(RangeTombstone {
                            start: from.clone(),
                            end: to.clone(),
                            sequence: *sequence,
                        });
                    }
                }
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tombstones() -> impl Strategy<Value = Vec<RangeTombstone>> {
        let tombstone =
            (0u8..20, proptest::option::of(0u8..20), 1u64..8).prop_map(|(start, end, sequence)| {
                let key = |key: u8| Bytes::from(vec![key]);
                RangeTombstone { start: key(start), end: end.map(key), sequence }
            });
        proptest::collection::vec(tombstone, 0..12)
    }

    fn newest(all: &[RangeTombstone], key: &[u8], snapshot: SequenceNo) -> Option<SequenceNo> {
        let over = all.iter().filter(|tombstone| tombstone.covers(key) && tombstone.sequence <= snapshot);
        over.map(|tombstone| tombstone.sequence).max()
    }

    proptest! {
        #[test]
        fn fragments_answer_as_the_list_does(all in tombstones(), snapshot in 0u64..9) {
            let prepared = RangeTombstones::new(all.clone());
            for key in 0..22u8 {
                prop_assert_eq!(prepared.newest_over(&[key], snapshot), newest(&all, &[key], snapshot));
            }
        }

        #[test]
        fn what_lies_within_a_range_hides_the_same_there(all in tombstones(), start in 0u8..20, end in proptest::option::of(0u8..22)) {
            let prepared = RangeTombstones::new(all.clone());
            let end = end.map(|end| vec![end]);
            let within = prepared.within(&[start], end.as_deref(), |_, _| true);
            for key in 0..22u8 {
                for snapshot in 0..9 {
                    let is_inside = key >= start && end.as_ref().is_none_or(|end| key < end[0]);
                    let expected = if is_inside { newest(&all, &[key], snapshot) } else { None };
                    prop_assert_eq!(newest(&within, &[key], snapshot), expected);
                }
            }
        }
    }
}
