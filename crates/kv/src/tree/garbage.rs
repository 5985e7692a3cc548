//! How much space values take beyond what is in use of them, and which jobs free it.
//!
//! 1. Segments hold values that nothing references any more: *garbage*. The leaf is compacted by which most is freed in
//!    the emptiest segments for what is written, and its values in them are rewritten. So it is with log segments
//!    that only leaves still reference. Compactions of whole leaves take garbage along.
//! 2. What is referenced may be *obsolete* all the same, by versions that were not merged with it yet: as much of newer
//!    kvsets as took the place of others in the spills and merges before. Where that is most of it, keys are merged;
//!    then it is garbage.
//! 3. Space is a bound that others rely on, so it presses ten times as much as it is over its bound.
//! 4. Nothing of that: *cleaning*, for what deletes and expiry would free.

use crate::tuning::tree::GARBAGE;
use std::collections::{BTreeMap, BTreeSet};

use super::edit::{KvsetKind, KvsetRecord};
use super::shape::{Leaf, Tree};
use crate::entry::SegmentNo;
use crate::tree::job::{Job, PickSettings, Picked, Surroundings, key_bytes, numbers};
use crate::tree::spill_choice::pick_spill;

/// Bytes of values, and how many of them are garbage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Space {
    /// Estimated space amplification over its bound; above 1 it is exceeded.
    pub(crate) over: f64,
    /// Bytes beyond what they may be.
    pub(crate) excess: u64,
}

impl Space {
    fn of(all: u64, live: u64, settings: &PickSettings) -> Space {
        let allowed = live.max(1) as f64 * settings.space_amplification.max(1.01);
        Space { over: all as f64 / allowed, excess: all.saturating_sub(allowed as u64) }
    }
}

/// Segments that a store's leaves could be rid of.
pub(super) struct Garbage {
    /// Segment, its bytes, and those of them that are referenced.
    segments: BTreeMap<SegmentNo, (u64, u64)>,
    total: u64,
    referenced: u64,
    /// Estimated obsolete bytes that leaves reference.
    obsolete_in_leaves: u64,
    /// Obsolete bytes at the root.
    obsolete_in_root: u64,
    over: f64,
    /// Space of value segments alone: log segments count as a whole and are freed by spills.
    pub(super) space: Space,
}

impl Garbage {
    pub(super) fn of<K: AsRef<KvsetRecord> + Clone>(
        tree: &Tree<K>,
        settings: &PickSettings,
        around: &Surroundings,
    ) -> Garbage {
        let references = tree.references();
        let live_of =
            |segment: &SegmentNo| references.get(segment).map_or(0, |(_, stored_bytes)| *stored_bytes);
        let values = tree.segments.values().filter(|segment| tree.is_referenced(segment.no));
        let values = values.map(|segment| (segment.no, segment.stored_bytes));
        let logs = around.log_segments.iter().filter(|(no, usage)| {
            !usage.is_needed_elsewhere && references.contains_key(no) && !tree.segments.contains_key(no)
        });
        let logs = logs.map(|(no, usage)| (*no, usage.bytes));
        let segments: BTreeMap<SegmentNo, (u64, u64)> =
            values.chain(logs).map(|(no, bytes)| (no, (bytes, live_of(&no).min(bytes)))).collect();
        let sum = |segments: &mut dyn Iterator<Item = &(u64, u64)>| {
            segments.fold((0, 0), |(all, live), (bytes, referenced)| (all + bytes, live + referenced))
        };
        let (total, referenced) = sum(&mut segments.values());
        let in_leaves = |is_counted: &dyn Fn(SegmentNo) -> bool| -> u64 {
            let leaves = tree.leaves.iter();
            leaves.map(|leaf| obsolete_bytes(leaf, around.overwritten, is_counted)).sum()
        };
        let obsolete_in_leaves = in_leaves(&|no| segments.contains_key(&no)).min(referenced);
        let is_value = |no: &SegmentNo| tree.segments.contains_key(no);
        let (values, in_use) = sum(&mut segments.iter().filter(|(no, _)| is_value(no)).map(|(_, both)| both));
        let obsolete = in_leaves(&|no| is_value(&no)).min(in_use);
        let space = Space::of(values, in_use - obsolete, settings);
        // Values of the root are where they belong, unless space is low.
        let root = if around.is_tight { &tree.root[..] } else { &[] };
        let root_bytes: u64 = root.iter().map(|kvset| kvset.as_ref().info.referenced_bytes()).sum();
        let obsolete_in_root = ((root_bytes as f64 * around.overwritten) as u64).min(root_bytes);
        let live = referenced - obsolete_in_leaves + root_bytes - obsolete_in_root;
        let over = Space::of(total + root_bytes, live, settings).over;
        Garbage { segments, total, referenced, obsolete_in_leaves, obsolete_in_root, over, space }
    }

