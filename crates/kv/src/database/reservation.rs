//! Room that is kept for deletes.
//!
//! Where no chunk of a volume is free a database can be neither opened for writing nor compacted, and what could be
//! deleted would stay for ever. So as long as less is free than that takes, what puts something in is refused, and
//! deletes are not. Others may fill the volume all the same.
//!
//! Whether there is less is looked at when objects are made, which is what takes space; writers look closer then, once
//! for each time.
//!
//! Who finds no chunk at all, a delete too, waits for what jobs give back: for the log's next segment, and for the
//! table whose turn it is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::core::{Core, Writing};
use super::jobs::Turn;
use super::store::StoreState;
use super::write_stall::{Cause, has_puts};
use crate::log::frame::{Payload, StoreNo};
use crate::pace::Pace;
use crate::tree::chunk_coalescing::{Together, pick_together};
use crate::tree::pick::{Job, key_bytes};
use crate::tree::{JobContext, KvsetNo, Leaf, LeafNo, TreeState};
use crate::{Error, ErrorKind, Result};

/// Reserved log segments: one that is being filled, and one that is ready, at an opening.
const RESERVED_LOG_SEGMENTS: u64 = 2;

/// Reserved chunks beside those and a value segment: manifests, key files of memtables and of the root.
const RESERVED_CHUNKS: u64 = 8;

/// A close merges kvsets while fewer chunks are free,
const MIN_CHUNKS_AT_CLOSE: u64 = RESERVED_CHUNKS;
/// at most this often.
const MAX_MERGES_AT_CLOSE: usize = 16;

/// The reserve is at most this fraction (1/n) of the volume, but for the chunks that a database needs in any case.
const MAX_RESERVE_DIVISOR: u64 = 4;
/// Chunks that a database needs in any case.
const MIN_DATABASE_CHUNKS: u64 = 16;

/// Least reserved chunks, even in the smallest volumes: what an opening that deletes one key takes, a manifest, a log
/// segment and a key file. At most a quarter, so that two or three chunks remain usable.
const MIN_RESERVED_CHUNKS: u64 = 3;

/// The fastest class has space for at least this many memtables, unless they are of the least size.
const MIN_MEMTABLES_PER_CLASS: u64 = 16;
/// Least size of a memtable that is bounded by its class.
const MIN_MEMTABLE_BYTES: u64 = 1 << 20;

/// Longest wait of a write for space while jobs run, which free more than they take.
const MAX_SPACE_WAIT: Duration = Duration::from_secs(10);
/// Wait of a write for space in any case.
const SPACE_WAIT: Duration = Duration::from_secs(1);
/// Interval at which a waiting write checks for space.
const SPACE_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Interval at which waiting writes make deletions of objects durable, which frees their space.
const DELETION_SYNC_INTERVAL: Duration = Duration::from_millis(200);

/// Waiting for what others give back.
impl Core {
    /// Returns whether it is time to make deletions durable.
    fn is_to_sync(&self) -> bool {
        let now = self.environment.now();
        let mut synced = self.background.synced_for_room.lock();
        let is_due = synced.is_none_or(|synced| now.saturating_sub(synced) >= DELETION_SYNC_INTERVAL);
        if is_due {
            *synced = Some(now);
        }
        is_due
    }

    /// Waits for free space. Returns true if the caller, which waits since `began`, should check again, or false if
    /// waiting longer is useless. The caller holds the turn of the store `mine`.
    ///
    /// # Errors
    /// `Device`, if deletions cannot be made durable.
    pub(crate) async fn room_may_come(&self, began: Duration, mine: Option<StoreNo>) -> Result<bool> {
        if self.is_to_sync() {
            let synced = self.objects.volume().sync().await;
            synced.map_err(|error| Error::volume("cannot make deletions durable", &error))?;
        }
        let waited = self.environment.now().saturating_sub(began);
        let works = |store: &Arc<StoreState>| Some(store.no) != mine && store.has_job.load(Ordering::Acquire);
        let is_worked = self.stores.read().iter().any(works);
        if waited >= MAX_SPACE_WAIT || (waited >= SPACE_WAIT && !is_worked) || self.background.is_stopping() {
            return Ok(false);
        }
        self.background.work.notify();
        self.environment.sleep(SPACE_POLL_INTERVAL).await;
        Ok(true)
    }

