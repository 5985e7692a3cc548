//! Memory that a cache does without, for what is to stay.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Cache;

/// Memory that a cache does without as long as this is there.
pub(crate) struct Reserved {
    cache: Arc<Cache>,
    bytes: u64,
}

impl Cache {
    /// Memory for what is to stay, `None` if that would be more than one in `most_part` parts of the budget, all
    /// together.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64, most_part: u64) -> Option<Reserved> {
        let most = self.budget_bytes / most_part;
        let fits = |reserved: u64| reserved.checked_add(bytes).filter(|sum| *sum <= most);
        self.reserved_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        self.share();
        Some(Reserved { cache: self.clone(), bytes })
    }

    /// Bytes that are [reserved](Self::reserve).
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.cache.reserved_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.cache.share();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_a_part_is_reserved_and_the_cache_does_without_it() {
        let cache = Cache::new(1 << 20);
        let first = cache.reserve(200 << 10, 4).unwrap();
        assert_eq!(cache.budget_bytes(), 824 << 10);
        assert!(cache.reserve(57 << 10, 4).is_none() && cache.reserve(u64::MAX, 4).is_none());
        assert!(cache.reserve(1, 8).is_none(), "more than an eighth is reserved already");
        let second = cache.reserve(56 << 10, 4).unwrap();
        assert_eq!(cache.reserved_bytes(), 256 << 10);
        drop(first);
        assert_eq!((cache.reserved_bytes(), cache.budget_bytes()), (56 << 10, 968 << 10));
        drop(second);
        assert_eq!(cache.budget_bytes(), 1 << 20);
    }
}
