//! Loading sorted keys.

use std::ffi::{c_int, c_void};

use tanada_kv::blocking::wait;

use crate::code::guarded;
use crate::handles::{LoadHandle, StoreHandle};
use crate::memory::{self, bytes, give};

/// Begins a load.
///
/// # Safety
/// `store` is open, `out` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_load_begin(store: *mut StoreHandle, out: *mut *mut LoadHandle) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(store) }?;
        let load = wait(handle.store.bulk_load())?;
        // SAFETY: as the caller promises.
        unsafe { give(out, LoadHandle { load }) }
    })
}

/// Adds a key that is larger than all before.
///
/// # Safety
/// `load` is of [`tanada_kv_load_begin`], was not ended, and is nobody else's; key and value have as many bytes as is
/// said; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_load_put(
    load: *mut LoadHandle,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow_mut(load) }?;
        // SAFETY: as the caller promises.
        let (key, value) = unsafe { (bytes(key, key_len)?, bytes(value, value_len)?) };
        Ok(wait(handle.load.put(key, value))?)
    })
}

/// Makes all of a load durable and visible.
///
/// # Safety
/// `load` is of [`tanada_kv_load_begin`] and was not ended, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_load_finish(load: *mut LoadHandle) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::take(load) }?;
        wait(handle.load.finish())?;
        Ok(())
    })
}

/// Gives a load up.
///
/// # Safety
/// As [`tanada_kv_load_finish`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_load_free(load: *mut LoadHandle) {
    // SAFETY: as the caller promises.
    drop(unsafe { memory::take(load) });
}
