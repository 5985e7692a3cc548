//! The allocator of programs.
//!
//! What one thread allocates another one frees all the time: rows, cached values, buffers. glibc's allocator answers that with twice the memory, and
//! mimalloc keeps what came free for a second. A program that has promised to stay within a budget cannot wait that long.

pub use mimalloc::MiMalloc as Allocator;

/// `mi_option_purge_delay`, which the bindings have no name for.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// How long memory that came free is kept from the system, in milliseconds.
const KEPT_MS: i64 = 10;

/// Has [`Allocator`] give memory back to the system soon. To be called when a program begins.
pub fn give_memory_back_soon() {
    // SAFETY: it stores a number in a table of the allocator, which every thread may do at any time; the option is one of those in the table.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, KEPT_MS) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_delay() {
        // SAFETY: as above.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        assert_eq!(delay(), 1000, "what mimalloc begins with");
        give_memory_back_soon();
        assert_eq!(delay(), KEPT_MS);
    }
}
