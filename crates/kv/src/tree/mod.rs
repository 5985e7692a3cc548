//! The tree of a store: kvsets at its root, newest first, each over all keys; below it leaves of disjoint key ranges,
//! each with kvsets of its own, newest first. Beside it *mirrors*: segments on the fastest class that hold values which
//! leaves have on a slower one. They are read there as long as there is space for both.
//!
//! - [`edit`]: how a tree changes, and how that is written in a manifest;
//! - [`shape`]: a tree, and the application of an edit to it;
//! - [`kvset`]: kvsets that are open, and looking a key up in a tree of them; [`cursor`]: walking one;
//! - [`mirror`]: segments that values are read in though their home is elsewhere;
//! - [`pick`]: which job is next; [`garbage`]: which frees space; [`gather`]: which has values leave segments that are
//!   too small; [`jobs`]: doing it;
//! - [`hidden`]: what goes without being read, as deletes hide all of it;
//! - [`heat`]: which values are read often enough to be promoted;
//! - [`scattered`]: which leaves are to be brought in order because scans read them piece by piece;
//! - [`policy`]: which class keys and values go to.
//!
//! Invariants:
//! - for one key, a newer source never holds an older version than an older source does, but for promoted kvsets, which
//!   repeat versions of those below them in their leaf;
//! - leaves are in the order of their keys, the first begins at the empty key, and each ends where the next begins.

mod cursor;
pub(crate) mod edit;
pub(crate) mod garbage;
mod gather;
pub(crate) mod heat;
mod hidden;
pub(crate) mod jobs;
mod kvset;
pub(crate) mod mirror;
pub(crate) mod pick;
pub(crate) mod policy;
pub(crate) mod scattered;
pub(crate) mod shape;
#[cfg(test)]
mod tests;
pub(crate) mod whole_chunks;

pub(crate) use cursor::TreeTombstones;
pub(crate) use edit::{Change, Edit, KvsetKind, KvsetNo, KvsetRecord, LeafNo, Place, Position};
pub(crate) use hidden::{drop_hidden, hidden};
pub(crate) use jobs::{
    DenseMirrors, JobContext, JobOutput, Overwritten, compact, merge, move_down, spill, thin,
};
pub(crate) use kvset::{FoundVersion, Kvset, Opener, TreeState};
pub(crate) use shape::{Leaf, TreeRecord};