    /// The segments that are to be emptied, emptiest first, as that costs least for what it frees.
    ///
    /// 1. If it `is_due`, as many as leave no more than `GARBAGE.max_left_fraction`, and one at least. Where there is
    ///    little space, no more than the bound asks: what is rewritten takes space until the last leaf has left a
    ///    segment.
    /// 2. Whether it is due or not, as many as leave `GARBAGE.target_left_fraction`, of those that are empty enough;
    ///    none where there is little space.
    fn emptiest(&self, settings: &PickSettings, around: &Surroundings, is_due: bool) -> Vec<SegmentNo> {
        let live_share = |(bytes, live): (u64, u64)| live as f64 / bytes.max(1) as f64;
        let with_garbage = self.segments.iter().filter(|(_, (bytes, live))| live < bytes);
        let mut segments: Vec<(SegmentNo, (u64, u64))> =
            with_garbage.map(|(no, both)| (*no, *both)).collect();
        segments.sort_by(|a, b| live_share(a.1).total_cmp(&live_share(b.1)));
        let amplification = settings.space_amplification.max(1.01);
        // Emptier than the bound asks of all.
        let empty_enough = GARBAGE.max_live_fraction.min(1.0 / amplification);
        let with = |part| self.referenced as f64 * (1.0 + (amplification - 1.0) * part);
        let most_left = with(if around.is_tight { 1.0 } else { GARBAGE.max_left_fraction });
        let mut left = self.total;
        let emptiest = segments.into_iter().enumerate().take_while(|(index, (_, both))| {
            let is_much = !around.is_tight
                && left as f64 > with(GARBAGE.target_left_fraction)
                && live_share(*both) <= empty_enough;
            let is_too_much = is_due && (left as f64 > most_left || *index == 0);
            left -= both.0 - both.1;
            is_much || is_too_much
        });
        emptiest.map(|(_, (no, _))| no).collect()
    }

    /// Returns those of `emptiest` that a leaf references, with at most `most_rewritten` of its bytes, and at least
    /// `least` of them.
    fn emptied_in<K: AsRef<KvsetRecord>>(
        &self,
        leaf: &Leaf<K>,
        emptiest: &[SegmentNo],
        (least, most_rewritten): (usize, u64),
    ) -> Emptied {
        let bytes_in = leaf.values_by_segment();
        let mut emptied =
            Emptied { key_bytes: leaf.kvsets.iter().map(key_bytes).sum(), ..Emptied::default() };
        for no in emptiest {
            let Some(bytes) = bytes_in.get(no).filter(|bytes| **bytes > 0) else { continue };
            if emptied.rewritten + bytes > most_rewritten && emptied.segments.len() >= least {
                break;
            }
            let (all, live) = self.segments.get(no).copied().unwrap_or_default();
            emptied.rewritten += bytes;
            emptied.freed += (all - live) as f64 * (*bytes as f64 / live.max(1) as f64).min(1.0);
            emptied.segments.insert(*no);
        }
        emptied
    }
}

/// Segments that a leaf could empty.
#[derive(Debug, Default)]
struct Emptied {
    segments: BTreeSet<SegmentNo>,
    key_bytes: u64,
    /// Bytes of values.
    rewritten: u64,
    /// Its part of the garbage in those segments, which goes when all leaves have left them.
    freed: f64,
}

impl Emptied {
    /// Returns the ratio of freed to written bytes.
    fn worth(&self) -> f64 {
        self.freed / (self.key_bytes + self.rewritten).max(1) as f64
    }
}

