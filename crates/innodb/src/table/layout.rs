//! Which pages of its files each index of a table has.
//!
//! 1. The roots are those of the trees that are open, and of the other indexes as far as the definition or the segment
//!    inodes name them.
//! 2. A root names the inodes of its two segments: one for the leaves and off-page values, one for the levels above.
//!    Inodes and extent descriptors tell each segment's pages ([`crate::space`]), so no other page has to be read.
//! 3. The nodes of level 1 and above name the leaves in key order. What the leaves' segment has beside them are
//!    off-page values.
//! 4. If descriptors, inodes or nodes are damaged, or a leaf is not in its segment, all pages are read instead and
//!    asked for their index ([`walked`](super::walked)).
//!
//! Every page of a file is of exactly one kind: a leaf, an inner node, an off-page value or reserved space of one
//! index, free, or something else.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::IoContext;

use super::Table;
use super::walked;
use crate::page::header::{link_at, u16_at, u64_at};
use crate::space::ranges::{difference, push_range, ranges};
use crate::space::{PageRange, SegmentPages};
use crate::tree::{KeyRange, Tree};
use crate::{ErrorKind, IndexNo, PageNo, PageSize, Result, Server, SpaceId, Tablespace};

const LEVEL: usize = 64;
const INDEX_ID: usize = 66;
/// In a root: the addresses of the inodes, behind the space's id.
const LEAF_SEGMENT: usize = 74 + 4;
const TOP_SEGMENT: usize = 84 + 4;
/// Where tables share one space.
const SYSTEM_SPACE: SpaceId = SpaceId(0);

/// Where a table lies: one entry for each partition.
#[derive(Debug, Clone, PartialEq)]
pub struct TableLayout {
    /// By partition.
    pub spaces: Vec<SpaceLayout>,
}

/// Where a table, or a partition of it, lies in its file. All ranges are ascending unless they say otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceLayout {
    /// The file.
    pub path: PathBuf,
    /// Its tablespace.
    pub space: SpaceId,
    /// Its page size.
    pub page_size: PageSize,
    /// Pages in the file.
    pub pages: u32,
    /// The table's indexes in the order of the definition, then those that it does not name. Without those that have no
    /// tree (FULLTEXT) or whose tree is not known.
    pub indexes: Vec<IndexLayout>,
    /// Given to nobody.
    pub free: Vec<PageRange>,
    /// What the space itself needs, MySQL's dictionary information, and other tables' pages if several share the space.
    pub other: Vec<PageRange>,
    /// Whether descriptors, inodes or a tree were damaged, so that all pages were read: space that is reserved is not
    /// told from other, and off-page values are all said to be the clustered index's.
    pub walked: bool,
}

/// The pages of one index in one file.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexLayout {
    /// Its place in the definition; `None` for a tree that the definition does not name.
    pub index: Option<IndexNo>,
    /// Its name; `index 123` for one that the definition does not name.
    pub name: String,
    /// InnoDB's id.
    pub id: u64,
    /// Whether it holds the rows.
    pub clustered: bool,
    /// The root.
    pub root: PageNo,
    /// Levels; 1 is a root that is a leaf.
    pub height: u32,
    /// Leaves, among them a root that is one.
    pub leaf: Vec<PageRange>,
    /// Nodes above the leaves.
    pub inner: Vec<PageRange>,
    /// Values that do not fit their rows.
    pub off_page: Vec<PageRange>,
    /// In the index's extents, but not in use.
    pub reserved: Vec<PageRange>,
    /// Steps from a leaf to the next in key order, and how many of them lead to the next page of the file; `None` for
    /// an index that is not read.
    pub steps: Option<LeafSteps>,
}

/// How leaves that follow each other in key order lie in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeafSteps {
    /// All steps: one less than the leaves.
    pub all: u64,
    /// Those that lead to the next page of the file.
    pub to_neighbour: u64,
}

/// The segments of a table, or of a partition of it, in its file.
#[derive(Debug, Clone, PartialEq)]
pub struct SpaceSegments {
    /// The file.
    pub path: PathBuf,
    /// Its page size.
    pub page_size: PageSize,
    /// Pages in the file.
    pub pages: u32,
    /// The indexes whose trees are known.
    pub indexes: Vec<IndexSegments>,
}

