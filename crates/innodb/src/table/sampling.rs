//! Leaves spread over a tree, without reading all of it.
//!
//! Inner levels above level 1 are read whole: they are a millionth of the data. Of the nodes of level 1 all are read if they are few, else
//! some of them, evenly spread; the leaves below the others are then estimated.

use std::ops::ControlFlow;

use futures::{StreamExt, TryStreamExt, stream};
use tanada_io::IoContext;

use super::scan::LeafReader;
use super::{Access, OnRow, Table};
use crate::tree::{KeyRange, Node, Tree};
use crate::{Error, ErrorKind, PageNo, Result};

/// Nodes of level 1 that are read at most.
const LEVEL_ONE_NODES: usize = 64;
/// Pages asked for at once.
const PREFETCH: usize = 256;

/// Leaves of a tree in key order.
#[derive(Debug)]
pub(super) struct Sampled {
    pub(super) height: u32,
    /// All leaves, or those below some nodes of level 1.
    pub(super) known: Vec<PageNo>,
    /// Leaves of the tree; a count if all are known, else an estimate.
    pub(super) leaves: u64,
    /// Consecutive known leaves, and how many of them are neighbours in the file.
    pub(super) pairs: u64,
    pub(super) neighbours: u64,
}

impl Sampled {
    pub(super) async fn new(tree: &Tree, context: &IoContext) -> Result<Sampled> {
        let root = tree.root(context).await?;
        let (height, id) = (u32::from(root.level()) + 1, root.index_id());
        if root.level() == 0 {
            return Ok(Sampled { height, known: vec![tree.root], leaves: 1, pairs: 0, neighbours: 0 });
        }
        let nodes = tree.nodes_of_level_one(&root, context).await?;
        let chosen: Vec<PageNo> = spread(&nodes, LEVEL_ONE_NODES);
        let families: Vec<Vec<PageNo>> = if root.level() == 1 {
            vec![tree.all_children(&root)?]
        } else {
            let reads = stream::iter(&chosen).map(|no| async move {
                let node = tree.node(*no, 1, id, context).await?;
                tree.all_children(&node)
            });
            reads.buffered(PREFETCH).try_collect().await?
        };
        let count: usize = families.iter().map(Vec::len).sum();
        let pairs = families.iter().flat_map(|family| family.windows(2));
        let neighbours = pairs.clone().filter(|pair| pair[0].0 + 1 == pair[1].0).count();
        let leaves = count as u64 * nodes.len().max(1) as u64 / chosen.len().max(1) as u64;
        Ok(Sampled {
            height,
            leaves,
            pairs: pairs.count() as u64,
            neighbours: neighbours as u64,
            known: families.concat(),
        })
    }

    /// Whether all leaves are known.
    pub(super) fn is_exact(&self) -> bool {
        self.leaves == self.known.len() as u64
    }
}

/// At most `count` of `pages`, evenly spread.
pub(super) fn spread(pages: &[PageNo], count: usize) -> Vec<PageNo> {
    if pages.len() <= count {
        return pages.to_vec();
    }
    (0..count).map(|at| pages[(2 * at + 1) * pages.len() / (2 * count)]).collect()
}

/// Reads leaves through the cache, in order.
pub(super) async fn read_leaves(tree: &Tree, pages: &[PageNo], context: &IoContext) -> Result<Vec<Node>> {
    let id = tree.id(context).await?;
    let reads = stream::iter(pages).map(|no| tree.node(*no, 0, id, context));
    reads.buffered(PREFETCH).try_collect().await
}

impl Table {
    /// Rows decoded from about `pages` leaf pages of the clustered index spread over the table (all of them if there are fewer), without off-page columns: those show as NULL.
    ///
    /// # Errors
    /// `InvalidInput` if `access` is of another index, `Corrupt` if a page is damaged, and what `on_row` returns.
    pub async fn sample(
        &self,
        access: &Access,
        pages: u32,
        context: &IoContext,
        on_row: OnRow<'_>,
    ) -> Result<()> {
        if access.index().0 != 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "rows are sampled from the clustered index"));
        }
        let trees = self.trees_of(access.index())?;
        let share = (pages as usize).div_ceil(trees.len().max(1)).max(1);
        for (partition, tree) in trees.iter().enumerate() {
            let sampled = Sampled::new(tree, context).await?;
            let leaves = read_leaves(tree, &spread(&sampled.known, share), context).await?;
            let reader =
                LeafReader { tree, projection: access.projection(partition)?, fetch: false, context };
            for leaf in &leaves {
                if let ControlFlow::Break(()) = reader.rows(leaf, &KeyRange::all(), on_row).await? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_even() {
        let pages: Vec<PageNo> = (0..100).map(PageNo).collect();
        assert_eq!(spread(&pages, 4), [12, 37, 62, 87].map(PageNo));
        assert_eq!(spread(&pages, 100), pages);
        assert_eq!(spread(&pages[..3], 20), pages[..3]);
    }
}
