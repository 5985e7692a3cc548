//! How many threads work with databases.
//!
//! An allocator keeps for each thread what that one allocated and others freed, until it allocates again. Cached values and those of memory tables are such
//! things, so a thread costs memory that nobody counts, and a budget that is to be kept has to know of it.

use std::sync::atomic::{AtomicUsize, Ordering};

static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static COUNTED: Counted = Counted::new();
}

/// A thread that is counted as long as it lives.
struct Counted;

impl Counted {
    fn new() -> Counted {
        THREADS.fetch_add(1, Ordering::Relaxed);
        Counted
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        THREADS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts this thread from now on; how many there are.
#[inline]
pub(crate) fn count_this() -> usize {
    // One that is about to end counts no more.
    let _ = COUNTED.try_with(|_| ());
    THREADS.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_count_once_and_until_they_end() {
        // Others of the test process come and go meanwhile, so only this much is sure.
        let before = count_this();
        assert!(before >= 1);
        let (gate, opened) = (std::sync::Barrier::new(65), std::sync::Barrier::new(65));
        std::thread::scope(|scope| {
            let one = || {
                count_this();
                count_this();
                gate.wait();
                opened.wait();
            };
            let threads: Vec<_> = (0..64).map(|_| scope.spawn(one)).collect();
            gate.wait();
            assert!(count_this() > 64);
            opened.wait();
            // What is joined has dropped what was its own.
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert!(count_this() < 64 + before, "those have ended");
    }
}
