//! The crate's error.

use std::fmt;

/// What a caller can do about an error.
///
/// ```
/// use tanada_kv::ErrorKind;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// let again = database.create_store("lines", &Default::default()).await;
/// match again.unwrap_err().kind() {
///     ErrorKind::AlreadyExists => {} // open it instead
///     other => panic!("{other:?}"),
/// }
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments or the settings are wrong.
    InvalidInput,
    /// No such database, store or snapshot.
    NotFound,
    /// An object of that name exists already.
    AlreadyExists,
    /// A transaction wrote what another one wrote since it began: begin again.
    Conflict,
    /// All classes that may take the data are full: free space, or add some. Nothing is lost and everything can be
    /// read.
    NoSpace,
    /// The database takes no writes.
    ReadOnly,
    /// Another opener has the database: let it finish.
    Locked,
    /// Bytes on a device are not what was written: restore from a copy.
    Corrupted,
    /// The database was written by a later version of the program.
    FutureFormat,
    /// A device failed. What was not yet durable may be lost; open the database anew.
    Device,
    /// An earlier write or sync failed, so nothing can be promised about later ones: open the database anew.
    Poisoned,
    /// The database was closed.
    Closed,
}

/// An error of the key-value engine: what failed, on which database, store, object and offset, and why.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// let error = database.open_store("no such").unwrap_err();
/// assert!(error.to_string().contains("no such"));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: Box<str>,
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into().into_boxed_str() }
    }

    /// Returns what the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// An error of the layer below while doing `what`.
    pub(crate) fn volume(what: impl fmt::Display, error: &tanada_volume::Error) -> Error {
        use tanada_volume::ErrorKind as Below;
        let kind = match error.kind() {
            Below::InvalidInput => ErrorKind::InvalidInput,
            Below::NotFound => ErrorKind::NotFound,
            Below::AlreadyExists => ErrorKind::AlreadyExists,
            Below::NoSpace | Below::QuotaExceeded => ErrorKind::NoSpace,
            Below::ReadOnly => ErrorKind::ReadOnly,
            Below::Locked => ErrorKind::Locked,
            Below::Corrupted => ErrorKind::Corrupted,
            Below::FutureFormat => ErrorKind::FutureFormat,
            Below::Poisoned => ErrorKind::Poisoned,
            _ => ErrorKind::Device,
        };
        Error::new(kind, format!("{what}: {error}"))
    }

    pub(crate) fn corrupted(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Corrupted, message)
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidInput, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
