//! Memory of all look-up joins of a query: one budget, so that a chain of many joins needs no more than a short one.
//!
//! 1. Outer batches and output batches in flight are charged to their join and to the budget until they are dropped.
//! 2. A join may start a chunk while it holds less than its share of the budget, or all joins together less than half.
//! 3. With nothing in flight it always may, or nothing would ever go on.
//! 4. An outer batch that the query's memory has no room for waits, or is cut into smaller ones. What a chunk has
//!    found is kept even so: the next chunk waits.
//!
//! Invariant: the budget holds the sum of its shares' bytes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::Result;
use datafusion::execution::memory_pool::MemoryReservation;

/// What look-up joins of a query hold.
#[derive(Debug)]
pub struct LookupBudget {
    limit_bytes: usize,
    bytes: AtomicUsize,
    joins: AtomicUsize,
}

impl LookupBudget {
    /// A budget of `limit_bytes`.
    pub(crate) fn new(limit_bytes: usize) -> Arc<LookupBudget> {
        Arc::new(LookupBudget { limit_bytes, bytes: AtomicUsize::new(0), joins: AtomicUsize::new(0) })
    }

    /// The share of one more join, whose bytes are charged to `reservation`, too.
    pub(super) fn share(self: &Arc<Self>, reservation: MemoryReservation) -> Arc<Share> {
        self.joins.fetch_add(1, Ordering::Relaxed);
        Arc::new(Share { budget: Arc::clone(self), bytes: AtomicUsize::new(0), reservation })
    }
}

/// What one join holds.
#[derive(Debug)]
pub(super) struct Share {
    budget: Arc<LookupBudget>,
    bytes: AtomicUsize,
    reservation: MemoryReservation,
}

impl Share {
    /// Whether a chunk more may start beside others.
    pub(super) fn has_room(&self) -> bool {
        let limit = self.budget.limit_bytes;
        let joins = self.budget.joins.load(Ordering::Relaxed).max(1);
        self.bytes.load(Ordering::Relaxed) < limit / joins
            || self.budget.bytes.load(Ordering::Relaxed) < limit / 2
    }

    /// Charges `bytes` until the charge is dropped, unless the query's memory has no room for them.
    pub(super) fn try_charge(self: &Arc<Self>, bytes: usize) -> Result<Charge> {
        self.reservation.try_grow(bytes)?;
        Ok(self.charged(bytes))
    }

    /// Charges what is there already.
    pub(super) fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.reservation.grow(bytes);
        self.charged(bytes)
    }

    fn charged(self: &Arc<Self>, bytes: usize) -> Charge {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.budget.bytes.fetch_add(bytes, Ordering::Relaxed);
        Charge { share: Arc::clone(self), bytes }
    }

    /// What the join keeps until its end, which is no part of the budget.
    pub(super) fn reservation(&self) -> &MemoryReservation {
        &self.reservation
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.joins.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Memory that is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    share: Arc<Share>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.share.reservation.shrink(self.bytes);
        self.share.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.share.budget.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryConsumer, MemoryPool};

    use super::*;

    fn shares(limit_bytes: usize) -> [Arc<Share>; 2] {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100));
        let budget = LookupBudget::new(limit_bytes);
        [(); 2].map(|()| budget.share(MemoryConsumer::new("test").register(&pool)))
    }

    #[test]
    fn a_charge_is_given_back_when_it_is_dropped() {
        let [share, _] = shares(100);
        assert!(share.try_charge(160).is_err(), "more than the pool has");
        // What was found is kept even so.
        let charge = share.charge(160);
        assert!(!share.has_room());
        drop(charge);
        assert!(share.has_room());
        assert_eq!(share.reservation().size(), 0);
    }

    #[test]
    fn joins_share_the_budget_and_each_has_its_part() {
        let [first, second] = shares(100);
        let held = first.charge(60);
        assert!(!first.has_room());
        assert!(second.has_room(), "the other join's part is left");
        let more = second.charge(50);
        assert!(!second.has_room());
        drop(held);
        drop(more);
        assert!(first.has_room() && second.has_room());
    }
}
