//! Page transforms: what happens to a page between its writer and the blocks that it takes up.
//!
//! 1. Writing: page -> compression -> encryption -> a shorter image in whole blocks ([`chain`]).
//! 2. Reading: the inverse, after the image has been verified ([`header`]).
//! 3. A page that saves less than one block is stored as it is. If it is to be encrypted it keeps its length.
//!
//! Each transform is a [`PageTransform`]: compression ([`codec`]) and encryption ([`xts`]). Keys come from outside
//! ([`keys`]). The algorithm and the key are those of the page, not of its object: both can change, and older pages
//! stay readable.
//!
//! Nothing here does I/O or knows where pages are stored.

mod chain;
mod codec;
mod form;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod header;
mod keys;
mod settings;
mod xts;

use std::fmt;

pub use chain::{Chain, Sealed, open};
pub use form::{Algorithm, Form};
pub use keys::{KEY_FILE_VARIABLE, KEYS_VARIABLE, KeyRing};
pub use settings::{
    Compression, DEFAULT_PAGE_BYTES, LARGEST_PAGE_BYTES, SMALLEST_PAGE_BYTES, check_page_bytes,
};
pub use xts::KEY_BYTES;

use crate::Result;

/// Which page it is: a page is bound to its place, so that another page's image is never taken for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageId {
    /// The number of the object.
    pub object: u64,
    /// The number of the page in the object.
    pub page: u64,
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page {} of object number {}", self.page, self.object)
    }
}

/// One step between a page and its stored image.
pub trait PageTransform: Send + Sync + fmt::Debug {
    /// Transforms `input` and replaces the contents of `output` by the result; `false` if the result would exceed
    /// `limit` bytes, so that the step is left out.
    ///
    /// # Errors
    /// If the library refuses its settings.
    fn forward(&self, page: PageId, input: &[u8], output: &mut Vec<u8>, limit: usize) -> Result<bool>;

    /// Undoes [`forward`](Self::forward): fills `output` from `input`.
    ///
    /// # Errors
    /// `Corrupted` if `input` is not what `forward` made of a page of `output.len()` bytes.
    fn inverse(&self, page: PageId, input: &[u8], output: &mut [u8]) -> Result<()>;
}
