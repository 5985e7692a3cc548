//! Reads of values.

use std::time::Duration;

/// Values that are read together.
#[derive(Debug)]
pub(crate) struct Batches {
    /// Most bytes of one I/O, unless that is too large a part of the batch.
    pub(crate) max_run_bytes: u64,
    /// Least value of that bound.
    pub(crate) min_run_bytes: u64,
    /// A gap up to this size is read along: that costs less than one more I/O.
    pub(crate) max_gap_bytes: u64,
    /// Up to this many neighbours are read from mirrors: on a faster class that many I/Os cost less than one here.
    pub(crate) max_mirrored_neighbours: usize,
    /// Values that are processed before the task yields.
    pub(crate) values_per_slice: usize,
    /// Bytes of values that are processed before the task yields.
    pub(crate) bytes_per_slice: u64,
    /// I/Os in flight.
    pub(crate) concurrent_reads: usize,
}

/// The values in use.
pub(crate) const BATCHES: Batches = Batches {
    max_run_bytes: 1 << 20,
    min_run_bytes: 64 << 10,
    max_gap_bytes: 16 << 10,
    max_mirrored_neighbours: 4,
    values_per_slice: 1024,
    bytes_per_slice: 1 << 20,
    concurrent_reads: 16,
};

/// The rate limiter of reads; decision 15 measures it.
#[derive(Debug)]
pub(crate) struct Limiter {
    /// Least time without a completion that may be a stall.
    pub(crate) stall_gap: Duration,
    /// A stall also lasts as long as this many reads one after the other.
    pub(crate) stall_gap_reads: f64,
    /// Time of the stall after a read was submitted in it: the process itself was running.
    pub(crate) stall_after_submit: Duration,
    /// With fewer reads in flight a gap is not a stall.
    pub(crate) min_reads_in_flight: usize,
    /// Stalls within [`STALL_WINDOW`] that set a limit.
    pub(crate) stalls_to_limit: u32,
    /// The window in which stalls are counted.
    pub(crate) stall_window: Duration,
    /// The best rate of this window and of the one before counts as the capacity.
    pub(crate) capacity_window: Duration,
    /// Upper bound of the limit, as a fraction of the capacity between two stalls.
    pub(crate) max_rate_fraction: f64,
    /// Lower bound of the limit, as a fraction of the capacity.
    pub(crate) min_rate_fraction: f64,
    /// A rate between two stalls is a sample of the capacity if it is at least this fraction of the best second.
    pub(crate) capacity_sample_fraction: f64,
    /// Factor of the limit after another stall (multiplicative decrease).
    pub(crate) rate_decrease: f64,
    /// First increase of the limit in each second, as a fraction; it doubles with each further second,
    pub(crate) rate_increase_per_s: f64,
    /// up to this fraction,
    pub(crate) max_rate_increase_per_s: f64,
    /// or up to this fraction after [`QUIET_TIME`] without a stall.
    pub(crate) max_rate_increase_per_s_quiet: f64,
    /// Time without a stall after which the capacity is forgotten.
    pub(crate) quiet_time: Duration,
    /// A limit above this many times the present rate is dropped.
    pub(crate) unlimited_factor: f64,
    /// Interval at which waiting reads are admitted, all that are due together.
    pub(crate) tick_time: Duration,
    /// Ticks without a waiting read after which the task ends.
    pub(crate) idle_ticks: u32,
    /// Admissions unused for this long are lost.
    pub(crate) max_burst: Duration,
}

/// The values in use.
pub(crate) const LIMITER: Limiter = Limiter {
    stall_gap: Duration::from_millis(4),
    stall_gap_reads: 32.0,
    stall_after_submit: Duration::from_millis(2),
    min_reads_in_flight: 4,
    stalls_to_limit: 3,
    stall_window: Duration::from_secs(1),
    capacity_window: Duration::from_secs(30),
    max_rate_fraction: 0.98,
    min_rate_fraction: 0.9,
    capacity_sample_fraction: 0.8,
    rate_decrease: 0.98,
    rate_increase_per_s: 0.0025,
    max_rate_increase_per_s: 0.02,
    max_rate_increase_per_s_quiet: 0.25,
    quiet_time: Duration::from_secs(10),
    unlimited_factor: 2.0,
    tick_time: Duration::from_millis(1),
    idle_ticks: 100,
    max_burst: Duration::from_millis(4),
};

/// Which of two copies is read.
#[derive(Debug)]
pub(crate) struct Replicas {
    /// Mirror reads in flight from which on the fastest class is busy.
    pub(crate) busy_reads: u64,
    /// First share, and the step by which it grows.
    pub(crate) share_step: u64,
    /// Time of a round of measurement, after which the share changes.
    pub(crate) round_time: Duration,
    /// Rounds in which no read goes to a class that was slower.
    pub(crate) pause_rounds: u64,
}

/// The values in use.
pub(crate) const REPLICAS: Replicas =
    Replicas { busy_reads: 16, share_step: 4, round_time: Duration::from_millis(50), pause_rounds: 32 };

/// What cursors read ahead.
#[derive(Debug)]
pub(crate) struct Scans {
    /// Keys of the first prefetch.
    pub(crate) first_keys: usize,
    /// Each prefetch has this many times the keys of the one before.
    pub(crate) growth_factor: usize,
    /// Most keys of a prefetch.
    pub(crate) max_keys: usize,
    /// Most keys of a prefetch if the caller has announced how many will be read.
    pub(crate) max_expected_keys: usize,
    /// A prefetch ends after this many bytes of values.
    pub(crate) target_value_bytes: u64,
}

/// The values in use.
pub(crate) const SCANS: Scans = Scans {
    first_keys: 8,
    growth_factor: 2,
    max_keys: 64,
    max_expected_keys: 1024,
    target_value_bytes: 128 << 10,
};

/// Jobs that give way to readers.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Readers count as present for this long after their last load.
    pub(crate) reader_timeout: Duration,
    /// A rest takes at most this many times as long as the read before it.
    pub(crate) max_rest_factor: u32,
    /// Rate at which a paced job reads.
    pub(crate) paced_bytes_per_second: f64,
    /// A job reads one more piece concurrently for each such time that it lags behind.
    pub(crate) lag_per_extra_read: Duration,
}

/// The values in use.
pub(crate) const PACE: Pace = Pace {
    reader_timeout: Duration::from_millis(100),
    max_rest_factor: 3,
    paced_bytes_per_second: 100e6,
    lag_per_extra_read: Duration::from_millis(50),
};
