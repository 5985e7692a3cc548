//! Which job a tree needs most. It looks at records alone and does no I/O.
//!
//! Every kind of job has a *pressure*: how near what it works against is to its limit, 1 being at it. The job with the greatest pressure of at least 1
//! is picked; if the engine says that log segments stand in the way, spills press more.
//!
//! 1. Too many kvsets at the root, or too many bytes: spill the oldest, as many as fit in a spill's memory. If it can be moved as it is, it is.
//!    Where spills cannot keep pace and nothing but their number is in the way, the newer ones are merged meanwhile, keys only.
//! 2. Too many kvsets in a leaf: compact them, keys only. Kvsets that are far larger than all that are newer are left alone, as rewriting their keys
//!    gains little; unless there are so many of the small ones that they have grown as large. Every merge so at least doubles what it is
//!    not part of, and a leaf's keys are written a logarithmic number of times.
//! 3. A leaf that is too large: compact it as a whole, which splits it.
//! 4. Value segments with too much garbage: compact the leaf that references most of what is left in them, and write those values anew. Log segments that
//!    only leaves still reference and that are mostly garbage, the same. What is referenced may be obsolete all the same, by versions that were not merged
//!    with it yet: as much of newer kvsets as took the place of others in the merges before. Where that is most of it, a leaf's keys are merged instead.
//!    Space is a bound that others rely on, so this presses ten times as much as it is over it.
//! 5. Nothing of that: [cleaning](pick_cleaning), for what deletes and expiry would free.

use std::collections::{BTreeMap, BTreeSet};

use super::edit::{KvsetKind, KvsetNo, KvsetRecord, LeafNo};
use super::shape::{Leaf, Tree};
use crate::entry::SegmentNo;

/// When jobs are due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PickSettings {
    /// So many kvsets at the root make a spill. Default: 4.
    pub(crate) root_kvsets: usize,
    /// So many bytes of keys and values at the root make a spill. Default: 1 GiB.
    pub(crate) root_bytes: u64,
    /// Most bytes of one spill, unless one kvset alone has more. Default: 256 MiB.
    pub(crate) spill_bytes: u64,
    /// So many kvsets in a leaf make a compaction. Default: 4.
    pub(crate) leaf_kvsets: usize,
    /// A leaf with so many bytes and half of it more is split. Default: 512 MiB.
    pub(crate) leaf_bytes: u64,
    /// Bytes of value segments over the bytes in them that are referenced. Default: 1.3.
    pub(crate) space_amplification: f64,
}

impl Default for PickSettings {
    fn default() -> PickSettings {
        PickSettings {
            root_kvsets: 4,
            root_bytes: 1 << 30,
            spill_bytes: 256 << 20,
            leaf_kvsets: 4,
            leaf_bytes: 512 << 20,
            space_amplification: 1.3,
        }
    }
}

/// What the engine knows beside the tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Surroundings {
    /// Log stands in the way: the fastest class is as full as it may get, or too much of it would have to be replayed. Spills press so much more.
    pub(crate) log_pressure: f64,
    /// The share of a leaf's newer versions that took the place of older ones, in merges so far.
    pub(crate) overwritten: f64,
    /// Bytes that are free for what jobs write; `None` for no bound.
    pub(crate) free_bytes: Option<u64>,
    /// That is little of what there is, so that what the root holds counts, too.
    pub(crate) is_tight: bool,
    /// Bytes that were written to log segments, of those that are read-only by now, and whether anything but the leaves of this store references
    /// them: memory tables, roots, other stores.
    pub(crate) log_segments: BTreeMap<SegmentNo, LogSegmentUse>,
}

/// How a log segment is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogSegmentUse {
    /// What it takes up.
    pub(crate) bytes: u64,
    /// Somebody else needs it still, so emptying it here would not free it.
    pub(crate) is_needed_elsewhere: bool,
}

/// A job to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Job {
    /// The root's oldest kvsets, newest of them first.
    Spill { kvsets: Vec<KvsetNo> },
    /// Neighbours in a leaf, newest first; values in the emptied segments are written anew.
    Compact { leaf: LeafNo, kvsets: Vec<KvsetNo>, emptied: BTreeSet<SegmentNo> },
}

/// A job and how much it presses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picked {
    pub(crate) job: Job,
    pub(crate) pressure: f64,
}

/// A kvset whose bytes are so many times those of all newer ones of its leaf is left alone.
const LEFT_ALONE: u64 = 2;

/// How much a log that stands in the way presses at most: leaves that are neglected for it take more room in the end.
const MOST_LOG_PRESSURE: f64 = 3.0;

/// How much more than other limits the bound of space presses.
const SPACE_PRESSES: f64 = 10.0;

