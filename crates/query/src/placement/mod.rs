//! Placement before the query: what a plan is going to read is told to those who can bring it to the fast class, and what it does read to those who learn
//! from it.
//!
//! 1. [`accesses`] takes a physical plan apart: which index is read how, how many pages, in which stage.
//! 2. [`places`] knows where indexes lie in their files; both make an [`announcement`].
//! 3. [`watch`] brings announcements, reads and ends to the watchers of a query.
//! 4. Watchers: a [`recording`] makes a trace; [`steering`] has a policy place the chunks of a volume.

mod accesses;
mod announcement;
mod classes;
mod fingerprint;
mod naming;
mod places;
mod rate;
mod recording;
mod steering;
mod watch;

pub(crate) use accesses::accesses;
pub(crate) use announcement::{Announcement, FileAccess};
pub(crate) use fingerprint::fingerprint;
pub(crate) use places::Places;
pub use recording::Recording;
pub(crate) use steering::{Steering, Wanted};
pub(crate) use watch::{Ending, Watched, Watcher};
