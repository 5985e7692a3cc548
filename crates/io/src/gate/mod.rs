//! Admits I/Os within limits.
//!
//! An I/O is admitted when it fits (I/Os and bytes in flight) and nobody of its priority or a higher one waits.
//! Otherwise it queues: the highest priority goes first, within a priority who came first. An I/O larger than the byte
//! limit is admitted alone.
//!
//! The head of the queue is overtaken for one reason only: an executor that ends an I/O passes its place on to a task
//! of its own, for waking another thread costs more than the rest of an I/O. At most [`MOST_OVERTAKINGS`] times in a
//! row and only within a priority, and never because the head is large: so nothing is starved, and threads share the
//! depth.
//!
//! Invariants:
//! - `queue` and `by_thread` have the same waiters;
//! - `ios` and `bytes` are the sums over the permits that live and the waiters that were granted;
//! - a waiter is in `queue` exactly as long as it was not granted;
//! - whenever the lock is free, the head of the queue does not fit.

mod depth;
#[cfg(test)]
mod emulated;

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use slab::Slab;

use crate::executor::executor_thread;
use depth::DepthSearch;

/// Grants in a row that pass over the head of the queue.
const MOST_OVERTAKINGS: usize = 8;

/// Bounds on what may be in flight at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateLimits {
    /// I/Os; `None` lets the gate adapt the depth to what the device rewards.
    pub ios: Option<usize>,
    /// Bytes.
    pub bytes: usize,
}

impl GateLimits {
    /// The default, and room for a full queue of 16 KiB reads on each of so many spindles.
    pub fn for_spindles(spindles: u32) -> GateLimits {
        let default = GateLimits::default();
        GateLimits { bytes: default.bytes.max(spindles as usize * (512 << 10)), ..default }
    }
}

impl Default for GateLimits {
    /// Adaptive depth, 64 MiB.
    fn default() -> GateLimits {
        GateLimits { ios: None, bytes: 64 << 20 }
    }
}

/// Admits I/Os within limits; of those that wait, the highest priority (the deepest operator) goes first.
#[derive(Debug)]
pub struct Gate {
    state: Mutex<State>,
    limits: GateLimits,
}

#[derive(Debug, Default)]
struct State {
    ios: usize,
    bytes: usize,
    search: Option<DepthSearch>,
    waiters: Slab<Waiter>,
    /// Priority, arrival, place in `waiters`.
    queue: BTreeSet<(Reverse<u8>, u64, usize)>,
    /// The same for each executor's thread.
    by_thread: BTreeSet<(u64, Reverse<u8>, u64, usize)>,
    arrivals: u64,
    /// Grants since the last that went to the head of the queue.
    overtakings: usize,
}

#[derive(Debug)]
struct Waiter {
    bytes: usize,
    priority: u8,
    arrival: u64,
    /// The executor's thread that it waits on; none elsewhere.
    thread: Option<u64>,
    is_granted: bool,
    waker: Option<Waker>,
}

impl State {
    fn enqueue(&mut self, place: usize) {
        let Waiter { priority, arrival, thread, .. } = self.waiters[place];
        self.queue.insert((Reverse(priority), arrival, place));
        if let Some(thread) = thread {
            self.by_thread.insert((thread, Reverse(priority), arrival, place));
        }
    }

    fn dequeue(&mut self, place: usize) {
        let Waiter { priority, arrival, thread, .. } = self.waiters[place];
        self.queue.remove(&(Reverse(priority), arrival, place));
        if let Some(thread) = thread {
            self.by_thread.remove(&(thread, Reverse(priority), arrival, place));
        }
    }

    /// Who is next where `thread` gives a place away.
    fn next(&self, thread: Option<u64>) -> Option<usize> {
        let (priority, _, head) = self.queue.first().copied()?;
        let thread = thread.filter(|_| self.overtakings < MOST_OVERTAKINGS);
        let own = thread.and_then(|thread| {
            let mut own =
                self.by_thread.range((thread, priority, 0, 0)..=(thread, priority, u64::MAX, usize::MAX));
            own.next().map(|(.., place)| *place)
        });
        // Size is no reason to pass somebody over.
        Some(own.filter(|own| self.waiters[*own].bytes == self.waiters[head].bytes).unwrap_or(head))
    }
}

impl Gate {
    /// A gate with `limits`; a limit of 0 I/Os means 1.
    pub fn new(limits: GateLimits) -> Arc<Gate> {
        let search = limits.ios.is_none().then(DepthSearch::new);
        Arc::new(Gate { state: Mutex::new(State { search, ..State::default() }), limits })
    }

    /// The limits it was made with.
    pub fn limits(&self) -> GateLimits {
        self.limits
    }

    /// I/Os it admits at once now.
    pub fn depth(&self) -> usize {
        self.depth_of(&self.state.lock())
    }