    /// Waits until the log takes a frame of `len` bytes, or somebody else was faster.
    ///
    /// # Errors
    /// As [`Log::room`](crate::log::writer::Log::room).
    pub(crate) async fn wait_for_log(&self, writing: &Writing, len: usize) -> Result<()> {
        let began = self.environment.now();
        loop {
            match writing.log.room(len).await {
                Err(error) if error.kind() == ErrorKind::NoSpace => {
                    if !self.room_may_come(began, None).await? {
                        return Err(error);
                    }
                }
                other => return other,
            }
        }
    }
}

impl Core {
    /// To be called when trees have changed: what compacting their largest leaf takes is kept, too. A part of it is not
    /// even for jobs' values.
    pub(crate) fn note_reserve(&self) {
        let volume = self.objects.volume();
        let stores = self.stores.read().clone();
        let largest = stores.iter().map(|store| self.needed_by(store)).max().unwrap_or_default();
        self.largest_need.store(largest, Ordering::Relaxed);
        let settings = self.settings();
        let log_segment = super::open::log_segment_bytes(volume, &settings);
        let bytes = RESERVED_LOG_SEGMENTS * log_segment + RESERVED_CHUNKS * volume.chunk_bytes() + largest;
        let rooms = super::limit::room_by_class(volume, &settings);
        let all: u64 = rooms.iter().sum();
        let fewest =
            MIN_RESERVED_CHUNKS.min(all / volume.chunk_bytes() / MAX_RESERVE_DIVISOR) * volume.chunk_bytes();
        let most =
            fewest.max(all.saturating_sub(MIN_DATABASE_CHUNKS * volume.chunk_bytes()) / MAX_RESERVE_DIVISOR);
        // Its segments are small ones by then.
        let for_log = RESERVED_CHUNKS / 2 * volume.chunk_bytes();
        self.objects.keep_free(bytes.min(most), for_log.min(most), tables_of(&stores));
        let fastest = rooms.first().copied().unwrap_or(u64::MAX);
        let of_class = (fastest / MIN_MEMTABLES_PER_CLASS).max(MIN_MEMTABLE_BYTES);
        self.table_bytes.store(settings.table_bytes().min(of_class), Ordering::Relaxed);
    }

    /// The same, when one tree has changed: less is only looked for when somebody wants it.
    pub(crate) fn note_reserve_of(&self, store: &StoreState) {
        if self.needed_by(store) > self.largest_need.load(Ordering::Relaxed) {
            self.note_reserve();
        }
    }

    /// Bytes that the compaction of a store's largest leaf takes, and of a segment.
    fn needed_by(&self, store: &StoreState) -> u64 {
        let placement = self.classes.placement(&store.policy()).ok();
        let tree = store.view.read().tree.clone();
        let keys_of = |leaf: &Leaf<_>| leaf.kvsets.iter().map(key_bytes).sum::<u64>();
        let largest = tree.leaves.iter().map(keys_of).max().unwrap_or_default();
        self.shares(store, placement.as_ref()).segment_bytes + largest
    }

