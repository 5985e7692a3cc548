//! A group of the log while it is filled in memory.

use tanada_io::Buffer;

use super::group::{GROUP_HEADER, GroupHeader, LOG_FORMAT};
use super::segment::LogSegment;
use super::{BLOCK, Lsn};

/// A group in memory.
pub(super) struct Group {
    pub(super) segment: LogSegment,
    pub(super) lsn: Lsn,
    /// In the segment.
    pub(super) offset: u64,
    pub(super) buffer: Buffer,
    /// Bytes so far.
    pub(super) len: usize,
}

impl Group {
    /// Bytes that can be added.
    pub(super) fn room(&self) -> usize {
        self.buffer.len() - self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == GROUP_HEADER
    }

    pub(super) fn end(&self) -> Lsn {
        self.lsn + self.len as u64
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Completes the header and the padding.
    pub(super) fn close(&mut self, database: u64, epoch: u64, durable: Lsn) {
        let header = GroupHeader {
            lsn: self.lsn,
            durable,
            segment: self.segment.no,
            database,
            epoch,
            format: LOG_FORMAT,
            len: self.len as u32,
        };
        self.buffer[..GROUP_HEADER].copy_from_slice(&header.encode());
        let padded = self.len.next_multiple_of(BLOCK as usize);
        self.buffer[self.len..padded].fill(0);
        self.buffer.truncate(padded);
    }
}
