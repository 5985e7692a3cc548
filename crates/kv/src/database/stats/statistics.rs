//! Counting what a database does, and what it takes up.

use serde::{Deserialize, Serialize};

use crate::database::stats::activity::Activity;
use crate::latency::LatencySummary;

/// Counters of a database since it was opened, and what it takes up now.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"key", b"value").await?;
/// let statistics = database.statistics();
/// assert_eq!(statistics.stores[0].logged_versions, 1);
/// assert!(statistics.bytes_allocated > 0);
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// Counters since the opening.
    #[serde(flatten)]
    pub since_opening: Activity,
    /// Bytes written to objects over bytes written by users.
    pub write_amplification: f64,
    /// Bytes of keys and values in kvsets that are in use.
    pub bytes_in_use: u64,
    /// Bytes that objects take up: those, garbage, mirrors, what the log has and has ready, the manifest, and what is
    /// left of their last chunks.
    pub bytes_allocated: u64,
    /// Bytes of all objects but what mirrors alone need over those of keys and values in kvsets that are in use;
    /// versions that only snapshots see count as in use.
    pub space_amplification: f64,
    /// Pages, filters and values that were read over lookups that memtables did not answer.
    pub read_amplification: f64,
    /// Bytes in the cache.
    pub cache_bytes: u64,
    /// Bytes of filters that stay in memory.
    #[serde(default)]
    pub resident_filter_bytes: u64,
    /// Bytes that memtables take up, and what is kept for the next ones.
    pub memory_table_bytes: u64,
    /// Snapshots that are held.
    pub snapshots: usize,
    /// Bytes on each class, fastest first.
    pub classes: Vec<ClassStatistics>,
    /// The stores, in order of their making.
    pub stores: Vec<StoreStatistics>,
    /// Batches, and what waited for the log to be durable.
    pub writes: LatencySummary,
    /// Lookups.
    pub reads: LatencySummary,
    /// Counters over the life of the database: all openings for writing, this one included.
    #[serde(default)]
    pub lifetime: Activity,
}

/// Bytes of a database on a class.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// let classes = database.statistics().classes;
/// assert_eq!(classes[0].name, "flash");
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClassStatistics {
    /// The class's name.
    pub name: String,
    /// Bytes of log and value segments.
    pub segment_bytes: u64,
    /// Bytes of segments without values of kvsets: the log's active and spare segments, and what a replay would read.
    /// They are allocated in advance.
    pub log_bytes: u64,
    /// Bytes of key files.
    pub key_bytes: u64,
    /// Bytes of the manifest.
    pub manifest_bytes: u64,
    /// Reads of values that it is given in a second, if it holds up what is more.
    #[serde(default)]
    pub most_reads_per_second: Option<u64>,
}

/// Size and shape of a store.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_kv::example::run(folder.path(), async |database, store| {
/// store.put(b"key", b"value").await?;
/// store.compact().await?;
/// let lines = &database.statistics().stores[0];
/// assert_eq!((&*lines.name, lines.leaves, lines.versions), ("lines", 1, 1));
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StoreStatistics {
    /// Its name.
    pub name: String,
    /// Memtables that wait to be flushed.
    pub waiting_tables: usize,
    /// Kvsets at the root.
    pub root_kvsets: usize,
    /// Leaves, and the kvsets in all of them.
    pub leaves: usize,
    /// See above.
    pub leaf_kvsets: usize,
    /// Spilled kvsets whose values are kept where the log wrote them, too, and read there.
    #[serde(default)]
    pub mirrors: usize,
    /// Bytes of those values.
    #[serde(default)]
    pub mirrored_bytes: u64,
    /// Versions in kvsets.
    pub versions: u64,
    /// Versions in memtables, and otherwise in the log alone.
    pub logged_versions: u64,
    /// Bytes of the keys and values of those.
    #[serde(default)]
    pub logged_bytes: u64,
    /// Bytes of keys in kvsets.
    pub key_bytes: u64,
    /// Bytes of values beside them.
    pub inline_bytes: u64,
    /// Bytes of values in segments that are in use.
    pub value_bytes: u64,
    /// Value segments.
    pub value_segments: usize,
}
