//! An open database.
//!
//! - [`shared`]: what all parts share, and how the parts stand on one another; [`core`]: all of them together;
//! - [`commit`]: the committer, memtables, conflicts of transactions, and stalls of writers; [`read`]: lookups;
//! - [`flush`]: the flusher; [`memory`]: the memory budget; [`space`]: the space manager;
//! - [`maintenance`]: the scheduler with its table of tasks, and one file for each of them;
//! - [`mirrors`]: which segments stay on the fastest class as mirrors, and what is copied there;
//! - [`state`]: what is kept of each store; [`stats`]: counters, and the present state of a database;
//! - [`open`], [`recovery`]: making, opening and recovering; [`background`], [`workers`]: tasks of an open database;
//! - [`bulk`], [`checkpoint`], [`check`]: bulk loads, copies of a database, verification of all its bytes;
//! - [`handle`], [`store`], [`access`], [`snapshot`]: the handles of users, and what they do with them;
//! - [`live`], [`settings`], [`drain`]: settings and their changes; classes that are emptied; [`coop`]: cooperative
//!   scheduling.

mod access;
mod background;
mod bulk;
mod check;
mod checkpoint;
pub(crate) mod commit;
mod coop;
pub(crate) mod core;
mod drain;
mod flush;
mod handle;
mod live;
mod maintenance;
mod memory;
mod mirrors;
mod open;
mod read;
mod records;
mod recovery;
mod settings;
pub(crate) mod shared;
pub(crate) mod snapshot;
mod space;
mod state;
mod stats;
pub(crate) mod store;
mod workers;

pub use bulk::BulkLoad;
pub use check::CheckReport;
pub use commit::batch::Batch;
pub(crate) use commit::batch::behind_prefix;
pub use handle::Database;
pub use snapshot::Snapshot;
pub use stats::activity::Activity;
pub use stats::counters::{JobStatistics, StallStatistics};
pub use stats::statistics::{ClassStatistics, Statistics, StoreStatistics};
pub use store::Store;

// As `super::sync`, for modules that are built with others, too.
use crate::sync;
