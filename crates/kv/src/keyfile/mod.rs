//! Key files: the keys and versions of a kvset, in order, with an index, a filter and range tombstones.
//!
//! - [`page`], [`payload`]: what a page looks like, and how it is searched; [`builder`] fills one;
//! - [`filter`]: which keys a file surely does not have;
//! - [`footer`]: where everything is; [`info`]: what is known without opening the file;
//! - [`writer`], [`reader`], [`cursor`]: from the first key to the last; one key; from key to key;
//! - [`damage`]: what is wrong where no cursor comes by.
//!
//! Every byte is under a checksum, but for what fills the last blocks; what does not fit is an error with object and
//! offset.

mod builder;
mod cursor;
mod damage;
mod filter;
mod footer;
mod hash;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod hostile;
mod info;
mod page;
mod payload;
mod prefix;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use cursor::{Access, KeyCursor};
pub(crate) use filter::FilterPart;
#[cfg(test)]
pub(crate) use footer::FORMAT;
pub(crate) use hash::KeyHash;
pub(crate) use info::KeyFileInfo;
#[cfg(test)]
pub(crate) use info::SegmentReferences;
pub(crate) use page::{Page, PageAddress};
pub(crate) use reader::{KeyFile, read_blocks, read_needed};
pub(crate) use writer::{KeyFileOptions, KeyFileWriter};
