//! Room that is kept for deletes.
//!
//! Where no chunk of a volume is free a database can be neither opened for writing nor compacted, and what could be deleted would stay for ever. So as long as less is
//! free than that takes, what puts something in is refused, and deletes are not. Others may fill the volume all the same.
//!
//! Whether there is less is looked at when objects are made, which is what takes room; writers look closer then, once for each time.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::core::Core;
use super::pressure::Cause;
use super::store::StoreState;
use crate::log::frame::{Operation, OperationKind, Payload};
use crate::tree::Leaf;
use crate::tree::pick::key_bytes;
use crate::{Error, ErrorKind, Result};

/// Log segments: one that is being filled and one that is ready, when the database is opened.
const LOG_SEGMENTS: u64 = 2;

/// Chunks beside those and a segment of values: manifests, key files of memory tables and of the root.
const CHUNKS: u64 = 8;

/// No more than one in so many of the volume's, but for as many chunks as a database can be in at all.
const MOST: u64 = 4;
const LEAST_CHUNKS: u64 = 16;

/// Memory tables that the fastest class has room for, at least, unless they had so little.
const TABLES_OF_A_CLASS: u64 = 16;
const LEAST_TABLE_BYTES: u64 = 1 << 20;

/// How long a write waits for room: while jobs are at work, which free more than they take, and in any case.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(5);

impl Core {
    /// To be called when trees have changed: what compacting their largest leaf takes is kept, too. A part of it is not even for jobs' values.
    pub(crate) fn note_reserve(&self) {
        let volume = self.objects.volume();
        let stores = self.stores.read().clone();
        let largest = stores.iter().map(|store| self.needed_by(store)).max().unwrap_or_default();
        self.largest_need.store(largest, Ordering::Relaxed);
        let log_segment = super::open::log_segment_bytes(volume, &self.settings);
        let bytes = LOG_SEGMENTS * log_segment + CHUNKS * volume.chunk_bytes() + largest;
        let classes = volume.classes();
        let of_class = |class: &tanada_volume::ClassInfo| class.chunks.saturating_mul(volume.chunk_bytes());
        let all: u64 = classes.iter().map(of_class).sum();
        let most = all.saturating_sub(LEAST_CHUNKS * volume.chunk_bytes()) / MOST;
        // Its segments are small ones by then.
        let for_log = CHUNKS / 2 * volume.chunk_bytes();
        self.objects.keep_free(bytes.min(most), for_log.min(most));
        let fastest = classes.iter().map(of_class).next().unwrap_or(u64::MAX);
        self.most_table_bytes.store((fastest / TABLES_OF_A_CLASS).max(LEAST_TABLE_BYTES), Ordering::Relaxed);
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
        let is_put = |operation: Option<Operation>| {
            operation.is_some_and(|operation| operation.kind == OperationKind::Put)
        };
        // What is larger than that has a log segment made for it, whatever was free when the last object was made.
        let least = CHUNKS / 2 * self.objects.volume().chunk_bytes();
        let large = Some(payload.frame_len() as u64).filter(|bytes| *bytes > least).unwrap_or_default();
        let is_too_large = || {
            let (free, kept) = self.objects.look_at_room();
            free < kept + large
        };
        if (self.objects.is_short() || (large > 0 && is_too_large())) && payload.operations().any(is_put) {
            return self.wait_for_reserve(large).await;
        }
        Ok(())
    }

    /// Waits until `wanted` bytes more are free than are kept.
    ///
    /// # Errors
    /// `NoSpace`.
    pub(crate) async fn wait_for_reserve(&self, wanted: u64) -> Result<()> {
        let began = self.environment.now();
        self.note_reserve();
        loop {
            let (free, kept) = self.objects.look_at_room();
            let waited = self.environment.now().saturating_sub(began);
            let kept_and_wanted = kept + wanted;
            if free >= kept_and_wanted || free + self.mirrored_bytes() >= kept_and_wanted {
                self.objects.has_looked();
                if waited > Duration::ZERO {
                    self.counters.stalled(Cause::Space, waited);
                }
                return Ok(());
            }
            let works = self.stores.read().iter().any(|store| store.has_job.load(Ordering::Acquire));
            if waited >= LONGEST_WAIT || (waited >= WAIT && !works) || self.background.is_stopping() {
                return Err(self.nearly_full(free, kept, wanted));
            }
            self.background.work.notify();
            self.environment.sleep(LOOK_EVERY).await;
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
        Error::new(
            ErrorKind::NoSpace,
            format!(
                "the volume is nearly full: {} MiB were free,{wants} and {} MiB are kept for deletes and what they take: \
                 delete something, free space or enlarge a class{refusing}",
                free >> 20,
                mebibytes(kept),
            ),
        )
    }
}
