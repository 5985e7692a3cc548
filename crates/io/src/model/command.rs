//! What models are told and what they answer: events in, the time of the next event out. No I/O, no clock, no threads.
//!
//! 1. [`Member::advance`] brings a member to a time and collects what completed by then, each with the ideal time of
//!    its completion.
//! 2. [`Member::arrive`] hands it a command that arrives at that time.
//! 3. [`Member::next_event`] tells when to come back; there may be nothing to collect then (the mechanism only turned
//!    to the next command).
//!
//! Invariant: time never goes backwards, neither in calls nor in completions of one call to the next; but a member may
//! take commands that arrive late ([`Member::takes_late_ones`]), whose completions may be late as well.

use crate::Operation;

/// Nanoseconds since the timeline's origin.
pub(crate) type Nanos = u64;

/// What a member is asked for. Offsets are the member's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) id: u64,
    pub(crate) operation: Operation,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

impl Command {
    pub(crate) fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }
}

/// A completed command's id and the time it completed.
pub(crate) type Completed = (u64, Nanos);

/// A disk or SSD as a state machine.
pub(crate) trait Member: Send + std::fmt::Debug {
    /// Takes a command at `now`, to which it has been advanced.
    fn arrive(&mut self, now: Nanos, command: Command);

    /// Whether a command may arrive at a time that the member has passed.
    fn takes_late_ones(&self) -> bool {
        false
    }

    /// Works off everything until `now`.
    fn advance(&mut self, now: Nanos, completed: &mut Vec<Completed>);

    /// When something happens next if nothing arrives.
    fn next_event(&self) -> Option<Nanos>;

    /// The data on this member spans `bytes` from now on.
    fn set_extent(&mut self, bytes: u64);
}

/// The time that `bytes` take at `rate` bytes a second.
pub(crate) fn transfer_time(bytes: u64, rate: u64) -> Nanos {
    u64::try_from(u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1))).unwrap_or(Nanos::MAX)
}

/// A duration in nanoseconds.
pub(crate) fn nanos(duration: std::time::Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}
