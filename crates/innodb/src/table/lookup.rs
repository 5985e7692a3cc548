//! Look-ups through the cache.
//!
//! 1. All partitions are descended at once, to the leaf where the key's first row would be.
//! 2. From there the leaf chain is followed as long as keys are equal; a page of another index, of another level, or a
//!    chain longer than the file ends it with an error.
//! 3. If the index does not cover, each entry becomes a bookmark, and all bookmarks are fetched at once. Rows come as
//!    they arrive.

use std::ops::ControlFlow;

use futures::{StreamExt, TryStreamExt, stream};
use tanada_io::IoContext;

use super::row::Externals;
use super::scan::{LeafReader, collect_bookmarks};
use super::skipping::offer_skipping;
use super::{Access, Bookmark, OnRow, Table};
use crate::record::Spans;
use crate::tree::{Key, Node, Position, Seek, Sought, Tree};
use crate::{Error, ErrorKind, Result};

/// Bookmarks of one key that are fetched at once; the gate decides how many I/Os that makes.
const BOOKMARKS: usize = 512;

impl Table {
    /// All rows whose leading key parts equal `key`, through the cache: descent, leaf chain, and for a secondary index
    /// that does not cover, all bookmarks of the key at once. Rows come in any order.
    ///
    /// # Errors
    /// `Corrupt` if a page is damaged or an entry's row is missing, and what `on_row` returns.
    pub async fn lookup(
        &self,
        access: &Access,
        key: &Key,
        context: &IoContext,
        on_row: OnRow<'_>,
    ) -> Result<()> {
        self.rows_with(access, key, context, on_row).await.map_err(offer_skipping)
    }

    async fn rows_with(
        &self,
        access: &Access,
        key: &Key,
        context: &IoContext,
        on_row: OnRow<'_>,
    ) -> Result<()> {
        let trees = self.trees_of(access.index())?;
        let unique = self.is_whole_unique_key(access, key);
        // Only in the clustered index are deleted rows of a key not left beside the live one.
        let seek = if unique && access.index().0 == 0 { Seek::Unique } else { Seek::First };
        if let [tree] = trees {
            let position = tree.descend(key, seek, context).await?;
            let matches = Matches::new(tree, key, position, unique, seek);
            return self.rows_of_key(access, 0, matches, context, on_row).await.map(|_| ());
        }
        let descents = trees.iter().map(|tree| tree.descend(key, seek, context));
        let positions = futures::future::try_join_all(descents).await?;
        for (partition, (tree, position)) in trees.iter().zip(positions).enumerate() {
            let matches = Matches::new(tree, key, position, unique, seek);
            if self.rows_of_key(access, partition, matches, context, on_row).await?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Fetches the row of a bookmark from the clustered index through the cache; `access` is of the clustered index.
    ///
    /// # Errors
    /// `InvalidInput` if `access` is of an index that covers, `Corrupt` if a page is damaged or the row is missing, and
    /// what `on_row` returns.
    pub async fn fetch(
        &self,
        access: &Access,
        bookmark: &Bookmark,
        context: &IoContext,
        on_row: OnRow<'_>,
    ) -> Result<()> {
        if access.decoded_index().0 != 0 {
            let what = "a bookmark is fetched from the clustered index";
            return Err(Error::new(ErrorKind::InvalidInput, what));
        }
        let reader = self.clustered_reader(access, bookmark.partition(), context)?;
        let found = find(&reader, bookmark).await.map_err(offer_skipping)?;
        if let Some(found) = found {
            let _ = found.hand_out(&reader, on_row).map_err(offer_skipping)?;
        }
        Ok(())
    }

    fn clustered_reader<'a>(
        &'a self,
        access: &'a Access,
        partition: usize,
        context: &'a IoContext,
    ) -> Result<LeafReader<'a>> {
        let tree = self.tree(access.decoded_index(), partition)?;
        Ok(LeafReader { tree, projection: access.projection(partition)?, fetch: true, context })
    }

    /// Whether at most one row can equal `key`: it has all parts of a unique index, none of them NULL or a prefix.
    fn is_whole_unique_key(&self, access: &Access, key: &Key) -> bool {
        let index = &self.definition().indexes[access.index().0];
        let parts = self
            .trees_of(access.index())
            .map_or(0, |trees| trees.first().map_or(0, |tree| tree.layout.key_fields));
        let whole = key.parts().count() == parts && key.parts().all(|part| part != Sought::Null);
        let unique = index.unique || access.index().0 == 0;
        whole && unique && index.parts.iter().all(|part| part.prefix_bytes.is_none())
    }

