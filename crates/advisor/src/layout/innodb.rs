//! InnoDB: the extents of an index's segments, from the tablespaces in a data directory.
//!
//! A dozen pages of a table are read, however large it is, of a server that may be running: what it has not written yet
//! is not seen, which moves the border of an index by some pages at most. Which partitions there are, and where, says
//! what files are there. A table whose pages the server has not written at all is said to be all of its files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tanada_innodb::{Catalog, Environment, MountOptions, PageCache, PageRange, PageSize, SpaceSegments};
use tanada_io::{Executors, Gate, GateLimits, IoContext, Method};
use tanada_placement::Extent;

use crate::{Error, ErrorKind, FileLayout, IndexPlaces, Result};

/// Bytes of a page where no page can be read.
const DEFAULT_PAGE_BYTES: u64 = 16 << 10;

/// Pages of a table that are kept while it is looked at.
const CACHE_BYTES: u64 = 4 << 20;

/// The layout of the tables in a data directory.
#[derive(Debug)]
pub struct InnodbLayout {
    data: PathBuf,
    executors: Arc<Executors>,
}

impl InnodbLayout {
    /// Of the tables in the data directory `data`; files are read on `executors`.
    pub fn new(data: &Path, executors: Arc<Executors>) -> InnodbLayout {
        InnodbLayout { data: data.to_owned(), executors }
    }
}

impl FileLayout for InnodbLayout {
    fn places<'a>(
        &'a mut self,
        database: &'a str,
        table: &'a str,
    ) -> BoxFuture<'a, Result<Vec<IndexPlaces>>> {
        let (data, executors) = (self.data.clone(), self.executors.clone());
        let (folder, name) = (self.data.join(database), table.to_owned());
        let (database, table) = (database.to_owned(), table.to_owned());
        let read = self.executors.spawn(move || async move {
            // A new cache each time: the server goes on writing.
            let cache = PageCache::new(CACHE_BYTES);
            let environment = Arc::new(Environment::new(executors, cache, Method::Buffered, true));
            let options = MountOptions { allow_stale: true, ..MountOptions::default() };
            let catalog = Catalog::open(&data, &options, &environment).await?;
            let context = IoContext::new(Gate::new(GateLimits::default()));
            catalog.table(&database, &table).await?.segments(&context).await
        });
        async move {
            let failed = |error: String| Error::new(ErrorKind::Io, error);
            match read.await.map_err(|error| failed(error.to_string()))? {
                Ok(spaces) => Ok(spaces.iter().flat_map(places_of).collect()),
                // The server has not written its pages yet, or is just changing them.
                Err(error) => match whole_files(&folder, &name) {
                    files if files.is_empty() => Err(failed(error.to_string())),
                    files => Ok(files),
                },
            }
        }
        .boxed()
    }

    fn forget(&mut self) {}
}

fn places_of(space: &SpaceSegments) -> Vec<IndexPlaces> {
    let partition = partition_of(&space.path);
    let places = space.indexes.iter().map(|index| {
        let mut pages = [index.leaves.as_slice(), index.upper.as_slice()].concat();
        pages.sort_unstable_by_key(|range| range.first);
        IndexPlaces {
            file: space.path.clone(),
            name: index.name.clone(),
            has_rows: index.index.is_some_and(|index| index.0 == 0),
            partition: partition.clone(),
            extents: extents(&pages, space.page_size),
            leaf_pages: PageRange::count(&index.leaves),
            page_bytes: space.page_size.0,
        }
    });
    places.collect()
}

/// The files of a table, each as if the rows were all that is in it.
fn whole_files(folder: &Path, table: &str) -> Vec<IndexPlaces> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(std::result::Result::ok);
    let places = entries.filter_map(|entry| {
        let file = entry.path();
        let stem = file.file_stem()?.to_str()?.to_lowercase();
        let is_its =
            stem == table.to_lowercase() || stem.starts_with(&format!("{}#p#", table.to_lowercase()));
        let bytes = entry.metadata().ok()?.len();
        (is_its && file.extension()? == "ibd" && bytes > 0).then(|| IndexPlaces {
            name: String::new(),
            has_rows: true,
            partition: partition_of(&file),
            extents: vec![Extent { offset: 0, len: bytes }],
            leaf_pages: bytes / DEFAULT_PAGE_BYTES,
            page_bytes: DEFAULT_PAGE_BYTES as u32,
            file,
        })
    });
    places.collect()
}

/// The partition whose file it is: `t#P#p0.ibd`, `t#p#p0#sp#p0s1.ibd`.
fn partition_of(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?.to_lowercase();
    let (_, partition) = name.split_once("#p#")?;
    Some(partition.replace("#sp#", "_"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_known_by_their_files() {
        let of = |name: &str| partition_of(Path::new(name));
        assert_eq!(of("shop/event#P#p2024.ibd").as_deref(), Some("p2024"));
        assert_eq!(of("shop/event#p#p2024#sp#p2024s1.ibd").as_deref(), Some("p2024_p2024s1"));
        assert_eq!(of("shop/event.ibd"), None);
    }
}
