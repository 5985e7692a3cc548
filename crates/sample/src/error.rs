//! The crate's error.

use std::fmt;
use std::io;
use std::path::Path;

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments, a path or a query are wrong.
    InvalidInput,
    /// A program that the comparison needs is not installed; the message names its package.
    Missing,
    /// A side of the comparison failed, or its answer is wrong.
    Failed,
}

/// What failed, and what to do.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }
    /// A side of the comparison failed.
    pub fn failed(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Failed, message)
    }
    /// What a caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    /// "cannot `what` `path`: why".
    pub fn at_path(what: &str, path: &Path, error: &io::Error) -> Error {
        Error::failed(format!("cannot {what} {}: {error}", path.display()))
    }
    /// A program could not be started; `package` has it.
    pub fn program(program: &str, package: &str, error: &io::Error) -> Error {
        if error.kind() == io::ErrorKind::NotFound {
            Error::new(
                ErrorKind::Missing,
                format!("{program} is not installed; install the package {package}"),
            )
        } else {
            Error::failed(format!("cannot start {program}: {error}"))
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<tanada_volume::Error> for Error {
    fn from(error: tanada_volume::Error) -> Error {
        Error::failed(error.to_string())
    }
}

impl From<tanada_io::Error> for Error {
    fn from(error: tanada_io::Error) -> Error {
        Error::failed(error.to_string())
    }
}

impl From<tanada_query::Error> for Error {
    fn from(error: tanada_query::Error) -> Error {
        Error::failed(error.to_string())
    }
}
