//! The crate's error.

use std::fmt;
use std::io;
use std::path::Path;

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The path or the arguments are wrong.
    InvalidInput,
    /// No such file.
    NotFound,
    /// Not allowed.
    PermissionDenied,
    /// The device is full.
    NoSpace,
    /// The device failed.
    Device,
    /// The device cannot do this at all.
    Unsupported,
    /// The task was cancelled or its executor stopped.
    Cancelled,
    /// The task panicked.
    Panicked,
}

/// An I/O error: what failed, where, and why.
///
/// The message names the path and, for reads and writes, the offset and the length, and ends with the operating
/// system's words.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: Box<str>,
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind` that reads `message`; for devices that are made elsewhere.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into().into_boxed_str() }
    }

    /// What a caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// "cannot `what` `path`: why", of the kind that fits `error`.
    pub(crate) fn at_path(what: &str, path: &Path, error: &io::Error) -> Error {
        Error::new(kind_of(error), format!("cannot {what} {}: {error}", path.display()))
    }

    pub(crate) fn cancelled(what: &str) -> Error {
        Error::new(ErrorKind::Cancelled, what)
    }
}

/// Whether a request ended because nobody waited for it any more ([`crate::Backend::cancel`]); for layers that pass
/// requests on.
pub fn is_cancelled(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ECANCELED)
}

/// The kind that fits an error of the operating system.
pub(crate) fn kind_of(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::PermissionDenied,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ErrorKind::NoSpace
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => {
            ErrorKind::InvalidInput
        }
        io::ErrorKind::Unsupported => ErrorKind::Unsupported,
        _ => match error.raw_os_error() {
            Some(libc::EBADF) => ErrorKind::InvalidInput,
            Some(libc::ECANCELED) => ErrorKind::Cancelled,
            _ => ErrorKind::Device,
        },
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
