//! The blocks of the log: records in checksummed, numbered pieces.
//!
//! A block is a header and its records, filled up with zeros to a multiple of 4 KiB. Big-endian, offsets in bytes:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | magic `TLOG` |
//! | 4 | 4 | CRC-32C of offset 8 to the end of the records |
//! | 8 | 8 | generation of the log: what an earlier log left in the same place does not count |
//! | 16 | 8 | number of the block in the log, from 0 |
//! | 24 | 8 | number of the first block that was written in one go with this one |
//! | 32 | 4 | bytes of records |
//! | 36 | 4 | records |
//!
//! Blocks written in one go become durable together, or in part and in any order, before the next are begun. So a valid
//! block that was begun after a missing one proves that the missing one was durable once: that is damage. Anything else
//! that is missing at the end is a torn tail.

use tanada_base::{ReadError, Reader};

use crate::settings::BLOCK_BYTES;

const MAGIC: [u8; 4] = *b"TLOG";

pub(crate) const HEADER_BYTES: usize = 40;

/// Records of one block end before they exceed this, unless a single group of records is larger.
pub(crate) const RECORD_BYTES: usize = 256 << 10;

/// The most records a block may have, in bytes; larger lengths are damage.
pub(crate) const MOST_RECORD_BYTES: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    pub(crate) generation: u64,
    pub(crate) seq: u64,
    pub(crate) first_of_flight: u64,
    pub(crate) bytes: u32,
    pub(crate) records: u32,
}

/// Bytes that a block with `records` bytes of records takes.
pub(crate) fn padded(records: usize) -> u64 {
    ((HEADER_BYTES + records) as u64).next_multiple_of(BLOCK_BYTES)
}

impl BlockHeader {
    /// Appends the whole block to `out`.
    pub(crate) fn encode(&self, records: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.generation.to_be_bytes());
        out.extend_from_slice(&self.seq.to_be_bytes());
        out.extend_from_slice(&self.first_of_flight.to_be_bytes());
        out.extend_from_slice(&self.bytes.to_be_bytes());
        out.extend_from_slice(&self.records.to_be_bytes());
        out.extend_from_slice(records);
        let crc = crc32c::crc32c(&out[start + 8..]);
        out[start + 4..start + 8].copy_from_slice(&crc.to_be_bytes());
        out.resize(start + padded(records.len()) as usize, 0);
    }

    /// The header at the start of `bytes`, its checksum not yet verified; `None` if there is none.
    pub(crate) fn peek(bytes: &[u8]) -> Option<(BlockHeader, u32)> {
        let fields = || -> Result<_, ReadError> {
            let mut reader = Reader::new(bytes);
            let magic: [u8; 4] = reader.array()?;
            let crc = reader.u32()?;
            let header = BlockHeader {
                generation: reader.u64()?,
                seq: reader.u64()?,
                first_of_flight: reader.u64()?,
                bytes: reader.u32()?,
                records: reader.u32()?,
            };
            Ok((magic, header, crc))
        };
        let (magic, header, crc) = fields().ok()?;
        (magic == MAGIC && header.bytes as usize <= MOST_RECORD_BYTES).then_some((header, crc))
    }

    /// The records of the block that `bytes` starts with, if it is whole.
    pub(crate) fn records<'a>(&self, crc: u32, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let end = HEADER_BYTES + self.bytes as usize;
        let covered = bytes.get(8..end)?;
        (crc32c::crc32c(covered) == crc).then(|| &bytes[HEADER_BYTES..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_back_and_a_flipped_bit_does_not() {
        let header = BlockHeader { generation: 3, seq: 9, first_of_flight: 8, bytes: 5000, records: 2 };
        let records: Vec<u8> = (0..5000).map(|i| i as u8).collect();
        let mut out = vec![7; 4096];
        header.encode(&records, &mut out);
        assert_eq!(out.len() as u64, 4096 + padded(5000));
        let block = &out[4096..];
        let (found, crc) = BlockHeader::peek(block).unwrap();
        assert_eq!(found, header);
        assert_eq!(found.records(crc, block), Some(&records[..]));
        for place in [8, 17, 33, 39, 40, 5039] {
            let mut damaged = block.to_vec();
            damaged[place] ^= 2;
            assert!(
                BlockHeader::peek(&damaged).is_none_or(|(found, crc)| found.records(crc, &damaged).is_none())
            );
        }
        assert!(found.records(crc, &block[..4096]).is_none(), "torn");
    }
}
