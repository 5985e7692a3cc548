//! What whoever reads an object calls: bytes at any offset, or a part of some blocks.
//!
//! Devices are asked for blocks, or less if they read less ([`super::read`]); what a device only put off, or another
//! method may avoid, is tried again here.

use std::io;
use std::ops::Range;

use tanada_io::{Buffer, Completion, Operation, Request};

use super::Object;
use super::read::{from_io, start};
use crate::class::device::is_put_off;
use crate::settings::BLOCK_BYTES;
use crate::{Error, ErrorKind, Result};

impl Object {
    /// Reads `buffer.len()` bytes at `offset`, whatever their alignment; the buffer comes back shortened if the object
    /// ends before. What was never written reads as zeros.
    ///
    /// # Errors
    /// `NotFound` if the object was deleted, `MissingDevice` or `Device` if the bytes cannot be read.
    pub async fn read(&self, offset: u64, mut buffer: Buffer) -> Result<Buffer> {
        self.state.check_there()?;
        // Should the object get pages from here on, what it has now is not written over before this is done.
        let _grace = self.core.grace.enter();
        if let Some(pages) = self.state.pages.get() {
            return self.read_pages(pages.clone(), offset, buffer).await;
        }
        let len = buffer.len();
        let aligned = offset.is_multiple_of(BLOCK_BYTES) && (len as u64).is_multiple_of(BLOCK_BYTES);
        if aligned {
            return self.read_needed(offset, buffer, 0..len).await;
        }
        let size = self.state.size();
        if offset >= size {
            buffer.truncate(0);
            return Ok(buffer);
        }
        // Behind the end there is nothing to allocate for; it may have grown by then, but that is then.
        let end = offset.saturating_add(len as u64).min(size);
        let first = offset / BLOCK_BYTES * BLOCK_BYTES;
        let blocks = self.core.buffers.allocate((end.next_multiple_of(BLOCK_BYTES) - first) as usize);
        let skip = (offset - first) as usize;
        let needed = skip as u64..end - first;
        let (blocks, done) = self.read_aligned(first, blocks, needed).await?;
        let found = done.saturating_sub(skip).min(len);
        buffer.truncate(found);
        if found > 0 {
            buffer.copy_from_slice(&blocks[skip..skip + found]);
        }
        Ok(buffer)
    }

    /// Reads whole blocks, `buffer.len()` bytes at `offset`, of which only those in `needed` have to be there: the
    /// others are what the object has, or anything. A device that reads less than a block at once need not read them.
    /// The buffer comes back shortened if the object ends before.
    ///
    /// # Errors
    /// `InvalidInput` if offset and length are not multiples of [`BLOCK_BYTES`] or `needed` is not within; else as
    /// [`read`](Self::read).
    pub async fn read_needed(&self, offset: u64, buffer: Buffer, needed: Range<usize>) -> Result<Buffer> {
        self.state.check_there()?;
        let len = buffer.len();
        let is_aligned = offset.is_multiple_of(BLOCK_BYTES) && (len as u64).is_multiple_of(BLOCK_BYTES);
        if !is_aligned || needed.start > needed.end || needed.end > len {
            let what = format!("{len} bytes at offset {offset}, of which {needed:?} are needed");
            return Err(Error::invalid(format!("{what}: whole blocks of {BLOCK_BYTES} bytes are read")));
        }
        let _grace = self.core.grace.enter();
        if let Some(pages) = self.state.pages.get() {
            return self.read_pages(pages.clone(), offset, buffer).await;
        }
        let needed = needed.start as u64..needed.end as u64;
        let (mut buffer, done) = self.read_aligned(offset, buffer, needed).await?;
        buffer.truncate(done);
        Ok(buffer)
    }

    pub(crate) async fn read_aligned(
        &self,
        offset: u64,
        buffer: Buffer,
        needed: Range<u64>,
    ) -> Result<(Buffer, usize)> {
        let want = buffer.len();
        let mut buffer = buffer;
        let mut done = 0;
        let mut retries = 0;
        while done < want {
            let (completion, awaited) = Completion::awaited();
            let request = Request {
                operation: Operation::Read,
                offset: offset + done as u64,
                len: (want - done) as u64,
                buffer: Some(buffer),
                from: done,
            };
            let left = needed.start.saturating_sub(done as u64)..needed.end.saturating_sub(done as u64);
            start(&self.core, &self.state, request, left, completion);
            let (result, back) = awaited.await;
            let what = || format!("object {:?}, {want} bytes at offset {offset}", self.state.name.read());
            let lost = || Error::new(ErrorKind::Cancelled, format!("{}: the I/O was cancelled", what()));
            match result {
                Ok(bytes) => {
                    buffer = back.ok_or_else(lost)?;
                    done += bytes;
                    if bytes == 0 || !(done as u64).is_multiple_of(BLOCK_BYTES) {
                        break;
                    }
                }
                Err(error)
                    if (retries < 1000 && is_put_off(&error)) || (retries < 2 && self.degrade(&error)) =>
                {
                    retries += 1;
                    buffer = back.ok_or_else(lost)?;
                }
                Err(error) => return Err(from_io(error, &what())),
            }
        }
        Ok((buffer, done))
    }

    /// Tells the devices of an error that another method may avoid.
    pub(super) fn degrade(&self, error: &io::Error) -> bool {
        let classes = self.core.class_list();
        let devices = classes.ranked().iter().flat_map(|class| class.devices.iter().flatten());
        let mut any = false;
        for device in devices {
            any |= device.device().degrade(error);
        }
        if let Some(file) = &self.state.adopted
            && let Some(device) = &*file.device.read()
        {
            any |= device.degrade(error);
        }
        any
    }
}
