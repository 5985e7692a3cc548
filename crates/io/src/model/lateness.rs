//! How late those are who wait for modelled devices in real time.
//!
//! The model says when a request is over. A timer rings for it a little later, a thread wakes up a little later still,
//! and what that thread asks for next would come late by both, each time anew. So:
//!
//! 1. [`completing`] notes, while a request is completed, when it was over by the model; whoever keeps its outcome for
//!    later keeps that too ([`due`]).
//! 2. [`taken`] notes, on the thread that goes on with the outcome, how much later that is; of several that it waited
//!    for at once, the last to be over counts.
//! 3. What that thread asks for next arrives as much earlier ([`arrives`]), unless it has done something else for a
//!    while.
//!
//! What is asked for one after the other so takes as long as the model says, as long as the machine keeps up on
//! average. What keeps the thread from going on may also be other work: that is made good as well, by [`MOST`] at most,
//! so reads look less disturbed by it than they would be.

use std::cell::Cell;

use super::Nanos;

thread_local! {
    /// When what this thread is completing was over.
    static DUE: Cell<Option<Nanos>> = const { Cell::new(None) };
    /// What this thread went on with last.
    static LAST: Cell<Option<Taken>> = const { Cell::new(None) };
}

/// Arrivals are dated back by this much at most.
pub(crate) const MOST: Nanos = 10_000_000;

/// For how long an outcome says something about what its thread asks for.
const RECENT: Nanos = 5_000_000;

/// The last outcome that a thread went on with, of those that a model timed.
#[derive(Debug, Clone, Copy)]
struct Taken {
    at: Nanos,
    lateness: Nanos,
    /// Something was asked for since.
    has_asked: bool,
}

/// Restores what was there before, however the completion ends.
struct Outer(Option<Nanos>);

impl Drop for Outer {
    fn drop(&mut self) {
        DUE.set(self.0);
    }
}

/// Completes something that was over at `due` in real time; `None` in virtual time.
pub(crate) fn completing(due: Option<Nanos>, complete: impl FnOnce()) {
    let _outer = Outer(DUE.replace(due));
    complete();
}

/// When what the calling thread completes was over, if a model timed it.
pub(crate) fn due() -> Option<Nanos> {
    DUE.get()
}

/// The calling thread goes on with an outcome that was over at `due`. `now` is asked only if a model timed it.
pub(crate) fn taken(due: Option<Nanos>, now: impl FnOnce() -> Nanos) {
    let Some(due) = due else { return };
    let at = now();
    let lateness = at.saturating_sub(due);
    let together = LAST.get().filter(|last| !last.has_asked && at.saturating_sub(last.at) < RECENT);
    let lateness = together.map_or(lateness, |last| lateness.min(last.lateness));
    LAST.set(Some(Taken { at, lateness, has_asked: false }));
}

/// The calling thread asks for something at `now`: how much earlier it would have, if it has gone on with anything that
/// a model timed.
pub(crate) fn arrives(now: Nanos) -> Option<Nanos> {
    let last = LAST.get()?;
    LAST.set(Some(Taken { has_asked: true, ..last }));
    Some(if now.saturating_sub(last.at) < RECENT { last.lateness.min(MOST) } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_passed_on_to_the_taker_of_an_outcome() {
        std::thread::spawn(|| {
            assert_eq!((due(), arrives(0)), (None, None));
            completing(Some(70), || {
                assert_eq!(due(), Some(70));
                // What completes within, in virtual time, was not late.
                completing(None, || assert_eq!(due(), None));
                assert_eq!(due(), Some(70));
                taken(due(), || 100);
            });
            assert_eq!((due(), arrives(101)), (None, Some(30)));
            // An outcome that no model timed says nothing.
            taken(due(), || unreachable!("nobody asks"));
            assert_eq!(arrives(102), Some(30));
            // Two that were waited for together: the one that was over last.
            taken(Some(190), || 200);
            taken(Some(110), || 201);
            assert_eq!(arrives(202), Some(10));
            // One after the other.
            taken(Some(210), || 250);
            assert_eq!(arrives(250), Some(40));
            taken(Some(100), || MOST * 2);
            assert_eq!(arrives(MOST * 2), Some(MOST));
            // Long ago.
            assert_eq!(arrives(MOST * 3), Some(0));
        })
        .join()
        .unwrap();
    }
}
