//! Making an object durable.
//!
//! 1. Note which classes have writes that no sync has covered, and which chunks are fresh.
//! 2. Make those classes durable; syncs of one device are shared by all who want one.
//! 3. Only then queue the mappings of the fresh chunks (those that are still the same) and the size: a mapping never
//!    leads to data that are not durable.
//! 4. Commit the journal; concurrent commits share its syncs.
//!
//! Invariant: what is noted in 1 is covered by 2, because a write is noted after it is complete and before it is
//! acknowledged.

use std::sync::atomic::Ordering;

use futures::future::join_all;

use super::Object;
use crate::chunk::Place;
use crate::crash::PlantedBug;
use crate::metadata::{Queue, Record};
use crate::page::NotedPages;
use crate::volume::MappingRuns;
use crate::{Error, ErrorKind, Result};

/// Puts the bits back if the sync does not come to its end.
struct Dirty<'a> {
    object: &'a Object,
    classes: u64,
}

impl Drop for Dirty<'_> {
    fn drop(&mut self) {
        self.object.state.dirty_classes.fetch_or(self.classes, Ordering::SeqCst);
    }
}

impl Object {
    /// Returns when everything is durable that was written, and every change of the object that was made, before the
    /// call.
    ///
    /// ```
    /// use tanada_volume::Attributes;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let object = volume.create_object("a", &Attributes::default())?;
    /// object.write_bytes(0, b"rice").await?;
    /// object.sync().await?; // durable from here on
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// If a device fails. The object is poisoned then: what is durable is not known, and no later sync says otherwise.
    pub async fn sync(&self) -> Result<()> {
        self.check_syncable()?;
        let turn = self.state.sync_turns.hold(0..=0, true).await;
        let synced = match self.note_all().await {
            Ok(noted) => self.make_durable(noted).await,
            // What was not stored is in memory still, so nothing is lost, and a later sync may succeed.
            Err(error) if matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::QuotaExceeded) => {
                return Err(error);
            }
            Err(error) => Err(error),
        };
        drop(turn);
        self.poison_if_failed(synced)
    }

    /// The same, but for pages that wait for a cleaner.
    pub(crate) async fn sync_stored(&self) -> Result<()> {
        self.check_syncable()?;
        let turn = self.state.sync_turns.hold(0..=0, true).await;
        self.check_syncable()?;
        self.state.holds.settle().await;
        let synced = self.make_durable(self.note_stored()).await;
        drop(turn);
        self.poison_if_failed(synced)
    }

    fn poison_if_failed(&self, synced: Result<()>) -> Result<()> {
        if let Err(error) = &synced
            && matches!(error.kind(), ErrorKind::Device | ErrorKind::NoSpace | ErrorKind::Cancelled)
        {
            self.state.poison(error);
        }
        synced
    }

    fn check_syncable(&self) -> Result<()> {
        self.state.check_not_poisoned()?;
        if self.state.adopted.is_some() || self.state.is_deleted.load(Ordering::SeqCst) {
            return self.core.check_writable();
        }
        self.check_writable()
    }

    pub(crate) async fn sync_alone(&self) -> Result<()> {
        let noted = self.note_all().await?;
        self.make_durable(noted).await
    }

    /// Notes the pages that are there, all of them stored.
    async fn note_all(&self) -> Result<Option<NotedPages>> {
        self.check_syncable()?;
        // What nobody waits for any more must not come to the device behind the back of a sync.
        self.state.holds.settle().await;
        // Before anything else is noted, which has to cover it.
        self.note_pages().await
    }

    /// Makes durable what was noted of pages, and whatever else there is of the object.
    pub(crate) async fn make_durable(&self, paged: Option<NotedPages>) -> Result<()> {
        let state = &self.state;
        let mut dirty = Dirty { object: self, classes: state.dirty_classes.swap(0, Ordering::SeqCst) };
        let chunks: Vec<(u64, u64)> =
            state.fresh.lock().entries.iter().map(|(chunk, no)| (*chunk, *no)).collect();
        let size = state.size();
        if self.core.bug == PlantedBug::MapBeforeData {
            let lsn = self.queue_mappings(&chunks, size);
            self.core.commit(lsn).await?;
        }
        if self.core.bug == PlantedBug::JournalPagesBeforeData
            && let Some(noted) = &paged
        {
            self.queue_mappings(&chunks, size);
            let lsn = self.queue_pages(noted);
            self.core.commit(lsn).await?;
        }
        // CRASH: nothing that was written since the last sync need survive.
        self.core.crash.reached("sync.before-devices");
        self.sync_classes(dirty.classes).await?;
        dirty.classes = 0;
        drop(dirty);
        // CRASH: the data are durable; what overwrote older bytes is there, new chunks are not mapped and are free at
        // the next opening.
        self.core.crash.reached("sync.before-mapping");
        let mut lsn = self.queue_mappings(&chunks, size);
        if let Some(noted) = &paged {
            // CRASH: pages are where they were; should the mapping of chunks become durable alone, nothing lies in the
            // new ones.
            self.core.crash.reached("sync.before-pages");
            lsn = self.queue_pages(noted);
            if self.core.bug == PlantedBug::ReusePagesEarly {
                self.reclaim_pages(&noted.pages);
            }
        }
        // CRASH: as before; the records are in memory only.
        self.core.crash.reached("sync.before-commit");
        self.core.commit(lsn).await?;
        if let Some(noted) = &paged {
            self.reclaim_pages(&noted.pages);
        }
        Ok(())
    }

    pub(super) async fn sync_classes(&self, mask: u64) -> Result<()> {
        let classes = self.core.class_list();
        let wanted = classes.ranked().iter().filter(|class| mask >> class.id & 1 == 1);
        let synced = join_all(wanted.map(|class| self.core.sync_class(class))).await;
        let result: Result<()> = synced.into_iter().collect();
        result.map_err(|error| {
            Error::new(error.kind(), format!("object {:?} could not be synced: {error}", self.name()))
        })
    }

    /// Queues the size, and the mappings of noted chunks below it that are still fresh in the same way; the last change
    /// to commit.
    fn queue_mappings(&self, noted: &[(u64, u64)], size: u64) -> u64 {
        let state = &self.state;
        let (_, lsn) = self.core.journal.change(|queue| {
            if state.is_deleted.load(Ordering::SeqCst) {
                return;
            }
            // The object may have been cut shorter since; then that record stands. The size goes first, so that a stop
            // between the records never leaves a chunk behind the object's end, where nobody would clear it before the
            // object grows.
            let mut size = size.min(state.size());
            let journaled = state.journaled_size.load(Ordering::SeqCst);
            if size > journaled {
                state.journaled_size.store(size, Ordering::SeqCst);
                let tail_is_stale = state.tail_is_stale.load(Ordering::SeqCst);
                queue.push(&Record::Size { id: state.id, size_bytes: size, tail_is_stale });
                queue.end_group();
            }
            size = size.max(journaled);
            let mut runs = MappingRuns::new(state.id);
            let table = state.table.read();
            let mut fresh = state.fresh.lock();
            for (no, number) in noted {
                // A chunk behind the end belongs to a write that is under way; it stays fresh until the object reaches
                // it.
                if fresh.entries.get(no) != Some(number) || no << self.core.chunk_shift >= size {
                    continue;
                }
                fresh.entries.remove(no);
                let Some(chunk) = table.chunk(*no) else { continue };
                let Some(place) = chunk.home.get() else { continue };
                chunk.home.set(Some(place));
                if let Some(record) = runs.add(*no, place) {
                    queue.push(&record);
                    queue.end_group();
                }
            }
            if let Some(record) = runs.end() {
                queue.push(&record);
            }
        });
        lsn
    }

    /// Lets the metadata know of a fresh chunk whose data are durable, within a change that is about to say something
    /// else of it. Whether it was fresh.
    pub(crate) fn journal_fresh(&self, chunk: u64, place: Place, queue: &mut Queue) -> bool {
        let state = &self.state;
        if state.fresh.lock().entries.remove(&chunk).is_none() {
            return false;
        }
        let start = chunk * self.core.chunk_bytes;
        if start >= state.journaled_size.load(Ordering::SeqCst) {
            // As in a sync: no chunk lies behind the end.
            let size_bytes = state.size().clamp(start, start + self.core.chunk_bytes);
            state.journaled_size.store(size_bytes, Ordering::SeqCst);
            let tail_is_stale = state.tail_is_stale.load(Ordering::SeqCst);
            queue.push(&Record::Size { id: state.id, size_bytes, tail_is_stale });
        }
        if let Some(chunk) = state.table.read().chunk(chunk) {
            chunk.home.set(Some(place));
        }
        queue.push(&Record::Mapped { id: state.id, first: chunk, count: 1, place });
        true
    }
}
