//! Space and memory of a database.

use std::time::Duration;

/// Free space that is kept for deletes, and waiting for more.
#[derive(Debug)]
pub(crate) struct Reservation {
    /// Reserved log segments: one that is being filled, and one that is ready, at an opening.
    pub(crate) reserved_log_segments: u64,
    /// Reserved chunks beside those and a value segment: manifests, key files of memtables and of the root.
    pub(crate) reserved_chunks: u64,
    /// The reserve is at most this fraction (1/n) of the volume, but for the chunks that a database needs in any case.
    pub(crate) max_reserve_divisor: u64,
    /// Chunks that a database needs in any case.
    pub(crate) min_database_chunks: u64,
    /// Least reserved chunks, even in the smallest volumes: what an opening that deletes one key takes, a manifest, a
    /// log segment and a key file. At most a quarter, so that two or three chunks remain usable.
    pub(crate) min_reserved_chunks: u64,
    /// The fastest class has space for at least this many memtables, unless they are of the least size.
    pub(crate) min_memtables_per_class: u64,
    /// Least size of a memtable that is bounded by its class.
    pub(crate) min_memtable_bytes: u64,
    /// Longest wait of a write for space while jobs run, which free more than they take.
    pub(crate) max_space_wait: Duration,
    /// Wait of a write for space in any case.
    pub(crate) space_wait: Duration,
    /// Interval at which a waiting write checks for space.
    pub(crate) space_poll_interval: Duration,
    /// Interval at which waiting writes make deletions of objects durable, which frees their space.
    pub(crate) deletion_sync_interval: Duration,
}

/// The values in use.
pub(crate) const RESERVATION: Reservation = Reservation {
    reserved_log_segments: 2,
    reserved_chunks: 8,
    max_reserve_divisor: 4,
    min_database_chunks: 16,
    min_reserved_chunks: 3,
    min_memtables_per_class: 16,
    min_memtable_bytes: 1 << 20,
    max_space_wait: Duration::from_secs(10),
    space_wait: Duration::from_secs(1),
    space_poll_interval: Duration::from_millis(5),
    deletion_sync_interval: Duration::from_millis(200),
};

/// Bounds of segments and leaves in small classes, and counts of the fastest class.
#[derive(Debug)]
pub(crate) struct Sizes {
    /// A class has space for at least this many value segments.
    pub(crate) min_segments_per_class: u64,
    /// A class has space for the keys of at least this many leaves, unless leaves are of the least size.
    pub(crate) min_leaves_per_class: u64,
    /// Least size of a leaf that is bounded by its class.
    pub(crate) min_chunks_per_leaf: u64,
    /// A segment of fewer chunks is small.
    pub(crate) small_segment_chunks: u64,
    /// The fastest class has space for at least this many log segments.
    pub(crate) min_log_segments_per_class: u64,
    /// Bytes on the fastest class are not counted again for this many times the duration of a count.
    pub(crate) count_pause_factor: u32,
    /// Objects that may still grow on the fastest class while its bytes are counted.
    pub(crate) growing_objects: u64,
}

/// The values in use.
pub(crate) const SIZES: Sizes = Sizes {
    min_segments_per_class: 32,
    min_leaves_per_class: 16,
    min_chunks_per_leaf: 4,
    small_segment_chunks: 4,
    min_log_segments_per_class: 32,
    count_pause_factor: 10,
    growing_objects: 2,
};

/// The memory budget, and that of jobs and copies.
#[derive(Debug)]
pub(crate) struct Memory {
    /// How many times the total size of memtables is checked while one of them fills.
    pub(crate) memtable_budget_checks_per_table: u64,
    /// The fraction (1/n) of a memtable's memory that counts as small allocations, the nodes of its skip list. They
    /// are a seventh of a memtable with values of 1,000 bytes, and most of one with short values.
    pub(crate) node_bytes_divisor: u64,
    /// Least bytes that are set aside for what an allocator keeps in partly used blocks, up to a sixth of the memory.
    pub(crate) min_unaccounted_bytes: u64,
    /// Each stream of a job has this fraction (1/n) of its memory.
    pub(crate) stream_divisor: u64,
    /// A copy has this fraction (1/n) of the database's memory.
    pub(crate) memory_divisor: u64,
    /// Least memory of a copy.
    pub(crate) min_memory_bytes: u64,
    /// Most keys whose reads are counted.
    pub(crate) max_hot_keys: usize,
}

/// The values in use.
pub(crate) const MEMORY: Memory = Memory {
    memtable_budget_checks_per_table: 4,
    node_bytes_divisor: 2,
    min_unaccounted_bytes: 24 << 20,
    stream_divisor: 32,
    memory_divisor: 8,
    min_memory_bytes: 1 << 20,
    max_hot_keys: 1 << 16,
};
