//! An open database.

use std::sync::Arc;

use bytes::Bytes;
use tanada_volume::Volume;

use crate::{
    Cursor, CursorOptions, DatabaseSettings, Environment, Error, ErrorKind, Isolation, OpenOptions, Result,
    StoreSettings, Transaction, WriteOptions,
};

fn absent<T>() -> Result<T> {
    Err(Error::new(ErrorKind::InvalidInput, "not there yet"))
}

/// A handle of an open database. Cheap to clone; [`close`](Self::close) it at the end.
#[derive(Debug, Clone)]
pub struct Database {}

impl Database {
    /// Makes a database.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidInput` for a wrong name or wrong settings, `NoSpace`, `Device`.
    pub async fn create(
        _volume: &Volume,
        _name: &str,
        _settings: &DatabaseSettings,
        _environment: Arc<dyn Environment>,
    ) -> Result<Database> {
        absent()
    }

    /// Opens a database and replays its log.
    ///
    /// # Errors
    /// `NotFound`, `Corrupted`, `FutureFormat`, `Device`.
    pub async fn open(
        _volume: &Volume,
        _name: &str,
        _options: &OpenOptions,
        _environment: Arc<dyn Environment>,
    ) -> Result<Database> {
        absent()
    }

    /// Makes everything durable and stops the background work. Handles are of no use afterwards.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub async fn close(&self) -> Result<()> {
        absent()
    }

    /// Deletes a database that is not open.
    ///
    /// # Errors
    /// `NotFound`, `Device`.
    pub async fn destroy(_volume: &Volume, _name: &str) -> Result<()> {
        absent()
    }

    /// Makes a store.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidInput`, `ReadOnly`, `Device`.
    pub async fn create_store(&self, _name: &str, _settings: &StoreSettings) -> Result<Store> {
        absent()
    }

    /// A store that is there.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open_store(&self, _name: &str) -> Result<Store> {
        absent()
    }

    /// Deletes a store with all that it holds.
    ///
    /// # Errors
    /// `NotFound`, `ReadOnly`, `Device`.
    pub async fn drop_store(&self, _name: &str) -> Result<()> {
        absent()
    }

    /// The stores' names.
    pub fn stores(&self) -> Vec<String> {
        Vec::new()
    }

    /// Writes all of a batch or nothing of it.
    ///
    /// # Errors
    /// `InvalidInput` for keys or values that are too long, `NoSpace`, `ReadOnly`, `Poisoned`, `Device`.
    pub async fn write(&self, _batch: Batch, _options: &WriteOptions) -> Result<()> {
        absent()
    }

    /// What is there now, to be read later.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {}
    }

    /// Begins a transaction.
    pub fn begin(&self, _isolation: Isolation) -> Transaction {
        Transaction {}
    }

    /// Returns when all that was written before is durable.
    ///
    /// # Errors
    /// `Device`, `Poisoned`.
    pub async fn sync(&self) -> Result<()> {
        absent()
    }

    /// Copies the database as it is now to another name in the volume, while it is in use.
    ///
    /// # Errors
    /// `AlreadyExists`, `NoSpace`, `Device`.
    pub async fn checkpoint(&self, _name: &str) -> Result<()> {
        absent()
    }

    /// Counters.
    pub fn statistics(&self) -> Statistics {
        Statistics {}
    }

    /// Reads everything and verifies it.
    ///
    /// # Errors
    /// `Device`. What is wrong is in the report.
    pub async fn check(&self) -> Result<CheckReport> {
        absent()
    }
}

/// A handle of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {}

impl Store {
    /// Its name.
    pub fn name(&self) -> &str {
        ""
    }

    /// Writes a key as the settings say.
    ///
    /// # Errors
    /// As [`Database::write`].
    pub async fn put(&self, _key: &[u8], _value: &[u8]) -> Result<()> {
        absent()
    }

    /// Writes a key.
    ///
    /// # Errors
    /// As [`Database::write`].
    pub async fn put_with(&self, _key: &[u8], _value: &[u8], _options: &WriteOptions) -> Result<()> {
        absent()
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `Corrupted`, `Device`.
    pub async fn get(&self, _key: &[u8]) -> Result<Option<Bytes>> {
        absent()
    }

    /// The value that a key had.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn get_at(&self, _snapshot: &Snapshot, _key: &[u8]) -> Result<Option<Bytes>> {
        absent()
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// As [`Database::write`].
    pub async fn delete(&self, _key: &[u8]) -> Result<()> {
        absent()
    }

    /// Deletes all keys that begin with `prefix`.
    ///
    /// # Errors
    /// As [`Database::write`].
    pub async fn delete_prefix(&self, _prefix: &[u8]) -> Result<()> {
        absent()
    }

    /// Deletes the keys from `start` on that are smaller than `end`; all from `start` on without an end.
    ///
    /// # Errors
    /// As [`Database::write`].
    pub async fn delete_range(&self, _start: &[u8], _end: Option<&[u8]>) -> Result<()> {
        absent()
    }

    /// Reads, changes and writes a key, alone; `change` may be called more than once. `None` deletes. What was written.
    ///
    /// # Errors
    /// As [`get`](Self::get) and [`Database::write`].
    pub async fn update(
        &self,
        _key: &[u8],
        _change: impl Fn(Option<&Bytes>) -> Option<Bytes>,
        _options: &WriteOptions,
    ) -> Result<Option<Bytes>> {
        absent()
    }

    /// A cursor before the first key.
    pub fn cursor(&self, _options: CursorOptions) -> Cursor {
        Cursor {}
    }

    /// Does all tree jobs that there are to do, and waits for their end.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupted`, `Device`.
    pub async fn compact(&self) -> Result<()> {
        absent()
    }
}

/// Writes that are made together.
#[derive(Debug, Default)]
pub struct Batch {}

impl Batch {
    /// An empty one.
    pub fn new() -> Batch {
        Batch {}
    }

    /// Writes a key.
    pub fn put(&mut self, _store: &Store, _key: &[u8], _value: &[u8]) {}

    /// Deletes a key.
    pub fn delete(&mut self, _store: &Store, _key: &[u8]) {}

    /// Deletes the keys from `start` on that are smaller than `end`.
    pub fn delete_range(&mut self, _store: &Store, _start: &[u8], _end: Option<&[u8]>) {}

    /// Deletes all keys that begin with `prefix`.
    pub fn delete_prefix(&mut self, _store: &Store, _prefix: &[u8]) {}
}

/// What was there at a moment; kept readable as long as it lives.
#[derive(Debug, Clone)]
pub struct Snapshot {}

/// Counters of a database.
#[derive(Debug, Clone)]
pub struct Statistics {}

/// What a check found.
#[derive(Debug, Clone)]
pub struct CheckReport {}
