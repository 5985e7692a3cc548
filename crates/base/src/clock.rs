//! Time as a part that is handed in, so that models, policies and simulations decide what time it is.

use std::fmt;
use std::time::{Duration, Instant};

/// A clock that never goes backwards. Cheap to read, from any thread.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Time since the clock's own origin.
    fn now(&self) -> Duration;
}

/// The machine's monotonic clock; its origin is its making.
///
/// ```
/// use tanada_base::{Clock, MonotonicClock};
/// let clock = MonotonicClock::new();
/// let earlier = clock.now();
/// assert!(clock.now() >= earlier);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MonotonicClock {
    origin: Instant,
}

impl MonotonicClock {
    /// A clock that starts at zero now.
    pub fn new() -> MonotonicClock {
        MonotonicClock { origin: Instant::now() }
    }
}

impl Default for MonotonicClock {
    fn default() -> MonotonicClock {
        MonotonicClock::new()
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }
}
