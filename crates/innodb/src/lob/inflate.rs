//! A zlib stream that comes in parts and gives a value of a known length.

use flate2::{Decompress, FlushDecompress, Status};

/// Deflate makes no more bytes of one.
pub(super) const MOST_RATIO: u64 = 1032;
/// Bytes that are made at once.
const PIECE_BYTES: usize = 16 << 10;

/// A stream that is being inflated.
pub(super) struct Inflater {
    stream: Decompress,
    /// Bytes of the value that are still to come.
    left: usize,
}

impl Inflater {
    /// A stream that gives `length` bytes.
    pub(super) fn new(length: usize) -> Inflater {
        Inflater { stream: Decompress::new(true), left: length }
    }

    /// Appends what `part` gives to `value`; true if the stream has come to its end with all bytes. What follows in
    /// `part` is not read.
    ///
    /// # Errors
    /// The reason, if the stream is damaged, or gives more or fewer bytes.
    pub(super) fn feed(&mut self, mut part: &[u8], value: &mut Vec<u8>) -> Result<bool, String> {
        loop {
            let start = value.len();
            // One byte more than is left shows a stream that gives too much.
            value.resize(start + PIECE_BYTES.min(self.left + 1), 0);
            let (taken, given) = (self.stream.total_in(), self.stream.total_out());
            let status = self.stream.decompress(part, &mut value[start..], FlushDecompress::None);
            let taken = (self.stream.total_in() - taken) as usize;
            let given = (self.stream.total_out() - given) as usize;
            value.truncate(start + given);
            let status = status.map_err(|_| "does not inflate".to_owned())?;
            self.left = self.left.checked_sub(given).ok_or("gives more bytes than its length")?;
            part = part.get(taken..).unwrap_or_default();
            if status == Status::StreamEnd {
                return match self.left {
                    0 => Ok(true),
                    left => Err(format!("ends {left} bytes early")),
                };
            }
            if taken == 0 && given == 0 {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn deflated(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn inflated(stream: &[u8], part: usize, length: usize) -> Result<Option<Vec<u8>>, String> {
        let mut inflater = Inflater::new(length);
        let mut value = Vec::new();
        for part in stream.chunks(part) {
            if inflater.feed(part, &mut value)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    #[test]
    fn parts_of_any_length_give_the_value() {
        let bytes: Vec<u8> = (0..100_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
        let stream = deflated(&bytes);
        for part in [1, 7, 1000, stream.len()] {
            assert_eq!(inflated(&stream, part, bytes.len()).unwrap().as_ref(), Some(&bytes));
        }
    }

    #[test]
    fn other_lengths_and_cut_streams_are_told() {
        let stream = deflated(&[7; 40_000]);
        assert!(inflated(&stream, 10, 39_999).is_err());
        assert!(inflated(&stream, 10, 40_001).is_err());
        assert_eq!(inflated(&stream[..stream.len() - 1], 10, 40_000), Ok(None));
        let mut damaged = stream;
        damaged[0] ^= 1;
        assert!(inflated(&damaged, 10, 40_000).is_err());
    }
}
