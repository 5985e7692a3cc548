//! The parts of an open database, which all its handles share, and how it ends.

use crate::tuning::space::RESERVATION;
use crate::tuning::writes::BACKGROUND;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use parking_lot::Mutex;

use crate::database::commit::committer::{Commit, Committer};
use crate::database::flush::flusher::Flusher;
use crate::database::maintenance::coalescing::bring_together;
use crate::database::maintenance::installer::TreeInstaller;
use crate::database::maintenance::relocation::Relocator;
use crate::database::maintenance::runner::JobRunner;
use crate::database::maintenance::scheduler::Scheduler;
use crate::database::memory::budget::MemoryBudget;
use crate::database::mirrors::keeper::MirrorKeeper;
use crate::database::read::Reader;
use crate::database::shared::{Shared, Writing};
use crate::database::space::account::SpaceManager;
use crate::memory::Blocks;
use crate::{Error, ErrorKind, Result};

/// A close merges kvsets while fewer chunks are free,
const MIN_CHUNKS_AT_CLOSE: u64 = RESERVATION.reserved_chunks;

/// See the module's head; [`shared`](super::shared) says how the parts stand on one another.
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) space: Arc<SpaceManager>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) reader: Reader,
    pub(crate) jobs: Arc<JobRunner>,
    pub(crate) flusher: Flusher,
    pub(crate) scheduler: Scheduler,
    pub(crate) next_store: AtomicU32,
    /// The result of the close, once it has ended.
    pub(crate) ended: futures::lock::Mutex<Option<Result<()>>>,
}

impl Core {
    /// The parts of a database with these stores, whose last sequence number is `commit`'s.
    pub(crate) fn new(
        shared: Shared,
        blocks: Arc<Blocks>,
        commit: Commit,
        next_table: AtomicU64,
        next_store: AtomicU32,
    ) -> Core {
        let shared = Arc::new(shared);
        let memory = Arc::new(MemoryBudget::new(&shared, blocks));
        let space = Arc::new(SpaceManager::new(&shared));
        let committer = Arc::new(Committer {
            shared: shared.clone(),
            memory: memory.clone(),
            space: space.clone(),
            commit: Mutex::new(commit),
            next_table,
            tables_wait: AtomicBool::new(false),
        });
        let installer = Arc::new(TreeInstaller { shared: shared.clone(), space: space.clone() });
        let mirrors = Arc::new(MirrorKeeper::new(&installer));
        let relocator =
            Relocator { shared: shared.clone(), space: space.clone(), installer: installer.clone() };
        let jobs = Arc::new(JobRunner {
            shared: shared.clone(),
            memory: memory.clone(),
            space: space.clone(),
            committer: committer.clone(),
            installer,
            mirrors: mirrors.clone(),
            relocator: Arc::new(relocator),
        });
        let flusher = Flusher {
            shared: shared.clone(),
            memory: memory.clone(),
            space: space.clone(),
            committer: committer.clone(),
            mirrors,
            jobs: jobs.clone(),
        };
        Core {
            reader: Reader { shared: shared.clone() },
            scheduler: Scheduler { shared: shared.clone(), jobs: jobs.clone() },
            shared,
            memory,
            space,
            committer,
            jobs,
            flusher,
            next_store,
            ended: futures::lock::Mutex::default(),
        }
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Some(writing) = &self.shared.writing {
            writing.log.stop();
        }
        self.shared.background.stop();
    }
}

impl Core {
    /// Writes out everything and ends the work in the background.
    ///
    /// # Errors
    /// `NoSpace`, `Device`.
    pub(crate) async fn end(&self, writing: &Writing) -> Result<()> {
        self.shared.end_background().await;
        // Jobs that came to completion early leave what they had written.
        let _ = self.space.delete_retired().await;
        let mut flushed = self.flusher.flush_all(writing).await;
        let closed = writing.log.close().await;
        writing.log.ended().await;
        if flushed.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
            // The segment that the log had ready has given its space back.
            let _ = self.space.delete_retired().await;
            if self.flusher.flush_all(writing).await.is_ok() {
                flushed = Ok(());
            }
        }
        if closed.is_ok() {
            // The next opening takes some.
            self.make_room_at_last(writing).await;
        }
        // A failed log is more severe than a full volume, which loses nothing.
        let ended = match closed.and(flushed) {
            Ok(()) => self.flusher.note_end(writing).await,
            failed => failed,
        };
        self.refuse_changes(writing).await;
        ended?;
        self.space.delete_retired().await
    }

    /// Keeps operations that other handles have in progress from changing the manifest and making objects.
    pub(crate) async fn refuse_changes(&self, writing: &Writing) {
        // A change in progress may rewrite the manifest.
        writing.manifest.refuse(Error::new(ErrorKind::Closed, "the database is closed")).await;
        self.shared.objects.refuse_new();
    }

    /// Before anything else is done with a database that was opened: what was replayed is flushed where space is
    /// short, so that the log it came from goes and that of the next opening finds room, however this one ends.
    pub(crate) async fn make_room_at_opening(&self) {
        let Some(writing) = &self.shared.writing else { return };
        let (free, kept) = self.shared.objects.room();
        if free < kept {
            // A memtable that finds no space stays, and is flushed later.
            let _ = self.flusher.flush_all(writing).await;
        }
    }

    /// At the close of a database: makes space for the next opening and its deletes, if there is hardly any.
    pub(crate) async fn make_room_at_last(&self, writing: &Writing) {
        let least = MIN_CHUNKS_AT_CLOSE * self.shared.objects.volume().chunk_bytes();
        let stores = self.shared.stores.read().clone();
        let mut done = 0;
        for store in stores.iter().filter(|store| store.check_there().is_ok()) {
            let is_short = || {
                let (free, kept) = self.shared.objects.room();
                free < least.min(kept)
            };
            while done < BACKGROUND.max_merges_at_close && is_short() {
                done += 1;
                if !bring_together(&self.jobs, writing, store).await.is_ok_and(|did| did) {
                    break;
                }
            }
        }
    }
}
