//! Redo logs in blocks of 512 bytes: MySQL, and MariaDB before 10.8 (`log0log.h`).
//!
//! A block: number (4; the top bit may be set), length with header (2; the top bit means encrypted), first record group
//! (2), checkpoint or epoch (4), 496 bytes of log, crc32c (4). LSNs count headers and trailers too, so that block
//! `lsn / 512` holds `lsn`.

use crate::page::header::{u16_at, u32_at};

pub(super) const BLOCK: usize = 512;
pub(super) const HEADER: usize = 12;
const TRAILER: usize = 4;
/// Where the checksum lies in every block, those of the file's header included.
const CHECKSUM: usize = BLOCK - TRAILER;

/// Whether `block`'s checksum is right.
pub(super) fn is_intact(block: &[u8]) -> bool {
    block.len() == BLOCK && crc32c::crc32c(&block[..CHECKSUM]) == u32_at(block, CHECKSUM)
}

/// The log from `lsn` on, as long as `blocks`, which start with the one that holds `lsn`, go on without a gap. `None`
/// if the first of them is damaged.
pub(super) fn log_after(lsn: u64, blocks: &[u8]) -> Option<Vec<u8>> {
    let mut log = Vec::new();
    let mut from = (lsn % BLOCK as u64) as usize;
    for (i, block) in blocks.chunks(BLOCK).enumerate() {
        let number = (lsn / BLOCK as u64 + i as u64) as u32 & 0x3fff_ffff;
        let is_written = block.len() == BLOCK && u32_at(block, 0) & 0x7fff_ffff == number + 1;
        if !is_written || !is_intact(block) {
            // At the start of a block there may be nothing yet. Within one, what comes before must be there.
            let nothing_lost = i > 0 || from <= HEADER;
            return nothing_lost.then_some(log);
        }
        let end = usize::from(u16_at(block, 4) & 0x7fff);
        if i == 0 && end < from {
            return (from == HEADER).then_some(log);
        }
        log.extend_from_slice(block.get(from..end.min(CHECKSUM)).unwrap_or_default());
        if end < BLOCK {
            return Some(log);
        }
        from = HEADER;
    }
    Some(log)
}

/// The LSN `bytes` of log after `lsn`, headers and trailers of the blocks between counted.
pub(super) fn lsn_after(lsn: u64, bytes: usize) -> u64 {
    let mut end = lsn;
    for _ in 0..bytes {
        end += 1;
        if end % BLOCK as u64 == CHECKSUM as u64 {
            end += (TRAILER + HEADER) as u64;
        }
    }
    end
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A block of the log at `lsn`, filled up to `end`.
    pub(in super::super) fn block(lsn: u64, end: u16) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        block[..4].copy_from_slice(&((lsn / 512) as u32 + 1).to_be_bytes());
        block[4..6].copy_from_slice(&end.to_be_bytes());
        block[HEADER..usize::from(end).min(CHECKSUM)].fill(0x11);
        seal(&mut block);
        block
    }

    pub(in super::super) fn seal(block: &mut [u8]) {
        let crc = crc32c::crc32c(&block[..CHECKSUM]).to_be_bytes();
        block[CHECKSUM..BLOCK].copy_from_slice(&crc);
    }

    #[test]
    fn the_log_ends_where_the_block_says() {
        assert_eq!(log_after(5120 + 100, &block(5120, 100)), Some(vec![]));
        assert_eq!(log_after(5120 + 100, &block(5120, 107)), Some(vec![0x11; 7]));
        let two = [block(5120, 512), block(5632, 20)].concat();
        assert_eq!(log_after(5120 + 500, &two), Some(vec![0x11; 16]));
    }

    #[test]
    fn an_lsn_counts_headers_and_trailers() {
        assert_eq!(lsn_after(5120 + 100, 0), 5120 + 100);
        assert_eq!(lsn_after(5120 + 100, 407), 5120 + 507);
        assert_eq!(lsn_after(5120 + 100, 408), 5632 + 12);
        assert_eq!(lsn_after(5120 + 100, 408 + 496), 6144 + 12);
    }

    #[test]
    fn a_missing_block_is_the_end_only_if_nothing_before_it_is_missed() {
        assert_eq!(log_after(5120 + 12, &[0; 512]), Some(vec![]));
        assert_eq!(log_after(5120 + 100, &[0; 512]), None);
        assert_eq!(log_after(5120 + 100, &block(5120, 50)), None);
        assert_eq!(log_after(5120 + 100, &[]), Some(vec![]));
        let stale = [block(5120, 512), block(1024, 512)].concat();
        assert_eq!(log_after(5120 + 500, &stale), Some(vec![0x11; 8]));
    }

    #[test]
    fn an_encrypted_block_has_its_length_all_the_same() {
        let mut encrypted = block(5120, 100);
        encrypted[4] |= 0x80;
        seal(&mut encrypted);
        assert_eq!(log_after(5120 + 100, &encrypted), Some(vec![]));
    }
}
