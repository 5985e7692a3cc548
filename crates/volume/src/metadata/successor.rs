//! Which superblock counts, also when one of the two is lost.
//!
//! Superblocks are written in turn, so what lies in the damaged place came right before the one that is left, or right
//! after it. If it came after, it may have been durable, and rotted since: then the one that is left names a log that
//! is out of date, and what was acknowledged since is in the next one. So:
//!
//! 1. The next log has the next generation and lies at one of two places. If its checkpoint is whole, up to the record
//!    that ends it, the superblock that named it is derived from it: a checkpoint holds all that was acknowledged
//!    before it, and nothing that may not be durable.
//! 2. Else the one that is left counts. Whatever it says, the volume does not count as stopped cleanly.

use std::sync::Arc;

use tanada_io::{BufferPool, Device};

use super::block::padded;
use super::record::CHECKPOINT_END;
use super::replay::LogReader;
use super::superblock::{FIRST_LOG_OFFSET, Found, Superblock};
use crate::settings::BLOCK_BYTES;
use crate::{Error, Result};

/// The superblock that counts.
#[derive(Debug, Clone)]
pub(crate) struct InForce {
    pub(crate) superblock: Superblock,
    /// It was derived, and is not on the device.
    pub(crate) is_derived: bool,
    /// Places, 0 and 1, that hold no superblock and should.
    pub(crate) damaged: Vec<u8>,
}

/// Reads both superblocks; the one that counts.
pub(crate) async fn read_superblock(device: &Device, buffers: &Arc<BufferPool>) -> Result<InForce> {
    let fail = |error: tanada_io::Error| Error::io("metadata", &error);
    let mut found = [Found::Blank, Found::Blank];
    for (i, found) in found.iter_mut().enumerate() {
        let mut block = buffers.allocate(BLOCK_BYTES as usize);
        block.fill(0);
        let block = device.read(i as u64 * BLOCK_BYTES, block).await.map_err(fail)?;
        *found = if block.is_empty() { Found::Blank } else { Superblock::decode(&block) };
    }
    let is_lost = |found: &Found| !matches!(found, Found::Valid(_) | Found::Future(_));
    let damaged: Vec<u8> = (0..2).filter(|place| is_lost(&found[*place as usize])).collect();
    let is_blank = found.iter().any(|found| matches!(found, Found::Blank));
    let [a, b] = found;
    let superblock = Superblock::choose(a, b, &device.path().display().to_string())?;
    // The first of all is alone.
    if damaged.is_empty() || (superblock.sequence == 1 && is_blank) {
        return Ok(InForce { superblock, is_derived: false, damaged: Vec::new() });
    }
    for offset in [FIRST_LOG_OFFSET, superblock.log_offset.saturating_add(superblock.log_bytes)] {
        if let Some(superblock) = successor(device, buffers, &superblock, offset).await? {
            return Ok(InForce { superblock, is_derived: true, damaged });
        }
    }
    Ok(InForce { superblock: Superblock { is_clean: false, ..superblock }, is_derived: false, damaged })
}

/// The superblock after `current`, if a whole checkpoint of its log lies at `offset`.
async fn successor(
    device: &Device,
    buffers: &Arc<BufferPool>,
    current: &Superblock,
    offset: u64,
) -> Result<Option<Superblock>> {
    let size = device.size_bytes().map_err(|error| Error::io("metadata", &error))?;
    let end = if offset < current.log_offset { current.log_offset } else { size };
    let mut next = Superblock {
        sequence: current.sequence + 1,
        generation: current.generation + 1,
        is_clean: false,
        clean_seq: 0,
        log_offset: offset,
        log_bytes: end.saturating_sub(offset).next_multiple_of(BLOCK_BYTES),
        ..current.clone()
    };
    let (mut used, mut blocks, mut digest) = (0, 0, 0);
    let mut reader = LogReader::new(device, buffers, &next);
    while let Some((header, crc)) = reader.header(used).await? {
        if header.generation != next.generation || header.seq != blocks || header.first_of_flight != 0 {
            break;
        }
        let Some(records) = reader.records(used, &header, crc).await? else { break };
        used += padded(header.bytes as usize);
        blocks += 1;
        if let [CHECKPOINT_END, found @ ..] = records
            && found.len() == 4
        {
            let log_bytes = used + current.journal_bytes.next_multiple_of(BLOCK_BYTES);
            let fits = offset >= current.log_offset || offset + log_bytes <= current.log_offset;
            if *found != u32::to_be_bytes(digest) || !fits {
                return Ok(None);
            }
            (next.log_bytes, next.checkpoint_blocks) = (log_bytes, blocks);
            return Ok(Some(next));
        }
        digest = crc32c::crc32c_append(digest, records);
    }
    Ok(None)
}
