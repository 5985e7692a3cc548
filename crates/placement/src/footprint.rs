//! What a query is going to read, as its plan tells before it begins.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::layout::{Layout, ObjectNo};

/// Stands for a query text with its literals left out: the same for each run of the same statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub u64);

/// One running query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueryId(pub u32);

/// What made an I/O: an index, a relation without one, a temporary file. 0 is what is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Cause(pub u16);

/// A run of an object's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Where it begins.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// How an access reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pattern {
    /// All of it, in the order in which it lies.
    SequentialScan,
    /// Pages anywhere in it, so many times.
    RandomLookUps {
        /// Look-ups expected, those that the page cache serves included.
        expected: u64,
    },
    /// A range of an index, leaf by leaf: one behind the other where the index is not fragmented.
    IndexRange,
}

/// One access of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The object that is read.
    pub object: ObjectNo,
    /// The index, as I/Os will name it.
    pub cause: Cause,
    /// Where the index lies in the object.
    pub extents: Vec<Extent>,
    /// How it is read.
    pub pattern: Pattern,
    /// Page reads expected to reach the volume.
    pub expected_pages: u64,
    /// What earlier runs of the statement have read of it, times what this plan expects over what theirs did; `None`
    /// where there were none.
    #[serde(default)]
    pub earlier_pages: Option<u64>,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// When in the query it begins to be read: 0 first. Accesses of the same stage run at once.
    pub stage: u32,
}

impl Access {
    /// The chunks that it touches.
    pub fn chunks(&self, layout: &Layout) -> Vec<Range<u32>> {
        self.extents.iter().flat_map(|extent| layout.range(self.object, extent.offset, extent.len)).collect()
    }

    /// Page reads that are likely: by what was read before, else by the plan.
    pub fn likely_pages(&self) -> u64 {
        self.earlier_pages.unwrap_or(self.expected_pages)
    }

    /// Whether pages are read one behind the other.
    pub fn is_sequential(&self) -> bool {
        !matches!(self.pattern, Pattern::RandomLookUps { .. })
    }
}

/// All that a query is going to read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Footprint {
    /// In no particular order.
    pub accesses: Vec<Access>,
}

impl Footprint {
    /// Page reads expected, of all accesses.
    pub fn expected_pages(&self) -> u64 {
        self.accesses.iter().fold(0, |sum, access| sum.saturating_add(access.expected_pages))
    }

    /// The stage in which `cause` is read first.
    pub fn stage_of(&self, cause: Cause) -> Option<u32> {
        self.accesses.iter().filter(|access| access.cause == cause).map(|access| access.stage).min()
    }
}
