//! Where indexes lie: which bytes of which files each index of a table has.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use tanada_innodb::{IndexNo, PageRange, PageSize, SpaceSegments};
use tanada_io::{Executors, IoContext};
use tanada_placement::Extent;

use crate::Result;
use crate::relation::InnodbRelation;

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
    /// Pages in use.
    pub(crate) pages: u64,
}

/// The places of one table: a file for each partition.
pub(crate) type TablePlaces = Arc<Vec<FilePlaces>>;

/// What was found out of tables so far. Files do not change while they are mounted.
#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<HashMap<usize, (Arc<InnodbRelation>, TablePlaces)>>);

impl Places {
    /// Of a table; read when it is first asked for: a handful of pages.
    pub(crate) async fn of(
        &self,
        relation: &Arc<InnodbRelation>,
        executors: &Executors,
        io: &IoContext,
    ) -> Result<TablePlaces> {
        // The relation is kept, so its address stays its own.
        let key = Arc::as_ptr(relation) as usize;
        if let Some((_, places)) = self.0.lock().get(&key) {
            return Ok(Arc::clone(places));
        }
        let (table, io) = (Arc::clone(relation.table()), io.clone());
        let spaces = executors.spawn(move || async move { table.segments(&io).await }).await??;
        let name = &relation.table().definition().name;
        let places = Arc::new(spaces.iter().map(|space| file_places(name, space)).collect());
        self.0.lock().insert(key, (Arc::clone(relation), Arc::clone(&places)));
        Ok(places)
    }
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
