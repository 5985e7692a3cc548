//! The key-value engine for programs in C: `include/tanada_kv.h`.
//!
//! Above: programs in C and whatever speaks its conventions. Below: `tanada-kv`.
//!
//! Every function checks what it is given as far as that can be done, gives a code, and keeps the message of a failure
//! for its thread. A panic of the engine ends at this border, as a code.

mod batch;
mod code;
mod cursor;
mod handles;
mod load;
mod memory;
mod settings;
mod snapshot;
mod transaction;
mod volumes;
mod whole;

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use tanada_kv::blocking::wait;
use tanada_kv::{
    Compression, Database, DatabaseOverrides, DatabaseSettings, ErrorKind, OnProgress, OpenOptions,
    StoreSettings, WriteOptions,
};
use tanada_volume::VolumeSettings;
use tanada_volume::directory::{ClassConfig, Directory, Settings};

use code::{Code, Failure, guarded};
use handles::{DatabaseHandle, StoreHandle};
use memory::{bytes, check_place, give, text};
use volumes::VolumeUse;

/// Make the database or the store if there is none.
const CREATE: u32 = 1;
/// Change nothing.
const READ: u32 = 2;
/// Durable before the call returns.
const SYNC: u32 = 1;
/// How long values are compressed.
const COMPRESSIONS: [(u32, Compression); 3] =
    [(2, Compression::None), (4, Compression::Lz4), (8, Compression::Zstd)];
/// All flags of writes, below the milliseconds.
const WRITE_FLAGS: u32 = 15;

/// How a write is made: durable at once, or after as many milliseconds as the upper half says, or as the database has
/// it; compressed as a flag says, or as the store has it; and for how many seconds, if that is not 0.
fn write_options(flags: u32, time_to_live_s: u32) -> Result<WriteOptions, Failure> {
    let options = match (flags & SYNC != 0, (flags >> 16) as u16) {
        (true, _) => WriteOptions::sync(),
        (false, 0) => WriteOptions::default(),
        (false, ms) => WriteOptions::within(ms),
    };
    let mut named = COMPRESSIONS.into_iter().filter(|(flag, _)| flags & flag != 0);
    let compression = named.next().map(|(_, compression)| compression);
    if named.next().is_some() || flags & 0xffff & !WRITE_FLAGS != 0 {
        return Err(Failure::of(
            Code::Invalid,
            format!("{flags:#x} are no flags of writes, or two compressions"),
        ));
    }
    let time_to_live_s = (time_to_live_s > 0).then_some(time_to_live_s);
    Ok(WriteOptions { compression, time_to_live_s, ..options })
}

/// # Errors
/// `Invalid` if `flags` has others than `known`, of those that open `what`.
fn check_flags(flags: u32, known: u32, what: &str) -> Result<(), Failure> {
    if flags & !known == 0 {
        return Ok(());
    }
    Err(Failure::of(Code::Invalid, format!("{flags:#x} are no flags of {what}")))
}

/// Opens a database with what is named of its settings; one that is made has the defaults for the rest, and one that is
/// there its own.
///
/// # Safety
/// The strings end with a zero or are NULL; `out` can be written or is NULL.
unsafe fn open_database(
    volume: *const c_char,
    database: *const c_char,
    flags: u32,
    settings: DatabaseOverrides,
    progress: Option<OnProgress>,
    out: *mut *mut DatabaseHandle,
) -> Result<(), Failure> {
    check_flags(flags, CREATE | READ, "databases")?;
    check_place(out)?;
    // SAFETY: as the caller promises.
    let (volume, name) = unsafe { (Path::new(text(volume)?), text(database)?) };
    let read_only = flags & READ != 0;
    let volume = VolumeUse::open(volume, read_only)?;
    let environment = handles::environment();
    let options = OpenOptions { read_only, settings, progress, ..OpenOptions::default() };
    let opened = match wait(Database::open(volume.volume(), name, &options, environment.clone())) {
        Err(error) if error.kind() == ErrorKind::NotFound && flags & CREATE != 0 && !read_only => {
            let settings = options.settings.over(&DatabaseSettings::default());
            wait(Database::create(volume.volume(), name, &settings, environment))
        }
        opened => opened,
    };
    let handle = match opened {
        Ok(database) => DatabaseHandle { database, volume, read_only },
        Err(error) => {
            // Why the database cannot be opened is what matters.
            let _ = volume.close();
            return Err(error.into());
        }
    };
    // SAFETY: as the caller promises.
    unsafe { give(out, handle) }
}

/// Opens a store; one that is made gets the settings.
///
/// # Safety
/// `database` is open, `name` ends with a zero, `out` can be written; each may be NULL.
unsafe fn open_store(
    database: *mut DatabaseHandle,
    name: *const c_char,
    flags: u32,
    settings: &StoreSettings,
    out: *mut *mut StoreHandle,
) -> Result<(), Failure> {
    check_flags(flags, CREATE, "stores")?;
    check_place(out)?;
    // SAFETY: as the caller promises.
    let (handle, name) = unsafe { (memory::borrow(database)?, text(name)?) };
    let store = match handle.database.open_store(name) {
        Err(error) if error.kind() == ErrorKind::NotFound && flags & CREATE != 0 => {
            match wait(handle.database.create_store(name, settings)) {
                // Another thread was first.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => handle.database.open_store(name),
                made => made,
            }
        }
        opened => opened,
    };
    // SAFETY: as the caller promises.
    unsafe { give(out, StoreHandle { store: store?, database: handle.database.clone() }) }
}

