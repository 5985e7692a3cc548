//! The crate's error.

use std::fmt;
use std::io;
use std::path::Path;

/// What a caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments are wrong.
    InvalidInput,
    /// The machine, its privileges or its programs do not give what the benchmark needs; the message says what.
    Missing,
    /// An engine failed, or gave a wrong answer.
    Failed,
}

/// What failed, and what to do.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }
    /// An engine failed, or the machine did.
    pub fn failed(message: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Failed, message.to_string())
    }
    /// The arguments are wrong.
    pub fn invalid(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidInput, message)
    }
    /// With what to do about it, for reasons that a benchmark meets on machines that are not made for it.
    pub(crate) fn with_advice(self) -> Error {
        let advice = [
            ("No space left", "choose a folder with more room, or fewer records"),
            (
                "losetup failed",
                "devices take root and /dev/loop-control; the media folder (--media folder) take neither",
            ),
            ("mount failed", "devices take root; the media folder (--media folder) do not"),
            ("cgroup", "the media unlimited and folder (--media folder) take none"),
        ];
        match advice.iter().find(|(reason, _)| self.message.contains(reason)) {
            Some((_, advice)) => Error { message: format!("{}: {advice}", self.message), ..self },
            None => self,
        }
    }
    /// What a caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
    /// "cannot `what` `path`: why".
    pub(crate) fn at_path(what: &str, path: &Path, error: &io::Error) -> Error {
        Error::failed(format!("cannot {what} {}: {error}", path.display()))
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
        Error::failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_machine_come_with_advice() {
        let told = |message: &str| Error::failed(message).with_advice().to_string();
        let no_space = told("fallocate failed: No space left on device");
        assert!(no_space.ends_with("more room, or fewer records"), "{no_space}");
        let no_loop = told("losetup failed: /dev/loop-control: Permission denied");
        assert!(no_loop.contains("--media folder"), "{no_loop}");
        assert_eq!(told("a read failed"), "a read failed");
    }
}
