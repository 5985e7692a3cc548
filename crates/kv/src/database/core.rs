//! What all handles of an open database share, and the way of a write and a read through it.
//!
//! Locks, in the order in which they may be taken: the commit lock, the list of stores, a store's view, the registered
//! snapshots, the log's state. None is held over an await.
//!
//! A write:
//!
//! 1. outside of any lock the batch becomes a payload, with all its checksums;
//! 2. it waits if the tree cannot keep pace ([`super::write_stall`]);
//! 3. under the commit lock: a transaction is checked for conflicts, the sequence number is taken, the frame is copied
//!    to the log's buffer, the versions go into the memtables, and the number is published;
//! 4. if it wants to be durable before it is acknowledged, it waits for the log.
//!
//! A read for the latest takes the newest visible number while it holds the lock of the store's view: so no write that
//! it has to see is in a memtable that it does not know, and nothing that it has to see was dropped by a merge.
//!
//! What it finds in the tree says up to its number what the key has, and is held with the value ([`crate::cache`]). The
//! next read of the key looks at memtables, and then only at what the tree has that is newer. Merges that may have
//! dropped a delete along with what it hides, and bulk loads, whose numbers are from when they began, are seen by
//! [`View::known_since`](super::store::View): what was found before that is looked for again.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tanada_volume::{Claim, ClassListener};

use super::activity::Activity;
use super::background::Background;
use super::batch::Batch;
use super::conflict::{Conflict, ReadSet, Recent};
use super::coop::YieldBudget;
use super::limit::Watch;
use super::live::LiveDatabaseSettings;
use super::memory_budget::MemoryBudget;
use super::snapshot::Snapshots;
use super::statistics::Counters;
use super::store::StoreState;
use super::write_stall::Cause;
use crate::cache::HeldValue;
use crate::classes::Classes;
use crate::crash::{CrashPoints, PlantedBug};
use crate::entry::{Codec, Pointer, RangeTombstone, SequenceNo};
use crate::environment::Environment;
use crate::keyfile::KeyHash;
use crate::log::frame::{Operation, OperationKind, Payload, StoreNo};
use crate::log::writer::{Appended, Log};
use crate::manifest::Manifest;
use crate::memory::{Found, MemoryContent, Memtable, MemtableVersion};
use crate::objects::Objects;
use crate::pace::Hurry;
use crate::settings::{DatabaseSettings, Durability, WriteOptions};
use crate::tree::Opener;
use crate::value::codec;
use crate::{Error, ErrorKind, Result};

/// State that changes under the commit lock.
#[derive(Debug)]
pub(crate) struct Commit {
    /// The last number that was given.
    pub(crate) sequence: SequenceNo,
    pub(crate) recent: Recent,
}

/// State of an opening for writing.
#[derive(Debug)]
pub(crate) struct Writing {
    pub(crate) log: Arc<Log>,
    pub(crate) manifest: Manifest,
}

/// See the module's head.
pub(crate) struct Core {
    pub(crate) name: String,
    /// Which of the databases that this process has opened.
    pub(crate) instance: u64,
    /// Changed under the manifest's lock alone.
    pub(crate) live: LiveDatabaseSettings,
    pub(crate) objects: Arc<Objects>,
    pub(crate) opener: Opener,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) crash: CrashPoints,
    /// `None` if it was opened read-only.
    pub(crate) writing: Option<Writing>,
    pub(crate) stores: RwLock<Vec<Arc<StoreState>>>,
    pub(crate) commit: Mutex<Commit>,
    pub(crate) memory: MemoryBudget,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) next_table: AtomicU64,
    pub(crate) next_store: AtomicU32,
    pub(crate) background: Background,
    pub(crate) counters: Counters,
    /// Counters of earlier openings.
    pub(crate) earlier: Activity,
    /// Time when the counters were last written to the manifest.
    pub(crate) activity_noted: Mutex<Option<Duration>>,
    /// Tables are flushed before they have more, for memory is bounded, and what they become is spilled as a whole.
    pub(crate) table_bytes: AtomicU64,
    /// Largest space that a compaction of a store needs: see [`super::reservation`].
    pub(crate) largest_need: AtomicU64,
    pub(crate) limit: Watch,
    pub(crate) class_listener: OnceLock<ClassListener>,
    /// Delay of each write, in microseconds, because the fastest class is nearly full.
    pub(crate) slowed_us: AtomicU32,
    pub(crate) turns: YieldBudget,
    /// Whether jobs have time.
    pub(crate) hurry: Arc<Hurry>,
    /// Say what goes where.
    pub(crate) classes: Arc<Classes>,
    pub(crate) is_closed: AtomicBool,
    /// The result of the close, once it has ended.
    pub(crate) ended: futures::lock::Mutex<Option<Result<()>>>,
    /// The right to have it open in this process, until it is closed.
    pub(crate) claim: Mutex<Option<Arc<Claim>>>,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if let Some(writing) = &self.writing {
            writing.log.stop();
        }
        self.background.stop();
    }
}

