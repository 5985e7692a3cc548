//! The space of all spills of a session: where it is, how much of it may be used, and how much is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::Result as DataFusionResult;
use datafusion::execution::{SpillFile, TempFileFactory};
use parking_lot::RwLock;
use tanada_base::ByteSize;
use tanada_io::Executors;

use super::file::{File, Shared};
use super::{BLOCK_BYTES, Place};
use crate::{Error, ErrorKind, Result};

/// Where no limit is set, spills take at most this part of what is free.
const FREE_SHARE: (u64, u64) = (9, 10);
/// Blocks read ahead take at most this part of the memory of operators.
const READ_AHEAD_SHARE: u64 = 8;

/// Makes the spill files of a session, and bounds them.
pub(crate) struct SpillSpace {
    executors: Arc<Executors>,
    settings: RwLock<Settings>,
    usage: Arc<Usage>,
}

struct Settings {
    place: Place,
    /// 0 is a part of what is free.
    limit_bytes: u64,
}

/// What is in use, for all files of a space.
#[derive(Debug)]
pub(super) struct Usage {
    /// Bytes of blocks that are written or about to be.
    used: AtomicU64,
    /// The most that there were at once.
    peak: AtomicU64,
    /// Bytes that may be used at the last file's making.
    limit: AtomicU64,
    /// Blocks that readers of all files may still read ahead.
    ahead: AtomicU64,
}

impl SpillSpace {
    /// Spills to `place`, with the memory that operators have.
    pub(crate) fn new(executors: Arc<Executors>, place: Place, memory_bytes: u64) -> SpillSpace {
        let usage = Usage {
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            ahead: AtomicU64::new(memory_bytes / READ_AHEAD_SHARE / BLOCK_BYTES as u64),
        };
        let settings = RwLock::new(Settings { place, limit_bytes: 0 });
        SpillSpace { executors, settings, usage: Arc::new(usage) }
    }

    /// New files are made there from now on; the place before.
    pub(crate) fn set_place(&self, place: Place) -> Place {
        std::mem::replace(&mut self.settings.write().place, place)
    }

    /// Spills take at most this many bytes at once; 0 is nine tenths of what is free.
    pub(crate) fn set_limit(&self, limit_bytes: u64) {
        self.settings.write().limit_bytes = limit_bytes;
    }

    /// Bytes in use now.
    #[cfg(test)]
    pub(crate) fn used_bytes(&self) -> u64 {
        self.usage.used.load(Ordering::SeqCst)
    }

    /// The most bytes that were in use at once.
    #[cfg(test)]
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.usage.peak.load(Ordering::SeqCst)
    }

    fn create(&self) -> Result<File> {
        let (place, limit_bytes) = {
            let settings = self.settings.read();
            (settings.place.clone(), settings.limit_bytes)
        };
        let limit = match limit_bytes {
            0 => {
                let free = place.free_bytes()?.saturating_add(self.usage.used.load(Ordering::SeqCst));
                free / FREE_SHARE.1 * FREE_SHARE.0
            }
            limit => limit,
        };
        self.usage.limit.store(limit, Ordering::SeqCst);
        let storage = place.create(&self.executors)?;
        let shared =
            Shared::new(storage, place.to_string(), Arc::clone(&self.executors), Arc::clone(&self.usage));
        Ok(File::new(shared))
    }
}

impl TempFileFactory for SpillSpace {
    fn create_temp_file(&self, _description: &str) -> DataFusionResult<Arc<dyn SpillFile>> {
        Ok(Arc::new(self.create()?))
    }
}

impl fmt::Debug for SpillSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillSpace").field("usage", &self.usage).finish_non_exhaustive()
    }
}

impl Usage {
    /// Takes the space of a block.
    ///
    /// # Errors
    /// If all spills together would have more than they may.
    pub(super) fn take_block(&self, place: &str) -> Result<()> {
        let block = BLOCK_BYTES as u64;
        let used = self.used.fetch_add(block, Ordering::SeqCst) + block;
        let limit = self.limit.load(Ordering::SeqCst);
        if used > limit {
            self.used.fetch_sub(block, Ordering::SeqCst);
            let message = format!(
                "spills would take more than the {} that they may in {place}: give the query more memory, or set \
                 tanada.spill_bytes or tanada.spill",
                ByteSize::new(limit)
            );
            return Err(Error::new(ErrorKind::Resources, message));
        }
        self.peak.fetch_max(used, Ordering::SeqCst);
        Ok(())
    }

    /// Gives the space of `blocks` back.
    pub(super) fn give_blocks(&self, blocks: usize) {
        self.used.fetch_sub((blocks * BLOCK_BYTES) as u64, Ordering::SeqCst);
    }

    /// Whether a reader may read one more block ahead; it gives it back later.
    pub(super) fn take_ahead(&self) -> bool {
        self.ahead.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    pub(super) fn give_ahead(&self) {
        self.ahead.fetch_add(1, Ordering::SeqCst);
    }
}
