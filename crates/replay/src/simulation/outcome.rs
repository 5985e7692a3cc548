//! What came of a replay.

use serde::{Deserialize, Serialize};

/// One query of a replay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryOutcome {
    /// As the trace names it.
    pub name: String,
    /// From its beginning to its end.
    pub seconds: f64,
    /// Its I/Os.
    pub ios: u64,
    /// Requests that went to the slow class.
    pub slow_ios: u64,
}

/// A replay, with what was simulated.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The policy, with its options.
    pub policy: String,
    /// The fast class's room, as a share of the trace's bytes.
    pub fast_share: f64,
    /// From the first I/O to the end of the last query; relocations in it are part of it.
    pub total_s: f64,
    /// The queries, in the order in which they began.
    pub queries: Vec<QueryOutcome>,
    /// I/Os of the trace.
    pub ios: u64,
    /// Requests that went to the slow class, those of relocations not included.
    pub slow_ios: u64,
    /// Requests that went to the fast class, likewise.
    pub fast_ios: u64,
    /// Bytes read from the fast class over all bytes read.
    pub hit_rate: f64,
    /// Requests of relocations to the slow class: the paper's figure 5.
    pub relocation_slow_ios: u64,
    /// Requests of relocations to the fast class, fills of caches included.
    pub relocation_fast_ios: u64,
    /// Bytes that relocations copied, fills of caches included.
    pub relocation_bytes: u64,
    /// Bytes written to the fast class while queries ran, by whomever.
    pub fast_bytes_written: u64,
    /// Bytes put into the fast class beforehand, in no time.
    pub prepared_bytes: u64,
    /// Most chunks (or blocks) in the fast class at once.
    pub most_chunks: u32,
    /// Chunks (or blocks) that it has room for.
    pub capacity_chunks: u32,
    /// Wishes of the policy that were refused: no room, a user's rule, or nothing to do.
    pub refused: u64,
}

impl Outcome {
    /// The seconds of the query that the trace names so; of all of that name.
    pub fn seconds_of(&self, name: &str) -> f64 {
        self.queries.iter().filter(|query| query.name == name).map(|query| query.seconds).sum()
    }
}
