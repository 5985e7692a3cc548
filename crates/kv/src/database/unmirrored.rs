//! Mirrors of what is read on a slow class, where the fastest has room that nobody wants.
//!
//! Values lose their mirrors when the room is wanted, and do not get them back when it is free again. So what reads take from slow classes is counted, in
//! bytes. When it is a sixteenth of what a leaf has there, and there is room, the leaf's keys are written anew with copies of its values that have no mirror:
//! these are read together, as neighbours, which a device does faster than one by one. Then the next leaf has to wait for as many reads; and a leaf is not
//! taken again before its kvsets are others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::core::Core;
use super::store::StoreState;
use crate::tree::pick::Job;
use crate::tree::{DenseMirrors, KvsetNo, LeafNo, TreeState};

/// One in so many bytes that a leaf has on slow classes has to be read there.
const READ_PART: u64 = 16;

/// There has to be room for one in so many of them.
const ROOM_PART: u64 = 4;

/// After so many bytes it is looked whether there is something to do.
const LOOK_AFTER: u64 = 1 << 20;

/// What was read where leaves have it, and leaves that need not be looked at.
#[derive(Debug, Default)]
pub(crate) struct Unmirrored {
    read_bytes: AtomicU64,
    done: Mutex<BTreeMap<LeafNo, Vec<KvsetNo>>>,
}

/// The kvsets of a leaf.
fn kvsets(tree: &TreeState, leaf: LeafNo) -> Vec<KvsetNo> {
    tree.leaf_by_no(leaf).map(|leaf| leaf.kvsets.iter().map(|kvset| kvset.no()).collect()).unwrap_or_default()
}

impl Unmirrored {
    /// So many bytes were read where a leaf has them; whether it is time to look.
    pub(crate) fn note_read(&self, bytes: u32) -> bool {
        let before = self.read_bytes.fetch_add(bytes.into(), Ordering::Relaxed);
        before / LOOK_AFTER != (before + u64::from(bytes)) / LOOK_AFTER
    }

    /// The leaf has what there was room for.
    pub(crate) fn note_done(&self, tree: &TreeState, leaf: LeafNo) {
        let mut done = self.done.lock();
        done.retain(|leaf, _| tree.leaf_by_no(*leaf).is_some());
        done.insert(leaf, kvsets(tree, leaf));
    }

    fn is_done(&self, tree: &TreeState, leaf: LeafNo) -> bool {
        self.done.lock().get(&leaf).is_some_and(|done| *done == kvsets(tree, leaf))
    }
}

impl Core {
    /// Has a compaction mirror what leaves have on slow classes.
    pub(crate) fn of_slow_classes(&self, tree: &TreeState, mirrors: DenseMirrors) -> DenseMirrors {
        let slow = tree.segments.values().filter(|segment| segment.class.as_ref() != Some(&mirrors.class));
        DenseMirrors { from: slow.map(|segment| segment.no).collect(), ..mirrors }
    }

    /// The job that brings mirrors of what is read to the fastest class, if there is room and it is worth it.
    pub(crate) fn unmirrored(&self, store: &StoreState, tree: &TreeState) -> Option<Job> {
        let read_bytes = store.unmirrored.read_bytes.load(Ordering::Relaxed);
        // Who promotes has said how much is to be copied.
        let promotes = store.settings().promoted_bytes_per_second > 0;
        if read_bytes == 0 || promotes || !self.mirrors_what_it_spills(store) {
            return None;
        }
        let mirrors = self.of_slow_classes(tree, self.more_mirrors()?);
        let slow_bytes = |leaf: LeafNo| -> u64 {
            let segments = tree.values_by_segment(leaf).into_iter();
            segments.filter(|(segment, _)| mirrors.from.contains(segment)).map(|(_, bytes)| bytes).sum()
        };
        let is_due = |leaf: &LeafNo| {
            let bytes = slow_bytes(*leaf);
            bytes > 0
                && read_bytes >= bytes / READ_PART
                && mirrors.room_bytes >= bytes / ROOM_PART
                && !store.unmirrored.is_done(tree, *leaf)
        };
        // Those that have promoted kvsets have copies of what is read often.
        let leaves = tree.leaves.iter().filter(|leaf| leaf.kvsets.iter().all(|kvset| !kvset.is_copy()));
        let leaf = leaves.map(|leaf| leaf.no).find(is_due)?;
        store.unmirrored.read_bytes.store(0, Ordering::Relaxed);
        // Whatever comes of it: what finds no room would find none again.
        store.unmirrored.note_done(tree, leaf);
        Some(Job::Mirror { leaf, kvsets: kvsets(tree, leaf) })
    }
}
