//! Jobs of a tree: what they are, what decides which is next, and how large kvsets are to that.

use std::collections::{BTreeMap, BTreeSet};

use super::edit::{KvsetKind, KvsetNo, KvsetRecord, LeafNo};
use crate::entry::SegmentNo;

/// The thresholds of jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PickSettings {
    /// Kvsets at the root that make a spill due. Default: 4; the engine passes half of `slow_root_kvsets`, 8.
    pub(crate) root_kvsets: usize,
    /// Bytes of keys and values at the root that make a spill due. Default: 1 GiB.
    pub(crate) root_bytes: u64,
    /// Most bytes of one spill, unless one kvset alone has more. Default: 256 MiB.
    pub(crate) spill_bytes: u64,
    /// A spill may be larger if it moves no more values than this, with this many bytes: one pass over the log
    /// suffices. Default: none.
    pub(crate) moved_values: u64,
    pub(crate) moved_bytes: u64,
    /// Kvsets in a leaf that make a compaction due. Default: 4.
    pub(crate) leaf_kvsets: usize,
    /// A leaf with this many bytes and half of it more is split. Default: 512 MiB.
    pub(crate) leaf_bytes: u64,
    /// Bytes of value segments over the bytes in them that are referenced. Default: 1.3.
    pub(crate) space_amplification: f64,
    /// A value segment with fewer bytes is small. Default: 0, which none is.
    pub(crate) small_segment_bytes: u64,
}

impl Default for PickSettings {
    fn default() -> PickSettings {
        PickSettings {
            root_kvsets: 4,
            root_bytes: 1 << 30,
            spill_bytes: 256 << 20,
            moved_values: 0,
            moved_bytes: 0,
            leaf_kvsets: 4,
            leaf_bytes: 512 << 20,
            space_amplification: 1.3,
            small_segment_bytes: 0,
        }
    }
}

/// What the engine knows beside the tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Surroundings {
    /// Urgency of emptying the log: the fastest class has reached its limit, or too much log would have to be replayed.
    pub(crate) log_pressure: f64,
    /// The share of a leaf's newer versions that took the place of older ones, in spills and merges so far.
    pub(crate) overwritten: f64,
    /// Bytes that are free for what jobs write; `None` for no bound.
    pub(crate) free_bytes: Option<u64>,
    /// Free space is low; also count obsolete data held by the root.
    pub(crate) is_tight: bool,
    /// Bytes that were written to log segments, of those that are read-only by now, and whether anything but the leaves
    /// of this store references them: memtables, roots, other stores.
    pub(crate) log_segments: BTreeMap<SegmentNo, LogSegmentUse>,
}

/// The use of a log segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogSegmentUse {
    /// Its allocated bytes.
    pub(crate) bytes: u64,
    /// It is needed elsewhere, so emptying it here would not free it.
    pub(crate) is_needed_elsewhere: bool,
}

/// A job to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Job {
    /// The root's oldest kvsets, newest of them first.
    Spill { kvsets: Vec<KvsetNo> },
    /// Neighbours in a leaf, newest first; values in the emptied segments are rewritten.
    Compact { leaf: LeafNo, kvsets: Vec<KvsetNo>, emptied: BTreeSet<SegmentNo> },
    /// All kvsets of a leaf, whose values get mirrors if they have none.
    Mirror { leaf: LeafNo, kvsets: Vec<KvsetNo> },
    /// Each of these leaves becomes a part of the one before it.
    Join { leaves: Vec<LeafNo> },
    /// Remove these, since all their entries are deleted.
    Drop { kvsets: Vec<(LeafNo, KvsetNo)> },
}

impl Job {
    pub(crate) const COMPACTION: &'static str = "compaction";
    /// A compaction that rewrites values.
    pub(crate) const GARBAGE: &'static str = "garbage";
    /// Kvsets of the root that wait for no spill become one.
    pub(crate) const MERGE: &'static str = "merge";

    /// Returns its name in statistics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Job::Spill { .. } => "spill",
            Job::Compact { .. } => Job::COMPACTION,
            Job::Mirror { .. } => "mirrors",
            Job::Join { .. } => "join",
            Job::Drop { .. } => "drop",
        }
    }
}

/// A job and how much it presses.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picked {
    pub(crate) job: Job,
    pub(crate) pressure: f64,
}

pub(crate) fn data_bytes<K: AsRef<KvsetRecord>>(kvset: &K) -> u64 {
    kvset.as_ref().info.data_bytes()
}

/// Bytes of a kvset that a merge of keys writes.
pub(crate) fn key_bytes<K: AsRef<KvsetRecord>>(kvset: &K) -> u64 {
    let info = &kvset.as_ref().info;
    // Pointers and sequence numbers weigh about as much as short keys.
    info.key_bytes + info.inline_bytes + 16 * info.entries
}

pub(crate) fn is_copy<K: AsRef<KvsetRecord>>(kvset: &K) -> bool {
    kvset.as_ref().kind == KvsetKind::Promoted
}

pub(crate) fn numbers<K: AsRef<KvsetRecord>>(kvsets: &[K]) -> Vec<KvsetNo> {
    kvsets.iter().map(|kvset| kvset.as_ref().no).collect()
}
