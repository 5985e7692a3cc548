//! The tree of a store: kvsets at its root, newest first, each over all keys; below it leaves of disjoint key ranges,
//! each with kvsets of its own, newest first. Beside it *mirrors*: segments on the fastest class that hold values which
//! leaves have on a slower class. Values are read from mirrors as long as there is space for both.
//!
//! - [`edit`]: a change of a tree, and its encoding in a manifest;
//! - [`shape`]: the state of a tree, and the application of edits;
//! - [`kvset`]: open kvsets, and lookups in a tree of them; [`cursor`]: walks over one;
//! - [`mirror`]: segments that hold second copies of values;
//! - [`pick`]: which job is next; [`garbage`]: which job frees space; [`coalesce`]: which job merges small segments;
//!   [`chunk_coalescing`]: which job merges small key files; [`jobs`]: runs them;
//! - [`range_drop`]: kvsets that a range tombstone covers entirely;
//! - [`heat`]: which keys are read often enough to be promoted;
//! - [`reorder`]: which leaves are re-clustered because scans read their values in small pieces;
//! - [`policy`]: the classes of keys and values.
//!
//! Invariants:
//! - for one key, a newer source never holds an older version than an older source does, but for promoted kvsets, which
//!   repeat versions of those below them in their leaf;
//! - leaves are in the order of their keys, the first begins at the empty key, and each ends where the next begins.

pub(crate) mod chunk_coalescing;
mod coalesce;
mod cursor;
pub(crate) mod edit;
pub(crate) mod garbage;
pub(crate) mod heat;
pub(crate) mod job;
pub(crate) mod jobs;
mod kvset;
pub(crate) mod mirror;
pub(crate) mod pick;
pub(crate) mod policy;
mod range_drop;
pub(crate) mod reorder;
pub(crate) mod shape;
pub(crate) mod spill_choice;
#[cfg(test)]
mod tests;

pub(crate) use cursor::TreeTombstones;
pub(crate) use edit::{Change, Edit, KvsetKind, KvsetNo, KvsetRecord, LeafNo, Place, Position};
pub(crate) use jobs::{
    DenseMirrors, JobContext, JobOutput, Overwritten, compact, merge, move_down, spill, thin,
};
pub(crate) use kvset::{FoundVersion, Kvset, Opener, TreeState, referenced};
pub(crate) use range_drop::{drop_hidden, hidden};
pub(crate) use shape::{Leaf, TreeRecord};
