//! Placement from the outside, one file per behaviour.

#![allow(clippy::unwrap_used)]

mod bars;
mod imports;
mod pins;
mod properties;
mod replays;
mod returns;
mod scale;
mod traces;
mod volumes;

use tanada_placement::synthetic::{Synthetic, nine_queries};
use tanada_placement::{SimulationOptions, Trace};

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
