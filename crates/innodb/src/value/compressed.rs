//! Values of MariaDB's COMPRESSED columns (`field_comp.cc`).
//!
//! A value that is not empty has a byte before it: the method in the upper four bits, 0 for none and 8 for zlib. With
//! zlib the low three bits are the bytes of the original length, which follows big-endian, and bit 3 says that the
//! stream is without zlib's header and checksum (`column_compression_zlib_wrap = 0`, the default).

use std::borrow::Cow;
use std::io::Read;

use flate2::read::{DeflateDecoder, ZlibDecoder};

use crate::{Error, ErrorKind, Result};

const METHOD_NONE: u8 = 0;
const METHOD_ZLIB: u8 = 8;
const LENGTH_BYTES: u8 = 0x07;
const RAW: u8 = 0x08;
/// No stream of deflate grows more, but for a few bytes.
const MOST_GROWTH: u64 = 1032;

fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("a compressed value {what}"))
}

/// The value whose stored form is `stored`.
pub(super) fn decompress(stored: &[u8]) -> Result<Cow<'_, [u8]>> {
    let Some((head, rest)) = stored.split_first() else { return Ok(Cow::Borrowed(stored)) };
    match head >> 4 {
        METHOD_NONE => Ok(Cow::Borrowed(rest)),
        METHOD_ZLIB => inflate(*head, rest).map(Cow::Owned),
        method => Err(corrupt(&format!("is of the unknown method {method}"))),
    }
}

fn inflate(head: u8, rest: &[u8]) -> Result<Vec<u8>> {
    let split = rest.split_at_checked(usize::from(head & LENGTH_BYTES));
    let (length, stream) = split.ok_or_else(|| corrupt("has no length"))?;
    let length = length.iter().fold(0, |length, byte| length << 8 | u64::from(*byte));
    if length > (stream.len() as u64 + 1) * MOST_GROWTH {
        return Err(corrupt(&format!("of {} bytes cannot be one of {length}", stream.len())));
    }
    let mut value = Vec::with_capacity(length as usize);
    // One byte more would be one too many.
    let read = if head & RAW != 0 {
        DeflateDecoder::new(stream).take(length + 1).read_to_end(&mut value)
    } else {
        ZlibDecoder::new(stream).take(length + 1).read_to_end(&mut value)
    };
    match read {
        Ok(read) if read as u64 == length => Ok(value),
        Ok(read) => Err(corrupt(&format!("has {read} bytes and not {length}"))),
        Err(error) => Err(corrupt(&format!("is damaged: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `aaaa...`, 300 of them.
    const RAW_STREAM: &[u8] = &[0x4b, 0x4c, 0x1c, 0x05, 0xc4, 0x02, 0x00];

    #[test]
    fn plain_and_empty_values_are_borrowed() {
        assert!(matches!(decompress(b"").unwrap(), Cow::Borrowed(b"")));
        assert!(matches!(decompress(b"\0abc").unwrap(), Cow::Borrowed(b"abc")));
    }

    #[test]
    fn streams_have_the_length_they_say() {
        let value = |length: u16| [&[0x8a][..], &length.to_be_bytes(), RAW_STREAM].concat();
        assert_eq!(decompress(&value(300)).unwrap(), vec![b'a'; 300]);
        for length in [0, 299, 301, u16::MAX] {
            assert_eq!(decompress(&value(length)).unwrap_err().kind(), ErrorKind::Corrupt, "{length}");
        }
        assert!(decompress(&[0x82, 1, 44, 1, 2, 3]).is_err());
        assert!(decompress(&[0x8f, 1]).is_err() && decompress(&[0x90]).is_err());
        assert!(decompress(&[0x8f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2]).is_err());
    }
}