    /// I/Os and bytes in flight now.
    pub fn in_flight(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.ios, state.bytes)
    }

    /// I/Os that wait now.
    pub fn waiting(&self) -> usize {
        self.state.lock().queue.len()
    }

    pub(crate) fn admit(&self, bytes: usize, priority: u8) -> Admission<'_> {
        Admission { gate: self, bytes, priority, waiter: None }
    }

    /// An admitted I/O of `bytes` ended at `now` after `latency`.
    pub(crate) fn release(&self, bytes: usize, now: Duration, latency: Duration) {
        let mut state = self.state.lock();
        let held_back = !state.queue.is_empty() && state.ios >= self.depth_of(&state);
        if let Some(search) = &mut state.search {
            search.completed(now, latency, held_back);
        }
        self.give_back(state, bytes);
    }

    fn give_back(&self, mut state: parking_lot::MutexGuard<'_, State>, bytes: usize) {
        state.ios -= 1;
        state.bytes -= bytes;
        self.grant(state);
    }

    fn depth_of(&self, state: &State) -> usize {
        match &state.search {
            Some(search) => search.limit(),
            None => self.limits.ios.unwrap_or(1).max(1),
        }
    }

    fn fits(&self, state: &State, bytes: usize) -> bool {
        state.ios == 0
            || (state.ios < self.depth_of(state) && state.bytes.saturating_add(bytes) <= self.limits.bytes)
    }

    /// Admits waiters from the head of the queue as long as they fit, and wakes them.
    fn grant(&self, mut state: parking_lot::MutexGuard<'_, State>) {
        let mut wakers = Vec::new();
        let thread = executor_thread();
        while let Some(place) = state.next(thread) {
            let bytes = state.waiters[place].bytes;
            if !self.fits(&state, bytes) {
                break;
            }
            let is_head = state.queue.first().is_some_and(|(.., head)| *head == place);
            state.overtakings = if is_head { 0 } else { state.overtakings + 1 };
            state.dequeue(place);
            state.ios += 1;
            state.bytes += bytes;
            let waiter = &mut state.waiters[place];
            waiter.is_granted = true;
            wakers.extend(waiter.waker.take());
        }
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Waits until an I/O is admitted. Dropped before, it leaves no trace.
#[derive(Debug)]
pub(crate) struct Admission<'a> {
    gate: &'a Gate,
    bytes: usize,
    priority: u8,
    waiter: Option<usize>,
}

impl Future for Admission<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.gate.state.lock();
        if let Some(place) = this.waiter {
            if !state.waiters[place].is_granted {
                state.waiters[place].waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            state.waiters.remove(place);
            this.waiter = None;
            return Poll::Ready(());
        }
        let is_behind = state.queue.first().is_some_and(|(Reverse(first), ..)| *first >= this.priority);
        if !is_behind && this.gate.fits(&state, this.bytes) {
            state.ios += 1;
            state.bytes += this.bytes;
            return Poll::Ready(());
        }
        state.arrivals += 1;
        let arrival = state.arrivals;
        let place = state.waiters.insert(Waiter {
            bytes: this.bytes,
            priority: this.priority,
            arrival,
            thread: executor_thread(),
            is_granted: false,
            waker: Some(context.waker().clone()),
        });
        state.enqueue(place);
        this.waiter = Some(place);
        Poll::Pending
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        let Some(place) = self.waiter.take() else { return };
        let mut state = self.gate.state.lock();
        if state.waiters[place].is_granted {
            let waiter = state.waiters.remove(place);
            self.gate.give_back(state, waiter.bytes);
        } else {
            state.dequeue(place);
            state.waiters.remove(place);
            // It may have been the head that did not fit.
            self.gate.grant(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(state: &mut State, thread: u64, priority: u8, bytes: usize) -> usize {
        state.arrivals += 1;
        let arrival = state.arrivals;
        let waiter =
            Waiter { bytes, priority, arrival, thread: Some(thread), is_granted: false, waker: None };
        let place = state.waiters.insert(waiter);
        state.enqueue(place);
        place
    }

    #[test]
    fn a_thread_passes_its_place_on_to_a_task_of_its_own() {
        let mut state = State::default();
        let head = wait(&mut state, 1, 0, 16);
        let own = wait(&mut state, 2, 0, 16);
        assert_eq!(state.next(Some(2)), Some(own));
        assert_eq!(state.next(Some(3)), Some(head));
        assert_eq!(state.next(None), Some(head));
        state.overtakings = MOST_OVERTAKINGS;
        assert_eq!(state.next(Some(2)), Some(head));
    }

    #[test]
    fn neither_priority_nor_size_is_overtaken() {
        let mut state = State::default();
        let large = wait(&mut state, 1, 0, 64);
        let small = wait(&mut state, 2, 0, 16);
        assert_eq!(state.next(Some(2)), Some(large));
        let deep = wait(&mut state, 1, 1, 16);
        assert_eq!(state.next(Some(2)), Some(deep));
        for place in [large, deep] {
            state.dequeue(place);
        }
        assert_eq!(state.next(Some(1)), Some(small));
        state.dequeue(small);
        assert_eq!(state.next(Some(2)), None);
        assert!(state.by_thread.is_empty());
    }
}
