//! A checked reader of big-endian bytes.
//!
//! Bytes from a disk or a network are never indexed: they are read through a [`Reader`], which answers a read past the
//! end with an error that says where. Invariant: the position never exceeds the length.

use std::fmt;

/// A read past the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadError {
    /// Where the read began.
    pub offset: usize,
    /// Bytes wanted.
    pub wanted: usize,
    /// Bytes there.
    pub available: usize,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ReadError { offset, wanted, available } = self;
        write!(f, "{wanted} bytes wanted at offset {offset}, {available} there")
    }
}

impl std::error::Error for ReadError {}

/// Walks a byte slice forwards; numbers are big-endian, as InnoDB stores them.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, position: 0 }
    }

    /// A reader of `bytes` that starts at `offset`.
    ///
    /// # Errors
    /// If `offset` lies past the end.
    pub fn at(bytes: &'a [u8], offset: usize) -> Result<Reader<'a>, ReadError> {
        let mut reader = Reader::new(bytes);
        reader.seek(offset)?;
        Ok(reader)
    }

    /// Bytes read or skipped so far.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Whether no byte is left.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The bytes left, without moving.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// Moves to `offset` from the start; the end itself is allowed.
    ///
    /// # Errors
    /// If `offset` lies past the end; the position stays.
    pub fn seek(&mut self, offset: usize) -> Result<(), ReadError> {
        if offset > self.bytes.len() {
            return Err(ReadError { offset, wanted: 0, available: self.bytes.len() });
        }
        self.position = offset;
        Ok(())
    }

    /// The next `len` bytes.
    ///
    /// # Errors
    /// If fewer are left; the position stays. The same holds for every read below.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], ReadError> {
        let taken = self.rest().get(..len).ok_or(ReadError {
            offset: self.position,
            wanted: len,
            available: self.remaining(),
        })?;
        self.position += len;
        Ok(taken)
    }

    /// Passes over `len` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn skip(&mut self, len: usize) -> Result<(), ReadError> {
        self.take(len).map(|_| ())
    }

    /// The next `N` bytes by value.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// One byte.
    ///
    /// # Errors
    /// At the end.
    pub fn u8(&mut self) -> Result<u8, ReadError> {
        self.array().map(u8::from_be_bytes)
    }

    /// Two bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn u16(&mut self) -> Result<u16, ReadError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Three bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn u24(&mut self) -> Result<u32, ReadError> {
        self.array().map(|[a, b, c]: [u8; 3]| u32::from_be_bytes([0, a, b, c]))
    }

    /// Four bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn u32(&mut self) -> Result<u32, ReadError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Six bytes, the width of a row id or a transaction id.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn u48(&mut self) -> Result<u64, ReadError> {
        self.array().map(|[a, b, c, d, e, f]: [u8; 6]| u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
    }

    /// Eight bytes.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn u64(&mut self) -> Result<u64, ReadError> {
        self.array().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_is_big_endian() {
        let bytes: Vec<u8> = (1..=24).collect();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.u8(), Ok(0x01));
        assert_eq!(reader.u16(), Ok(0x0203));
        assert_eq!(reader.u24(), Ok(0x0004_0506));
        assert_eq!(reader.u32(), Ok(0x0708_090a));
        assert_eq!(reader.u48(), Ok(0x0b0c_0d0e_0f10));
        assert_eq!(reader.u64(), Ok(0x1112_1314_1516_1718));
        assert!(reader.is_empty());
    }

    #[test]
    fn a_failed_read_says_where_and_does_not_move() {
        let mut reader = Reader::at(&[1, 2, 3], 1).unwrap();
        assert_eq!(reader.u32(), Err(ReadError { offset: 1, wanted: 4, available: 2 }));
        assert_eq!(reader.take(usize::MAX).unwrap_err().available, 2);
        assert_eq!(reader.position(), 1);
        assert_eq!(reader.u16(), Ok(0x0203));
        assert!(reader.skip(1).is_err());
    }

    #[test]
    fn seeking_stops_at_the_end() {
        let mut reader = Reader::new(&[0; 4]);
        assert_eq!(reader.seek(4), Ok(()));
        assert_eq!(reader.remaining(), 0);
        assert!(reader.seek(5).is_err());
        assert!(Reader::at(&[], 1).is_err());
    }
}
