//! The size of memory's pages.
//!
//! An allocator may ask for huge pages (mimalloc does), where the system leaves that to programs. Of each it then has all 2 MiB as soon as a byte is used: a program
//! with a budget of some dozens of megabytes takes half as much again.

use parking_lot::Mutex;

/// As long as one of them lives, this process gets no huge pages for memory that it touches first, nor do the programs that it starts.
#[derive(Debug)]
pub struct SmallPages(());

/// How many live, and whether huge pages were refused before the first.
static LIVING: Mutex<(usize, bool)> = Mutex::new((0, false));

impl SmallPages {
    /// Refuses huge pages from now on, in all threads. Where the kernel knows none, nothing is different.
    pub fn take() -> SmallPages {
        let mut living = LIVING.lock();
        if living.0 == 0 {
            living.1 = rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(true);
            refuse(true);
        }
        living.0 += 1;
        SmallPages(())
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        let mut living = LIVING.lock();
        living.0 -= 1;
        if living.0 == 0 {
            refuse(living.1);
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
    fn huge_pages_come_back_when_the_last_goes() {
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
