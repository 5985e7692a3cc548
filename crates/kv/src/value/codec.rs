//! Compression of single values.

use bytes::Bytes;

use crate::entry::{Codec, LONGEST_VALUE, Pointer};
use crate::{Error, Result};

/// Values are compressed once and read often: what takes longer to compress does not pay.
const ZSTD_LEVEL: i32 = 3;

/// The compressed value; `None` if it would not be smaller.
pub(crate) fn compress(codec: Codec, value: &[u8]) -> Option<Vec<u8>> {
    let stored = match codec {
        Codec::None => return None,
        Codec::Lz4 => lz4_flex::block::compress(value),
        Codec::Zstd => zstd::bulk::compress(value, ZSTD_LEVEL).ok()?,
    };
    (stored.len() < value.len()).then_some(stored)
}

/// The value of `len` bytes that was compressed to `stored`; `None` if it was not.
pub(crate) fn decompress(codec: Codec, stored: &Bytes, len: usize) -> Option<Bytes> {
    if len > LONGEST_VALUE {
        return None;
    }
    let value = match codec {
        Codec::None => stored.clone(),
        Codec::Lz4 => Bytes::from(lz4_flex::block::decompress(stored, len).ok()?),
        Codec::Zstd => Bytes::from(zstd::bulk::decompress(stored, len).ok()?),
    };
    (value.len() == len).then_some(value)
}

/// The value itself of what is kept in memory: as it is stored.
///
/// # Errors
/// `Corrupted` if it does not decompress.
pub(crate) fn plain_value(stored: Bytes, home: Option<&Pointer>) -> Result<Bytes> {
    let Some(pointer) = home.filter(|pointer| pointer.codec != Codec::None) else { return Ok(stored) };
    let plain = decompress(pointer.codec, &stored, pointer.len as usize);
    plain.ok_or_else(|| {
        Error::corrupted(format!("a value of segment {} does not decompress", pointer.segment))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn compressed_values_are_decompressed_unchanged(value in proptest::collection::vec(0u8..4, 0..3000)) {
            for codec in [Codec::Lz4, Codec::Zstd] {
                if let Some(stored) = compress(codec, &value) {
                    prop_assert!(stored.len() < value.len());
                    let stored = Bytes::from(stored);
                    prop_assert_eq!(decompress(codec, &stored, value.len()), Some(Bytes::from(value.clone())));
                    prop_assert_eq!(decompress(codec, &stored, value.len() + 1), None);
                }
            }
        }

        #[test]
        fn any_bytes_are_a_value_or_none(stored: Vec<u8>, len in 0usize..100_000) {
            for codec in [Codec::Lz4, Codec::Zstd] {
                let _ = decompress(codec, &Bytes::from(stored.clone()), len);
            }
        }
    }

    #[test]
    fn incompressible_values_are_stored_uncompressed() {
        assert_eq!(compress(Codec::Zstd, b"x"), None);
        assert_eq!(compress(Codec::None, &[0; 1000]), None);
        assert_eq!(decompress(Codec::Lz4, &Bytes::new(), usize::MAX), None);
    }
}
