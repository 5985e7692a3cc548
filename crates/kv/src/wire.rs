//! Numbers and byte strings as they are written: a checked decoder, and what it decodes.
//!
//! Numbers of fixed width are big-endian. A *varint* has seven bits a byte, the lowest first, the high bit set on all
//! but the last byte. A *blob* is a varint of its length, then its bytes.
//!
//! Decoders are pure functions of bytes: they know no object and no offset in it. Who reads adds those to a
//! [`Malformed`].

use std::fmt;

use crate::{Error, ErrorKind, Result};

/// Bytes that are not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed {
    /// Offset from the first decoded byte.
    pub(crate) at: usize,
    pub(crate) what: &'static str,
    pub(crate) newer: Option<Newer>,
}

/// A valid encoding that only a later version of the program knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Newer {
    /// A number of a kind or a format that is larger than all `known` ones.
    Numbered { found: u64, known: u64 },
    /// Settings that are not known.
    Settings,
}

impl Malformed {
    pub(crate) fn new(at: usize, what: &'static str) -> Malformed {
        Malformed { at, what, newer: None }
    }

    /// The error to report: these bytes began at `offset` of `object`.
    pub(crate) fn of(self, object: impl fmt::Display, offset: u64) -> Error {
        let (what, at, object) = (self.what, offset + self.at as u64, object.to_string());
        match self.newer {
            None => Error::corrupted(format!("object {object:?}: {what} at offset {at}")),
            Some(newer) => {
                let numbers = match newer {
                    Newer::Numbered { found, known } => {
                        (format!(" {found}"), format!("knows {known} at most"))
                    }
                    Newer::Settings => (String::new(), "does not know all of them".to_owned()),
                };
                let message = format!(
                    "object {object:?}: {what}{} at offset {at}, and this program {}: a later version of it wrote that",
                    numbers.0, numbers.1
                );
                Error::new(ErrorKind::FutureFormat, message)
            }
        }
    }
}

pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(crate) fn put_blob(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Walks bytes forwards; nothing is read past the end.
#[derive(Debug, Clone)]
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes, at: 0 }
    }

    /// Begins at byte `at`; what is read past the end fails.
    #[inline]
    pub(crate) fn at(bytes: &'a [u8], at: usize) -> Decoder<'a> {
        Decoder { bytes, at }
    }

    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    #[inline]
    pub(crate) fn malformed(&self, what: &'static str) -> Malformed {
        Malformed::new(self.at, what)
    }

    /// Returns the error for a kind or format above all `known` ones.
    pub(crate) fn unknown(&self, what: &'static str, found: impl Into<u64>, known: u64) -> Malformed {
        match found.into() {
            found if found > known => {
                Malformed { newer: Some(Newer::Numbered { found, known }), ..self.malformed(what) }
            }
            _ => self.malformed("an unknown kind"),
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else { return Err(self.malformed("bytes are missing")) };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    #[inline]
    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        let mut shift = 0;
        loop {
            let Some(byte) = self.bytes.get(self.at) else {
                return Err(self.malformed("a number is cut off"));
            };
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(self.malformed("a number is too large"));
            }
            value |= bits << shift;
            self.at += 1;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
            shift += 7;
            if shift > 63 {
                return Err(self.malformed("a number is too long"));
            }
        }
    }

    /// A varint that is a length or an offset in memory.
    #[inline]
    pub(crate) fn varint_usize(&mut self) -> Result<usize, Malformed> {
        let at = self.at;
        usize::try_from(self.varint()?).map_err(|_| Malformed::new(at, "a length is too large"))
    }

    #[inline]
    pub(crate) fn varint_u32(&mut self) -> Result<u32, Malformed> {
        let at = self.at;
        u32::try_from(self.varint()?).map_err(|_| Malformed::new(at, "a number is too large"))
    }

    #[inline]
    pub(crate) fn blob(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.varint_usize()?;
        self.take(len)
    }

    /// Nothing may be left.
    pub(crate) fn finish(&self) -> Result<(), Malformed> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.malformed("there are bytes too many")) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn encoded_numbers_and_blobs_are_decoded(numbers: Vec<u64>, blob: Vec<u8>) {
            let mut out = Vec::new();
            for number in &numbers {
                put_varint(&mut out, *number);
            }
            put_blob(&mut out, &blob);
            let mut decoder = Decoder::new(&out);
            for number in &numbers {
                prop_assert_eq!(decoder.varint(), Ok(*number));
            }
            prop_assert_eq!(decoder.blob(), Ok(&*blob));
            prop_assert_eq!(decoder.finish(), Ok(()));
            prop_assert!(decoder.u8().is_err());
        }

        #[test]
        fn any_bytes_give_a_number_or_an_error(bytes: Vec<u8>) {
            let mut decoder = Decoder::new(&bytes);
            while decoder.varint().is_ok() {}
            prop_assert!(decoder.position() <= bytes.len());
        }
    }

    #[test]
    fn a_number_past_64_bits_is_refused() {
        assert!(Decoder::new(&[0xff; 9]).varint().is_err());
        let mut largest = vec![0xff; 9];
        largest.push(1);
        assert_eq!(Decoder::new(&largest).varint(), Ok(u64::MAX));
        largest[9] = 2;
        assert!(Decoder::new(&largest).varint().is_err());
    }
}
