//! Adopted files: they stay where they are, read only, and are the capacity chunks of their object in place.
//!
//! A chunk of an adopted object has no home in a class: its home is the file, at the same offset. What lies in a class
//! is its mirror, if it has one. So the volume's promises about its own chunks do not hold for the file, and the file
//! may change behind its back: its identity (which file it is, how long, when last modified) is compared at opening and
//! on demand, and when it differs, all mirrors are dropped before another byte is served.

use std::fmt;

use parking_lot::{Mutex, RwLock};
use tanada_io::Device;

/// What tells a file from another, and a changed one from what it was.
///
/// ```
/// use tanada_volume::Identity;
///
/// let before = Identity { file: 7, size_bytes: 4096, modified_ns: 1 };
/// assert_ne!(before, Identity { modified_ns: 2, ..before }); // the file has changed
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Identity {
    /// Which file it is: for files of a Unix system, device and inode.
    pub file: u128,
    /// Its length.
    pub size_bytes: u64,
    /// When it was last modified, in nanoseconds since some origin.
    pub modified_ns: i128,
}

/// Opens adopted files and tells their identity. Injected, so that a simulation can have its own.
pub trait Opener: Send + Sync + fmt::Debug {
    /// Opens the file for reading, and tells its identity.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self, path: &str) -> tanada_io::Result<(Device, Identity)>;

    /// Its identity now.
    ///
    /// # Errors
    /// If it cannot be told.
    fn identity(&self, path: &str) -> tanada_io::Result<Identity>;
}

/// Opens nothing: for volumes without adopted files.
///
/// ```
/// use tanada_volume::{NoOpener, Opener};
///
/// assert!(NoOpener.open("/etc/hostname").is_err());
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct NoOpener;

impl Opener for NoOpener {
    fn open(&self, path: &str) -> tanada_io::Result<(Device, Identity)> {
        Err(refused(path))
    }

    fn identity(&self, path: &str) -> tanada_io::Result<Identity> {
        Err(refused(path))
    }
}

fn refused(path: &str) -> tanada_io::Error {
    let message = format!("cannot open {path}: this volume was opened without a way to open files");
    tanada_io::Error::new(tanada_io::ErrorKind::Unsupported, message)
}

/// The file of an adopted object.
#[derive(Debug)]
pub(crate) struct AdoptedFile {
    pub(crate) path: String,
    /// `None` if it could not be opened.
    pub(crate) device: RwLock<Option<Device>>,
    identity: Mutex<Identity>,
}

impl AdoptedFile {
    pub(crate) fn new(path: String, device: Option<Device>, identity: Identity) -> AdoptedFile {
        AdoptedFile { path, device: RwLock::new(device), identity: Mutex::new(identity) }
    }

    /// What the file was when its mirrors were made.
    pub(crate) fn identity(&self) -> Identity {
        *self.identity.lock()
    }

    pub(crate) fn set_identity(&self, identity: Identity) {
        *self.identity.lock() = identity;
    }
}
