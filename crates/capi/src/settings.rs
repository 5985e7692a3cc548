//! Settings and policies, as JSON.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tanada_kv::blocking::wait;
use tanada_kv::{DatabaseOverrides, OnProgress, StoreOverrides};

use crate::code::{Code, Failure, guarded};
use crate::handles::{DatabaseHandle, StoreHandle};
use crate::memory::{self, text};
use crate::whole::give_json;

/// What a JSON text says; `None` if it is NULL.
///
/// # Safety
/// It ends with a zero and lives as long as it is used, or is NULL.
unsafe fn json<T: DeserializeOwned>(string: *const c_char, what: &str) -> Result<Option<T>, Failure> {
    if string.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let text = unsafe { text(string) }?;
    let value = serde_json::from_str(text);
    value.map(Some).map_err(|error| Failure::of(Code::Invalid, format!("{what}: {error}")))
}

/// Opens a database with settings.
///
/// # Safety
/// The strings end with a zero or are NULL; `out` can be written or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_open_with(
    volume: *const c_char,
    database: *const c_char,
    flags: u32,
    settings: *const c_char,
    out: *mut *mut DatabaseHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let settings: Option<DatabaseOverrides> = unsafe { json(settings, "settings of a database") }?;
        // SAFETY: as the caller promises.
        unsafe { crate::open_database(volume, database, flags, settings.unwrap_or_default(), None, out) }
    })
}

/// Told how far the replay of a log is: what the caller gave, bytes that were read, and of how many at most.
type Progress = Option<unsafe extern "C" fn(context: *mut c_void, replayed_bytes: u64, total_bytes: u64)>;

/// The caller's own, which is handed back as it was.
struct Context(*mut c_void);

// SAFETY: it is not looked into here; the caller promises that the function may be called with it from any thread.
unsafe impl Send for Context {}
// SAFETY: as above; one opening tells of its progress at one moment once.
unsafe impl Sync for Context {}

impl Context {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Opens a database with settings, and tells how far the replay of its log is.
///
/// # Safety
/// As [`tanada_kv_open_with`]; `progress` may be called with `context` until this returns, from any thread, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_open_telling(
    volume: *const c_char,
    database: *const c_char,
    flags: u32,
    settings: *const c_char,
    progress: Progress,
    context: *mut c_void,
    out: *mut *mut DatabaseHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let settings: Option<DatabaseOverrides> = unsafe { json(settings, "settings of a database") }?;
        let context = Context(context);
        let told = progress.map(|tell| -> OnProgress {
            // SAFETY: as the caller promises.
            Arc::new(move |now| unsafe { tell(context.get(), now.replayed_bytes, now.total_bytes) })
        });
        // SAFETY: as the caller promises.
        unsafe { crate::open_database(volume, database, flags, settings.unwrap_or_default(), told, out) }
    })
}

/// The settings of a database.
///
/// # Safety
/// `database` is open; `json` and `json_len` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_settings(
    database: *mut DatabaseHandle,
    json: *mut *mut c_void,
    json_len: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(database) }?;
        // SAFETY: as the caller promises.
        unsafe { give_json(&handle.database.settings(), json, json_len) }
    })
}

/// The settings of a store.
///
/// # Safety
/// `store` is open; `json` and `json_len` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_store_settings(
    store: *mut StoreHandle,
    json: *mut *mut c_void,
    json_len: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(store) }?;
        // SAFETY: as the caller promises.
        unsafe { give_json(&handle.store.settings(), json, json_len) }
    })
}

/// Opens a store, or makes it with settings.
///
/// # Safety
/// `database` is open, the strings end with a zero, `out` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_store_open_with(
    database: *mut DatabaseHandle,
    name: *const c_char,
    flags: u32,
    settings: *const c_char,
    out: *mut *mut StoreHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let settings = unsafe { json(settings, "settings of a store") }?;
        // SAFETY: as the caller promises.
        unsafe { crate::open_store(database, name, flags, &settings.unwrap_or_default(), out) }
    })
}

/// Changes settings of a database that is open.
///
/// # Safety
/// `database` is open, `settings` ends with a zero; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_set_settings(
    database: *mut DatabaseHandle,
    settings: *const c_char,
) -> c_int {
    guarded(|| {
        const WHAT: &str = "settings of a database";
        // SAFETY: as the caller promises.
        let (handle, changes) = unsafe { (memory::borrow(database)?, json(settings, WHAT)?) };
        let changes: DatabaseOverrides =
            changes.ok_or_else(|| Failure::of(Code::Invalid, format!("{WHAT} are NULL")))?;
        Ok(wait(handle.database.set_settings(&changes))?)
    })
}

/// Changes the limit of what a database has on the fastest class; 0 for none.
///
/// # Safety
/// `database` is open, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_set_fast_class_bytes(database: *mut DatabaseHandle, bytes: u64) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(database) }?;
        let limit = Some(bytes).filter(|bytes| *bytes > 0);
        let changes = DatabaseOverrides { fast_class_bytes: Some(limit), ..DatabaseOverrides::default() };
        Ok(wait(handle.database.set_settings(&changes))?)
    })
}

/// Changes settings of a store.
///
/// # Safety
/// `store` is open, `settings` ends with a zero; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_store_set_settings(
    store: *mut StoreHandle,
    settings: *const c_char,
) -> c_int {
    guarded(|| {
        const WHAT: &str = "settings of a store";
        // SAFETY: as the caller promises.
        let (handle, changes) = unsafe { (memory::borrow(store)?, json(settings, WHAT)?) };
        let changes: StoreOverrides =
            changes.ok_or_else(|| Failure::of(Code::Invalid, format!("{WHAT} are NULL")))?;
        Ok(wait(handle.store.set_settings(&changes))?)
    })
}

/// Changes which classes keys and values of a store go to.
///
/// # Safety
/// `store` is open, `policy` ends with a zero; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_set_policy(store: *mut StoreHandle, policy: *const c_char) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, policy) = unsafe { (memory::borrow(store)?, json(policy, "a policy")?) };
        let policy = policy.ok_or(Failure::of(Code::Invalid, "a policy is NULL"))?;
        Ok(wait(handle.store.set_policy(&policy))?)
    })
}

/// Does all jobs of a store.
///
/// # Safety
/// `store` is open, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_compact(store: *mut StoreHandle) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(store) }?;
        Ok(wait(handle.store.compact())?)
    })
}
