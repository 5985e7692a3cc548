//! What a scan of files touches: the column chunks of the row groups that it reads.

use std::path::PathBuf;
use std::sync::Arc;

use tanada_placement::{Extent, Pattern};

use super::FileScanExec;
use super::format::Content;
use super::parquet::ParquetFile;
use crate::placement::{FilePlaces, IndexPlaces, TablePlaces};
use crate::relation::FileFootprint;

/// Bytes of a read, about.
const PAGE_BYTES: u32 = 1 << 20;

impl FileScanExec {
    /// What is going to be read of each column in each file, for as many rows as are wanted.
    pub(crate) fn footprints(&self, stage: u32, wanted: Option<f64>) -> Vec<FileFootprint> {
        let mut rows = 0.0;
        let mut found: Vec<FileFootprint> = Vec::new();
        for piece in self.pieces() {
            if wanted.is_some_and(|wanted| rows >= wanted) {
                break;
            }
            rows += piece.rows.unwrap_or(0) as f64;
            let Some(file) = self.table().files.get(piece.file) else { continue };
            let Content::Parquet(parquet) = &file.content else { continue };
            let path = PathBuf::from(self.store().path_of(&file.name));
            for column in self.projection() {
                let name = self.table().fields().field(*column).name();
                let extents = chunks(parquet, piece.group, name);
                let index = format!("{}.{name}", self.table().name);
                match found.iter_mut().find(|known| known.path == path && known.index == index) {
                    Some(known) => known.extents.extend(extents),
                    None => found.push(FileFootprint {
                        path: path.clone(),
                        index,
                        columns: vec![name.clone()],
                        extents,
                        pattern: Pattern::SequentialScan,
                        pages: 0,
                        page_bytes: PAGE_BYTES,
                        stage,
                    }),
                }
            }
        }
        for footprint in &mut found {
            footprint.pages = pages(&footprint.extents);
        }
        found.retain(|footprint| !footprint.extents.is_empty());
        found
    }

    /// Where the columns of its files lie.
    pub(crate) fn places(&self) -> TablePlaces {
        let files = self.table().files.iter().filter_map(|file| {
            let Content::Parquet(parquet) = &file.content else { return None };
            let groups = parquet.metadata().num_row_groups();
            let indexes = self.table().fields().fields().iter().map(|field| {
                let extents: Vec<Extent> =
                    (0..groups).flat_map(|group| chunks(parquet, group, field.name())).collect();
                let name = format!("{}.{}", self.table().name, field.name());
                IndexPlaces { index: None, name, pages: pages(&extents), extents, upper_pages: 0 }
            });
            Some(FilePlaces {
                path: PathBuf::from(self.store().path_of(&file.name)),
                bytes: file.identity.bytes,
                page_bytes: PAGE_BYTES,
                indexes: indexes.collect(),
            })
        });
        Arc::new(files.collect())
    }
}

/// The chunks of a column in a row group.
fn chunks(file: &ParquetFile, group: usize, column: &str) -> Vec<Extent> {
    let Some(position) = file.schema().fields().iter().position(|field| field.name() == column) else {
        return Vec::new();
    };
    let places = file.chunks(group, &[position]).into_iter();
    places.map(|place| Extent { offset: place.start, len: place.end - place.start }).collect()
}

fn pages(extents: &[Extent]) -> u64 {
    extents.iter().map(|extent| extent.len.div_ceil(u64::from(PAGE_BYTES))).sum()
}
