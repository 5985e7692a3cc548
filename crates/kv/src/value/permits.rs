//! Room in memory for values that are read while others are on their way out: what is read takes of it, and what was
//! written gives it back.

use super::notify::{Notified, Notify};
use super::sync::{AtomicBool, AtomicU64, Ordering};

/// Bytes that may be read still.
#[derive(Debug, Default)]
pub(crate) struct Room {
    left: AtomicU64,
    is_unlimited: AtomicBool,
    is_closed: AtomicBool,
    given: Notify,
}

impl Room {
    /// Creates permits without a bound.
    pub(crate) fn unlimited() -> Room {
        let room = Room::default();
        room.open();
        room
    }

    /// Creates permits for this many bytes.
    pub(crate) fn of(bytes: u64) -> Room {
        Room { left: AtomicU64::new(bytes), ..Room::default() }
    }

    /// Takes this many bytes, if they are there.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        self.is_unlimited.load(Ordering::Acquire)
            || self
                .left
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes))
                .is_ok()
    }

    /// Returns bytes.
    pub(crate) fn give(&self, bytes: u64) {
        self.left.fetch_add(bytes, Ordering::AcqRel);
        self.given.notify();
    }

    /// Nothing has to be kept free any more.
    pub(crate) fn open(&self) {
        self.is_unlimited.store(true, Ordering::Release);
        self.given.notify();
    }

    /// Nothing is wanted any more.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.given.notify();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Ready after the next time that there is more, from now on.
    pub(crate) fn more(&self) -> Notified {
        self.given.notified()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn returned_permits_can_be_taken_again() {
        super::super::sync::model(|| {
            let room = Room::of(10);
            assert!(room.take(7) && !room.take(4) && room.take(3));
            let more = room.more();
            room.give(5);
            assert!(more.now_or_never().is_some());
            assert!(room.more().now_or_never().is_none());
            assert!(!room.take(6) && room.take(5));
            room.open();
            assert!(room.take(u64::MAX));
            assert!(Room::unlimited().take(u64::MAX));
        });
    }
}
