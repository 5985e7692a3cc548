//! Reads a log: the checkpoint, then the journal as far as it is whole.
//!
//! 1. The superblock tells where the log is and how many of its blocks are the checkpoint. Those must all be whole.
//! 2. Journal blocks follow as long as magic, generation, number and checksum are right.
//! 3. The first that is not right ends the log if it can be a torn tail; if a later block proves that it was durable
//!    once, or the superblock says that the log was ended cleanly further on, it is damage, and nothing is guessed.

use std::sync::Arc;

use tanada_base::Reader;
use tanada_io::{BufferPool, Device};

use super::block::{BlockHeader, HEADER_BYTES, padded};
use super::record::NoRecord;
use super::{Log, Record, Superblock};
use crate::settings::BLOCK_BYTES;
use crate::{Error, ErrorKind, Result};

/// Bytes read at once.
const WINDOW_BYTES: u64 = 4 << 20;

/// How a log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replayed {
    pub(crate) log: Log,
    /// The volume was stopped cleanly.
    pub(crate) is_clean: bool,
}

/// Reads the log that `superblock` names and gives each record to `apply`, which may say why it makes no sense.
pub(crate) async fn replay(
    device: &Device,
    buffers: &Arc<BufferPool>,
    superblock: &Superblock,
    mut apply: impl FnMut(Record) -> Result<(), String>,
) -> Result<Replayed> {
    let mut reader = LogReader::new(device, buffers, superblock);
    let mut log = Log { used_bytes: 0, next_seq: 0 };
    while let Some((header, crc)) = reader.header(log.used_bytes).await? {
        let is_next = header.generation == superblock.generation && header.seq == log.next_seq;
        if !is_next {
            break;
        }
        let Some(records) = reader.records(log.used_bytes, &header, crc).await? else { break };
        let offset = superblock.log_offset + log.used_bytes;
        apply_all(records, header.records, &mut apply).map_err(|why| reader.refuse(offset, why))?;
        log.used_bytes += padded(header.bytes as usize);
        log.next_seq += 1;
    }
    let at = superblock.log_offset + log.used_bytes;
    if log.next_seq < superblock.checkpoint_blocks {
        let message = format!(
            "{}: block {} of the checkpoint's {}, at offset {at}, is damaged: restore the volume from a copy",
            reader.name(),
            log.next_seq,
            superblock.checkpoint_blocks
        );
        return Err(Error::corrupted(message));
    }
    // If it does not count as clean although it says how long the journal was, its successor is lost: more may have
    // been written.
    let is_cut = log.next_seq < superblock.clean_seq;
    if is_cut || (superblock.is_clean && log.next_seq != superblock.clean_seq) {
        let message = format!(
            "{}: block {} of the journal, at offset {at}, is damaged: the volume was stopped cleanly after block {}; restore it from a copy",
            reader.name(),
            log.next_seq,
            superblock.clean_seq
        );
        return Err(Error::corrupted(message));
    }
    if !superblock.is_clean {
        reader.check_torn(log).await?;
    }
    Ok(Replayed { log, is_clean: superblock.is_clean })
}

fn apply_all(
    records: &[u8],
    count: u32,
    apply: &mut impl FnMut(Record) -> Result<(), String>,
) -> Result<(), NoRecord> {
    let mut reader = Reader::new(records);
    for _ in 0..count {
        apply(Record::decode(&mut reader)?).map_err(NoRecord::Damaged)?;
    }
    if reader.is_empty() {
        Ok(())
    } else {
        Err(NoRecord::Damaged(format!("{} bytes behind the last record", reader.remaining())))
    }
}

pub(super) struct LogReader<'a> {
    device: &'a Device,
    buffers: &'a Arc<BufferPool>,
    superblock: &'a Superblock,
    window: Vec<u8>,
    /// Where in the log the window begins.
    window_at: u64,
}

impl<'a> LogReader<'a> {
    pub(super) fn new(
        device: &'a Device,
        buffers: &'a Arc<BufferPool>,
        superblock: &'a Superblock,
    ) -> LogReader<'a> {
        LogReader { device, buffers, superblock, window: Vec::new(), window_at: 0 }
    }

    /// What to say of a whole block, at `offset` of the device, that cannot be applied.
    fn refuse(&self, offset: u64, why: NoRecord) -> Error {
        let name = self.name();
        match why {
            NoRecord::Damaged(why) => Error::corrupted(format!("{name}: block at offset {offset}: {why}")),
            NoRecord::Unknown(kind) => Error::new(
                ErrorKind::FutureFormat,
                format!(
                    "{name}: the metadata were written by a newer program: the block at offset {offset} has a record of kind {kind}, which this one does not know; use a later version of it"
                ),
            ),
        }
    }

    fn name(&self) -> String {
        format!("metadata ({})", self.device.path().display())
    }

    /// `len` bytes of the log from `at`, or as many as there are.
    async fn bytes(&mut self, at: u64, len: u64) -> Result<&[u8]> {
        let end = (at + len).min(self.superblock.log_bytes);
        let window_end = self.window_at + self.window.len() as u64;
        if at < self.window_at || end > window_end {
            let want = WINDOW_BYTES.max(len).min(self.superblock.log_bytes.saturating_sub(at));
            let mut window = Vec::with_capacity(want as usize);
            while (window.len() as u64) < want {
                let piece = (want - window.len() as u64).min(1 << 20).next_multiple_of(BLOCK_BYTES);
                let buffer = self.buffers.allocate(piece as usize);
                let from = self.superblock.log_offset + at + window.len() as u64;
                let buffer =
                    self.device.read(from, buffer).await.map_err(|error| Error::io("metadata", &error))?;
                window.extend_from_slice(&buffer);
                // The device ends here, on a boundary or not: a stop may leave a file of any size.
                if (buffer.len() as u64) < piece {
                    break;
                }
            }
            self.window = window;
            self.window_at = at;
        }
        let from = ((at - self.window_at) as usize).min(self.window.len());
        let to = (end.saturating_sub(self.window_at) as usize).clamp(from, self.window.len());
        Ok(&self.window[from..to])
    }

    pub(super) async fn header(&mut self, at: u64) -> Result<Option<(BlockHeader, u32)>> {
        Ok(BlockHeader::peek(self.bytes(at, HEADER_BYTES as u64).await?))
    }

    pub(super) async fn records(&mut self, at: u64, header: &BlockHeader, crc: u32) -> Result<Option<&[u8]>> {
        let bytes = self.bytes(at, padded(header.bytes as usize)).await?;
        Ok(header.records(crc, bytes))
    }

    /// Fails if a block behind the end of the log was begun after the one that is missing there was durable.
    async fn check_torn(&mut self, log: Log) -> Result<()> {
        let mut at = log.used_bytes + BLOCK_BYTES;
        while at < self.superblock.log_bytes {
            let Some((header, crc)) = self.header(at).await? else {
                if self.bytes(at, 1).await?.is_empty() {
                    return Ok(());
                }
                at += BLOCK_BYTES;
                continue;
            };
            let is_later = header.generation == self.superblock.generation
                && header.seq > log.next_seq
                && header.first_of_flight > log.next_seq;
            if is_later && self.records(at, &header, crc).await?.is_some() {
                let message = format!(
                    "{}: block {} of the journal, at offset {}, is damaged: block {} behind it was written later",
                    self.name(),
                    log.next_seq,
                    self.superblock.log_offset + log.used_bytes,
                    header.seq
                );
                return Err(Error::new(ErrorKind::Corrupted, message));
            }
            at += BLOCK_BYTES;
        }
        Ok(())
    }
}
