//! What stands behind the pointers that callers have.

use std::sync::Arc;

use bytes::Bytes;
use tanada_kv::{
    Batch, BulkLoad, Cursor, Database, Environment, Snapshot, Store, ThreadEnvironment, Transaction,
};

use crate::volumes::VolumeUse;

/// A database and the use of its volume.
pub struct DatabaseHandle {
    pub(crate) database: Database,
    pub(crate) volume: VolumeUse,
    pub(crate) read_only: bool,
}

/// A store, and its database.
pub struct StoreHandle {
    pub(crate) database: Database,
    pub(crate) store: Store,
}

/// A cursor, and what it showed last.
pub struct CursorHandle {
    pub(crate) cursor: Cursor,
    pub(crate) shown: Option<(Bytes, Bytes)>,
}

impl CursorHandle {
    pub(crate) fn show(&mut self, key: Bytes, value: Bytes) -> (&[u8], &[u8]) {
        let (key, value) = self.shown.insert((key, value));
        (key, value)
    }
}

/// A batch.
pub struct BatchHandle {
    pub(crate) batch: Batch,
}

/// A load of sorted keys.
pub struct LoadHandle {
    pub(crate) load: BulkLoad,
}

/// A snapshot.
pub struct SnapshotHandle {
    pub(crate) snapshot: Snapshot,
}

/// A transaction.
pub struct TransactionHandle {
    pub(crate) transaction: Transaction,
}

/// What databases of a C program run in.
pub(crate) fn environment() -> Arc<dyn Environment> {
    ThreadEnvironment::new()
}
