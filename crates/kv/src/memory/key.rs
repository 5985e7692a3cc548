//! Keys of versions, which can be looked up without being made.
//!
//! A key lies where the batch was written, so looking at it is one more place in memory to go to. Its head lies beside
//! it and decides most comparisons.

use std::borrow::Borrow;
use std::cmp::Ordering;

use crate::entry::{Pair, SequenceNo};

/// A key and a sequence number: ascending by key, then descending by number, so that the newest version comes first.
/// The value behind the key does not count.
#[derive(Debug, Clone)]
pub(crate) struct VersionKey {
    head: Head,
    pub(crate) pair: Pair,
    pub(crate) sequence: SequenceNo,
}

impl VersionKey {
    pub(crate) fn new(pair: Pair, sequence: SequenceNo) -> VersionKey {
        VersionKey { head: Head::of(pair.key()), pair, sequence }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.pair.key()
    }

    /// Returns whether both are versions of one key.
    #[inline]
    pub(crate) fn has_key_of(&self, other: &VersionKey) -> bool {
        self.head == other.head && self.key() == other.key()
    }
}

impl PartialEq for VersionKey {
    fn eq(&self, other: &VersionKey) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for VersionKey {}

/// The first 16 bytes of a key, with zeros behind it if it is shorter. Two that differ are ordered as their keys are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Head(u64, u64);

impl Head {
    #[inline]
    fn of(key: &[u8]) -> Head {
        let mut bytes = [0; 16];
        let len = key.len().min(16);
        bytes[..len].copy_from_slice(&key[..len]);
        let whole = u128::from_be_bytes(bytes);
        Head((whole >> 64) as u64, whole as u64)
    }
}

/// The same of bytes that are somewhere else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VersionKeyRef<'a> {
    head: Head,
    pub(crate) key: &'a [u8],
    pub(crate) sequence: SequenceNo,
}

impl<'a> VersionKeyRef<'a> {
    pub(crate) fn new(key: &'a [u8], sequence: SequenceNo) -> VersionKeyRef<'a> {
        VersionKeyRef { head: Head::of(key), key, sequence }
    }
}

/// Common view of owned and borrowed keys, so that a map of the one can be searched by the other.
pub(crate) trait AsVersionKey {
    fn as_version_key(&self) -> VersionKeyRef<'_>;
}

impl AsVersionKey for VersionKey {
    fn as_version_key(&self) -> VersionKeyRef<'_> {
        VersionKeyRef { head: self.head, key: self.key(), sequence: self.sequence }
    }
}

impl AsVersionKey for VersionKeyRef<'_> {
    fn as_version_key(&self) -> VersionKeyRef<'_> {
        *self
    }
}

/// In the order of a table: by key, the newest version first.
#[inline]
pub(super) fn compare(a: VersionKeyRef<'_>, b: VersionKeyRef<'_>) -> Ordering {
    a.head.cmp(&b.head).then_with(|| a.key.cmp(b.key)).then(b.sequence.cmp(&a.sequence))
}

impl Ord for VersionKey {
    fn cmp(&self, other: &VersionKey) -> Ordering {
        compare(self.as_version_key(), other.as_version_key())
    }
}

impl PartialOrd for VersionKey {
    fn partial_cmp(&self, other: &VersionKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> Borrow<dyn AsVersionKey + 'a> for VersionKey {
    fn borrow(&self) -> &(dyn AsVersionKey + 'a) {
        self
    }
}

impl Ord for dyn AsVersionKey + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(self.as_version_key(), other.as_version_key())
    }
}

impl PartialOrd for dyn AsVersionKey + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn AsVersionKey + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for dyn AsVersionKey + '_ {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> impl Strategy<Value = Vec<u8>> {
        // Few bytes, zeros among them, and lengths on both sides of a head's.
        proptest::collection::vec(0u8..3, 0..20)
    }

    proptest! {
        #[test]
        fn they_are_ordered_by_key_and_then_the_newest_first(a in keys(), b in keys(), one in 1u64..4, other in 1u64..4) {
            let expected = a.cmp(&b).then(other.cmp(&one));
            let (of_a, of_b) = (VersionKeyRef::new(&a, one), VersionKeyRef::new(&b, other));
            prop_assert_eq!(compare(of_a, of_b), expected);
            let (a, b) = (Pair::copied(&a, b"x"), Pair::copied(&b, b""));
            let owned = VersionKey::new(a, one).cmp(&VersionKey::new(b, other));
            prop_assert_eq!(owned, expected);
        }
    }
}
