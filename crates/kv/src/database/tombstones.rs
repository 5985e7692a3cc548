//! What is obsolete without anybody noticing: deletes above what they hide, versions that have expired, and what a
//! snapshot kept when it was merged.
//!
//! Jobs are due by numbers and bytes. A store that nobody writes to any more never comes to these, so that what was
//! deleted last would take up its space for ever. When nothing else is to do, such kvsets are merged with those below
//! them; not more often than that takes a tenth of the time, for each store. And a memtable with deletes is written
//! out once nobody has written to it for a while.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::core::{Core, Writing};
use super::pick::ManualCompaction;
use super::store::StoreState;
use crate::tree::garbage::pick_cleaning;
use crate::tree::pick::Job;
use crate::tree::{JobOutput, Kvset, KvsetKind, KvsetNo, LeafNo, Overwritten, TreeState};
use crate::{ErrorKind, Result};

/// Least time between two tombstone compactions of a store.
const MIN_PAUSE: Duration = Duration::from_secs(1);

/// Delay after a tombstone compaction that could not be done.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// The pause after a tombstone compaction is this many times its duration.
const PAUSE_FACTOR: u32 = 10;

/// A leaf is compacted when its versions have been expired for at least this long.
const MIN_EXPIRED_S: u64 = 10;
/// The same as a fraction (1/n) of the store's time to live.
const EXPIRED_LIFETIME_DIVISOR: u64 = 4;

/// Assumed time to live of a store where only writes name one.
const ASSUMED_LIFETIME_S: u64 = 3600;

/// A memtable with deletes is flushed after this time without writes.
const IDLE_FLUSH_DELAY: Duration = Duration::from_secs(10);

/// Weight of the newest merge in the moving average of overwritten versions.
const OVERWRITTEN_SMOOTHING: f64 = 0.5;

/// State of the tombstone and TTL compactions of a store.
#[derive(Debug, Default)]
pub(crate) struct Cleaning {
    /// Nanoseconds on the environment's clock before which nothing is cleaned.
    not_before_ns: AtomicU64,
    /// The share of newer versions of a leaf that took the place of older ones, once it is known; see
    /// [`Surroundings`](crate::tree::pick::Surroundings).
    overwritten: Mutex<Option<f64>>,
    /// Delay of writes for garbage, in microseconds.
    slowed_us: AtomicU32,
    /// Kvsets that were written while a snapshot was held, as far as it is known.
    keeping_old: Mutex<BTreeSet<KvsetNo>>,
    /// The memtable with deletes that was seen last, the bytes that it had, and since when.
    seen: Mutex<Option<(u64, u64, Duration)>>,
}

/// Whether something is to be cleaned.
enum Due {
    Now(Job),
    In(Duration),
    Never,
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

    fn note_share(&self, share: f64) {
        let mut overwritten = self.overwritten.lock();
        let known = overwritten.unwrap_or(share);
        *overwritten = Some(known + (share - known) * OVERWRITTEN_SMOOTHING);
    }

    /// To be called when kvsets were written while snapshots were held.
    pub(crate) fn note_kept(&self, tree: &TreeState, made: impl Iterator<Item = KvsetNo>) {
        let mut keeping_old = self.keeping_old.lock();
        let there: BTreeSet<KvsetNo> = tree.kvsets().map(|kvset| kvset.no()).collect();
        keeping_old.retain(|no| there.contains(no));
        keeping_old.extend(made);
    }
}

impl Core {
    /// Begins a manual compaction of the store; its memtable is flushed.
    pub(crate) fn thorough<'a>(&self, writing: &Writing, store: &'a Arc<StoreState>) -> ManualCompaction<'a> {
        let commit = self.commit.lock();
        self.close_tables(writing, [store]);
        ManualCompaction {
            store,
            now_s: self.environment.wall_time_s(),
            end_table: self.next_table.load(Ordering::Relaxed),
            last: commit.sequence,
            done: Mutex::default(),
            left_out: Mutex::default(),
        }
    }

    /// Cleans something of a store for which nothing else is to do; when there will be something to clean, if there is
    /// not now.
    pub(crate) async fn clean_next(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
    ) -> Result<Option<Duration>> {
        let tree = Arc::new(store.view.read().tree.without_mirrors());
        match self.cleaning(store, &tree) {
            Due::Never => Ok(Some(self.close_idle_table(writing, store))),
            Due::In(later) => Ok(Some(later.min(self.close_idle_table(writing, store)))),
            Due::Now(job) => {
                let began = self.environment.now();
                let context = self.job_context(store)?;
                let done = self.run_job(writing, store, (context, tree), job, false).await;
                self.cleaned(store, self.environment.now().saturating_sub(began));
                match done {
                    Ok(true) => Ok(None),
                    Err(error) if error.kind() != ErrorKind::NoSpace => Err(error),
                    _ => Ok(Some(RETRY_DELAY)),
                }
            }
        }
    }

    /// Returns the tombstone compaction that is due in a store without other jobs.
    fn cleaning(&self, store: &StoreState, tree: &TreeState) -> Due {
        let now_s = self.environment.wall_time_s();
        let life_s = store.settings().time_to_live_s.map_or(ASSUMED_LIFETIME_S, u64::from);
        let late_s = (life_s / EXPIRED_LIFETIME_DIVISOR).max(MIN_EXPIRED_S);
        let has_expired = |expiry: u32| u64::from(expiry) + late_s <= now_s;
        let Some(job) = pick_cleaning(tree, &self.pick_settings(store), has_expired) else {
            let first = tree.kvsets().filter_map(|kvset| kvset.record().info.first_expiry_s).min();
            return first.map_or(Due::Never, |first| {
                Due::In(Duration::from_secs((u64::from(first) + late_s).saturating_sub(now_s)).max(MIN_PAUSE))
            });
        };
        let not_before = Duration::from_nanos(store.cleaning.not_before_ns.load(Ordering::Relaxed));
        match not_before.saturating_sub(self.environment.now()) {
            Duration::ZERO => Due::Now(job),
            wait => Due::In(wait),
        }
    }

    /// Has a memtable with deletes written out that nobody has written to for a while; when there may be one, if
    /// there is none.
    fn close_idle_table(&self, writing: &Writing, store: &Arc<StoreState>) -> Duration {
        let table = store.view.read().active.clone();
        let mut seen = store.cleaning.seen.lock();
        if !table.has_deletes() {
            *seen = None;
            return Duration::MAX;
        }
        let now = self.environment.now();
        let (no, bytes) = (table.no, table.bytes());
        let since = match *seen {
            Some((seen_no, seen_bytes, since)) if (seen_no, seen_bytes) == (no, bytes) => since,
            _ => now,
        };
        *seen = Some((no, bytes, since));
        let left = IDLE_FLUSH_DELAY.saturating_sub(now.saturating_sub(since));
        if left.is_zero() {
            let _commit = self.commit.lock();
            self.close_tables(writing, [store]);
            return Duration::MAX;
        }
        left
    }

    /// To be called when something was cleaned, which took so long.
    fn cleaned(&self, store: &StoreState, took: Duration) {
        let not_before = self.environment.now() + (took * PAUSE_FACTOR).max(MIN_PAUSE);
        store.cleaning.not_before_ns.store(not_before.as_nanos() as u64, Ordering::Relaxed);
    }
}
