//! How many bytes a second placement may copy, all its copies together.
//!
//! A copy may begin as soon as the bytes of those before it are paid for. An idle time earns nothing: then one copy
//! begins at once, and the next when it is paid for.

use std::time::Duration;

/// A bandwidth limit.
#[derive(Debug)]
pub struct Rate {
    bytes_per_second: Option<u64>,
    /// When the next copy may begin.
    next: Duration,
}

impl Rate {
    /// No limit without `bytes_per_second`.
    pub fn new(bytes_per_second: Option<u64>) -> Rate {
        Rate { bytes_per_second, next: Duration::ZERO }
    }

    /// How long the next copy has to wait.
    pub fn pause(&self, now: Duration) -> Option<Duration> {
        self.next.checked_sub(now).filter(|pause| *pause > Duration::ZERO)
    }

    /// A copy of so many bytes begins.
    pub fn take(&mut self, now: Duration, bytes: u64) {
        self.next = self.next.max(now).saturating_add(self.time_of(bytes));
    }

    /// So many bytes of a copy that has begun were not copied after all.
    pub fn give_back(&mut self, bytes: u64) {
        self.next = self.next.saturating_sub(self.time_of(bytes));
    }

    fn time_of(&self, bytes: u64) -> Duration {
        let nanoseconds = |rate: u64| u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
        let time = self.bytes_per_second.map_or(0, nanoseconds);
        Duration::from_nanos(u64::try_from(time).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn each_copy_waits_until_those_before_are_paid_for() {
        let mut rate = Rate::new(Some(1 << 20));
        assert_eq!(rate.pause(5 * SECOND), None);
        rate.take(5 * SECOND, 2 << 20);
        assert_eq!(rate.pause(5 * SECOND), Some(2 * SECOND));
        assert_eq!(rate.pause(6 * SECOND), Some(SECOND));
        rate.give_back(1 << 20);
        assert_eq!(rate.pause(6 * SECOND), None);
        rate.take(9 * SECOND, 1 << 20);
        assert_eq!(rate.pause(9 * SECOND), Some(SECOND));
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut rate = Rate::new(None);
        rate.take(SECOND, u64::MAX);
        assert_eq!(rate.pause(SECOND), None);
    }
}
