//! Which keys' values are read often from a slow class.
//!
//! Only reads that reach the device count: what the cache serves needs no faster class. So a count says what a
//! promotion would save.
//!
//! 1. Keys are counted in a table of bounded size.
//! 2. When it is full, all counts are halved and what has none left is forgotten: a key stays if it is read about as
//!    often as the table turns over.
//! 3. What has been read often enough is taken out, to be promoted; if it is read from the slow class again, it is
//!    counted anew.
//!
//! Invariant: the table has at most as many keys as it may, and their bytes are bounded by that and by the longest key
//! that is counted.

use crate::tuning::tree::JOBS;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

/// Counts of reads.
#[derive(Debug)]
pub(crate) struct HotKeys {
    most: AtomicUsize,
    table: Mutex<HashMap<Bytes, Count>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    reads: u32,
    value_bytes: u32,
}

impl HotKeys {
    /// Counts up to `most` keys at once; none if that is 0.
    pub(crate) fn new(most: usize) -> HotKeys {
        HotKeys { most: AtomicUsize::new(most), table: Mutex::default() }
    }

    /// Returns whether anything is counted.
    pub(crate) fn counts(&self) -> bool {
        self.most.load(Ordering::Relaxed) > 0
    }

    /// Sets how many keys are counted.
    pub(crate) fn count_up_to(&self, most: usize) {
        let mut table = self.table.lock();
        self.most.store(most, Ordering::Relaxed);
        if table.len() > most {
            *table = HashMap::new();
        }
    }

    /// Counts a read of a value from a slow class.
    pub(crate) fn note(&self, key: &[u8], value_bytes: u32) {
        if !self.counts() || key.len() > JOBS.max_counted_key_bytes {
            return;
        }
        let mut table = self.table.lock();
        let most = self.most.load(Ordering::Relaxed);
        if most == 0 {
            return;
        }
        if let Some(count) = table.get_mut(key) {
            *count = Count { reads: count.reads.saturating_add(1), value_bytes };
            return;
        }
        while table.len() >= most {
            table.retain(|_, count| {
                count.reads /= 2;
                count.reads > 0
            });
        }
        table.insert(Bytes::copy_from_slice(key), Count { reads: 1, value_bytes });
    }

    /// Takes out keys that were read at least `least_reads` times, those read most for their size first, as many as
    /// have values of `budget_bytes` together. Ascending by key.
    pub(crate) fn take(&self, least_reads: u32, budget_bytes: u64) -> Vec<Bytes> {
        let mut table = self.table.lock();
        let mut hot: Vec<(Bytes, Count)> = table
            .iter()
            .filter(|(_, count)| count.reads >= least_reads)
            .map(|(key, count)| (key.clone(), *count))
            .collect();
        hot.sort_by(|(a_key, a), (b_key, b)| {
            let by_density = (u64::from(b.reads) * u64::from(a.value_bytes))
                .cmp(&(u64::from(a.reads) * u64::from(b.value_bytes)));
            by_density.then_with(|| a_key.cmp(b_key))
        });
        let mut left = budget_bytes;
        let mut taken = Vec::new();
        for (key, count) in hot {
            let Some(rest) = left.checked_sub(u64::from(count.value_bytes)) else { continue };
            left = rest;
            table.remove(&key);
            taken.push(key);
        }
        taken.sort();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequently_read_keys_are_promoted_within_the_budget() {
        let hot = HotKeys::new(100);
        for (key, reads, bytes) in [(&b"c"[..], 5, 100), (b"a", 4, 100), (b"b", 9, 1000), (b"once", 1, 1)] {
            for _ in 0..reads {
                hot.note(key, bytes);
            }
        }
        assert_eq!(hot.take(2, 1050), [&b"a"[..], b"c"]);
        assert_eq!(hot.take(2, 999), Vec::<Bytes>::new());
        assert_eq!(hot.take(2, 1000), [&b"b"[..]]);
        assert_eq!(hot.take(1, 1000), [&b"once"[..]]);
    }

    #[test]
    fn hot_key_counts_are_bounded_and_keep_reread_keys() {
        let hot = HotKeys::new(50);
        for no in 0..10_000u32 {
            hot.note(&no.to_be_bytes(), 10);
            hot.note(b"hot", 10);
            assert!(hot.table.lock().len() <= 50);
        }
        assert_eq!(hot.take(2, 10_000), [&b"hot"[..]]);
        let none = HotKeys::new(0);
        none.note(b"a", 1);
        assert_eq!(none.take(0, 1), Vec::<Bytes>::new());
        none.count_up_to(1);
        none.note(b"a", 1);
        none.count_up_to(0);
        assert_eq!(none.take(0, 1), Vec::<Bytes>::new());
    }
}