/// The job that frees space, if there is too much of it.
pub(super) fn pick_garbage<K: AsRef<KvsetRecord> + Clone>(
    tree: &Tree<K>,
    settings: &PickSettings,
    around: &Surroundings,
    found: &Garbage,
) -> Option<Picked> {
    if found.over < 1.0 {
        return None;
    }
    let pressure = 1.0 + (found.over - 1.0) * GARBAGE.space_urgency_factor;
    let garbage = found.total - found.referenced;
    if found.obsolete_in_root > found.obsolete_in_leaves.max(garbage) {
        return pick_spill(tree, settings, around).map(|picked| Picked { pressure, ..picked });
    }
    if found.obsolete_in_leaves > garbage {
        let is_counted = |no| found.segments.contains_key(&no);
        let obsolete = |leaf: &&Leaf<K>| obsolete_bytes(leaf, around.overwritten, &is_counted);
        let leaf = tree.leaves.iter().max_by_key(obsolete)?;
        let job = Job::Compact { leaf: leaf.no, kvsets: numbers(&leaf.kvsets), emptied: BTreeSet::new() };
        return Some(Picked { job, pressure });
    }
    let emptiest = found.emptiest(settings, around, true);
    let bounds = (1, most_rewritten(around));
    let leaves = tree.leaves.iter().map(|leaf| (leaf, found.emptied_in(leaf, &emptiest, bounds)));
    let leaves = leaves.filter(|(_, emptied)| !emptied.segments.is_empty());
    let (leaf, emptied) = leaves.max_by(|(_, a), (_, b)| a.worth().total_cmp(&b.worth()))?;
    let job = Job::Compact { leaf: leaf.no, kvsets: numbers(&leaf.kvsets), emptied: emptied.segments };
    Some(Picked { job, pressure })
}

/// Bytes of values that may be rewritten at once.
pub(super) fn most_rewritten(around: &Surroundings) -> u64 {
    around.free_bytes.map_or(GARBAGE.max_rewritten_bytes, |free| GARBAGE.max_rewritten_bytes.min(free / 2))
}

/// Returns the segments that a compaction of a whole leaf empties along the way: none if space may be short, or if the
/// keys are small compared with it.
pub(super) fn emptied_beside<K: AsRef<KvsetRecord>>(
    leaf: &Leaf<K>,
    settings: &PickSettings,
    around: &Surroundings,
    found: &Garbage,
) -> BTreeSet<SegmentNo> {
    let keys: u64 = leaf.kvsets.iter().map(key_bytes).sum();
    let most = most_rewritten(around).min(keys.saturating_mul(GARBAGE.max_values_per_key_byte));
    found.emptied_in(leaf, &found.emptiest(settings, around, false), (0, most)).segments
}

/// Bytes of a leaf in segments that count, which are obsolete though nobody has merged them with what took their place:
/// as many as `overwritten` of what is newer than its oldest kvset.
fn obsolete_bytes<K: AsRef<KvsetRecord>>(
    leaf: &Leaf<K>,
    overwritten: f64,
    is_counted: &dyn Fn(SegmentNo) -> bool,
) -> u64 {
    let newer = leaf.kvsets.iter().rev().skip(1);
    let newer = newer.filter(|kvset| kvset.as_ref().kind == KvsetKind::Data);
    let references = newer.flat_map(|kvset| &kvset.as_ref().info.references);
    let counted = references.filter(|references| is_counted(references.segment));
    (counted.map(|references| references.stored_bytes).sum::<u64>() as f64 * overwritten) as u64
}

