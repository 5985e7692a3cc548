//! What the machine cannot do, noticed once and answered by the next best way.
//!
//! Invariant: of each [`Fallback`] a process warns at most once, however many devices and executors meet it.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

/// A facility that was wanted and not to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The file system has no direct I/O: reads and writes go through the kernel's page cache.
    NoDirect,
    /// The kernel, a container or a setting denies io_uring: a pool of threads does the I/O.
    NoUring,
    /// The kernel, a container or a setting denies native AIO: a pool of threads does the I/O.
    NoAio,
    /// The limit on locked memory is low: fewer buffers are registered, or none.
    LowMemlock,
}

static WARNED: [AtomicBool; 4] = [const { AtomicBool::new(false) }; 4];
static FORCED: [AtomicBool; 4] = [const { AtomicBool::new(false) }; 4];
type Sink = Box<dyn Fn(&str) + Send + Sync>;
static SINK: RwLock<Option<Sink>> = RwLock::new(None);

/// Sends the warnings of this crate and those given to [`warn`] to `sink` instead of standard error.
pub fn set_warning_sink(sink: impl Fn(&str) + Send + Sync + 'static) {
    *SINK.write() = Some(Box::new(sink));
}

/// Hands a warning to the sink, or to standard error if there is none. How often is up to the caller.
pub fn warn(message: &str) {
    match &*SINK.read() {
        Some(sink) => sink(message),
        None => eprintln!("warning: {message}"),
    }
}

/// Makes the crate behave as if the machine lacked a facility (`on`), or as it is again. For tests and for users who
/// distrust a facility. Holds for devices opened and executors started from now on.
pub fn force_fallback(fallback: Fallback, on: bool) {
    FORCED[fallback as usize].store(on, Ordering::SeqCst);
}

impl Fallback {
    pub(crate) fn is_forced(self) -> bool {
        FORCED[self as usize].load(Ordering::SeqCst)
    }

    /// Warns of this fallback, the first time only.
    pub(crate) fn warn(self, details: fmt::Arguments<'_>) {
        if WARNED[self as usize].swap(true, Ordering::SeqCst) {
            return;
        }
        let message = match self {
            Fallback::NoDirect => {
                format!("{details}; reading and writing through the kernel's page cache instead")
            }
            Fallback::NoUring => {
                format!("io_uring is not available ({details}); using a pool of threads instead")
            }
            Fallback::NoAio => {
                format!("native AIO is not available ({details}); using a pool of threads instead")
            }
            Fallback::LowMemlock => {
                format!("{details}; raise the limit on locked memory (ulimit -l) for less CPU per I/O")
            }
        };
        warn(&message);
    }
}
