//! What can be wrong with what is handed in: a policy's name, a trace, an imported log.

use std::fmt;
use std::io;

/// What the caller can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Fix what was typed or handed in.
    InvalidInput,
    /// The file is damaged or no trace.
    Corrupted,
    /// Reading or writing failed.
    Io,
}

/// Why something could not be read or understood.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<io::Error>,
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The arguments are wrong.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::InvalidInput, message: message.into(), source: None }
    }

    pub(crate) fn corrupted(message: impl Into<String>) -> Error {
        Error { kind: ErrorKind::Corrupted, message: message.into(), source: None }
    }

    pub(crate) fn io(what: &str, source: io::Error) -> Error {
        Error { kind: ErrorKind::Io, message: format!("{what}: {source}"), source: Some(source) }
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
