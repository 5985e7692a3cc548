//! Jobs of trees, and other maintenance.

use std::time::Duration;

/// Tombstone and TTL compactions.
#[derive(Debug)]
pub(crate) struct Tombstones {
    /// Least time between two tombstone compactions of a store.
    pub(crate) min_pause: Duration,
    /// Delay after a tombstone compaction that could not be done.
    pub(crate) retry_delay: Duration,
    /// The pause after a tombstone compaction is this many times its duration.
    pub(crate) pause_factor: u32,
    /// A leaf is compacted when its versions have been expired for at least this long.
    pub(crate) min_expired_s: u64,
    /// The same as a fraction (1/n) of the store's time to live.
    pub(crate) expired_lifetime_divisor: u64,
    /// Assumed time to live of a store where only writes name one.
    pub(crate) assumed_lifetime_s: u64,
    /// A memtable with deletes is flushed after this time without writes.
    pub(crate) idle_flush_delay: Duration,
    /// Weight of the newest merge in the moving average of overwritten versions.
    pub(crate) overwritten_smoothing: f64,
}

/// The values in use.
pub(crate) const TOMBSTONES: Tombstones = Tombstones {
    min_pause: Duration::from_secs(1),
    retry_delay: Duration::from_secs(10),
    pause_factor: 10,
    min_expired_s: 10,
    expired_lifetime_divisor: 4,
    assumed_lifetime_s: 3600,
    idle_flush_delay: Duration::from_secs(10),
    overwritten_smoothing: 0.5,
};

/// Compactions where no other job finds space.
#[derive(Debug)]
pub(crate) struct LowSpace {
    /// A leaf is merged with deletes of the root only if these are at least this fraction (1/n) of its versions.
    pub(crate) min_deletes_divisor: u64,
    /// It is merged again when the root has this fraction (1/n) more deletes than at the last time.
    pub(crate) more_deletes_divisor: u64,
    /// Space is low with less than this fraction (1/n) of a class free.
    pub(crate) low_space_divisor: u64,
}

/// The values in use.
pub(crate) const LOW_SPACE: LowSpace =
    LowSpace { min_deletes_divisor: 64, more_deletes_divisor: 8, low_space_divisor: 4 };

/// Merges at the root, and what makes spills due.
#[derive(Debug)]
pub(crate) struct Merges {
    /// A merge makes at most this fraction (1/n) of the fastest class: its output is spilled, and gives space back, as
    /// a whole.
    pub(crate) max_fast_class_divisor: u64,
    /// A spill of what was merged reads the log once for each round of values that fits in its memory: no more is
    /// merged than there has to be for what waits at the root to be few kvsets, but as many memtables in any case,
    /// which are about a round.
    pub(crate) max_share_of_root: u64,
    /// A merge may always make as much as this many memtables.
    pub(crate) min_memtables: u64,
    /// Most bytes of keys that a merge holds in memory.
    pub(crate) max_batch_bytes: u64,
    /// Target size of a root as a fraction (1/n) of the fastest class, if that is more than the memtables of a spill.
    pub(crate) root_divisor: u64,
    /// Hot and cold values go to separate segments if each has at least this fraction (1/n) of a segment,
    pub(crate) min_separate_divisor: u64,
    /// and at least this many chunks.
    pub(crate) min_separate_chunks: u64,
}

/// The values in use.
pub(crate) const MERGES: Merges = Merges {
    max_fast_class_divisor: 8,
    max_share_of_root: 8,
    min_memtables: 5,
    max_batch_bytes: 4 << 20,
    root_divisor: 8,
    min_separate_divisor: 64,
    min_separate_chunks: 2,
};

/// Copies of hot values.
#[derive(Debug)]
pub(crate) struct Promotion {
    /// Reads that make a key worth promoting.
    pub(crate) min_reads: u32,
    /// Least time between two promotions of a store.
    pub(crate) min_interval: Duration,
    /// Longest time whose unused budget is saved up.
    pub(crate) max_saved_budget: Duration,
    /// Reads of slow classes between two checks for keys to promote.
    pub(crate) reads_per_check: u64,
}

/// The values in use.
pub(crate) const PROMOTION: Promotion = Promotion {
    min_reads: 2,
    min_interval: Duration::from_secs(1),
    max_saved_budget: Duration::from_secs(10),
    reads_per_check: 256,
};

/// Placement repair.
#[derive(Debug)]
pub(crate) struct Relocation {
    /// Bytes that are relocated before other jobs run.
    pub(crate) step_bytes: u64,
    /// Chunks that are copied concurrently.
    pub(crate) concurrent_chunks: usize,
    /// Log segments for which the fastest class still has space after a relocation to it.
    pub(crate) free_log_segments: u64,
    /// Background relocation fills the fastest class up to this fraction of the pressure at which jobs are due.
    pub(crate) background_fill_fraction: f64,
}

/// The values in use.
pub(crate) const RELOCATION: Relocation = Relocation {
    step_bytes: 8 << 20,
    concurrent_chunks: 4,
    free_log_segments: 4,
    background_fill_fraction: 0.67,
};

/// Verification of all bytes.
#[derive(Debug)]
pub(crate) struct Checks {
    /// Values that are read concurrently.
    pub(crate) concurrent_reads: usize,
    /// Bytes that are prefetched of a key file.
    pub(crate) read_ahead_bytes: usize,
}

/// The values in use.
pub(crate) const CHECKS: Checks = Checks { concurrent_reads: 32, read_ahead_bytes: 256 << 10 };