    /// Waits until what `payload` puts in leaves enough room, if it puts anything in.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) async fn admit_puts(&self, payload: &Payload) -> Result<()> {
        // A larger batch needs a log segment of its own, whatever was free before.
        let least = RESERVED_CHUNKS / 2 * self.objects.volume().chunk_bytes();
        let large = Some(payload.frame_len() as u64).filter(|bytes| *bytes > least).unwrap_or_default();
        let is_too_large = || {
            let (free, kept) = self.objects.look_at_room();
            free < kept + large
        };
        if (self.objects.is_short() || (large > 0 && is_too_large())) && has_puts(payload) {
            return self.wait_for_reserve(large, None).await;
        }
        Ok(())
    }

    /// Waits until `wanted` bytes more are free than are kept. The turn of the store `mine` is in the caller's hand, so
    /// that nobody works there.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) async fn wait_for_reserve(&self, wanted: u64, mine: Option<StoreNo>) -> Result<()> {
        let began = self.environment.now();
        self.note_reserve();
        loop {
            let (free, kept) = self.objects.look_at_room();
            let kept_and_wanted = kept + wanted;
            if free >= kept_and_wanted || free + self.mirrored_bytes() >= kept_and_wanted {
                self.objects.has_looked();
                let waited = self.environment.now().saturating_sub(began);
                if waited > Duration::ZERO {
                    self.counters.stalled(Cause::Space, waited);
                }
                return Ok(());
            }
            if !self.room_may_come(began, mine).await? {
                return Err(self.nearly_full(free, kept, wanted));
            }
        }
    }

    fn nearly_full(&self, free: u64, kept: u64, wanted: u64) -> Error {
        let mebibytes = |bytes: u64| bytes.div_ceil(1 << 20);
        let wants =
            if wanted == 0 { String::new() } else { format!(" this takes {} MiB,", mebibytes(wanted)) };
        let classes = self.objects.volume().classes();
        let refusing = classes.iter().filter(|class| class.is_draining || class.is_failed);
        let refusing = refusing
            .map(|class| {
                let why = if class.is_failed { "has failed" } else { "is being drained" };
                format!("; class {} {why}", class.name)
            })
            .collect::<String>();
        let limit = self.settings().fast_class_bytes.filter(|_| classes.len() > 1);
        let limit = limit.map_or(String::new(), |limit| {
            format!(
                ", of the fastest class no more than fast_class_bytes ({} MiB) may be taken",
                mebibytes(limit)
            )
        });
        Error::new(
            ErrorKind::NoSpace,
            format!(
                "the volume is nearly full: {} MiB were free{limit},{wants} and {} MiB are kept for deletes and what they take: \
                 delete something, free space or enlarge a class{refusing}",
                free >> 20,
                mebibytes(kept),
            ),
        )
    }
}

/// Chunks that are filled: where space is short, those that kvsets take and do not use are the nearest.
impl Core {
    /// Merges neighbours of a store's tree that give chunks back; whether it did. To be called by whoever has the turn
    /// to do the store's jobs.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupted`, `Device`.
    pub(crate) async fn bring_together(&self, writing: &Writing, store: &Arc<StoreState>) -> Result<bool> {
        let chunk_bytes = self.objects.volume().chunk_bytes();
        let tree = store.view.read().tree.clone();
        let taken = store.taken.lock().kvsets.clone();
        let (free, _) = self.objects.room();
        let picked = pick_together(&tree, chunk_bytes, free / chunk_bytes, |no| taken.contains(&no));
        let Some(picked) = picked else { return Ok(false) };
        let mut context = self.job_context(store)?;
        context.takes_last_room = true;
        match picked {
            Together::Root(kvsets) => self.merge_those(writing, store, (context, tree), &kvsets).await,
            Together::Leaf(leaf, kvsets) => {
                self.merge_of_leaf(writing, store, (context, tree), leaf, kvsets).await
            }
            Together::Down(leaf, kvsets) => {
                // Values stay where they are: what is wanted is the space of keys.
                context.placement.moves_values = false;
                context.pace = Pace::unbounded();
                if !self.run_job(writing, store, (context, tree), Job::Spill { kvsets }, false).await? {
                    return Ok(false);
                }
                let mut context = self.job_context(store)?;
                context.takes_last_room = true;
                let tree = store.view.read().tree.clone();
                let Some(found) = tree.leaf_by_no(leaf) else { return Ok(true) };
                let kvsets: Vec<_> = found.kvsets.iter().map(|kvset| kvset.no()).collect();
                if kvsets.is_empty() {
                    return Ok(true);
                }
                self.merge_of_leaf(writing, store, (context, tree), leaf, kvsets).await
            }
        }
    }

