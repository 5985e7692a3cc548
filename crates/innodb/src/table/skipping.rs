//! Scans that step over damage: every sound page is read, and what is not is listed ([`Losses`]).
//!
//! - A damaged leaf is left out as a whole, also if only its records contradict each other: none of them would be
//!   certain.
//! - A row with an off-page value that cannot be read, or with a stored value that is none of its type, is left out. No
//!   value is ever shown that the server had not stored.
//! - Where a node above the leaves is damaged, the leaves are found by reading the whole file ([`super::rescue`]).
//!
//! Only whole scans exist in this form: a look-up through a damaged index would miss rows that a scan finds.

use std::ops::ControlFlow;

use futures::{StreamExt, stream};
use tanada_io::IoContext;

use super::losses::{Losses, is_damage};
use super::scan::{EXTERNAL_ROWS, LeafReader, LeafRun, live_origins, runs};
use super::{Access, OnRow, Table, rescue};
use crate::record::Spans;
use crate::tree::{KeyRange, Node, Tree};
use crate::{Error, ErrorKind, IndexNo, PageNo, PageRun, Result, RowSink, Value};

/// A sink that forgets: decoding into it tells whether a row can be decoded.
pub(super) struct Discard;

impl RowSink for Discard {
    fn push(&mut self, _: usize, _: Value<'_>) -> Result<()> {
        Ok(())
    }
}

/// The errors of damage, with the way around it.
pub(super) fn offer_skipping(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Corrupt => {
            let way = "restore the file from a backup, or read what is not damaged with --skip-damaged (SET tanada.skip_damaged = true)";
            Error::new(ErrorKind::Corrupt, format!("{error}; {way}"))
        }
        _ => error,
    }
}

impl Table {
    /// All leaf pages of `index` that can be read or are still to be found damaged, as [`leaves`](Table::leaves) gives
    /// them. What is known to be lost goes to `losses`.
    ///
    /// # Errors
    /// If the pages of the file cannot be asked for what they are.
    pub async fn sound_leaves(
        &self,
        index: IndexNo,
        losses: &Losses,
        context: &IoContext,
    ) -> Result<Vec<LeafRun>> {
        let mut all = Vec::new();
        let trees = self.trees_of(index)?;
        for (partition, tree) in trees.iter().enumerate() {
            let listed = tree.leaves(&KeyRange::all(), context).await.map(|mut list| {
                list.pages.sort_unstable();
                list.pages
            });
            let pages = match listed {
                Ok(pages) if pages.windows(2).all(|pair| pair[0] != pair[1]) => pages,
                Err(error) if !is_damage(&error) => return Err(error),
                _ => match rescue::leaves(tree, self.index_name(index), losses, context).await {
                    // The other partitions are read.
                    Err(error) if is_damage(&error) && trees.len() > 1 => {
                        losses.leaf(tree.space.path(), tree.root, self.index_name(index), &error.to_string());
                        continue;
                    }
                    pages => pages?,
                },
            };
            all.extend(runs(partition, &pages, tree.space.page_size()));
        }
        Ok(all)
    }

