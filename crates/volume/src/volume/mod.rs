//! An open volume.
//!
//! - [`core`]: what all handles share; free space;
//! - [`claims`]: names that users claim;
//! - [`classes`]: adding, draining, removing and resizing classes;
//! - [`open`]: making a volume, opening one, recovering;
//! - [`namespace`]: objects by name;
//! - [`folders`]: folders and attributes of files;
//! - [`snapshot`]: the records of a checkpoint.

mod claims;
mod classes;
mod core;
mod folders;
mod listeners;
mod namespace;
mod open;
mod snapshot;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::join_all;

pub use self::claims::Claim;
pub use self::classes::ClassInfo;
pub(crate) use self::core::{Core, Reserved};
pub use self::folders::Folder;
pub use self::listeners::ClassListener;
pub(crate) use snapshot::MappingRuns;

use crate::{Object, Result};

/// A handle of an open volume. Cheap to clone.
///
/// ```
/// use tanada_volume::Attributes;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let object = volume.create_object("orders", &Attributes::default())?;
/// object.write_bytes(0, b"rice").await?;
/// object.sync().await?;
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Volume {
    pub(crate) core: Arc<Core>,
}

impl Volume {
    /// Claims a name among all who use this opening of the volume.
    ///
    /// ```
    /// use tanada_volume::ErrorKind;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let claim = volume.claim("kv/shop", true)?;
    /// assert_eq!(volume.claim("kv/shop", false).unwrap_err().kind(), ErrorKind::Locked);
    /// drop(claim);
    /// volume.claim("kv/shop", false)?;
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `Locked` if somebody has it, unless both share it.
    pub fn claim(&self, name: &str, is_exclusive: bool) -> Result<Claim> {
        self.core.claims.claim(name, is_exclusive)
    }

    /// The volume's id.
    pub fn id(&self) -> [u8; 16] {
        self.core.id
    }

    /// Bytes of a chunk.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// assert_eq!(volume.chunk_bytes(), 1 << 20);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn chunk_bytes(&self) -> u64 {
        self.core.chunk_bytes
    }

    /// Why nothing can be written, if so: it was opened read-only, a device is missing, or the metadata device failed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// assert!(volume.read_only_reason().is_none());
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn read_only_reason(&self) -> Option<crate::Error> {
        self.core.check_writable().err()
    }

    /// Whether it had been stopped cleanly when it was opened.
    pub fn was_clean(&self) -> bool {
        self.core.was_clean
    }

    /// Makes everything durable: data and metadata of all objects.
    ///
    /// ```
    /// use tanada_volume::Attributes;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// volume.create_object("a", &Attributes::default())?;
    /// volume.sync().await?; // its name is durable from here on
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`Object::sync`], of the first object that fails.
    pub async fn sync(&self) -> Result<()> {
        self.core.check_writable()?;
        let objects: Vec<Object> =
            self.objects().into_iter().filter(|object| object.has_unsynced()).collect();
        let synced: Result<()> = join_all(objects.iter().map(Object::sync)).await.into_iter().collect();
        synced?;
        self.core.commit(self.core.journal.end()).await
    }

    /// Writes a checkpoint now: statistics become durable, and the next opening reads no journal.
    ///
    /// # Errors
    /// If the metadata device fails.
    pub async fn checkpoint(&self) -> Result<()> {
        self.core.check_writable()?;
        self.core.journal.checkpoint(&*self.core).await?;
        self.core.reclaim();
        Ok(())
    }

    /// Makes everything durable and marks the volume as stopped cleanly. No handle takes writes afterwards.
    ///
    /// # Errors
    /// As [`sync`](Self::sync). The volume is not marked then.
    pub async fn close(&self) -> Result<()> {
        if self.core.read_only.is_some() {
            self.core.is_closed.store(true, Ordering::SeqCst);
            return Ok(());
        }
        self.sync().await?;
        self.core.is_closed.store(true, Ordering::SeqCst);
        // What was let in before that and is not durable may have gone behind the end of its object.
        for object in self.objects().into_iter().filter(Object::has_unsynced) {
            object.state.tail_is_stale.store(true, Ordering::SeqCst);
        }
        self.core.journal.checkpoint(&*self.core).await?;
        self.core.journal.close().await
    }
}
