//! For threads that wait: the engine's calls, run to completion on the calling thread.
//!
//! [`wait`] does it for any future; [`Database`], [`Store`], [`Cursor`], [`Transaction`] and [`BulkLoad`] are the types
//! of the crate whose calls wait by themselves. A read that memory or the cache serves, and a write that need not wait
//! for a device, cost nothing more here than they do elsewhere. Errors are those of the calls that are waited for.
//!
//! Batches and snapshots never wait: they are those of the crate, and a batch takes [`Store::inner`]. A class of a
//! volume is taken away by [`wait`] for [`Volume::remove_class`], once [`Database::drain_class`] has emptied it.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use tanada_volume::{Relocated, Volume};

use crate::{Batch, CheckReport, CursorOptions, DatabaseOverrides, DatabaseSettings, Environment, Isolation};
use crate::{
    MediaPolicy, OpenOptions, Result, Snapshot, Statistics, StoreOverrides, StoreSettings, WriteOptions,
};

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

    /// As [`crate::Database::destroy`].
    ///
    /// # Errors
    /// See there.
    pub fn destroy(volume: &Volume, name: &str, environment: Arc<dyn Environment>) -> Result<()> {
        wait(crate::Database::destroy(volume, name, environment))
    }

    /// As [`crate::Database::names`].
    pub fn names(volume: &Volume) -> Vec<String> {
        crate::Database::names(volume)
    }

    /// What it wraps.
    pub fn inner(&self) -> &crate::Database {
        &self.inner
    }

    /// As [`crate::Database::name`].
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// As [`crate::Database::settings`].
    pub fn settings(&self) -> DatabaseSettings {
        self.inner.settings()
    }

    /// As [`crate::Database::set_settings`].
    ///
    /// # Errors
    /// See there.
    pub fn set_settings(&self, changes: &DatabaseOverrides) -> Result<()> {
        wait(self.inner.set_settings(changes))
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

    /// As [`crate::Database::stores`].
    pub fn stores(&self) -> Vec<String> {
        self.inner.stores()
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

    /// As [`crate::Database::check`].
    ///
    /// # Errors
    /// See there.
    pub fn check(&self) -> Result<CheckReport> {
        wait(self.inner.check())
    }

    /// As [`crate::Database::statistics`].
    pub fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    /// As [`crate::Database::drain_class`].
    ///
    /// # Errors
    /// See there.
    pub fn drain_class(&self, class: &str) -> Result<Relocated> {
        wait(self.inner.drain_class(class))
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

    /// As [`crate::Store::name`].
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// As [`crate::Store::settings`].
    pub fn settings(&self) -> StoreSettings {
        self.inner.settings()
    }

    /// As [`crate::Store::set_settings`].
    ///
    /// # Errors
    /// See there.
    pub fn set_settings(&self, changes: &StoreOverrides) -> Result<()> {
        wait(self.inner.set_settings(changes))
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

    /// As [`crate::Store::delete_with`].
    ///
    /// # Errors
    /// See there.
    pub fn delete_with(&self, key: &[u8], options: &WriteOptions) -> Result<()> {
        wait(self.inner.delete_with(key, options))
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

    /// As [`crate::Store::bulk_load`].
    ///
    /// # Errors
    /// See there.
    pub fn bulk_load(&self) -> Result<BulkLoad> {
        wait(self.inner.bulk_load()).map(|inner| BulkLoad { inner })
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

/// As [`crate::BulkLoad`].
#[derive(Debug)]
pub struct BulkLoad {
    inner: crate::BulkLoad,
}

impl BulkLoad {
    /// As [`crate::BulkLoad::put`].
    ///
    /// # Errors
    /// See there.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        wait(self.inner.put(key, value))
    }

    /// As [`crate::BulkLoad::finish`].
    ///
    /// # Errors
    /// See there.
    pub fn finish(self) -> Result<u64> {
        wait(self.inner.finish())
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
    /// As [`crate::Transaction::snapshot`].
    pub fn snapshot(&self) -> &Snapshot {
        self.inner.snapshot()
    }

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

    /// As [`crate::Transaction::delete_prefix`].
    pub fn delete_prefix(&mut self, store: &Store, prefix: &[u8]) {
        self.inner.delete_prefix(&store.inner, prefix);
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
