//! Errors as programs see them: numbers of the kernel.

use std::fmt;

use tanada_volume::ErrorKind;

/// Result of a file operation.
pub type Result<T, E = Errno> = std::result::Result<T, E>;

/// An error number of the kernel, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Errno {
    number: i32,
    why: Option<Box<str>>,
}

impl Errno {
    /// The error of this number.
    pub(crate) const fn new(number: i32) -> Errno {
        Errno { number, why: None }
    }

    /// The error of this number, with what to say of it.
    pub(crate) fn because(number: i32, why: impl Into<String>) -> Errno {
        let why: String = why.into();
        Errno { number, why: Some(why.into()) }
    }

    /// The number, as in `errno`.
    pub fn number(&self) -> i32 {
        self.number
    }

    /// Whether data or metadata may be damaged or a device failed, which an operator has to know.
    pub fn is_failure(&self) -> bool {
        self.number == libc::EIO
    }
}

impl From<tanada_volume::Error> for Errno {
    fn from(error: tanada_volume::Error) -> Errno {
        let number = match error.kind() {
            ErrorKind::InvalidInput => libc::EINVAL,
            ErrorKind::NotFound => libc::ENOENT,
            ErrorKind::AlreadyExists => libc::EEXIST,
            ErrorKind::NoSpace => libc::ENOSPC,
            ErrorKind::QuotaExceeded => libc::EDQUOT,
            ErrorKind::ReadOnly => libc::EROFS,
            ErrorKind::MissingKey => libc::ENOKEY,
            ErrorKind::Locked => libc::EBUSY,
            _ => libc::EIO,
        };
        Errno { number, why: Some(error.to_string().into()) }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Some(why) => f.write_str(why),
            None => std::io::Error::from_raw_os_error(self.number).fmt(f),
        }
    }
}

impl std::error::Error for Errno {}
