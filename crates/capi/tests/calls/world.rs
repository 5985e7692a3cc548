//! A volume in a folder of its own, a database in it, and short forms of the calls that every test makes.

use std::ffi::{CStr, CString, c_int, c_void};
use std::path::Path;
use std::ptr::{null, null_mut};

use serde_json::Value;
use tempfile::TempDir;

use crate::symbols::*;

/// Bytes of a volume: small, for each test makes one.
const VOLUME_BYTES: u64 = 64 << 20;
/// Settings that have a database make do with little memory.
pub const SMALL: &CStr =
    c"{\"memory_bytes\": 4194304, \"memory_table_bytes\": 131072, \"log_segment_bytes\": 1048576}";

/// An open database in a volume of its own.
pub struct World {
    pub folder: TempDir,
    pub database: *mut Handle,
}

pub fn path_of(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// What the last failure on this thread says.
pub fn message() -> String {
    let message = tanada_kv_error();
    assert!(!message.is_null());
    // SAFETY: the header promises a string that stands until the next call on this thread.
    unsafe { CStr::from_ptr(message) }.to_str().unwrap().to_owned()
}

/// Bytes as a caller passes them.
pub fn at(bytes: &[u8]) -> *const c_void {
    bytes.as_ptr().cast()
}

/// Copies bytes that the library shows.
pub fn seen(start: *const c_void, len: usize) -> Vec<u8> {
    // SAFETY: the library showed so many bytes there, and nothing was called since.
    unsafe { std::slice::from_raw_parts(start.cast::<u8>(), len) }.to_vec()
}

/// What a call gives that hands bytes over, which are given back.
pub fn taken(call: impl FnOnce(Out<c_void>, *mut usize) -> c_int) -> Result<Vec<u8>, c_int> {
    let (mut start, mut len) = (null_mut(), 0);
    let code = call(&raw mut start, &raw mut len);
    if start.is_null() {
        assert_ne!(code, OK);
        return Err(code);
    }
    let copy = seen(start, len);
    tanada_kv_free(start, len);
    assert_eq!(code, OK);
    Ok(copy)
}

/// The same for JSON.
pub fn json(call: impl FnOnce(Out<c_void>, *mut usize) -> c_int) -> Value {
    serde_json::from_slice(&taken(call).unwrap()).unwrap()
}

/// A handle that a call gives.
pub fn handle(call: impl FnOnce(Out<Handle>) -> c_int) -> *mut Handle {
    let mut handle = null_mut();
    let code = call(&raw mut handle);
    assert_eq!(code, OK, "{}", message());
    assert!(!handle.is_null());
    handle
}

impl World {
    pub fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let mut world = World { folder, database: null_mut() };
        assert_eq!(tanada_kv_create_volume(world.volume().as_ptr(), VOLUME_BYTES), OK, "{}", message());
        world.open(CREATE);
        world
    }

    pub fn volume(&self) -> CString {
        path_of(&self.folder.path().join("volume"))
    }

    /// Opens the database, which is closed.
    pub fn open(&mut self, flags: u32) {
        let volume = self.volume();
        let open = |out| tanada_kv_open_with(volume.as_ptr(), c"test".as_ptr(), flags, SMALL.as_ptr(), out);
        self.database = handle(open);
    }

    pub fn close(&mut self) {
        let database = std::mem::replace(&mut self.database, null_mut());
        assert_eq!(tanada_kv_close(database), OK, "{}", message());
    }

    pub fn store(&self, name: &CStr) -> *mut Handle {
        handle(|out| tanada_kv_store_open(self.database, name.as_ptr(), CREATE, out))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !self.database.is_null() && !std::thread::panicking() {
            self.close();
        }
    }
}

pub fn put(store: *mut Handle, key: &[u8], value: &[u8]) {
    let code = tanada_kv_put(store, at(key), key.len(), at(value), value.len(), 0);
    assert_eq!(code, OK, "{}", message());
}

pub fn get(store: *mut Handle, key: &[u8]) -> Option<Vec<u8>> {
    match taken(|value, len| tanada_kv_get(store, at(key), key.len(), value, len)) {
        Ok(value) => Some(value),
        Err(code) => {
            assert_eq!(code, NOT_FOUND, "{}", message());
            None
        }
    }
}

/// A key and a value of a cursor's step; `None` at its end.
pub fn step(cursor: *mut Handle, is_forward: bool) -> Option<(Vec<u8>, Vec<u8>)> {
    let (mut key, mut key_len, mut value, mut value_len) = (null(), 0, null(), 0);
    let (key_at, key_len_at) = (&raw mut key, &raw mut key_len);
    let (value_at, value_len_at) = (&raw mut value, &raw mut value_len);
    let code = match is_forward {
        true => tanada_kv_cursor_next(cursor, key_at, key_len_at, value_at, value_len_at),
        false => tanada_kv_cursor_previous(cursor, key_at, key_len_at, value_at, value_len_at),
    };
    if code == NOT_FOUND {
        return None;
    }
    assert_eq!(code, OK, "{}", message());
    Some((seen(key, key_len), seen(value, value_len)))
}

/// All keys from where a cursor stands.
pub fn keys(cursor: *mut Handle) -> Vec<String> {
    let steps = std::iter::from_fn(|| step(cursor, true));
    steps.map(|(key, _)| String::from_utf8(key).unwrap()).collect()
}

/// All keys of a store.
pub fn all_keys(store: *mut Handle) -> Vec<String> {
    let cursor = handle(|out| tanada_kv_cursor_open(store, null(), 0, out));
    let found = keys(cursor);
    tanada_kv_cursor_free(cursor);
    found
}
