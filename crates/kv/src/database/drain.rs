//! Emptying a class of the volume while the database is in use.

use tanada_volume::{Relocated, Relocation};

use crate::database::core::Core;
use crate::database::handle::Database;
use crate::database::mirrors::eviction::Trim;
use crate::{Error, Result};

impl Database {
    /// Empties a class of the volume while it is in use, so that
    /// [`Volume::remove_class`](tanada_volume::Volume::remove_class) can take it away. It is
    /// [`Volume::drain_class`](tanada_volume::Volume::drain_class): whatever lies there is moved, other databases'
    /// objects too, and nothing new goes there, from now on and until `fill_class`. Policies that name the class or
    /// mean it take the next slower one, or a faster one, instead.
    ///
    /// # Errors
    /// `NotFound`; `NoSpace` if the other classes cannot take all of it: what was moved stays moved, and nothing goes
    /// to the class until [`Volume::fill_class`](tanada_volume::Volume::fill_class); `ReadOnly`, `Device`.
    pub async fn drain_class(&self, class: &str) -> Result<Relocated> {
        self.core.drain_class(class).await
    }
}

impl Core {
    /// Empties a class of the volume.
    async fn drain_class(&self, class: &str) -> Result<Relocated> {
        let writing = self.shared.writing()?;
        let relocation = Relocation {
            who: format!("kv/{}", self.shared.name),
            why: "the class is drained".to_owned(),
            ..Relocation::default()
        };
        let has_mirrors =
            self.shared.classes.is_log_on(class) || self.shared.classes.fastest().as_deref() == Some(class);
        if has_mirrors {
            self.jobs.mirrors.trim_mirrors(writing, Trim::All).await?;
        }
        let volume = self.shared.objects.volume();
        let drained = volume.drain_class(class, &relocation).await;
        // Policies may now want other classes than those that data were moved to.
        self.shared.background.work.notify();
        drained.map_err(|error| Error::volume(format!("cannot empty class {class:?}"), &error))
    }
}