/// A job for what nothing else is due for, though it would free space: deletes that lie above what they hide, and
/// versions that have expired for long, as `has_expired` says of the first of a kvset.
pub(crate) fn pick_cleaning<K: AsRef<KvsetRecord> + Clone>(
    tree: &Tree<K>,
    settings: &PickSettings,
    has_expired: impl Fn(u32) -> bool,
) -> Option<Job> {
    let deletes = |kvset: &K| {
        let info = &kvset.as_ref().info;
        info.range_tombstones > 0
            || (info.deletes > 0 && info.deletes * GARBAGE.min_deletes_divisor >= info.entries)
    };
    let expires = |kvset: &K| kvset.as_ref().info.first_expiry_s.is_some_and(&has_expired);
    let leaf = tree
        .leaves
        .iter()
        .find(|leaf| leaf.kvsets.iter().any(expires) || leaf.kvsets.iter().rev().skip(1).any(deletes));
    if let Some(leaf) = leaf {
        let job = Job::Compact { leaf: leaf.no, kvsets: numbers(&leaf.kvsets), emptied: BTreeSet::new() };
        return Some(job);
    }
    let hides_something = tree.root.len() > 1 || tree.leaves.iter().any(|leaf| !leaf.kvsets.is_empty());
    let is_due = |kvset: &K| expires(kvset) || (hides_something && deletes(kvset));
    let is_due = tree.root.iter().any(is_due);
    pick_spill(tree, settings, &Surroundings::default()).filter(|_| is_due).map(|picked| picked.job)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::pick::testing::*;
    use super::super::shape::TreeRecord;
    use super::*;
    use crate::keyfile::KeyFileInfo;
    use crate::tree::job::LogSegmentUse;

    #[test]
    fn garbage_collection_prefers_the_best_ratio_of_freed_to_written_bytes() {
        let segments = [(50, 1000), (51, 1000), (52, 1000)];
        let leaves = [[kvset(1, 10, &[(50, 100), (52, 400)])], [kvset(2, 10, &[(50, 200), (51, 900)])]];
        let tree = tree(&[], &[&leaves[0], &leaves[1]], &segments);
        // 3000 bytes for 1600: without 50 there are 2300, and 2080 are allowed, so 52 goes, too.
        // Of 50 the second leaf has two thirds and nothing else; the first would write 500 bytes for 833.
        assert_eq!(job(&tree), compact(1, &[2], &[50]));
        let alone = super::super::pick::testing::tree(&[], &[&leaves[0]], &[(50, 1000), (52, 1000)]);
        assert_eq!(job(&alone), compact(0, &[1], &[50, 52]));
    }

    #[test]
    fn garbage_collection_leaves_half_of_the_permitted_garbage() {
        let segments = [50, 51, 52, 53, 54].map(|no| (no, 1000));
        let leaf = [kvset(1, 10, &[(50, 500), (51, 700), (52, 760), (53, 780), (54, 1000)])];
        // 5000 bytes for 3740: 50 would be enough for the bound of 1.3, 51 is for half of that.
        assert_eq!(job(&tree(&[], &[&leaf], &segments)), compact(0, &[1], &[50, 51]));
        // Where there is little space, no more than the bound asks.
        let tight = Surroundings { is_tight: true, ..Surroundings::default() };
        let picked = pick(&tree(&[], &[&leaf], &segments), &SETTINGS, &tight).map(|picked| picked.job);
        assert_eq!(picked, compact(0, &[1], &[50]));
        // 3860 in use: it is not due yet.
        let leaf = [kvset(1, 10, &[(50, 500), (51, 700), (52, 760), (53, 900), (54, 1000)])];
        assert_eq!(job(&tree(&[], &[&leaf], &segments)), None);
        // 5000 bytes for 3740: without 50 there are 4640, and four fifths of what may be garbage are there with 4638.
        let leaf = [kvset(1, 10, &[(50, 640), (51, 775), (52, 775), (53, 775), (54, 775)])];
        assert_eq!(job(&tree(&[], &[&leaf], &segments)), compact(0, &[1], &[50, 51]));
        // 5000 bytes for 3700: of the others so much is in use that they are left to become emptier.
        let leaf = [kvset(1, 10, &[(50, 400), (51, 800), (52, 800), (53, 800), (54, 900)])];
        assert_eq!(job(&tree(&[], &[&leaf], &segments)), compact(0, &[1], &[50]));
    }

    #[test]
    fn a_compaction_of_a_whole_leaf_takes_garbage_along() {
        let segments = [(50, 1000), (51, 1000), (52, 1000)];
        let small = |no| kvset(no, 10, &[]);
        let leaf = |kept| [small(4), small(3), small(2), kvset(1, 10, &[(50, 500), (51, kept), (52, 1000)])];
        let picked = |leaf: &[KvsetRecord], around: &Surroundings| {
            pick(&tree(&[], &[leaf], &segments), &SETTINGS, around).map(|picked| picked.job)
        };
        let (plain, tight) =
            (Surroundings::default(), Surroundings { is_tight: true, ..Surroundings::default() });
        assert_eq!(picked(&leaf(1000), &plain), compact(0, &[4, 3, 2, 1], &[50]));
        assert_eq!(picked(&leaf(1000), &tight), compact(0, &[4, 3, 2, 1], &[]));
        // Garbage is less than half of what may be.
        let segments = [(50, 1000), (51, 1000), (52, 4000)];
        let little = [small(4), small(3), small(2), kvset(1, 10, &[(50, 500), (51, 1000), (52, 4000)])];
        let none = pick(&tree(&[], &[&little], &segments), &SETTINGS, &plain).map(|picked| picked.job);
        assert_eq!(none, compact(0, &[4, 3, 2, 1], &[]));
        // Keys are little beside the values.
        let mut little = leaf(1000);
        little.iter_mut().for_each(|kvset| kvset.info.key_bytes = 7);
        assert_eq!(picked(&little, &plain), compact(0, &[4, 3, 2, 1], &[]));
        // The kvset with those values is left alone.
        let large = [small(4), small(3), small(2), kvset(1, 1000, &[(50, 500), (51, 1000), (52, 1000)])];
        assert_eq!(picked(&large, &plain), compact(0, &[4, 3, 2], &[]));
    }

    #[test]
    fn a_log_segment_is_emptied_if_that_frees_it() {
        let leaf = [kvset(1, 10, &[(40, 100)])];
        let tree = tree(&[], &[&leaf], &[]);
        let mut around = Surroundings::default();
        assert_eq!(pick(&tree, &SETTINGS, &around), None);
        let usage = LogSegmentUse { bytes: 1000, is_needed_elsewhere: true };
        around.log_segments.insert(40, usage);
        assert_eq!(pick(&tree, &SETTINGS, &around), None);
        around.log_segments.insert(40, LogSegmentUse { is_needed_elsewhere: false, ..usage });
        assert_eq!(pick(&tree, &SETTINGS, &around).map(|picked| picked.job), compact(0, &[1], &[40]));
    }

    #[test]
    fn overwritten_versions_found_by_merges_count_as_garbage() {
        let leaf = [kvset(2, 10, &[(51, 600)]), kvset(1, 10, &[(50, 1000)])];
        let tree = tree(&[], &[&leaf], &[(50, 1000), (51, 600)]);
        let mut around = Surroundings::default();
        assert_eq!(pick(&tree, &SETTINGS, &around), None);
        // 1600 bytes for 1000: the leaf's keys are merged, and then it is seen what is garbage.
        around.overwritten = 1.0;
        let picked = pick(&tree, &SETTINGS, &around).unwrap();
        assert_eq!(Some(picked.job), compact(0, &[2, 1], &[]));
        assert!(picked.pressure > 3.0, "{}", picked.pressure);
        assert_eq!(super::super::pick::pick(&tree, &SETTINGS, &around).1.excess, 300);
        // What is promoted repeats what is there, and is meant to.
        let promoted = KvsetRecord { kind: KvsetKind::Promoted, ..leaf[0].clone() };
        let leaf = Leaf { no: 0, start: Bytes::new(), kvsets: vec![promoted, leaf[1].clone()] };
        assert_eq!(obsolete_bytes(&leaf, 1.0, &|_| true), 0);
    }

    #[test]
    fn garbage_of_the_root_counts_when_space_is_low() {
        let root = [kvset(9, 10, &[(90, 3000)])];
        let leaf = [kvset(1, 10, &[(50, 1000)])];
        let tree = tree(&root, &[&leaf], &[(50, 1000)]);
        let mut around = Surroundings { overwritten: 1.0, ..Surroundings::default() };
        assert_eq!(pick(&tree, &SETTINGS, &around), None);
        around.is_tight = true;
        assert_eq!(
            pick(&tree, &SETTINGS, &around).map(|picked| picked.job),
            Some(Job::Spill { kvsets: vec![9] })
        );
    }

    #[test]
    fn deleted_and_expired_versions_are_picked_for_cleaning() {
        let clean = |tree: &TreeRecord| pick_cleaning(tree, &SETTINGS, |expiry| expiry < 100);
        let with = |no, change: fn(&mut KeyFileInfo)| {
            let mut kvset = kvset(no, 100, &[]);
            kvset.info.entries = 8;
            change(&mut kvset.info);
            kvset
        };
        let plain = with(1, |_| {});
        let deletes = with(2, |info| info.deletes = 2);
        assert_eq!(clean(&tree(&[], &[std::slice::from_ref(&plain)], &[])), None);
        assert_eq!(clean(&tree(&[], &[&[deletes.clone(), plain.clone()]], &[])), compact(0, &[2, 1], &[]));
        // Below it is nothing that they could hide.
        assert_eq!(clean(&tree(&[], &[std::slice::from_ref(&deletes)], &[])), None);
        assert_eq!(clean(&tree(std::slice::from_ref(&deletes), &[], &[])), None);
        let spill = Some(Job::Spill { kvsets: vec![2] });
        assert_eq!(clean(&tree(&[deletes], &[std::slice::from_ref(&plain)], &[])), spill);
        assert_eq!(clean(&tree(&[with(2, |info| info.range_tombstones = 1)], &[&[plain]], &[])), spill);
        let expires = |at| {
            let mut kvset = with(3, |_| {});
            kvset.info.first_expiry_s = Some(at);
            kvset
        };
        assert_eq!(clean(&tree(&[], &[&[expires(99)]], &[])), compact(0, &[3], &[]));
        assert_eq!(clean(&tree(&[], &[&[expires(100)]], &[])), None);
    }
}
