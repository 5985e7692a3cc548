//! Which tree is which secondary index, where nothing says so.
//!
//! A tree is taken for an index if entries of its first and its last leaf, read with the index's layout, lead to
//! clustered rows that hold the same values. (Both ends, since at one of them all values may be NULL, which looks alike
//! in every index.) The trees come in the order of their ids, so the first that fits is the right one unless two
//! indexes hold the same values, and then it does not matter. An index over virtual columns only has nothing to
//! compare, so it is given its tree after the others.

use std::sync::Arc;

use tanada_io::IoContext;

use super::bookmark;
use crate::record::{self, Spans};
use crate::tree::{Node, Position, Seek, Tree};
use crate::{ErrorKind, IndexPart, PageNo, Result};

/// Entries of a leaf that are looked up.
const ENTRIES: usize = 8;

/// The tree among `roots` that is the index of `parts`, which `tree` makes of a root.
pub(super) async fn choose(
    parts: &[IndexPart],
    clustered: &Tree,
    roots: &[PageNo],
    tree: &dyn Fn(PageNo) -> Arc<Tree>,
    context: &IoContext,
) -> Result<Option<Arc<Tree>>> {
    for root in roots {
        let candidate = tree(*root);
        let claim = Claim { parts, clustered, tree: &candidate, context };
        match claim.holds().await {
            Ok(true) => return Ok(Some(candidate)),
            Ok(false) => {}
            // Read as another index, a page looks damaged.
            Err(error) if error.kind() == ErrorKind::Corrupt => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// That `tree` is the index of `parts`.
struct Claim<'a> {
    parts: &'a [IndexPart],
    clustered: &'a Tree,
    tree: &'a Tree,
    context: &'a IoContext,
}

impl Claim<'_> {
    async fn holds(&self) -> Result<bool> {
        for last in [false, true] {
            let leaf = self.outer_leaf(last).await?;
            if !self.leaf_fits(&leaf).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The first or the last leaf.
    async fn outer_leaf(&self, last: bool) -> Result<Node> {
        let mut node = self.tree.root(self.context).await?;
        let mut spans = Spans::new();
        while node.level() > 0 {
            let pointer = if last { node.last_before(|_| Ok(true))? } else { node.infimum() };
            let child = self.tree.child(&node, pointer, &mut spans)?;
            node = self.tree.node(child, node.level() - 1, node.index_id(), self.context).await?;
        }
        Ok(node)
    }

    async fn leaf_fits(&self, leaf: &Node) -> Result<bool> {
        let (mut records, mut origins) = (leaf.records(), Vec::new());
        while let Some(origin) = records.next()? {
            if leaf.is_row(origin)? {
                origins.push(origin);
            }
        }
        let shape = &self.tree.layout.shape;
        let mut entry = Spans::new();
        for origin in origins.iter().step_by(origins.len().div_ceil(ENTRIES).max(1)) {
            record::parse_leaf(
                leaf.bytes(),
                *origin,
                leaf.is_compact(),
                shape,
                shape.fields.len(),
                &mut entry,
            )?;
            if !self.row_has(leaf, &entry).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the row that `entry` leads to has its values.
    async fn row_has(&self, leaf: &Node, entry: &Spans) -> Result<bool> {
        if self.clustered.key.parts.iter().any(|part| part.order.is_unknown()) {
            return Ok(true);
        }
        let key = bookmark::clustered_key(self.tree, leaf, entry)?;
        let Position { leaf: page, before } =
            self.clustered.descend(&key, Seek::Unique, self.context).await?;
        let Some(origin) = page.after(before)? else { return Ok(false) };
        let mut row = Spans::new();
        if self.clustered.compare(&page, origin, &key, &mut row)?.is_ne() {
            return Ok(false);
        }
        let layout = &self.clustered.layout;
        let count = layout.shape.fields.len();
        record::parse_leaf(page.bytes(), origin, page.is_compact(), &layout.shape, count, &mut row)?;
        Ok(self.parts.iter().zip(entry).all(|(part, own)| {
            let Some(field) = layout.columns.get(part.column.0).copied().flatten() else { return true };
            let other = row[field];
            if other.is_absent() || other.is_external() {
                return true;
            }
            let (own_bytes, other_bytes) = (own.bytes(leaf.bytes()), other.bytes(page.bytes()));
            let same = if part.prefix_bytes.is_some() {
                other_bytes.starts_with(own_bytes)
            } else {
                other_bytes == own_bytes
            };
            same && own.is_null() == other.is_null()
        }))
    }
}