/// Most bytes of values that are written anew at once: writers may wait for it.
const MOST_REWRITTEN: u64 = 64 << 20;

/// A kvset of which one in so many versions is a delete is worth cleaning.
const DELETES: u64 = 4;

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
    let garbage = pick_garbage(tree, settings, around, &garbage);
    let picked = spill.into_iter().chain(leaves).chain(garbage).filter(|picked| picked.pressure >= 1.0);
    let best = picked.reduce(|best, other| if other.pressure > best.pressure { other } else { best });
    (best, space)
}

fn data_bytes<K: AsRef<KvsetRecord>>(kvset: &K) -> u64 {
    kvset.as_ref().info.data_bytes()
}

/// Bytes of a kvset that a merge of keys writes.
fn key_bytes<K: AsRef<KvsetRecord>>(kvset: &K) -> u64 {
    let info = &kvset.as_ref().info;
    // Pointers and sequence numbers weigh about as much as short keys.
    info.key_bytes + info.inline_bytes + 16 * info.entries
}

fn pick_spill<K: AsRef<KvsetRecord>>(
    tree: &Tree<K>,
    settings: &PickSettings,
    around: &Surroundings,
) -> Option<Picked> {
    let bytes: u64 = tree.root.iter().map(data_bytes).sum();
    let by_number = tree.root.len() as f64 / settings.root_kvsets.max(1) as f64;
    let by_bytes = bytes as f64 / settings.root_bytes.max(1) as f64;
    let oldest = tree.root.last()?;
    let mut chosen = vec![oldest.as_ref().no];
    let mut spilled = data_bytes(oldest);
    for kvset in tree.root.iter().rev().skip(1) {
        spilled += data_bytes(kvset);
        if spilled > settings.spill_bytes {
            break;
        }
        chosen.push(kvset.as_ref().no);
    }
    chosen.reverse();
    let pressure = by_number.max(by_bytes).max(around.log_pressure.min(MOST_LOG_PRESSURE));
    Some(Picked { job: Job::Spill { kvsets: chosen }, pressure })
}

/// Kvsets of the root to be merged, newest first; none if there are not so many that it is worth it. The oldest is left to spills, and so are those of
/// which one `is_taken` and what is older. What is merged has no more than `most_bytes` of keys and values.
pub(crate) fn pick_merge<K: AsRef<KvsetRecord>>(
    root: &[K],
    settings: &PickSettings,
    most_bytes: u64,
    is_taken: impl Fn(KvsetNo) -> bool,
) -> Vec<KvsetNo> {
    let candidates = root.iter().take(root.len().saturating_sub(1));
    let candidates: Vec<&K> = candidates.take_while(|kvset| !is_taken(kvset.as_ref().no)).collect();
    let (mut newer, mut bytes, mut count) = (0, 0, 0);
    for (index, kvset) in candidates.iter().enumerate() {
        bytes += data_bytes(kvset);
        if bytes > most_bytes || (index >= 2 && key_bytes(kvset) > LEFT_ALONE * newer) {
            break;
        }
        newer += key_bytes(kvset);
        count += 1;
    }
    if count < settings.root_kvsets.div_ceil(2).max(2) {
        return Vec::new();
    }
    numbers(&candidates[..count])
}

fn numbers<K: AsRef<KvsetRecord>>(kvsets: &[K]) -> Vec<KvsetNo> {
    kvsets.iter().map(|kvset| kvset.as_ref().no).collect()
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
        if index >= 2 && key_bytes(kvset) > LEFT_ALONE * newer {
            count = index;
            break;
        }
        newer += key_bytes(kvset);
    }
    compact(&leaf.kvsets[..count], pressure)
}

/// What there is of values, and how much of it nobody needs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Space {
    /// Bytes over the bytes in use, by guess, and over what they may be: more than 1 is too much.
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
struct Garbage {
    /// Segment, its bytes, and those of them that are referenced.
    segments: BTreeMap<SegmentNo, (u64, u64)>,
    total: u64,
    referenced: u64,
    /// Of what leaves reference, by guess.
    obsolete_in_leaves: u64,
    /// Of what is at the root.
    obsolete_in_root: u64,
    over: f64,
    /// Of value segments alone: log segments count whole, and go by themselves.
    space: Space,
}

