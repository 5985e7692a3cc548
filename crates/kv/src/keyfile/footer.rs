//! The end of a key file: where everything is.
//!
//! ```text
//! pages    leaves, then the index from its lowest level to its root, then the filter
//! tail     the file's information, then its range tombstones; up to a boundary of blocks
//! footer   magic, format u16, levels u8, filter hashes u16, unit bytes u32, file number u64,
//!          root page u32, its units u16, filter's first page u32, its parts u32,
//!          end of the leaves u32, tail offset u64, tail length u64, tail checksum u32; zeros;
//!          checksum u32 over all before: one block
//! ```

use bytes::Bytes;
use tanada_volume::BLOCK_BYTES;

use super::filter::FilterShape;
use super::info::KeyFileInfo;
use super::page::PageAddress;
use crate::entry::RangeTombstone;
use crate::wire::{Decoder, Malformed, put_blob, put_varint};

pub(super) const FOOTER_BYTES: usize = BLOCK_BYTES as usize;

const MAGIC: &[u8; 8] = b"TANADAKF";
/// The format that is written. Format 1 has no first homes of values and is otherwise the same.
pub(crate) const FORMAT: u16 = 2;

/// Most levels of an index; more are damage.
pub(super) const MAX_LEVELS: u8 = 16;

/// The contents of a footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(super) file_no: u64,
    pub(super) unit_bytes: u32,
    /// Level and address of the index root; level 0 if the root is a leaf. `None` without versions.
    pub(super) root: Option<(u8, PageAddress)>,
    /// The unit behind the last leaf page.
    pub(super) leaves_end: u32,
    pub(super) filter: FilterShape,
    pub(super) tail_offset: u64,
    pub(super) tail_bytes: u64,
    pub(super) tail_checksum: u32,
}

/// Why a footer cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FooterError {
    Malformed(Malformed),
    /// Written by a later version of the program.
    Future(u16),
}

impl From<Malformed> for FooterError {
    fn from(malformed: Malformed) -> FooterError {
        FooterError::Malformed(malformed)
    }
}

impl Footer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (levels, root) = self.root.unwrap_or((0, PageAddress { no: 0, units: 0 }));
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&FORMAT.to_be_bytes());
        out.push(levels);
        out.extend_from_slice(&self.filter.hashes.to_be_bytes());
        out.extend_from_slice(&self.unit_bytes.to_be_bytes());
        out.extend_from_slice(&self.file_no.to_be_bytes());
        out.extend_from_slice(&root.no.to_be_bytes());
        out.extend_from_slice(&root.units.to_be_bytes());
        out.extend_from_slice(&self.filter.first_page.to_be_bytes());
        out.extend_from_slice(&self.filter.parts.to_be_bytes());
        out.extend_from_slice(&self.leaves_end.to_be_bytes());
        out.extend_from_slice(&self.tail_offset.to_be_bytes());
        out.extend_from_slice(&self.tail_bytes.to_be_bytes());
        out.extend_from_slice(&self.tail_checksum.to_be_bytes());
        out.resize(FOOTER_BYTES - 4, 0);
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&checksum.to_be_bytes());
        out
    }

    /// The footer of file `file_no` in the block that begins at `offset` of its object.
    pub(crate) fn parse(block: &[u8], file_no: u64, offset: u64) -> Result<Footer, FooterError> {
        let Some((body, checksum)) = block.split_last_chunk::<4>().filter(|_| block.len() == FOOTER_BYTES)
        else {
            return Err(Malformed::new(0, "a key file's footer is cut off").into());
        };
        if crc32c::crc32c(body) != u32::from_be_bytes(*checksum) {
            return Err(Malformed::new(0, "the checksum of a key file's footer is wrong").into());
        }
        let mut decoder = Decoder::new(body);
        if decoder.take(MAGIC.len())? != MAGIC {
            return Err(Malformed::new(0, "not a key file").into());
        }
        let format = decoder.u16()?;
        if !(1..=FORMAT).contains(&format) {
            return Err(FooterError::Future(format));
        }
        let levels = decoder.u8()?;
        let hashes = decoder.u16()?;
        let unit_bytes = decoder.u32()?;
        if decoder.u64()? != file_no {
            return Err(decoder.malformed("the footer of another key file").into());
        }
        let root = PageAddress { no: decoder.u32()?, units: decoder.u16()? };
        let filter = FilterShape { first_page: decoder.u32()?, parts: decoder.u32()?, hashes };
        let footer = Footer {
            file_no,
            unit_bytes,
            root: (root.units > 0).then_some((levels, root)),
            filter,
            leaves_end: decoder.u32()?,
            tail_offset: decoder.u64()?,
            tail_bytes: decoder.u64()?,
            tail_checksum: decoder.u32()?,
        };
        let tail_fits = footer.tail_offset.checked_add(footer.tail_bytes).is_some_and(|end| end <= offset);
        let filter_fits = filter.first_page.checked_add(filter.parts).is_some();
        let unit_fits = unit_bytes.is_multiple_of(BLOCK_BYTES as u32) && (1..=65536).contains(&unit_bytes);
        if !tail_fits || !filter_fits || !unit_fits || levels > MAX_LEVELS {
            return Err(decoder.malformed("a key file's footer contradicts itself").into());
        }
        Ok(footer)
    }
}

pub(super) fn encode_tail(info: &KeyFileInfo, tombstones: &[RangeTombstone]) -> Vec<u8> {
    let mut out = Vec::new();
    info.encode(&mut out);
    put_varint(&mut out, tombstones.len() as u64);
    for tombstone in tombstones {
        put_varint(&mut out, tombstone.sequence);
        put_blob(&mut out, &tombstone.start);
        out.push(u8::from(tombstone.end.is_some()));
        if let Some(end) = &tombstone.end {
            put_blob(&mut out, end);
        }
    }
    out
}

/// Parses a tail whose checksum is verified.
pub(crate) fn parse_tail(bytes: &[u8]) -> Result<(KeyFileInfo, Vec<RangeTombstone>), Malformed> {
    let mut decoder = Decoder::new(bytes);
    let info = KeyFileInfo::decode(&mut decoder)?;
    let mut tombstones = Vec::new();
    for _ in 0..decoder.varint()? {
        let sequence = decoder.varint()?;
        let start = Bytes::copy_from_slice(decoder.blob()?);
        let end = match decoder.u8()? {
            0 => None,
            1 => Some(Bytes::copy_from_slice(decoder.blob()?)),
            _ => return Err(decoder.malformed("neither an end of a range nor none")),
        };
        tombstones.push(RangeTombstone { start, end, sequence });
    }
    decoder.finish()?;
    Ok((info, tombstones))
}
