//! The committer: what a write goes through.
//!
//! 1. Outside of any lock the batch becomes a payload, with all its checksums.
//! 2. It waits if the tree cannot keep pace ([`super::write_stall`]).
//! 3. Under the commit lock a transaction is checked for conflicts, the sequence number is taken, the frame is copied
//!    to the log's buffer, the versions go into the memtables, and the number is published.
//! 4. If it has to be durable before it is acknowledged, it waits for the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::Mutex;

use crate::crash::PlantedBug;
use crate::database::commit::batch::Batch;
use crate::database::commit::conflict::{Conflict, ReadSet, Recent};
use crate::database::memory::budget::MemoryBudget;
use crate::database::shared::{Shared, Writing};
use crate::database::snapshot::Snapshot;
use crate::database::space::account::SpaceManager;
use crate::database::state::store_state::StoreState;
use crate::database::stats::counters::{Cause, Counters};
use crate::entry::{Codec, Pointer, RangeTombstone, SequenceNo};
use crate::log::frame::{Operation, OperationKind, Payload, StoreNo};
use crate::log::writer::Appended;
use crate::memory::{MemoryContent, Memtable, MemtableVersion};
use crate::settings::{Durability, WriteOptions};
use crate::{Error, ErrorKind, Result};

/// State that changes under the commit lock.
#[derive(Debug)]
pub(crate) struct Commit {
    /// The last number that was given.
    pub(crate) sequence: SequenceNo,
    pub(crate) recent: Recent,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Committer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) space: Arc<SpaceManager>,
    /// The commit lock.
    pub(crate) commit: Mutex<Commit>,
    pub(crate) next_table: AtomicU64,
    /// The tables that wait to be flushed have as much memory as they may, all stores' together.
    pub(crate) tables_wait: AtomicBool,
}

/// A transaction that others have to note their writes for.
#[derive(Debug)]
pub(crate) struct OpenTransaction {
    committer: Arc<Committer>,
    snapshot: Snapshot,
}

impl OpenTransaction {
    /// Returns the sequence number of the snapshot.
    pub(crate) fn sequence(&self) -> SequenceNo {
        self.snapshot.sequence()
    }

    pub(crate) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        self.committer.commit.lock().recent.closed(self.snapshot.sequence());
    }
}

/// A condition of a commit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Check<'a> {
    /// No other commit since the transaction began has written its keys, nor, if given, what it has read.
    Transaction(&'a OpenTransaction, Option<&'a ReadSet>),
    /// Its keys have not changed since that number. Unlike a transaction it needs no notes of other commits, and keeps
    /// no versions from merges.
    Unchanged(SequenceNo),
}

impl Check<'_> {
    /// Returns whether it matters though nothing is written.
    fn is_of_reads(&self) -> bool {
        matches!(self, Check::Transaction(_, Some(_)))
    }
}

impl Committer {
    /// Begins a transaction at what is visible now.
    pub(crate) fn open_transaction(self: &Arc<Self>) -> OpenTransaction {
        let mut commit = self.commit.lock();
        // Nothing is committed between the two.
        let ahead = u64::from(self.shared.crash.has(PlantedBug::SnapshotTooLate));
        let snapshot = self.shared.snapshots.take_ahead(ahead);
        commit.recent.opened(snapshot.sequence());
        drop(commit);
        OpenTransaction { committer: self.clone(), snapshot }
    }

    pub(crate) async fn write(&self, batch: Batch, options: &WriteOptions) -> Result<()> {
        self.commit(batch, options, None).await
    }

    /// Writes a batch, if the transaction has no conflict.
    pub(crate) async fn commit(
        &self,
        batch: Batch,
        options: &WriteOptions,
        check: Option<Check<'_>>,
    ) -> Result<()> {
        let measured = Counters::is_measured(&self.shared.counters.written_operations)
            .then(|| self.shared.environment.now());
        let written = self.commit_batch(batch, options, check).await;
        if let Some(began) = measured {
            self.shared.counters.writes.add(self.shared.environment.now().saturating_sub(began));
        }
        written
    }

    async fn commit_batch(
        &self,
        batch: Batch,
        options: &WriteOptions,
        check: Option<Check<'_>>,
    ) -> Result<()> {
        let writing = self.shared.writing()?;
        let durability = options.durability.unwrap_or_else(|| self.shared.live.durability());
        durability.check()?;
        let now_s = if options.time_to_live_s.is_some() { self.shared.environment.wall_time_s() } else { 0 };
        let (mut payload, stores) = batch.finish(options, now_s)?;
        if stores.iter().any(|store| store.database != self.shared.instance) {
            return Err(Error::invalid("a batch for stores of another database"));
        }
        if payload.operations == 0 && !check.is_some_and(|check| check.is_of_reads()) {
            return Ok(());
        }
        let within_ms = match durability {
            Durability::Sync => None,
            Durability::Within(ms) => Some(ms),
        };
        self.shared.turns.write(check.is_some()).await;
        for store in &stores {
            self.admit(store, &payload).await?;
        }
        self.space.admit_puts(&payload).await?;
        let end = loop {
            match self.try_commit(writing, &mut payload, &stores, within_ms, check)? {
                Some(appended) => break appended.end,
                None => {
                    let _waits = self.shared.turns.waits();
                    let since = self.shared.environment.now();
                    self.space.wait_for_log(writing, payload.frame_len()).await?;
                    self.shared
                        .counters
                        .stalled(Cause::Log, self.shared.environment.now().saturating_sub(since));
                }
            }
        };
        match durability {
            Durability::Sync => writing.log.sync_to(end).await,
            Durability::Within(_) => Ok(()),
        }
    }

