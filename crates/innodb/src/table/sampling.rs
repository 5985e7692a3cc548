//! Leaves spread over a tree, without reading all of it.
//!
//! Inner levels above level 1 are read whole: they are a millionth of the data. Of the nodes of level 1 all are read if
//! they are few, else some of them, evenly spread; the leaves below the others are then estimated.
//!
//! Estimates need no page in particular: one that cannot be read is left out, and the first of them is kept to be
//! warned of once a table.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::atomic::Ordering;

use futures::{Stream, StreamExt, stream};
use tanada_io::IoContext;

use super::scan::LeafReader;
use super::skipping::Discard;
use super::{Access, OnRow, Row, Table};
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
    /// The first page that was left out because it cannot be read.
    pub(super) damage: Option<Error>,
}

/// Whether a page that gave `error` may be left out of estimates: it is damaged, cannot be read, or is newer than the
/// redo log.
pub(super) fn is_skipped(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Io | ErrorKind::NotClean)
}

/// The values that could be had; the first error of a page that is left out goes to `damage`.
///
/// # Errors
/// Errors of other kinds.
async fn undamaged_values<T>(
    values: impl Stream<Item = Result<T>>,
    damage: &mut Option<Error>,
) -> Result<Vec<T>> {
    let mut values = pin!(values);
    let mut read = Vec::new();
    while let Some(value) = values.next().await {
        match value {
            Ok(value) => read.push(value),
            Err(error) if is_skipped(&error) => {
                damage.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

impl Sampled {
    pub(super) async fn new(tree: &Tree, context: &IoContext) -> Result<Sampled> {
        let mut damage = None;
        let root = match tree.root(context).await {
            Ok(root) => root,
            // Of the tree nothing is known but that it is no larger than the file.
            Err(error) if is_skipped(&error) => {
                let leaves = u64::from(tree.space.pages());
                return Ok(Sampled {
                    height: 2,
                    known: Vec::new(),
                    leaves,
                    pairs: 0,
                    neighbours: 0,
                    damage: Some(error),
                });
            }
            Err(error) => return Err(error),
        };
        let (height, id) = (u32::from(root.level()) + 1, root.index_id());
        if root.level() == 0 {
            return Ok(Sampled {
                height,
                known: vec![tree.root],
                leaves: 1,
                pairs: 0,
                neighbours: 0,
                damage,
            });
        }
        let mut level = root.level();
        let mut nodes = vec![tree.root];
        while level > 1 {
            let reads = stream::iter(&nodes).map(|no| children(tree, *no, level, id, context));
            nodes = undamaged_values(reads.buffered(PREFETCH), &mut damage).await?.concat();
            tree.check_count(nodes.len())?;
            level -= 1;
        }
        let chosen: Vec<PageNo> = spread(&nodes, LEVEL_ONE_NODES);
        let reads = stream::iter(&chosen).map(|no| children(tree, *no, 1, id, context));
        let families: Vec<Vec<PageNo>> = undamaged_values(reads.buffered(PREFETCH), &mut damage).await?;
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
            damage,
        })
    }

    /// Whether all leaves are known.
    pub(super) fn is_exact(&self) -> bool {
        self.damage.is_none() && self.leaves == self.known.len() as u64
    }
}

/// At most `count` of `pages`, evenly spread.
pub(super) fn spread(pages: &[PageNo], count: usize) -> Vec<PageNo> {
    if pages.len() <= count {
        return pages.to_vec();
    }
    (0..count).map(|at| pages[(2 * at + 1) * pages.len() / (2 * count)]).collect()
}

/// Reads leaves through the cache, in order; those that cannot be read are left out.
pub(super) async fn read_leaves(
    tree: &Tree,
    pages: &[PageNo],
    damage: &mut Option<Error>,
    context: &IoContext,
) -> Result<Vec<Node>> {
    if pages.is_empty() {
        return Ok(Vec::new());
    }
    let id = tree.id(context).await?;
    let reads = stream::iter(pages).map(|no| tree.node(*no, 0, id, context));
    undamaged_values(reads.buffered(PREFETCH), damage).await
}

/// The children of the node `no` of `level`.
async fn children(tree: &Tree, no: PageNo, level: u16, id: u64, context: &IoContext) -> Result<Vec<PageNo>> {
    let node = tree.node(no, level, id, context).await?;
    tree.all_children(&node)
}

impl Table {
    /// Rows decoded from about `pages` leaf pages of the clustered index spread over the table (all of them if there
    /// are fewer), without off-page columns: those show as NULL.
    ///
    /// Pages and rows that are damaged are left out, with a warning.
    ///
    /// # Errors
    /// `InvalidInput` if `access` is of another index, and what `on_row` returns.
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
            let Sampled { known, mut damage, .. } = Sampled::new(tree, context).await?;
            let leaves = read_leaves(tree, &spread(&known, share), &mut damage, context).await?;
            let reader =
                LeafReader { tree, projection: access.projection(partition)?, fetch: false, context };
            let mut wrong = None;
            let mut on_sound_row = |row: &Row<'_>| match row.decode(&mut Discard) {
                Err(error) if is_skipped(&error) => {
                    wrong.get_or_insert(error);
                    Ok(ControlFlow::Continue(()))
                }
                _ => on_row(row),
            };
            for leaf in &leaves {
                match reader.rows(leaf, &KeyRange::all(), &mut on_sound_row).await {
                    Ok(ControlFlow::Continue(())) => {}
                    Ok(ControlFlow::Break(())) => return Ok(()),
                    Err(error) if is_skipped(&error) => {
                        damage.get_or_insert(error);
                    }
                    Err(error) => return Err(error),
                }
            }
            self.warn_of_damage(damage.as_ref().or(wrong.as_ref()));
        }
        Ok(())
    }

    /// Warns, once a table, of a page that estimates were made without.
    pub(super) fn warn_of_damage(&self, damage: Option<&Error>) {
        if let Some(error) = damage
            && !self.has_warned_of_damage.swap(true, Ordering::Relaxed)
        {
            tanada_io::warn(&format!("{}: estimates are made without a page: {error}", self.label()));
        }
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
