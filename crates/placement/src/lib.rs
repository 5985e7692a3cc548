//! Placement: which chunks belong in the fast class, decided before they are asked for.
//!
//! Above: the query layer and the benchmarks. Below: `tanada-volume`, which a [`Placer`] steers, `tanada-io`, whose
//! device models a replay runs on, and `tanada-base`. Policies themselves know of neither.
//!
//! - A [`Policy`] is a state machine: [`Event`]s in, [`Decision`]s out. [`policy()`] makes one by name; [`POLICIES`]
//!   lists them.
//! - A [`Footprint`] is what a query's plan says that it will read: objects, byte ranges, patterns, stages.
//! - A [`Trace`] is what was read and written. [`TraceWriter`] and [`TraceReader`] keep it in a file; [`import`] reads
//!   other tools' logs.
//! - [`simulate`] replays a trace in virtual time on modelled devices under a policy; [`sweep`] does so for many.
//! - A [`Placer`] is a policy at work on a volume. A [`Memory`] is what a policy has learned, for the next session.
//! - A [`Recorder`] makes a trace of a run as it goes.
//! - [`synthetic`] makes a trace of nine queries from a seed.
//!
//! ```
//! use tanada_placement::{SimulationOptions, simulate, synthetic};
//!
//! let trace = synthetic::nine_queries(&synthetic::Synthetic { scale: 0.005, ..Default::default() });
//! let options = |policy| SimulationOptions { chunk_bytes: 64 << 10, ..SimulationOptions::new(policy, 0.3) };
//! let benefit = simulate(&trace, None, &options("benefit"))?;
//! let off = simulate(&trace, None, &options("off"))?;
//! assert!(benefit.total_s < off.total_s / 2.0);
//! # Ok::<(), tanada_placement::Error>(())
//! ```
//!
//! What each policy does and where it comes from: `docs/placement.md`.
#![forbid(unsafe_code)]

mod action;
mod costs;
mod error;
mod event;
mod footprint;
mod layout;
mod lists;
mod memory;
mod numbers;
mod placer;
mod policy;
mod simulation;
pub mod synthetic;
mod trace;

pub use action::{Action, Decision, Reason, Route, Source};
pub use costs::{ByDepth, ClassCosts, Costs, DEPTHS, Load, Reads};
pub use error::{Error, ErrorKind, Result};
pub use event::{Context, Event, Io, IoKind};
pub use footprint::{Access, Cause, Extent, Fingerprint, Footprint, Pattern, QueryId};
pub use layout::{ChunkNo, Layout, ObjectNo, Rule, Tier};
pub use memory::{MOST_MEMORY_BYTES, Memory, RememberedStatement};
pub use placer::{
    ChunkCount, Forecast, ObjectIo, Placed, Placer, PlacerOptions, PlannedMove, Wish, WishOutcome,
};
pub use policy::{Counted, Granularity, POLICIES, Policy, Registered, policy};
pub use simulation::{
    Outcome, Pace, QueryOutcome, SimulationOptions, measure, simulate, simulate_after, sweep, sweep_after,
};
pub use trace::{
    End, Eviction, MOST_BYTES, MOST_NAMES, Mark, Record, Recorder, Trace, TraceEvent, TraceIo, TraceObject,
    TraceQuery, TraceReader, TraceWriter, import,
};
