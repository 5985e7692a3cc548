//! Writes an object from its beginning to its end in large aligned pieces.
//!
//! While one piece is on its way to the device the next one is filled; there are never more than two.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use tanada_io::{Buffer, BufferPool};
use tanada_volume::{BLOCK_BYTES, Object};

use crate::{Error, Result};

/// Bytes of a piece.
const PIECE_BYTES: usize = 1 << 20;

/// A sequential writer of one object.
pub(crate) struct StreamWriter {
    object: Object,
    buffers: Arc<BufferPool>,
    buffer: Buffer,
    filled: usize,
    /// Of the buffer's first byte in the object.
    offset: u64,
    under_way: Option<BoxFuture<'static, tanada_volume::Result<Buffer>>>,
}

impl fmt::Debug for StreamWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("StreamWriter");
        debug.field("object", &self.object.name()).field("position", &self.position()).finish_non_exhaustive()
    }
}

impl StreamWriter {
    /// A writer of `object`, which is empty.
    pub(crate) fn new(object: Object, buffers: &Arc<BufferPool>) -> StreamWriter {
        let buffer = buffers.allocate(PIECE_BYTES);
        StreamWriter { object, buffers: buffers.clone(), buffer, filled: 0, offset: 0, under_way: None }
    }

    pub(crate) fn object(&self) -> &Object {
        &self.object
    }

    /// Where the next byte goes.
    pub(crate) fn position(&self) -> u64 {
        self.offset + self.filled as u64
    }

    /// Takes all of `bytes`; waits for the device only if two pieces are full.
    ///
    /// # Errors
    /// If the volume has no space or a device fails.
    pub(crate) async fn append(&mut self, mut bytes: &[u8]) -> Result<()> {
        loop {
            let len = bytes.len().min(PIECE_BYTES - self.filled);
            self.buffer[self.filled..self.filled + len].copy_from_slice(&bytes[..len]);
            self.filled += len;
            bytes = &bytes[len..];
            if self.filled < PIECE_BYTES {
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
        self.wait().await?;
        Ok(self.object)
    }

    async fn send(&mut self) -> Result<()> {
        self.wait().await?;
        let mut full = std::mem::replace(&mut self.buffer, self.buffers.allocate(PIECE_BYTES));
        full.truncate(self.filled);
        let (object, offset) = (self.object.clone(), self.offset);
        self.offset += self.filled as u64;
        self.filled = 0;
        let mut write: BoxFuture<'static, _> = Box::pin(async move { object.write(offset, full).await });
        // It begins with the first poll.
        match futures::poll!(&mut write) {
            std::task::Poll::Ready(written) => self.check(written)?,
            std::task::Poll::Pending => self.under_way = Some(write),
        }
        Ok(())
    }

    async fn wait(&mut self) -> Result<()> {
        match self.under_way.take() {
            Some(write) => {
                let written = write.await;
                self.check(written)
            }
            None => Ok(()),
        }
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
