//! Placement before the query: what a plan is going to read is told to those who can bring it to the fast class, and
//! what it does read to those who learn from it.
//!
//! 1. [`accesses()`] takes a physical plan apart: which index is read how, how many pages, in which stage, for as many
//!    rows as are [`wanted`].
//! 2. [`places`] knows where indexes lie in their files; both make the footprint of an access
//!    ([`InnodbRelation::footprint`](crate::relation::InnodbRelation::footprint)), and all footprints of a query its
//!    [`announcement`].
//! 3. [`watch`] brings announcements, reads and ends to the watchers of a query.
//! 4. Watchers: a [`recording`] makes a trace; [`steering`] has a policy place the chunks of a volume.

mod accesses;
mod announcement;
mod fingerprint;
mod history;
mod inbox;
mod journal;
mod naming;
mod placed;
mod places;
mod recording;
mod state;
mod steering;
mod wanted;
mod watch;

pub use accesses::{PlannedAccess, accesses};
pub(crate) use accesses::{PlannedFiles, file_accesses};
pub(crate) use announcement::Announcement;
pub(crate) use fingerprint::fingerprint;
pub(crate) use placed::OnPlaced;
pub use placed::PlacedChunk;
pub(crate) use places::{FilePlaces, IndexPlaces, TablePlaces, places_of};
pub use recording::Recording;
pub(crate) use state::pattern_in_words;
pub(crate) use steering::{Foreseen, Steering, Wanted};
pub(crate) use watch::{Ending, Watched, Watcher};
