//! Copying a database while it is in use.
//!
//! The copy has what one snapshot sees, in all stores, bulk loads that ended before among it and no others: it is loaded, sorted, into a new database, without the garbage and the history of the old one.
//! What expires does so at the same time in both.

use std::sync::Arc;

use super::Database;
use crate::Result;
use crate::environment::Environment;
use crate::manifest::{DatabaseRecord, Record};
use crate::settings::OpenOptions;
use crate::transaction::CursorOptions;

impl Database {
    /// Copies the database as it is now, all stores at one moment, to another name in the volume, while it is in use. If it fails, what there is of the copy is deleted; after a stop
    /// in between there is no database of that name, and it can be copied there again.
    ///
    /// # Errors
    /// `AlreadyExists`, or `Locked` while such a copy is being made; `InvalidInput`, `NoSpace`, `Corrupted`, `Device`.
    pub async fn checkpoint(&self, name: &str) -> Result<()> {
        self.core.check_open()?;
        let volume = self.core.objects.volume().clone();
        let environment: Arc<dyn Environment> = self.core.environment.clone();
        let snapshot = self.snapshot();
        let settings = &self.core.settings;
        let crash = self.core.crash.clone();
        let state =
            DatabaseRecord { settings: settings.clone(), is_unfinished: true, ..DatabaseRecord::default() };
        let copy = Database::make(&volume, name, state, crash, environment.clone()).await?;
        let copied = self.copy_to(&copy, &snapshot).await;
        let closed = copy.close().await;
        let done = copied.and(closed);
        if done.is_err() {
            // The first error is the one to report.
            let _ = Database::destroy(&volume, name, environment).await;
        }
        done
    }

    async fn copy_to(&self, copy: &Database, snapshot: &super::Snapshot) -> Result<()> {
        for name in self.stores() {
            let store = self.open_store(&name)?;
            let target = copy.create_store(&name, &store.settings()).await?;
            let mut load = target.bulk_load().await?;
            let options = CursorOptions { snapshot: Some(snapshot.clone()), ..CursorOptions::default() };
            let mut cursor = store.cursor(options);
            while let Some(entry) = cursor.next_entry().await? {
                load.put_expiring(&entry.key, &entry.value, entry.expires_s).await?;
            }
            load.finish().await?;
        }
        // CRASH: there is no copy; what there is of it can be destroyed, and makes way for another one.
        self.core.crash.reached("checkpoint.before-manifest");
        copy.core.writing()?.manifest.append(vec![Record::Unfinished(false)], |_| ()).await
    }
}

impl OpenOptions {
    /// Options that change nothing.
    pub fn read_only() -> OpenOptions {
        OpenOptions { read_only: true, ..OpenOptions::default() }
    }
}
