//! The header of a value segment.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | magic |
//! | 2 | format |
//! | 8 | number of the segment |
//! | 4 | CRC-32C of these |
//! | | zeros up to 64 bytes |

use crate::entry::SegmentNo;
use crate::wire::{Decoder, Malformed};

const MAGIC: &[u8; 8] = b"TANADAVS";
pub(crate) const FORMAT: u16 = 1;

pub(crate) const HEADER_BYTES: usize = 64;

/// Bytes that the checksum covers.
const CHECKED_BYTES: usize = 18;

pub(crate) fn encode(no: SegmentNo) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.extend_from_slice(&FORMAT.to_be_bytes());
    header.extend_from_slice(&no.to_be_bytes());
    let checksum = crc32c::crc32c(&header);
    header.extend_from_slice(&checksum.to_be_bytes());
    header.resize(HEADER_BYTES, 0);
    header
}

/// Returns whether `bytes` begin with the header of segment `no`.
pub(crate) fn check(bytes: &[u8], no: SegmentNo) -> Result<(), Malformed> {
    let mut decoder = Decoder::new(bytes);
    if decoder.take(MAGIC.len())? != MAGIC {
        return Err(Malformed::new(0, "no value segment"));
    }
    let format = decoder.u16()?;
    let found = decoder.u64()?;
    let checksum = decoder.u32()?;
    if crc32c::crc32c(&bytes[..CHECKED_BYTES]) != checksum {
        return Err(Malformed::new(0, "the checksum of a value segment's header is wrong"));
    }
    if format != FORMAT {
        return Err(decoder.unknown("a value segment of format", format, u64::from(FORMAT)));
    }
    if found != no {
        return Err(Malformed::new(10, "the header of another value segment"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_header_is_of_its_segment_or_an_error() {
        let header = encode(7);
        assert_eq!(check(&header, 7), Ok(()));
        let kind = |bytes: &[u8], no| check(bytes, no).unwrap_err().of("segment", 0).kind();
        assert_eq!(kind(&header, 8), ErrorKind::Corrupted);
        assert_eq!(kind(&header[..20], 7), ErrorKind::Corrupted);
        for at in 0..CHECKED_BYTES + 4 {
            let mut damaged = header.clone();
            damaged[at] ^= 1;
            assert_eq!(kind(&damaged, 7), ErrorKind::Corrupted, "{at}");
        }
        let mut newer = header.clone();
        newer[9] = 2;
        let checksum = crc32c::crc32c(&newer[..CHECKED_BYTES]);
        newer[CHECKED_BYTES..CHECKED_BYTES + 4].copy_from_slice(&checksum.to_be_bytes());
        let error = check(&newer, 7).unwrap_err().of("segment", 0);
        assert_eq!(error.kind(), ErrorKind::FutureFormat);
        assert!(error.to_string().contains("format 2") && error.to_string().contains("knows 1"), "{error}");
    }
}
