//! Replays of traces in virtual time: what would have happened, had a policy placed the chunks on these devices.
//!
//! Two classes of modelled devices (`docs/device-models.md`) serve the trace's I/Os; the policy's relocations go
//! through the same queues and take their time from the same devices. No byte moves, so hours pass in seconds.
//!
//! From the bottom up: `store` (which chunk is where), `relocation` (copies
//! under way), `machine` (devices and policy), `replay` (the loop), `outcome` (what came of it), `sweep` (many at
//! once).

mod machine;
mod outcome;
mod relocation;
mod replay;
mod store;
mod sweep;

use serde::{Deserialize, Serialize};
use tanada_io::ModelSpec;

use tanada_placement::{Error, Granularity, Layout, Policy, Result, Trace};

use crate::policy::policy;

pub use outcome::{Outcome, QueryOutcome};
pub use replay::{simulate, simulate_after};
pub use sweep::{sweep, sweep_after};

/// Chunks or blocks of all objects together, at most: policies keep up to 30 bytes for each.
const MOST_UNITS: u32 = 1 << 27;

/// How queries issue their I/Os.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// One after the other, each after the time that the query computed.
    InOrder,
    /// So many in flight.
    OutOfOrder {
        /// I/Os in flight.
        depth: u32,
    },
}

impl Pace {
    /// I/Os in flight.
    pub fn depth(self) -> u32 {
        match self {
            Pace::InOrder => 1,
            Pace::OutOfOrder { depth } => depth.max(1),
        }
    }
}

/// What to simulate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulationOptions {
    /// The policy, with its options.
    pub policy: String,
    /// The fast class's room, as a share of the trace's bytes: 0 to 1.
    pub fast_share: f64,
    /// The devices of the fast class.
    pub fast: ModelSpec,
    /// The devices of the slow class, which has room for everything.
    pub slow: ModelSpec,
    /// How queries issue their I/Os.
    pub pace: Pace,
    /// Clients that run queries at once, each the next one that no other runs. 1 replays everything in the order of the
    /// trace.
    pub clients: usize,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// Bytes that relocations have in flight at once.
    pub relocation_bytes: u64,
    /// Bytes a second that relocations may copy; no limit by default.
    pub relocation_bytes_per_second: Option<u64>,
    /// Whether policies that learn see the trace once before.
    pub trains: bool,
    /// Of the models and the policy.
    pub seed: u64,
}

impl SimulationOptions {
    /// The pre-query storage tiering paper's: three disks, one SATA SSD, in order, chunks of 1 MiB, 4 MiB of copies in
    /// flight.
    pub fn new(policy: &str, fast_share: f64) -> SimulationOptions {
        SimulationOptions {
            policy: policy.to_owned(),
            fast_share,
            fast: ModelSpec::new(tanada_io::Preset::SataSsd),
            slow: ModelSpec::new(tanada_io::Preset::Hdd7200).times(3),
            pace: Pace::InOrder,
            clients: 1,
            chunk_bytes: 1 << 20,
            relocation_bytes: 4 << 20,
            relocation_bytes_per_second: None,
            trains: true,
            seed: 1,
        }
    }
    /// The policy, and the trace's objects in the units that it places.
    ///
    /// # Errors
    /// If there is no such policy, or it would have to place more than [`MOST_UNITS`].
    fn policy_and_layout(&self, trace: &Trace) -> Result<(Box<dyn Policy>, Layout)> {
        let policy = policy(&self.policy, self.seed)?;
        let unit = match policy.granularity() {
            Granularity::Chunk => self.chunk_bytes.max(512),
            Granularity::Block(bytes) => bytes,
        };
        let layout = trace.layout(unit);
        if layout.chunks() > MOST_UNITS {
            return Err(Error::invalid(format!(
                "the trace spans {} blocks of {unit} bytes, and policy {} keeps some bytes for each; at most {MOST_UNITS} are replayed",
                layout.chunks(),
                policy.name()
            )));
        }
        Ok((policy, layout))
    }
}
