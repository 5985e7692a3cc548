//! Writing memtables out to kvsets.
//!
//! 1. Under the commit lock a full table is closed: the log's open group is closed too, so that the log can be replayed
//!    from there, and the store gets a new table.
//! 2. The log is made durable to the table's end: the kvset points to values in it.
//! 3. The table's versions that anybody can see go to a key file, long values as pointers into the log; or into a
//!    segment of their own, if most of the log is [garbage already](super::packing).
//! 4. Values that were looked up in the table go to the cache, for the table is about to go; so do those that take the
//!    place of a version there.
//! 5. One change of the manifest adds the kvset and says from where on the log is needed. Then the kvset takes the
//!    table's place.
//! 6. Log segments that are needed neither by a replay nor by a kvset are deleted.
//!
//! A store's tables are flushed oldest first, so that the root of its tree is in order; small ones of several
//! stores are flushed at once.

use crate::tuning::writes::FLUSHES;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::join_all;

use crate::database::commit::committer::Committer;
use crate::database::maintenance::coalescing::make_room_for_table;
use crate::database::maintenance::runner::JobRunner;
use crate::database::memory::budget::MemoryBudget;
use crate::database::mirrors::eviction::Trim;
use crate::database::mirrors::keeper::MirrorKeeper;
use crate::database::shared::{Shared, Writing};
use crate::database::space::account::SpaceManager;
use crate::database::state::store_state::StoreState;
use crate::manifest::{DatabaseRecord, Record};
use crate::memory::Memtable;
use crate::objects::ObjectKind;
use crate::tree::{Change, Edit, KvsetRecord, Place, Position};
use crate::{Error, ErrorKind, Result};

/// Writes memtables out.
#[derive(Debug)]
pub(crate) struct Flusher {
    pub(crate) shared: Arc<Shared>,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) space: Arc<SpaceManager>,
    pub(crate) committer: Arc<Committer>,
    pub(crate) mirrors: Arc<MirrorKeeper>,
    pub(crate) jobs: Arc<JobRunner>,
}

impl Flusher {
    /// Writes out the table that has waited longest, and small ones beside it; whether there was one.
    pub(crate) async fn flush_next(&self) -> bool {
        let Ok(writing) = self.shared.writing() else { return false };
        self.memory.shrink_cache().await;
        let due = self.due_together();
        if due.is_empty() {
            return false;
        }
        let all = self.flush_together(writing, &due).await;
        for ((_, table), done) in due.into_iter().zip(&all) {
            if done.is_ok() {
                self.shared.background.take_apart(table, &self.shared.environment);
            }
        }
        let flushed = most_severe(all);
        self.memory.shrink_cache().await;
        match flushed {
            Ok(()) => {
                self.shared.background.failed.lock().take();
                self.shared.background.progress.notify();
                true
            }
            Err(error) => {
                let may_pass = may_pass(&error);
                self.flush_failed(writing, error);
                if may_pass {
                    // The spare log segment is for later, and this flush frees more of the log.
                    writing.log.give_back_ready();
                    let _ = self.space.delete_retired().await;
                    self.shared.environment.sleep(FLUSHES.space_retry_delay).await;
                }
                may_pass
            }
        }
    }

    fn flush_failed(&self, writing: &Writing, error: Error) {
        match error.kind() {
            ErrorKind::NoSpace => {
                // Counted before it can be seen.
                self.shared.background.failures.add(1);
                *self.shared.background.failed.lock() = Some(error);
            }
            // The log is intact, but no memtable can be flushed any more.
            _ => writing.log.fail(&error),
        }
        self.shared.background.progress.notify();
    }

    /// The table that has waited longest, and those behind it that may be flushed at the same time: of other
    /// stores, small, and if there is space for all.
    fn due_together(&self) -> Vec<(Arc<StoreState>, Arc<Memtable>)> {
        let oldest =
            |store: &Arc<StoreState>| Some((store.clone(), store.view.read().waiting.last()?.clone()));
        let mut due: Vec<_> = self.shared.stores.read().iter().filter_map(oldest).collect();
        due.sort_unstable_by_key(|(_, table)| table.no);
        // When space is short, each flush needs the space that the one before frees.
        let most = if self.shared.objects.is_short() { 1 } else { FLUSHES.max_grouped_memtables };
        let mut bytes = 0;
        let mut is_small = |(_, table): &(_, Arc<Memtable>)| {
            bytes += table.bytes();
            bytes <= FLUSHES.max_grouped_bytes
        };
        let small = due.iter().take(most).take_while(|one| is_small(one)).count();
        due.truncate(small.max(1));
        due
    }

    /// Writes out everything.
    ///
    /// # Errors
    /// `NoSpace`, `Device`.
    pub(crate) async fn flush_all(&self, writing: &Writing) -> Result<()> {
        {
            let _commit = self.committer.commit.lock();
            let stores = self.shared.stores.read().clone();
            self.committer.close_tables(writing, &stores);
        }
        loop {
            let due = self.due_together();
            if due.is_empty() {
                return Ok(());
            }
            most_severe(self.flush_together(writing, &due).await)?;
        }
    }

