//! Which of two homes a value is read from: its mirror on the fastest class, or where the leaf has it.
//!
//! The mirror, as a rule. But a class that many reads wait for gives no more however many there are, while the slower
//! one has nothing to do. So:
//!
//! 1. With [`BUSY`] reads of mirrors under way, a share of what more come goes to the other class.
//! 2. It is measured how long both take, in the mean over a round of [`ROUND`]. A class that gives no more holds all up
//!    for milliseconds now and then, and answers at once in between: of single reads most say nothing of that.
//! 3. After a round in which the other class did not take much more time its share is a step larger, and after one in
//!    which it did it is smaller: what goes there frees the first one for others. A share of none is tried again [after
//!    some rounds](RESTS).
//!
//! Everything here is a hint: both have the value.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::environment::Environment;

/// Reads of mirrors under way with which the fastest class has enough to do.
const BUSY: u64 = 16;

/// Shares are told in parts of it.
const WHOLE: u64 = 256;

/// What a share begins with, and grows by.
const STEP: u64 = 4;

/// Most that goes to the other class.
const MOST: u64 = WHOLE / 2;

/// How long is measured before the share changes.
const ROUND: Duration = Duration::from_millis(50);

/// Rounds in which nothing goes to a class that was slower.
const RESTS: u64 = 32;

/// Time that reads took together.
#[derive(Debug, Default)]
struct Took {
    reads: AtomicU64,
    ns: AtomicU64,
}

impl Took {
    fn add(&self, time: Duration) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// In the mean, since this was asked last; `None` if there was none.
    fn take_mean(&self) -> Option<u64> {
        let (reads, ns) = (self.reads.swap(0, Ordering::Relaxed), self.ns.swap(0, Ordering::Relaxed));
        ns.checked_div(reads)
    }
}

/// The share after a round in which reads took so long in the mean.
fn next_share(share: u64, in_mirrors_ns: u64, at_homes_ns: u64) -> u64 {
    if at_homes_ns < in_mirrors_ns / 8 * 9 {
        (share + STEP).min(MOST)
    } else if at_homes_ns > in_mirrors_ns / 8 * 11 {
        let less = if at_homes_ns / 2 > in_mirrors_ns { share / 2 } else { share / 4 * 3 };
        if less < STEP { 0 } else { less }
    } else {
        share
    }
}

/// What is under way, and what was.
#[derive(Default)]
pub(crate) struct Sides {
    /// Without a clock all is read in mirrors.
    clock: Option<Arc<dyn Environment>>,
    in_mirrors: AtomicU64,
    /// Reads of either that were begun while many were under way.
    begun: AtomicU64,
    share: AtomicU64,
    mirrors_took: Took,
    homes_took: Took,
    /// In nanoseconds of the clock.
    round_ends: AtomicU64,
    /// Rounds to go before a share of none is tried again.
    rests: AtomicU64,
}

impl fmt::Debug for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sides").field("in_mirrors", &self.in_mirrors).field("share", &self.share).finish()
    }
}

impl Sides {
    pub(crate) fn new(clock: Option<Arc<dyn Environment>>) -> Sides {
        Sides { clock, share: AtomicU64::new(STEP), ..Sides::default() }
    }

    /// A read of what both have, under way as long as that is held.
    pub(crate) fn begin(&self) -> UnderWay<'_> {
        let is_busy = self.in_mirrors.load(Ordering::Relaxed) >= BUSY;
        let began = self.clock.as_ref().filter(|_| is_busy).map(|clock| clock.now());
        let is_at_home = began.is_some() && self.is_next_at_home();
        if !is_at_home {
            self.in_mirrors.fetch_add(1, Ordering::Relaxed);
        }
        UnderWay { sides: self, is_at_home, began }
    }

    /// Spreads those that go to the other class evenly.
    fn is_next_at_home(&self) -> bool {
        let share = self.share.load(Ordering::Relaxed);
        let no = self.begun.fetch_add(1, Ordering::Relaxed) % WHOLE;
        (no + 1) * share / WHOLE > no * share / WHOLE
    }

    fn ended(&self, is_at_home: bool, began: Duration, now: Duration) {
        let took = if is_at_home { &self.homes_took } else { &self.mirrors_took };
        took.add(now.saturating_sub(began));
        let (now, ends) = (now.as_nanos() as u64, self.round_ends.load(Ordering::Relaxed));
        let next_ends = now + ROUND.as_nanos() as u64;
        if now >= ends
            && self.round_ends.compare_exchange(ends, next_ends, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.end_round();
        }
    }

    /// To be called by one at a time.
    fn end_round(&self) {
        let (in_mirrors, at_homes) = (self.mirrors_took.take_mean(), self.homes_took.take_mean());
        let share = self.share.load(Ordering::Relaxed);
        if share == 0 {
            let rests = self.rests.load(Ordering::Relaxed).saturating_sub(1);
            self.rests.store(rests, Ordering::Relaxed);
            if rests == 0 {
                self.share.store(STEP, Ordering::Relaxed);
            }
            return;
        }
        let (Some(in_mirrors), Some(at_homes)) = (in_mirrors, at_homes) else { return };
        let next = next_share(share, in_mirrors, at_homes);
        if next == 0 {
            self.rests.store(RESTS, Ordering::Relaxed);
        }
        self.share.store(next, Ordering::Relaxed);
    }
}

