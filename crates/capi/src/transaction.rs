//! Transactions.

use std::ffi::{c_int, c_void};

use tanada_kv::blocking::wait;
use tanada_kv::{Isolation, Transaction};

use crate::batch::range;
use crate::code::guarded;
use crate::handles::{DatabaseHandle, StoreHandle, TransactionHandle};
use crate::memory::{self, bytes, give};
use crate::write_options;

/// Begins a transaction.
///
/// # Safety
/// `database` is open, `out` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_begin(
    database: *mut DatabaseHandle,
    serializable: c_int,
    out: *mut *mut TransactionHandle,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(database) }?;
        let isolation = if serializable != 0 { Isolation::Serializable } else { Isolation::Snapshot };
        let transaction: Transaction = handle.database.begin(isolation);
        // SAFETY: as the caller promises.
        unsafe { give(out, TransactionHandle { transaction }) }
    })
}

/// Writes a key in a transaction.
///
/// # Safety
/// `transaction` and `store` are open, the transaction nobody else's; key and value have as many bytes as is said; each
/// may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_transaction_put(
    transaction: *mut TransactionHandle,
    store: *mut StoreHandle,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, store) = unsafe { (memory::borrow_mut(transaction)?, memory::borrow(store)?) };
        // SAFETY: as the caller promises.
        let (key, value) = unsafe { (bytes(key, key_len)?, bytes(value, value_len)?) };
        handle.transaction.put(&store.store, key, value);
        Ok(())
    })
}

/// Deletes a key in a transaction.
///
/// # Safety
/// As [`tanada_kv_transaction_put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_transaction_delete(
    transaction: *mut TransactionHandle,
    store: *mut StoreHandle,
    key: *const c_void,
    key_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, store) = unsafe { (memory::borrow_mut(transaction)?, memory::borrow(store)?) };
        // SAFETY: as the caller promises.
        let key = unsafe { bytes(key, key_len) }?;
        handle.transaction.delete(&store.store, key);
        Ok(())
    })
}

/// Deletes a range in a transaction.
///
/// # Safety
/// As [`tanada_kv_transaction_put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_transaction_delete_range(
    transaction: *mut TransactionHandle,
    store: *mut StoreHandle,
    start: *const c_void,
    start_len: usize,
    end: *const c_void,
    end_len: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, store) = unsafe { (memory::borrow_mut(transaction)?, memory::borrow(store)?) };
        // SAFETY: as the caller promises.
        let (start, end) = unsafe { range(start, start_len, end, end_len) }?;
        handle.transaction.delete_range(&store.store, start, end);
        Ok(())
    })
}

/// Reads a key in a transaction.
///
/// # Safety
/// As [`tanada_kv_transaction_put`] and [`tanada_kv_get`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_transaction_get(
    transaction: *mut TransactionHandle,
    store: *mut StoreHandle,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, store) = unsafe { (memory::borrow_mut(transaction)?, memory::borrow(store)?) };
        // SAFETY: as the caller promises.
        let key = unsafe { bytes(key, key_len) }?;
        let found = wait(handle.transaction.get(&store.store, key))?;
        // SAFETY: as the caller promises.
        unsafe { memory::give_found(found.as_deref(), value, value_len) }
    })
}

/// Makes a transaction's writes visible, or none of them.
///
/// # Safety
/// `transaction` is of [`tanada_kv_begin`] and was not ended, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_commit(transaction: *mut TransactionHandle, flags: u32) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::take(transaction) }?;
        Ok(wait(handle.transaction.commit(&write_options(flags, 0)?))?)
    })
}

/// Forgets a transaction.
///
/// # Safety
/// As [`tanada_kv_commit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_rollback(transaction: *mut TransactionHandle) {
    // SAFETY: as the caller promises.
    drop(unsafe { memory::take(transaction) });
}
