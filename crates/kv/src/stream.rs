//! Writes an object from its beginning to its end in large aligned pieces.
//!
//! While pieces are on their way to the device the next one is filled.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use tanada_io::{Buffer, BufferPool};
use tanada_volume::{BLOCK_BYTES, Object};

use crate::{Error, Result};

/// Bytes of a piece, if nothing else is said.
const PIECE_BYTES: usize = 1 << 20;

/// Least bytes of a piece.
const MIN_PIECE_BYTES: u64 = 64 << 10;

/// Pieces that are written concurrently.
const CONCURRENT_PIECES: usize = 4;

/// The pieces of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// Bytes of one: a power of two.
    bytes: usize,
    /// Writes in flight while the next piece is filled.
    at_once: usize,
}

impl Default for Pieces {
    fn default() -> Pieces {
        Pieces { bytes: PIECE_BYTES, at_once: 1 }
    }
}

impl Pieces {
    /// Several that together have `bytes`, or the least: a stream that waits holds on to no more than one of them.
    pub(crate) fn several(bytes: u64) -> Pieces {
        let piece = (bytes / CONCURRENT_PIECES as u64).clamp(MIN_PIECE_BYTES, PIECE_BYTES as u64);
        Pieces { bytes: 1 << piece.ilog2(), at_once: CONCURRENT_PIECES }
    }
}

/// A sequential writer of one object.
pub(crate) struct StreamWriter {
    object: Object,
    buffers: Arc<BufferPool>,
    buffer: Buffer,
    filled: usize,
    /// Offset of the buffer's first byte in the object.
    offset: u64,
    pieces: Pieces,
    /// The oldest first.
    under_way: VecDeque<BoxFuture<'static, tanada_volume::Result<Buffer>>>,
}

impl fmt::Debug for StreamWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("StreamWriter");
        debug.field("object", &self.object.name()).field("position", &self.position()).finish_non_exhaustive()
    }
}

impl StreamWriter {
    /// A writer of `object`, which is empty.
    pub(crate) fn new(object: Object, buffers: &Arc<BufferPool>, pieces: Pieces) -> StreamWriter {
        let buffer = buffers.allocate(pieces.bytes);
        let under_way = VecDeque::new();
        StreamWriter { object, buffers: buffers.clone(), buffer, filled: 0, offset: 0, pieces, under_way }
    }

    pub(crate) fn object(&self) -> &Object {
        &self.object
    }

    /// Returns the offset of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.filled as u64
    }

    /// Takes all of `bytes`; waits for the device only if all pieces are full.
    ///
    /// # Errors
    /// If the volume has no space or a device fails.
    pub(crate) async fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        loop {
            let len = bytes.len().min(self.pieces.bytes - self.filled);
            self.buffer[self.filled..self.filled + len].copy_from_slice(&bytes[..len]);
            self.filled += len;
            bytes = &bytes[len..];
            if self.filled < self.pieces.bytes {
                return Ok(());
            }
            self.send().await?;
        }
    }

    /// Zeros up to the next multiple of `alignment`.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) async fn pad_to(&mut self, alignment: u64) -> Result<()> {
        let len = self.position().next_multiple_of(alignment) - self.position();
        self.append(&vec![0; len as usize]).await
    }

    /// Everything is written when it returns, and durable after the next [`sync`] of the object.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) async fn finish(mut self) -> Result<Object> {
        self.pad_to(BLOCK_BYTES).await?;
        if self.filled > 0 {
            self.send().await?;
        }
        self.settle().await?;
        Ok(self.object)
    }

    /// Waits for all pieces that are full.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) async fn settle(&mut self) -> Result<()> {
        self.wait_for(0).await
    }

    async fn send(&mut self) -> Result<()> {
        self.wait_for(self.pieces.at_once - 1).await?;
        let mut full = std::mem::replace(&mut self.buffer, self.buffers.allocate(self.pieces.bytes));
        full.truncate(self.filled);
        let (object, offset) = (self.object.clone(), self.offset);
        self.offset += self.filled as u64;
        self.filled = 0;
        let mut write: BoxFuture<'static, _> = Box::pin(async move { object.write(offset, full).await });
        // The write begins with its first poll.
        match futures::poll!(&mut write) {
            std::task::Poll::Ready(written) => self.check(written)?,
            std::task::Poll::Pending => self.under_way.push_back(write),
        }
        Ok(())
    }

    /// Waits until at most `left` writes are in flight.
    async fn wait_for(&mut self, left: usize) -> Result<()> {
        while self.under_way.len() > left
            && let Some(write) = self.under_way.pop_front()
        {
            let written = write.await;
            self.check(written)?;
        }
        Ok(())
    }

    fn check(&self, written: tanada_volume::Result<Buffer>) -> Result<()> {
        written
            .map(drop)
            .map_err(|error| Error::volume(format!("cannot write object {:?}", self.object.name()), &error))
    }
}

/// Makes an object durable.
///
/// # Errors
/// If a device fails.
pub(crate) async fn sync(object: &Object) -> Result<()> {
    let synced = object.sync().await;
    synced.map_err(|error| Error::volume(format!("cannot sync object {:?}", object.name()), &error))
}
