//! Cursors: keys in order, as they are, as a snapshot has them, or as a transaction sees them.

use std::ffi::{c_int, c_void};

use bytes::Bytes;
use tanada_kv::blocking::wait;
use tanada_kv::{Cursor, CursorOptions};

use crate::code::{Code, Failure, guarded};
use crate::handles::{CursorHandle, SnapshotHandle, StoreHandle, TransactionHandle};
use crate::memory::{self, bytes, give};

/// Values are not read.
const KEYS_ONLY: u32 = 1;

/// A prefix, flags, and how many keys are wanted.
///
/// # Safety
/// The prefix has as many bytes as is said, or is NULL.
unsafe fn options(
    prefix: *const c_void,
    prefix_len: usize,
    flags: u32,
    expected_keys: usize,
) -> Result<CursorOptions, Failure> {
    if flags & !KEYS_ONLY != 0 {
        return Err(Failure::of(Code::Invalid, format!("{flags:#x} are no flags of cursors")));
    }
    // SAFETY: as the caller promises.
    let prefix = Bytes::copy_from_slice(unsafe { bytes(prefix, prefix_len) }?);
    Ok(CursorOptions { prefix, keys_only: flags & KEYS_ONLY != 0, expected_keys, ..CursorOptions::default() })
}

/// Opens a cursor over a store.
///
/// # Safety
/// As [`tanada_kv_cursor_open_with`].
unsafe fn open(
    store: *mut StoreHandle,
    snapshot: *mut SnapshotHandle,
    options: CursorOptions,
    out: *mut *mut CursorHandle,
) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let (handle, snapshot) = unsafe { (memory::borrow(store)?, snapshot.as_ref()) };
    let snapshot = snapshot.map(|handle| handle.snapshot.clone());
    let cursor = handle.store.cursor(CursorOptions { snapshot, ..options });
    // SAFETY: as the caller promises.
    unsafe { give(out, CursorHandle { cursor, shown: None }) }
}

/// Opens a cursor.
///
/// # Safety
/// `store` is open; the prefix has as many bytes as is said; `out` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_cursor_open(
    store: *mut StoreHandle,
    prefix: *const c_void,
    prefix_len: usize,
    out: *mut *mut CursorHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    guarded(|| unsafe { open(store, std::ptr::null_mut(), options(prefix, prefix_len, 0, 0)?, out) })
}

/// Opens a cursor over keys as they were.
///
/// # Safety
/// `store` is open and `snapshot` was not given back; the prefix has as many bytes as is said; `out` can be written;
/// each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_cursor_open_at(
    store: *mut StoreHandle,
    snapshot: *mut SnapshotHandle,
    prefix: *const c_void,
    prefix_len: usize,
    out: *mut *mut CursorHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    guarded(|| unsafe {
        memory::borrow(snapshot)?;
        open(store, snapshot, options(prefix, prefix_len, 0, 0)?, out)
    })
}

/// Opens a cursor as a snapshot has the keys, or as they are if that is NULL, and says how it will be used.
///
/// # Safety
/// As [`tanada_kv_cursor_open_at`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_cursor_open_with(
    store: *mut StoreHandle,
    snapshot: *mut SnapshotHandle,
    prefix: *const c_void,
    prefix_len: usize,
    flags: u32,
    expected_keys: usize,
    out: *mut *mut CursorHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    guarded(|| unsafe { open(store, snapshot, options(prefix, prefix_len, flags, expected_keys)?, out) })
}

/// Opens a cursor over what a transaction sees now.
///
/// # Safety
/// `transaction` and `store` are open, the transaction nobody else's; the prefix has as many bytes as is said; `out`
/// can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_transaction_cursor_open(
    transaction: *mut TransactionHandle,
    store: *mut StoreHandle,
    prefix: *const c_void,
    prefix_len: usize,
    flags: u32,
    out: *mut *mut CursorHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, store) = unsafe { (memory::borrow_mut(transaction)?, memory::borrow(store)?) };
        // SAFETY: as the caller promises.
        let options = unsafe { options(prefix, prefix_len, flags, 0) }?;
        let cursor = handle.transaction.cursor(&store.store, options);
        // SAFETY: as the caller promises.
        unsafe { give(out, CursorHandle { cursor, shown: None }) }
    })
}

/// Goes before the first key that is not smaller.
///
/// # Safety
/// `cursor` is open and nobody else's; the key has as many bytes as is said; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_cursor_seek(
    cursor: *mut CursorHandle,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, key) = unsafe { (memory::borrow_mut(cursor)?, bytes(key, key_len)?) };
        Ok(wait(handle.cursor.seek(key))?)
    })
}

/// Goes behind the last key.
///
/// # Safety
/// `cursor` is open and nobody else's, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_cursor_seek_to_end(cursor: *mut CursorHandle) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow_mut(cursor) }?;
        Ok(wait(handle.cursor.seek_to_end())?)
    })
}

/// Goes before all keys.
///
/// # Safety
/// As [`tanada_kv_cursor_seek_to_end`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_cursor_seek_to_begin(cursor: *mut CursorHandle) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { memory::borrow_mut(cursor) }?.cursor.seek_to_begin();
        Ok(())
    })
}

/// Has a cursor see what is there now; it stays where it is.
///
/// # Safety
/// As [`tanada_kv_cursor_seek_to_end`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_cursor_refresh(cursor: *mut CursorHandle) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        unsafe { memory::borrow_mut(cursor) }?.cursor.refresh();
        Ok(())
    })
}

type Shown = (*mut *const c_void, *mut usize, *mut *const c_void, *mut usize);

/// Steps, and shows where the cursor came.
///
/// # Safety
/// As [`tanada_kv_cursor_next`].
unsafe fn step(cursor: *mut CursorHandle, shown: Shown, is_forward: bool) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow_mut(cursor) }?;
        let walked: &mut Cursor = &mut handle.cursor;
        let found = if is_forward { wait(walked.next())? } else { wait(walked.previous())? };
        let Some((key, value)) = found else {
            return Err(Failure::of(Code::NotFound, "the cursor is at the end"));
        };
        let (key, value) = handle.show(key, value);
        // SAFETY: as the caller promises; what is shown lives in the handle until its next step.
        unsafe {
            memory::show(key, shown.0, shown.1)?;
            memory::show(value, shown.2, shown.3)
        }
    })
}

/// The key behind the cursor, which goes over it.
///
/// # Safety
/// `cursor` is open and nobody else's; the others can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_cursor_next(
    cursor: *mut CursorHandle,
    key: *mut *const c_void,
    key_len: *mut usize,
    value: *mut *const c_void,
    value_len: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { step(cursor, (key, key_len, value, value_len), true) }
}

/// The key before the cursor, which goes over it.
///
/// # Safety
/// As [`tanada_kv_cursor_next`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_cursor_previous(
    cursor: *mut CursorHandle,
    key: *mut *const c_void,
    key_len: *mut usize,
    value: *mut *const c_void,
    value_len: *mut usize,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { step(cursor, (key, key_len, value, value_len), false) }
}

/// Gives a cursor back.
///
/// # Safety
/// `cursor` is of [`tanada_kv_cursor_open`] and was not given back, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_cursor_free(cursor: *mut CursorHandle) {
    // SAFETY: as the caller promises.
    drop(unsafe { memory::take(cursor) });
}
