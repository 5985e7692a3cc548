//! Which of two homes a value is read from: its mirror on the fastest class, or where the leaf has it.
//!
//! The mirror, as a rule. But a class that many reads wait for gives no more however many there are, while the slower one has nothing to do. So:
//!
//! 1. From [`BUSY`] reads of mirrors under way on, one in [`ONE_IN`] of those that are under way at once goes to the other class.
//! 2. Whether that was as quick is told without a clock: while a read of a mirror is under way, about as many others end as are under way with it. If more
//!    had ended when a read of the other class did, it took longer than in the mirror, and none goes there for [`PATIENCE`] times as many.
//!
//! Everything here is a hint: both have the value.

use std::sync::atomic::{AtomicU64, Ordering};

/// Reads of mirrors under way with which the fastest class has enough to do.
const BUSY: u64 = 16;

/// Of so many of them, one may go to the other class.
const ONE_IN: u64 = 8;

/// What a read that took longer than it should have keeps others from going there, in what ended meanwhile.
const PATIENCE: u64 = 64;

/// What is under way on both sides.
#[derive(Debug, Default)]
pub(crate) struct Sides {
    in_mirrors: AtomicU64,
    at_homes: AtomicU64,
    /// Reads of mirrors that have ended,
    ended: AtomicU64,
    /// and how many have to until one goes to the other class again.
    again_at: AtomicU64,
}

impl Sides {
    /// A read of a mirror, under way as long as that is held.
    pub(crate) fn in_mirror(&self) -> InMirror<'_> {
        self.in_mirrors.fetch_add(1, Ordering::Relaxed);
        InMirror(self)
    }

    /// A read that goes where the leaf has the value though a mirror has it, under way as long as that is held; `None` if the mirror is better.
    pub(crate) fn at_home(&self) -> Option<AtHome<'_>> {
        let beside = self.in_mirrors.load(Ordering::Relaxed);
        if beside < BUSY {
            return None;
        }
        let began = self.ended.load(Ordering::Relaxed);
        if began < self.again_at.load(Ordering::Relaxed) {
            return None;
        }
        let most = beside / ONE_IN;
        let one_more = |count: u64| (count < most).then_some(count + 1);
        self.at_homes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(AtHome { sides: self, beside, began })
    }
}

#[derive(Debug)]
pub(crate) struct InMirror<'a>(&'a Sides);

impl Drop for InMirror<'_> {
    fn drop(&mut self) {
        self.0.in_mirrors.fetch_sub(1, Ordering::Relaxed);
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct AtHome<'a> {
    sides: &'a Sides,
    /// Reads of mirrors that were under way when it began,
    beside: u64,
    /// and those that had ended.
    began: u64,
}

impl Drop for AtHome<'_> {
    fn drop(&mut self) {
        let ended = self.sides.ended.load(Ordering::Relaxed);
        let meanwhile = ended.saturating_sub(self.began);
        if meanwhile > self.beside {
            self.sides.again_at.fetch_max(ended + PATIENCE * meanwhile, Ordering::Relaxed);
        }
        self.sides.at_homes.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(sides: &Sides, reads: u64) {
        (0..reads).for_each(|_| drop(sides.in_mirror()));
    }

    #[test]
    fn a_few_go_home_while_many_wait_for_mirrors() {
        let sides = Sides::default();
        let mut in_mirrors: Vec<_> = (0..BUSY - 1).map(|_| sides.in_mirror()).collect();
        assert!(sides.at_home().is_none(), "few");
        in_mirrors.extend((0..2).map(|_| sides.in_mirror()));
        let two = [sides.at_home(), sides.at_home()];
        assert!(two.iter().all(Option::is_some) && sides.at_home().is_none(), "no more than one in eight");
        drop(two);
        assert!(sides.at_home().is_some(), "as quick as the others, or quicker");
        drop(in_mirrors);
        assert!(sides.at_home().is_none());
    }

    #[test]
    fn a_class_that_is_slower_is_left_alone_for_long_and_tried_again() {
        let sides = Sides::default();
        let _in_mirrors: Vec<_> = (0..BUSY).map(|_| sides.in_mirror()).collect();
        let as_quick = sides.at_home().unwrap();
        end(&sides, BUSY);
        drop(as_quick);
        let slower = sides.at_home().unwrap();
        end(&sides, 10 * BUSY);
        drop(slower);
        assert!(sides.at_home().is_none());
        end(&sides, PATIENCE * 10 * BUSY - 1);
        assert!(sides.at_home().is_none());
        end(&sides, 1);
        assert!(sides.at_home().is_some());
    }
}
