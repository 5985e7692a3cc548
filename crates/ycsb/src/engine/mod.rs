//! What a key-value engine has to offer to be measured.
//!
//! [`Engine`] is asynchronous. An engine whose calls block implements [`BlockingEngine`] and is wrapped in
//! [`FromBlocking`]: its futures are ready at once, and each client needs a thread. Clients on threads await an
//! asynchronous engine by blocking.

mod blocking;
mod ordered_map;
mod tanada;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tanada_io::Executors;

pub use blocking::{BlockingEngine, FromBlocking};
pub use ordered_map::OrderedMap;
pub use tanada::{ClassFolder, Tanada, TanadaOptions};

use crate::Result;

/// Makes a new value from the old one.
pub type Change<'a> = &'a (dyn Fn(&[u8]) -> Bytes + Send + Sync);

/// A key-value engine with an open data set.
#[async_trait]
pub trait Engine: Send + Sync + fmt::Debug {
    /// Adds a record; as durable as the engine was set up to make writes.
    async fn insert(&self, key: Bytes, value: Bytes) -> Result<()>;

    /// Overwrites a record, without reading it.
    async fn update(&self, key: Bytes, value: Bytes) -> Result<()>;

    /// A record's value.
    async fn read(&self, key: &[u8]) -> Result<Option<Bytes>>;

    /// Reads keys and values of up to `count` records in the order of keys, from `key` on; how many there were.
    async fn scan(&self, key: &[u8], count: usize) -> Result<usize>;

    /// Reads a record and writes what `change` makes of it; whether it was there.
    async fn read_modify_write(&self, key: Bytes, change: Change<'_>) -> Result<bool>;

    /// Brings all data where they stay if nothing more is written, with work that could wait as well.
    async fn settle(&self) -> Result<()>;

    /// Returns when no background work is due any more. Seconds at the end in which nothing was done, for an engine
    /// that can only look.
    async fn catch_up(&self) -> Result<f64>;

    /// Makes everything durable and stops background work. Nothing else is called afterwards.
    async fn close(&self) -> Result<()>;

    /// What the engine counted since it was opened.
    fn statistics(&self) -> EngineStatistics;

    /// Threads that clients with tasks run on; without, they share one thread of their own.
    fn executors(&self) -> Option<Arc<Executors>> {
        None
    }
}

/// What an engine counts of itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineStatistics {
    /// Media classes, fastest first; empty if the engine cannot tell.
    pub classes: Vec<ClassBytes>,
    /// Bytes that the data take on each class now; empty if their files tell.
    #[serde(default)]
    pub stored_bytes: BTreeMap<String, u64>,
    /// What was read because no cache had it; none if the engine cannot tell.
    #[serde(default)]
    pub cache_misses: Option<u64>,
    /// Memory that the engine holds by its own account; 0 if it cannot tell.
    pub memory_bytes: u64,
    /// Anything else that explains a run.
    pub details: serde_json::Value,
}

/// Bytes of a media class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassBytes {
    /// Its name: `staging` or `capacity`.
    pub name: String,
    /// Bytes read from its devices.
    pub bytes_read: u64,
    /// Bytes written to its devices.
    pub bytes_written: u64,
}

impl ClassBytes {
    /// What was added since `before`.
    pub fn since(&self, before: &ClassBytes) -> ClassBytes {
        ClassBytes {
            name: self.name.clone(),
            bytes_read: self.bytes_read.saturating_sub(before.bytes_read),
            bytes_written: self.bytes_written.saturating_sub(before.bytes_written),
        }
    }
}
