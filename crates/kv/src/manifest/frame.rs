//! Frames of a manifest.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | magic |
//! | 4 | CRC-32C of what follows, padding not included |
//! | 8 | number of the manifest |
//! | 8 | number of the frame, from 0 |
//! | 4 | bytes of the records |
//! | | records, zeros up to a multiple of 4,096 |

use tanada_base::Reader;

const MAGIC: u32 = u32::from_be_bytes(*b"TKmf");

pub(crate) const FRAME_HEADER: usize = 28;

/// Frames begin and end on multiples of it.
pub(crate) const BLOCK: usize = 4096;

pub(crate) fn encode(manifest: u64, index: u64, records: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity((FRAME_HEADER + records.len()).next_multiple_of(BLOCK));
    frame.extend_from_slice(&MAGIC.to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&manifest.to_be_bytes());
    frame.extend_from_slice(&index.to_be_bytes());
    frame.extend_from_slice(&(records.len() as u32).to_be_bytes());
    frame.extend_from_slice(records);
    let checksum = crc32c::crc32c(&frame[8..]);
    frame[4..8].copy_from_slice(&checksum.to_be_bytes());
    frame.resize(frame.len().next_multiple_of(BLOCK), 0);
    frame
}

/// The number and the records of the frame that `bytes` begin with, if it is a whole one of this manifest.
pub(crate) fn decode(bytes: &[u8], manifest: u64) -> Option<(u64, &[u8])> {
    let mut reader = Reader::new(bytes);
    if reader.u32().ok()? != MAGIC {
        return None;
    }
    let checksum = reader.u32().ok()?;
    let found = reader.u64().ok()?;
    let index = reader.u64().ok()?;
    let len = reader.u32().ok()? as usize;
    let records = reader.take(len).ok()?;
    let checked = bytes.get(8..FRAME_HEADER + len)?;
    (found == manifest && crc32c::crc32c(checked) == checksum).then_some((index, records))
}

/// Returns whether `bytes`, where no whole frame begins, may be what a stop left of the frame with this number: they
/// begin with its header or with zeros. Everything that is written behind the last whole frame is one frame.
pub(crate) fn is_torn(bytes: &[u8], manifest: u64, index: u64) -> bool {
    let header = &bytes[..bytes.len().min(FRAME_HEADER)];
    let numbers = [manifest.to_be_bytes(), index.to_be_bytes()].concat();
    let is_its_own = header.starts_with(&MAGIC.to_be_bytes()) && header.get(8..24) == Some(&*numbers);
    is_its_own || header.iter().all(|byte| *byte == 0)
}

/// Returns whether `bytes`, without a whole frame at their beginning, may be what a stop left of the first frame of
/// this manifest and of nothing behind it: they begin with that frame's header or with zeros, and in none of the blocks
/// that follow another frame begins, be it whole or not.
pub(crate) fn is_torn_first(bytes: &[u8], manifest: u64) -> bool {
    let mut behind = bytes.chunks(BLOCK).skip(1);
    is_torn(bytes, manifest, 0) && behind.all(|block| !block.starts_with(&MAGIC.to_be_bytes()))
}

/// Bytes of a frame with this many bytes of records.
pub(crate) fn padded_len(records: usize) -> usize {
    (FRAME_HEADER + records).next_multiple_of(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_comes_back_or_is_refused(
            records in proptest::collection::vec(any::<u8>(), 0..6000),
            at in any::<proptest::sample::Index>(),
            bits in 1u8..,
        ) {
            let mut bytes = encode(7, 3, &records);
            prop_assert_eq!(bytes.len(), padded_len(records.len()));
            prop_assert_eq!(decode(&bytes, 7), Some((3, &records[..])));
            prop_assert_eq!(decode(&bytes, 8), None);
            let at = at.index(FRAME_HEADER + records.len());
            bytes[at] ^= bits;
            prop_assert_eq!(decode(&bytes, 7), None);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = (decode(&bytes, 0), is_torn_first(&bytes, 0));
        }

        #[test]
        fn a_first_frame_is_torn_only_if_nothing_was_appended(
            records in proptest::collection::vec(any::<u8>(), 0..9000),
            sectors: Vec<bool>,
        ) {
            let whole = encode(1, 0, &records);
            let is_written = |index: usize| sectors.get(index).copied().unwrap_or_default();
            let sectors = whole.chunks(512).enumerate();
            let torn = sectors.map(|(index, sector)| if is_written(index) { sector.to_vec() } else { vec![0; 512] });
            let torn = torn.collect::<Vec<_>>().concat();
            prop_assert!(is_torn_first(&torn, 1));
            prop_assert!(!is_torn_first(&[&torn[..], &encode(1, 1, b"more")].concat(), 1));
            prop_assert!(!is_torn_first(&encode(1, 3, &records), 1));
            prop_assert!(!is_torn_first(&encode(2, 0, &records), 1));
        }
    }
}
