//! Numbers of records being inserted, and up to which all are there: YCSB's `AcknowledgedCounterGenerator`.
//!
//! Invariants:
//! - every number up to [`last`](AcknowledgedCounter::last) was acknowledged, so a record drawn below it is there;
//! - `last` never falls.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Gives out consecutive numbers, and knows up to which all were acknowledged.
#[derive(Debug)]
pub struct AcknowledgedCounter {
    next: AtomicU64,
    /// Numbers below this one are all acknowledged.
    below: AtomicU64,
    /// Acknowledged ones above, while smaller ones are under way: never more than there are clients.
    ahead: Mutex<BTreeSet<u64>>,
}

impl AcknowledgedCounter {
    /// Begins at `first`; those before it are acknowledged.
    pub fn new(first: u64) -> AcknowledgedCounter {
        AcknowledgedCounter {
            next: AtomicU64::new(first),
            below: AtomicU64::new(first),
            ahead: Mutex::new(BTreeSet::new()),
        }
    }

    /// The next number.
    pub fn take(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The record of that number is there.
    pub fn acknowledge(&self, number: u64) {
        let mut ahead = self.ahead.lock();
        ahead.insert(number);
        let mut below = self.below.load(Ordering::Relaxed);
        while ahead.remove(&below) {
            below += 1;
        }
        self.below.store(below, Ordering::Release);
    }

    /// How many records there are without a gap.
    pub fn count(&self) -> u64 {
        self.below.load(Ordering::Acquire)
    }

    /// The last number up to which all are acknowledged; 0 if none is.
    pub fn last(&self) -> u64 {
        self.count().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_holds_the_last_number_back() {
        let counter = AcknowledgedCounter::new(10);
        let [a, b, c] = [counter.take(), counter.take(), counter.take()];
        assert_eq!((a, b, c, counter.last()), (10, 11, 12, 9));
        counter.acknowledge(c);
        counter.acknowledge(b);
        assert_eq!(counter.last(), 9);
        counter.acknowledge(a);
        assert_eq!((counter.last(), counter.count()), (12, 13));
    }

    #[test]
    fn threads_leave_no_gap() {
        let counter = AcknowledgedCounter::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1000).for_each(|_| counter.acknowledge(counter.take())));
            }
        });
        assert_eq!(counter.count(), 4000);
        assert!(counter.ahead.lock().is_empty());
    }
}
