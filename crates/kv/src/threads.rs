//! How many threads work with something.
//!
//! An allocator keeps for each thread what that one allocated and others freed, until it allocates again. Cached values
//! are such things, so a thread costs memory that nobody counts, and a budget that is to be kept has to know of it.
//!
//! Invariant: a thread counts once, from the first time that it says so until it ends.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Threads that have come and not ended.
#[derive(Debug, Default)]
pub(crate) struct Threads(Arc<AtomicUsize>);

/// The counter that a thread is counted in.
struct Counted(Weak<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        if let Some(count) = self.0.upgrade() {
            count.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

thread_local! {
    static COUNTED: RefCell<Vec<Counted>> = const { RefCell::new(Vec::new()) };
}

impl Threads {
    /// Counts this thread from now on.
    #[inline]
    pub(crate) fn count_this(&self) {
        // A thread that is about to end is not counted.
        let _ = COUNTED.try_with(|counted| {
            let mut counted = counted.borrow_mut();
            if counted.iter().any(|one| std::ptr::eq(one.0.as_ptr(), Arc::as_ptr(&self.0))) {
                return;
            }
            counted.retain(|one| one.0.strong_count() > 0);
            self.0.fetch_add(1, Ordering::Relaxed);
            counted.push(Counted(Arc::downgrade(&self.0)));
        });
    }

    /// Returns the number of threads.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_count_once_for_each_and_until_they_end() {
        let (threads, others) = (Threads::default(), Threads::default());
        let come = |times| (0..times).for_each(|_| threads.count_this());
        come(2);
        std::thread::scope(|scope| {
            let twice = scope.spawn(|| {
                come(2);
                others.count_this();
                (threads.count(), others.count())
            });
            assert_eq!(twice.join().unwrap(), (2, 1));
        });
        assert_eq!((threads.count(), others.count()), (1, 0));
        drop(others);
        come(1);
        assert_eq!(threads.count(), 1);
    }
}