impl Garbage {
    fn of<K: AsRef<KvsetRecord> + Clone>(
        tree: &Tree<K>,
        settings: &PickSettings,
        around: &Surroundings,
    ) -> Garbage {
        let references = tree.references();
        let live_of =
            |segment: &SegmentNo| references.get(segment).map_or(0, |(_, stored_bytes)| *stored_bytes);
        let values = tree.segments.values().map(|segment| (segment.no, segment.stored_bytes));
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
        // What is at the root is where it is meant to be, unless there is little room.
        let root = if around.is_tight { &tree.root[..] } else { &[] };
        let root_bytes: u64 = root.iter().map(|kvset| kvset.as_ref().info.referenced_bytes()).sum();
        let obsolete_in_root = ((root_bytes as f64 * around.overwritten) as u64).min(root_bytes);
        let live = referenced - obsolete_in_leaves + root_bytes - obsolete_in_root;
        let over = Space::of(total + root_bytes, live, settings).over;
        Garbage { segments, total, referenced, obsolete_in_leaves, obsolete_in_root, over, space }
    }
}

fn pick_garbage<K: AsRef<KvsetRecord> + Clone>(
    tree: &Tree<K>,
    settings: &PickSettings,
    around: &Surroundings,
    found: &Garbage,
) -> Option<Picked> {
    if found.over < 1.0 {
        return None;
    }
    let pressure = 1.0 + (found.over - 1.0) * SPACE_PRESSES;
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
    // Emptying the emptiest costs least for what it frees; so many of them that the bound would be kept.
    let mut segments: Vec<(SegmentNo, u64, u64)> =
        found.segments.iter().map(|(no, (bytes, live))| (*no, *bytes, *live)).collect();
    segments.sort_by(|a, b| (a.2 as f64 / a.1.max(1) as f64).total_cmp(&(b.2 as f64 / b.1.max(1) as f64)));
    let allowed = found.referenced as f64 * settings.space_amplification;
    let mut left = found.total;
    let mut emptiest = Vec::new();
    for (no, bytes, live) in segments {
        if left as f64 <= allowed && !emptiest.is_empty() {
            break;
        }
        left -= bytes - live;
        emptiest.push(no);
    }
    let emptied: BTreeSet<SegmentNo> = emptiest.iter().copied().collect();
    let most = tree.leaves.iter().max_by_key(|leaf| referenced(leaf, &emptied))?;
    // Those segments that this leaf has nothing in do not matter to it, and what is written anew at once is bounded.
    let most_rewritten = around.free_bytes.map_or(MOST_REWRITTEN, |free| MOST_REWRITTEN.min(free / 2));
    let (mut emptied, mut rewritten) = (BTreeSet::new(), 0);
    for no in emptiest {
        let bytes = referenced(most, &BTreeSet::from([no]));
        rewritten += bytes;
        if rewritten > most_rewritten && !emptied.is_empty() {
            break;
        }
        if bytes > 0 {
            emptied.insert(no);
        }
    }
    let job = Job::Compact { leaf: most.no, kvsets: numbers(&most.kvsets), emptied };
    Some(Picked { job, pressure }).filter(|_| rewritten > 0)
}

/// Bytes of a leaf in segments that count, which are obsolete though nobody has merged them with what took their place: as many as `overwritten` of what is
/// newer than its oldest kvset.
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

