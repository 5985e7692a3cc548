//! Objects: named, growable sequences of bytes.
//!
//! - [`read`]: reads, without locks held and without tasks; [`reader`]: bytes at any offset;
//! - [`write`]: aligned writes to mapped chunks go the same way; first writes and unaligned ones take more steps;
//! - [`mirror`]: what is written has no mirror any more;
//! - [`sync`]: what was written becomes durable, then the metadata that lead to it;
//! - [`resize`]: growing, truncating, punching;
//! - [`backend`]: an object as an ordinary device.
//!
//! Invariants:
//! - bytes at or behind an object's end are zeros on the device, or `tail_is_stale` is set: then they are made so
//!   before it grows;
//! - a chunk's home changes only under an exclusive hold on it and under the journal's lock;
//! - a fresh chunk's home is not in the metadata; its data (and the zeros around them) are on the device before it is
//!   in `fresh`.

mod backend;
mod gather;
mod information;
mod mirror;
pub(crate) mod read;
mod reader;
mod resize;
mod sync;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use tanada_io::{Buffer, Device};

pub use backend::ObjectBackend;
pub use information::ChunkInfo;

use crate::adopted::AdoptedFile;
use crate::chunk::table::ChunkTable;
use crate::metadata::{AttributeRecord, FileAttributes};
use crate::page::Pages;
use crate::statistics::{Counters, Streams};
use crate::transform::Compression;
use crate::volume::Core;
use crate::waiting::Holds;
use crate::{Error, ErrorKind, Result};

/// Chunks that the metadata do not know of yet.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    /// By chunk: a number that no other entry ever had.
    pub(crate) entries: BTreeMap<u64, u64>,
    pub(crate) next: u64,
}

/// What all handles of an object share.
pub(crate) struct ObjectState {
    pub(crate) id: u64,
    pub(crate) name: RwLock<String>,
    pub(crate) adopted: Option<AdoptedFile>,
    pub(crate) size: AtomicU64,
    /// The size in the last record. Changed under the journal's lock.
    pub(crate) journaled_size: AtomicU64,
    pub(crate) tail_is_stale: AtomicBool,
    pub(crate) table: RwLock<ChunkTable>,
    pub(crate) holds: Arc<Holds>,
    /// One sync at a time: a hold on it is a turn.
    pub(crate) sync_turns: Arc<Holds>,
    pub(crate) fresh: Mutex<Fresh>,
    /// The last change that dropped a mirror, as long as that may not be durable, else 0. Homes change only after it
    /// is: otherwise a stop could bring back a mirror that differs from its home.
    pub(crate) dropped_mirrors: AtomicU64,
    /// A mirror was found damaged.
    pub(crate) has_distrusted: AtomicBool,
    /// Classes with writes that no sync has covered yet, a bit each.
    pub(crate) dirty_classes: AtomicU64,
    pub(crate) attributes: Mutex<AttributeRecord>,
    /// What a file system keeps of it.
    pub(crate) file: Mutex<Option<FileAttributes>>,
    /// Chunks that have a home.
    pub(crate) chunks: AtomicU64,
    pub(crate) counters: Counters,
    pub(crate) streams: Streams,
    pub(crate) is_deleted: AtomicBool,
    /// Its pages, if it has a transform, or had one: set once, under the journal's lock. The chunks, the size and the
    /// tail above are those of the stored space then.
    pub(crate) pages: OnceLock<Arc<Pages>>,
    poisoned: Mutex<Option<Error>>,
    is_poisoned: AtomicBool,
}

impl fmt::Debug for ObjectState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectState").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

impl ObjectState {
    pub(crate) fn new(id: u64, name: String, adopted: Option<AdoptedFile>) -> ObjectState {
        ObjectState {
            id,
            name: RwLock::new(name),
            adopted,
            size: AtomicU64::new(0),
            journaled_size: AtomicU64::new(0),
            tail_is_stale: AtomicBool::new(false),
            table: RwLock::default(),
            holds: Arc::default(),
            sync_turns: Arc::default(),
            fresh: Mutex::default(),
            dropped_mirrors: AtomicU64::new(0),
            has_distrusted: AtomicBool::new(false),
            dirty_classes: AtomicU64::new(0),
            attributes: Mutex::default(),
            file: Mutex::default(),
            chunks: AtomicU64::new(0),
            counters: Counters::default(),
            streams: Streams::default(),
            is_deleted: AtomicBool::new(false),
            pages: OnceLock::new(),
            poisoned: Mutex::new(None),
            is_poisoned: AtomicBool::new(false),
        }
    }

