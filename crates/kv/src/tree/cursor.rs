//! A tree as sources of a merge: one for each kvset at the root, and one for all leaves together, which opens a leaf's
//! kvsets only when it comes there. So a cursor over thousands of leaves holds no more than those of one.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::kvset::TreeState;
use crate::Result;
use crate::entry::{SequenceNo, Version};
use crate::keyfile::Access;
use crate::merge::{Direction, Merge, Source, Step};
use crate::tombstone::RangeTombstones;

/// The versions of all leaves, in order.
pub(crate) struct LeafSource {
    tree: Arc<TreeState>,
    direction: Direction,
    bound: Option<Bytes>,
    /// Index of the present leaf.
    index: usize,
    /// `None` if that leaf was not entered.
    merge: Option<Merge<Box<dyn Source>>>,
    is_loading: bool,
}

impl LeafSource {
    pub(crate) fn new(tree: Arc<TreeState>) -> LeafSource {
        LeafSource {
            tree,
            direction: Direction::Forward,
            bound: None,
            index: 0,
            merge: None,
            is_loading: false,
        }
    }

    fn current(&self) -> Option<&Merge<Box<dyn Source>>> {
        self.merge.as_ref().filter(|_| !self.is_loading)
    }

    async fn load_next(&mut self) -> Result<()> {
        if let Some(merge) = &mut self.merge {
            merge.load().await?;
        }
        loop {
            if self.merge.as_ref().is_some_and(|merge| merge.key().is_some()) {
                break;
            }
            if self.merge.take().is_some() {
                // The leaf is done; the bound was passed.
                self.bound = None;
                self.index = match self.direction {
                    Direction::Forward => self.index + 1,
                    Direction::Reverse => self.index.wrapping_sub(1),
                };
            }
            let Some(leaf) = self.tree.leaves.get(self.index) else { break };
            let cursor =
                |kvset: &Arc<super::Kvset>| Box::new(kvset.cursor(Access::Cached)) as Box<dyn Source>;
            // The originals of promoted copies are below them and outlive them.
            let kvsets = leaf.kvsets.iter().filter(|kvset| !kvset.is_copy());
            let mut merge = Merge::new(kvsets.map(cursor).collect());
            merge.seek(self.direction, self.bound.as_deref()).await?;
            self.merge = Some(merge);
        }
        self.is_loading = false;
        Ok(())
    }
}

impl Source for LeafSource {
    fn seek(&mut self, direction: Direction, bound: Option<&[u8]>) -> Result<Step> {
        self.direction = direction;
        self.merge = None;
        self.is_loading = true;
        self.bound = bound.map(Bytes::copy_from_slice);
        self.index = match (direction, bound) {
            (_, Some(bound)) => self.tree.leaf_index(bound).unwrap_or(0),
            (Direction::Forward, None) => 0,
            (Direction::Reverse, None) => self.tree.leaves.len().wrapping_sub(1),
        };
        Ok(Step::Load)
    }

    fn advance(&mut self) -> Result<Step> {
        let Some(merge) = &mut self.merge else { return Ok(Step::Done) };
        let step = merge.advance()?;
        self.is_loading = step == Step::Load || merge.key().is_none();
        Ok(if self.is_loading { Step::Load } else { Step::Done })
    }

    fn load(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.load_next())
    }

    fn key(&self) -> Option<&[u8]> {
        self.current()?.key()
    }

    fn sequence(&self) -> SequenceNo {
        self.current().map_or(0, Merge::sequence)
    }

    fn version(&self) -> Result<Version> {
        match self.current() {
            Some(merge) => merge.version(),
            None => Err(crate::Error::corrupted("a cursor without a version")),
        }
    }
}

impl TreeState {
    /// Returns the sources of a cursor, newest first.
    pub(crate) fn sources(self: &Arc<Self>) -> Vec<Box<dyn Source>> {
        let root = self.root.iter().map(|kvset| Box::new(kvset.cursor(Access::Cached)) as Box<dyn Source>);
        root.chain([Box::new(LeafSource::new(self.clone())) as Box<dyn Source>]).collect()
    }

    /// The range tombstones of all kvsets that are looked up.
    pub(super) fn tombstones(&self) -> RangeTombstones {
        let kvsets = self.kvsets().filter(|kvset| !kvset.tombstones().is_empty());
        RangeTombstones::new(kvsets.flat_map(|kvset| kvset.tombstones().iter().cloned()).collect())
    }
}

/// The range tombstones of a store's tree, which cursors want again and again: prepared once for each state of it.
#[derive(Debug, Default)]
pub(crate) struct TreeTombstones {
    last: Mutex<(Weak<TreeState>, Arc<RangeTombstones>)>,
}

impl TreeTombstones {
    pub(crate) fn of(&self, tree: &Arc<TreeState>) -> Arc<RangeTombstones> {
        {
            let last = self.last.lock();
            // While a weak reference exists, no other tree has its address.
            if Weak::as_ptr(&last.0) == Arc::as_ptr(tree) {
                return last.1.clone();
            }
        }
        let prepared = Arc::new(tree.tombstones());
        *self.last.lock() = (Arc::downgrade(tree), prepared.clone());
        prepared
    }
}
