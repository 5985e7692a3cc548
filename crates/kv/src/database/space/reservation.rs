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

use crate::tuning::space::RESERVATION;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::database::shared::Writing;
use crate::database::space::account::SpaceManager;
use crate::database::space::size_limits::{log_segment_bytes, room_by_class};
use crate::database::state::store_state::StoreState;
use crate::database::stats::counters::Cause;
use crate::log::frame::{Payload, StoreNo};
use crate::tree::Leaf;
use crate::tree::job::key_bytes;
use crate::{Error, ErrorKind, Result};

impl SpaceManager {
    /// Returns whether it is time to make deletions durable.
    fn is_to_sync(&self) -> bool {
        let now = self.shared.environment.now();
        let mut synced = self.synced_for_room.lock();
        let is_due =
            synced.is_none_or(|synced| now.saturating_sub(synced) >= RESERVATION.deletion_sync_interval);
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
            let synced = self.shared.objects.volume().sync().await;
            synced.map_err(|error| Error::volume("cannot make deletions durable", &error))?;
        }
        let waited = self.shared.environment.now().saturating_sub(began);
        let works = |store: &Arc<StoreState>| Some(store.no) != mine && store.has_job.load(Ordering::Acquire);
        let is_worked = self.shared.stores.read().iter().any(works);
        if waited >= RESERVATION.max_space_wait
            || (waited >= RESERVATION.space_wait && !is_worked)
            || self.shared.background.is_stopping()
        {
            return Ok(false);
        }
        self.shared.background.work.notify();
        self.shared.environment.sleep(RESERVATION.space_poll_interval).await;
        Ok(true)
    }

    /// Waits until the log takes a frame of `len` bytes, or somebody else was faster.
    ///
    /// # Errors
    /// As [`Log::room`](crate::log::writer::Log::room).
    pub(crate) async fn wait_for_log(&self, writing: &Writing, len: usize) -> Result<()> {
        let began = self.shared.environment.now();
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

    /// To be called when trees have changed: what compacting their largest leaf takes is kept, too. A part of it is not
    /// even for jobs' values.
    pub(crate) fn note_reserve(&self) {
        let volume = self.shared.objects.volume();
        let stores = self.shared.stores.read().clone();
        let largest = stores.iter().map(|store| self.needed_by(store)).max().unwrap_or_default();
        self.largest_need.store(largest, Ordering::Relaxed);
        let settings = self.shared.settings();
        let log_segment = log_segment_bytes(volume, &settings);
        let bytes = RESERVATION.reserved_log_segments * log_segment
            + RESERVATION.reserved_chunks * volume.chunk_bytes()
            + largest;
        let rooms = room_by_class(volume, &settings);
        let all: u64 = rooms.iter().sum();
        let fewest =
            RESERVATION.min_reserved_chunks.min(all / volume.chunk_bytes() / RESERVATION.max_reserve_divisor)
                * volume.chunk_bytes();
        let most = fewest.max(
            all.saturating_sub(RESERVATION.min_database_chunks * volume.chunk_bytes())
                / RESERVATION.max_reserve_divisor,
        );
        // Its segments are small ones by then.
        let for_log = RESERVATION.reserved_chunks / 2 * volume.chunk_bytes();
        self.shared.objects.keep_free(bytes.min(most), for_log.min(most), tables_of(&stores));
        let fastest = rooms.first().copied().unwrap_or(u64::MAX);
        let of_class = (fastest / RESERVATION.min_memtables_per_class).max(RESERVATION.min_memtable_bytes);
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
        let placement = self.shared.classes.placement(&store.policy()).ok();
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
        let least = RESERVATION.reserved_chunks / 2 * self.shared.objects.volume().chunk_bytes();
        let large = Some(payload.frame_len() as u64).filter(|bytes| *bytes > least).unwrap_or_default();
        let is_too_large = || {
            let (free, kept) = self.shared.objects.look_at_room();
            free < kept + large
        };
        if (self.shared.objects.is_short() || (large > 0 && is_too_large())) && payload.has_puts() {
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
        let began = self.shared.environment.now();
        self.note_reserve();
        loop {
            let (free, kept) = self.shared.objects.look_at_room();
            let kept_and_wanted = kept + wanted;
            if free >= kept_and_wanted || free + self.mirrored_bytes() >= kept_and_wanted {
                self.shared.objects.has_looked();
                let waited = self.shared.environment.now().saturating_sub(began);
                if waited > Duration::ZERO {
                    self.shared.counters.stalled(Cause::Space, waited);
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
        let classes = self.shared.objects.volume().classes();
        let refusing = classes.iter().filter(|class| class.is_draining || class.is_failed);
        let refusing = refusing
            .map(|class| {
                let why = if class.is_failed { "has failed" } else { "is being drained" };
                format!("; class {} {why}", class.name)
            })
            .collect::<String>();
        let limit = self.shared.settings().fast_class_bytes.filter(|_| classes.len() > 1);
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

/// Memtables that have something in them.
fn tables_of(stores: &[Arc<StoreState>]) -> u64 {
    let of_store = |store: &Arc<StoreState>| {
        let view = store.view.read();
        view.waiting.len() as u64 + u64::from(!view.active.is_empty())
    };
    stores.iter().map(of_store).sum()
}