/// The pages in use of an index's two segments, ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSegments {
    /// Its place in the definition; `None` for a tree that the definition does not name.
    pub index: Option<IndexNo>,
    /// Its name.
    pub name: String,
    /// Leaves and off-page values; a root that is a leaf, too.
    pub leaves: Vec<PageRange>,
    /// Nodes above the leaves.
    pub upper: Vec<PageRange>,
}

/// A range of bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRange {
    /// The file.
    pub path: PathBuf,
    /// Where it starts.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
}

impl SpaceLayout {
    /// Of `space`, with nothing in it yet.
    pub(super) fn of(space: &Tablespace) -> SpaceLayout {
        SpaceLayout {
            path: space.path().to_owned(),
            space: space.id(),
            page_size: space.page_size(),
            pages: space.pages(),
            indexes: Vec::new(),
            free: Vec::new(),
            other: Vec::new(),
            walked: false,
        }
    }

    /// Where `pages` lie in the file. With page compression the bytes are those that the pages take up in the file's
    /// length, not on the device.
    pub fn file_ranges(&self, pages: &[PageRange]) -> Vec<FileRange> {
        file_ranges(&self.path, self.page_size, pages)
    }

    /// The layout of `index`, if it has a tree here.
    pub fn index(&self, index: IndexNo) -> Option<&IndexLayout> {
        self.indexes.iter().find(|layout| layout.index == Some(index))
    }
}

fn file_ranges(path: &Path, page_size: PageSize, pages: &[PageRange]) -> Vec<FileRange> {
    let range = |pages: &PageRange| {
        let (offset, bytes) = pages.bytes(page_size);
        FileRange { path: path.to_owned(), offset, bytes }
    };
    pages.iter().map(range).collect()
}

impl IndexLayout {
    /// Pages in use.
    pub fn used_pages(&self) -> u64 {
        [&self.leaf, &self.inner, &self.off_page].map(|pages| PageRange::count(pages)).iter().sum()
    }

    /// Pages that are the index's, in use or not.
    pub fn allocated_pages(&self) -> u64 {
        self.used_pages() + PageRange::count(&self.reserved)
    }
}

impl LeafSteps {
    /// The steps along `leaves`, which are in key order.
    fn along(leaves: &[PageNo]) -> LeafSteps {
        let pairs = leaves.windows(2);
        let to_neighbour = pairs.clone().filter(|pair| pair[0].0.checked_add(1) == Some(pair[1].0)).count();
        LeafSteps { all: pairs.len() as u64, to_neighbour: to_neighbour as u64 }
    }

    /// The share of steps that lead elsewhere than to the next page of the file, 0 to 1.
    pub fn fragmentation(&self) -> f64 {
        if self.all == 0 { 0.0 } else { (self.all - self.to_neighbour) as f64 / self.all as f64 }
    }
}

/// An index to be laid out in one space.
pub(super) struct Root {
    pub(super) index: Option<IndexNo>,
    pub(super) name: String,
    pub(super) page: PageNo,
    pub(super) tree: Option<Arc<Tree>>,
}

/// What a root says.
pub(super) struct RootFacts {
    pub(super) id: u64,
    pub(super) level: u16,
    leaf_segment: Option<u64>,
    top_segment: Option<u64>,
}

impl Table {
    /// Which pages each index has, by the extent descriptors, the segment inodes and the levels above the leaves: of a
    /// large table about one page in a hundred is read. All pages are, once, if the descriptors are damaged.
    ///
    /// # Errors
    /// `Corrupt` if a root is damaged.
    pub async fn layout(&self, context: &IoContext) -> Result<TableLayout> {
        let mut spaces = Vec::with_capacity(self.spaces.len());
        for partition in 0..self.spaces.len() {
            spaces.push(self.space_layout(partition, context).await?);
        }
        Ok(TableLayout { spaces })
    }

    /// Which pages the segments of each index have, by the extent descriptors and the segment inodes alone: a handful
    /// of page reads however large the table is. One entry for each partition. A file whose descriptors are damaged is
    /// said to be the clustered index's as a whole.
    ///
    /// # Errors
    /// If pages cannot be read.
    pub async fn segments(&self, context: &IoContext) -> Result<Vec<SpaceSegments>> {
        let mut spaces = Vec::with_capacity(self.spaces.len());
        for (partition, space) in self.spaces.iter().enumerate() {
            let roots = self.roots(partition, context).await?;
            let indexes = match segments_of(space, &roots, context).await {
                Err(error) if error.kind() == ErrorKind::Corrupt => vec![self.whole_file(partition)],
                indexes => indexes?,
            };
            let (path, page_size, pages) = (space.path().to_owned(), space.page_size(), space.pages());
            spaces.push(SpaceSegments { path, page_size, pages, indexes });
        }
        Ok(spaces)
    }

