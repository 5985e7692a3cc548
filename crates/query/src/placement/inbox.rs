//! What queries tell placement while it is busy.
//!
//! 1. Who reads tells the policy itself, if nobody else is at it: that takes microseconds.
//! 2. While the policy is busy, with a ranking or another read, what is told waits here, in the order in which it came,
//!    and whoever comes to the policy next tells it first, in its own time. So who reads does not wait for a policy
//!    that thinks on another thread.
//!
//! Invariant: no more than [`MOST_WAITING`] wait; who comes then waits for the policy.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tanada_io::ObservedRead;
use tanada_placement::QueryId;

use super::announcement::Announcement;

/// A ranking of some hundred thousand chunks takes a tenth of a second, in which fast devices read so many pages.
const MOST_WAITING: usize = 1 << 16;

/// What happened to a query.
#[derive(Debug)]
pub(super) enum Told {
    /// It is about to begin.
    Begins(Arc<Announcement>),
    /// It has read.
    Read { query: QueryId, file: PathBuf, offset: u64, bytes: u64 },
    /// It is over.
    Ends(QueryId),
}

impl Told {
    pub(super) fn read(query: QueryId, read: &ObservedRead<'_>) -> Told {
        Told::Read { query, file: read.file.to_owned(), offset: read.offset, bytes: read.bytes }
    }
}

/// Who is told.
pub(super) trait Hears {
    /// Something happened, at that time.
    fn told(&mut self, at_ns: u64, told: &Told);
}

/// Somebody who is told by many, and whom none of them waits for.
#[derive(Debug)]
pub(super) struct Attended<S> {
    hears: Mutex<S>,
    inbox: Inbox,
}

impl<S: Hears> Attended<S> {
    pub(super) fn new(hears: S) -> Attended<S> {
        Attended { hears: Mutex::new(hears), inbox: Inbox::default() }
    }

    /// Who is told, when all that waits has been; waits until nobody else is at it.
    pub(super) fn lock(&self) -> MutexGuard<'_, S> {
        let mut hears = self.hears.lock();
        self.inbox.take().iter().for_each(|(at_ns, told)| hears.told(*at_ns, told));
        hears
    }

    /// Tells it at once, if nobody else is at it, by `apply`, whose answer this gives; else `told` waits.
    pub(super) fn tell<R>(
        &self,
        at_ns: u64,
        apply: impl FnOnce(&mut S) -> R,
        told: impl FnOnce() -> Told,
    ) -> Option<R> {
        if let Some(mut hears) = self.hears.try_lock() {
            self.inbox.take().iter().for_each(|(at_ns, told)| hears.told(*at_ns, told));
            return Some(apply(&mut hears));
        }
        if self.inbox.put(at_ns, told) { None } else { Some(apply(&mut self.lock())) }
    }
}

/// What waits, with when it happened.
#[derive(Debug, Default)]
struct Inbox(Mutex<Vec<(u64, Told)>>);

impl Inbox {
    /// Whether there was room for it.
    fn put(&self, at_ns: u64, told: impl FnOnce() -> Told) -> bool {
        let mut waiting = self.0.lock();
        let has_room = waiting.len() < MOST_WAITING;
        if has_room {
            waiting.push((at_ns, told()));
        }
        has_room
    }

    /// All that waits.
    fn take(&self) -> Vec<(u64, Told)> {
        std::mem::take(&mut *self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Hears for Vec<u32> {
        fn told(&mut self, _: u64, told: &Told) {
            if let Told::Ends(query) = told {
                self.push(query.0);
            }
        }
    }

    /// Who read a page waited as long as the policy ranked.
    #[test]
    fn events_do_not_wait_for_a_busy_policy() {
        let attended = Attended::new(Vec::new());
        let tell = |no: u32| attended.tell(0, |heard| heard.push(no), || Told::Ends(QueryId(no)));
        assert_eq!(tell(1), Some(()));
        let busy = attended.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!((tell(2), tell(3)), (None, None))).join().unwrap();
        });
        drop(busy);
        assert_eq!(tell(4), Some(()));
        assert_eq!(*attended.lock(), [1, 2, 3, 4]);
    }

    #[test]
    fn waiting_events_keep_their_order_and_are_bounded() {
        let inbox = Inbox::default();
        for no in 0..MOST_WAITING as u32 {
            assert!(inbox.put(u64::from(no), || Told::Ends(QueryId(no))));
        }
        assert!(!inbox.put(0, || unreachable!("there is no room")));
        let taken = inbox.take();
        assert_eq!(taken.len(), MOST_WAITING);
        assert!(taken.iter().zip(0..).all(|((at_ns, told), no)| {
            *at_ns == u64::from(no) && matches!(told, Told::Ends(query) if query.0 == no)
        }));
        assert!(inbox.take().is_empty());
    }
}
