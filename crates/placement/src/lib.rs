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
//! - A [`Placer`] is a policy at work on a volume. A [`Memory`] is what a policy has learned, for the next session.
//! - [`live`] has what runs a policy beside those who use the volume.
//! - A [`Recorder`] makes a trace of a run as it goes.
//! - [`measure`] tells what modelled devices are good at. [`testing`] has a bench for policies.
//!
//! ```
//! use tanada_placement::testing::{Bench, look_ups};
//!
//! // The second run of a statement: what it looked up at random in the first one is worth room in the fast class.
//! let mut bench = Bench::new(tanada_placement::policy("plan", 1)?, 16, 2);
//! bench.train_query(1, &[look_ups(4..8, 400)], &[4, 4, 5]);
//! bench.prepare();
//! assert_eq!(bench.begin(1, &[look_ups(4..8, 400)]), ["promote 4", "promote 5"]);
//! # Ok::<(), tanada_placement::Error>(())
//! ```
//!
//! What each policy does and where it comes from: `docs/placement.md`.
#![forbid(unsafe_code)]

mod action;
mod costs;
mod error;
mod event;
mod figures;
mod footprint;
mod layout;
pub mod live;
mod memory;
mod numbers;
mod placer;
mod policy;
pub mod testing;
mod trace;

pub use action::{Action, Decision, Reason, Route, Source};
pub use costs::{ByDepth, ClassCosts, Costs, DEPTHS, Load, Reads};
pub use error::{Error, ErrorKind, Result};
pub use event::{Context, Event, Io, IoKind};
pub use figures::measure;
pub use footprint::{Access, Cause, Extent, Fingerprint, Footprint, Pattern, QueryId};
pub use layout::{ChunkNo, Layout, ObjectNo, Rule, Tier};
pub use memory::{MOST_MEMORY_BYTES, Memory, RememberedStatement};
pub use placer::{
    ChunkCount, Forecast, ObjectIo, Placed, Placer, PlacerOptions, PlannedMove, Wish, WishOutcome,
};
pub use policy::{
    Counted, Granularity, MOST_COUNTED, Make, Options, POLICIES, Policy, Registered, policy, policy_among,
};
pub use trace::{
    End, Eviction, MOST_BYTES, MOST_NAMES, Mark, Record, Recorder, Trace, TraceEvent, TraceIo, TraceObject,
    TraceQuery, TraceReader, TraceWriter, import,
};
