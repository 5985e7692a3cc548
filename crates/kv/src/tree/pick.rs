//! Which job a tree needs most. It looks at records alone and does no I/O.
//!
//! Every kind of job has a *pressure*: how near what it works against is to its limit, 1 being at it. The job with the
//! greatest pressure of at least 1 is picked; if the engine says that log segments stand in the way, spills press more.
//!
//! 1. Too many kvsets at the root, or too many bytes: spill the oldest, as many as fit in a spill's memory. If it can
//!    be moved as it is, it is. Where spills cannot keep pace and nothing but their number is in the way, the newer
//!    ones are merged meanwhile, keys only.
//! 2. Too many kvsets in a leaf: compact them, keys only, or with garbage that a compaction of all of them takes along.
//!    Kvsets that are far larger than all that are newer are left alone, as rewriting their keys gains little; unless
//!    there are so many of the small ones that they have grown as large. Every merge so at least doubles what it is not
//!    part of, and a leaf's keys are written a logarithmic number of times.
//! 3. A leaf that is too large: compact it as a whole, which splits it.
//! 4. Values take up [too much space](super::garbage): bring garbage about, and write anew what is left in the emptiest
//!    segments.
//! 5. Values lie in [too many small segments](super::gather): write them anew together.
//!
//! If none of these is due, neighbours that are empty or small become one leaf, which reads and writes nothing: a store
//! whose keys only grow, like a queue, leaves a trail of empty leaves behind.

use crate::tuning::tree::PICKS;
use std::collections::BTreeSet;

use super::coalesce::pick_gathering;
use super::edit::{Change, Edit, KvsetRecord, LeafNo};
use super::garbage::{Garbage, Space, emptied_beside, pick_garbage};
use super::job::{Job, PickSettings, Picked, Surroundings, data_bytes, is_copy, key_bytes, numbers};
use super::shape::{Leaf, Tree};
use super::spill_choice::pick_spill;

/// The job that `tree` needs most, `None` if it needs none; and how much space it takes beyond what it needs.
pub(crate) fn pick<K: AsRef<KvsetRecord> + Clone>(
    tree: &Tree<K>,
    settings: &PickSettings,
    around: &Surroundings,
) -> (Option<Picked>, Space) {
    let garbage = Garbage::of(tree, settings, around);
    let space = garbage.space;
    let spill = pick_spill(tree, settings, around);
    let leaves = tree.leaves.iter().filter_map(|leaf| pick_leaf(leaf, settings));
    let freeing = pick_garbage(tree, settings, around, &garbage);
    let gathering = pick_gathering(tree, settings, around);
    let picked = spill.into_iter().chain(leaves).chain(freeing).chain(gathering);
    let picked = picked.filter(|picked| picked.pressure >= 1.0);
    let mut best = picked.reduce(|best, other| if other.pressure > best.pressure { other } else { best });
    // A compaction of a whole leaf takes garbage along.
    if let Some(Picked { job: Job::Compact { leaf, kvsets, emptied }, .. }) = &mut best
        && emptied.is_empty()
        && let Some(leaf) = tree.leaf_by_no(*leaf).filter(|leaf| leaf.kvsets.len() == kvsets.len())
    {
        *emptied = emptied_beside(leaf, settings, around, &garbage);
    }
    (best.or_else(|| pick_join(tree, settings)), space)
}

/// Leaves that are small enough to be one with those before them.
fn pick_join<K: AsRef<KvsetRecord>>(tree: &Tree<K>, settings: &PickSettings) -> Option<Picked> {
    let size = |leaf: &Leaf<K>| (leaf.kvsets.iter().map(data_bytes).sum::<u64>(), leaf.kvsets.len());
    let (first, others) = tree.leaves.split_first()?;
    let mut before = size(first);
    let mut leaves = Vec::new();
    for leaf in others {
        let (bytes, kvsets) = size(leaf);
        let both = (before.0 + bytes, before.1 + kvsets);
        let is_small = both.0 <= settings.leaf_bytes / PICKS.join_divisor
            && both.1 <= settings.leaf_kvsets.max(1) * PICKS.max_joined_kvsets_factor;
        if (is_small || before.1 == 0 || kvsets == 0) && leaves.len() < PICKS.max_joined_leaves {
            leaves.push(leaf.no);
            before = both;
        } else {
            before = (bytes, kvsets);
        }
    }
    (!leaves.is_empty()).then_some(Picked { job: Job::Join { leaves }, pressure: 1.0 })
}

/// The edit by which each of `leaves` becomes a part of the one before it.
pub(crate) fn join(leaves: &[LeafNo]) -> Edit {
    Edit { changes: leaves.iter().map(|leaf| Change::JoinLeaf { leaf: *leaf }).collect() }
}

