//! Files of other formats (Parquet, CSV, JSON) as objects: plain folders and the objects of a volume.
//!
//! 1. A [`Medium`] opens, lists, writes and removes files: [`Folders`] those of the host, [`VolumeObjects`] those of a
//!    tiered volume. Names are paths without a leading slash.
//! 2. A [`FileStore`] is a medium as one operator reads it: ranges that lie close together become one read
//!    ([`ranges`]), reads are cut into pieces that are in flight at once ([`read`]), and each piece goes through the
//!    query's gate, its counters and its observers. Files are opened once and stay what they were: a file that changes
//!    while it is open is an error.
//! 3. What is written goes to a temporary name, and gets its own when it is complete and durable ([`upload`]).
//! 4. [`FileStore`] is an [`ObjectStore`](object_store::ObjectStore), too ([`object`]).

mod folder;
mod medium;
mod object;
mod ranges;
mod read;
mod upload;
mod volume;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tanada_io::{Executors, Gate, GateLimits, IoContext, JoinHandle};

pub use folder::Folders;
pub(crate) use medium::changed;
pub use medium::{Entry, Identity, Medium, Opened, Target};
pub use upload::Upload;
pub use volume::VolumeObjects;

use crate::{Error, ErrorKind, Result};

/// Bytes in flight of what no query reads.
const UNWATCHED_BYTES: usize = 64 << 20;

/// The files of a medium as one operator reads them. Cheap to clone; clones share the open files.
#[derive(Debug, Clone)]
pub struct FileStore {
    medium: Arc<dyn Medium>,
    executors: Arc<Executors>,
    io: IoContext,
    open: Arc<Mutex<HashMap<String, Arc<Opened>>>>,
}

/// Ranges of a file that are being read.
pub type Reading = JoinHandle<Result<Vec<Bytes>>>;

impl FileStore {
    /// The files of `medium`, read through `io` on `executors`.
    pub fn new(medium: Arc<dyn Medium>, executors: Arc<Executors>, io: IoContext) -> FileStore {
        FileStore { medium, executors, io, open: Arc::default() }
    }

    /// The same with a gate of its own: for what is read outside of queries.
    pub fn unwatched(medium: Arc<dyn Medium>, executors: Arc<Executors>) -> FileStore {
        let gate = Gate::new(GateLimits { ios: None, bytes: UNWATCHED_BYTES });
        FileStore::new(medium, executors, IoContext::new(gate))
    }

    /// The same open files, read through `io`.
    pub fn through(&self, io: IoContext) -> FileStore {
        FileStore { io, ..self.clone() }
    }

    /// What the files lie on.
    pub fn medium(&self) -> &Arc<dyn Medium> {
        &self.medium
    }

    /// What observers of reads call a file.
    pub(crate) fn path_of(&self, name: &str) -> String {
        self.medium.path_of(name)
    }

    /// Threads that read.
    pub fn executors(&self) -> &Arc<Executors> {
        &self.executors
    }

    /// Opens a file, or gives it as it was opened before.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be opened.
    pub fn opened(&self, name: &str) -> Result<Arc<Opened>> {
        if let Some(opened) = self.open.lock().get(name) {
            return Ok(Arc::clone(opened));
        }
        let opened = Arc::new(self.medium.open(name, self.executors.method())?);
        Ok(Arc::clone(self.open.lock().entry(name.to_owned()).or_insert(opened)))
    }

    /// Closes a file, unless somebody reads it, so that it is opened anew when it is named again.
    pub(crate) fn forget(&self, name: &str) {
        self.open.lock().remove(name);
    }

    /// Starts to read `ranges` of a file. Dropping what it gives cancels the reads.
    ///
    /// # Errors
    /// If there is no such file, or a range does not lie in it.
    pub fn start_ranges(&self, name: &str, ranges: Vec<std::ops::Range<u64>>) -> Result<Reading> {
        let opened = self.opened(name)?;
        let end = ranges.iter().map(|range| range.end).max().unwrap_or(0);
        if end > opened.identity.bytes || ranges.iter().any(|range| range.start > range.end) {
            let message =
                format!("{} ends before byte {end}: it is cut off or damaged", opened.path.display());
            return Err(Error::new(ErrorKind::Data, message));
        }
        let (io, buffers) = (self.io.clone(), self.executors.buffers().clone());
        Ok(self.executors.spawn(move || async move {
            let read = read::ranges(&opened, &ranges, &buffers, &io).await;
            // Why a read failed is told by this first.
            opened.check_unchanged()?;
            read
        }))
    }

    /// Reads `ranges` of a file.
    ///
    /// # Errors
    /// As [`start_ranges`](Self::start_ranges), or if reading fails or the file has changed since it was opened.
    pub async fn read_ranges(&self, name: &str, ranges: Vec<std::ops::Range<u64>>) -> Result<Vec<Bytes>> {
        self.start_ranges(name, ranges)?.await?
    }

    /// Reads one range of a file.
    ///
    /// # Errors
    /// As [`read_ranges`](Self::read_ranges).
    pub async fn read_range(&self, name: &str, range: std::ops::Range<u64>) -> Result<Bytes> {
        Ok(self.read_ranges(name, vec![range]).await?.pop().unwrap_or_default())
    }

    /// Begins to write a file; it is there when [`Upload::commit`] has returned.
    ///
    /// # Errors
    /// If there is such a file already and it is not to be replaced, or its place cannot be written.
    pub async fn create(&self, name: &str, replaces: bool) -> Result<Upload> {
        let (medium, name) = (Arc::clone(&self.medium), name.to_owned());
        let target = self.executors.spawn(move || async move { medium.create(&name, replaces).await });
        Ok(Upload::new(target.await??, Arc::clone(&self.executors), self.io.clone()))
    }
}

impl fmt::Display for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.medium)
    }
}