    fn whole_file(&self, partition: usize) -> IndexSegments {
        let name = self.definition.indexes.first().map_or_else(String::new, |index| index.name.clone());
        let pages = self.spaces.get(partition).map_or(0, |space| space.pages());
        let all = vec![PageRange { first: PageNo(0), pages }];
        IndexSegments { index: Some(IndexNo(0)), name, leaves: all, upper: Vec::new() }
    }

    /// The leaf pages of `index` that may hold keys of `range`, for each partition in key order (reads the levels above
    /// the leaves only). Leaves that follow each other both in key order and in the file are one range.
    ///
    /// # Errors
    /// `Unsupported` for an index that is not read, `Corrupt` if the tree is damaged.
    pub async fn leaves_in_key_order(
        &self,
        index: IndexNo,
        range: &KeyRange,
        context: &IoContext,
    ) -> Result<Vec<Vec<PageRange>>> {
        let trees = self.trees_of(index)?;
        let lists = trees.iter().map(|tree| tree.leaves(range, context));
        let lists = futures::future::try_join_all(lists).await?;
        Ok(lists.into_iter().map(|list| ranges(list.pages)).collect())
    }

    /// Where pages of `partition` lie in its file.
    ///
    /// # Errors
    /// `InvalidInput` if there is no such partition.
    pub fn file_ranges(&self, partition: usize, pages: &[PageRange]) -> Result<Vec<FileRange>> {
        let missing = || {
            let what = format!("{} has no partition {partition}", self.label());
            crate::Error::new(ErrorKind::InvalidInput, what)
        };
        let space = self.spaces.get(partition).ok_or_else(missing)?;
        Ok(file_ranges(space.path(), space.page_size(), pages))
    }

    async fn space_layout(&self, partition: usize, context: &IoContext) -> Result<SpaceLayout> {
        let space = &self.spaces[partition];
        let roots = self.roots(partition, context).await?;
        match owned(space, &roots, context).await {
            Err(error) if error.kind() == ErrorKind::Corrupt => walked::walk(space, &roots, context).await,
            layout => layout,
        }
    }

    /// The trees of one partition.
    async fn roots(&self, partition: usize, context: &IoContext) -> Result<Vec<Root>> {
        let definition = &self.definition;
        let mut roots = Vec::new();
        let mut lost = Vec::new();
        for (no, index) in definition.indexes.iter().enumerate() {
            let tree = self.trees[no].as_ref().and_then(|trees| trees.get(partition)).cloned();
            // FULLTEXT indexes have no tree here: they are tables of their own.
            let is_tree = |root: &PageNo| root.0 > 0 && *root != PageNo::NULL;
            let named = index.roots.get(partition).copied().flatten().filter(is_tree);
            match tree.as_ref().map(|tree| tree.root).or(named) {
                Some(page) => {
                    roots.push(Root { index: Some(IndexNo(no)), name: index.name.clone(), page, tree })
                }
                None => lost.push(no),
            }
        }
        let space = &self.spaces[partition];
        // MySQL names all roots. Elsewhere a space may have trees that no one is known to own, unless it has those of
        // other tables too.
        if definition.server == Server::MySql || space.id() == SYSTEM_SPACE {
            return Ok(roots);
        }
        // What damage hides here is found again by a walk.
        let found = space.index_roots(context).await.unwrap_or_default();
        let is_unnamed = |(page, _): &&(PageNo, u64)| roots.iter().all(|root| root.page != *page);
        let unnamed: Vec<(PageNo, u64)> = found.iter().filter(is_unnamed).copied().collect();
        for (page, id) in &unnamed {
            // One that is missing and one that is left over are the same.
            let index = match (&lost[..], &unnamed[..]) {
                ([no], [_]) => Some(IndexNo(*no)),
                _ => None,
            };
            let name =
                index.map_or_else(|| format!("index {id}"), |no| definition.indexes[no.0].name.clone());
            roots.push(Root { index, name, page: *page, tree: None });
        }
        Ok(roots)
    }
}

