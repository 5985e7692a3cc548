//! For threads that wait: the engine's calls, run to their end on the calling thread.
//!
//! [`wait`] does it for any future; [`Database`], [`Store`], [`Cursor`] and [`Transaction`] are the types of the crate whose calls wait by themselves. A
//! read that memory or the cache serves, and a write that need not wait for a device, cost nothing more here than they do elsewhere. Errors are those
//! of the calls that are waited for.
//!
//! What is not here is reached by [`Database::inner`] and [`Store::inner`], and [`wait`].

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use tanada_volume::Volume;

use crate::{Batch, CursorOptions, DatabaseSettings, Environment, Isolation, MediaPolicy, OpenOptions};
use crate::{Result, Snapshot, StoreSettings, WriteOptions};

/// Waits for the future on this thread; never on an executor's own thread, which would wait for itself.
pub fn wait<F: Future>(future: F) -> F::Output {
    crate::environment::wait_for(future)
}

/// As [`crate::Database`].
#[derive(Debug, Clone)]
pub struct Database {
    inner: crate::Database,
}

impl From<crate::Database> for Database {
    fn from(inner: crate::Database) -> Database {
        Database { inner }
    }
}

impl Database {
    /// As [`crate::Database::create`].
    ///
    /// # Errors
    /// See there; so for all calls of this module.
    pub fn create(
        volume: &Volume,
        name: &str,
        settings: &DatabaseSettings,
        environment: Arc<dyn Environment>,
    ) -> Result<Database> {
        wait(crate::Database::create(volume, name, settings, environment)).map(Database::from)
    }

    /// As [`crate::Database::open`].
    ///
    /// # Errors
    /// See there.
    pub fn open(
        volume: &Volume,
        name: &str,
        options: &OpenOptions,
        environment: Arc<dyn Environment>,
    ) -> Result<Database> {
        wait(crate::Database::open(volume, name, options, environment)).map(Database::from)
    }

    /// What it wraps.
    pub fn inner(&self) -> &crate::Database {
        &self.inner
    }

    /// As [`crate::Database::settings`].
    pub fn settings(&self) -> &DatabaseSettings {
        self.inner.settings()
    }

    /// As [`crate::Database::create_store`].
    ///
    /// # Errors
    /// See there.
    pub fn create_store(&self, name: &str, settings: &StoreSettings) -> Result<Store> {
        wait(self.inner.create_store(name, settings)).map(Store::from)
    }

    /// As [`crate::Database::open_store`].
    ///
    /// # Errors
    /// See there.
    pub fn open_store(&self, name: &str) -> Result<Store> {
        self.inner.open_store(name).map(Store::from)
    }

    /// As [`crate::Database::drop_store`].
    ///
    /// # Errors
    /// See there.
    pub fn drop_store(&self, name: &str) -> Result<()> {
        wait(self.inner.drop_store(name))
    }

    /// As [`crate::Database::write`].
    ///
    /// # Errors
    /// See there.
    pub fn write(&self, batch: Batch, options: &WriteOptions) -> Result<()> {
        wait(self.inner.write(batch, options))
    }

    /// As [`crate::Database::snapshot`].
    pub fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    /// As [`crate::Database::begin`].
    pub fn begin(&self, isolation: Isolation) -> Transaction {
        Transaction { inner: self.inner.begin(isolation) }
    }

    /// As [`crate::Database::sync`].
    ///
    /// # Errors
    /// See there.
    pub fn sync(&self) -> Result<()> {
        wait(self.inner.sync())
    }

    /// As [`crate::Database::checkpoint`].
    ///
    /// # Errors
    /// See there.
    pub fn checkpoint(&self, name: &str) -> Result<()> {
        wait(self.inner.checkpoint(name))
    }

    /// As [`crate::Database::close`].
    ///
    /// # Errors
    /// See there.
    pub fn close(&self) -> Result<()> {
        wait(self.inner.close())
    }
}

/// As [`crate::Store`].
#[derive(Debug, Clone)]
pub struct Store {
    inner: crate::Store,
}

impl From<crate::Store> for Store {
    fn from(inner: crate::Store) -> Store {
        Store { inner }
    }
}

impl Store {
    /// What it wraps: what batches take.
    pub fn inner(&self) -> &crate::Store {
        &self.inner
    }

