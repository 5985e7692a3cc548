//! What files lie on.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use futures::future::BoxFuture;
use tanada_io::{Device, Method};
use tanada_volume::Object;

use crate::{Error, ErrorKind, Result};

/// Where files are found and made. Names are paths without a leading slash.
pub trait Medium: fmt::Debug + fmt::Display + Send + Sync {
    /// What messages call the file.
    fn shown(&self, name: &str) -> String;

    /// What observers of reads call the file.
    fn path_of(&self, name: &str) -> String;

    /// Opens a file to read it; `method` is a wish.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be opened.
    fn open(&self, name: &str, method: Method) -> Result<Opened>;

    /// What lies directly in a folder, sorted by name.
    ///
    /// # Errors
    /// If there is no such folder, or it cannot be read.
    fn entries(&self, folder: &str) -> Result<Vec<Entry>>;

    /// Whether `name` is a folder.
    fn is_folder(&self, name: &str) -> bool;

    /// Begins to write a file under a temporary name.
    ///
    /// # Errors
    /// `InvalidInput` if there is such a file and `replaces` is false; if its place cannot be written.
    fn create<'a>(&'a self, name: &'a str, replaces: bool) -> BoxFuture<'a, Result<Box<dyn Target>>>;

    /// Removes a file.
    ///
    /// # Errors
    /// If there is none, or it cannot be removed.
    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>>;
}

/// A file that is being written; what was not committed is removed when it is dropped.
pub trait Target: fmt::Debug + Send {
    /// Where it is written: offsets and lengths are multiples of the device's alignment.
    fn device(&self) -> &Device;

    /// Makes what was written durable, cuts the file to `bytes`, and gives it its name.
    fn commit(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>>;
}

/// What lies in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the folder.
    pub name: String,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// Which version of which file it is: two that are equal have the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The file's number where it lies.
    pub number: u64,
    /// Its size.
    pub bytes: u64,
    /// Nanoseconds since 1970 at its last change; 0 where that is not known.
    pub changed_ns: i128,
}

impl Identity {
    /// As HTTP would say it.
    pub fn etag(&self) -> String {
        format!("{:x}-{:x}-{:x}", self.number, self.changed_ns, self.bytes)
    }

    /// Of a file of the host.
    pub(super) fn of_host(metadata: &std::fs::Metadata) -> Identity {
        Identity {
            number: metadata.ino(),
            bytes: metadata.len(),
            changed_ns: i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec()),
        }
    }

    /// Of an object of a volume, whose content is written once.
    pub(super) fn of_object(object: &Object) -> Identity {
        Identity { number: object.id(), bytes: object.size_bytes(), changed_ns: 0 }
    }
}

/// A file that is open.
#[derive(Debug)]
pub struct Opened {
    /// What it is read through.
    pub device: Device,
    /// What observers of reads and messages call it.
    pub path: PathBuf,
    /// What it was when it was opened.
    pub identity: Identity,
    pub(super) source: Source,
}

/// What tells whether the file is what it was.
#[derive(Debug)]
pub(super) enum Source {
    Host(File),
    Object(Object),
}

impl Opened {
    /// Looks whether the file is what it was when it was opened.
    ///
    /// # Errors
    /// `Data` if it has changed.
    pub fn check_unchanged(&self) -> Result<()> {
        let now = match &self.source {
            Source::Host(file) => file.metadata().map(|metadata| Identity::of_host(&metadata)).ok(),
            Source::Object(object) => Some(Identity::of_object(object)),
        };
        match now == Some(self.identity) {
            true => Ok(()),
            false => Err(changed(&self.path.display().to_string())),
        }
    }
}

/// The error for a file that has changed.
pub(crate) fn changed(file: &str) -> Error {
    let message =
        format!("{file} has changed while it was read; run the statement again when it is complete");
    Error::new(ErrorKind::Data, message)
}
