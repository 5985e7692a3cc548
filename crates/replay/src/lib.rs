//! Replays of chunk traces: what would have happened, had a policy placed the chunks on these devices.
//!
//! Above: `tanada simulate` and the benchmarks. Below: `tanada-placement`, whose policies and traces these are, and
//! `tanada-io`, whose device models a replay runs on.
//!
//! - [`simulate`] replays a trace in virtual time on modelled devices under a policy; [`sweep`] does so for many.
//! - [`POLICIES`] lists the policies that a replay knows: those of volumes, and caches of blocks as other systems have
//!   them.
//! - [`synthetic`] makes a trace of nine queries from a seed.
//!
//! ```
//! use tanada_replay::{SimulationOptions, simulate, synthetic};
//!
//! let trace = synthetic::nine_queries(&synthetic::Synthetic { scale: 0.005, ..Default::default() });
//! let options = |policy| SimulationOptions { chunk_bytes: 64 << 10, ..SimulationOptions::new(policy, 0.3) };
//! let benefit = simulate(&trace, None, &options("benefit"))?;
//! let off = simulate(&trace, None, &options("off"))?;
//! assert!(benefit.total_s < off.total_s / 2.0);
//! # Ok::<(), tanada_placement::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod lists;
mod policy;
mod simulation;
pub mod synthetic;

pub use policy::{POLICIES, is_live, policy};
pub use simulation::{
    Outcome, Pace, QueryOutcome, SimulationOptions, simulate, simulate_after, sweep, sweep_after,
};
