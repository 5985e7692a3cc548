//! The size of memory's pages.
//!
//! An allocator may ask for huge pages (mimalloc does), where the system leaves that to programs. Of each it then has
//! all 2 MiB as soon as a byte is used: a program with a budget of some dozens of megabytes takes half as much again.
//! Buffers that rings register are better off with them: they are made before.

use parking_lot::Mutex;

/// As long as one of them lives, this process gets no huge pages for memory that it touches first, nor do the programs
/// that it starts.
#[derive(Debug)]
#[must_use = "huge pages are refused until this is dropped"]
pub struct SmallPages(());

#[derive(Debug)]
struct Living {
    count: usize,
    /// Huge pages were refused before the first.
    was_refused: bool,
}

static LIVING: Mutex<Living> = Mutex::new(Living { count: 0, was_refused: false });

impl SmallPages {
    /// Refuses huge pages from now on, in all threads. Where the kernel knows none, nothing is different. To be called
    /// after [`Executors::start`](crate::Executors::start), whose registered buffers gain by huge pages.
    pub fn take() -> SmallPages {
        let mut living = LIVING.lock();
        if living.count == 0 {
            living.was_refused = rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(true);
            refuse(true);
        }
        living.count += 1;
        SmallPages(())
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        let mut living = LIVING.lock();
        living.count -= 1;
        if living.count == 0 {
            refuse(living.was_refused);
        }
    }
}

fn refuse(is_refused: bool) {
    // A kernel without them says that it cannot.
    let _ = rustix::thread::disable_transparent_huge_pages(is_refused);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_allowed_again_after_the_last_guard() {
        let are_refused = || rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(true);
        let before = are_refused();
        let first = SmallPages::take();
        let second = SmallPages::take();
        assert!(are_refused());
        drop(first);
        assert!(are_refused(), "the second lives");
        drop(second);
        assert_eq!(are_refused(), before);
    }
}
