//! Memory that is mapped for one owner, and goes back to the system range by range.

use std::ops::Range;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A private mapping, zeroed. What is not written to takes no memory.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping is owned by this value alone, as by a boxed slice, and what is in it is reached by unsafe code of its owner alone.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// So many bytes in small pages; none if the kernel refuses, or if there are more than fit in an address space.
    pub(crate) fn new(bytes: Option<usize>) -> Mapping {
        let none = Mapping { start: NonNull::dangling(), bytes: 0 };
        let Some(bytes) = bytes.filter(|bytes| (1..=isize::MAX as usize).contains(bytes)) else {
            return none;
        };
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice overlaps nothing.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
        let Some(start) = mapped.ok().and_then(|start| NonNull::new(start.cast::<u8>())) else { return none };
        // Of a huge page all 2 MiB are there as soon as a byte is.
        // SAFETY: the range is what was mapped, and the advice changes no contents.
        let _ = unsafe { madvise(start.as_ptr().cast(), bytes, Advice::LinuxNoHugepage) };
        Mapping { start, bytes }
    }

    /// The first byte; it dangles if there is none.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Part of it takes no memory from now on, until it is written to, and its bytes are zeros; whether the system did so.
    ///
    /// # Panics
    /// If the range is not in the mapping.
    ///
    /// # Safety
    /// Its ends are multiples of the system's pages, and nobody has a reference into it.
    pub(crate) unsafe fn give_back(&self, range: Range<usize>) -> bool {
        assert!(range.start <= range.end && range.end <= self.bytes, "bytes of another mapping");
        // SAFETY: the range begins in the mapping or at its end.
        let start = unsafe { self.start.add(range.start) };
        // SAFETY: the range is whole pages of a private anonymous mapping, and nobody has a reference into it: the caller has seen to both.
        unsafe { madvise(start.as_ptr().cast(), range.len(), Advice::LinuxDontNeed) }.is_ok()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: exactly what was mapped; who owns it has no references into it any more.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        }
    }
}