    async fn merge_of_leaf(
        &self,
        writing: &Writing,
        store: &Arc<StoreState>,
        (mut context, whole): (JobContext, Arc<TreeState>),
        leaf: LeafNo,
        kvsets: Vec<KvsetNo>,
    ) -> Result<bool> {
        context.pace = Pace::unbounded();
        let tree = Arc::new(whole.without_mirrors());
        drop(whole);
        let job = Job::Compact { leaf, kvsets, emptied: BTreeSet::new() };
        self.run_job(writing, store, (context, tree), job, false).await
    }

    /// The same if nobody has the turn, space is short, and mirrors are not what takes it; a failure is for the next
    /// job to tell.
    pub(crate) async fn bring_together_if_due(&self, writing: &Writing, store: &Arc<StoreState>) -> bool {
        if !self.is_to_bring_together() {
            return false;
        }
        let Some(_turn) = Turn::take(self, store) else { return false };
        self.bring_together(writing, store).await.is_ok_and(|did| did)
    }

    fn is_to_bring_together(&self) -> bool {
        let (free, kept) = self.objects.room();
        let is_due = free < kept || self.objects.have_hardly_room();
        is_due && free + self.mirrored_bytes() <= kept
    }

    /// The same before a memtable is flushed, whose key file takes one of the last chunks: of its store, or
    /// else of any. Whoever has the turn has some time to give it back.
    pub(crate) async fn make_room_for_table(&self, writing: &Writing, store: &Arc<StoreState>) {
        let began = self.environment.now();
        while self.objects.have_hardly_room() && self.is_to_bring_together() {
            if let Some(turn) = Turn::take(self, store) {
                let did = self.bring_together(writing, store).await.is_ok_and(|did| did);
                drop(turn);
                if !did {
                    self.bring_others_together(writing, store).await;
                }
                // Merged kvsets are deleted after their last reader.
                let _ = self.delete_retired().await;
                return;
            }
            if self.environment.now().saturating_sub(began) >= SPACE_WAIT {
                return;
            }
            self.environment.sleep(SPACE_POLL_INTERVAL).await;
        }
    }

    /// The same for the first of the other stores that gives something back, and in which nobody works.
    async fn bring_others_together(&self, writing: &Writing, mine: &Arc<StoreState>) {
        let stores = self.stores.read().clone();
        let others = stores.iter().filter(|store| !Arc::ptr_eq(store, mine) && store.check_there().is_ok());
        for store in others {
            let Some(_turn) = Turn::take(self, store) else { continue };
            if self.bring_together(writing, store).await.is_ok_and(|did| did) {
                return;
            }
        }
    }

    /// Before anything else is done with a database that was opened: what was replayed is flushed where space is
    /// short, so that the log it came from goes and that of the next opening finds room, however this one ends.
    pub(crate) async fn make_room_at_opening(&self) {
        let Some(writing) = &self.writing else { return };
        let (free, kept) = self.objects.room();
        if free < kept {
            // A memtable that finds no space stays, and is flushed later.
            let _ = self.flush_all(writing).await;
        }
    }

    /// At the close of a database: makes space for the next opening and its deletes, if there is hardly any.
    pub(crate) async fn make_room_at_last(&self, writing: &Writing) {
        let least = MIN_CHUNKS_AT_CLOSE * self.objects.volume().chunk_bytes();
        let stores = self.stores.read().clone();
        let mut done = 0;
        for store in stores.iter().filter(|store| store.check_there().is_ok()) {
            let is_short = || {
                let (free, kept) = self.objects.room();
                free < least.min(kept)
            };
            while done < MAX_MERGES_AT_CLOSE && is_short() {
                done += 1;
                if !self.bring_together(writing, store).await.is_ok_and(|did| did) {
                    break;
                }
            }
        }
    }
}

/// Memtables that have something in them.
fn tables_of(stores: &[Arc<StoreState>]) -> u64 {
    let of_store = |store: &Arc<StoreState>| {
        let view = store.view.read();
        view.waiting.len() as u64 + u64::from(!view.active.is_empty())
    };
    stores.iter().map(of_store).sum()
}
