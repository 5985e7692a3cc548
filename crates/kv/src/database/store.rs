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
