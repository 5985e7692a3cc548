//! Where the session's queries spill.

use std::path::Path;
use std::sync::Arc;

use tanada_io::{Executors, Method};

use super::Session;
use crate::spill::{Place, SpillSpace};
use crate::{Error, ErrorKind, Result};

/// What `tanada.spill` begins with if it names a volume.
const VOLUME: &str = "volume:";

/// The space of a new session: the folder for temporary files.
pub(super) fn space(executors: &Arc<Executors>, method: Method, memory_bytes: u64) -> Arc<SpillSpace> {
    let place = Place::Folder { path: std::env::temp_dir(), method };
    Arc::new(SpillSpace::new(Arc::clone(executors), place, memory_bytes))
}

impl Session {
    /// Queries spill there from now on.
    ///
    /// # Errors
    /// If nothing can be written there.
    pub(super) async fn set_spill(&self, value: &str) -> Result<()> {
        let environment = &self.shared.environment;
        let place = match value.strip_prefix(VOLUME) {
            Some(named) => self.volume_place(named).await?,
            None if value.is_empty() => Place::folder(&std::env::temp_dir(), environment.method)?,
            None => Place::folder(Path::new(value), environment.method)?,
        };
        self.shared.spill.set_place(place);
        Ok(())
    }

    /// Leaves the volume in which queries spilled.
    ///
    /// # Errors
    /// If what is left there cannot be deleted.
    pub(super) async fn leave_spill(&self) -> Result<()> {
        let environment = &self.shared.environment;
        let folder = Place::Folder { path: std::env::temp_dir(), method: environment.method };
        self.shared.spill.set_place(folder).leave(&environment.executors).await
    }

    /// A volume that is mounted, and the class behind its path.
    async fn volume_place(&self, named: &str) -> Result<Place> {
        let volumes = self.shared.volumes.read().clone();
        let found = volumes.iter().find_map(|directory| {
            let is_named = |path: &str| same_folder(directory.path(), Path::new(path));
            match named.rsplit_once(':') {
                _ if is_named(named) => Some((directory, None)),
                Some((path, class)) if is_named(path) => Some((directory, Some(class))),
                _ => None,
            }
        });
        let Some((directory, class)) = found else {
            let message =
                format!("tanada.spill: no volume {named} is mounted; mount it, or name a folder to spill to");
            return Err(Error::new(ErrorKind::NotFound, message));
        };
        Place::volume(Arc::clone(directory), class, &self.shared.environment.executors).await
    }
}

/// Whether both paths are of one folder.
fn same_folder(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}
