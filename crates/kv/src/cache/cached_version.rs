//! Versions of keys, and what is held of one.

use bytes::Bytes;

use super::owner::{CacheKey, Owner};
use crate::entry::SequenceNo;
use crate::keyfile::KeyHash;

/// A version of a key, wherever its value lies. Its value never changes: as long as a store is open a sequence number
/// is given once, and of a key it has one version. (After a power cut numbers of what was lost are given again; the
/// store is another owner then.)
#[derive(Debug, Clone, Copy)]
pub(crate) struct VersionId<'a> {
    pub(crate) store: Owner,
    pub(crate) sequence: SequenceNo,
    pub(crate) key: &'a [u8],
    /// Hash of the key.
    pub(crate) hash: KeyHash,
    /// Visibility bound of the version, if it is known.
    pub(crate) newest: Option<Newest>,
}

/// The visibility bound of a version: of the sequence numbers above its own, up to `up_to` inclusive, none belongs to a
/// version of its key or to a range delete that covers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newest {
    pub(crate) up_to: SequenceNo,
    /// When the version expires.
    pub(crate) expires_s: Option<u32>,
}

impl<'a> VersionId<'a> {
    pub(crate) fn new(store: Owner, key: &'a [u8], sequence: SequenceNo) -> VersionId<'a> {
        VersionId { store, sequence, key, hash: KeyHash::of(key), newest: None }
    }

    pub(super) fn cache_key(&self) -> CacheKey {
        CacheKey { owner: self.store, position: self.hash.get() }
    }
}

/// A version's value with its key behind it: another key may have the same hash.
#[derive(Debug, Clone)]
pub(crate) struct HeldValue {
    pub(super) sequence: SequenceNo,
    pub(super) newest: Option<Newest>,
    pub(super) value_and_key: Bytes,
    pub(super) value_bytes: u32,
}

impl HeldValue {
    /// Copies both, so that they hold on to nothing else.
    pub(crate) fn new(id: &VersionId<'_>, value: &[u8]) -> HeldValue {
        HeldValue {
            sequence: id.sequence,
            newest: id.newest,
            value_and_key: [value, id.key].concat().into(),
            value_bytes: value.len() as u32,
        }
    }

    /// The value, if it is the one of `id`.
    pub(crate) fn of(&self, id: &VersionId<'_>) -> Option<Bytes> {
        (self.sequence == id.sequence && self.is_of(id.key)).then(|| self.value())
    }

    #[inline]
    pub(super) fn is_of(&self, key: &[u8]) -> bool {
        self.value_and_key.get(self.value_bytes as usize..) == Some(key)
    }

    /// Returns the visibility bound, as far as it applies to a reader at `snapshot`.
    #[inline]
    pub(crate) fn newest_at(&self, snapshot: SequenceNo) -> Option<Newest> {
        self.newest.filter(|_| self.sequence <= snapshot)
    }

    pub(crate) fn is_older_than(&self, sequence: SequenceNo) -> bool {
        self.sequence < sequence
    }

    /// The value itself.
    pub(crate) fn value(&self) -> Bytes {
        self.value_and_key.slice(..self.value_bytes as usize)
    }
}

/// Combines two visibility bounds of a version.
pub(super) fn later(one: Option<Newest>, other: Option<Newest>) -> Option<Newest> {
    one.into_iter().chain(other).max_by_key(|newest| newest.up_to)
}
