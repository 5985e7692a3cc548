//! Checksums made right.

use std::ops::Range;

/// How the pages of a file are sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seal {
    /// `crc32` in the header and the trailer.
    Classic,
    /// One checksum at the end.
    FullCrc32,
    /// `crc32` of a page of ROW_FORMAT=COMPRESSED, in the header alone.
    Compressed,
}

/// The page size of a file and how its pages are sealed, by the flags on page 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Framing {
    /// Bytes of a page in the file.
    pub page_bytes: usize,
    /// The checksum.
    pub seal: Seal,
}

const FLAGS: Range<usize> = 54..58;
const DATA: usize = 38;
const TRAILER: usize = 8;

impl Framing {
    /// The framing of `file`, which begins with a sound page 0.
    pub fn of(file: &[u8]) -> Framing {
        let flags =
            file.get(FLAGS).map_or(0, |flags| u32::from_be_bytes([flags[0], flags[1], flags[2], flags[3]]));
        let bytes = |shift: u32| 512usize << shift.clamp(1, 7);
        if flags & 0x10 != 0 {
            return Framing { page_bytes: bytes(flags & 15), seal: Seal::FullCrc32 };
        }
        match (flags >> 1 & 15, flags >> 6 & 15) {
            (0, 0) => Framing { page_bytes: 16384, seal: Seal::Classic },
            (0, shift) => Framing { page_bytes: bytes(shift), seal: Seal::Classic },
            (zip, _) => Framing { page_bytes: bytes(zip), seal: Seal::Compressed },
        }
    }
}

impl Seal {
    /// Puts the checksum on `page`.
    pub fn put(self, page: &mut [u8]) {
        let end = page.len();
        if end < DATA + TRAILER {
            return;
        }
        match self {
            Seal::Classic => {
                page.copy_within(20..24, end - 4);
                let crc = crc32c::crc32c(&page[4..26]) ^ crc32c::crc32c(&page[DATA..end - TRAILER]);
                page[..4].copy_from_slice(&crc.to_be_bytes());
                page[end - 8..end - 4].copy_from_slice(&crc.to_be_bytes());
            }
            Seal::FullCrc32 => {
                page[..4].fill(0);
                page.copy_within(20..24, end - 8);
                let crc = crc32c::crc32c(&page[..end - 4]);
                page[end - 4..].copy_from_slice(&crc.to_be_bytes());
            }
            Seal::Compressed => {
                let crc = crc32c::crc32c(&page[4..16])
                    ^ crc32c::crc32c(&page[24..26])
                    ^ crc32c::crc32c(&page[34..]);
                page[..4].copy_from_slice(&crc.to_be_bytes());
            }
        }
    }
}
