//! Admits I/Os within limits.
//!
//! An I/O is admitted when it fits (I/Os and bytes in flight) and nobody of its priority or a higher one waits. Otherwise it queues: the
//! highest priority goes first, within a priority who came first. The head of the queue is never overtaken by those behind it, even if
//! they would fit, so a large I/O is not starved. An I/O larger than the byte limit is admitted alone.
//!
//! Invariants:
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

use depth::DepthSearch;

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
    arrivals: u64,
}

#[derive(Debug)]
struct Waiter {
    bytes: usize,
    priority: u8,
    arrival: u64,
    is_granted: bool,
    waker: Option<Waker>,
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
        while let Some((_, _, place)) = state.queue.first().copied() {
            let bytes = state.waiters[place].bytes;
            if !self.fits(&state, bytes) {
                break;
            }
            state.queue.pop_first();
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
            is_granted: false,
            waker: Some(context.waker().clone()),
        });
        state.queue.insert((Reverse(this.priority), arrival, place));
        this.waiter = Some(place);
        Poll::Pending
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        let Some(place) = self.waiter.take() else { return };
        let mut state = self.gate.state.lock();
        let waiter = state.waiters.remove(place);
        if waiter.is_granted {
            self.gate.give_back(state, waiter.bytes);
        } else {
            state.queue.remove(&(Reverse(waiter.priority), waiter.arrival, place));
            // It may have been the head that did not fit.
            self.gate.grant(state);
        }
    }
}
