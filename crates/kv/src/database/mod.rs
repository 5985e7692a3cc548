//! An open database.
//!
//! - [`core`]: the state that all handles share; the paths of writes and reads;
//! - [`open`]: creating, opening and recovering;
//! - [`background`]: the tasks of an open database; [`flush`]: flushes of memtables; [`packing`]: flushes that rewrite
//!   values; [`deletion`]: deletes obsolete objects;
//! - [`scheduler`]: the table of maintenance tasks; [`jobs`]: runs tree jobs; [`pick`]: which job is next; [`install`]:
//!   installs their edits; [`merges`]: merges at the root; [`tombstones`]: tombstone and TTL compactions;
//!   [`low_space`]: compactions when no other job finds space;
//!   [`relocation`]: placement repair; [`promotion`]: copies of hot values;
//! - [`mirrors`]: which segments stay on the fastest class as mirrors; [`remirroring`]: which values get mirrors again;
//! - [`memory_budget`]: divides the memory between memtables, jobs and the cache; [`size_limits`]: bounds of segments
//!   and leaves in small classes; [`reservation`]: free space that is reserved for deletes; [`write_stall`]: delays
//!   writers;
//! - [`bulk`], [`checkpoint`], [`check`]: bulk loads, copies of a database, verification of all its bytes;
//! - [`activity`], [`statistics`]: counters over the life of a database, and its present state;
//! - [`batch`], [`store`], [`snapshot`]: the handles of users;
//! - [`live`], [`settings`]: settings and their changes; [`coop`]: cooperative scheduling;
//! - [`conflict`]: what transactions know of each other's writes.

mod activity;
mod background;
mod batch;
mod bulk;
mod check;
mod checkpoint;
pub(crate) mod conflict;
mod coop;
pub(crate) mod core;
mod deletion;
mod flush;
mod install;
mod job_memory;
mod jobs;
mod last_writes;
mod limit;
mod live;
mod low_space;
mod memory_budget;
mod merges;
mod mirror_worth;
mod mirrors;
mod open;
mod packing;
mod pick;
mod promotion;
mod relocation;
mod remirroring;
mod reservation;
mod scheduler;
mod settings;
mod size_limits;
pub(crate) mod snapshot;
mod statistics;
pub(crate) mod store;
mod tombstones;
mod write_stall;

use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use activity::Activity;
pub use batch::Batch;
pub(crate) use batch::behind_prefix;
pub use bulk::BulkLoad;
pub use check::CheckReport;
pub use snapshot::Snapshot;
pub use statistics::{ClassStatistics, JobStatistics, StallStatistics, Statistics, StoreStatistics};
pub use store::Store;

use crate::cache::Owner;
use crate::memory::Memtable;
use crate::settings::{DatabaseSettings, StoreSettings, WriteOptions};
// As `super::sync`, for modules that are built with others, too.
use crate::sync;
use crate::transaction::{Isolation, Transaction};
use crate::{Error, ErrorKind, Result};
use core::Core;
use store::StoreState;

/// Most names of stores in a message.
const MAX_NAMED_STORES: usize = 5;

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

    /// Its settings as they are now, those included that it was opened with.
    pub fn settings(&self) -> DatabaseSettings {
        (*self.core.settings()).clone()
    }

    /// Makes everything durable and stops the background work. Handles are of no use afterwards, and the database can
    /// be opened again; where a bulk load or a compaction is under way still, as soon as that is dropped. Closed again,
    /// it says the same again.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub async fn close(&self) -> Result<()> {
        self.core.is_closed.store(true, Ordering::Release);
        // A concurrent close waits for the same end, or takes it over if the first caller was dropped.
        let mut ended = self.core.ended.lock().await;
        if let Some(ended) = &*ended {
            return ended.clone();
        }
        let done = match &self.core.writing {
            Some(writing) => self.core.end(writing).await,
            None => Ok(()),
        };
        self.core.memory.blocks.close();
        self.core.claim.lock().take();
        *ended = Some(done.clone());
        done
    }

    /// Stops the background work and leaves everything as it is: what a stop of the process would leave. Handles are of
    /// no use afterwards.
    #[doc(hidden)]
    pub async fn abandon(&self) {
        self.core.is_closed.store(true, Ordering::Release);
        if let Some(writing) = &self.core.writing {
            writing.log.fail(&Error::new(ErrorKind::Closed, "the database was abandoned"));
            self.core.end_background().await;
            writing.log.ended().await;
            self.core.refuse_changes(writing).await;
        }
        self.core.claim.lock().take();
        *self.core.ended.lock().await = Some(Ok(()));
    }

    /// Makes a store.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidInput`, `NoSpace`, `ReadOnly`, `Device`.
    pub async fn create_store(&self, name: &str, settings: &StoreSettings) -> Result<Store> {
        self.core.classes.check(&settings.policy)?;
        self.add_store(name, settings).await
    }

    /// The same, though classes that the policy names may have gone.
    async fn add_store(&self, name: &str, settings: &StoreSettings) -> Result<Store> {
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
            // A replay may have to begin with this table, and it begins with a group.
            let start = {
                let _commit = self.core.commit.lock();
                writing.log.cut()
            };
            let mut stores = self.core.stores.write();
            let table = Memtable::new(table_no, start, &self.core.memory.blocks);
            let tree = crate::tree::TreeState::default();
            let owner = Owner::next(&self.core.opener.cache);
            let store = StoreState::new(self.core.instance, no, name, settings, (table, tree), owner);
            stores.push(store.clone());
            store
        };
        let store = writing.manifest.append(open::store_records(no, name, settings), |_| add()).await?;
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
        let missing = || {
            let others: Vec<_> =
                stores.iter().take(MAX_NAMED_STORES).map(|store| format!("{:?}", store.name)).collect();
            let more = if stores.len() > MAX_NAMED_STORES { " and others" } else { "" };
            let has = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
            let message =
                format!("there is no store {name:?} in database {:?}, which has {has}{more}", self.core.name);
            Error::new(ErrorKind::NotFound, message)
        };
        Ok(Store::new(self.core.clone(), store.ok_or_else(missing)?.clone()))
    }

    /// Deletes a store with all that it holds. It ends though the future is dropped: what others write to
    /// the store meanwhile is not to be acknowledged and gone at the next opening.
    ///
    /// # Errors
    /// `NotFound`, `ReadOnly`, `NoSpace`, `Device`.
    pub async fn drop_store(&self, name: &str) -> Result<()> {
        let store = self.open_store(name)?;
        self.core.writing()?;
        let (dropped, told) = futures::channel::oneshot::channel();
        let core = self.core.clone();
        let task = async move {
            // A concurrent close waits for it.
            if let Some(writing) = &core.writing {
                let _ = dropped.send(core.drop_store(writing, store.state()).await);
            }
        };
        self.core.background.spawn(&*self.core.environment, task);
        let gone = |_| Err(Error::new(ErrorKind::Closed, "the task that drops the store has gone"));
        told.await.unwrap_or_else(gone)
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

    /// Takes a snapshot of the present state.
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
