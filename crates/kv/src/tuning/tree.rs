//! The choice of jobs of a tree, and how they run.

/// Which job is next.
#[derive(Debug)]
pub(crate) struct Picks {
    /// Promoted copies are given up at this many times the kvsets that a leaf may have.
    pub(crate) max_leaf_factor: f64,
    /// Neighbouring leaves are joined below this fraction (1/n) of `leaf_bytes`, well under the split threshold.
    pub(crate) join_divisor: u64,
    /// Most leaves that one job joins.
    pub(crate) max_joined_leaves: usize,
    /// Joined leaves have at most this many times the kvsets that a leaf may have.
    pub(crate) max_joined_kvsets_factor: usize,
    /// A compaction leaves a kvset out whose bytes are this many times those of all newer ones of its leaf.
    pub(crate) leave_out_factor: u64,
    /// Most urgency of a log that takes space: leaves that are neglected for it take more space in the end.
    pub(crate) max_log_urgency: f64,
    /// Least segments of a job, which may leave two small ones: of cold and of hot values.
    pub(crate) min_segments: usize,
    /// Small segments beyond those of each leaf that are tolerated where space allows.
    pub(crate) spare_segments: usize,
    /// Chunks that a merge has to free beyond those that it takes.
    pub(crate) min_gained_chunks: u64,
    /// Most tombstones that are checked; the others take effect in merges.
    pub(crate) max_tombstones: usize,
}

/// The values in use.
pub(crate) const PICKS: Picks = Picks {
    max_leaf_factor: 2.0,
    join_divisor: 2,
    max_joined_leaves: 64,
    max_joined_kvsets_factor: 2,
    leave_out_factor: 2,
    max_log_urgency: 3.0,
    min_segments: 4,
    spare_segments: 8,
    min_gained_chunks: 2,
    max_tombstones: 1000,
};

/// Garbage collection of value segments.
#[derive(Debug)]
pub(crate) struct Garbage {
    /// Urgency of the space bound over that of other limits.
    pub(crate) space_urgency_factor: f64,
    /// Most bytes of values that one job rewrites: writers may wait for it.
    pub(crate) max_rewritten_bytes: u64,
    /// When garbage has reached its bound, so much is emptied that this part of it would be left at most: a leaf's
    /// keys are rewritten to empty a segment, and the same again for each leaf that has values there, so little is
    /// gained by emptying a few.
    pub(crate) max_left_fraction: f64,
    /// The fraction that is left where segments are empty enough.
    pub(crate) target_left_fraction: f64,
    /// A segment with a larger live fraction is not emptied for that: it becomes emptier by itself.
    pub(crate) max_live_fraction: f64,
    /// Values of this many times the bytes of a leaf's keys may be rewritten beside them.
    pub(crate) max_values_per_key_byte: u64,
    /// A kvset is worth a tombstone compaction if this fraction (1/n) of its versions are deletes.
    pub(crate) min_deletes_divisor: u64,
}

/// The values in use.
pub(crate) const GARBAGE: Garbage = Garbage {
    space_urgency_factor: 10.0,
    max_rewritten_bytes: 256 << 20,
    max_left_fraction: 0.8,
    target_left_fraction: 0.5,
    max_live_fraction: 0.8,
    max_values_per_key_byte: 16,
    min_deletes_divisor: 4,
};

/// How jobs read and write.
#[derive(Debug)]
pub(crate) struct Jobs {
    /// Fewer samples give no estimate.
    pub(crate) min_samples: u64,
    /// Versions after which other tasks of the thread have their turn: the log's above all. They take half a
    /// millisecond; with a hundred tasks that read and write the others' turn takes ten times as long.
    pub(crate) versions_per_slice: usize,
    /// Most bytes of a key file that one I/O reads.
    pub(crate) max_read_ahead_bytes: u64,
    /// Least bytes of a key file that one I/O reads.
    pub(crate) min_read_ahead_bytes: u64,
    /// The fraction (1/n) of keys that is looked up below to estimate overwrites.
    pub(crate) sample_divisor: usize,
    /// Most filter parts that a job loads for that.
    pub(crate) max_filter_loads: usize,
    /// With fewer filter bits a key, more than a tenth of the hits are false, and nothing is estimated.
    pub(crate) min_filter_bits: u32,
    /// Most parts of a round: each has a stream that holds memory.
    pub(crate) max_parts: u64,
    /// Bytes that a waiting value takes in memory beside its own.
    pub(crate) waiting_overhead_bytes: u64,
    /// The fraction (1/n) of the memory of values that may be in flight from the log.
    pub(crate) in_flight_divisor: u64,
    /// Bytes of values that are written before the task yields.
    pub(crate) bytes_per_slice: u64,
    /// The fraction (1/n) of a batch that may be read before the batch before has been written.
    pub(crate) read_ahead_divisor: u64,
    /// The fraction (1/n) of a batch's memory for versions whose values were moved before.
    pub(crate) moved_versions_divisor: u64,
    /// Objects that are synced concurrently.
    pub(crate) concurrent_syncs: usize,
    /// Kvsets that are opened concurrently.
    pub(crate) concurrent_opens: usize,
    /// Rounds after which the reads of a new mirror are representative.
    pub(crate) min_rounds: u64,
    /// Reads of longer keys are not counted.
    pub(crate) max_counted_key_bytes: usize,
}

/// The values in use.
pub(crate) const JOBS: Jobs = Jobs {
    min_samples: 64,
    versions_per_slice: 1024,
    max_read_ahead_bytes: 512 << 10,
    min_read_ahead_bytes: 32 << 10,
    sample_divisor: 64,
    max_filter_loads: 128,
    min_filter_bits: 5,
    max_parts: 8,
    waiting_overhead_bytes: 64,
    in_flight_divisor: 8,
    bytes_per_slice: 1 << 20,
    read_ahead_divisor: 8,
    moved_versions_divisor: 8,
    concurrent_syncs: 32,
    concurrent_opens: 32,
    min_rounds: 4,
    max_counted_key_bytes: 1024,
};

/// Scans that read values in small pieces.
#[derive(Debug)]
pub(crate) struct Reorder {
    /// Bytes whose transfer costs about as much as one more I/O: more on disks, fewer on fast SSDs.
    pub(crate) io_cost_bytes: u64,
    /// An I/O of this size is large enough; larger ones do not make a scan faster.
    pub(crate) target_io_bytes: u64,
    /// Values are read together if the gap between them is at most this.
    pub(crate) max_gap_bytes: u64,
    /// A further segment is rewritten if it has wasted this fraction (1/n) of its cost.
    pub(crate) min_waste_divisor: u64,
    /// A leaf is checked whenever this fraction (1/n) of the cost of its values was wasted,
    pub(crate) checks_per_cost: u64,
    /// but not before this much was.
    pub(crate) min_wasted_bytes: u64,
    /// Places that the values of a leaf are in however often they are rewritten: what is kept and what is rewritten.
    pub(crate) min_places: usize,
}

/// The values in use.
pub(crate) const REORDER: Reorder = Reorder {
    io_cost_bytes: 64 << 10,
    target_io_bytes: 16 << 10,
    max_gap_bytes: 16 << 10,
    min_waste_divisor: 4,
    checks_per_cost: 64,
    min_wasted_bytes: 1 << 20,
    min_places: 2,
};
