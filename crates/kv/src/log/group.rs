//! Groups: what the log writes at once.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | magic |
//! | 4 | CRC-32C of what follows in the header |
//! | 8 | LSN of the group, a multiple of 4,096 |
//! | 8 | the log was durable up to this LSN when the group was closed |
//! | 8 | number of the segment |
//! | 8 | the database's identity |
//! | 8 | epoch |
//! | 4 | format version |
//! | 4 | bytes of the group without its padding, header included |
//! | 8 | zeros |
//! | | frames, zeros up to a multiple of 4,096 |

use tanada_base::Reader;

use super::{BLOCK, Lsn};
use crate::entry::SegmentNo;

/// Bytes of a group's header.
pub(crate) const GROUP_HEADER: usize = 64;

const MAGIC: u32 = u32::from_be_bytes(*b"TKgr");

/// The format of groups and frames.
pub(crate) const LOG_FORMAT: u32 = 1;

/// The header of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) lsn: Lsn,
    /// The log was durable up to here when the group was closed.
    pub(crate) durable: Lsn,
    pub(crate) segment: SegmentNo,
    /// The database's identity.
    pub(crate) database: u64,
    /// The opening that wrote it.
    pub(crate) epoch: u64,
    pub(crate) format: u32,
    /// Bytes without padding, this header included.
    pub(crate) len: u32,
}

impl GroupHeader {
    pub(crate) fn encode(&self) -> [u8; GROUP_HEADER] {
        debug_assert!(self.lsn.is_multiple_of(BLOCK) && self.durable <= self.lsn);
        let mut header = [0; GROUP_HEADER];
        header[..4].copy_from_slice(&MAGIC.to_be_bytes());
        header[8..16].copy_from_slice(&self.lsn.to_be_bytes());
        header[16..24].copy_from_slice(&self.durable.to_be_bytes());
        header[24..32].copy_from_slice(&self.segment.to_be_bytes());
        header[32..40].copy_from_slice(&self.database.to_be_bytes());
        header[40..48].copy_from_slice(&self.epoch.to_be_bytes());
        header[48..52].copy_from_slice(&self.format.to_be_bytes());
        header[52..56].copy_from_slice(&self.len.to_be_bytes());
        let checksum = crc32c::crc32c(&header[8..]);
        header[4..8].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    /// The header that `bytes` begin with, if they do.
    pub(crate) fn decode(bytes: &[u8]) -> Option<GroupHeader> {
        let mut reader = Reader::new(bytes);
        if reader.u32().ok()? != MAGIC {
            return None;
        }
        let checksum = reader.u32().ok()?;
        if crc32c::crc32c(bytes.get(8..GROUP_HEADER)?) != checksum {
            return None;
        }
        let header = GroupHeader {
            lsn: reader.u64().ok()?,
            durable: reader.u64().ok()?,
            segment: reader.u64().ok()?,
            database: reader.u64().ok()?,
            epoch: reader.u64().ok()?,
            format: reader.u32().ok()?,
            len: reader.u32().ok()?,
        };
        let is_possible = header.lsn.is_multiple_of(BLOCK)
            && header.durable <= header.lsn
            && header.len as usize >= GROUP_HEADER
            && header.lsn.checked_add(header.padded_len()).is_some();
        is_possible.then_some(header)
    }

    /// Bytes with padding.
    pub(crate) fn padded_len(&self) -> u64 {
        u64::from(self.len).next_multiple_of(BLOCK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> GroupHeader {
        GroupHeader {
            lsn: 40 * BLOCK,
            durable: 3 * BLOCK,
            segment: 7,
            database: 8,
            epoch: 2,
            format: LOG_FORMAT,
            len: 5000,
        }
    }

    #[test]
    fn a_header_comes_back() {
        assert_eq!(GroupHeader::decode(&header().encode()), Some(header()));
        assert_eq!(header().padded_len(), 8192);
    }

    proptest! {
        #[test]
        fn a_changed_bit_is_found(at in 0usize..GROUP_HEADER, bit in 0u8..8) {
            let mut bytes = header().encode();
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(GroupHeader::decode(&bytes), None);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = GroupHeader::decode(&bytes);
        }
    }
}