/// What the last call on this thread that failed says.
#[unsafe(no_mangle)]
pub extern "C" fn tanada_kv_error() -> *const c_char {
    code::last_message()
}

/// Makes a volume with one class.
///
/// # Safety
/// `path` is a string that ends with a zero, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_create_volume(path: *const c_char, size_bytes: u64) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let path = Path::new(unsafe { text(path) }?);
        let classes = [ClassConfig::new("capacity", vec!["capacity".into()], Some(size_bytes))];
        let settings = VolumeSettings::default();
        let directory = wait(Directory::create(path, &settings, &classes, Settings::default()))?;
        Ok(wait(directory.close())?)
    })
}

/// Opens a database.
///
/// # Safety
/// The strings end with a zero or are NULL; `out` can be written or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_open(
    volume: *const c_char,
    database: *const c_char,
    flags: u32,
    out: *mut *mut DatabaseHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    guarded(|| unsafe { open_database(volume, database, flags, DatabaseOverrides::default(), None, out) })
}

/// Closes a database, and its volume if no other of it is open.
///
/// # Safety
/// `database` is of [`tanada_kv_open`] and was not closed, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_close(database: *mut DatabaseHandle) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises; nobody else has the box.
        let handle = unsafe { memory::take(database) }?;
        let closed = wait(handle.database.close());
        handle.volume.close()?;
        Ok(closed?)
    })
}

/// Makes durable what was written before.
///
/// # Safety
/// `database` is open, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_sync(database: *mut DatabaseHandle) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let handle = unsafe { memory::borrow(database) }?;
        Ok(wait(handle.database.sync())?)
    })
}

/// Opens a store.
///
/// # Safety
/// `database` is open, `name` ends with a zero, `out` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_store_open(
    database: *mut DatabaseHandle,
    name: *const c_char,
    flags: u32,
    out: *mut *mut StoreHandle,
) -> c_int {
    // SAFETY: as the caller promises.
    guarded(|| unsafe { open_store(database, name, flags, &StoreSettings::default(), out) })
}

/// Gives a store back.
///
/// # Safety
/// `store` is of [`tanada_kv_store_open`] and was not given back, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_store_free(store: *mut StoreHandle) {
    // SAFETY: as the caller promises.
    drop(unsafe { memory::take(store) });
}

/// Writes a key.
///
/// # Safety
/// `store` is open; key and value have as many bytes as is said; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_put(
    store: *mut StoreHandle,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    flags: u32,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, key, value) =
            unsafe { (memory::borrow(store)?, bytes(key, key_len)?, bytes(value, value_len)?) };
        Ok(wait(handle.store.put_with(key, value, &write_options(flags, 0)?))?)
    })
}

/// Writes a key that counts as deleted after so many seconds, or as the store has it if that is 0.
///
/// # Safety
/// As [`tanada_kv_put`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_put_expiring(
    store: *mut StoreHandle,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    time_to_live_s: u32,
    flags: u32,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, key, value) =
            unsafe { (memory::borrow(store)?, bytes(key, key_len)?, bytes(value, value_len)?) };
        Ok(wait(handle.store.put_with(key, value, &write_options(flags, time_to_live_s)?))?)
    })
}

/// Deletes a key.
///
/// # Safety
/// `store` is open; the key has as many bytes as is said; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_delete(
    store: *mut StoreHandle,
    key: *const c_void,
    key_len: usize,
    flags: u32,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, key) = unsafe { (memory::borrow(store)?, bytes(key, key_len)?) };
        Ok(wait(handle.store.delete_with(key, &write_options(flags, 0)?))?)
    })
}

/// Deletes all keys that begin with the prefix.
///
/// # Safety
/// `store` is open; the prefix has as many bytes as is said; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_delete_prefix(
    store: *mut StoreHandle,
    prefix: *const c_void,
    prefix_len: usize,
    flags: u32,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, prefix) = unsafe { (memory::borrow(store)?, bytes(prefix, prefix_len)?) };
        let mut batch = tanada_kv::Batch::new();
        batch.delete_prefix(&handle.store, prefix);
        Ok(wait(handle.database.write(batch, &write_options(flags, 0)?))?)
    })
}

/// Reads a key.
///
/// # Safety
/// `store` is open; the key has as many bytes as is said; `value` and `value_len` can be written; each may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_get(
    store: *mut StoreHandle,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
) -> c_int {
    guarded(|| {
        // SAFETY: as the caller promises.
        let (handle, key) = unsafe { (memory::borrow(store)?, bytes(key, key_len)?) };
        let found = wait(handle.store.get(key))?;
        // SAFETY: as the caller promises.
        unsafe { memory::give_found(found.as_deref(), value, value_len) }
    })
}

/// Gives a value back.
///
/// # Safety
/// Both are what [`tanada_kv_get`] gave, once, or `value` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tanada_kv_free(value: *mut c_void, value_len: usize) {
    // SAFETY: as the caller promises.
    unsafe { memory::free_bytes(value, value_len) }
}