    /// The size now.
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::SeqCst)
    }

    /// No write or sync of this object succeeds any more.
    pub(crate) fn poison(&self, why: &Error) {
        let mut poisoned = self.poisoned.lock();
        if poisoned.is_none() {
            let message = format!(
                "object {:?} takes no more writes, because an earlier write or sync failed ({why}): open the volume anew",
                self.name.read()
            );
            *poisoned = Some(Error::new(ErrorKind::Poisoned, message));
        }
        self.is_poisoned.store(true, Ordering::SeqCst);
    }

    pub(crate) fn check_not_poisoned(&self) -> Result<()> {
        if self.is_poisoned.load(Ordering::SeqCst)
            && let Some(error) = &*self.poisoned.lock()
        {
            return Err(error.clone());
        }
        Ok(())
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::SeqCst)
    }

    pub(crate) fn check_there(&self) -> Result<()> {
        if self.is_deleted.load(Ordering::SeqCst) {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("object {:?} was deleted", self.name.read()),
            ));
        }
        Ok(())
    }
}

/// What a user may say about an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    /// The class where new chunks go if there is room; by default the slowest.
    pub class: Option<String>,
    /// The class where chunks have to lie: new ones go nowhere else, and none is moved or mirrored away.
    pub pin: Option<String>,
    /// Most bytes of chunks that the object may take up, mirrors not counted.
    pub quota_bytes: Option<u64>,
    /// How new pages are compressed.
    pub compression: Compression,
    /// Bytes of a page: a power of two from 4 to 64 KiB, by default 16 KiB. It is fixed when the object gets its first
    /// transform; said of an object without one it gives it pages.
    pub page_bytes: Option<u32>,
    /// The identifier of the key under which new pages are encrypted, with AES-256 in XTS mode.
    pub encryption: Option<u16>,
}

/// A handle of an object. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Object {
    pub(crate) core: Arc<Core>,
    pub(crate) state: Arc<ObjectState>,
}

impl Object {
    /// Its name now.
    pub fn name(&self) -> String {
        self.state.name.read().clone()
    }

    /// Its number: the same as long as it is there, and never given again.
    pub fn id(&self) -> u64 {
        self.state.id
    }

    /// Its size in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.state.pages.get().map_or_else(|| self.state.size(), |pages| pages.size())
    }

    /// Bytes of the chunks that it takes up, mirrors not counted.
    pub fn allocated_bytes(&self) -> u64 {
        self.state.chunks.load(Ordering::SeqCst) * self.core.chunk_bytes
    }

    /// Whether it is a file that was adopted.
    pub fn is_adopted(&self) -> bool {
        self.state.adopted.is_some()
    }

    /// The object as a device: for layers that know nothing of volumes. Offsets and lengths are multiples of
    /// [`crate::BLOCK_BYTES`].
    pub fn device(&self) -> Device {
        Device::from_backend(self.backend())
    }

    /// What stands behind [`device`](Self::device).
    pub fn backend(&self) -> ObjectBackend {
        ObjectBackend::new(self.core.clone(), self.state.clone())
    }

    /// Reads `len` bytes at `offset`, fewer if the object ends before.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_bytes(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let left = self.size_bytes().saturating_sub(offset);
        let len = len.min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer: Buffer = self.core.buffers.allocate(len);
        Ok(self.read(offset, buffer).await?.to_vec())
    }

    /// Writes the buffer at `offset`, where nothing was written before, but for its blocks of zeros: those stay holes.
    /// Offset and length as for [`write`](Self::write); what is not on a boundary of blocks is written as a whole.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn write_sparse(&self, offset: u64, buffer: Buffer) -> Result<()> {
        let block = crate::BLOCK_BYTES as usize;
        let is_data = |block: &[u8]| block.iter().any(|byte| *byte != 0);
        // Pages of zeros become holes by themselves.
        let has_pages = self.state.pages.get().is_some();
        if has_pages || !offset.is_multiple_of(crate::BLOCK_BYTES) || buffer.chunks(block).all(is_data) {
            return self.write(offset, buffer).await.map(drop);
        }
        let mut at = 0;
        while at < buffer.len() {
            let data = buffer[at..].chunks(block).take_while(|block| is_data(block)).map(<[u8]>::len);
            let len = data.sum::<usize>();
            if len > 0 {
                self.write_bytes(offset + at as u64, &buffer[at..at + len]).await?;
            }
            // What follows is a block of zeros, or the end.
            at += len + block;
        }
        Ok(())
    }

    /// Writes `bytes` at `offset`; as [`write`](Self::write).
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub async fn write_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut buffer = self.core.buffers.allocate(bytes.len());
        buffer.copy_from_slice(bytes);
        self.write(offset, buffer).await.map(drop)
    }
}
