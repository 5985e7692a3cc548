//! Bookmarks: what a secondary index knows of where a row lies.

use crate::record::Spans;
use crate::tree::{Key, KeyBuilder, Node, Tree};
use crate::{Error, ErrorKind, Result};

/// A row's clustered key as a secondary index stores it, with its partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bookmark {
    pub(super) partition: u32,
    pub(super) key: Key,
}

impl Bookmark {
    /// The partition.
    pub fn partition(&self) -> usize {
        self.partition as usize
    }

    /// Orders bookmarks about as their rows lie in the file (exactly so unless a collation orders the key's bytes in
    /// another way).
    pub fn place(&self) -> impl Ord + '_ {
        (self.partition, &self.key)
    }
}

/// The clustered key of the secondary entry whose fields `spans` holds.
pub(super) fn clustered_key(tree: &Tree, node: &Node, spans: &Spans) -> Result<Key> {
    let mut key = KeyBuilder::with_capacity(8 * tree.layout.clustered_key.len());
    for field in &tree.layout.clustered_key {
        let span = spans.get(*field).copied().filter(|span| !span.is_null() && !span.is_external());
        let damaged = || Error::new(ErrorKind::Corrupt, "an index entry lacks a part of the row's key");
        key.push(Some(span.ok_or_else(damaged)?.bytes(node.bytes())));
    }
    Ok(key.finish())
}
