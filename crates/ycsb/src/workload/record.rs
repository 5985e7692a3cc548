//! Records: their keys and what is in them.
//!
//! A key is `user` and the hash of the record's number (`insertorder=hashed`), with zeros before it if a width is asked
//! for. A value is the fields one after the other, without names: all are of one length, so nothing else is needed to
//! find them.
//!
//! A field begins with a random stamp; the rest follows from record, field and stamp. So whoever reads a field can tell
//! whether it is one that was written there, whole. The bytes do not compress.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tanada_base::SplitMix64;

use crate::draw::fnv_hash_64;
use crate::{Error, Result};

/// What keys begin with.
const PREFIX: &[u8] = b"user";

/// Bytes of a field's stamp.
const STAMP: usize = 8;

/// What the records of a data set are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// Records that are loaded.
    pub count: u64,
    /// Fields of a record.
    pub fields: usize,
    /// Bytes of a field, at least 8.
    pub field_bytes: usize,
    /// Least digits of a key's number.
    pub zero_padding: usize,
}

impl Default for Records {
    /// A million records of ten fields of 100 bytes.
    fn default() -> Records {
        Records { count: 1_000_000, fields: 10, field_bytes: 100, zero_padding: 1 }
    }
}

/// A place in a record: whose field it is decides what can be in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The record's number.
    pub record: u64,
    /// The field's number.
    pub field: usize,
}

impl Field {
    /// What follows a stamp.
    fn after(self, stamp: u64) -> SplitMix64 {
        SplitMix64::new(stamp ^ fnv_hash_64(self.record) ^ (self.field as u64) << 56)
    }

    /// Fills the field.
    fn fill(self, stamp: u64, bytes: &mut [u8]) {
        let (head, rest) = bytes.split_at_mut(STAMP.min(bytes.len()));
        head.copy_from_slice(&stamp.to_le_bytes()[..head.len()]);
        self.after(stamp).fill(rest);
    }

    /// Whether the bytes were written to this field.
    pub fn is_own(self, bytes: &[u8]) -> bool {
        let Some((head, rest)) = bytes.split_first_chunk::<STAMP>() else { return false };
        let mut expected = self.after(u64::from_le_bytes(*head));
        rest.chunks(8).all(|chunk| chunk == &expected.next_u64().to_le_bytes()[..chunk.len()])
    }
}

impl Records {
    /// Whether so many can be made.
    ///
    /// # Errors
    /// `InvalidInput` if not.
    pub fn check(&self) -> Result<()> {
        if (1..=1 << 40).contains(&self.count) {
            return Ok(());
        }
        Err(Error::invalid(format!("{} records: from 1 to 2^40 are possible", self.count)))
    }

    /// Bytes of a value.
    pub fn value_bytes(&self) -> usize {
        self.fields * self.field_bytes
    }

    /// Bytes of keys and values of `count` records. A key has 23 bytes but for one in ten, which is shorter.
    pub fn logical_bytes(&self, count: u64) -> u64 {
        count * (self.value_bytes() + self.key(0).len()) as u64
    }

    /// The key of a record.
    pub fn key(&self, record: u64) -> Bytes {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(fnv_hash_64(record)).as_bytes();
        let zeros = self.zero_padding.saturating_sub(digits.len());
        let mut key = Vec::with_capacity(PREFIX.len() + zeros + digits.len());
        key.extend_from_slice(PREFIX);
        key.resize(PREFIX.len() + zeros, b'0');
        key.extend_from_slice(digits);
        key.into()
    }

    /// A value of a record.
    pub fn value(&self, record: u64, random: &mut SplitMix64) -> Bytes {
        let mut bytes = vec![0; self.value_bytes()];
        for (field, bytes) in bytes.chunks_mut(self.field_bytes.max(1)).enumerate() {
            Field { record, field }.fill(random.next_u64(), bytes);
        }
        bytes.into()
    }

    /// The value with one field written anew.
    pub fn with_field(&self, value: &[u8], place: Field, random: &mut SplitMix64) -> Bytes {
        let mut bytes = value.to_vec();
        let from = place.field * self.field_bytes;
        if let Some(bytes) = bytes.get_mut(from..from + self.field_bytes) {
            place.fill(random.next_u64(), bytes);
        }
        bytes.into()
    }

    /// Whether a value can be the record's, by its length and one of its fields.
    pub fn is_value(&self, value: &[u8], place: Field) -> bool {
        let from = place.field * self.field_bytes;
        value.len() == self.value_bytes()
            && value.get(from..from + self.field_bytes).is_some_and(|bytes| place.is_own(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_ycsb() {
        let records = Records::default();
        assert_eq!(records.key(0), "user6284781860667377211");
        assert_eq!(Records { zero_padding: 24, ..records }.key(0), "user000006284781860667377211");
        assert_eq!((records.value_bytes(), records.logical_bytes(10)), (1000, 10_230));
    }

    #[test]
    fn a_value_is_known_as_its_records_own() {
        let records = Records::default();
        let mut random = SplitMix64::new(1);
        let value = records.value(5, &mut random);
        let is_value =
            |value: &[u8], record| (0..10).all(|field| records.is_value(value, Field { record, field }));
        assert!(is_value(&value, 5) && !is_value(&value, 6));
        let changed = records.with_field(&value, Field { record: 5, field: 3 }, &mut random);
        assert!(is_value(&changed, 5));
        let differing = changed.iter().zip(&value).enumerate().filter(|(_, (a, b))| a != b);
        assert!(differing.map(|(at, _)| at / 100).all(|field| field == 3));
        let mut torn = value.to_vec();
        torn[50] ^= 1;
        assert!(!is_value(&torn, 5) && !is_value(&value[..999], 5));
    }
}