/// A read that is under way.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    sides: &'a Sides,
    is_at_home: bool,
    /// `None` if it is not measured.
    began: Option<Duration>,
}

impl UnderWay<'_> {
    /// Returns whether it is to go to the other class.
    pub(crate) fn is_at_home(&self) -> bool {
        self.is_at_home
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.is_at_home {
            self.sides.in_mirrors.fetch_sub(1, Ordering::Relaxed);
        }
        if let (Some(began), Some(clock)) = (self.began, &self.sides.clock) {
            self.sides.ended(self.is_at_home, began, clock.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadEnvironment;

    fn sides() -> Sides {
        Sides::new(Some(ThreadEnvironment::new()))
    }

    /// Of so many reads that begin and end at once, those that went home.
    fn at_home(sides: &Sides, reads: u64) -> u64 {
        (0..reads).filter(|_| sides.begin().is_at_home()).count() as u64
    }

    #[test]
    fn busy_mirrors_send_a_share_of_reads_to_the_home_copy() {
        let sides = sides();
        let in_mirrors: Vec<_> = (0..BUSY - 1).map(|_| sides.begin()).collect();
        assert_eq!(at_home(&sides, WHOLE), 0, "few are under way");
        let _one_more = sides.begin();
        // No round ends meanwhile.
        sides.round_ends.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(at_home(&sides, 10 * WHOLE), 10 * STEP);
        drop(in_mirrors);
        assert_eq!(at_home(&sides, WHOLE), 0);
    }

    #[test]
    fn the_share_grows_while_the_other_class_is_quicker_and_shrinks_when_it_is_not() {
        let sides = sides();
        let round = |mirror_us, home_us| {
            sides.mirrors_took.add(Duration::from_micros(mirror_us));
            sides.homes_took.add(Duration::from_micros(home_us));
            sides.end_round();
            sides.share.load(Ordering::Relaxed)
        };
        let grown: Vec<u64> = [500, 950, 1100].into_iter().map(|us| round(1000, us)).collect();
        assert_eq!(grown, [2 * STEP, 3 * STEP, 4 * STEP]);
        assert_eq!(round(1000, 1250), 4 * STEP, "somewhat slower");
        assert_eq!(round(1000, 1500), 3 * STEP);
        assert_eq!(round(1000, 2500), STEP + STEP / 2);
        assert_eq!(round(1000, 2500), 0);
        let rests = (0..).take_while(|_| round(1000, 2500) == 0).count() as u64;
        assert_eq!(rests, RESTS - 1);
    }

    #[test]
    fn a_round_is_over_after_its_time() {
        let sides = sides();
        let at = |is_at_home, ms| {
            let now = Duration::from_millis(ms);
            sides.ended(
                is_at_home,
                now.saturating_sub(Duration::from_millis(1 + u64::from(!is_at_home))),
                now,
            );
            sides.share.load(Ordering::Relaxed)
        };
        // The first one begins a round.
        assert_eq!(at(false, 1000), STEP);
        assert_eq!([at(true, 1010), at(false, 1049)], [STEP; 2]);
        assert_eq!([at(false, 1050), at(true, 1060)], [2 * STEP; 2]);
    }

    #[test]
    fn without_a_clock_all_is_read_in_mirrors() {
        let sides = Sides::default();
        let _in_mirrors: Vec<_> = (0..2 * BUSY).map(|_| sides.begin()).collect();
        assert_eq!(at_home(&sides, WHOLE), 0);
    }
}
