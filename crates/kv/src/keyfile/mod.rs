//! Key files: the keys and versions of a kvset, in order, with an index, a filter, and range tombstones.

mod info;

pub(crate) use info::{KeyFileInfo, SegmentReferences};