/// A transaction that others have to note their writes for.
#[derive(Debug)]
pub(crate) struct OpenTransaction {
    core: Arc<Core>,
    snapshot: super::Snapshot,
}

impl OpenTransaction {
    /// Returns the sequence number of the snapshot.
    pub(crate) fn sequence(&self) -> SequenceNo {
        self.snapshot.sequence()
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn snapshot(&self) -> &super::Snapshot {
        &self.snapshot
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        self.core.commit.lock().recent.closed(self.snapshot.sequence());
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

impl Core {
    /// Its settings as they are now.
    pub(crate) fn settings(&self) -> Arc<DatabaseSettings> {
        self.live.now()
    }

    pub(crate) fn writing(&self) -> Result<&Writing> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, format!("database {:?} is closed", self.name)));
        }
        self.writing.as_ref().ok_or_else(|| {
            Error::new(ErrorKind::ReadOnly, format!("database {:?} was opened read-only", self.name))
        })
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, format!("database {:?} is closed", self.name)));
        }
        Ok(())
    }

    /// Begins a transaction at what is visible now.
    pub(crate) fn open_transaction(self: &Arc<Self>) -> OpenTransaction {
        let mut commit = self.commit.lock();
        // Nothing is committed between the two.
        let ahead = u64::from(self.crash.has(PlantedBug::SnapshotTooLate));
        let snapshot = self.snapshots.take_ahead(ahead);
        commit.recent.opened(snapshot.sequence());
        drop(commit);
        OpenTransaction { core: self.clone(), snapshot }
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
        let measured =
            Counters::is_measured(&self.counters.written_operations).then(|| self.environment.now());
        let written = self.commit_batch(batch, options, check).await;
        if let Some(began) = measured {
            self.counters.writes.add(self.environment.now().saturating_sub(began));
        }
        written
    }

    async fn commit_batch(
        &self,
        batch: Batch,
        options: &WriteOptions,
        check: Option<Check<'_>>,
    ) -> Result<()> {
        let writing = self.writing()?;
        let durability = options.durability.unwrap_or_else(|| self.live.durability());
        durability.check()?;
        let now_s = if options.time_to_live_s.is_some() { self.environment.wall_time_s() } else { 0 };
        let (mut payload, stores) = batch.finish(options, now_s)?;
        if stores.iter().any(|store| store.database != self.instance) {
            return Err(Error::invalid("a batch for stores of another database"));
        }
        if payload.operations == 0 && !check.is_some_and(|check| check.is_of_reads()) {
            return Ok(());
        }
        let within_ms = match durability {
            Durability::Sync => None,
            Durability::Within(ms) => Some(ms),
        };
        self.turns.write(check.is_some()).await;
        for store in &stores {
            self.admit(store, &payload).await?;
        }
        self.admit_puts(&payload).await?;
        let end = loop {
            match self.try_commit(writing, &mut payload, &stores, within_ms, check)? {
                Some(appended) => break appended.end,
                None => {
                    let _waits = self.turns.waits();
                    let since = self.environment.now();
                    self.wait_for_log(writing, payload.frame_len()).await?;
                    self.counters.stalled(Cause::Log, self.environment.now().saturating_sub(since));
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
        if let Some(conflict) = conflict.filter(|_| !self.crash.has(PlantedBug::LeaveOutConflicts)) {
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
        self.counters.written_operations.add(u64::from(payload.operations));
        self.counters.written_bytes.add(payload.written_bytes());
        self.apply(std::mem::take(payload), sequence, stores, appended);
        self.snapshots.publish(sequence);
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
                    let stores = self.stores.read();
                    let store = stores.iter().find(|store| store.no == no);
                    store.is_none_or(|store| store.may_have_changed(start, end, open.sequence()))
                };
                let read = read.filter(|_| !self.crash.has(PlantedBug::ForgetReads));
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
                    self.objects.note_table();
                }
            }
            if let Some((store, table)) = &current {
                insert(table, store, operation, sequence, appended);
            }
        }
    }

    /// Looks up a key, at the given snapshot or at the latest.
    pub(crate) async fn get(
        &self,
        store: &StoreState,
        key: &[u8],
        snapshot: Option<SequenceNo>,
    ) -> Result<Option<Bytes>> {
        self.get_with_number(store, key, snapshot).await.map(|(value, _)| value)
    }

    /// The same, and the number it was read at.
    pub(crate) async fn get_with_number(
        &self,
        store: &StoreState,
        key: &[u8],
        snapshot: Option<SequenceNo>,
    ) -> Result<(Option<Bytes>, SequenceNo)> {
        let measured = Counters::is_measured(&self.counters.gets).then(|| self.environment.now());
        self.turns.read().await;
        let value = self.look_up(store, key, snapshot).await;
        if let Some(began) = measured {
            self.counters.reads.add(self.environment.now().saturating_sub(began));
        }
        value
    }

    async fn look_up(
        &self,
        store: &StoreState,
        key: &[u8],
        at: Option<SequenceNo>,
    ) -> Result<(Option<Bytes>, SequenceNo)> {
        self.check_open()?;
        store.check_there()?;
        self.counters.gets.add(1);
        let hash = KeyHash::of(key);
        let (tree, known_since, snapshot) = {
            let view = store.view.read();
            let snapshot = at.unwrap_or_else(|| self.snapshots.visible());
            let mut tables = std::iter::once(&view.active).chain(&view.waiting);
            if let Some(found) = tables.find_map(|table| table.get(key, hash, snapshot)) {
                drop(view);
                self.counters.gets_from_memory.add(1);
                return Ok((self.value_of(found)?, snapshot));
            }
            (view.tree.clone(), view.known_since, snapshot)
        };
        let held = self.opener.cache.held(store.owner, key, hash);
        // Asked for behind the tree and the cache: a load that these have was noted before.
        let unseen = at.map(|at| self.snapshots.unseen_at(at)).unwrap_or_default();
        if let Some(held) = held.as_ref().filter(|_| unseen.is_empty())
            && let Some(newest) = tree.still_newest(held, (key, hash), snapshot, known_since)
        {
            return Ok(((!self.is_expired(newest.expires_s)).then(|| held.value()), snapshot));
        }
        // From here on it may have to wait.
        let _chain = tanada_io::begin_chain();
        let found = tree.get(key, hash, snapshot, &unseen).await?;
        // A lookup is a use of what is held: what was deleted, or came before what lies in pages, would stay for as
        // long as its key is looked up.
        let is_obsolete = |held: &HeldValue| match &found {
            Some(found) => !found.is_apart() && held.is_older_than(found.version.sequence),
            None => at.is_none(),
        };
        if held.as_ref().is_some_and(is_obsolete) {
            self.opener.cache.forget_value(store.owner, hash);
        }
        let Some(found) = found.filter(|found| !self.is_expired(found.version.expires_s)) else {
            return Ok((None, snapshot));
        };
        Ok((self.value_counting(store, &tree, key, held.as_ref(), &found).await?, snapshot))
    }

    pub(crate) fn value_of(&self, found: Found) -> Result<Option<Bytes>> {
        match found {
            Found::Version(MemtableVersion { content: MemoryContent::Value { home }, expires_s }, bytes) => {
                if self.is_expired(expires_s) {
                    return Ok(None);
                }
                plain_value(bytes, home.as_ref()).map(Some)
            }
            Found::Version(..) | Found::Hidden(_) => Ok(None),
        }
    }

    /// Returns whether an entry that expires then is expired now.
    pub(crate) fn is_expired(&self, expires_s: Option<u32>) -> bool {
        expires_s.is_some_and(|expires_s| u64::from(expires_s) <= self.environment.wall_time_s())
    }
}

/// The value itself of what is kept in memory: as it is stored.
pub(crate) fn plain_value(stored: Bytes, home: Option<&Pointer>) -> Result<Bytes> {
    let Some(pointer) = home.filter(|pointer| pointer.codec != Codec::None) else { return Ok(stored) };
    let plain = codec::decompress(pointer.codec, &stored, pointer.len as usize);
    plain.ok_or_else(|| {
        Error::corrupted(format!("a value of segment {} does not decompress", pointer.segment))
    })
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
