//! The handle of a store.

use std::fmt;
use std::sync::Arc;

use crate::database::core::Core;
use crate::database::snapshot::Snapshot;
use crate::database::state::store_state::StoreState;
use crate::entry::SequenceNo;
use crate::settings::StoreSettings;
use crate::{Error, Result};

/// A handle of a store. Cheap to clone.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"2026-01-01/1", b"rice").await?;
/// assert_eq!(store.get(b"2026-01-01/1").await?.as_deref(), Some(&b"rice"[..]));
/// assert_eq!(store.get(b"2026-01-02/1").await?, None);
/// # Ok(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Store {
    core: Arc<Core>,
    state: Arc<StoreState>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("name", &self.state.name).finish_non_exhaustive()
    }
}

impl Store {
    pub(crate) fn new(core: Arc<Core>, state: Arc<StoreState>) -> Store {
        Store { core, state }
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn state(&self) -> &Arc<StoreState> {
        &self.state
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Its settings as they are now.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// assert_eq!(store.settings().separate_from_bytes, 256);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn settings(&self) -> StoreSettings {
        (*self.state.settings()).clone()
    }

    pub(crate) fn sequence_of(&self, snapshot: &Snapshot) -> Result<SequenceNo> {
        if !snapshot.is_of(&self.core.shared.snapshots) {
            return Err(Error::invalid("the snapshot is of another database, or of an earlier opening"));
        }
        Ok(snapshot.sequence())
    }
}
