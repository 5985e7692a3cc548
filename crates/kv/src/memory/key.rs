//! Keys of versions, which can be looked up without being made.

use std::borrow::Borrow;
use std::cmp::Ordering;

use bytes::Bytes;

use crate::entry::SequenceNo;

/// A key and a sequence number: ascending by key, then descending by number, so that the newest version comes first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionKey {
    pub(crate) key: Bytes,
    pub(crate) sequence: SequenceNo,
}

/// The same of bytes that are somewhere else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VersionKeyRef<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) sequence: SequenceNo,
}

/// What both are: a map of the one can be asked for the other.
pub(crate) trait AsVersionKey {
    fn as_version_key(&self) -> VersionKeyRef<'_>;
}

impl AsVersionKey for VersionKey {
    fn as_version_key(&self) -> VersionKeyRef<'_> {
        VersionKeyRef { key: &self.key, sequence: self.sequence }
    }
}

impl AsVersionKey for VersionKeyRef<'_> {
    fn as_version_key(&self) -> VersionKeyRef<'_> {
        *self
    }
}

fn compare(a: VersionKeyRef<'_>, b: VersionKeyRef<'_>) -> Ordering {
    a.key.cmp(b.key).then(b.sequence.cmp(&a.sequence))
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
