//! Character sets of columns, with the errors of this crate.

use std::borrow::Cow;

pub(crate) use tanada_collation::Charset;

use crate::{Error, ErrorKind, Result};

/// The set that the servers call `name`.
///
/// # Errors
/// `Unsupported` if it is not known.
pub(crate) fn charset(name: &str) -> Result<Charset> {
    Charset::lookup(name).ok_or_else(|| {
        let message = format!("the character set {name} is not read; leave its columns out of the query");
        Error::new(ErrorKind::Unsupported, message)
    })
}

/// Decodes a stored string.
///
/// # Errors
/// `Corrupt` if it is not UTF-8 where it has to be.
pub(crate) fn decode(charset: Charset, stored: &[u8]) -> Result<Cow<'_, str>> {
    charset.decode(stored).ok_or_else(|| Error::new(ErrorKind::Corrupt, "a string is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_sets_and_broken_text_are_errors() {
        let error = charset("filename").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("filename"));
        let error = decode(charset("utf8mb4").unwrap(), b"\xff").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}
