//! What entries of the cache are found by.

use crate::keyfile::PageAddress;

/// The owner of cached entries: an open key file, or a store. An owner is never reused within a cache, so entries of a
/// former owner are never found. Numbers and hashes are the same in each run, so that repeated runs evict the same
/// entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Owner(pub(super) u64);

/// Something that can be cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    pub(super) owner: Owner,
    /// A page number, or the hash of a key.
    pub(super) position: u64,
}

impl CacheKey {
    /// A page of a file.
    pub(crate) fn page(owner: Owner, address: PageAddress) -> CacheKey {
        CacheKey { owner, position: u64::from(address.no) }
    }
}
