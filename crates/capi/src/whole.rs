//! What is done with a whole database: copied, checked, counted.

use std::ffi::{c_char, c_int, c_void};

use serde::Serialize;
use tanada_kv::blocking::wait;

use crate::code::{Code, Failure, guarded};
use crate::handles::DatabaseHandle;
use crate::memory::{self, text};

/// Gives what is said as JSON.
///
/// # Safety
/// Both can be written, or are NULL.
pub(crate) unsafe fn give_json(
    what: &impl Serialize,
    json: *mut *mut c_void,
    len: *mut usize,
) -> Result<(), Failure> {
    let written = serde_json::to_vec(what);
    let written = written.map_err(|error| Failure::of(Code::Panic, error.to_string()))?;
    // SAFETY: as the caller promises.
    unsafe { memory::give_bytes(&written, json, len) }
}

/// Copies a database to another name in its volume.
///
/// # Safety
/// `database` is open, `name` ends with a zero; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_checkpoint(database: *mut DatabaseHandle, name: *const c_char) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, name) = unsafe { (memory::borrow(database)?, text(name)?) };
        Ok(wait(handle.database.checkpoint(name))?)
    })
}

/// Reads all of a database, and says what is wrong.
///
/// # Safety
/// `database` is open, or NULL; `json` and `json_len` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_check(
    database: *mut DatabaseHandle,
    json: *mut *mut c_void,
    json_len: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(database) }?;
        let report = wait(handle.database.check())?;
        // SAFETY: as the caller promises.
        unsafe { give_json(&report, json, json_len) }?;
        match &report.findings[..] {
            [] => Ok(()),
            [first, ..] => {
                let message = format!("{} findings, the first of them: {first}", report.findings.len());
                Err(Failure::of(Code::Corrupted, message))
            }
        }
    })
}

/// What a database does, and what it takes up.
///
/// # Safety
/// As [`tanada_kv_check`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_statistics(
    database: *mut DatabaseHandle,
    json: *mut *mut c_void,
    json_len: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(database) }?;
        // SAFETY: as the caller promises.
        unsafe { give_json(&handle.database.statistics(), json, json_len) }
    })
}
