//! Copying a database while it is in use.
//!
//! The copy has what one snapshot sees, in all stores, bulk loads that ended before among it and no others: it is
//! loaded, sorted, into a new database, without the garbage and the history of the old one. What expires does so at the
//! same time in both.

use crate::tuning::space::MEMORY;
use std::sync::Arc;

use crate::database::handle::Database;
use crate::database::snapshot::Snapshot;
use crate::database::stats::statistics::Statistics;
use crate::database::store::Store;
use crate::environment::Environment;
use crate::manifest::{DatabaseRecord, Record};
use crate::opening::OpenOptions;
use crate::settings::{Compression, DatabaseSettings};
use crate::transaction::CursorOptions;
use crate::{Error, ErrorKind, Result};

impl Database {
    /// Copies the database as it is now, all stores at one moment, to another name in the volume, while it is in use.
    /// What cannot fit in whatever jobs free is refused before anything is copied. If it fails, what there is of the
    /// copy is deleted. A store that is dropped meanwhile may be missing. After a stop in between there is no database
    /// of that name, and it can be copied there again.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// store.put(b"key", b"value").await?;
    /// database.checkpoint("copy of shop").await?;
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists`, or `Locked` while such a copy is being made; `InvalidInput`, `NoSpace`, `Corrupted`, `Device`.
    pub async fn checkpoint(&self, name: &str) -> Result<()> {
        self.core.shared.check_open()?;
        let volume = self.core.shared.objects.volume().clone();
        let environment: Arc<dyn Environment> = self.core.shared.environment.clone();
        let (stores, snapshot) = self.stores_at_a_moment();
        let settings = self.settings();
        let crash = self.core.shared.crash.clone();
        // The copy has no readers yet, and has memory beside the original's.
        let memory_bytes = (settings.memory_bytes / MEMORY.memory_divisor).max(MEMORY.min_memory_bytes);
        let for_copying = DatabaseSettings { memory_bytes, ..settings };
        let state =
            DatabaseRecord { settings: for_copying, is_unfinished: true, ..DatabaseRecord::default() };
        let copy = Database::make(&volume, name, state, crash, environment.clone()).await?;
        let copied = match self.check_room(&stores, &snapshot).await {
            Ok(()) => self.copy_to(&copy, &stores, &snapshot).await,
            refused => refused,
        };
        let closed = copy.close().await;
        let done = copied.and(closed);
        if done.is_err() {
            // The first error is the one to report.
            let _ = Database::destroy(&volume, name, environment).await;
        }
        done
    }

    /// All stores that there are, and what is in them.
    fn stores_at_a_moment(&self) -> (Vec<Store>, Snapshot) {
        // None comes or goes meanwhile.
        let stores = self.core.shared.stores.read();
        let handles = stores.iter().map(|store| Store::new(self.core.clone(), store.clone())).collect();
        (handles, self.snapshot())
    }

    /// Fails if the copy cannot fit in, even if all went that the snapshot does not see. Less may be free for other
    /// reasons: then the copy finds out.
    async fn check_room(&self, stores: &[Store], snapshot: &Snapshot) -> Result<()> {
        let Statistics { bytes_in_use, bytes_allocated, stores: of_stores, .. } = self.statistics();
        let (free, _) = self.core.shared.objects.room();
        // The original stays, so the copy can be at most half of all this.
        let most = (free + bytes_allocated) / 2;
        let logged: u64 = of_stores.iter().map(|store| store.logged_bytes).sum();
        if bytes_in_use + logged <= most {
            return Ok(());
        }
        // Much of that may be obsolete.
        let mut needed = 0;
        for store in stores {
            if store.settings().compression != Compression::None {
                continue;
            }
            let options = CursorOptions { snapshot: Some(snapshot.clone()), ..CursorOptions::default() };
            needed += match store.cursor(options).value_bytes(most - needed).await {
                Err(_) if store.state().check_there().is_err() => 0,
                bytes => bytes?,
            };
            if needed > most {
                let message = format!(
                    "the copy takes more than {} MiB, half of what is free ({} MiB) and what the database takes up ({} MiB): \
                     delete something, or enlarge a class",
                    most >> 20,
                    free >> 20,
                    bytes_allocated.div_ceil(1 << 20),
                );
                return Err(Error::new(ErrorKind::NoSpace, message));
            }
        }
        Ok(())
    }

    async fn copy_to(&self, copy: &Database, stores: &[Store], snapshot: &Snapshot) -> Result<()> {
        for store in stores {
            let name = &store.state().name;
            let target = copy.add_store(name, &store.settings()).await?;
            match copy_store(store, &target, snapshot).await {
                // The store was dropped meanwhile, and its data may be deleted.
                Err(_) if store.state().check_there().is_err() => copy.drop_store(name).await?,
                copied => copied?,
            }
        }
        // CRASH: there is no copy; what there is of it can be destroyed, and makes way for another one.
        self.core.shared.crash.reached("checkpoint.before-manifest");
        let settings = Record::Settings(Box::new(self.settings()));
        copy.core.shared.writing()?.manifest.append(vec![settings, Record::Unfinished(false)], |_| ()).await
    }
}

async fn copy_store(store: &Store, target: &Store, snapshot: &Snapshot) -> Result<()> {
    let mut load = target.bulk_load().await?;
    let options = CursorOptions { snapshot: Some(snapshot.clone()), ..CursorOptions::default() };
    let mut cursor = store.cursor(options);
    while let Some(entry) = cursor.next_entry().await? {
        load.put_expiring(&entry.key, &entry.value, entry.expires_s).await?;
    }
    load.finish().await?;
    Ok(())
}

impl OpenOptions {
    /// Options that change nothing.
    ///
    /// ```
    /// use tanada_kv::OpenOptions;
    ///
    /// assert!(OpenOptions::read_only().read_only);
    /// ```
    pub fn read_only() -> OpenOptions {
        OpenOptions { read_only: true, ..OpenOptions::default() }
    }
}
