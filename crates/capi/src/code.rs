//! Codes and messages of calls.

use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tanada_kv::ErrorKind;

/// What a call gives: the numbers of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Code {
    Ok = 0,
    NotFound = 1,
    Invalid = 2,
    Exists = 3,
    Conflict = 4,
    NoSpace = 5,
    ReadOnly = 6,
    Locked = 7,
    Corrupted = 8,
    Device = 9,
    Closed = 10,
    Panic = 11,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    message: String,
}

impl Failure {
    pub(crate) fn of(code: Code, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }
}

impl From<tanada_kv::Error> for Failure {
    fn from(error: tanada_kv::Error) -> Failure {
        let code = match error.kind() {
            ErrorKind::NotFound => Code::NotFound,
            ErrorKind::InvalidInput => Code::Invalid,
            ErrorKind::AlreadyExists => Code::Exists,
            ErrorKind::Conflict => Code::Conflict,
            ErrorKind::NoSpace => Code::NoSpace,
            ErrorKind::ReadOnly => Code::ReadOnly,
            ErrorKind::Locked => Code::Locked,
            ErrorKind::Corrupted | ErrorKind::FutureFormat => Code::Corrupted,
            ErrorKind::Closed => Code::Closed,
            _ => Code::Device,
        };
        Failure { code, message: error.to_string() }
    }
}

impl From<tanada_volume::Error> for Failure {
    fn from(error: tanada_volume::Error) -> Failure {
        use tanada_volume::ErrorKind as Below;
        let code = match error.kind() {
            Below::NotFound => Code::NotFound,
            Below::InvalidInput => Code::Invalid,
            Below::AlreadyExists => Code::Exists,
            Below::NoSpace | Below::QuotaExceeded => Code::NoSpace,
            Below::ReadOnly => Code::ReadOnly,
            Below::Locked => Code::Locked,
            Below::Corrupted | Below::WrongVolume | Below::FutureFormat => Code::Corrupted,
            _ => Code::Device,
        };
        Failure { code, message: error.to_string() }
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Runs a call's work; gives its code and keeps its message.
pub(crate) fn guarded(work: impl FnOnce() -> Result<(), Failure>) -> c_int {
    // What a panic leaves half done is behind a handle that the caller is told not to trust.
    let failure = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return Code::Ok as c_int,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::of(Code::Panic, "the engine panicked; close the database and open it again"),
    };
    let message = CString::new(failure.message.replace('\0', " ")).unwrap_or_default();
    MESSAGE.with(|kept| *kept.borrow_mut() = message);
    failure.code as c_int
}

/// The message of the last failure on this thread, valid until the next one.
pub(crate) fn last_message() -> *const c_char {
    MESSAGE.with(|kept| kept.borrow().as_ptr())
}
