//! A query as it is announced before it begins: its statement, and what its plan is going to read where.

use std::path::PathBuf;

use tanada_placement::{Access, Cause, Extent, Fingerprint, Footprint, ObjectNo, Pattern, QueryId};

use super::accesses::IndexAccess;
use super::places::{FilePlaces, TablePlaces};

/// What watchers of queries are told of one that is about to begin.
#[derive(Debug)]
pub(crate) struct Announcement {
    pub(crate) query: QueryId,
    /// For people: the beginning of the statement.
    pub(crate) name: String,
    pub(crate) fingerprint: Fingerprint,
    /// I/Os that it keeps in flight.
    pub(crate) depth: u32,
    pub(crate) accesses: Vec<FileAccess>,
    /// All tables that it reads.
    pub(crate) tables: Vec<TablePlaces>,
}

/// What it reads of one index in one file.
#[derive(Debug, Clone)]
pub(crate) struct FileAccess {
    pub(crate) path: PathBuf,
    /// `table.index`.
    pub(crate) index: String,
    pub(crate) extents: Vec<Extent>,
    pub(crate) pattern: Pattern,
    pub(crate) pages: u64,
    pub(crate) page_bytes: u32,
    pub(crate) stage: u32,
}

impl FileAccess {
    /// An access to an index by the files in which the index lies; a partitioned one is spread over them by their sizes.
    pub(crate) fn of(access: &IndexAccess, places: &[FilePlaces]) -> Vec<FileAccess> {
        let parts = places.iter().filter_map(|file| {
            let index = file.indexes.iter().find(|index| index.index == Some(access.index));
            index.map(|index| (file, index))
        });
        let all: u64 = parts.clone().map(|(_, index)| index.pages).sum();
        let part = |(file, index): (&FilePlaces, &super::places::IndexPlaces)| {
            let share = if all == 0 { 0.0 } else { index.pages as f64 / all as f64 };
            let pattern = match access.pattern {
                Pattern::RandomLookUps { expected } => {
                    Pattern::RandomLookUps { expected: (expected as f64 * share).round() as u64 }
                }
                pattern => pattern,
            };
            FileAccess {
                path: file.path.clone(),
                index: index.name.clone(),
                extents: index.extents.clone(),
                pattern,
                pages: (access.pages * share).ceil() as u64,
                page_bytes: file.page_bytes,
                stage: access.stage,
            }
        };
        parts.map(part).collect()
    }
}

impl Announcement {
    /// The footprint of what lies in objects that `names` knows.
    pub(crate) fn footprint(
        &self,
        mut names: impl FnMut(&FileAccess) -> Option<(ObjectNo, Cause)>,
    ) -> Footprint {
        let accesses = self.accesses.iter().filter_map(|access| {
            let (object, cause) = names(access)?;
            Some(Access {
                object,
                cause,
                extents: access.extents.clone(),
                pattern: access.pattern,
                expected_pages: access.pages,
                page_bytes: access.page_bytes,
                stage: access.stage,
            })
        });
        Footprint { accesses: accesses.collect() }
    }
}
