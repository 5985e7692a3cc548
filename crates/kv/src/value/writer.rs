//! Writes a value segment.
//!
//! After a header of one block's beginning come the values as they are stored, one behind the other; a pointer says all
//! there is to know of one.

use std::sync::Arc;

use tanada_io::BufferPool;
use tanada_volume::Object;

use super::codec::compress;
use super::header;
use crate::entry::{Codec, Pointer, SegmentNo};
use crate::stream::{Pieces, StreamWriter, sync};
use crate::{Error, Result};

/// Writes one value segment.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    no: SegmentNo,
    stream: StreamWriter,
    stored_bytes: u64,
}

impl SegmentWriter {
    /// Writes segment `no` to `object`, which is empty.
    ///
    /// # Errors
    /// If the volume has no space or a device fails.
    pub(crate) async fn new(
        no: SegmentNo,
        object: Object,
        buffers: &Arc<BufferPool>,
        pieces: Pieces,
    ) -> Result<SegmentWriter> {
        let mut stream = StreamWriter::new(object, buffers, pieces);
        stream.append(&header::encode(no)).await?;
        Ok(SegmentWriter { no, stream, stored_bytes: 0 })
    }

    pub(crate) fn no(&self) -> SegmentNo {
        self.no
    }

    /// Bytes of values so far, as they are stored.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// Returns whether a value of `len` bytes belongs into the next segment, as one is to have no more than
    /// `segment_bytes` if it can: with them its chunks are full.
    pub(crate) fn is_full(&self, len: usize, segment_bytes: u64) -> bool {
        self.stored_bytes > 0 && self.stream.position() + len as u64 > segment_bytes
    }

    /// Appends a value, compressed if that makes it smaller.
    ///
    /// # Errors
    /// `InvalidInput` if it is too long, or if the volume has no space or a device fails.
    pub(crate) async fn append(&mut self, value: &[u8], codec: Codec) -> Result<Pointer> {
        let len = u32::try_from(value.len())
            .map_err(|_| Error::invalid(format!("a value of {} bytes is too long", value.len())))?;
        match compress(codec, value) {
            Some(stored) => self.append_stored(&stored, len, codec, crc32c::crc32c(&stored)).await,
            None => self.append_stored(value, len, Codec::None, crc32c::crc32c(value)).await,
        }
    }

    /// Appends the stored bytes of a value that was read from another segment, where `from` led to.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub(crate) async fn append_moved(&mut self, stored: &[u8], from: &Pointer) -> Result<Pointer> {
        self.append_stored(stored, from.len, from.codec, from.checksum).await
    }

    async fn append_stored(
        &mut self,
        stored: &[u8],
        len: u32,
        codec: Codec,
        checksum: u32,
    ) -> Result<Pointer> {
        let offset = self.stream.position();
        self.stream.append(stored).await?;
        self.stored_bytes += stored.len() as u64;
        Ok(Pointer { segment: self.no, offset, stored_len: stored.len() as u32, len, codec, checksum })
    }

    /// Returns the offset of the next value.
    pub(crate) fn position(&self) -> u64 {
        self.stream.position()
    }

    /// Waits for what is on its way, so that no more memory is held than for what is written next.
    ///
    /// # Errors
    /// If the volume has no space or a device fails.
    pub(crate) async fn settle(&mut self) -> Result<()> {
        self.stream.settle().await
    }

    /// Makes all of it durable.
    ///
    /// # Errors
    /// If the volume has no space or a device fails.
    pub(crate) async fn finish(self) -> Result<Object> {
        let object = self.finish_unsynced().await?;
        sync(&object).await?;
        Ok(object)
    }

    /// Writes the rest; the segment is durable after the next sync of its object.
    ///
    /// # Errors
    /// As [`finish`](Self::finish).
    pub(crate) async fn finish_unsynced(self) -> Result<Object> {
        self.stream.finish().await
    }
}
