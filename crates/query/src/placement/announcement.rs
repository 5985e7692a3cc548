//! A query as it is announced before it begins: its statement, and what its plan is going to read where.

use tanada_placement::{Access, Cause, Fingerprint, Footprint, ObjectNo, QueryId};

use super::places::TablePlaces;
use crate::relation::FileFootprint;

/// What watchers of queries are told of one that is about to begin.
#[derive(Debug)]
pub(crate) struct Announcement {
    pub(crate) query: QueryId,
    /// For people: the beginning of the statement.
    pub(crate) name: String,
    pub(crate) fingerprint: Fingerprint,
    /// I/Os that it keeps in flight.
    pub(crate) depth: u32,
    pub(crate) accesses: Vec<FileFootprint>,
    /// All tables that it reads.
    pub(crate) tables: Vec<TablePlaces>,
}

impl Announcement {
    /// The footprint of what lies in objects that `names` knows.
    pub(crate) fn footprint(
        &self,
        mut names: impl FnMut(&FileFootprint) -> Option<(ObjectNo, Cause)>,
    ) -> Footprint {
        let accesses = self.accesses.iter().filter_map(|access| {
            let (object, cause) = names(access)?;
            Some(Access {
                object,
                cause,
                extents: access.extents.clone(),
                pattern: access.pattern,
                expected_pages: access.pages,
                earlier_pages: None,
                page_bytes: access.page_bytes,
                stage: access.stage,
            })
        });
        Footprint { accesses: accesses.collect() }
    }
}
