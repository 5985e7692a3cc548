//! Scans: leaf pages in large runs, past the cache.

use std::ops::ControlFlow;

use futures::{StreamExt, TryStreamExt, stream};
use tanada_io::IoContext;

use super::row::{Externals, Projection, Row};
use super::skipping::offer_skipping;
use super::{Access, Bookmark, OnRow, Table, bookmark};
use crate::record::{self, Spans};
use crate::tree::{KeyRange, Node, Tree};
use crate::{Error, ErrorKind, IndexNo, PageNo, PageRun, PageSize, Result, lob};

/// Most bytes of a run.
const RUN_BYTES: u32 = 1 << 20;
/// Pages that are no leaves but are read along, rather than starting another I/O.
const GAP_PAGES: u32 = 4;
/// Rows of a leaf whose off-page values are fetched at once.
pub(super) const EXTERNAL_ROWS: usize = 8;

/// Consecutive leaf pages of one partition (by page number), at most 1 MiB, to be read with one I/O.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafRun {
    /// Partition.
    pub partition: usize,
    /// First page.
    pub first: PageNo,
    /// Which pages after `first` are leaves of the index, ascending offsets, starting with 0.
    pub offsets: Vec<u16>,
}

impl LeafRun {
    /// Pages from the first leaf to the last.
    pub fn span_pages(&self) -> u32 {
        self.offsets.last().map_or(0, |last| u32::from(*last) + 1)
    }
}

/// Runs of the sorted `pages` of a partition.
pub(super) fn runs(partition: usize, pages: &[PageNo], page_size: PageSize) -> Vec<LeafRun> {
    let longest = (RUN_BYTES / page_size.0).max(1);
    let mut runs: Vec<LeafRun> = Vec::new();
    for page in pages {
        if let Some(run) = runs.last_mut() {
            let offset = page.0 - run.first.0;
            if offset < longest && offset < run.span_pages() + 1 + GAP_PAGES {
                run.offsets.push(offset as u16);
                continue;
            }
        }
        runs.push(LeafRun { partition, first: *page, offsets: vec![0] });
    }
    runs
}

impl Table {
    /// The leaf pages of `index` that may hold keys of `range`, as runs sorted by partition and page number (reads the
    /// level above the leaves only).
    ///
    /// # Errors
    /// `Corrupt` if the tree is damaged, as where a page has two parents.
    pub async fn leaves(
        &self,
        index: IndexNo,
        range: &KeyRange,
        context: &IoContext,
    ) -> Result<Vec<LeafRun>> {
        let trees = self.trees_of(index)?;
        let lists = trees.iter().map(|tree| tree.leaves(range, context));
        let lists = futures::future::try_join_all(lists).await.map_err(offer_skipping)?;
        let mut all = Vec::new();
        for (partition, (tree, mut list)) in trees.iter().zip(lists).enumerate() {
            list.pages.sort_unstable();
            if let Some(pair) = list.pages.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(offer_skipping(tree.space.corrupt(pair[0], "two node pointers lead to it")));
            }
            all.extend(runs(partition, &list.pages, tree.space.page_size()));
        }
        Ok(all)
    }

    /// Reads one run with one I/O past the cache and hands out its rows in range, in page order; needs a covering
    /// access (the clustered index is covering for all stored columns).
    ///
    /// # Errors
    /// `InvalidInput` if `access` does not cover, `Corrupt` if a page is damaged, and what `on_row` returns.
    pub async fn scan(
        &self,
        access: &Access,
        run: &LeafRun,
        range: &KeyRange,
        context: &IoContext,
        on_row: OnRow<'_>,
    ) -> Result<()> {
        each_leaf(self, access, run, context, async |reader, leaf| reader.rows(leaf, range, on_row).await)
            .await
    }

    /// Bookmarks of a run of a secondary index, in page order.
    ///
    /// # Errors
    /// `InvalidInput` for the clustered index, `Corrupt` if a page is damaged.
    pub async fn bookmarks(
        &self,
        index: IndexNo,
        run: &LeafRun,
        range: &KeyRange,
        context: &IoContext,
    ) -> Result<Vec<Bookmark>> {
        if index.0 == 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "the clustered index has no bookmarks"));
        }
        let tree = self.tree(index, run.partition)?;
        let id = tree.id(context).await?;
        let pages = tree.space.run(run.first, run.span_pages(), context).await?;
        let mut found = Vec::new();
        for offset in &run.offsets {
            let leaf = leaf_of_run(tree, id, &pages, *offset, context).await?;
            let no = leaf.page().number();
            let origins = live_origins(tree, &leaf, range).map_err(|error| tree.at(no, &error))?;
            collect_bookmarks(tree, run.partition, &leaf, &origins, &mut found)
                .map_err(|error| tree.at(no, &error))?;
        }
        Ok(found)
    }
}

