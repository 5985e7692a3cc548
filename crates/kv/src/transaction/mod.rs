//! Transactions, and cursors over what they or anybody sees.
//!
//! A transaction reads from a snapshot. What it writes is kept twice: as a batch, which is what a commit writes, and in
//! memtables of its own, which its reads ask first. It is checked when it commits
//! ([`crate::database::commit::conflict`]): of two that wrote the same key the first one wins.

mod cursor;
mod overlay;
mod prefetch;

use std::sync::Arc;

use bytes::Bytes;

pub use cursor::{Cursor, CursorOptions};
pub(crate) use prefetch::Scan;

use crate::database::commit::committer::{Check, OpenTransaction};
use crate::database::commit::conflict::ReadSet;
use crate::database::core::Core;
use crate::database::{Batch, Snapshot, Store};
use crate::entry::{Pair, RangeTombstone, SequenceNo};
use crate::keyfile::KeyHash;
use crate::log::frame::StoreNo;
use crate::memory::{MemoryContent, Memtable, MemtableVersion};
use crate::settings::WriteOptions;
use crate::{Error, Result};

/// Sequence numbers of a transaction's own writes: newer than all that are committed.
pub(crate) const OWN_WRITES: SequenceNo = 1 << 62;

/// The isolation level of a transaction.
///
/// ```
/// use tanada_kv::{ErrorKind, Isolation, WriteOptions};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"read", b"old").await?;
/// let mut transaction = database.begin(Isolation::Serializable);
/// transaction.get(&store, b"read").await?;
/// store.put(b"read", b"new").await?;
/// transaction.put(&store, b"written", b"value");
/// let conflict = transaction.commit(&WriteOptions::default()).await.unwrap_err();
/// assert_eq!(conflict.kind(), ErrorKind::Conflict);
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// Reads from a snapshot, and conflicts with later writes of the same keys.
    #[default]
    Snapshot,
    /// Also with whoever wrote what it read: as if transactions came one after another.
    Serializable,
}

/// A transaction over all stores of a database. Dropped, it is rolled back.
///
/// ```
/// use tanada_kv::Isolation;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// let mut transaction = database.begin(Isolation::Snapshot);
/// transaction.put(&store, b"key", b"value");
/// assert!(transaction.get(&store, b"key").await?.is_some()); // it sees its own writes
/// assert!(store.get(b"key").await?.is_none());
/// transaction.rollback();
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct Transaction {
    core: Arc<Core>,
    open: OpenTransaction,
    isolation: Isolation,
    batch: Batch,
    /// Its writes, by store.
    own: Vec<(StoreNo, Arc<Memtable>)>,
    writes: u64,
    read: ReadSet,
}

impl Transaction {
    pub(crate) fn new(core: &Arc<Core>, isolation: Isolation) -> Transaction {
        Transaction {
            core: core.clone(),
            open: core.committer.open_transaction(),
            isolation,
            batch: Batch::new(),
            own: Vec::new(),
            writes: 0,
            read: ReadSet::default(),
        }
    }

    /// Returns the snapshot that it reads, without its own writes.
    pub fn snapshot(&self) -> &Snapshot {
        self.open.snapshot()
    }

    /// The table of its writes to a store, and the number of the next one.
    fn own(&mut self, store: &Store) -> (&Memtable, SequenceNo) {
        self.writes += 1;
        let sequence = OWN_WRITES + self.writes;
        (self.own_table(store), sequence)
    }

    /// The table of its writes to a store, though there may be none yet.
    fn own_table(&mut self, store: &Store) -> &Arc<Memtable> {
        let no = store.state().no;
        let index = self.own.iter().position(|(other, _)| *other == no).unwrap_or_else(|| {
            self.own.push((no, Arc::new(Memtable::small())));
            self.own.len() - 1
        });
        &self.own[index].1
    }

    /// Writes a key.
    pub fn put(&mut self, store: &Store, key: &[u8], value: &[u8]) {
        self.batch.put(store, key, value);
        let version = MemtableVersion { expires_s: None, content: MemoryContent::Value { home: None } };
        let (table, sequence) = self.own(store);
        table.insert(Pair::copied(key, value), sequence, version);
    }

    /// Deletes a key.
    pub fn delete(&mut self, store: &Store, key: &[u8]) {
        self.batch.delete(store, key);
        let version = MemtableVersion { expires_s: None, content: MemoryContent::Deleted };
        let (table, sequence) = self.own(store);
        table.insert(Pair::copied(key, b""), sequence, version);
    }

    /// Deletes the keys from `start` on that are smaller than `end`.
    pub fn delete_range(&mut self, store: &Store, start: &[u8], end: Option<&[u8]>) {
        self.batch.delete_range(store, start, end);
        let (table, sequence) = self.own(store);
        let (start, end) = (Bytes::copy_from_slice(start), end.map(Bytes::copy_from_slice));
        table.delete_range(RangeTombstone { start, end, sequence });
    }

    /// Deletes all keys that begin with `prefix`.
    pub fn delete_prefix(&mut self, store: &Store, prefix: &[u8]) {
        let end = crate::database::behind_prefix(prefix);
        self.delete_range(store, prefix, end.as_deref());
    }

    /// The value of a key, as the transaction left it.
    ///
    /// # Errors
    /// `Corrupted`, `Device`.
    pub async fn get(&mut self, store: &Store, key: &[u8]) -> Result<Option<Bytes>> {
        self.check(store)?;
        let own = self.own.iter().find(|(no, _)| *no == store.state().no);
        if let Some(found) = own.and_then(|(_, table)| table.get(key, KeyHash::of(key), SequenceNo::MAX)) {
            return self.core.reader.value_of(found);
        }
        if self.isolation == Isolation::Serializable {
            self.read.keys.push((store.state().no, Bytes::copy_from_slice(key)));
        }
        self.core.reader.get(store.state(), key, Some(self.open.sequence())).await
    }

    fn check(&self, store: &Store) -> Result<()> {
        if !Arc::ptr_eq(store.core(), &self.core) {
            return Err(Error::invalid(format!("store {:?} is of another database", store.name())));
        }
        Ok(())
    }

    /// A cursor over what the transaction sees now. Serializable, all keys that it may walk over count as read.
    pub fn cursor(&mut self, store: &Store, options: CursorOptions) -> Cursor {
        if self.isolation == Isolation::Serializable {
            let end = crate::database::behind_prefix(&options.prefix).map(Bytes::from);
            self.read.ranges.push((store.state().no, options.prefix.clone(), end));
        }
        let own = self.own_table(store).clone();
        Cursor::within(store, options, self.open.snapshot().clone(), own)
    }

    /// Makes all of it visible, or nothing.
    ///
    /// # Errors
    /// `Conflict`: begin again. Else as [`crate::Database::write`].
    pub async fn commit(self, options: &WriteOptions) -> Result<()> {
        let Transaction { core, open, isolation, batch, read, .. } = self;
        if batch.is_empty() {
            // It read from one snapshot, so it is as if it had run alone at that moment. But all its writes may have
            // been refused.
            return batch.accepted();
        }
        let read = (isolation == Isolation::Serializable).then_some(&read);
        core.committer.commit(batch, options, Some(Check::Transaction(&open, read))).await
    }

    /// Forgets what was written.
    pub fn rollback(self) {}
}