    /// The part of a commit under the commit lock; `None` if the log has no space now. Memtables copy short pairs, and
    /// pairs that share memory with the rest of the payload.
    fn try_commit(
        &self,
        writing: &Writing,
        payload: &mut Payload,
        stores: &[Arc<StoreState>],
        within_ms: Option<u16>,
        check: Option<Check<'_>>,
    ) -> Result<Option<Appended>> {
        let mut commit = self.commit.lock();
        for store in stores {
            store.check_there()?;
        }
        let conflict = check.and_then(|check| self.conflict(&mut commit, payload, stores, check));
        if let Some(conflict) = conflict.filter(|_| !self.shared.crash.has(PlantedBug::LeaveOutConflicts)) {
            let why = match conflict {
                Conflict::Changed => {
                    "another commit wrote what this one writes or has read, since the transaction began"
                }
                Conflict::TooOld => {
                    "so much was written since the transaction began that it is not known any more whether another commit wrote the same"
                }
            };
            return Err(Error::new(ErrorKind::Conflict, why));
        }
        let sequence = commit.sequence + 1;
        let Some(appended) = writing.log.append(payload, sequence, within_ms)? else { return Ok(None) };
        commit.sequence = sequence;
        if commit.recent.is_used() {
            commit.recent.note(payload, sequence);
        }
        self.shared.counters.written_operations.add(u64::from(payload.operations));
        self.shared.counters.written_bytes.add(payload.written_bytes());
        self.apply(std::mem::take(payload), sequence, stores, appended);
        self.shared.snapshots.publish(sequence);
        self.make_room(writing, stores, appended.end);
        Ok(Some(appended))
    }

    /// Returns the conflict of a payload with the condition `check`, if there is one.
    fn conflict(
        &self,
        commit: &mut Commit,
        payload: &Payload,
        stores: &[Arc<StoreState>],
        check: Check<'_>,
    ) -> Option<Conflict> {
        match check {
            Check::Transaction(open, read) => {
                let is_range_changed = |no: StoreNo, start: &[u8], end: Option<&[u8]>| {
                    let stores = self.shared.stores.read();
                    let store = stores.iter().find(|store| store.no == no);
                    store.is_none_or(|store| store.may_have_changed(start, end, open.sequence()))
                };
                let read = read.filter(|_| !self.shared.crash.has(PlantedBug::ForgetReads));
                commit.recent.conflicts(payload, read, open.sequence(), is_range_changed)
            }
            Check::Unchanged(since) => {
                let now = commit.sequence;
                let is_changed = |operation: Operation| {
                    let key = operation.pair.key();
                    let store = stores.iter().find(|store| store.no == operation.store);
                    commit.recent.may_have_changed(operation.store, key, since, now)
                        && store.is_none_or(|store| store.key_may_have_changed(key, since))
                };
                payload.operations().flatten().any(is_changed).then_some(Conflict::Changed)
            }
        }
    }

    /// Puts a payload's operations into the memtables.
    pub(crate) fn apply(
        &self,
        payload: Payload,
        sequence: SequenceNo,
        stores: &[Arc<StoreState>],
        appended: Appended,
    ) {
        let mut current: Option<(&Arc<StoreState>, Arc<Memtable>)> = None;
        // Of two operations on a key the later one counts, and the memtable keeps the first that it is given.
        for operation in payload.latest_first() {
            if current.as_ref().is_none_or(|(store, _)| store.no != operation.store) {
                let store = stores.iter().find(|store| store.no == operation.store);
                current = store.map(|store| (store, store.view.read().active.clone()));
                if current.as_ref().is_some_and(|(_, table)| table.is_empty()) {
                    self.shared.objects.note_table();
                }
            }
            if let Some((store, table)) = &current {
                insert(table, store, operation, sequence, appended);
            }
        }
    }
}

/// Puts one operation into a memtable.
pub(crate) fn insert(
    table: &Memtable,
    store: &StoreState,
    operation: Operation,
    sequence: SequenceNo,
    appended: Appended,
) {
    let Operation { kind, pair, value_len, codec, expires_s, checksum, value_at, .. } = operation;
    let stored_len = pair.value().len();
    let content = match kind {
        OperationKind::Put => {
            let is_separate = stored_len >= store.live.separate_from_bytes() || codec != Codec::None;
            let home = is_separate.then(|| Pointer {
                segment: appended.segment,
                offset: appended.offset + value_at as u64,
                stored_len: stored_len as u32,
                len: value_len,
                codec,
                checksum,
            });
            MemoryContent::Value { home }
        }
        OperationKind::Delete => MemoryContent::Deleted,
        OperationKind::DeleteRange => {
            let (start, end) = (pair.copied_key(), Some(pair.copied_value()));
            return table.delete_range(RangeTombstone { start, end, sequence });
        }
        OperationKind::DeleteFrom => {
            return table.delete_range(RangeTombstone { start: pair.copied_key(), end: None, sequence });
        }
    };
    table.insert(pair, sequence, MemtableVersion { expires_s, content });
}
