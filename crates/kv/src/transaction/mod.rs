//! Transactions and cursors.

use bytes::Bytes;

use crate::{Error, ErrorKind, Result, Snapshot, Store, WriteOptions};

fn absent<T>() -> Result<T> {
    Err(Error::new(ErrorKind::InvalidInput, "not there yet"))
}

/// What a transaction is guarded from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Isolation {
    /// It reads from a snapshot, and conflicts with whoever wrote the same keys since.
    #[default]
    Snapshot,
    /// Also with whoever wrote what it read: as if transactions came one after another.
    Serializable,
}

/// A transaction over all stores of a database. Dropped, it is rolled back.
#[derive(Debug)]
pub struct Transaction {}

impl Transaction {
    /// Writes a key.
    pub fn put(&mut self, _store: &Store, _key: &[u8], _value: &[u8]) {}

    /// Deletes a key.
    pub fn delete(&mut self, _store: &Store, _key: &[u8]) {}

    /// Deletes the keys from `start` on that are smaller than `end`.
    pub fn delete_range(&mut self, _store: &Store, _start: &[u8], _end: Option<&[u8]>) {}

    /// Deletes all keys that begin with `prefix`.
    pub fn delete_prefix(&mut self, _store: &Store, _prefix: &[u8]) {}

    /// The value of a key, as the transaction left it.
    ///
    /// # Errors
    /// `Corrupted`, `Device`.
    pub async fn get(&mut self, _store: &Store, _key: &[u8]) -> Result<Option<Bytes>> {
        absent()
    }

    /// A cursor over what the transaction sees now.
    pub fn cursor(&mut self, _store: &Store, _options: CursorOptions) -> Cursor {
        Cursor {}
    }

    /// Makes all of it visible, or nothing.
    ///
    /// # Errors
    /// `Conflict`: begin again. Else as [`crate::Database::write`].
    pub async fn commit(self, _options: &WriteOptions) -> Result<()> {
        absent()
    }

    /// Forgets what was written.
    pub fn rollback(self) {}
}

/// Which keys a cursor walks over.
#[derive(Debug, Clone, Default)]
pub struct CursorOptions {
    /// Only keys that begin so. Default: all.
    pub prefix: Bytes,
    /// What was there then. Default: what is there when the cursor is made.
    pub snapshot: Option<Snapshot>,
}

impl CursorOptions {
    /// Only keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> CursorOptions {
        CursorOptions { prefix: Bytes::copy_from_slice(prefix), snapshot: None }
    }
}

/// Walks over the keys of a store; it stands between two of them, at first before all.
#[derive(Debug)]
pub struct Cursor {}

impl Cursor {
    /// Goes before the first key that is not smaller than `key`.
    ///
    /// # Errors
    /// `Corrupted`, `Device`; so for all methods.
    pub async fn seek(&mut self, _key: &[u8]) -> Result<()> {
        absent()
    }

    /// Goes behind the last key.
    ///
    /// # Errors
    /// See [`seek`](Self::seek).
    pub async fn seek_to_end(&mut self) -> Result<()> {
        absent()
    }

    /// The key behind the cursor, which goes over it; `None` at the end.
    ///
    /// # Errors
    /// See [`seek`](Self::seek).
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        absent()
    }

    /// The key before the cursor, which goes over it; `None` at the beginning.
    ///
    /// # Errors
    /// See [`seek`](Self::seek).
    pub async fn previous(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        absent()
    }

    /// From here on it sees what is there now, and stays where it is.
    pub fn refresh(&mut self) {}
}
