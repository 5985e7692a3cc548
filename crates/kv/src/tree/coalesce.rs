//! Bringing values together that lie in segments far smaller than segments are meant to be.
//!
//! A segment takes up whole chunks of its volume, and a job that moves a few kilobytes writes a segment of a few
//! kilobytes. Their values are in use, so they are no [garbage](super::garbage); but chunk after chunk would go to
//! them. Where a tree has more of them than its leaves can be blamed for, the leaf that gives most of them up for what
//! has to be written is compacted, and its values in them are rewritten, to one segment.
//!
//! It ends: of the segments that a leaf gives up there are more than the job writes small ones, so with each
//! job leaves refer to fewer of them.

use crate::tuning::tree::PICKS;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::edit::KvsetRecord;
use super::garbage::most_rewritten;
use super::shape::{Leaf, Tree};
use crate::entry::SegmentNo;
use crate::tree::job::{Job, PickSettings, Picked, Surroundings, is_copy, key_bytes, numbers};

/// The small segments that a leaf could leave.
#[derive(Debug)]
struct Candidate {
    kvsets: Range<usize>,
    /// With their bytes.
    emptied: BTreeMap<SegmentNo, u64>,
    /// Bytes of keys that have to be rewritten.
    key_bytes: u64,
}

impl Candidate {
    /// Segments fewer for a byte that is written: one takes their place.
    fn worth(&self) -> f64 {
        let bytes = self.key_bytes + self.emptied.values().sum::<u64>();
        (self.emptied.len() as f64 - 1.0) / bytes.max(1) as f64
    }
}

/// The job that brings values together, if there are too many small segments.
pub(super) fn pick_gathering<K: AsRef<KvsetRecord> + Clone>(
    tree: &Tree<K>,
    settings: &PickSettings,
    around: &Surroundings,
) -> Option<Picked> {
    let small = tree.segments.values().filter(|segment| segment.stored_bytes < settings.small_segment_bytes);
    let small: BTreeSet<SegmentNo> = small.map(|segment| segment.no).collect();
    let most =
        (PICKS.min_segments - 1) * tree.leaves.len() + if around.is_tight { 0 } else { PICKS.spare_segments };
    if small.len() <= most {
        return None;
    }
    let in_leaves = tree.leaves.iter().flat_map(|leaf| &leaf.kvsets);
    let in_leaves = in_leaves.flat_map(|kvset| &kvset.as_ref().info.references);
    let in_leaves = in_leaves.map(|references| references.segment).filter(|no| small.contains(no));
    let in_leaves = in_leaves.collect::<BTreeSet<SegmentNo>>().len();
    if in_leaves <= most {
        return None;
    }
    let best = tree.leaves.iter().filter_map(|leaf| Some((leaf, candidate(leaf, &small)?)));
    let (leaf, best) = best.max_by(|(_, a), (_, b)| a.worth().total_cmp(&b.worth()))?;
    let mut emptied: Vec<(SegmentNo, u64)> = best.emptied.into_iter().collect();
    emptied.sort_by_key(|(_, bytes)| *bytes);
    let most_rewritten = most_rewritten(around);
    let mut rewritten = 0;
    let chosen = emptied.into_iter().enumerate().take_while(|(index, (_, bytes))| {
        rewritten += bytes;
        *index < PICKS.min_segments || rewritten <= most_rewritten
    });
    let emptied = chosen.map(|(_, (no, _))| no).collect();
    let job = Job::Compact { leaf: leaf.no, kvsets: numbers(&leaf.kvsets[best.kvsets]), emptied };
    Some(Picked { job, pressure: in_leaves as f64 / most.max(1) as f64 })
}

/// The kvsets of a leaf that give most of `small` up for what has to be written.
fn candidate<K: AsRef<KvsetRecord>>(leaf: &Leaf<K>, small: &BTreeSet<SegmentNo>) -> Option<Candidate> {
    // First and last kvset that has values in it, and their bytes.
    let mut uses: BTreeMap<SegmentNo, (usize, usize, u64)> = BTreeMap::new();
    for (index, kvset) in leaf.kvsets.iter().enumerate() {
        let references = &kvset.as_ref().info.references;
        for references in references.iter().filter(|references| small.contains(&references.segment)) {
            let (_, last, bytes) = uses.entry(references.segment).or_insert((index, index, 0));
            *last = index;
            *bytes += references.stored_bytes;
        }
    }
    if uses.len() < PICKS.min_segments {
        return None;
    }
    // Copies of what is not part of a merge are lost by it.
    let is_one_kind = |range: &Range<usize>| {
        let mut kinds = leaf.kvsets[range.clone()].iter().map(is_copy);
        let first = kinds.next();
        kinds.all(|is_copy| Some(is_copy) == first)
    };
    let all = leaf.kvsets.len();
    let ranges = (0..all).flat_map(|from| (from + 1..=all).map(move |end| from..end));
    let ranges = ranges.filter(|range| range.len() == all || is_one_kind(range));
    let candidates = ranges.map(|kvsets| {
        let given_up =
            uses.iter().filter(|(_, (first, last, _))| kvsets.start <= *first && *last < kvsets.end);
        Candidate {
            emptied: given_up.map(|(no, (_, _, bytes))| (*no, *bytes)).collect(),
            key_bytes: leaf.kvsets[kvsets.clone()].iter().map(key_bytes).sum(),
            kvsets,
        }
    });
    let candidates = candidates.filter(|candidate| candidate.emptied.len() >= PICKS.min_segments);
    candidates.max_by(|a, b| a.worth().total_cmp(&b.worth()))
}