    /// Hands out all rows of a run as [`scan`](Table::scan) does, but for what is damaged, which goes to `losses`.
    ///
    /// # Errors
    /// `InvalidInput` if `access` does not cover, what is no damage of single pages, and what `on_row` returns.
    pub async fn scan_sound(
        &self,
        access: &Access,
        run: &LeafRun,
        losses: &Losses,
        context: &IoContext,
        on_row: OnRow<'_>,
    ) -> Result<()> {
        if !access.covering() {
            return Err(Error::new(ErrorKind::InvalidInput, "a scan needs an index that holds all columns"));
        }
        let tree = self.tree(access.index(), run.partition)?;
        let reader = LeafReader { tree, projection: access.projection(run.partition)?, fetch: true, context };
        let scan = SoundScan { reader, index: self.index_name(access.index()), losses };
        // A sector that cannot be read fails the whole run; its other pages are then read one by one.
        let pages = match tree.space.run(run.first, run.span_pages(), context).await {
            Ok(pages) => Some(pages),
            Err(error) if is_damage(&error) => None,
            Err(error) => return Err(error),
        };
        for offset in &run.offsets {
            let leaf = scan.leaf(run.first, *offset, pages.as_ref()).await;
            match leaf {
                Ok(leaf) if scan.rows(&leaf, on_row).await?.is_break() => break,
                Ok(_) => {}
                Err(error) if is_damage(&error) => {
                    let no = PageNo(run.first.0 + u32::from(*offset));
                    losses.leaf(tree.space.path(), no, scan.index, &error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn index_name(&self, index: IndexNo) -> &str {
        self.definition().indexes.get(index.0).map_or("", |index| &index.name)
    }
}

struct SoundScan<'a> {
    reader: LeafReader<'a>,
    index: &'a str,
    losses: &'a Losses,
}

impl SoundScan<'_> {
    /// The leaf at `offset` behind `first`, all of whose records can be taken apart.
    async fn leaf(&self, first: PageNo, offset: u16, pages: Option<&PageRun>) -> Result<Leaf> {
        let (tree, context) = (self.reader.tree, self.reader.context);
        let no = PageNo(first.0 + u32::from(offset));
        let page = match pages {
            Some(pages) => tree.space.page_of(pages, u32::from(offset), context).await?,
            None => tree.space.page(no, context).await?,
        };
        let node = Node::new(page).map_err(|error| tree.at(no, &error))?;
        let id = tree.known_id(context).await.unwrap_or_else(|| node.index_id());
        let node = tree.check(node, 0, id)?;
        let origins = live_origins(tree, &node, &KeyRange::all()).map_err(|error| tree.at(no, &error))?;
        let mut spans = Spans::with_capacity(self.reader.projection.fields);
        for origin in &origins {
            self.reader.parse_placed(&node, *origin, &mut spans)?;
        }
        Ok(Leaf { node, origins })
    }

    /// Hands out the rows of a leaf that can be decoded.
    async fn rows(&self, leaf: &Leaf, on_row: OnRow<'_>) -> Result<ControlFlow<()>> {
        let (reader, space) = (&self.reader, &self.reader.tree.space);
        let no = leaf.node.page().number();
        self.losses.leaf_read(space.path(), self.index, leaf.origins.len());
        let lose = |origin: usize, error: &Error| {
            self.losses.row(space.path(), no, self.index, origin, &error.to_string());
        };
        let mut spans = Spans::with_capacity(reader.projection.fields);
        let fetches = stream::iter(&leaf.origins)
            .map(async |origin| (*origin, reader.externals(&leaf.node, *origin).await));
        let mut fetches = fetches.buffered(EXTERNAL_ROWS);
        while let Some((origin, externals)) = fetches.next().await {
            let externals = match externals {
                Ok(externals) => externals,
                Err(error) if is_damage(&error) => {
                    lose(origin, &error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            reader.parse_placed(&leaf.node, origin, &mut spans)?;
            if !reader.tree.layout.is_current(leaf.node.bytes(), &spans) {
                continue;
            }
            let row = reader.row(&leaf.node, &spans, Some(&externals));
            match row.decode(&mut Discard) {
                Err(error) if is_damage(&error) => lose(origin, &error),
                _ if on_row(&row)?.is_break() => return Ok(ControlFlow::Break(())),
                _ => {}
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A leaf with the origins of its rows.
struct Leaf {
    node: Node,
    origins: Vec<usize>,
}

impl Tree {
    /// The index's id, from the definition if not from the root; `None` if neither tells.
    pub(super) async fn known_id(&self, context: &IoContext) -> Option<u64> {
        if self.defined_id != 0 {
            return Some(self.defined_id);
        }
        self.id(context).await.ok()
    }
}
