//! What an access to a relation touches: byte ranges of files.
//!
//! 1. Where a relation's indexes lie is found out once, from a handful of pages: files do not change while they are
//!    mounted.
//! 2. An access names an index and says how it is read. Its footprint is that index's extents in each file, and a share
//!    of the expected pages.
//! 3. Values that do not fit their rows lie on pages of their own among the leaves' extents. Where columns are read
//!    that may have such, each row is expected to take its share of these pages besides.

use std::path::PathBuf;
use std::sync::Arc;

use tanada_innodb::{IndexNo, Table};
use tanada_io::{Executors, IoContext};
use tanada_placement::{Extent, Pattern};

use super::{InnodbRelation, types};
use crate::Result;
use crate::placement::{FilePlaces, IndexPlaces, TablePlaces, places_of};

/// Fewer pages than this part of the leaves may be an error of their estimate.
const LEAST_OFF_PAGE: f64 = 0.1;

/// How a plan is going to read one index of a relation.
#[derive(Debug, Clone, PartialEq)]
pub struct RelationAccess {
    /// Which.
    pub index: IndexNo,
    /// The columns that are read of it, as positions in [`InnodbRelation::schema`].
    pub columns: Vec<usize>,
    /// How it is read.
    pub pattern: Pattern,
    /// Page reads expected to reach the device.
    pub pages: f64,
    /// When it begins to be read: the side that a join hashes comes before the side that it streams.
    pub stage: u32,
}

/// What an access touches in one file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileFootprint {
    /// The file, as its mount names it.
    pub path: PathBuf,
    /// `table.index`.
    pub index: String,
    /// The columns that are read.
    pub columns: Vec<String>,
    /// The index's bytes, ascending: leaves, the nodes above them, off-page values.
    pub extents: Vec<Extent>,
    /// How they are read.
    pub pattern: Pattern,
    /// Page reads expected to reach the device.
    pub pages: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// When in the query it begins to be read: 0 first.
    pub stage: u32,
}

impl InnodbRelation {
    /// What `access` touches, by the files in which its index lies: one for each partition. Reads a handful of pages
    /// when it is first asked for.
    ///
    /// # Errors
    /// If the table's segments cannot be read.
    pub async fn footprint(
        &self,
        access: &RelationAccess,
        executors: &Executors,
        io: &IoContext,
    ) -> Result<Vec<FileFootprint>> {
        let places = self.places(executors, io).await?;
        Ok(self.footprint_in(access, &places))
    }

    /// Where its indexes lie.
    pub(crate) async fn places(&self, executors: &Executors, io: &IoContext) -> Result<TablePlaces> {
        let read = || async {
            let (table, io): (Arc<Table>, IoContext) = (Arc::clone(self.table()), io.clone());
            let spaces = executors.spawn(move || async move { table.segments(&io).await }).await??;
            Ok::<_, crate::Error>(places_of(&self.table().definition().name, &spaces))
        };
        self.places.get_or_try_init(read).await.map(Arc::clone)
    }

    /// [`footprint`](Self::footprint) in places that are known. What is expected of a partitioned index is spread over
    /// its files by their sizes.
    pub(crate) fn footprint_in(&self, access: &RelationAccess, places: &[FilePlaces]) -> Vec<FileFootprint> {
        let parts = places.iter().filter_map(|file| {
            let index = file.indexes.iter().find(|index| index.index == Some(access.index));
            index.map(|index| (file, index))
        });
        let all: u64 = parts.clone().map(|(_, index)| index.pages).sum();
        let pages = access.pages + self.off_page_reads(access, parts.clone().map(|(_, index)| index));
        let definition = self.table().definition();
        let name = |column: &usize| definition.columns.get(*column).map(|column| column.name.clone());
        let columns: Vec<String> = access.columns.iter().filter_map(name).collect();
        let part = |(file, index): (&FilePlaces, &IndexPlaces)| {
            let share = if all == 0 { 0.0 } else { index.pages as f64 / all as f64 };
            let pattern = match access.pattern {
                Pattern::RandomLookUps { expected } => {
                    Pattern::RandomLookUps { expected: (expected as f64 * share).round() as u64 }
                }
                pattern => pattern,
            };
            FileFootprint {
                path: file.path.clone(),
                index: index.name.clone(),
                columns: columns.clone(),
                extents: index.extents.clone(),
                pattern,
                pages: (pages * share).ceil() as u64,
                page_bytes: file.page_bytes,
                stage: access.stage,
            }
        };
        parts.map(part).collect()
    }

    /// Reads of off-page values that the access is expected to come to.
    fn off_page_reads<'a>(
        &self,
        access: &RelationAccess,
        places: impl Iterator<Item = &'a IndexPlaces>,
    ) -> f64 {
        let columns = &self.table().definition().columns;
        let is_large =
            |column: &usize| columns.get(*column).is_some_and(|column| types::is_large(&column.column_type));
        if access.index != IndexNo(0) || !access.columns.iter().any(is_large) {
            return 0.0;
        }
        let below: u64 = places.map(|index| index.pages.saturating_sub(index.upper_pages)).sum();
        let leaves = self.index_shape(access.index).leaf_pages.max(1.0);
        let off_page = below as f64 - leaves;
        if off_page < LEAST_OFF_PAGE * leaves {
            return 0.0;
        }
        let share = match access.pattern {
            Pattern::RandomLookUps { expected } => expected as f64 / self.statistics().rows.max(1) as f64,
            Pattern::SequentialScan | Pattern::IndexRange => access.pages / leaves,
        };
        off_page * share.min(1.0)
    }
}