    async fn flush_together(
        &self,
        writing: &Writing,
        due: &[(Arc<StoreState>, Arc<Memtable>)],
    ) -> Vec<Result<()>> {
        join_all(due.iter().map(|(store, table)| self.flush(writing, store, table))).await
    }

    async fn flush(&self, writing: &Writing, store: &Arc<StoreState>, table: &Arc<Memtable>) -> Result<()> {
        let end =
            table.end().ok_or_else(|| Error::invalid("a table that is written to cannot be written out"))?;
        writing.log.sync_to(end).await?;
        make_room_for_table(&self.jobs, writing, store).await;
        // CRASH: the log has everything.
        self.shared.crash.reached("flush.before-keys");
        let (record, packed) = self.write_table(store, table).await?;
        let edit = Edit {
            changes: record
                .iter()
                .map(|kvset| Change::AddKvset {
                    place: Place::Root,
                    position: Position::Top,
                    kvset: kvset.clone(),
                })
                .collect(),
        };
        let tree = store.view.read().tree.clone();
        let opened = self.shared.opener.holding(store.settings().filters).open_added(&tree, &edit).await?;
        // Its objects are deleted below, unless a reader holds them.
        drop(tree);
        // CRASH: the key file is an orphan, and the log has everything.
        self.shared.crash.reached("flush.before-manifest");
        if let Some(record) = &record {
            self.keep_values(store, table, record.info.largest_sequence).await;
        }
        if self.shared.snapshots.to_keep().numbers.len() > 1 {
            let tree = store.view.read().tree.clone();
            store.cleaning.note_kept(&tree, record.iter().map(|kvset| kvset.no));
        }
        let mut begin = None;
        let make = || {
            if store.is_dropped.load(Ordering::Acquire) {
                return None;
            }
            let (mut records, log_begin) = self.committer.log_records(writing, Some((store, table)));
            begin = Some(log_begin);
            if !edit.is_empty() {
                records.insert(0, Record::Edit { store: store.no, edit: edit.clone() });
            }
            records
                .extend(self.shared.lifetime_if_due().map(|activity| Record::Activity(Box::new(activity))));
            Some(records)
        };
        let install = |_: &DatabaseRecord| -> Result<()> {
            let mut view = store.view.write();
            view.tree = Arc::new(view.tree.apply_opened(&edit, &opened)?);
            if let Some(record) = &record {
                store.flushed_sequence.fetch_max(record.info.largest_sequence, Ordering::AcqRel);
            }
            view.waiting.retain(|other| !Arc::ptr_eq(other, table));
            Ok(())
        };
        let appended = writing.manifest.append_made(packed.as_slice(), make, install).await;
        let Some(installed) = self.made_or_discarded(appended, record.as_ref()).await? else {
            // Packed values are deleted with their lease.
            store.view.write().waiting.retain(|other| !Arc::ptr_eq(other, table));
            return self.discard(record.as_ref()).await;
        };
        installed?;
        // CRASH: the kvset has what the log need not have any more.
        self.shared.crash.reached("flush.after-manifest");
        self.shared.counters.flushes.add(1);
        self.committer.update_pressure([store]);
        self.shared.background.work.notify();
        if let Some(begin) = begin {
            self.space.forget_log_before(writing, begin);
        }
        self.space.delete_retired().await?;
        // Jobs may be busy for long.
        self.mirrors.trim_mirrors(writing, Trim::Due).await?;
        self.space.watch_fast_class();
        Ok(())
    }

    /// A change that found no space is tried again with another file.
    async fn made_or_discarded<T>(&self, made: Result<T>, record: Option<&KvsetRecord>) -> Result<T> {
        if made.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
            self.discard(record).await?;
        }
        made
    }

    async fn discard(&self, record: Option<&KvsetRecord>) -> Result<()> {
        match record {
            Some(record) => self.shared.objects.delete(ObjectKind::Keys, record.no).await,
            None => Ok(()),
        }
    }

    /// Says in the manifest that the log is whole to its end, which then is known to have been durable.
    pub(crate) async fn note_end(&self, writing: &Writing) -> Result<()> {
        let mut begin = None;
        let make = || {
            let (mut records, log_begin) = self.committer.log_records(writing, None);
            begin = Some(log_begin);
            records.push(Record::Activity(Box::new(self.shared.lifetime())));
            Some(records)
        };
        writing.manifest.append_made(&[], make, |_| ()).await?;
        if let Some(begin) = begin {
            self.space.forget_log_before(writing, begin);
        }
        Ok(())
    }
}

/// Returns whether what failed may go well later.
fn may_pass(error: &Error) -> bool {
    error.kind() == ErrorKind::NoSpace
}

/// Returns the most severe error, permanent before transient.
fn most_severe(all: Vec<Result<()>>) -> Result<()> {
    let failures = all.into_iter().filter_map(Result::err);
    failures.min_by_key(may_pass).map_or(Ok(()), Err)
}
