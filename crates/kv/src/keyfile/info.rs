//! What is known of a key file without opening it.

use bytes::Bytes;

use crate::entry::{SegmentNo, SequenceNo};
use crate::wire::{Decoder, Malformed, put_blob, put_varint};

/// The references of a key file to one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentReferences {
    pub(crate) segment: SegmentNo,
    pub(crate) values: u64,
    pub(crate) stored_bytes: u64,
}

/// The summary of a key file. Its key range includes range tombstones, so nothing outside of `first_key..=last_key` is
/// affected by it; but the end of a range tombstone is not a key that it holds, see
/// [`range_end`](KeyFileInfo::range_end).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KeyFileInfo {
    /// Versions, point deletes among them.
    pub(crate) entries: u64,
    pub(crate) deletes: u64,
    pub(crate) range_tombstones: u64,
    /// Bytes of all keys, once a version.
    pub(crate) key_bytes: u64,
    /// Bytes of values that lie in the key file itself.
    pub(crate) inline_bytes: u64,
    /// Size of the file.
    pub(crate) size_bytes: u64,
    /// Smallest key of a version; empty if there is none.
    pub(crate) first_key: Bytes,
    /// Largest key of a version.
    pub(crate) last_key: Bytes,
    pub(crate) smallest_sequence: SequenceNo,
    pub(crate) largest_sequence: SequenceNo,
    /// Expiry of the version that expires first, in seconds since 1970.
    pub(crate) first_expiry_s: Option<u32>,
    /// By segment, ascending.
    pub(crate) references: Vec<SegmentReferences>,
}

impl KeyFileInfo {
    /// Bytes of values outside of the key file.
    pub(crate) fn referenced_bytes(&self) -> u64 {
        self.references.iter().map(|references| references.stored_bytes).sum()
    }

    /// Bytes of keys and values, wherever they lie.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.key_bytes + self.inline_bytes + self.referenced_bytes()
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let numbers = [
            self.entries,
            self.deletes,
            self.range_tombstones,
            self.key_bytes,
            self.inline_bytes,
            self.size_bytes,
            self.smallest_sequence,
            self.largest_sequence,
            self.first_expiry_s.map_or(0, |expiry| u64::from(expiry) + 1),
        ];
        for number in numbers {
            put_varint(out, number);
        }
        put_blob(out, &self.first_key);
        put_blob(out, &self.last_key);
        put_varint(out, self.references.len() as u64);
        for references in &self.references {
            put_varint(out, references.segment);
            put_varint(out, references.values);
            put_varint(out, references.stored_bytes);
        }
    }

    pub(crate) fn decode(decoder: &mut Decoder<'_>) -> Result<KeyFileInfo, Malformed> {
        let mut info = KeyFileInfo {
            entries: decoder.varint()?,
            deletes: decoder.varint()?,
            range_tombstones: decoder.varint()?,
            key_bytes: decoder.varint()?,
            inline_bytes: decoder.varint()?,
            size_bytes: decoder.varint()?,
            smallest_sequence: decoder.varint()?,
            largest_sequence: decoder.varint()?,
            ..KeyFileInfo::default()
        };
        info.first_expiry_s = match decoder.varint()? {
            0 => None,
            expiry => {
                Some(u32::try_from(expiry - 1).map_err(|_| decoder.malformed("an expiry is too large"))?)
            }
        };
        info.first_key = Bytes::copy_from_slice(decoder.blob()?);
        info.last_key = Bytes::copy_from_slice(decoder.blob()?);
        for _ in 0..decoder.varint()? {
            let references = SegmentReferences {
                segment: decoder.varint()?,
                values: decoder.varint()?,
                stored_bytes: decoder.varint()?,
            };
            if info.references.last().is_some_and(|last| last.segment >= references.segment) {
                return Err(decoder.malformed("references are not in the order of their segments"));
            }
            info.references.push(references);
        }
        Ok(info)
    }
}
