//! The functions of the header as a linker knows them.

use std::ffi::{c_char, c_int, c_void};

// Its symbols are the library's.
use tanada_kv_c as _;

/// What a handle points to, which callers do not know.
#[repr(C)]
pub struct Handle {
    _private: [u8; 0],
}

pub type Out<T> = *mut *mut T;

pub const OK: c_int = 0;
pub const NOT_FOUND: c_int = 1;
pub const INVALID: c_int = 2;
pub const EXISTS: c_int = 3;
pub const CONFLICT: c_int = 4;
pub const READ_ONLY: c_int = 6;
pub const LOCKED: c_int = 7;

pub const CREATE: u32 = 1;
pub const READ: u32 = 2;
pub const SYNC: u32 = 1;
pub const UNCOMPRESSED: u32 = 2;
pub const LZ4: u32 = 4;
pub const ZSTD: u32 = 8;
pub const KEYS_ONLY: u32 = 1;

pub type Progress = Option<extern "C" fn(*mut c_void, u64, u64)>;

// SAFETY: these are the library's functions as the header declares them, and tests keep to what it asks of callers.
unsafe extern "C" {
    pub safe fn tanada_kv_error() -> *const c_char;
    pub safe fn tanada_kv_create_volume(path: *const c_char, bytes: u64) -> c_int;
    pub safe fn tanada_kv_open(v: *const c_char, d: *const c_char, flags: u32, out: Out<Handle>) -> c_int;
    pub safe fn tanada_kv_open_with(
        volume: *const c_char,
        database: *const c_char,
        flags: u32,
        settings: *const c_char,
        out: Out<Handle>,
    ) -> c_int;
    pub safe fn tanada_kv_open_telling(
        volume: *const c_char,
        database: *const c_char,
        flags: u32,
        settings: *const c_char,
        progress: Progress,
        context: *mut c_void,
        out: Out<Handle>,
    ) -> c_int;
    pub safe fn tanada_kv_set_settings(database: *mut Handle, settings: *const c_char) -> c_int;
    pub safe fn tanada_kv_set_fast_class_bytes(database: *mut Handle, bytes: u64) -> c_int;
    pub safe fn tanada_kv_close(database: *mut Handle) -> c_int;
    pub safe fn tanada_kv_sync(database: *mut Handle) -> c_int;
    pub safe fn tanada_kv_store_open(d: *mut Handle, name: *const c_char, f: u32, out: Out<Handle>) -> c_int;
    pub safe fn tanada_kv_store_free(store: *mut Handle);
    pub safe fn tanada_kv_store_open_with(
        database: *mut Handle,
        name: *const c_char,
        flags: u32,
        settings: *const c_char,
        out: Out<Handle>,
    ) -> c_int;
    pub safe fn tanada_kv_store_set_settings(store: *mut Handle, settings: *const c_char) -> c_int;
    pub safe fn tanada_kv_set_policy(store: *mut Handle, policy: *const c_char) -> c_int;
    pub safe fn tanada_kv_stores(database: *mut Handle, json: Out<c_void>, len: *mut usize) -> c_int;
    pub safe fn tanada_kv_store_drop(database: *mut Handle, name: *const c_char) -> c_int;
    pub safe fn tanada_kv_compact(store: *mut Handle) -> c_int;
    pub safe fn tanada_kv_put(
        store: *mut Handle,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
        flags: u32,
    ) -> c_int;
    pub safe fn tanada_kv_put_expiring(
        store: *mut Handle,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
        time_to_live_s: u32,
        flags: u32,
    ) -> c_int;
    pub safe fn tanada_kv_delete(store: *mut Handle, key: *const c_void, len: usize, flags: u32) -> c_int;
    pub safe fn tanada_kv_delete_prefix(s: *mut Handle, prefix: *const c_void, len: usize, f: u32) -> c_int;
    pub safe fn tanada_kv_delete_range(
        store: *mut Handle,
        start: *const c_void,
        start_len: usize,
        end: *const c_void,
        end_len: usize,
        flags: u32,
    ) -> c_int;
    pub safe fn tanada_kv_batch_new(out: Out<Handle>) -> c_int;
    pub safe fn tanada_kv_batch_put(
        batch: *mut Handle,
        store: *mut Handle,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
    ) -> c_int;
    pub safe fn tanada_kv_batch_delete(
        b: *mut Handle,
        s: *mut Handle,
        key: *const c_void,
        len: usize,
    ) -> c_int;
    pub safe fn tanada_kv_batch_delete_range(
        batch: *mut Handle,
        store: *mut Handle,
        start: *const c_void,
        start_len: usize,
        end: *const c_void,
        end_len: usize,
    ) -> c_int;
    pub safe fn tanada_kv_write(database: *mut Handle, batch: *mut Handle, flags: u32) -> c_int;
    pub safe fn tanada_kv_write_expiring(
        d: *mut Handle,
        batch: *mut Handle,
        seconds: u32,
        flags: u32,
    ) -> c_int;
    pub safe fn tanada_kv_batch_free(batch: *mut Handle);
    pub safe fn tanada_kv_get(
        store: *mut Handle,
        key: *const c_void,
        key_len: usize,
        value: Out<c_void>,
        value_len: *mut usize,
    ) -> c_int;
    pub safe fn tanada_kv_free(value: *mut c_void, len: usize);
    pub safe fn tanada_kv_cursor_open(
        s: *mut Handle,
        p: *const c_void,
        len: usize,
        out: Out<Handle>,
    ) -> c_int;
    pub safe fn tanada_kv_cursor_open_with(
        store: *mut Handle,
        snapshot: *mut Handle,
        prefix: *const c_void,
        prefix_len: usize,
        flags: u32,
        expected_keys: usize,
        out: Out<Handle>,
    ) -> c_int;
    pub safe fn tanada_kv_cursor_refresh(cursor: *mut Handle) -> c_int;
    pub safe fn tanada_kv_cursor_seek(cursor: *mut Handle, key: *const c_void, len: usize) -> c_int;
    pub safe fn tanada_kv_cursor_seek_to_begin(cursor: *mut Handle) -> c_int;
    pub safe fn tanada_kv_cursor_seek_to_end(cursor: *mut Handle) -> c_int;
    pub safe fn tanada_kv_cursor_next(
        cursor: *mut Handle,
        key: *mut *const c_void,
        key_len: *mut usize,
        value: *mut *const c_void,
        value_len: *mut usize,
    ) -> c_int;
    pub safe fn tanada_kv_cursor_previous(
        cursor: *mut Handle,
        key: *mut *const c_void,
        key_len: *mut usize,
        value: *mut *const c_void,
        value_len: *mut usize,
    ) -> c_int;
    pub safe fn tanada_kv_cursor_free(cursor: *mut Handle);
    pub safe fn tanada_kv_snapshot_take(database: *mut Handle, out: Out<Handle>) -> c_int;
    pub safe fn tanada_kv_get_at(
        store: *mut Handle,
        snapshot: *mut Handle,
        key: *const c_void,
        key_len: usize,
        value: Out<c_void>,
        value_len: *mut usize,
    ) -> c_int;
    pub safe fn tanada_kv_cursor_open_at(
        store: *mut Handle,
        snapshot: *mut Handle,
        prefix: *const c_void,
        prefix_len: usize,
        out: Out<Handle>,
    ) -> c_int;
    pub safe fn tanada_kv_snapshot_free(snapshot: *mut Handle);
    pub safe fn tanada_kv_begin(database: *mut Handle, serializable: c_int, out: Out<Handle>) -> c_int;
    pub safe fn tanada_kv_transaction_put(
        transaction: *mut Handle,
        store: *mut Handle,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
    ) -> c_int;
    pub safe fn tanada_kv_transaction_delete(
        transaction: *mut Handle,
        store: *mut Handle,
        key: *const c_void,
        key_len: usize,
    ) -> c_int;
    pub safe fn tanada_kv_transaction_delete_range(
        transaction: *mut Handle,
        store: *mut Handle,
        start: *const c_void,
        start_len: usize,
        end: *const c_void,
        end_len: usize,
    ) -> c_int;
    pub safe fn tanada_kv_transaction_cursor_open(
        transaction: *mut Handle,
        store: *mut Handle,
        prefix: *const c_void,
        prefix_len: usize,
        flags: u32,
        out: Out<Handle>,
    ) -> c_int;
    pub safe fn tanada_kv_transaction_get(
        transaction: *mut Handle,
        store: *mut Handle,
        key: *const c_void,
        key_len: usize,
        value: Out<c_void>,
        value_len: *mut usize,
    ) -> c_int;
    pub safe fn tanada_kv_commit(transaction: *mut Handle, flags: u32) -> c_int;
    pub safe fn tanada_kv_rollback(transaction: *mut Handle);
    pub safe fn tanada_kv_load_begin(store: *mut Handle, out: Out<Handle>) -> c_int;
    pub safe fn tanada_kv_load_put(
        load: *mut Handle,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
    ) -> c_int;
    pub safe fn tanada_kv_load_finish(load: *mut Handle) -> c_int;
    pub safe fn tanada_kv_load_free(load: *mut Handle);
    pub safe fn tanada_kv_checkpoint(database: *mut Handle, name: *const c_char) -> c_int;
    pub safe fn tanada_kv_databases(volume: *const c_char, json: Out<c_void>, len: *mut usize) -> c_int;
    pub safe fn tanada_kv_destroy(volume: *const c_char, database: *const c_char) -> c_int;
    pub safe fn tanada_kv_drain_class(database: *mut Handle, class_name: *const c_char) -> c_int;
    pub safe fn tanada_kv_fill_class(database: *mut Handle, class_name: *const c_char) -> c_int;
    pub safe fn tanada_kv_check(database: *mut Handle, json: Out<c_void>, len: *mut usize) -> c_int;
    pub safe fn tanada_kv_statistics(database: *mut Handle, json: Out<c_void>, len: *mut usize) -> c_int;
    pub safe fn tanada_kv_settings(database: *mut Handle, json: Out<c_void>, len: *mut usize) -> c_int;
    pub safe fn tanada_kv_store_settings(store: *mut Handle, json: Out<c_void>, len: *mut usize) -> c_int;
}
