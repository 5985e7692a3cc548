//! Which leaves a range of keys takes, read off the level above them.
//!
//! 1. From the root, level by level, all nodes that the range touches are read at once.
//! 2. The children that the range touches are those from the last whose key is before the lower bound to the last whose
//!    key is not past the upper bound.
//! 3. The children of level 1 are the leaves; they come in key order.

use std::ops::Bound;

use futures::{StreamExt, TryStreamExt, stream};
use tanada_io::IoContext;

use super::Node;
use super::descent::Tree;
use super::key::KeyRange;
use crate::record::{self, Spans};
use crate::{PageNo, Result};

/// Nodes asked for at once; the gate decides how many I/Os that makes.
const PREFETCH: usize = 256;

/// The leaves of a range in key order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeafList {
    pub(crate) pages: Vec<PageNo>,
    /// Levels of the tree; 1 is a root that is a leaf.
    pub(crate) height: u32,
}

impl Tree {
    /// The leaves that may hold keys of `range`.
    pub(crate) async fn leaves(&self, range: &KeyRange, context: &IoContext) -> Result<LeafList> {
        let root = self.root(context).await?;
        let (id, height) = (root.index_id(), u32::from(root.level()) + 1);
        if root.level() == 0 {
            return Ok(LeafList { pages: vec![self.root], height });
        }
        let mut level = root.level();
        let mut pages = self.children(&root, range)?;
        while level > 1 {
            level -= 1;
            let reads = stream::iter(pages).map(|no| self.node(no, level, id, context));
            let mut nodes = reads.buffered(PREFETCH);
            let mut children = Vec::new();
            while let Some(node) = nodes.try_next().await? {
                children.extend(self.children(&node, range)?);
                self.check_count(children.len())?;
            }
            drop(nodes);
            pages = children;
        }
        self.check_count(pages.len())?;
        Ok(LeafList { pages, height })
    }

    /// The children of `node` in key order.
    pub(crate) fn all_children(&self, node: &Node) -> Result<Vec<PageNo>> {
        self.children(node, &KeyRange::all())
    }

    pub(crate) fn check_count(&self, count: usize) -> Result<()> {
        if count as u64 > u64::from(self.space.pages()) {
            return Err(self
                .space
                .corrupt(self.root, "the tree below has more nodes than the file has pages"));
        }
        Ok(())
    }

    /// The children of `node` that `range` touches, in key order.
    pub(super) fn children(&self, node: &Node, range: &KeyRange) -> Result<Vec<PageNo>> {
        self.children_unplaced(node, range).map_err(|error| self.at(node.page().number(), &error))
    }

    fn children_unplaced(&self, node: &Node, range: &KeyRange) -> Result<Vec<PageNo>> {
        let mut spans = Spans::new();
        let start = match &range.lower {
            Bound::Unbounded => node.infimum(),
            Bound::Included(key) => {
                node.last_before(|origin| Ok(self.compare(node, origin, key, &mut spans)?.is_lt()))?
            }
            // Children before the last whose key is not past the bound only hold excluded keys.
            Bound::Excluded(key) => {
                node.last_before(|origin| Ok(self.compare(node, origin, key, &mut spans)?.is_le()))?
            }
        };
        let mut records = node.records_after(start);
        let mut next = if start == node.infimum() { records.next()? } else { Some(start) };
        let mut children = Vec::new();
        while let Some(origin) = next {
            let past = match &range.upper {
                Bound::Unbounded => false,
                Bound::Included(key) => self.compare(node, origin, key, &mut spans)?.is_gt(),
                Bound::Excluded(key) => self.compare(node, origin, key, &mut spans)?.is_ge(),
            };
            if past && !children.is_empty() {
                break;
            }
            let child =
                record::child(node.bytes(), origin, node.is_compact(), &self.layout.shape, &mut spans)?;
            if child == 0 || child >= self.space.pages() {
                let what = format!("its child {child} lies outside of the file{}", self.space.shortage());
                return Err(crate::Error::new(crate::ErrorKind::Corrupt, what));
            }
            children.push(PageNo(child));
            next = records.next()?;
        }
        Ok(children)
    }
}

impl KeyRange {
    /// Whether neither end is bounded.
    pub(crate) fn is_all(&self) -> bool {
        matches!((&self.lower, &self.upper), (Bound::Unbounded, Bound::Unbounded))
    }
}

impl Tree {
    /// The part of `leaf` within `range`: the record before its first, and its last (`None`: the last of the leaf).
    /// `None` if it is empty.
    pub(crate) fn stretch(&self, leaf: &Node, range: &KeyRange) -> Result<Option<(usize, Option<usize>)>> {
        let mut spans = Spans::new();
        let mut compare = |origin, key| self.compare(leaf, origin, key, &mut spans);
        let before = match &range.lower {
            Bound::Unbounded => leaf.infimum(),
            Bound::Included(key) => leaf.last_before(|origin| Ok(compare(origin, key)?.is_lt()))?,
            Bound::Excluded(key) => leaf.last_before(|origin| Ok(compare(origin, key)?.is_le()))?,
        };
        let mut within = |origin: usize| match &range.upper {
            Bound::Unbounded => Ok(true),
            Bound::Included(key) => Ok(compare(origin, key)?.is_le()),
            Bound::Excluded(key) => Ok(compare(origin, key)?.is_lt()),
        };
        // Bounds may be the wrong way round: then the first record behind the lower one is past the upper one.
        match leaf.after(before)? {
            Some(first) if within(first)? => {}
            _ => return Ok(None),
        }
        let last = match &range.upper {
            Bound::Unbounded => None,
            _ => Some(leaf.last_before(within)?),
        };
        Ok(Some((before, last)))
    }
}
