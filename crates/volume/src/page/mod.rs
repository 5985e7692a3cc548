//! Pages of objects that have a transform: each page is stored in as many blocks as its image takes, anywhere in the
//! object's stored space.
//!
//! The *stored space* of such an object is what its chunks make up: homes, mirrors, relocation and statistics know
//! nothing else. Its users see *logical* bytes. Between the two lies a map of one word a page ([`map`], [`stored`]):
//! first block, number of blocks, form.
//!
//! 1. A write takes free blocks ([`space`]), writes the images there, and switches the map in memory. The blocks of the
//!    page before stay as they are until the switch is durable and nobody reads from them any more; then they are free.
//! 2. A sync makes the data durable, then the mapping of chunks, then the words of the pages that were written before
//!    it ([`state`]).
//! 3. So a page is never torn: after a stop it is what a write made of it as a whole. That holds for the whole page
//!    that a write touches in part.
//! 4. A chunk of the stored space in which no block is taken goes back to its class.
//! 5. With cleaners a write ends when its pages are in memory ([`dirty`]); cleaners do the rest of 1, and a sync waits
//!    until all pages are stored that were written before it ([`clean`]).
//!
//! Invariants, kept under the lock of [`state::PageState`]:
//! - a block of the stored space is free, or of one page (its word in memory, in the metadata, or noted by a sync), or
//!   retired;
//! - pages of the metadata lie below the logical size that the metadata have, and in chunks that they know;
//! - bytes of the last page behind the logical end are zeros, or `tail_is_stale` is set: then they are made so before
//!   the object grows.
//!
//! Locks: the journal's before that of a page state, that before an object's table.

pub(crate) mod alter;
mod clean;
mod cleaning;
mod dirty;
mod information;
pub(crate) mod map;
mod optimize;
mod read;
pub(crate) mod recovered;
mod resize;
mod space;
mod state;
mod stored;
pub(crate) mod sync;
mod write;

use std::num::NonZeroU16;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use parking_lot::Mutex;

pub(crate) use alter::Wanted;
pub(crate) use cleaning::Cleaning;
pub use information::PageStatistics;
pub use optimize::{OptimizeProgress, Optimized};
pub(crate) use state::PageState;
pub(crate) use stored::Stored;
pub(crate) use sync::NotedPages;

use crate::Result;
use crate::transform::Compression;
use crate::waiting::Holds;

/// What is done to the pages of an object, on the heap: a plain object shall not carry it in its futures.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// What is done to new pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PageSettings {
    pub(crate) compression: Compression,
    /// The identifier of the key, if they are encrypted.
    pub(crate) key: Option<NonZeroU16>,
}

/// What an object with a transform has besides its chunks.
#[derive(Debug)]
pub(crate) struct Pages {
    /// The size of a page as a power of two.
    pub(crate) shift: u32,
    /// The logical size.
    size: AtomicU64,
    tail_is_stale: AtomicBool,
    /// Who may change which pages.
    holds: Arc<Holds>,
    pub(crate) settings: Mutex<PageSettings>,
    pub(crate) state: Mutex<PageState>,
    /// It waits for a cleaner.
    is_queued: AtomicBool,
    /// A cleaner found no space: pages are stored by who writes them, until a sync has stored all that wait.
    is_full: AtomicBool,
    /// Woken when pages were stored by somebody, or are not going to be.
    stored: Mutex<Vec<Waker>>,
}

impl Pages {
    pub(crate) fn new(shift: u32, size: u64, settings: PageSettings, state: PageState) -> Pages {
        Pages {
            shift,
            size: AtomicU64::new(size),
            // A write that was under way may have gone behind the end, or a truncation has left something there.
            tail_is_stale: AtomicBool::new(!size.is_multiple_of(1 << shift)),
            holds: Arc::default(),
            settings: Mutex::new(settings),
            state: Mutex::new(state),
            is_queued: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            stored: Mutex::default(),
        }
    }

    /// The logical size now.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::SeqCst)
    }

    /// Bytes of a page.
    pub(crate) fn page_bytes(&self) -> u64 {
        1 << self.shift
    }

    /// Pages up to the one in which byte `size` would be the first behind the end.
    fn pages_below(&self, size: u64) -> u64 {
        size.div_ceil(self.page_bytes())
    }

    /// Whether something was written or cut that no sync has covered.
    pub(crate) fn has_unsynced(&self) -> bool {
        let state = self.state.lock();
        state.has_fresh() || !state.dirty.is_empty() || state.journaled_size != self.size()
    }
}
