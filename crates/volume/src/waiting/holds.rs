//! Who may change which chunks of an object.
//!
//! A hold covers a range of chunks. Shared holds (aligned writes to mapped chunks) go together; an exclusive one (a
//! chunk's first write, a read-modify-write, a relocation; over the whole object: truncation and the like) is alone on
//! its range. Reads take none.
//!
//! A hold whose owner *left* while the device still works on its range keeps everybody out until the device is done,
//! even if it was shared: what is written there next must not be overtaken.
//!
//! Invariants: holds that are granted at once do not conflict; a waiter is passed by none that conflicts with it and
//! came later, so nobody starves; an operation takes all that it needs in one hold, so nobody waits in a circle.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    first: u64,
    last: u64,
    exclusive: bool,
}

impl Range {
    fn conflicts(&self, other: &Range) -> bool {
        (self.exclusive || other.exclusive) && self.first <= other.last && other.first <= self.last
    }
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    range: Range,
    waker: Option<Waker>,
}

#[derive(Debug, Clone, Copy)]
struct Granted {
    id: u64,
    range: Range,
    /// Its owner waits for nothing any more.
    is_left: bool,
}

#[derive(Debug, Default)]
struct State {
    granted: Vec<Granted>,
    waiting: VecDeque<Waiter>,
    next_id: u64,
}

/// The holds on one object.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    state: Mutex<State>,
}

/// A hold; given up when dropped.
#[derive(Debug)]
pub(crate) struct HoldGuard {
    holds: Arc<Holds>,
    id: u64,
    exclusive: AtomicBool,
}

impl Holds {
    /// A hold on `chunks`, if it is to be had at once.
    pub(crate) fn try_hold(
        self: &Arc<Self>,
        chunks: RangeInclusive<u64>,
        exclusive: bool,
    ) -> Option<HoldGuard> {
        let range = Range { first: *chunks.start(), last: *chunks.end(), exclusive };
        let mut state = self.state.lock();
        if !state.waiting.is_empty() && state.waiting.iter().any(|waiter| waiter.range.conflicts(&range)) {
            return None;
        }
        if state.granted.iter().any(|granted| granted.range.conflicts(&range)) {
            return None;
        }
        let id = state.next_id;
        state.next_id += 1;
        state.granted.push(Granted { id, range, is_left: false });
        drop(state);
        Some(HoldGuard { holds: self.clone(), id, exclusive: AtomicBool::new(exclusive) })
    }

    /// Waits for a hold on `chunks`.
    pub(crate) async fn hold(self: &Arc<Self>, chunks: RangeInclusive<u64>, exclusive: bool) -> HoldGuard {
        if let Some(guard) = self.try_hold(chunks.clone(), exclusive) {
            return guard;
        }
        let range = Range { first: *chunks.start(), last: *chunks.end(), exclusive };
        let id = {
            let mut state = self.state.lock();
            let id = state.next_id;
            state.next_id += 1;
            state.waiting.push_back(Waiter { id, range, waker: None });
            id
        };
        // From here on the guard gives up the place in the queue, or the hold, whichever it has.
        let guard = HoldGuard { holds: self.clone(), id, exclusive: AtomicBool::new(exclusive) };
        self.grant();
        std::future::poll_fn(|context| {
            let mut state = self.state.lock();
            match state.waiting.iter_mut().find(|waiter| waiter.id == id) {
                Some(waiter) => {
                    waiter.waker = Some(context.waker().clone());
                    Poll::Pending
                }
                None => Poll::Ready(()),
            }
        })
        .await;
        guard
    }

    /// The owner of this hold waits no more for what the device does under it.
    pub(crate) fn leave(&self, id: u64) {
        let mut state = self.state.lock();
        if let Some(granted) = state.granted.iter_mut().find(|granted| granted.id == id) {
            granted.is_left = true;
            granted.range.exclusive = true;
        }
    }

    /// Waits until the devices are done with what was left so far.
    pub(crate) async fn settle(self: &Arc<Self>) {
        let left: Vec<Range> = {
            let state = self.state.lock();
            state.granted.iter().filter(|granted| granted.is_left).map(|granted| granted.range).collect()
        };
        for range in left {
            drop(self.hold(range.first..=range.last, false).await);
        }
    }

