//! An open database.
//!
//! - [`core`]: what its handles share; the way of writes and reads;
//! - [`open`]: making, opening, recovering;
//! - [`batch`], [`store`], [`snapshot`]: what users hold;
//! - [`conflict`]: what transactions have to know of each other.

mod batch;
pub(crate) mod conflict;
pub(crate) mod core;
mod open;
pub(crate) mod snapshot;
pub(crate) mod store;

use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use batch::Batch;
pub(crate) use batch::behind_prefix;
pub use snapshot::Snapshot;
pub use store::Store;

use crate::memory::MemoryTable;
use crate::settings::{StoreSettings, WriteOptions};
use crate::transaction::{Isolation, Transaction};
use crate::{Error, ErrorKind, Result};
use core::Core;
use store::StoreState;

/// A handle of an open database. Cheap to clone; [`close`](Self::close) it at the end.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) core: Arc<Core>,
}

impl Database {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// Makes everything durable and stops the background work. Handles are of no use afterwards.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub async fn close(&self) -> Result<()> {
        if self.core.is_closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let Some(writing) = &self.core.writing else { return Ok(()) };
        writing.log.close().await
    }

    /// Makes a store.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidInput`, `ReadOnly`, `Device`.
    pub async fn create_store(&self, name: &str, settings: &StoreSettings) -> Result<Store> {
        open::check_name(name)?;
        settings.check()?;
        let writing = self.core.writing()?;
        let exists = || Error::new(ErrorKind::AlreadyExists, format!("there is a store {name:?} already"));
        let no = {
            let stores = self.core.stores.read();
            if stores.iter().any(|store| store.name == name) {
                return Err(exists());
            }
            self.core.next_store.fetch_add(1, Ordering::Relaxed)
        };
        let table_no = self.core.next_table.fetch_add(1, Ordering::Relaxed);
        let add = || {
            let mut stores = self.core.stores.write();
            let table = MemoryTable::new(table_no, writing.log.end());
            let store = StoreState::new(self.core.identity, no, name, settings, table);
            stores.push(store.clone());
            store
        };
        let store = writing.manifest.append(&open::store_records(no, name, settings), |_| add()).await?;
        Ok(Store::new(self.core.clone(), store))
    }

    /// A store that is there.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open_store(&self, name: &str) -> Result<Store> {
        self.core.check_open()?;
        let stores = self.core.stores.read();
        let store = stores.iter().find(|store| store.name == name);
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no store {name:?}"));
        Ok(Store::new(self.core.clone(), store.ok_or_else(missing)?.clone()))
    }

    /// Deletes a store with all that it holds.
    ///
    /// # Errors
    /// `NotFound`, `ReadOnly`, `Device`.
    pub async fn drop_store(&self, name: &str) -> Result<()> {
        let store = self.open_store(name)?;
        let writing = self.core.writing()?;
        let state = store.state();
        if state.is_dropped.swap(true, Ordering::AcqRel) {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no store {name:?}")));
        }
        let remove = || self.core.stores.write().retain(|other| other.no != state.no);
        let record = crate::manifest::Record::StoreDropped { no: state.no };
        writing.manifest.append(&[record], |_| remove()).await
    }

    /// The stores' names, in order of their making.
    pub fn stores(&self) -> Vec<String> {
        self.core.stores.read().iter().map(|store| store.name.clone()).collect()
    }

    /// Writes all of a batch or nothing of it.
    ///
    /// # Errors
    /// `InvalidInput` for keys or values that are too long, `NoSpace`, `ReadOnly`, `Poisoned`, `Device`.
    pub async fn write(&self, batch: Batch, options: &WriteOptions) -> Result<()> {
        self.core.write(batch, options).await
    }

    /// What is there now, to be read later.
    pub fn snapshot(&self) -> Snapshot {
        self.core.snapshots.take()
    }

    /// Begins a transaction.
    pub fn begin(&self, isolation: Isolation) -> Transaction {
        Transaction::new(&self.core, isolation)
    }

    /// Returns when all that was written before is durable.
    ///
    /// # Errors
    /// `Device`, `Poisoned`.
    pub async fn sync(&self) -> Result<()> {
        let writing = self.core.writing()?;
        writing.log.sync_to(writing.log.end()).await
    }
}
