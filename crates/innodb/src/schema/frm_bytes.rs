//! Checked access to the little-endian bytes of a `.frm` file, by offset, since its parts point at each other.

use crate::{Error, ErrorKind, Result};

/// A piece of a `.frm`, with its offset in the file for messages.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a> {
    bytes: &'a [u8],
    start: usize,
}

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes { bytes, start: 0 }
    }
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }
    pub(super) fn as_slice(&self) -> &'a [u8] {
        self.bytes
    }
    /// `len` bytes at `offset`.
    pub(super) fn slice(&self, offset: usize, len: usize) -> Result<Bytes<'a>> {
        let end = offset.checked_add(len).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.past_the_end(offset, len))?;
        Ok(Bytes { bytes: &self.bytes[offset..end], start: self.start + offset })
    }
    /// All from `offset` on.
    pub(super) fn rest(&self, offset: usize) -> Result<Bytes<'a>> {
        self.slice(offset, self.bytes.len().saturating_sub(offset))
    }
    pub(super) fn u8(&self, offset: usize) -> Result<u8> {
        Ok(self.slice(offset, 1)?.bytes[0])
    }
    pub(super) fn u16(&self, offset: usize) -> Result<u16> {
        let bytes = self.slice(offset, 2)?.bytes;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }
    pub(super) fn u32(&self, offset: usize) -> Result<u32> {
        let bytes = self.slice(offset, 4)?.bytes;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
    /// A `u16` as a length or an offset.
    pub(super) fn size16(&self, offset: usize) -> Result<usize> {
        self.u16(offset).map(usize::from)
    }
    /// A `u32` as a length or an offset.
    pub(super) fn size32(&self, offset: usize) -> Result<usize> {
        Ok(usize::try_from(self.u32(offset)?).unwrap_or(usize::MAX))
    }

    fn past_the_end(&self, offset: usize, len: usize) -> Error {
        let at = self.start.saturating_add(offset);
        corrupt(format!("{len} bytes wanted at offset {at}, where this part of the .frm has ended"))
    }
}

pub(super) fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, message)
}

/// The names in a list: the first byte is the separator, each name is followed by it, and a zero ends the list.
/// Returns the names and the bytes used.
pub(super) fn names<'a>(list: Bytes<'a>) -> Result<(Vec<&'a [u8]>, usize)> {
    let separator = list.u8(0)?;
    if separator == 0 {
        return Ok((Vec::new(), 1));
    }
    let mut names = Vec::new();
    let mut offset = 1;
    while list.u8(offset)? != 0 {
        let rest = list.rest(offset)?.bytes;
        let len = rest.iter().position(|byte| *byte == separator);
        let len = len.ok_or_else(|| corrupt("a list of names in the .frm has no end"))?;
        names.push(&rest[..len]);
        offset += len + 1;
    }
    Ok((names, offset + 1))
}