    /// Grants what can be granted, in order of arrival.
    fn grant(&self) {
        let mut wakers = Vec::new();
        {
            let mut state = self.state.lock();
            let mut place = 0;
            while place < state.waiting.len() {
                let range = state.waiting[place].range;
                let blocked = state.granted.iter().any(|granted| granted.range.conflicts(&range))
                    || state.waiting.iter().take(place).any(|earlier| earlier.range.conflicts(&range));
                if blocked {
                    place += 1;
                } else if let Some(waiter) = state.waiting.remove(place) {
                    state.granted.push(Granted { id: waiter.id, range, is_left: false });
                    wakers.extend(waiter.waker);
                }
            }
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl HoldGuard {
    /// Names it, for [`Holds::leave`].
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Lets shared holds in.
    pub(crate) fn downgrade(&self) {
        if self.exclusive.swap(false, Ordering::Relaxed) {
            let mut state = self.holds.state.lock();
            if let Some(granted) = state.granted.iter_mut().find(|granted| granted.id == self.id) {
                granted.range.exclusive = false;
            }
            drop(state);
            self.holds.grant();
        }
    }
}

/// A write under a hold; if it is dropped before it is done, the hold is left for as long as the device goes on.
#[derive(Debug)]
pub(crate) struct Writing<'a> {
    hold: &'a HoldGuard,
    is_done: bool,
}

impl<'a> Writing<'a> {
    pub(crate) fn new(hold: &'a HoldGuard) -> Writing<'a> {
        Writing { hold, is_done: false }
    }

    pub(crate) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.hold.holds.leave(self.hold.id);
        }
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        let mut state = self.holds.state.lock();
        if let Some(place) = state.granted.iter().position(|granted| granted.id == self.id) {
            state.granted.swap_remove(place);
        } else {
            state.waiting.retain(|waiter| waiter.id != self.id);
        }
        let someone_waits = !state.waiting.is_empty();
        drop(state);
        if someone_waits {
            self.holds.grant();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn shared_go_together_and_exclusive_alone() {
        let holds = Arc::new(Holds::default());
        let first = holds.try_hold(3..=5, false).unwrap();
        let second = holds.try_hold(5..=6, false).unwrap();
        assert!(holds.try_hold(6..=6, true).is_none());
        assert!(holds.try_hold(7..=7, true).is_some());
        drop(second);
        let third = holds.try_hold(6..=6, true).unwrap();
        assert!(holds.try_hold(6..=9, false).is_none());
        third.downgrade();
        assert!(holds.try_hold(6..=9, false).is_some());
        drop(first);
    }

    #[test]
    fn a_shared_hold_that_was_left_keeps_others_out() {
        let holds = Arc::new(Holds::default());
        let first = holds.try_hold(0..=0, false).unwrap();
        Writing::new(&first).done();
        assert!(holds.try_hold(0..=0, false).is_some());
        assert!(holds.settle().now_or_never().is_some());
        drop(Writing::new(&first));
        assert!(holds.try_hold(0..=0, false).is_none() && holds.try_hold(1..=1, false).is_some());
        let mut settled = Box::pin(holds.settle());
        assert!(settled.as_mut().now_or_never().is_none());
        drop(first);
        assert!(settled.now_or_never().is_some());
        assert!(holds.try_hold(0..=0, false).is_some());
    }

    #[test]
    fn a_waiter_is_not_passed_by_one_that_conflicts() {
        let holds = Arc::new(Holds::default());
        let first = holds.try_hold(0..=0, false).unwrap();
        let mut all = Box::pin(holds.hold(0..=u64::MAX, true));
        assert!(all.as_mut().now_or_never().is_none());
        assert!(holds.try_hold(9..=9, false).is_none(), "the whole object was asked for before");
        drop(first);
        let all = all.now_or_never().unwrap();
        assert!(holds.try_hold(9..=9, false).is_none());
        drop(all);
        assert!(holds.try_hold(9..=9, false).is_some());
    }

    #[test]
    fn a_dropped_waiter_is_forgotten() {
        let holds = Arc::new(Holds::default());
        let first = holds.try_hold(0..=0, true).unwrap();
        let mut second = Box::pin(holds.hold(0..=0, true));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        drop(second);
        assert!(holds.try_hold(0..=0, true).is_some());
    }
}
