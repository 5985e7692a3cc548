//! How a value lies in a block: a header, the value, its key.

use super::super::cached_version::Newest;
use crate::entry::SequenceNo;

/// Items begin at multiples of this.
pub(super) const UNIT_BYTES: usize = 16;

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 48;

/// The use counter saturates here, as in S3-FIFO.
pub(super) const MAX_USES: u8 = 3;

/// Offset of the use counter in the header.
const USES_OFFSET: usize = 44;
const IS_LIVE: u8 = 1;
const HAS_NEWEST: u8 = 2;
const EXPIRES: u8 = 4;

/// The header of a cached value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) owner: u64,
    /// The hash of its key.
    pub(super) position: u64,
    pub(super) sequence: SequenceNo,
    pub(super) newest: Option<Newest>,
    pub(super) value_bytes: u32,
    pub(super) key_bytes: u32,
    pub(super) uses: u8,
    /// Not replaced or forgotten.
    pub(super) is_live: bool,
}

impl Header {
    /// Bytes of value and key.
    pub(super) fn content_bytes(&self) -> usize {
        self.value_bytes as usize + self.key_bytes as usize
    }

    /// Bytes up to the next item.
    pub(super) fn item_bytes(&self) -> usize {
        (HEADER_BYTES + self.content_bytes()).next_multiple_of(UNIT_BYTES)
    }

    /// The one at the beginning of `item`, which [`write`](Self::write) has written.
    #[inline]
    pub(super) fn read(item: &[u8]) -> Header {
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| item[at + byte]));
        let short = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| item[at + byte]));
        let flags = item[USES_OFFSET + 1];
        let expires_s = (flags & EXPIRES != 0).then(|| short(32));
        Header {
            owner: long(0),
            position: long(8),
            sequence: long(16),
            newest: (flags & HAS_NEWEST != 0).then(|| Newest { up_to: long(24), expires_s }),
            value_bytes: short(36),
            key_bytes: short(40),
            uses: item[USES_OFFSET],
            is_live: flags & IS_LIVE != 0,
        }
    }

    /// Writes it to the beginning of `item`.
    pub(super) fn write(&self, item: &mut [u8]) {
        let Newest { up_to, expires_s } = self.newest.unwrap_or(Newest { up_to: 0, expires_s: None });
        item[..8].copy_from_slice(&self.owner.to_le_bytes());
        item[8..16].copy_from_slice(&self.position.to_le_bytes());
        item[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        item[24..32].copy_from_slice(&up_to.to_le_bytes());
        item[32..36].copy_from_slice(&expires_s.unwrap_or_default().to_le_bytes());
        item[36..40].copy_from_slice(&self.value_bytes.to_le_bytes());
        item[40..44].copy_from_slice(&self.key_bytes.to_le_bytes());
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        item[USES_OFFSET] = self.uses;
        item[USES_OFFSET + 1] = flag(self.is_live, IS_LIVE)
            | flag(self.newest.is_some(), HAS_NEWEST)
            | flag(expires_s.is_some(), EXPIRES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_items_are_read_back() {
        let of = |newest, is_live| Header {
            owner: 1,
            position: u64::MAX,
            sequence: 3,
            newest,
            value_bytes: 1000,
            key_bytes: 23,
            uses: 2,
            is_live,
        };
        let newest =
            [None, Some(Newest { up_to: 7, expires_s: None }), Some(Newest { up_to: 0, expires_s: Some(0) })];
        for (newest, is_live) in newest.into_iter().zip([true, false, true]) {
            let (header, mut item) = (of(newest, is_live), [0xA5; HEADER_BYTES]);
            header.write(&mut item);
            assert_eq!(Header::read(&item), header);
        }
        assert_eq!(of(None, true).item_bytes(), 1072);
    }
}
