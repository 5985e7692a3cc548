//! The crate's error.

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments or the path are wrong.
    InvalidInput,
    /// No such database, table or file.
    NotFound,
    /// The server was not shut down cleanly; the message names the three ways out.
    NotClean,
    /// The file uses a feature that is not read (encryption, ...).
    Unsupported,
    /// A page or a record is damaged; restore the file from a backup.
    Corrupt,
    /// Reading failed.
    Io,
    /// Cancelled.
    Cancelled,
}

/// What failed, where (file, space, page, offset), and what to do.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `kind`. The message starts in lower case and names the object.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }
    /// What a caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    /// The same error, with where it happened put before its message.
    pub fn within(self, place: impl std::fmt::Display) -> Error {
        Error { kind: self.kind, message: format!("{place}: {}", self.message) }
    }
}
impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for Error {}
impl From<tanada_io::Error> for Error {
    fn from(error: tanada_io::Error) -> Error {
        let kind = match error.kind() {
            tanada_io::ErrorKind::NotFound => ErrorKind::NotFound,
            tanada_io::ErrorKind::Cancelled => ErrorKind::Cancelled,
            tanada_io::ErrorKind::InvalidInput => ErrorKind::InvalidInput,
            _ => ErrorKind::Io,
        };
        Error::new(kind, error.to_string())
    }
}
