//! What a store's compactions have shown about obsolete versions, and when tombstone compactions are due.

use crate::tuning::maintenance::TOMBSTONES;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::tree::{JobOutput, Kvset, KvsetKind, KvsetNo, LeafNo, Overwritten, TreeState};

/// State of the tombstone and TTL compactions of a store.
#[derive(Debug, Default)]
pub(crate) struct Cleaning {
    /// Nanoseconds on the environment's clock before which nothing is cleaned.
    pub(crate) not_before_ns: AtomicU64,
    /// The share of newer versions of a leaf that took the place of older ones, once it is known; see
    /// [`Surroundings`](crate::tree::pick::Surroundings).
    pub(crate) overwritten: Mutex<Option<f64>>,
    /// Delay of writes for garbage, in microseconds.
    pub(crate) slowed_us: AtomicU32,
    /// Kvsets that were written while a snapshot was held, as far as it is known.
    pub(crate) keeping_old: Mutex<BTreeSet<KvsetNo>>,
    /// The memtable with deletes that was seen last, the bytes that it had, and since when.
    pub(crate) seen: Mutex<Option<(u64, u64, Duration)>>,
}

impl Cleaning {
    pub(crate) fn overwritten(&self) -> f64 {
        self.overwritten.lock().unwrap_or_default()
    }

    pub(crate) fn slowed(&self) -> Duration {
        Duration::from_micros(self.slowed_us.load(Ordering::Relaxed).into())
    }

    /// Returns whether that is another time than before.
    pub(crate) fn set_slowed(&self, time: Duration) -> bool {
        let us = time.as_micros() as u32;
        self.slowed_us.swap(us, Ordering::Relaxed) != us
    }

    pub(crate) fn keeps_old(&self, no: KvsetNo) -> bool {
        self.keeping_old.lock().contains(&no)
    }

    /// To be called with what came of a leaf's compaction: of `kvsets`, of `tree`.
    pub(crate) fn note_merge(&self, tree: &TreeState, leaf: LeafNo, kvsets: &[KvsetNo], output: &JobOutput) {
        let Some(leaf) = tree.leaf_by_no(leaf) else { return };
        let oldest = leaf.kvsets.last().map(|kvset| kvset.no());
        if oldest.is_none() || kvsets.last().copied() != oldest {
            return;
        }
        // Copies repeat what is there, and what expired or was deleted in ranges was not overwritten.
        let tells_nothing = |kvset: &Arc<Kvset>| {
            let record = kvset.record();
            record.kind == KvsetKind::Promoted
                || record.info.first_expiry_s.is_some()
                || record.info.range_tombstones > 0
        };
        if leaf.kvsets.iter().any(tells_nothing) {
            return;
        }
        let newer =
            leaf.kvsets.iter().filter(|kvset| kvsets.contains(&kvset.no()) && Some(kvset.no()) != oldest);
        let newer: u64 = newer.map(|kvset| kvset.record().info.entries).sum();
        if newer == 0 {
            return;
        }
        let gone = output.versions_merged.saturating_sub(output.versions_kept);
        self.note_share((gone as f64 / newer as f64).min(1.0));
    }

    /// To be called with what was sampled of a spill: what it puts above others is known to take their place before
    /// they are merged.
    pub(crate) fn note_spill(&self, sampled: &Overwritten) {
        if let Some(share) = sampled.share() {
            self.note_share(share);
        }
    }

    pub(crate) fn note_share(&self, share: f64) {
        let mut overwritten = self.overwritten.lock();
        let known = overwritten.unwrap_or(share);
        *overwritten = Some(known + (share - known) * TOMBSTONES.overwritten_smoothing);
    }

    /// To be called when kvsets were written while snapshots were held.
    pub(crate) fn note_kept(&self, tree: &TreeState, made: impl Iterator<Item = KvsetNo>) {
        let mut keeping_old = self.keeping_old.lock();
        let there: BTreeSet<KvsetNo> = tree.kvsets().map(|kvset| kvset.no()).collect();
        keeping_old.retain(|no| there.contains(no));
        keeping_old.extend(made);
    }
}
