//! The `.xz` container around an LZMA2 stream, as far as one page needs it
//! (<https://tukaani.org/xz/xz-file-format.txt>).
//!
//! A stream header of 12 bytes, then a block header: its size / 4 - 1, flags, optional sizes, filters (id, size,
//! properties), padding, CRC32. Then the LZMA2 data. What follows (checks, index) is not needed: the page has its own
//! checksum and a known length. The dictionary size in the file is not believed: distances never exceed the output,
//! which is one page.

use std::io::Read;

use lzma_rust2::Lzma2Reader;
use tanada_base::Reader;

const MAGIC: [u8; 6] = [0xfd, b'7', b'z', b'X', b'Z', 0];
const LZMA2_FILTER: u64 = 0x21;

/// Decompresses into `output`, which must be filled exactly.
pub(super) fn decompress(input: &[u8], output: &mut [u8]) -> Result<(), String> {
    let data = lzma2_data(input).ok_or("no .xz stream with an LZMA2 block")?;
    let mut reader = Lzma2Reader::new(data, output.len() as u32, None);
    reader.read_exact(output).map_err(|error| error.to_string())?;
    match reader.read(&mut [0]) {
        Ok(0) => Ok(()),
        Ok(_) => Err("more than a page".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn lzma2_data(input: &[u8]) -> Option<&[u8]> {
    let mut stream = Reader::new(input);
    if stream.array::<6>().ok()? != MAGIC {
        return None;
    }
    stream.skip(6).ok()?;
    let header_size = usize::from(*stream.rest().first()?);
    // 0 would be the index: a stream without blocks.
    if header_size == 0 {
        return None;
    }
    let mut block = Reader::new(stream.take((header_size + 1) * 4).ok()?);
    block.skip(1).ok()?;
    let flags = block.u8().ok()?;
    let filters = (flags & 3) + 1;
    for present in [0x40, 0x80] {
        if flags & present != 0 {
            number(&mut block)?;
        }
    }
    (filters == 1 && number(&mut block)? == LZMA2_FILTER).then(|| stream.rest())
}

/// A number in groups of seven bits, lowest first.
fn number(reader: &mut Reader<'_>) -> Option<u64> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let byte = reader.u8().ok()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
