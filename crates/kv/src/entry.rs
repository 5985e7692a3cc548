//! What a store holds: versions of keys, and ranges that were deleted.
//!
//! Versions are ordered by key ascending, then by sequence number descending, so that the newest version of a key comes
//! first. A version is visible to a snapshot whose sequence number is not smaller. A range tombstone hides all older
//! versions of the keys in its range.

use bytes::Bytes;

/// A commit's number: higher is later. All operations of one batch or transaction share one.
pub(crate) type SequenceNo = u64;

/// The number of a log or value segment of a database; never given twice.
pub(crate) type SegmentNo = u64;

/// Longest key.
pub const LONGEST_KEY: usize = 64 << 10;

/// Longest value.
pub const LONGEST_VALUE: usize = 64 << 20;

/// A key with a value behind it, in one piece of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    bytes: Bytes,
    key_len: u32,
}

impl Pair {
    /// The first `key_len` bytes are the key.
    pub(crate) fn new(bytes: Bytes, key_len: usize) -> Pair {
        Pair { bytes, key_len: key_len as u32 }
    }

    /// Copies of both.
    pub(crate) fn copied(key: &[u8], value: &[u8]) -> Pair {
        Pair::new([key, value].concat().into(), key.len())
    }

    /// The same where `copy` puts it, and what else that says.
    pub(crate) fn copied_to<T>(self, copy: impl FnOnce(&[u8]) -> (Bytes, T)) -> (Pair, T) {
        let (bytes, said) = copy(&self.bytes);
        (Pair { bytes, key_len: self.key_len }, said)
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.bytes[..self.key_len as usize]
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes[self.key_len as usize..]
    }

    /// A copy of the key.
    pub(crate) fn copied_key(&self) -> Bytes {
        Bytes::copy_from_slice(self.key())
    }

    /// A copy of the value.
    pub(crate) fn copied_value(&self) -> Bytes {
        Bytes::copy_from_slice(self.value())
    }

    /// The same in memory that nobody shares.
    pub(crate) fn into_own(self) -> Pair {
        match self.bytes.is_unique() {
            true => self,
            false => Pair { bytes: Bytes::copy_from_slice(&self.bytes), key_len: self.key_len },
        }
    }

    /// The value, which holds on to the memory of both.
    pub(crate) fn shared_value(&self) -> Bytes {
        self.bytes.slice(self.key_len as usize..)
    }

    /// Bytes of both.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// The compression of a stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Codec {
    #[default]
    None = 0,
    Lz4 = 1,
    Zstd = 2,
}

impl Codec {
    /// Returns the codec that formats write as this number.
    pub(crate) fn from_byte(byte: u8) -> Option<Codec> {
        [Codec::None, Codec::Lz4, Codec::Zstd].into_iter().find(|codec| *codec as u8 == byte)
    }
}

/// The place of a value in a log segment or a value segment; both look the same from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) segment: SegmentNo,
    /// Offset of the first stored byte.
    pub(crate) offset: u64,
    pub(crate) stored_len: u32,
    /// The value's length; differs from `stored_len` if it is compressed.
    pub(crate) len: u32,
    pub(crate) codec: Codec,
    /// CRC-32C of the stored bytes.
    pub(crate) checksum: u32,
}

impl Pointer {
    /// Returns whether `stored` is what was written.
    pub(crate) fn leads_to(&self, stored: &[u8]) -> bool {
        crc32c::crc32c(stored) == self.checksum
    }
}

/// The place where the log wrote a value that has moved since; the bytes are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstHome {
    pub(crate) segment: SegmentNo,
    pub(crate) offset: u64,
}

/// The contents of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    Deleted,
    Inline(Bytes),
    At(Pointer),
}

impl Content {
    /// Bytes of a value as they are stored apart from keys; 0 if there is none.
    pub(crate) fn stored_bytes(&self) -> u32 {
        match self {
            Content::At(pointer) => pointer.stored_len,
            Content::Deleted | Content::Inline(_) => 0,
        }
    }
}

/// One version of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) sequence: SequenceNo,
    /// Seconds since 1970 from which on it counts as deleted.
    pub(crate) expires_s: Option<u32>,
    pub(crate) content: Content,
    /// A second place of a value that is kept apart, valid as long as the tree has that segment as a mirror.
    pub(crate) mirror: Option<FirstHome>,
}

impl Version {
    /// Without a mirror.
    pub(crate) fn new(sequence: SequenceNo, expires_s: Option<u32>, content: Content) -> Version {
        Version { sequence, expires_s, content, mirror: None }
    }
}

/// Hides the versions of the keys in a range that are older than it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RangeTombstone {
    /// The first key.
    pub(crate) start: Bytes,
    /// The first key behind the range; `None` for a range without end.
    pub(crate) end: Option<Bytes>,
    pub(crate) sequence: SequenceNo,
}

impl RangeTombstone {
    /// Returns whether `key` lies in the range.
    pub(crate) fn covers(&self, key: &[u8]) -> bool {
        *self.start <= *key && self.end.as_ref().is_none_or(|end| key < &**end)
    }
}

/// Returns the second in which an entry with this time to live expires; `None`, for never, if that second exceeds the
/// format's 32 bits.
pub(crate) fn expiry(now_s: u64, time_to_live_s: u32) -> Option<u32> {
    // The log has 0 for never.
    u32::try_from(now_s.saturating_add(u64::from(time_to_live_s))).ok().map(|expiry| expiry.max(1))
}