/// Reads a run of a covering access with one I/O and calls `visit` with each leaf until it breaks off.
pub(super) async fn each_leaf(
    table: &Table,
    access: &Access,
    run: &LeafRun,
    context: &IoContext,
    mut visit: impl AsyncFnMut(&LeafReader<'_>, &Node) -> Result<ControlFlow<()>>,
) -> Result<()> {
    if !access.covering() {
        return Err(Error::new(ErrorKind::InvalidInput, "a scan needs an index that holds all columns"));
    }
    let read = async {
        let tree = table.tree(access.index(), run.partition)?;
        let reader = LeafReader { tree, projection: access.projection(run.partition)?, fetch: true, context };
        let id = tree.id(context).await?;
        let pages = tree.space.run(run.first, run.span_pages(), context).await?;
        for offset in &run.offsets {
            let leaf = leaf_of_run(tree, id, &pages, *offset, context).await?;
            if visit(&reader, &leaf).await?.is_break() {
                break;
            }
        }
        Ok(())
    };
    read.await.map_err(offer_skipping)
}

/// The leaf of index `id` that lies `offset` pages behind the first of a run.
async fn leaf_of_run(
    tree: &Tree,
    id: u64,
    pages: &PageRun,
    offset: u16,
    context: &IoContext,
) -> Result<Node> {
    let page = tree.space.page_of(pages, offset.into(), context).await?;
    let no = page.number();
    let leaf = Node::new(page).map_err(|error| tree.at(no, &error))?;
    tree.check(leaf, 0, id)
}

/// Adds the bookmarks of the entries at `origins`.
pub(super) fn collect_bookmarks(
    tree: &Tree,
    partition: usize,
    leaf: &Node,
    origins: &[usize],
    found: &mut Vec<Bookmark>,
) -> Result<()> {
    let shape = &tree.layout.shape;
    let count = tree.layout.clustered_key.iter().max().map_or(0, |last| last + 1);
    let count = count.max(tree.layout.current_fields());
    let mut spans = Spans::with_capacity(count);
    for origin in origins {
        record::parse_leaf(leaf.bytes(), *origin, leaf.is_compact(), shape, count, &mut spans)?;
        if !tree.layout.is_current(leaf.bytes(), &spans) {
            continue;
        }
        let key = bookmark::clustered_key(tree, leaf, &spans)?;
        found.push(Bookmark { partition: partition as u32, key });
    }
    Ok(())
}

/// The rows of `leaf` within `range`.
pub(super) fn live_origins(tree: &Tree, leaf: &Node, range: &KeyRange) -> Result<Vec<usize>> {
    let mut origins = Vec::new();
    let _ = each_row(tree, leaf, range, |origin| {
        origins.push(origin);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(origins)
}

/// Calls `visit` with the origin of each row of `leaf` within `range`.
#[inline]
pub(super) fn each_row(
    tree: &Tree,
    leaf: &Node,
    range: &KeyRange,
    mut visit: impl FnMut(usize) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    let (before, last) = if range.is_all() {
        (leaf.infimum(), None)
    } else {
        match tree.stretch(leaf, range)? {
            Some(stretch) => stretch,
            None => return Ok(ControlFlow::Continue(())),
        }
    };
    let mut records = leaf.records_after(before);
    while let Some(origin) = records.next()? {
        if leaf.is_row(origin)? && visit(origin)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if last == Some(origin) {
            break;
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Hands out the rows of leaves.
pub(super) struct LeafReader<'a> {
    pub(super) tree: &'a Tree,
    pub(super) projection: &'a Projection,
    /// Whether off-page values are fetched.
    pub(super) fetch: bool,
    pub(super) context: &'a IoContext,
}

impl LeafReader<'_> {
    /// All rows of `leaf` within `range`.
    pub(super) async fn rows(
        &self,
        leaf: &Node,
        range: &KeyRange,
        on_row: OnRow<'_>,
    ) -> Result<ControlFlow<()>> {
        let no = leaf.page().number();
        if !self.fetch || !self.projection.may_be_external {
            return self.rows_in_page(leaf, range, on_row);
        }
        let origins = live_origins(self.tree, leaf, range).map_err(|error| self.tree.at(no, &error))?;
        self.rows_at(leaf, &origins, on_row).await
    }

    /// The same for a projection none of whose values is to be fetched from elsewhere.
    fn rows_in_page(&self, leaf: &Node, range: &KeyRange, on_row: OnRow<'_>) -> Result<ControlFlow<()>> {
        let mut spans = Spans::with_capacity(self.projection.fields);
        let none = Externals::new();
        let externals = self.fetch.then_some(&none);
        // Errors of the walk get their place here, errors of the callback stay as they are.
        let mut failed = None;
        let walked = each_row(self.tree, leaf, range, |origin| {
            self.parse(leaf, origin, &mut spans)?;
            if !self.tree.layout.is_current(leaf.bytes(), &spans) {
                return Ok(ControlFlow::Continue(()));
            }
            Ok(on_row(&self.row(leaf, &spans, externals)).unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            }))
        });
        match failed {
            Some(error) => Err(error),
            None => walked.map_err(|error| self.tree.at(leaf.page().number(), &error)),
        }
    }

    /// The rows at `origins`, with off-page values fetched for several at once.
    pub(super) async fn rows_at(
        &self,
        leaf: &Node,
        origins: &[usize],
        on_row: OnRow<'_>,
    ) -> Result<ControlFlow<()>> {
        let mut spans = Spans::with_capacity(self.projection.fields);
        let mut rest = origins;
        while !rest.is_empty() {
            // Rows up to the next with off-page values need no waiting.
            let plain = self.rows_until_external(leaf, rest, &mut spans, on_row)?;
            let Some(plain) = plain else { return Ok(ControlFlow::Break(())) };
            rest = &rest[plain..];
            let (batch, later) = rest.split_at(rest.len().min(EXTERNAL_ROWS));
            let mut reads =
                stream::iter(batch).map(|origin| self.externals(leaf, *origin)).buffered(EXTERNAL_ROWS);
            for origin in batch {
                let Some(externals) = reads.try_next().await? else { break };
                self.parse_placed(leaf, *origin, &mut spans)?;
                if !self.tree.layout.is_current(leaf.bytes(), &spans) {
                    continue;
                }
                if on_row(&self.row(leaf, &spans, Some(&externals)))?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            rest = later;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Hands out rows until one has off-page values; returns how many, `None` after a break.
    fn rows_until_external(
        &self,
        leaf: &Node,
        origins: &[usize],
        spans: &mut Spans,
        on_row: OnRow<'_>,
    ) -> Result<Option<usize>> {
        let none = Externals::new();
        for (done, origin) in origins.iter().enumerate() {
            self.parse_placed(leaf, *origin, spans)?;
            if !self.tree.layout.is_current(leaf.bytes(), spans) {
                continue;
            }
            if self.has_external(spans) {
                return Ok(Some(done));
            }
            if on_row(&self.row(leaf, spans, Some(&none)))?.is_break() {
                return Ok(None);
            }
        }
        Ok(Some(origins.len()))
    }

    pub(super) fn has_external(&self, spans: &Spans) -> bool {
        self.projection.may_be_external
            && self
                .projection
                .slots
                .iter()
                .any(|slot| spans.get(slot.field).is_some_and(|span| span.is_external()))
    }

    /// Fetches the off-page values of the row at `origin`.
    pub(super) async fn externals(&self, leaf: &Node, origin: usize) -> Result<Externals> {
        let mut spans = Spans::with_capacity(self.projection.fields);
        self.parse_placed(leaf, origin, &mut spans)?;
        if !self.has_external(&spans) {
            return Ok(Externals::new());
        }
        let fetches = self.projection.slots.iter().map(|slot| {
            let span = spans.get(slot.field).copied().filter(|span| span.is_external());
            async move {
                let Some(span) = span else { return Ok(None) };
                let local = span.bytes(leaf.bytes());
                let fetched = lob::fetch(&self.tree.space, local, slot.longest, self.context).await;
                fetched
                    .map(Some)
                    .map_err(|error| error.within(format_args!("row on page {}", leaf.page().number())))
            }
        });
        futures::future::try_join_all(fetches).await
    }

    #[inline]
    pub(super) fn parse(&self, leaf: &Node, origin: usize, spans: &mut Spans) -> Result<()> {
        let shape = &self.tree.layout.shape;
        record::parse_leaf(leaf.bytes(), origin, leaf.is_compact(), shape, self.projection.fields, spans)
    }

    pub(super) fn parse_placed(&self, leaf: &Node, origin: usize, spans: &mut Spans) -> Result<()> {
        self.parse(leaf, origin, spans).map_err(|error| self.tree.at(leaf.page().number(), &error))
    }

    #[inline]
    pub(super) fn row<'r>(
        &'r self,
        leaf: &'r Node,
        spans: &'r Spans,
        externals: Option<&'r Externals>,
    ) -> Row<'r> {
        Row {
            page: leaf.bytes(),
            page_no: leaf.page().number(),
            spans,
            projection: self.projection,
            tree: self.tree,
            externals,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_and_small_gaps_make_one_run() {
        let pages: Vec<PageNo> = [4, 5, 6, 9, 15, 30, 34].map(PageNo).into();
        let runs = runs(1, &pages, PageSize(16384));
        let expected = [(4, vec![0, 1, 2, 5]), (15, vec![0]), (30, vec![0, 4])];
        let found: Vec<(u32, Vec<u16>)> = runs.iter().map(|run| (run.first.0, run.offsets.clone())).collect();
        assert_eq!(found, expected);
        assert!(runs.iter().all(|run| run.partition == 1));
    }

    #[test]
    fn a_run_has_at_most_a_mebibyte() {
        let pages: Vec<PageNo> = (100..1100).map(PageNo).collect();
        for (bytes, longest) in [(4096, 256), (16384, 64), (65536, 16)] {
            let runs = runs(0, &pages, PageSize(bytes));
            assert!(runs.iter().all(|run| run.span_pages() <= longest));
            assert_eq!(runs.len(), 1000usize.div_ceil(longest as usize));
        }
    }
}