    /// As [`crate::Store::put`].
    ///
    /// # Errors
    /// See there.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        wait(self.inner.put(key, value))
    }

    /// As [`crate::Store::put_with`].
    ///
    /// # Errors
    /// See there.
    pub fn put_with(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        wait(self.inner.put_with(key, value, options))
    }

    /// As [`crate::Store::get`].
    ///
    /// # Errors
    /// See there.
    pub fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        wait(self.inner.get(key))
    }

    /// As [`crate::Store::get_at`].
    ///
    /// # Errors
    /// See there.
    pub fn get_at(&self, snapshot: &Snapshot, key: &[u8]) -> Result<Option<Bytes>> {
        wait(self.inner.get_at(snapshot, key))
    }

    /// As [`crate::Store::delete`].
    ///
    /// # Errors
    /// See there.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        wait(self.inner.delete(key))
    }

    /// As [`crate::Store::delete_prefix`].
    ///
    /// # Errors
    /// See there.
    pub fn delete_prefix(&self, prefix: &[u8]) -> Result<()> {
        wait(self.inner.delete_prefix(prefix))
    }

    /// As [`crate::Store::delete_range`].
    ///
    /// # Errors
    /// See there.
    pub fn delete_range(&self, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        wait(self.inner.delete_range(start, end))
    }

    /// As [`crate::Store::update`].
    ///
    /// # Errors
    /// See there.
    pub fn update(
        &self,
        key: &[u8],
        change: impl Fn(Option<&Bytes>) -> Option<Bytes>,
        options: &WriteOptions,
    ) -> Result<Option<Bytes>> {
        wait(self.inner.update(key, change, options))
    }

    /// As [`crate::Store::cursor`].
    pub fn cursor(&self, options: CursorOptions) -> Cursor {
        Cursor { inner: self.inner.cursor(options) }
    }

    /// As [`crate::Store::compact`].
    ///
    /// # Errors
    /// See there.
    pub fn compact(&self) -> Result<()> {
        wait(self.inner.compact())
    }

    /// As [`crate::Store::set_policy`].
    ///
    /// # Errors
    /// See there.
    pub fn set_policy(&self, policy: &MediaPolicy) -> Result<()> {
        wait(self.inner.set_policy(policy))
    }
}

/// As [`crate::Cursor`]; as an iterator it goes forwards.
#[derive(Debug)]
pub struct Cursor {
    inner: crate::Cursor,
}

impl Cursor {
    /// As [`crate::Cursor::seek`].
    ///
    /// # Errors
    /// See there.
    pub fn seek(&mut self, key: &[u8]) -> Result<()> {
        wait(self.inner.seek(key))
    }

    /// As [`crate::Cursor::seek_to_begin`].
    pub fn seek_to_begin(&mut self) {
        self.inner.seek_to_begin();
    }

    /// As [`crate::Cursor::seek_to_end`].
    ///
    /// # Errors
    /// See there.
    pub fn seek_to_end(&mut self) -> Result<()> {
        wait(self.inner.seek_to_end())
    }

    /// As [`crate::Cursor::previous`].
    ///
    /// # Errors
    /// See there.
    pub fn previous(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        wait(self.inner.previous())
    }

    /// As [`crate::Cursor::refresh`].
    pub fn refresh(&mut self) {
        self.inner.refresh();
    }
}

impl Iterator for Cursor {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        wait(self.inner.next()).transpose()
    }
}

/// As [`crate::Transaction`].
#[derive(Debug)]
pub struct Transaction {
    inner: crate::Transaction,
}

impl Transaction {
    /// As [`crate::Transaction::put`].
    pub fn put(&mut self, store: &Store, key: &[u8], value: &[u8]) {
        self.inner.put(&store.inner, key, value);
    }

    /// As [`crate::Transaction::delete`].
    pub fn delete(&mut self, store: &Store, key: &[u8]) {
        self.inner.delete(&store.inner, key);
    }

    /// As [`crate::Transaction::delete_range`].
    pub fn delete_range(&mut self, store: &Store, start: &[u8], end: Option<&[u8]>) {
        self.inner.delete_range(&store.inner, start, end);
    }

    /// As [`crate::Transaction::get`].
    ///
    /// # Errors
    /// See there.
    pub fn get(&mut self, store: &Store, key: &[u8]) -> Result<Option<Bytes>> {
        wait(self.inner.get(&store.inner, key))
    }

    /// As [`crate::Transaction::cursor`].
    pub fn cursor(&mut self, store: &Store, options: CursorOptions) -> Cursor {
        Cursor { inner: self.inner.cursor(&store.inner, options) }
    }

    /// As [`crate::Transaction::commit`].
    ///
    /// # Errors
    /// See there.
    pub fn commit(self, options: &WriteOptions) -> Result<()> {
        wait(self.inner.commit(options))
    }

    /// As [`crate::Transaction::rollback`].
    pub fn rollback(self) {
        self.inner.rollback();
    }
}
