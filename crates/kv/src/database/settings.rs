//! Changing settings of what is open.
//!
//! 1. Changes are made one after the other, under the manifest's lock: each is put over what is there then, so that two
//!    at once both count.
//! 2. What comes of it is checked as a whole; if anything is wrong, nothing is changed.
//! 3. One record of the manifest has all settings of the database or the store. When it is durable, they are those of
//!    whatever begins from now on.
//! 4. Whoever was stalled by those before, or may have something to do now, looks again.

use std::sync::Arc;

use crate::database::core::Core;
use crate::database::handle::Database;
use crate::database::state::store_state::StoreState;
use crate::manifest::{DatabaseRecord, Record};
use crate::settings::{DatabaseSettings, StoreSettings};
use crate::{DatabaseOverrides, Error, Result, StoreOverrides};

impl Database {
    /// Changes settings, for good and while the database is in use; what is not named stays. `fast_class_bytes`,
    /// `durability`, `waiting_tables`, `slow_root_kvsets`, `most_root_kvsets`, `log_replay_bytes` and
    /// `manifest_bytes` can be changed so. When the limit of the fastest class is lowered, what lies there beyond it
    /// leaves beside other work, and a segment of the log that is being filled when it is full.
    ///
    /// ```
    /// use tanada_kv::{DatabaseOverrides, Durability};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// let change = DatabaseOverrides { durability: Some(Durability::Within(10)), ..DatabaseOverrides::default() };
    /// database.set_settings(&change).await?;
    /// assert_eq!(database.settings().durability, Durability::Within(10));
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for what is wrong, or can be changed at an opening alone; then nothing is changed. `NoSpace`,
    /// `ReadOnly`, `Device`.
    pub async fn set_settings(&self, changes: &DatabaseOverrides) -> Result<()> {
        self.core.set_settings(changes).await
    }
}

/// Refuses what is laid out when a database is opened.
fn check_fixed(now: &DatabaseSettings, wanted: &DatabaseSettings) -> Result<()> {
    const MEMORY: &str = "memory is shared out";
    const LOG: &str = "the log is laid out";
    let fixed = [
        ("memory_bytes", now.memory_bytes == wanted.memory_bytes, MEMORY),
        ("memory_table_bytes", now.memory_table_bytes == wanted.memory_table_bytes, MEMORY),
        ("log_segment_bytes", now.log_segment_bytes == wanted.log_segment_bytes, LOG),
        ("log_group_bytes", now.log_group_bytes == wanted.log_group_bytes, LOG),
        ("log_class", now.log_class == wanted.log_class, LOG),
        ("concurrent_jobs", now.concurrent_jobs == wanted.concurrent_jobs, "the tasks for jobs are started"),
    ];
    match fixed.iter().find(|(_, stays, _)| !stays) {
        Some((name, _, why)) => Err(Error::invalid(format!(
            "settings of a database: {name} cannot be changed while it is open, for {why} at its opening: name it there"
        ))),
        None => Ok(()),
    }
}

impl Core {
    /// Changes settings of the database; see the module's head.
    async fn set_settings(&self, changes: &DatabaseOverrides) -> Result<()> {
        let writing = self.shared.writing()?;
        let mut refused = None;
        let make = || {
            let before = self.shared.settings();
            let settings = changes.over(&before);
            let checked = settings.check().and_then(|()| check_fixed(&before, &settings));
            refused = checked.err();
            let is_made = refused.is_none() && settings != *before;
            is_made.then(|| vec![Record::Settings(Box::new(settings))])
        };
        let take = |state: &DatabaseRecord| {
            let before = self.shared.settings();
            self.shared.live.set(state.settings.clone());
            before
        };
        let Some(before) = writing.manifest.append_made(&[], make, take).await? else {
            return refused.map_or(Ok(()), Err);
        };
        if before.fast_class_bytes != self.shared.settings().fast_class_bytes {
            if self.space.limit_changed(writing) {
                {
                    let _commit = self.committer.commit.lock();
                    let stores = self.shared.stores.read().clone();
                    self.committer.close_tables(writing, &stores);
                }
                // The segment that the log has ready is to lie elsewhere.
                writing.log.give_back_ready();
            }
            self.space.delete_retired().await?;
        }
        let stores = self.shared.stores.read().clone();
        self.committer.update_pressure(&stores);
        self.shared.background.progress.notify();
        self.shared.background.work.notify();
        Ok(())
    }

    /// Changes settings of a store.
    pub(crate) async fn set_store_settings(
        &self,
        store: &Arc<StoreState>,
        changes: &StoreOverrides,
    ) -> Result<()> {
        let writing = self.shared.writing()?;
        let mut refused = None;
        let make = || {
            let before = store.settings();
            let settings = changes.over(&before);
            refused = self.check_settings(store, &before, &settings).err();
            let is_made = refused.is_none() && settings != *before;
            is_made.then(|| vec![Record::StoreSettings { no: store.no, settings: Box::new(settings) }])
        };
        let take = |state: &DatabaseRecord| {
            if let Some(record) = state.stores.get(&store.no) {
                store.set_settings(&record.settings);
            }
        };
        if writing.manifest.append_made(&[], make, take).await?.is_none() {
            return refused.map_or(Ok(()), Err);
        }
        self.space.note_reserve();
        store.hold_filters(&self.shared.background).await;
        self.shared.background.work.notify();
        Ok(())
    }

    fn check_settings(
        &self,
        store: &StoreState,
        before: &StoreSettings,
        settings: &StoreSettings,
    ) -> Result<()> {
        store.check_there()?;
        settings.check()?;
        // A class that a policy names may have gone since it was set.
        if settings.policy != before.policy { self.shared.classes.check(&settings.policy) } else { Ok(()) }
    }
}