/// The layout by descriptors and inodes.
async fn owned(space: &Tablespace, roots: &[Root], context: &IoContext) -> Result<SpaceLayout> {
    let mut owners = space.owners(context).await?;
    let mut layout = SpaceLayout::of(space);
    for root in roots {
        let facts = root_facts(space, root.page, &owners.inodes, context).await?;
        let mut take = |segment: Option<u64>| {
            let pages = segment.and_then(|segment| owners.segments.remove(&segment));
            pages.ok_or_else(|| space.corrupt(root.page, "the root of an index names no segment of its own"))
        };
        let (leaves, top) = (take(facts.leaf_segment)?, take(facts.top_segment)?);
        layout.indexes.push(index_layout(space, root, &facts, leaves, top, context).await?);
    }
    let mut other = owners.system;
    other.extend(owners.segments.into_values().flat_map(|pages| [pages.used, pages.reserved].concat()));
    layout.free = owners.free;
    layout.other = sorted(other);
    Ok(layout)
}

/// The segments of `roots` by descriptors and inodes.
async fn segments_of(space: &Tablespace, roots: &[Root], context: &IoContext) -> Result<Vec<IndexSegments>> {
    let mut owners = space.owners(context).await?;
    let mut indexes = Vec::with_capacity(roots.len());
    for root in roots {
        let facts = root_facts(space, root.page, &owners.inodes, context).await?;
        let mut take = |segment: Option<u64>| {
            let pages = segment.and_then(|segment| owners.segments.remove(&segment));
            pages.ok_or_else(|| space.corrupt(root.page, "the root of an index names no segment of its own"))
        };
        let (leaves, upper) = (take(facts.leaf_segment)?, take(facts.top_segment)?);
        let (leaves, upper) = match facts.level {
            0 => (sorted([leaves.used, upper.used].concat()), Vec::new()),
            _ => (leaves.used, upper.used),
        };
        indexes.push(IndexSegments { index: root.index, name: root.name.clone(), leaves, upper });
    }
    Ok(indexes)
}

/// What the root at `page` says of its index.
async fn root_facts(
    space: &Tablespace,
    page: PageNo,
    inodes: &HashMap<(PageNo, u16), u64>,
    context: &IoContext,
) -> Result<RootFacts> {
    let root = space.page(page, context).await?;
    let bytes = root.bytes();
    let segment =
        |at: usize| link_at(bytes, at).and_then(|no| inodes.get(&(no, u16_at(bytes, at + 4)))).copied();
    Ok(RootFacts {
        id: u64_at(bytes, INDEX_ID),
        level: u16_at(bytes, LEVEL),
        leaf_segment: segment(LEAF_SEGMENT),
        top_segment: segment(TOP_SEGMENT),
    })
}

async fn index_layout(
    space: &Tablespace,
    root: &Root,
    facts: &RootFacts,
    leaves: SegmentPages,
    top: SegmentPages,
    context: &IoContext,
) -> Result<IndexLayout> {
    let foreign =
        |no| space.corrupt(no, &format!("it is not in the segment that index {} has for it", facts.id));
    let (mut leaf, mut inner, mut off_page, mut steps) = (leaves.used, top.used, Vec::new(), None);
    if facts.level == 0 {
        // The root alone is a leaf, in the segment of the levels above.
        inner = difference(&inner, [root.page]).map_err(foreign)?;
        off_page = leaf;
        leaf = ranges([root.page]);
        steps = Some(LeafSteps::default());
    } else if let Some(tree) = &root.tree {
        let mut pages = tree.leaves(&KeyRange::all(), context).await?.pages;
        steps = Some(LeafSteps::along(&pages));
        pages.sort_unstable();
        off_page = difference(&leaf, pages.iter().copied()).map_err(foreign)?;
        leaf = ranges(pages);
    }
    Ok(IndexLayout {
        index: root.index,
        name: root.name.clone(),
        id: facts.id,
        clustered: root.index == Some(IndexNo(0)),
        root: root.page,
        height: u32::from(facts.level) + 1,
        leaf,
        inner,
        off_page,
        reserved: sorted([leaves.reserved, top.reserved].concat()),
        steps,
    })
}

/// Ranges in ascending order, neighbours as one.
pub(super) fn sorted(mut ranges: Vec<PageRange>) -> Vec<PageRange> {
    ranges.sort_unstable_by_key(|range| range.first);
    let mut joined = Vec::with_capacity(ranges.len());
    ranges.into_iter().for_each(|range| push_range(&mut joined, range));
    joined
}
