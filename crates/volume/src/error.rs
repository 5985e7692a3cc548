//! The crate's error.

use std::fmt;

/// What a caller can do about an error.
///
/// ```
/// use tanada_volume::ErrorKind;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let error = volume.create_object("", &Default::default()).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidInput);
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments or the settings are wrong.
    InvalidInput,
    /// No such object, class or volume.
    NotFound,
    /// There is one already.
    AlreadyExists,
    /// The classes that may take the data are full: free space, or add some.
    NoSpace,
    /// The object has used up its quota.
    QuotaExceeded,
    /// Another process has the volume: let it finish.
    Locked,
    /// The volume (or the object) takes no writes.
    ReadOnly,
    /// A device is missing: bring it back.
    MissingDevice,
    /// Metadata are damaged: restore, or run a check with repair.
    Corrupted,
    /// The parts do not belong to this volume.
    WrongVolume,
    /// A key is missing, or another one has its identifier: bring the right one.
    MissingKey,
    /// The volume was written by a later version of the program.
    FutureFormat,
    /// A device failed. What was not yet durable may be lost; open the volume anew.
    Device,
    /// An earlier write or sync of this object failed, so nothing can be promised about it: open the volume anew.
    Poisoned,
    /// An adopted file is not what it was.
    Changed,
    /// The operation was cancelled.
    Cancelled,
}

/// An error of a volume: what failed, on which object, class, device or chunk, and why.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let error = volume.open_object("orders").unwrap_err();
/// assert!(error.to_string().contains("orders"));
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

    /// What a caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// An error of the layer below while doing `what`.
    pub(crate) fn io(what: impl fmt::Display, error: &tanada_io::Error) -> Error {
        let kind = match error.kind() {
            tanada_io::ErrorKind::NoSpace => ErrorKind::NoSpace,
            tanada_io::ErrorKind::NotFound => ErrorKind::NotFound,
            tanada_io::ErrorKind::InvalidInput => ErrorKind::InvalidInput,
            tanada_io::ErrorKind::Cancelled => ErrorKind::Cancelled,
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

impl From<tanada_io::Error> for Error {
    fn from(error: tanada_io::Error) -> Error {
        use tanada_io::ErrorKind as Inner;
        let kind = match error.kind() {
            Inner::NoSpace => ErrorKind::NoSpace,
            Inner::NotFound => ErrorKind::NotFound,
            Inner::InvalidInput => ErrorKind::InvalidInput,
            Inner::Cancelled => ErrorKind::Cancelled,
            _ => ErrorKind::Device,
        };
        Error::new(kind, error.to_string())
    }
}
