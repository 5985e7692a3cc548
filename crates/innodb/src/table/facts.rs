//! What a table is like: sizes, forms, estimates. Put together from its layout and from sampled leaves, for people to
//! look at.

use tanada_io::IoContext;

use super::sampling::{Sampled, read_leaves, spread};
use super::{IndexLayout, LeafSteps, Table, TableLayout};
use crate::schema::RowFormat;
use crate::space::PageRange;
use crate::{IndexNo, PageSize, Result};

/// Leaves that are read to tell how many are compressed.
const LEAVES: usize = 20;

/// What a table is like. Pages and bytes are those of all partitions.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFacts {
    /// How rows are stored. REDUNDANT or not is by the pages, the rest by the definition.
    pub row_format: RowFormat,
    /// The size of pages in the file.
    pub page_size: PageSize,
    /// Files.
    pub partitions: usize,
    /// Rows, estimated.
    pub rows: u64,
    /// Whether `rows` is exact.
    pub rows_exact: bool,
    /// Mean bytes of a clustered record.
    pub row_bytes: f64,
    /// Share of the leaves sampled (about twenty, of the clustered index) that page compression made shorter, 0 to 1;
    /// ROW_FORMAT=COMPRESSED is another thing.
    pub compressed_share: f64,
    /// Pages in the files.
    pub pages: u64,
    /// Of these, given to nobody.
    pub free_pages: u64,
    /// Of these, what the space itself needs, and other tables' pages in a shared space.
    pub other_pages: u64,
    /// The indexes that have a tree, as in [`SpaceLayout::indexes`](super::SpaceLayout::indexes).
    pub indexes: Vec<IndexFacts>,
}

/// What an index is like.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexFacts {
    /// Its place in the definition; `None` for a tree that the definition does not name.
    pub index: Option<IndexNo>,
    /// Its name.
    pub name: String,
    /// Whether it holds the rows.
    pub clustered: bool,
    /// Levels, of the highest tree.
    pub height: u32,
    /// Leaves.
    pub leaf_pages: u64,
    /// Nodes above them.
    pub inner_pages: u64,
    /// Pages of off-page values.
    pub off_page_pages: u64,
    /// Pages that are the index's, but not in use.
    pub reserved_pages: u64,
    /// How leaves lie that follow each other by key; `None` for an index that is not read.
    pub steps: Option<LeafSteps>,
}

impl IndexFacts {
    /// Pages in use.
    pub fn used_pages(&self) -> u64 {
        self.leaf_pages + self.inner_pages + self.off_page_pages
    }

    /// Pages that are the index's, in use or not.
    pub fn allocated_pages(&self) -> u64 {
        self.used_pages() + self.reserved_pages
    }

    fn new(layout: &IndexLayout) -> IndexFacts {
        IndexFacts {
            index: layout.index,
            name: layout.name.clone(),
            clustered: layout.clustered,
            height: 0,
            leaf_pages: 0,
            inner_pages: 0,
            off_page_pages: 0,
            reserved_pages: 0,
            steps: Some(LeafSteps::default()),
        }
    }

    fn add(&mut self, layout: &IndexLayout) {
        self.height = self.height.max(layout.height);
        self.leaf_pages += PageRange::count(&layout.leaf);
        self.inner_pages += PageRange::count(&layout.inner);
        self.off_page_pages += PageRange::count(&layout.off_page);
        self.reserved_pages += PageRange::count(&layout.reserved);
        self.steps = self.steps.zip(layout.steps).map(|(sum, added)| LeafSteps {
            all: sum.all + added.all,
            to_neighbour: sum.to_neighbour + added.to_neighbour,
        });
    }
}

impl Table {
    /// What the table is like, with the layout that this was worked out from.
    ///
    /// # Errors
    /// If a page that it takes cannot be read or is damaged.
    pub async fn facts(&self, context: &IoContext) -> Result<(TableFacts, TableLayout)> {
        let layout = self.layout(context).await?;
        let statistics = self.statistics(context).await?;
        let sum = |of: fn(&super::SpaceLayout) -> u64| layout.spaces.iter().map(of).sum();
        let facts = TableFacts {
            row_format: self.row_format(context).await?,
            page_size: self.spaces.first().map_or(PageSize(0), |space| space.page_size()),
            partitions: layout.spaces.len(),
            rows: statistics.rows,
            rows_exact: statistics.exact,
            row_bytes: statistics.row_bytes,
            compressed_share: self.compressed_share(context).await?,
            pages: sum(|space| u64::from(space.pages)),
            free_pages: sum(|space| PageRange::count(&space.free)),
            other_pages: sum(|space| PageRange::count(&space.other)),
            indexes: indexes(&layout),
        };
        Ok((facts, layout))
    }

    async fn row_format(&self, context: &IoContext) -> Result<RowFormat> {
        let root = self.tree(IndexNo(0), 0)?.root(context).await?;
        Ok(match (root.is_compact(), self.definition.row_format) {
            (false, _) => RowFormat::Redundant,
            (true, RowFormat::Redundant) => RowFormat::Compact,
            (true, row_format) => row_format,
        })
    }

    async fn compressed_share(&self, context: &IoContext) -> Result<f64> {
        if self.spaces.iter().any(|space| space.is_zipped()) {
            return Ok(0.0);
        }
        let trees = self.trees_of(IndexNo(0))?;
        let (mut read, mut compressed) = (0, 0);
        for tree in trees {
            let mut sampled = Sampled::new(tree, context).await?;
            let chosen = spread(&sampled.known, LEAVES.div_ceil(trees.len()));
            for leaf in read_leaves(tree, &chosen, &mut sampled.damage, context).await? {
                read += 1;
                compressed += u32::from(leaf.page().was_compressed());
            }
        }
        Ok(f64::from(compressed) / f64::from(read.max(1)))
    }
}

/// The indexes of all partitions, each once. Those that the definition does not name are the same if they are called
/// the same.
fn indexes(layout: &TableLayout) -> Vec<IndexFacts> {
    let mut all: Vec<IndexFacts> = Vec::new();
    for index in layout.spaces.iter().flat_map(|space| &space.indexes) {
        let is_same = |facts: &&mut IndexFacts| facts.index == index.index && facts.name == index.name;
        match all.iter_mut().find(is_same) {
            Some(facts) => facts.add(index),
            None => {
                let mut facts = IndexFacts::new(index);
                facts.add(index);
                all.push(facts);
            }
        }
    }
    all
}