fn pick_leaf<K: AsRef<KvsetRecord>>(leaf: &Leaf<K>, settings: &PickSettings) -> Option<Picked> {
    let bytes: u64 = leaf.kvsets.iter().map(data_bytes).sum();
    let by_bytes = bytes as f64 / (settings.leaf_bytes + settings.leaf_bytes / 2).max(1) as f64;
    let compact = |kvsets, pressure| {
        let job = Job::Compact { leaf: leaf.no, kvsets: numbers(kvsets), emptied: BTreeSet::new() };
        Some(Picked { job, pressure })
    };
    // A leaf of one key cannot be split.
    let has_keys =
        leaf.kvsets.iter().any(|kvset| kvset.as_ref().info.first_key != kvset.as_ref().info.last_key);
    if by_bytes > 1.0 && has_keys {
        return compact(&leaf.kvsets, by_bytes);
    }
    if leaf.kvsets.len() < 2 {
        return None;
    }
    let pressure = leaf.kvsets.len() as f64 / settings.leaf_kvsets.max(2) as f64;
    let mut newer = 0;
    let mut count = leaf.kvsets.len();
    for (index, kvset) in leaf.kvsets.iter().enumerate() {
        if index >= 2 && key_bytes(kvset) > PICKS.leave_out_factor * newer {
            count = index;
            break;
        }
        newer += key_bytes(kvset);
    }
    let chosen = &leaf.kvsets[..count];
    if count == leaf.kvsets.len() {
        return compact(chosen, pressure);
    }
    // Copies of what is not part of a merge are lost by it: so either are merged for themselves, unless there are too
    // many of them in turn.
    let mut runs = chosen.chunk_by(|a, b| is_copy(a) == is_copy(b));
    match runs.find(|run| run.len() >= 2) {
        Some(run) => compact(run, pressure),
        None if pressure >= PICKS.max_leaf_factor => compact(chosen, pressure),
        None => None,
    }
}

/// Trees of records for tests of what is picked.
#[cfg(test)]
pub(super) mod testing {
    use bytes::Bytes;

    use super::super::edit::{KvsetNo, Place, Position, SegmentRecord};
    use super::super::shape::TreeRecord;
    use super::*;
    use crate::entry::SegmentNo;
    use crate::keyfile::{KeyFileInfo, SegmentReferences};

    pub(crate) const SETTINGS: PickSettings = PickSettings {
        root_kvsets: 4,
        root_bytes: 10_000,
        spill_bytes: 2500,
        moved_values: 0,
        moved_bytes: 0,
        leaf_kvsets: 4,
        leaf_bytes: 10_000,
        space_amplification: 1.3,
        small_segment_bytes: 0,
    };

    pub(crate) fn kvset(no: KvsetNo, key_bytes: u64, references: &[(SegmentNo, u64)]) -> KvsetRecord {
        let references = references
            .iter()
            .map(|(segment, stored_bytes)| SegmentReferences {
                segment: *segment,
                values: 1,
                stored_bytes: *stored_bytes,
            })
            .collect();
        let (first_key, last_key) = (Bytes::from_static(b"a"), Bytes::from_static(b"z"));
        let info = KeyFileInfo { key_bytes, first_key, last_key, references, ..KeyFileInfo::default() };
        KvsetRecord { no, info, ..KvsetRecord::default() }
    }

    pub(crate) fn tree(
        root: &[KvsetRecord],
        leaves: &[&[KvsetRecord]],
        segments: &[(SegmentNo, u64)],
    ) -> TreeRecord {
        let mut changes = Vec::new();
        for (no, stored_bytes) in segments {
            let segment = SegmentRecord { no: *no, stored_bytes: *stored_bytes, class: None };
            changes.push(Change::AddSegment { segment });
        }
        let mut add = |place, kvsets: &[KvsetRecord]| {
            let oldest_first = kvsets.iter().rev().cloned();
            changes.extend(oldest_first.map(|kvset| Change::AddKvset {
                place,
                position: Position::Top,
                kvset,
            }));
        };
        add(Place::Root, root);
        let mut starts = Vec::new();
        for (no, kvsets) in leaves.iter().enumerate() {
            let start = if no == 0 { Bytes::new() } else { Bytes::from(format!("{no}")) };
            starts.push(Change::AddLeaf { leaf: no as u64, start });
            add(Place::Leaf(no as u64), kvsets);
        }
        starts.append(&mut changes);
        TreeRecord::default().apply(&Edit { changes: starts }, |record| Ok(record.clone())).unwrap()
    }

    pub(crate) fn pick(tree: &TreeRecord, settings: &PickSettings, around: &Surroundings) -> Option<Picked> {
        super::pick(tree, settings, around).0
    }

