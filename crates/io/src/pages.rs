//! The size of memory's pages.
//!
//! An allocator may ask for huge pages (mimalloc does), where the system leaves that to programs. Of each it then has all 2 MiB as soon as a byte is used: a program
//! with a budget of some dozens of megabytes takes half as much again.

/// As long as it lives, this process gets no huge pages for memory that it touches first, nor do the programs that it starts.
#[derive(Debug)]
pub struct SmallPages {
    /// They were refused before.
    was_refused: bool,
}

impl SmallPages {
    /// Refuses huge pages from now on. Where the kernel knows none, nothing is different.
    pub fn take() -> SmallPages {
        let was_refused = rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(true);
        refuse(true);
        SmallPages { was_refused }
    }
}

impl Drop for SmallPages {
    fn drop(&mut self) {
        refuse(self.was_refused);
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
    fn huge_pages_come_back_at_the_end() {
        let are_refused = || rustix::thread::transparent_huge_pages_are_disabled().unwrap_or(true);
        let before = are_refused();
        let outer = SmallPages::take();
        assert!(are_refused());
        drop(SmallPages::take());
        assert!(are_refused());
        drop(outer);
        assert_eq!(are_refused(), before);
    }
}
