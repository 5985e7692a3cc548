//! Why advice could not be given.

use std::fmt;

/// What the caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Fix what was typed or handed in.
    InvalidInput,
    /// The server, the volume or a file is not there: start or mount it.
    NotFound,
    /// The server refused, or the connection to it is gone.
    Server,
    /// A file or the volume failed.
    Io,
    /// The other side said what is not understood: it is another version.
    Protocol,
}

/// Why advice could not be given.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// With a message for people.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidInput, message)
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Protocol, message)
    }

    pub(crate) fn server(error: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Server, format!("the server says: {error}"))
    }

    pub(crate) fn io(what: impl fmt::Display, error: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Io, format!("{what}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
