//! The memory of all operators of a session, shared by those that can spill and those that cannot.

use std::fmt;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use parking_lot::Mutex;
use tanada_base::ByteSize;

/// Operators that can spill have at most this part of the memory together, each an equal one, though at least one
/// batch; the merges that read spills again, which cannot spill, find room in the rest.
const SPILLING_SHARE: (usize, usize) = (1, 2);
/// Where many operators can spill, most of which have little, each may have this part.
const LEAST_SHARE: usize = 8;
/// What an operator that has nothing may take though merges have gone beyond the memory: its input has handed it that
/// batch already, and refusing it would free nothing.
const FIRST_SHARE: usize = 16;

/// Merges may go beyond the memory by this part of it.
const OVERDRAFT: usize = 4;

/// A pool in which what cannot spill always finds room beside what can.
#[derive(Debug)]
pub(crate) struct SpillingPool {
    bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Operators that can spill.
    spilling: usize,
    /// Bytes that they have.
    spillable: usize,
    /// Bytes of the others.
    fixed: usize,
}

impl SpillingPool {
    pub(crate) fn new(bytes: usize) -> SpillingPool {
        SpillingPool { bytes, state: Mutex::default() }
    }

    fn refused(&self, reservation: &MemoryReservation, additional: usize, used: usize) -> DataFusionError {
        let (needs, all) = (ByteSize::new(additional as u64), ByteSize::new(self.bytes as u64));
        let used = ByteSize::new(used as u64);
        let operator = in_words(reservation.consumer().name());
        DataFusionError::ResourcesExhausted(format!(
            "out of memory: {operator} needs {needs} more, and {used} of {all} are in use; give operators more (--memory)"
        ))
    }
}

impl MemoryPool for SpillingPool {
    fn name(&self) -> &str {
        "spilling"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.state.lock().spilling += usize::from(consumer.can_spill());
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        let mut state = self.state.lock();
        state.spilling = state.spilling.saturating_sub(usize::from(consumer.can_spill()));
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut state = self.state.lock();
        *state.of(reservation) += additional;
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut state = self.state.lock();
        let bytes = state.of(reservation);
        *bytes = bytes.saturating_sub(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        // A count of all rows asks for nothing, beside sorts and merges that have gone beyond the memory.
        if additional == 0 {
            return Ok(());
        }
        let mut state = self.state.lock();
        let used = state.spillable + state.fixed;
        let is_within = match reservation.consumer().can_spill() {
            true => {
                let share = self.bytes / SPILLING_SHARE.1 * SPILLING_SHARE.0;
                let all = share.min(self.bytes.saturating_sub(state.fixed));
                // One that has spilled all it had needs room for what comes next.
                let is_first = reservation.size() == 0
                    && (used + additional <= self.bytes || additional <= self.bytes / FIRST_SHARE);
                let own = (all / state.spilling.max(1)).max(self.bytes / LEAST_SHARE);
                is_first || (reservation.size() + additional <= own && used + additional <= self.bytes)
            }
            // Buffers that several batches share are counted for each, so less is in use than is said.
            false => used + additional <= self.bytes + self.bytes / OVERDRAFT,
        };
        if !is_within {
            drop(state);
            return Err(self.refused(reservation, additional, used));
        }
        *state.of(reservation) += additional;
        Ok(())
    }

    fn reserved(&self) -> usize {
        let state = self.state.lock();
        state.spillable + state.fixed
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.bytes)
    }
}

impl State {
    /// The sum that a reservation is part of.
    fn of(&mut self, reservation: &MemoryReservation) -> &mut usize {
        match reservation.consumer().can_spill() {
            true => &mut self.spillable,
            false => &mut self.fixed,
        }
    }
}

impl fmt::Display for SpillingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spilling({})", ByteSize::new(self.bytes as u64))
    }
}

/// An operator, by words that are not the engine's.
fn in_words(consumer: &str) -> &'static str {
    let words = [
        ("Join", "a join"),
        ("Lookup", "a look-up join"),
        ("Aggregate", "a GROUP BY"),
        ("Group", "a GROUP BY"),
        ("TopK", "an ORDER BY with LIMIT"),
        ("Sort", "a sort"),
        ("Window", "a window"),
        ("Subquery", "a subquery"),
        ("Repartition", "rows on their way between threads"),
    ];
    words.iter().find(|(part, _)| consumer.contains(part)).map_or("an operator", |(_, words)| words)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn operators_that_spill_leave_room_for_the_others() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SpillingPool::new(1000));
        let first = MemoryConsumer::new("Sort").with_can_spill(true).register(&pool);
        let second = MemoryConsumer::new("Sort").with_can_spill(true).register(&pool);
        let merge = MemoryConsumer::new("Merge").register(&pool);
        first.try_grow(250).unwrap();
        second.try_grow(250).unwrap();
        assert!(first.try_grow(1).is_err());
        merge.try_grow(750).unwrap();
        let error = merge.try_grow(1).unwrap_err().to_string();
        assert!(error.contains("out of memory") && error.contains("1000 B"), "{error}");
        drop((first, second));
        merge.try_grow(500).unwrap();
        assert_eq!(pool.reserved(), 1250);
        drop(merge);
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn an_operator_with_nothing_takes_a_batch_beside_merges_that_fill_the_memory() {
        let pool: Arc<dyn MemoryPool> = Arc::new(SpillingPool::new(1000));
        let merge = MemoryConsumer::new("Merge").register(&pool);
        merge.try_grow(1200).unwrap();
        merge.grow(300);
        MemoryConsumer::new("Aggregate").register(&pool).try_grow(0).unwrap();
        merge.shrink(300);
        let sort = MemoryConsumer::new("Sort").with_can_spill(true).register(&pool);
        assert!(sort.try_grow(63).is_err(), "more than a batch");
        sort.try_grow(62).unwrap();
        assert!(sort.try_grow(1).is_err(), "it has to spill what it has first");
    }
}
