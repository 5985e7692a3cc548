//! Replays from the outside, one file per behaviour.

#![allow(clippy::unwrap_used)]

mod bars;
mod properties;
mod replays;
mod scale;
mod traces;

use tanada_placement::Trace;
use tanada_replay::SimulationOptions;
use tanada_replay::synthetic::{Synthetic, nine_queries};

/// Nine queries small enough for a test without optimisation; their chunks are small, too, so that there are enough of
/// them.
fn small() -> Trace {
    nine_queries(&Synthetic { scale: 0.02, ..Synthetic::default() })
}

fn options(policy: &str, share: f64) -> SimulationOptions {
    SimulationOptions {
        chunk_bytes: 64 << 10,
        relocation_bytes: 256 << 10,
        ..SimulationOptions::new(policy, share)
    }
}
