//! Copying a database while it is in use.
//!
//! The copy has what one snapshot sees, in all stores: it is loaded, sorted, into a new database, without the garbage and the history of the old one.
//! What expires does so at the same time in both.

use std::sync::Arc;

use super::Database;
use crate::Result;
use crate::environment::Environment;
use crate::settings::OpenOptions;
use crate::transaction::CursorOptions;

impl Database {
    /// Copies the database as it is now to another name in the volume, while it is in use. If it fails, what there is of the copy is deleted.
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidInput`, `NoSpace`, `Corrupted`, `Device`.
    pub async fn checkpoint(&self, name: &str) -> Result<()> {
        self.core.check_open()?;
        let volume = self.core.objects.volume().clone();
        let environment: Arc<dyn Environment> = self.core.environment.clone();
        let snapshot = self.snapshot();
        let settings = &self.core.settings;
        let crash = self.core.crash.clone();
        let copy = Database::create_with(&volume, name, settings, crash, environment.clone()).await?;
        let copied = self.copy_to(&copy, &snapshot).await;
        // CRASH: the copy is a database of its own; it is whole if this was reached.
        self.core.crash.reached("checkpoint.before-manifest");
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
        Ok(())
    }
}

impl OpenOptions {
    /// Options that change nothing.
    pub fn read_only() -> OpenOptions {
        OpenOptions { read_only: true, ..OpenOptions::default() }
    }
}
