//! Batches, and ranges that are deleted.

use std::ffi::{c_int, c_void};

use tanada_kv::Batch;
use tanada_kv::blocking::wait;

use crate::code::guarded;
use crate::handles::{BatchHandle, DatabaseHandle, StoreHandle};
use crate::memory::{self, bytes, give};
use crate::write_options;

/// A range from `start` to the key before `end`; without an end if that is NULL.
///
/// # Safety
/// Both have as many bytes as is said, and live as long as they are used; each may be NULL.
pub(crate) unsafe fn range<'a>(
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
) -> Result<(&'a [u8], Option<&'a [u8]>), crate::code::Failure> {
    // SAFETY: as the caller promises.
    let start = unsafe { bytes(start, start_len) }?;
    // SAFETY: as the caller promises.
    let end = if end.is_null() && end_len == 0 { None } else { Some(unsafe { bytes(end, end_len) }?) };
    Ok((start, end))
}

/// Deletes the keys from `start` on that are smaller than `end`; all from `start` on if `end` is NULL.
///
/// # Safety
/// `store` is open; both keys have as many bytes as is said; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_delete_range(
    store: *mut StoreHandle,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
    flags: u32,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, (start, end)) =
            unsafe { (memory::borrow(store)?, range(start, start_len, end, end_len)?) };
        let mut batch = Batch::new();
        batch.delete_range(&handle.store, start, end);
        Ok(wait(handle.database.write(batch, &write_options(flags, 0)?))?)
    })
}

/// Makes an empty batch.
///
/// # Safety
/// `out` can be written, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_batch_new(out: *mut *mut BatchHandle) -> c_int {
    // SAFETY: as the caller promises.
    guarded(|| unsafe { give(out, BatchHandle { batch: Batch::new() }) })
}

/// Writes a key in a batch.
///
/// # Safety
/// `batch` is nobody else's and `store` open; key and value have as many bytes as is said; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_batch_put(
    batch: *mut BatchHandle,
    store: *mut StoreHandle,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, store) = unsafe { (memory::borrow_mut(batch)?, memory::borrow(store)?) };
        // SAFETY: as the caller promises.
        let (key, value) = unsafe { (bytes(key, key_len)?, bytes(value, value_len)?) };
        handle.batch.put(&store.store, key, value);
        Ok(())
    })
}

/// Deletes a key in a batch.
///
/// # Safety
/// As [`tanada_kv_batch_put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_batch_delete(
    batch: *mut BatchHandle,
    store: *mut StoreHandle,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, store) = unsafe { (memory::borrow_mut(batch)?, memory::borrow(store)?) };
        // SAFETY: as the caller promises.
        let key = unsafe { bytes(key, key_len) }?;
        handle.batch.delete(&store.store, key);
        Ok(())
    })
}

/// Deletes a range in a batch.
///
/// # Safety
/// As [`tanada_kv_batch_put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_batch_delete_range(
    batch: *mut BatchHandle,
    store: *mut StoreHandle,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, store) = unsafe { (memory::borrow_mut(batch)?, memory::borrow(store)?) };
        // SAFETY: as the caller promises.
        let (start, end) = unsafe { range(start, start_len, end, end_len) }?;
        handle.batch.delete_range(&store.store, start, end);
        Ok(())
    })
}

/// Writes all of a batch, or nothing of it, and takes it back.
///
/// # Safety
/// `database` is open; `batch` is of [`tanada_kv_batch_new`] and was not taken back; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_write(
    database: *mut DatabaseHandle,
    batch: *mut BatchHandle,
    flags: u32,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let batch = unsafe { memory::take(batch) }?;
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(database) }?;
        Ok(wait(handle.database.write(batch.batch, &write_options(flags, 0)?))?)
    })
}

/// Writes all of a batch, or nothing of it, and takes it back; what it puts counts as deleted after so many seconds, or
/// as its store has it if that is 0.
///
/// # Safety
/// As [`tanada_kv_write`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_write_expiring(
    database: *mut DatabaseHandle,
    batch: *mut BatchHandle,
    time_to_live_s: u32,
    flags: u32,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let batch = unsafe { memory::take(batch) }?;
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(database) }?;
        Ok(wait(handle.database.write(batch.batch, &write_options(flags, time_to_live_s)?))?)
    })
}

/// Forgets a batch.
///
/// # Safety
/// `batch` is of [`tanada_kv_batch_new`] and was not taken back, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_batch_free(batch: *mut BatchHandle) {
    // SAFETY: as the caller promises.
    drop(unsafe { memory::take(batch) });
}