/// A job for what nothing else is due for, though it would free space: deletes that lie above what they hide, and versions that have expired for long,
/// as `has_expired` says of the first of a kvset.
pub(crate) fn pick_cleaning<K: AsRef<KvsetRecord> + Clone>(
    tree: &Tree<K>,
    settings: &PickSettings,
    has_expired: impl Fn(u32) -> bool,
) -> Option<Job> {
    let deletes = |kvset: &K| {
        let info = &kvset.as_ref().info;
        info.range_tombstones > 0 || (info.deletes > 0 && info.deletes * DELETES >= info.entries)
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

/// Bytes of `segments` that the kvsets of a leaf reference.
fn referenced<K: AsRef<KvsetRecord>>(leaf: &Leaf<K>, segments: &BTreeSet<SegmentNo>) -> u64 {
    let references = leaf.kvsets.iter().flat_map(|kvset| &kvset.as_ref().info.references);
    let of_these = references.filter(|references| segments.contains(&references.segment));
    of_these.map(|references| references.stored_bytes).sum()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::edit::{Change, Edit, Place, Position, SegmentRecord};
    use super::super::shape::TreeRecord;
    use super::*;
    use crate::keyfile::{KeyFileInfo, SegmentReferences};

    const SETTINGS: PickSettings = PickSettings {
        root_kvsets: 4,
        root_bytes: 10_000,
        spill_bytes: 2500,
        leaf_kvsets: 4,
        leaf_bytes: 10_000,
        space_amplification: 1.3,
    };

    fn kvset(no: KvsetNo, key_bytes: u64, references: &[(SegmentNo, u64)]) -> KvsetRecord {
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

    fn tree(root: &[KvsetRecord], leaves: &[&[KvsetRecord]], segments: &[(SegmentNo, u64)]) -> TreeRecord {
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

    fn pick(tree: &TreeRecord, settings: &PickSettings, around: &Surroundings) -> Option<Picked> {
        super::pick(tree, settings, around).0
    }

    fn job(tree: &TreeRecord) -> Option<Job> {
        pick(tree, &SETTINGS, &Surroundings::default()).map(|picked| picked.job)
    }

    fn compact(leaf: LeafNo, kvsets: &[KvsetNo], emptied: &[SegmentNo]) -> Option<Job> {
        Some(Job::Compact { leaf, kvsets: kvsets.to_vec(), emptied: emptied.iter().copied().collect() })
    }

    #[test]
    fn a_quiet_tree_needs_nothing() {
        assert_eq!(job(&TreeRecord::default()), None);
        let leaf = [kvset(10, 100, &[(50, 900)])];
        assert_eq!(job(&tree(&[kvset(3, 100, &[]), kvset(2, 100, &[])], &[&leaf], &[(50, 1000)])), None);
    }

    #[test]
    fn a_full_root_is_spilled_as_far_as_memory_goes() {
        let root: Vec<_> = (1..=4).rev().map(|no| kvset(no, 100, &[(90 + no, 1000)])).collect();
        assert_eq!(job(&tree(&root, &[], &[])), Some(Job::Spill { kvsets: vec![2, 1] }));
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
    fn a_leaf_that_is_too_large_is_compacted_whole() {
        let leaf = [kvset(4, 100, &[]), kvset(1, 5000, &[(50, 12_000)])];
        assert_eq!(job(&tree(&[], &[&[], &leaf], &[(50, 12_000)])), compact(1, &[4, 1], &[]));
    }

    #[test]
    fn the_emptiest_segments_are_emptied_where_most_of_them_is() {
        let segments = [(50, 1000), (51, 1000), (52, 1000)];
        let leaves = [[kvset(1, 10, &[(50, 100), (52, 400)])], [kvset(2, 10, &[(50, 200), (51, 900)])]];
        let tree = tree(&[], &[&leaves[0], &leaves[1]], &segments);
        // 3000 bytes for 1600: without 50 there are 2300, and 2080 are allowed, so 52 goes, too.
        assert_eq!(job(&tree), compact(0, &[1], &[50, 52]));
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
    fn what_merges_showed_to_be_overwritten_counts_as_garbage() {
        let leaf = [kvset(2, 10, &[(51, 600)]), kvset(1, 10, &[(50, 1000)])];
        let tree = tree(&[], &[&leaf], &[(50, 1000), (51, 600)]);
        let mut around = Surroundings::default();
        assert_eq!(pick(&tree, &SETTINGS, &around), None);
        // 1600 bytes for 1000: the leaf's keys are merged, and then it is seen what is garbage.
        around.overwritten = 1.0;
        let picked = pick(&tree, &SETTINGS, &around).unwrap();
        assert_eq!(Some(picked.job), compact(0, &[2, 1], &[]));
        assert!(picked.pressure > 3.0, "{}", picked.pressure);
        assert_eq!(super::pick(&tree, &SETTINGS, &around).1.excess, 300);
        // What is promoted repeats what is there, and is meant to.
        let promoted = KvsetRecord { kind: KvsetKind::Promoted, ..leaf[0].clone() };
        let leaf = Leaf { no: 0, start: Bytes::new(), kvsets: vec![promoted, leaf[1].clone()] };
        assert_eq!(obsolete_bytes(&leaf, 1.0, &|_| true), 0);
    }

    #[test]
    fn the_root_counts_where_there_is_little_room() {
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
    fn a_log_in_the_way_does_not_starve_leaves() {
        let leaf: Vec<_> = (10..26).rev().map(|no| kvset(no, 100, &[])).collect();
        let tree = tree(&[kvset(30, 10, &[])], &[&leaf], &[]);
        let around = Surroundings { log_pressure: 1e9, ..Surroundings::default() };
        let picked = pick(&tree, &SETTINGS, &around).map(|picked| picked.job);
        assert!(matches!(picked, Some(Job::Compact { .. })), "{picked:?}");
    }

    #[test]
    fn what_deletes_hide_and_what_has_expired_is_cleaned() {
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

    #[test]
    fn defaults_are_as_documented() {
        let settings = PickSettings::default();
        assert_eq!((settings.root_kvsets, settings.leaf_kvsets), (4, 4));
        assert_eq!((settings.root_bytes, settings.spill_bytes), (1 << 30, 256 << 20));
        assert_eq!((settings.leaf_bytes, settings.space_amplification), (512 << 20, 1.3));
    }
}
