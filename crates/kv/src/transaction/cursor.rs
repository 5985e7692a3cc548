//! Cursors.

use std::sync::Arc;

use bytes::Bytes;

use crate::database::{Snapshot, Store};
use crate::memory::MemoryTable;
use crate::{Error, Result};

/// Which keys a cursor walks over.
#[derive(Debug, Clone, Default)]
pub struct CursorOptions {
    /// Only keys that begin so. Default: all.
    pub prefix: Bytes,
    /// What was there then. Default: what is there when the cursor is made.
    pub snapshot: Option<Snapshot>,
}

impl CursorOptions {
    /// Only keys that begin with `prefix`.
    pub fn prefix(prefix: &[u8]) -> CursorOptions {
        CursorOptions { prefix: Bytes::copy_from_slice(prefix), snapshot: None }
    }
}

/// Walks over the keys of a store; it stands between two of them, at first before all.
#[derive(Debug)]
pub struct Cursor {
    store: Store,
    options: CursorOptions,
    own: Option<Arc<MemoryTable>>,
}

fn absent<T>() -> Result<T> {
    Err(Error::invalid("not there yet"))
}

impl Cursor {
    pub(crate) fn new(store: &Store, options: CursorOptions) -> Cursor {
        Cursor::over(store, options, None)
    }

    pub(crate) fn over(store: &Store, options: CursorOptions, own: Option<Arc<MemoryTable>>) -> Cursor {
        Cursor { store: store.clone(), options, own }
    }

    /// Goes before the first key that is not smaller than `key`.
    ///
    /// # Errors
    /// `Corrupted`, `Device`; so for all methods.
    pub async fn seek(&mut self, _key: &[u8]) -> Result<()> {
        absent()
    }

    /// Goes behind the last key.
    ///
    /// # Errors
    /// See [`seek`](Self::seek).
    pub async fn seek_to_end(&mut self) -> Result<()> {
        absent()
    }

    /// The key behind the cursor, which goes over it; `None` at the end.
    ///
    /// # Errors
    /// See [`seek`](Self::seek).
    pub async fn next(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        absent()
    }

    /// The key before the cursor, which goes over it; `None` at the beginning.
    ///
    /// # Errors
    /// See [`seek`](Self::seek).
    pub async fn previous(&mut self) -> Result<Option<(Bytes, Bytes)>> {
        absent()
    }

    /// From here on it sees what is there now, and stays where it is.
    pub fn refresh(&mut self) {}
}
