//! Snapshots: what was there at one moment.

use std::ffi::{c_int, c_void};

use tanada_kv::blocking::wait;

use crate::code::guarded;
use crate::handles::{DatabaseHandle, SnapshotHandle, StoreHandle};
use crate::memory::{self, bytes, give};

/// Takes a snapshot of all stores.
///
/// # Safety
/// `database` is open, `out` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_snapshot_take(
    database: *mut DatabaseHandle,
    out: *mut *mut SnapshotHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(database) }?;
        // SAFETY: as the caller promises.
        unsafe { give(out, SnapshotHandle { snapshot: handle.database.snapshot() }) }
    })
}

/// Reads a key as it was.
///
/// # Safety
/// `store` is open and `snapshot` was not given back; the key has as many bytes as is said; `value` and `value_len` can
/// be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_get_at(
    store: *mut StoreHandle,
    snapshot: *mut SnapshotHandle,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, snapshot) = unsafe { (memory::borrow(store)?, memory::borrow(snapshot)?) };
        // SAFETY: as the caller promises.
        let key = unsafe { bytes(key, key_len) }?;
        let found = wait(handle.store.get_at(&snapshot.snapshot, key))?;
        // SAFETY: as the caller promises.
        unsafe { memory::give_found(found.as_deref(), value, value_len) }
    })
}

/// Gives a snapshot back.
///
/// # Safety
/// `snapshot` is of [`tanada_kv_snapshot_take`] and was not given back, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_snapshot_free(snapshot: *mut SnapshotHandle) {
    // SAFETY: as the caller promises.
    drop(unsafe { memory::take(snapshot) });
}
