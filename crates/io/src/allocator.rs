//! The allocator of programs.
//!
//! What one thread allocates another one frees all the time: rows, cached values, buffers. glibc's allocator answers
//! that with twice the memory, and mimalloc keeps what came free for a second. A program that has promised to stay
//! within a budget cannot wait that long.

pub use mimalloc::MiMalloc as Allocator;

/// `mi_option_purge_delay`, which the bindings have no name for.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// How long memory that came free is kept from the system, in milliseconds.
const SOON_MS: i64 = 10;

/// Has [`Allocator`] give memory back to the system soon: from then on, whenever more comes free. To be called first
/// thing when a program begins. `MIMALLOC_PURGE_DELAY` in the environment outweighs it.
pub fn give_memory_back_soon() {
    set_delay(SOON_MS);
}

/// Has [`Allocator`] give memory back to the system when it comes free. With a delay, however short, it goes back when
/// more comes free near it, which may be never. For programs with a budget whose memory comes and goes in large pieces;
/// may be called at any time. `MIMALLOC_PURGE_DELAY` in the environment outweighs it.
pub fn give_memory_back_at_once() {
    set_delay(0);
}

fn set_delay(milliseconds: i64) {
    // SAFETY: it stores a number in a table of the allocator; the option is one of those in the table. The word is
    // aligned and written once, so that a thread that reads it meanwhile after all finds the old number or the new one,
    // and either is right.
    unsafe { libmimalloc_sys::mi_option_set_default(PURGE_DELAY, milliseconds) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_delay() {
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_some() {
            return;
        }
        // SAFETY: it reads a number of a table of the allocator.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        give_memory_back_soon();
        assert_eq!(delay(), SOON_MS);
        give_memory_back_at_once();
        assert_eq!(delay(), 0, "later, too");
    }
}
