//! Numbers, names and counts as bytes, for the formats of traces and memories.
//!
//! Numbers are LEB128, least significant seven bits first. A name is its length and UTF-8.
//!
//! Invariant: whatever the bytes, taking ends with a value or an error; nothing is allocated that the bytes cannot
//! fill.

use tanada_base::Reader;

/// What is wrong with bytes.
pub(crate) type Wrong = String;

/// Bytes of a name.
const LONGEST_NAME: usize = 4096;

/// Parts that anything may have.
const MOST_PARTS: usize = 65_536;

/// Adds a number.
pub(crate) fn put(number: u64, bytes: &mut Vec<u8>) {
    let mut rest = number;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Names that are longer are cut, at a character.
pub(crate) fn put_name(name: &str, bytes: &mut Vec<u8>) {
    let cut = (0..=LONGEST_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    put(cut as u64, bytes);
    bytes.extend_from_slice(&name.as_bytes()[..cut]);
}

pub(crate) fn byte(reader: &mut Reader<'_>) -> Result<u8, Wrong> {
    reader.u8().map_err(|error| error.to_string())
}

/// The next number.
pub(crate) fn take(reader: &mut Reader<'_>) -> Result<u64, Wrong> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = byte(reader)?;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            break;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(format!("the number before byte {} of the block has more than 64 bits", reader.position()))
}

pub(crate) fn narrow<T: TryFrom<u64>>(number: u64, what: &str) -> Result<T, Wrong> {
    T::try_from(number).map_err(|_| format!("{number} is too large for {what}"))
}

pub(crate) fn take_name(reader: &mut Reader<'_>) -> Result<String, Wrong> {
    let len: usize = narrow(take(reader)?, "a name's length")?;
    if len > LONGEST_NAME {
        return Err(format!("a name of {len} bytes, more than {LONGEST_NAME}"));
    }
    let bytes = reader.take(len).map_err(|error| error.to_string())?;
    String::from_utf8(bytes.to_vec()).map_err(|_| "a name that is no UTF-8".to_owned())
}

/// A count of things that take at least `least` bytes each.
pub(crate) fn take_count(reader: &mut Reader<'_>, least: usize) -> Result<usize, Wrong> {
    let count = take_long_count(reader, least)?;
    if count > MOST_PARTS {
        return Err(format!("{count} parts, more than {MOST_PARTS}"));
    }
    Ok(count)
}

/// The same, of things that are no larger in memory than a few of their least.
pub(crate) fn take_long_count(reader: &mut Reader<'_>, least: usize) -> Result<usize, Wrong> {
    let count: usize = narrow(take(reader)?, "a count")?;
    if count.saturating_mul(least) > reader.remaining() {
        return Err(format!("{count} parts, more than the block has bytes for"));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_and_too_long_ones_are_refused() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put(number, &mut bytes);
            let mut reader = Reader::new(&bytes);
            assert_eq!((take(&mut reader), reader.is_empty()), (Ok(number), true));
        }
        assert!(take(&mut Reader::new(&[0xff; 11])).unwrap_err().contains("64 bits"));
        assert!(take(&mut Reader::new(&[0x80])).is_err());
    }

    #[test]
    fn a_long_name_is_cut_at_a_character() {
        let mut bytes = Vec::new();
        put_name(&"é".repeat(3000), &mut bytes);
        let name = take_name(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(name.len(), 4096);
    }
}
