//! The tree of a store: kvsets at its root, newest first, each over all keys; below it leaves of disjoint key ranges, each with kvsets of its
//! own, newest first.
//!
//! - [`edit`]: how a tree changes, and how that is written in a manifest;
//! - [`shape`]: a tree, and the application of an edit to it.
//!
//! Invariants:
//! - for one key, a newer source never holds an older version than an older source does, but for promoted kvsets, which repeat versions of those
//!   below them in their leaf;
//! - leaves are in the order of their keys, the first begins at the empty key, and each ends where the next begins.

pub(crate) mod edit;
pub(crate) mod shape;

pub(crate) use edit::{
    Change, Edit, KvsetKind, KvsetNo, KvsetRecord, LeafNo, Place, Position, SegmentRecord,
};
pub(crate) use shape::{Leaf, Tree, TreeRecord};
