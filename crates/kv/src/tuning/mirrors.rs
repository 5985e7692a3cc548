//! Mirrors and copies on the fastest class.

use std::time::Duration;

/// Which mirrors go.
#[derive(Debug)]
pub(crate) struct Eviction {
    /// Most mirrors of a database: each takes some memory and a place in the manifest.
    pub(crate) max_mirrors: usize,
    /// Mirrors have at most this many times the bytes of leaves on slow classes. The rest is certainly garbage and
    /// takes space from other databases.
    pub(crate) max_leaf_bytes_factor: u64,
    /// A round ends after this fraction (1/n) of the values that leaves have on slow classes was read; earlier reads
    /// then count half. A sequential reader does not read some mirrors for long.
    pub(crate) round_part: u64,
    /// How long an eviction waits for readers of the mirror.
    pub(crate) reader_wait: Duration,
    /// A mirror is evictable for copies if its reads per byte are below this fraction of those of leaves on slow
    /// classes: most of its values are garbage or are not read.
    pub(crate) evictable_read_density: f64,
    /// Significance threshold, in standard deviations of a Poisson count of reads.
    pub(crate) significance_sigmas: f64,
}

/// The values in use.
pub(crate) const EVICTION: Eviction = Eviction {
    max_mirrors: 4096,
    max_leaf_bytes_factor: 2,
    round_part: 4,
    reader_wait: Duration::from_millis(2),
    evictable_read_density: 0.75,
    significance_sigmas: 4.0,
};

/// Space for mirrors and copies.
#[derive(Debug)]
pub(crate) struct Rooms {
    /// Log segments for which space is left free of mirrors: as many as the log needs before it prepares one.
    pub(crate) free_log_segments: u64,
    /// Further log segments for which space is left free of copies, so that they are not evicted at once.
    pub(crate) free_log_segments_for_copies: u64,
    /// The fraction (1/n) of a memtable that is written between two checks.
    pub(crate) free_memtable_divisor: u64,
    /// A log segment with a smaller live fraction is sparse: its live values are copied when it is spilled.
    pub(crate) sparse_live_fraction: f64,
    /// Fewer chunks of live values are not copied.
    pub(crate) min_copied_chunks: u64,
    /// Least time between two requests for evictable mirrors if the first found none.
    pub(crate) min_eviction_interval: Duration,
}

/// The values in use.
pub(crate) const ROOMS: Rooms = Rooms {
    free_log_segments: 2,
    free_log_segments_for_copies: 2,
    free_memtable_divisor: 4,
    sparse_live_fraction: 0.8,
    min_copied_chunks: 2,
    min_eviction_interval: Duration::from_millis(200),
};

/// Mirrors that are made again.
#[derive(Debug)]
pub(crate) struct Remirroring {
    /// A leaf gets mirrors when reads of slow classes reach this fraction (1/n) of its bytes there.
    pub(crate) min_read_divisor: u64,
    /// There has to be space for this fraction (1/n) of those bytes.
    pub(crate) min_space_divisor: u64,
    /// At most this fraction (1/n) of the fastest class is evicted for them.
    pub(crate) max_evicted_divisor: u64,
    /// A re-mirroring had no effect if a larger fraction of the bytes found no space.
    pub(crate) max_left_fraction: f64,
    /// Bytes read between two checks for leaves to re-mirror.
    pub(crate) read_bytes_per_check: u64,
}

/// The values in use.
pub(crate) const REMIRRORING: Remirroring = Remirroring {
    min_read_divisor: 32,
    min_space_divisor: 4,
    max_evicted_divisor: 16,
    max_left_fraction: 0.75,
    read_bytes_per_check: 1 << 20,
};
