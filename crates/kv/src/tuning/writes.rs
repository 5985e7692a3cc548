//! Writes, flushes and the tasks in the background.

use std::time::Duration;

/// Conflicts of transactions, and updates.
#[derive(Debug)]
pub(crate) struct Commits {
    /// Notes below this number are not pruned.
    pub(crate) min_notes_to_prune: usize,
    /// Notes of commits take at most this fraction (1/n) of the memory.
    pub(crate) memory_divisor: u64,
    /// Least number of notes, however little memory there is.
    pub(crate) min_capacity: u64,
    /// A range counts as this many notes.
    pub(crate) notes_per_range: usize,
    /// Attempts of an update before it becomes a transaction.
    pub(crate) max_update_attempts: u64,
}

/// The values in use.
pub(crate) const COMMITS: Commits = Commits {
    min_notes_to_prune: 1 << 16,
    memory_divisor: 32,
    min_capacity: 1 << 10,
    notes_per_range: 16,
    max_update_attempts: 3,
};

/// Delays of writers.
#[derive(Debug)]
pub(crate) struct Stalls {
    /// Longest delay of a write for root kvsets.
    pub(crate) max_delay: Duration,
    /// Longest delay of a write for garbage.
    pub(crate) max_delay_for_garbage: Duration,
    /// Garbage below this many value segments delays no writes, unless it is a quarter of the free space.
    pub(crate) min_excess_segments: u64,
    /// Most bytes of all active memtables together, in full memtables.
    pub(crate) max_active_memtables: u64,
    /// Longest delay of a write for space on the fastest class.
    pub(crate) max_delay_for_fast_class: Duration,
    /// Fraction of the fastest class in use from which on writes are delayed.
    pub(crate) delay_from_fraction: f64,
    /// One of this many operations that complete without waiting yields: some tenths of a millisecond of a thread.
    pub(crate) operations_per_yield: u64,
}

/// The values in use.
pub(crate) const STALLS: Stalls = Stalls {
    max_delay: Duration::from_millis(1),
    max_delay_for_garbage: Duration::from_millis(10),
    min_excess_segments: 2,
    max_active_memtables: 2,
    max_delay_for_fast_class: Duration::from_micros(250),
    delay_from_fraction: 0.875,
    operations_per_yield: 64,
};

/// Writing memtables out.
#[derive(Debug)]
pub(crate) struct Flushes {
    /// Most small memtables that are flushed as a group, so that their syncs run concurrently.
    pub(crate) max_grouped_memtables: usize,
    /// Most bytes of a group of small memtables.
    pub(crate) max_grouped_bytes: u64,
    /// Delay before a flush looks for space again.
    pub(crate) space_retry_delay: Duration,
    /// A memtable is packed if at most this many of 1,000 versions of the last one became visible.
    pub(crate) max_visible_per_mille: u64,
    /// Keys that are written before the task yields.
    pub(crate) keys_per_slice: u64,
    /// Bytes of values that are copied before the task yields.
    pub(crate) copied_bytes_per_slice: usize,
}

/// The values in use.
pub(crate) const FLUSHES: Flushes = Flushes {
    max_grouped_memtables: 16,
    max_grouped_bytes: 1 << 20,
    space_retry_delay: Duration::from_millis(100),
    max_visible_per_mille: 750,
    keys_per_slice: 256,
    copied_bytes_per_slice: 256 << 10,
};

/// Tasks in the background, and how often they look again.
#[derive(Debug)]
pub(crate) struct Background {
    /// How often a flushed memtable is checked for readers before it is left to them.
    pub(crate) max_reader_checks: u32,
    /// Delay of the second check for readers; later ones wait longer.
    pub(crate) first_reader_check_delay: Duration,
    /// First delay of a worker that found no space. Each attempt may write as much as there is space for.
    pub(crate) min_retry_delay: Duration,
    /// Longest delay of a worker that found no space.
    pub(crate) max_retry_delay: Duration,
    /// Pause of a store's jobs after one of them found no space.
    pub(crate) no_space_pause: Duration,
    /// Attempts to settle the store before a load gives up because others write to it.
    pub(crate) max_settle_attempts: usize,
    /// Least time between two records of the activity in the manifest.
    pub(crate) min_note_interval: Duration,
    /// at most this often.
    pub(crate) max_merges_at_close: usize,
}

/// The values in use.
pub(crate) const BACKGROUND: Background = Background {
    max_reader_checks: 20,
    first_reader_check_delay: Duration::from_millis(1),
    min_retry_delay: Duration::from_secs(1),
    max_retry_delay: Duration::from_secs(60),
    no_space_pause: Duration::from_millis(100),
    max_settle_attempts: 20,
    min_note_interval: Duration::from_secs(10),
    max_merges_at_close: 16,
};
