//! What is done with whole databases, stores and classes: listed, copied, checked, counted, emptied, deleted.

use std::ffi::{c_char, c_int, c_void};

use std::path::Path;

use serde::Serialize;
use tanada_kv::Database;
use tanada_kv::blocking::wait;

use crate::code::{Code, Failure, guarded};
use crate::handles::{self, DatabaseHandle};
use crate::memory::{self, text};
use crate::volumes::VolumeUse;

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

/// The names of the stores of a database.
///
/// # Safety
/// As [`tanada_kv_check`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_stores(
    database: *mut DatabaseHandle,
    json: *mut *mut c_void,
    json_len: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(database) }?;
        // SAFETY: as the caller promises.
        unsafe { give_json(&handle.database.stores(), json, json_len) }
    })
}

/// Deletes a store with all that it holds.
///
/// # Safety
/// `database` is open, `name` ends with a zero; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_store_drop(database: *mut DatabaseHandle, name: *const c_char) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, name) = unsafe { (memory::borrow(database)?, text(name)?) };
        Ok(wait(handle.database.drop_store(name))?)
    })
}

/// The names of the databases of a volume.
///
/// # Safety
/// `volume` ends with a zero; `json` and `json_len` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_databases(
    volume: *const c_char,
    json: *mut *mut c_void,
    json_len: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let volume = VolumeUse::open(Path::new(unsafe { text(volume) }?), true)?;
        let names = Database::names(volume.volume());
        volume.close()?;
        // SAFETY: as the caller promises.
        unsafe { give_json(&names, json, json_len) }
    })
}

/// Deletes a database that is not open.
///
/// # Safety
/// Both end with a zero; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_destroy(volume: *const c_char, database: *const c_char) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (volume, name) = unsafe { (Path::new(text(volume)?), text(database)?) };
        let volume = VolumeUse::open(volume, false)?;
        let destroyed = wait(Database::destroy(volume.volume(), name, handles::environment()));
        let closed = volume.close();
        destroyed?;
        closed
    })
}

/// A class of a database that may be changed.
///
/// # Safety
/// As [`tanada_kv_drain_class`].
unsafe fn class<'a>(
    database: *mut DatabaseHandle,
    class: *const c_char,
) -> Result<(&'a DatabaseHandle, &'a str), Failure> {
    // SAFETY: as the caller promises.
    let (handle, class) = unsafe { (memory::borrow(database)?, text(class)?) };
    if handle.read_only {
        // The volume may be open for writing, for another database.
        return Err(Failure::of(Code::ReadOnly, "the database was opened to change nothing"));
    }
    Ok((handle, class))
}

/// Moves everything away from a class, and has nothing new go there.
///
/// # Safety
/// `database` is open, `class` ends with a zero; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_drain_class(
    database: *mut DatabaseHandle,
    class_name: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, class) = unsafe { class(database, class_name) }?;
        wait(handle.database.drain_class(class))?;
        Ok(())
    })
}

/// Has a class that was drained take data again.
///
/// # Safety
/// As [`tanada_kv_drain_class`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_fill_class(
    database: *mut DatabaseHandle,
    class_name: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, class) = unsafe { class(database, class_name) }?;
        Ok(wait(handle.volume.volume().fill_class(class))?)
    })
}