    async fn rows_of_key(
        &self,
        access: &Access,
        partition: usize,
        mut matches: Matches<'_>,
        context: &IoContext,
        on_row: OnRow<'_>,
    ) -> Result<ControlFlow<()>> {
        let reader = self.clustered_reader(access, partition, context)?;
        let mut origins = Vec::new();
        let mut bookmarks = Vec::new();
        while let Some(leaf) = matches.next_leaf(&mut origins, context).await? {
            if !access.covering() {
                let collected = collect_bookmarks(matches.tree, partition, &leaf, &origins, &mut bookmarks);
                collected.map_err(|error| matches.tree.at(leaf.page().number(), &error))?;
            } else if reader.rows_at(&leaf, &origins, on_row).await?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        if let [bookmark] = bookmarks.as_slice() {
            return match find(&reader, bookmark).await? {
                Some(found) => found.hand_out(&reader, on_row),
                None => Ok(ControlFlow::Continue(())),
            };
        }
        let fetches = stream::iter(&bookmarks).map(|bookmark| find(&reader, bookmark));
        let mut fetches = fetches.buffer_unordered(BOOKMARKS);
        while let Some(found) = fetches.try_next().await? {
            if let Some(found) = found
                && found.hand_out(&reader, on_row)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A row in its leaf, with its off-page values.
struct Found {
    leaf: Node,
    origin: usize,
    externals: Externals,
}

impl Found {
    fn hand_out(&self, reader: &LeafReader<'_>, on_row: OnRow<'_>) -> Result<ControlFlow<()>> {
        let mut spans = Spans::with_capacity(reader.projection.fields);
        reader.parse_placed(&self.leaf, self.origin, &mut spans)?;
        if !reader.tree.layout.is_current(self.leaf.bytes(), &spans) {
            return Ok(ControlFlow::Continue(()));
        }
        on_row(&reader.row(&self.leaf, &spans, Some(&self.externals)))
    }
}

/// The row of a bookmark; `None` if it is marked as deleted.
async fn find(reader: &LeafReader<'_>, bookmark: &Bookmark) -> Result<Option<Found>> {
    let tree = reader.tree;
    let Position { leaf, before } = tree.descend(&bookmark.key, Seek::Unique, reader.context).await?;
    let no = leaf.page().number();
    let placed = |error: Error| tree.at(no, &error);
    let next = leaf.after(before).map_err(placed)?;
    let mut spans = Spans::new();
    let origin = match next {
        Some(origin) if tree.compare(&leaf, origin, &bookmark.key, &mut spans).map_err(placed)?.is_eq() => {
            origin
        }
        _ => return Err(tree.space.corrupt(no, "a row that a secondary index names is missing")),
    };
    if !leaf.is_row(origin).map_err(placed)? {
        return Ok(None);
    }
    let externals = match reader.projection.may_be_external {
        true => reader.externals(&leaf, origin).await?,
        false => Externals::new(),
    };
    Ok(Some(Found { leaf, origin, externals }))
}

/// The rows that equal a key, leaf by leaf.
struct Matches<'a> {
    tree: &'a Tree,
    key: &'a Key,
    /// The leaf to look at next and the record before the first that can match.
    position: Option<Position>,
    unique: bool,
    seek: Seek,
    /// Leaves that may still follow.
    left: u32,
    spans: Spans,
}

impl<'a> Matches<'a> {
    fn new(tree: &'a Tree, key: &'a Key, position: Position, unique: bool, seek: Seek) -> Matches<'a> {
        let left = tree.space.pages();
        Matches { tree, key, position: Some(position), unique, seek, left, spans: Spans::new() }
    }

    /// The next leaf that was looked at, with the origins of its rows that match (possibly none).
    async fn next_leaf(&mut self, origins: &mut Vec<usize>, context: &IoContext) -> Result<Option<Node>> {
        origins.clear();
        let Some(Position { leaf, before }) = self.position.take() else { return Ok(None) };
        let no = leaf.page().number();
        let ended = self.collect(&leaf, before, origins).map_err(|error| self.tree.at(no, &error))?;
        // A unique descent took the only leaf where the key can be.
        let done = ended || self.seek == Seek::Unique || (self.unique && !origins.is_empty());
        if !done && let Some(next) = leaf.next() {
            let chain = || self.tree.space.corrupt(no, "the chain of leaves does not end");
            self.left = self.left.checked_sub(1).ok_or_else(chain)?;
            let next = self.tree.node(next, 0, leaf.index_id(), context).await?;
            let before = next.infimum();
            self.position = Some(Position { leaf: next, before });
        }
        Ok(Some(leaf))
    }

    /// Collects the matches of a leaf; returns whether a greater key came.
    fn collect(&mut self, leaf: &Node, before: usize, origins: &mut Vec<usize>) -> Result<bool> {
        let mut records = leaf.records_after(before);
        while let Some(origin) = records.next()? {
            let order = self.tree.compare(leaf, origin, self.key, &mut self.spans)?;
            if order.is_gt() {
                return Ok(true);
            }
            if order.is_eq() && leaf.is_row(origin)? {
                origins.push(origin);
                if self.unique {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}