#[cfg(test)]
mod tests {
    use super::super::edit::KvsetKind;
    use super::super::pick::testing::*;
    use super::*;

    const SMALL_SETTINGS: PickSettings = PickSettings { small_segment_bytes: 100, ..SETTINGS };

    fn picked(tree: &super::super::shape::TreeRecord, is_tight: bool) -> Option<Job> {
        let around = Surroundings { is_tight, ..Surroundings::default() };
        pick(tree, &SMALL_SETTINGS, &around).map(|picked| picked.job)
    }

    /// Numbers from `from` on, of 10 bytes each.
    fn tens(from: SegmentNo, count: u64) -> Vec<(SegmentNo, u64)> {
        (from..from + count).map(|no| (no, 10)).collect()
    }

    #[test]
    fn small_segments_are_brought_together_when_they_are_many() {
        let few = [kvset(1, 10, &tens(50, 11))];
        assert_eq!(picked(&tree(&[], &[&few], &tens(50, 11)), false), None);
        let emptied: Vec<_> = (50..61).collect();
        assert_eq!(picked(&tree(&[], &[&few], &tens(50, 11)), true), compact(0, &[1], &emptied));
        let many = [kvset(1, 10, &tens(50, 12))];
        let emptied: Vec<_> = (50..62).collect();
        assert_eq!(picked(&tree(&[], &[&many], &tens(50, 12)), false), compact(0, &[1], &emptied));
        // A second leaf may have as many as a job leaves, too.
        assert_eq!(picked(&tree(&[], &[&many, &[kvset(2, 9000, &[])]], &tens(50, 12)), false), None);
    }

    #[test]
    fn segments_that_are_large_enough_stay() {
        let mut segments = tens(50, 20);
        segments.iter_mut().take(10).for_each(|(_, bytes)| *bytes = 100);
        let leaf = [kvset(1, 10, &segments)];
        assert_eq!(picked(&tree(&[], &[&leaf], &segments), false), None);
        let emptied: Vec<_> = (60..70).collect();
        assert_eq!(picked(&tree(&[], &[&leaf], &segments), true), compact(0, &[1], &emptied));
    }

    #[test]
    fn keys_are_written_as_few_as_may_be() {
        // What is in the large one alone is left for another time, and so is what it shares.
        let newer = [kvset(3, 10, &tens(50, 6)), kvset(2, 10, &tens(56, 6))];
        let oldest = kvset(1, 5000, &[tens(61, 1), tens(62, 4)].concat());
        let leaf = [newer[0].clone(), newer[1].clone(), oldest];
        let emptied: Vec<_> = (50..61).collect();
        assert_eq!(picked(&tree(&[], &[&leaf], &tens(50, 16)), false), compact(0, &[3, 2], &emptied));
    }

    #[test]
    fn copies_are_not_merged_with_a_part_of_their_leaf() {
        let copy = KvsetRecord { kind: KvsetKind::Promoted, ..kvset(2, 10, &tens(53, 3)) };
        let leaf = [kvset(3, 10, &tens(50, 3)), copy.clone(), kvset(1, 10, &tens(56, 3))];
        let emptied: Vec<_> = (50..59).collect();
        let segments = tens(50, 9);
        assert_eq!(picked(&tree(&[], &[&leaf], &segments), true), compact(0, &[3, 2, 1], &emptied));
        let copies = [KvsetRecord { no: 4, ..copy.clone() }, copy, kvset(1, 5000, &[])];
        assert_eq!(picked(&tree(&[], &[&copies], &tens(53, 3)), true), None);
        let more = [
            KvsetRecord { info: kvset(4, 10, &tens(50, 3)).info, ..copies[0].clone() },
            copies[1].clone(),
            copies[2].clone(),
        ];
        let emptied: Vec<_> = (50..56).collect();
        assert_eq!(picked(&tree(&[], &[&more], &tens(50, 6)), true), compact(0, &[4, 2], &emptied));
    }

    #[test]
    fn coalescing_is_bounded_by_free_space() {
        let mut segments = tens(50, 20);
        segments.iter_mut().rev().take(10).for_each(|(_, bytes)| *bytes = 90);
        let leaf = [kvset(1, 10, &segments)];
        let tree = tree(&[], &[&leaf], &segments);
        let mut around = Surroundings { free_bytes: Some(600), ..Surroundings::default() };
        let emptied: Vec<_> = (50..62).collect();
        assert_eq!(
            pick(&tree, &SMALL_SETTINGS, &around).map(|picked| picked.job),
            compact(0, &[1], &emptied)
        );
        around.free_bytes = Some(0);
        let emptied: Vec<_> = (50..54).collect();
        assert_eq!(
            pick(&tree, &SMALL_SETTINGS, &around).map(|picked| picked.job),
            compact(0, &[1], &emptied)
        );
    }
}
