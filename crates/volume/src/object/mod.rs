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
pub(crate) mod state;
mod sync;
mod ticket;
mod write;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tanada_io::{Buffer, Device};

pub use backend::ObjectBackend;
pub use information::ChunkInfo;
pub use state::Attributes;
pub(crate) use state::ObjectState;

use crate::Result;
use crate::volume::Core;

/// A handle of an object. Cheap to clone.
///
/// ```
/// use tanada_volume::Attributes;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let object = volume.create_object("a", &Attributes::default())?;
/// object.write_bytes(5, b"rice").await?;
/// assert_eq!(object.size_bytes(), 9);
/// assert_eq!(object.read_bytes(0, 100).await?, b"\0\0\0\0\0rice");
/// # Ok(()) }).unwrap();
/// ```
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
    ///
    /// ```
    /// use tanada_volume::Attributes;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let object = volume.create_object("a", &Attributes::default())?;
    /// object.write_bytes(10 << 20, b"rice").await?;
    /// assert_eq!(object.allocated_bytes(), volume.chunk_bytes()); // what is before it is a hole
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn allocated_bytes(&self) -> u64 {
        self.state.chunks.load(Ordering::SeqCst) * self.core.chunk_bytes
    }

    /// Whether it is a file that was adopted.
    pub fn is_adopted(&self) -> bool {
        self.state.adopted.is_some()
    }

    /// The object as a device: for layers that know nothing of volumes. Offsets and lengths are multiples of
    /// [`crate::BLOCK_BYTES`].
    ///
    /// ```
    /// use tanada_volume::Attributes;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let object = volume.create_object("a", &Attributes::default())?;
    /// object.write_bytes(0, &[7; 4096]).await?;
    /// let device = object.device(); // for layers that know nothing of volumes
    /// drop(device);
    /// # Ok(()) }).unwrap();
    /// ```
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
