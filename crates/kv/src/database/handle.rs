//! The handle of an open database.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::cache::Owner;
use crate::database::commit::batch::Batch;
use crate::database::core::Core;
use crate::database::records::{check_name, store_records};
use crate::database::snapshot::Snapshot;
use crate::database::state::store_state::StoreState;
use crate::database::store::Store;
use crate::memory::Memtable;
use crate::settings::{DatabaseSettings, StoreSettings, WriteOptions};
use crate::transaction::{Isolation, Transaction};
use crate::{Error, ErrorKind, Result};

/// Most names of stores in a message.
const MAX_NAMED_STORES: usize = 5;

/// A handle of an open database. Cheap to clone; [`close`](Self::close) it at the end.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"key", b"value").await?;
/// database.sync().await?; // durable from here on
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) core: Arc<Core>,
}

impl Database {
    /// Its name.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// assert_eq!(database.name(), "shop");
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn name(&self) -> &str {
        &self.core.shared.name
    }

    /// Its settings as they are now, those included that it was opened with.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// assert_eq!(database.settings().waiting_tables, 4);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn settings(&self) -> DatabaseSettings {
        (*self.core.shared.settings()).clone()
    }

    /// Makes everything durable and stops the background work. Handles are of no use afterwards, and the database can
    /// be opened again; where a bulk load or a compaction is under way still, as soon as that is dropped. Closed again,
    /// it says the same again.
    ///
    /// ```
    /// use tanada_kv::ErrorKind;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// database.close().await?;
    /// assert_eq!(store.get(b"key").await.unwrap_err().kind(), ErrorKind::Closed);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    pub async fn close(&self) -> Result<()> {
        self.core.shared.is_closed.store(true, Ordering::Release);
        // A concurrent close waits for the same end, or takes it over if the first caller was dropped.
        let mut ended = self.core.ended.lock().await;
        if let Some(ended) = &*ended {
            return ended.clone();
        }
        let done = match &self.core.shared.writing {
            Some(writing) => self.core.end(writing).await,
            None => Ok(()),
        };
        self.core.memory.blocks.close();
        self.core.shared.claim.lock().take();
        *ended = Some(done.clone());
        done
    }

    /// Stops the background work and leaves everything as it is: what a stop of the process would leave. Handles are of
    /// no use afterwards.
    #[doc(hidden)]
    pub async fn abandon(&self) {
        self.core.shared.is_closed.store(true, Ordering::Release);
        if let Some(writing) = &self.core.shared.writing {
            writing.log.fail(&Error::new(ErrorKind::Closed, "the database was abandoned"));
            self.core.shared.end_background().await;
            writing.log.ended().await;
            self.core.refuse_changes(writing).await;
        }
        self.core.shared.claim.lock().take();
        *self.core.ended.lock().await = Some(Ok(()));
    }

    /// Makes a store.
    ///
    /// ```
    /// use tanada_kv::{Compression, StoreSettings};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// let settings = StoreSettings { compression: Compression::Lz4, ..StoreSettings::default() };
    /// let orders = database.create_store("orders", &settings).await?;
    /// orders.put(b"1", b"rice").await?;
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidInput`, `NoSpace`, `ReadOnly`, `Device`.
    pub async fn create_store(&self, name: &str, settings: &StoreSettings) -> Result<Store> {
        self.core.shared.classes.check(&settings.policy)?;
        self.add_store(name, settings).await
    }

    /// The same, though classes that the policy names may have gone.
    pub(crate) async fn add_store(&self, name: &str, settings: &StoreSettings) -> Result<Store> {
        check_name(name)?;
        settings.check()?;
        let writing = self.core.shared.writing()?;
        let exists = || Error::new(ErrorKind::AlreadyExists, format!("there is a store {name:?} already"));
        let no = {
            let stores = self.core.shared.stores.read();
            if stores.iter().any(|store| store.name == name) {
                return Err(exists());
            }
            self.core.next_store.fetch_add(1, Ordering::Relaxed)
        };
        let table_no = self.core.committer.next_table.fetch_add(1, Ordering::Relaxed);
        let add = || {
            // A replay may have to begin with this table, and it begins with a group.
            let start = {
                let _commit = self.core.committer.commit.lock();
                writing.log.cut()
            };
            let mut stores = self.core.shared.stores.write();
            let table = Memtable::new(table_no, start, &self.core.memory.blocks);
            let tree = crate::tree::TreeState::default();
            let owner = Owner::next(&self.core.shared.opener.cache);
            let store = StoreState::new(self.core.shared.instance, no, name, settings, (table, tree), owner);
            stores.push(store.clone());
            store
        };
        let store = writing.manifest.append(store_records(no, name, settings), |_| add()).await?;
        Ok(Store::new(self.core.clone(), store))
    }

    /// A store that is there.
    ///
    /// ```
    /// use tanada_kv::ErrorKind;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// assert_eq!(database.open_store("lines")?.name(), "lines");
    /// assert_eq!(database.open_store("no such").unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open_store(&self, name: &str) -> Result<Store> {
        self.core.shared.check_open()?;
        let stores = self.core.shared.stores.read();
        let store = stores.iter().find(|store| store.name == name);
        let missing = || {
            let others: Vec<_> =
                stores.iter().take(MAX_NAMED_STORES).map(|store| format!("{:?}", store.name)).collect();
            let more = if stores.len() > MAX_NAMED_STORES { " and others" } else { "" };
            let has = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
            let message = format!(
                "there is no store {name:?} in database {:?}, which has {has}{more}",
                self.core.shared.name
            );
            Error::new(ErrorKind::NotFound, message)
        };
        Ok(Store::new(self.core.clone(), store.ok_or_else(missing)?.clone()))
    }

    /// Deletes a store with all that it holds. It ends though the future is dropped: what others write to
    /// the store meanwhile is not to be acknowledged and gone at the next opening.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// database.drop_store("lines").await?;
    /// assert!(database.stores().is_empty());
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `ReadOnly`, `NoSpace`, `Device`.
    pub async fn drop_store(&self, name: &str) -> Result<()> {
        let store = self.open_store(name)?;
        self.core.shared.writing()?;
        let (dropped, told) = futures::channel::oneshot::channel();
        let core = self.core.clone();
        let task = async move {
            // A concurrent close waits for it.
            if let Some(writing) = &core.shared.writing {
                let _ = dropped.send(core.jobs.installer.drop_store(writing, store.state()).await);
            }
        };
        self.core.shared.background.spawn(&*self.core.shared.environment, task);
        let gone = |_| Err(Error::new(ErrorKind::Closed, "the task that drops the store has gone"));
        told.await.unwrap_or_else(gone)
    }

    /// The stores' names, in order of their making.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// assert_eq!(database.stores(), ["lines"]);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn stores(&self) -> Vec<String> {
        self.core.shared.stores.read().iter().map(|store| store.name.clone()).collect()
    }

    /// Writes all of a batch or nothing of it.
    ///
    /// ```
    /// use tanada_kv::{Batch, WriteOptions};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// let mut batch = Batch::new();
    /// batch.put(&store, b"1", b"rice");
    /// batch.put(&store, b"2", b"tea");
    /// database.write(batch, &WriteOptions::sync()).await?;
    /// assert_eq!(store.get(b"2").await?.as_deref(), Some(&b"tea"[..]));
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for keys or values that are too long, `NoSpace`, `ReadOnly`, `Poisoned`, `Device`.
    pub async fn write(&self, batch: Batch, options: &WriteOptions) -> Result<()> {
        self.core.committer.write(batch, options).await
    }

    /// Takes a snapshot of the present state.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// store.put(b"key", b"old").await?;
    /// let snapshot = database.snapshot();
    /// store.put(b"key", b"new").await?;
    /// assert_eq!(store.get_at(&snapshot, b"key").await?.as_deref(), Some(&b"old"[..]));
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        self.core.shared.snapshots.take()
    }

    /// Begins a transaction.
    ///
    /// ```
    /// use tanada_kv::{Isolation, WriteOptions};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// let mut transaction = database.begin(Isolation::Serializable);
    /// if transaction.get(&store, b"seat 4").await?.is_none() {
    ///     transaction.put(&store, b"seat 4", b"mine");
    /// }
    /// transaction.commit(&WriteOptions::default()).await?;
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn begin(&self, isolation: Isolation) -> Transaction {
        Transaction::new(&self.core, isolation)
    }

    /// Returns when all that was written before is durable.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// store.put(b"key", b"value").await?; // durable within 100 ms
    /// database.sync().await?; // durable now
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `Device`, `Poisoned`.
    pub async fn sync(&self) -> Result<()> {
        let writing = self.core.shared.writing()?;
        writing.log.sync_to(writing.log.end()).await
    }
}