    pub(crate) fn job(tree: &TreeRecord) -> Option<Job> {
        pick(tree, &SETTINGS, &Surroundings::default()).map(|picked| picked.job)
    }

    pub(crate) fn compact(leaf: LeafNo, kvsets: &[KvsetNo], emptied: &[SegmentNo]) -> Option<Job> {
        Some(Job::Compact { leaf, kvsets: kvsets.to_vec(), emptied: emptied.iter().copied().collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::edit::KvsetNo;
    use super::super::shape::TreeRecord;
    use super::super::spill_choice::pick_merge;
    use super::testing::*;
    use super::{Job, KvsetRecord, LeafNo, PickSettings, Surroundings};

    fn around() -> Surroundings {
        Surroundings::default()
    }

    #[test]
    fn a_quiet_tree_needs_nothing() {
        assert_eq!(job(&TreeRecord::default()), None);
        let leaf = [kvset(10, 100, &[(50, 900)])];
        assert_eq!(job(&tree(&[kvset(3, 100, &[]), kvset(2, 100, &[])], &[&leaf], &[(50, 1000)])), None);
    }

    #[test]
    fn spills_take_as_many_kvsets_as_memory_allows() {
        let root: Vec<_> = (1..=4).rev().map(|no| kvset(no, 100, &[(90 + no, 1000)])).collect();
        assert_eq!(job(&tree(&root, &[], &[])), Some(Job::Spill { kvsets: vec![2, 1] }));
        // What is moved in one round may be more.
        let round = |moved_values, moved_bytes| {
            let settings = PickSettings { moved_values, moved_bytes, ..SETTINGS };
            pick(&tree(&root, &[], &[]), &settings, &around()).map(|picked| picked.job)
        };
        assert_eq!(round(3, 10_000), Some(Job::Spill { kvsets: vec![3, 2, 1] }));
        assert_eq!(round(4, 3400), Some(Job::Spill { kvsets: vec![3, 2, 1] }));
        let large = [kvset(9, 100, &[]), kvset(8, 100, &[(98, 20_000)])];
        assert_eq!(job(&tree(&large, &[], &[])), Some(Job::Spill { kvsets: vec![8] }));
    }

    #[test]
    fn the_newer_kvsets_of_a_root_are_merged_and_large_ones_left_alone() {
        let settings = PickSettings { root_kvsets: 4, ..SETTINGS };
        let pick = |root: &[KvsetRecord], taken: &[KvsetNo]| {
            pick_merge(root, &settings, 5000, |no| taken.contains(&no))
        };
        let root: Vec<_> = (1..=6).rev().map(|no| kvset(no, 100, &[(90 + no, 1000)])).collect();
        // The oldest is the spills', and more than four are too much for one.
        assert_eq!(pick(&root, &[]), [6, 5, 4, 3]);
        assert_eq!(pick(&root, &[2, 1]), [6, 5, 4, 3]);
        assert_eq!(pick(&root, &[4]), [6, 5]);
        assert_eq!(pick(&root, &[5]), [0; 0]);
        let with_large = [kvset(4, 100, &[]), kvset(3, 100, &[]), kvset(2, 500, &[]), kvset(1, 100, &[])];
        assert_eq!(pick(&with_large, &[]), [4, 3]);
        assert_eq!(pick(&[], &[]), [0; 0]);
    }

    #[test]
    fn empty_and_small_leaves_become_one() {
        let joined = |leaves: &[LeafNo]| Some(Job::Join { leaves: leaves.to_vec() });
        let full = [kvset(1, 8000, &[])];
        let half = [kvset(2, 4000, &[])];
        let small = [kvset(3, 1000, &[])];
        let empty: [KvsetRecord; 0] = [];
        assert_eq!(job(&tree(&[], &[&empty], &[])), None);
        assert_eq!(job(&tree(&[], &[&full, &half, &half, &full], &[])), None, "more than half a leaf");
        assert_eq!(job(&tree(&[], &[&half, &small], &[])), joined(&[1]));
        assert_eq!(job(&tree(&[], &[&full, &small], &[])), None);
        assert_eq!(job(&tree(&[], &[&empty, &empty, &full, &empty, &full], &[])), joined(&[1, 2, 3]));
        assert_eq!(job(&tree(&[], &[&small, &small, &half, &small], &[])), joined(&[1, 3]));
        let many: Vec<_> = (0..6).map(|no| kvset(10 + no, 100 << no, &[])).collect();
        let settings = PickSettings { leaf_kvsets: 10, ..SETTINGS };
        let pick = |leaves: &[&[KvsetRecord]]| {
            pick(&tree(&[], leaves, &[]), &PickSettings { leaf_bytes: 100_000, ..settings }, &around())
        };
        let found = pick(&[&many, &many, &many, &many, &many]).map(|picked| picked.job);
        assert_eq!(found, joined(&[1, 2, 4]), "not too many kvsets at once");
        // Whatever else is due comes first.
        let due: Vec<_> = (1..=4).map(|no| kvset(no, 100, &[])).collect();
        assert_eq!(job(&tree(&[], &[&empty, &empty, &due], &[])), compact(2, &[1, 2, 3, 4], &[]));
    }

    #[test]
    fn log_in_the_way_has_the_root_spilled() {
        let tree = tree(&[kvset(1, 10, &[])], &[], &[]);
        assert_eq!(job(&tree), None);
        let around = Surroundings { log_pressure: 1.5, ..Surroundings::default() };
        let picked = pick(&tree, &SETTINGS, &around).unwrap();
        assert_eq!((picked.job, picked.pressure), (Job::Spill { kvsets: vec![1] }, 1.5));
    }

    #[test]
    fn small_kvsets_of_a_leaf_are_merged_and_large_ones_left_alone() {
        let leaf = [kvset(4, 100, &[]), kvset(3, 120, &[]), kvset(2, 130, &[]), kvset(1, 5000, &[])];
        assert_eq!(job(&tree(&[], &[&leaf], &[])), compact(0, &[4, 3, 2], &[]));
        let leaf = [kvset(4, 1000, &[]), kvset(3, 1200, &[]), kvset(2, 1300, &[]), kvset(1, 5000, &[])];
        assert_eq!(job(&tree(&[], &[&leaf], &[])), compact(0, &[4, 3, 2, 1], &[]));
    }

    #[test]
    fn promoted_copies_merge_with_their_originals_or_each_other() {
        let promoted = super::super::edit::KvsetKind::Promoted;
        let copy = |no| KvsetRecord { kind: promoted, ..kvset(no, 100, &[]) };
        let bottom = || kvset(1, 5000, &[]);
        let leaf = [kvset(5, 100, &[]), kvset(4, 100, &[]), copy(3), bottom()];
        assert_eq!(job(&tree(&[], &[&leaf], &[])), compact(0, &[5, 4], &[]));
        let leaf = [copy(6), kvset(5, 100, &[]), kvset(4, 100, &[]), bottom()];
        assert_eq!(job(&tree(&[], &[&leaf], &[])), compact(0, &[5, 4], &[]));
        // In turn they stay for a while.
        let mut leaf = vec![kvset(5, 100, &[]), copy(4), kvset(3, 100, &[]), bottom()];
        assert_eq!(job(&tree(&[], &[&leaf], &[])), None);
        leaf.splice(0..0, [kvset(9, 100, &[]), copy(8), kvset(7, 100, &[]), copy(6)]);
        assert_eq!(job(&tree(&[], &[&leaf], &[])), compact(0, &[9, 8, 7, 6, 5, 4, 3], &[]));
        let leaf = [kvset(5, 100, &[]), copy(4), copy(3), bottom()];
        assert_eq!(job(&tree(&[], &[&leaf], &[])), compact(0, &[4, 3], &[]));
        let leaf = [copy(4), copy(3), copy(2), kvset(1, 100, &[])];
        assert_eq!(job(&tree(&[], &[&leaf], &[])), compact(0, &[4, 3, 2, 1], &[]));
    }

    #[test]
    fn a_leaf_that_is_too_large_is_compacted_whole() {
        let leaf = [kvset(4, 100, &[]), kvset(1, 5000, &[(50, 12_000)])];
        assert_eq!(job(&tree(&[], &[&[], &leaf], &[(50, 12_000)])), compact(1, &[4, 1], &[]));
    }

    #[test]
    fn a_log_in_the_way_does_not_starve_leaves() {
        let leaf: Vec<_> = (10..26).rev().map(|no| kvset(no, 100, &[])).collect();
        let tree = tree(&[kvset(30, 10, &[])], &[&leaf], &[]);
        let around = Surroundings { log_pressure: 1e9, ..Surroundings::default() };
        let picked = pick(&tree, &SETTINGS, &around).map(|picked| picked.job);
        assert!(matches!(picked, Some(Job::Compact { .. })), "{picked:?}");
    }

    #[test]
    fn defaults_are_as_documented() {
        let settings = PickSettings::default();
        assert_eq!((settings.root_kvsets, settings.leaf_kvsets), (4, 4));
        assert_eq!((settings.root_bytes, settings.spill_bytes), (1 << 30, 256 << 20));
        assert_eq!((settings.leaf_bytes, settings.space_amplification), (512 << 20, 1.3));
    }
}
