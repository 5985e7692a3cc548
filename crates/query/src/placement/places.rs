//! Where indexes lie: which bytes of which files each index of a table has.

use std::path::PathBuf;
use std::sync::Arc;

use tanada_innodb::{IndexNo, PageRange, PageSize, SpaceSegments};
use tanada_placement::Extent;

/// A file of a table, and who has which of its bytes.
#[derive(Debug)]
pub(crate) struct FilePlaces {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) page_bytes: u32,
    pub(crate) indexes: Vec<IndexPlaces>,
}

/// The bytes of an index in one file.
#[derive(Debug)]
pub(crate) struct IndexPlaces {
    pub(crate) index: Option<IndexNo>,
    /// `table.index`.
    pub(crate) name: String,
    /// Ascending.
    pub(crate) extents: Vec<Extent>,
    /// Pages in use,
    pub(crate) pages: u64,
    /// and those of them that are nodes above the leaves.
    pub(crate) upper_pages: u64,
}

/// The places of one table: a file for each partition.
pub(crate) type TablePlaces = Arc<Vec<FilePlaces>>;

/// Where the indexes of a table lie, by its spaces.
pub(crate) fn places_of(table: &str, spaces: &[SpaceSegments]) -> TablePlaces {
    Arc::new(spaces.iter().map(|space| file_places(table, space)).collect())
}

fn file_places(table: &str, space: &SpaceSegments) -> FilePlaces {
    let indexes = space.indexes.iter().map(|index| {
        let mut pages = [index.leaves.as_slice(), index.upper.as_slice()].concat();
        pages.sort_unstable_by_key(|range| range.first);
        IndexPlaces {
            index: index.index,
            name: format!("{table}.{}", index.name),
            extents: extents(&pages, space.page_size),
            pages: PageRange::count(&pages),
            upper_pages: PageRange::count(&index.upper),
        }
    });
    FilePlaces {
        path: space.path.clone(),
        bytes: u64::from(space.pages) * u64::from(space.page_size.0),
        page_bytes: space.page_size.0,
        indexes: indexes.collect(),
    }
}

/// Ascending ranges of pages as bytes, neighbours as one.
fn extents(pages: &[PageRange], page_size: PageSize) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::with_capacity(pages.len());
    for range in pages {
        let (offset, len) = range.bytes(page_size);
        match extents.last_mut() {
            Some(last) if last.offset + last.len == offset => last.len += len,
            _ => extents.push(Extent { offset, len }),
        }
    }
    extents
}
