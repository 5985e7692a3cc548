//! A modelled array on its own: no device below, no clock, no threads. Whoever drives it owns the time.
//!
//! 1. [`ModelQueue::advance`] works off everything until a time and tells what completed.
//! 2. [`ModelQueue::submit`] hands over a request that arrives then.
//! 3. [`ModelQueue::next_event_ns`] says when to advance next.
//!
//! Invariant: time never goes backwards; a request arrives at the time that the queue has been advanced to.

use super::{Array, Command, ModelSpec};
use crate::Operation;

/// An emulated array as a queueing model, for simulations in which no bytes move: millions of I/Os a second.
///
/// ```
/// use tanada_io::{ModelQueue, Operation};
/// let mut disk = ModelQueue::new(&"hdd-7200".parse()?, 1);
/// disk.set_extent(1 << 30);
/// disk.submit(7, Operation::Read, 300 << 20, 16384);
/// let mut completed = Vec::new();
/// while let Some(at) = disk.next_event_ns() {
///     disk.advance(at, &mut completed);
/// }
/// let [(id, at)] = completed[..] else { panic!("one request") };
/// assert_eq!(id, 7);
/// assert!((1_000_000..30_000_000).contains(&at), "a seek and part of a turn: {at} ns");
/// # Ok::<(), tanada_io::Error>(())
/// ```
#[derive(Debug)]
pub struct ModelQueue {
    array: Array,
    now: u64,
    in_flight: usize,
}

impl ModelQueue {
    /// An idle array at time 0. The same seed and the same calls give the same times.
    pub fn new(spec: &ModelSpec, seed: u64) -> ModelQueue {
        ModelQueue { array: Array::new(spec, seed), now: 0, in_flight: 0 }
    }

    /// The data spans `bytes` of the array's addresses, from 0 on.
    pub fn set_extent(&mut self, bytes: u64) {
        self.array.set_extent(bytes);
    }

    /// Takes a request that arrives now. `id` comes back when it completes.
    pub fn submit(&mut self, id: u64, operation: Operation, offset: u64, len: u64) {
        self.in_flight += 1;
        self.array.arrive(self.now, Command { id, operation, offset, len });
    }

    /// When to advance next, in nanoseconds; `None` if nothing is under way. There may be nothing to collect then.
    pub fn next_event_ns(&mut self) -> Option<u64> {
        self.array.next_event()
    }

    /// Works off everything until `now_ns`; ids and times of what completed are added to `completed`, by time.
    pub fn advance(&mut self, now_ns: u64, completed: &mut Vec<(u64, u64)>) {
        let before = completed.len();
        self.now = self.now.max(now_ns);
        self.array.advance(self.now, completed);
        self.in_flight -= completed.len() - before;
    }

    /// Requests under way.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }
}
