//! The header of a compressed page: it describes the image behind it.
//!
//! Big-endian, 32 bytes:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | magic `TNPG` |
//! | 4 | 1 | version, 1 |
//! | 5 | 1 | algorithm: 1 LZ4, 2 Zstandard, 3 zlib |
//! | 6 | 2 | identifier of the key, 0: not encrypted |
//! | 8 | 4 | bytes of the page |
//! | 12 | 4 | bytes of the compressed page; the image is filled up with zeros to a multiple of 16 bytes |
//! | 16 | 12 | zeros |
//! | 28 | 4 | CRC-32C of the volume's id, the object's number, the page's number, the bytes 0 to 27, and the image |
//!
//! The checksum covers whose page it is: the image of another page, object or volume is refused, also where a write was
//! misdirected.

use std::num::NonZeroU16;

use tanada_base::{ReadError, Reader};

use super::{Algorithm, Form, PageId};
use crate::{Error, ErrorKind, Result};

pub(super) const HEADER_BYTES: usize = 32;
const CHECKSUM_AT: usize = HEADER_BYTES - 4;
const MAGIC: [u8; 4] = *b"TNPG";
const VERSION: u8 = 1;

/// Images are padded to the blocks of the cipher.
const PADDING: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) form: Form,
    pub(super) page_bytes: u32,
    pub(super) payload_bytes: u32,
}

/// Bytes of an image with this payload.
pub(super) fn padded(payload_bytes: usize) -> usize {
    payload_bytes.next_multiple_of(PADDING)
}

fn checksum(volume: [u8; 16], page: PageId, header: &[u8], image: &[u8]) -> u32 {
    let mut sum = crc32c::crc32c(&volume);
    sum = crc32c::crc32c_append(sum, &page.object.to_be_bytes());
    sum = crc32c::crc32c_append(sum, &page.page.to_be_bytes());
    sum = crc32c::crc32c_append(sum, &header[..CHECKSUM_AT]);
    crc32c::crc32c_append(sum, image)
}

impl Header {
    /// Writes the header before `stored`'s image, which is there already.
    pub(super) fn encode(&self, volume: [u8; 16], page: PageId, stored: &mut [u8]) {
        let (header, rest) = stored.split_at_mut(HEADER_BYTES);
        header.fill(0);
        header[..4].copy_from_slice(&MAGIC);
        header[4] = VERSION;
        header[5] = self.form.algorithm as u8;
        header[6..8].copy_from_slice(&self.form.key.map_or(0, NonZeroU16::get).to_be_bytes());
        header[8..12].copy_from_slice(&self.page_bytes.to_be_bytes());
        header[12..16].copy_from_slice(&self.payload_bytes.to_be_bytes());
        let sum = checksum(volume, page, header, &rest[..padded(self.payload_bytes as usize)]);
        header[CHECKSUM_AT..].copy_from_slice(&sum.to_be_bytes());
    }

    /// The header of `stored` and the image behind it, both verified.
    pub(super) fn decode(volume: [u8; 16], page: PageId, stored: &[u8]) -> Result<(Header, &[u8])> {
        let found = Header::fields(stored);
        let damaged = |why: String| Error::corrupted(format!("{page} is damaged: {why}"));
        let (version, header, sum) = found.map_err(|error| damaged(error.to_string()))?.map_err(damaged)?;
        if version > VERSION {
            let message = format!(
                "{page} has format version {version}, this program knows {VERSION}: use a later version of it"
            );
            return Err(Error::new(ErrorKind::FutureFormat, message));
        }
        let image = stored[HEADER_BYTES..].get(..padded(header.payload_bytes as usize));
        let image = image.ok_or_else(|| damaged(format!("an image of {} bytes", header.payload_bytes)))?;
        if checksum(volume, page, &stored[..HEADER_BYTES], image) != sum {
            return Err(damaged("its checksum is wrong".to_owned()));
        }
        Ok((header, image))
    }

    /// Version, header and checksum, as far as each makes sense for itself.
    fn fields(stored: &[u8]) -> Result<Result<(u8, Header, u32), String>, ReadError> {
        let mut reader = Reader::at(stored, 0)?;
        if reader.array::<4>()? != MAGIC {
            return Ok(Err("it does not begin as a compressed page".to_owned()));
        }
        let (version, algorithm, key) = (reader.u8()?, reader.u8()?, reader.u16()?);
        let (page_bytes, payload_bytes) = (reader.u32()?, reader.u32()?);
        let zeros = reader.array::<12>()?;
        let sum = reader.u32()?;
        if version > VERSION {
            let header = Header { form: Form::default(), page_bytes, payload_bytes };
            return Ok(Ok((version, header, sum)));
        }
        let known = Algorithm::from_number(algorithm).filter(|algorithm| *algorithm != Algorithm::None);
        let Some(algorithm) = known else { return Ok(Err(format!("an algorithm of number {algorithm}"))) };
        if version == 0 || zeros != [0; 12] || payload_bytes == 0 || payload_bytes >= page_bytes {
            return Ok(Err("its header makes no sense".to_owned()));
        }
        let form = Form { algorithm, key: NonZeroU16::new(key) };
        Ok(Ok((version, Header { form, page_bytes, payload_bytes }, sum)))
    }
}
