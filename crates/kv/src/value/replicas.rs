//! Replica selection: whether a value is read from its mirror on the fastest class or from the leaf's own copy.
//!
//! Reads prefer the mirror. But a class with many reads in flight gains no throughput from more of them, while the
//! slower class is idle. So:
//!
//! 1. With `REPLICAS.busy_reads` mirror reads in flight, a share of further reads goes to the other class.
//! 2. The mean latency of both is measured over rounds of `REPLICAS.round_time`. Single latencies say little: a
//!    saturated class stalls for milliseconds now and then and answers at once in between.
//! 3. The share grows by a step after a round in which the other class was not much slower, and shrinks after one in
//!    which it was. A share of zero is tried again after `REPLICAS.pause_rounds`.
//!
//! The choice is only a hint: both copies have the value.

use crate::tuning::reads::REPLICAS;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::environment::Environment;

/// The denominator of shares.
const SHARE_SCALE: u64 = 256;

/// Largest share of reads that go to the other class.
const MAX_SHARE: u64 = SHARE_SCALE / 2;

/// Latencies of reads, summed.
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

    /// Returns the mean since the last call; `None` without reads.
    fn take_mean(&self) -> Option<u64> {
        let (reads, ns) = (self.reads.swap(0, Ordering::Relaxed), self.ns.swap(0, Ordering::Relaxed));
        ns.checked_div(reads)
    }
}

/// Returns the share after a round with such mean latencies.
fn next_share(share: u64, in_mirrors_ns: u64, at_homes_ns: u64) -> u64 {
    if at_homes_ns < in_mirrors_ns / 8 * 9 {
        (share + REPLICAS.share_step).min(MAX_SHARE)
    } else if at_homes_ns > in_mirrors_ns / 8 * 11 {
        let less = if at_homes_ns / 2 > in_mirrors_ns { share / 2 } else { share / 4 * 3 };
        if less < REPLICAS.share_step { 0 } else { less }
    } else {
        share
    }
}

/// The selector of a database; see the module.
#[derive(Default)]
pub(crate) struct ReplicaSelector {
    /// Without a clock every read goes to the mirror.
    clock: Option<Arc<dyn Environment>>,
    in_mirrors: AtomicU64,
    /// Reads of either copy that began while mirrors were busy.
    begun: AtomicU64,
    share: AtomicU64,
    mirrors_took: Took,
    homes_took: Took,
    /// End of the round, in nanoseconds of the clock.
    round_ends: AtomicU64,
    /// Rounds left before a share of zero is tried again.
    rests: AtomicU64,
}

impl fmt::Debug for ReplicaSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaSelector")
            .field("in_mirrors", &self.in_mirrors)
            .field("share", &self.share)
            .finish()
    }
}

impl ReplicaSelector {
    pub(crate) fn new(clock: Option<Arc<dyn Environment>>) -> ReplicaSelector {
        ReplicaSelector { clock, share: AtomicU64::new(REPLICAS.share_step), ..ReplicaSelector::default() }
    }

    /// Begins a read of a value with both copies; it is in flight until the result is dropped.
    pub(crate) fn begin(&self) -> ReadInFlight<'_> {
        let is_busy = self.in_mirrors.load(Ordering::Relaxed) >= REPLICAS.busy_reads;
        let began = self.clock.as_ref().filter(|_| is_busy).map(|clock| clock.now());
        let is_at_home = began.is_some() && self.is_next_at_home();
        if !is_at_home {
            self.in_mirrors.fetch_add(1, Ordering::Relaxed);
        }
        ReadInFlight { replicas: self, is_at_home, began }
    }

    /// Returns true if the next read goes to the other class; these are spread evenly.
    fn is_next_at_home(&self) -> bool {
        let share = self.share.load(Ordering::Relaxed);
        let no = self.begun.fetch_add(1, Ordering::Relaxed) % SHARE_SCALE;
        (no + 1) * share / SHARE_SCALE > no * share / SHARE_SCALE
    }

    fn ended(&self, is_at_home: bool, began: Duration, now: Duration) {
        let took = if is_at_home { &self.homes_took } else { &self.mirrors_took };
        took.add(now.saturating_sub(began));
        let (now, ends) = (now.as_nanos() as u64, self.round_ends.load(Ordering::Relaxed));
        let next_ends = now + REPLICAS.round_time.as_nanos() as u64;
        if now >= ends
            && self.round_ends.compare_exchange(ends, next_ends, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.end_round();
        }
    }

    /// Ends a round. Must not be called concurrently.
    fn end_round(&self) {
        let (in_mirrors, at_homes) = (self.mirrors_took.take_mean(), self.homes_took.take_mean());
        let share = self.share.load(Ordering::Relaxed);
        if share == 0 {
            let rests = self.rests.load(Ordering::Relaxed).saturating_sub(1);
            self.rests.store(rests, Ordering::Relaxed);
            if rests == 0 {
                self.share.store(REPLICAS.share_step, Ordering::Relaxed);
            }
            return;
        }
        let (Some(in_mirrors), Some(at_homes)) = (in_mirrors, at_homes) else { return };
        let next = next_share(share, in_mirrors, at_homes);
        if next == 0 {
            self.rests.store(REPLICAS.pause_rounds, Ordering::Relaxed);
        }
        self.share.store(next, Ordering::Relaxed);
    }
}

/// A read in flight.
#[derive(Debug)]
pub(crate) struct ReadInFlight<'a> {
    replicas: &'a ReplicaSelector,
    is_at_home: bool,
    /// When it began; `None` if it is not measured.
    began: Option<Duration>,
}

impl ReadInFlight<'_> {
    /// Returns true if the read goes to the other class.
    pub(crate) fn is_at_home(&self) -> bool {
        self.is_at_home
    }
}

impl Drop for ReadInFlight<'_> {
    fn drop(&mut self) {
        if !self.is_at_home {
            self.replicas.in_mirrors.fetch_sub(1, Ordering::Relaxed);
        }
        if let (Some(began), Some(clock)) = (self.began, &self.replicas.clock) {
            self.replicas.ended(self.is_at_home, began, clock.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ThreadEnvironment;

    fn replicas() -> ReplicaSelector {
        ReplicaSelector::new(Some(ThreadEnvironment::new()))
    }

    /// Of `reads` that begin and end at once, returns how many went to the other class.
    fn at_home(replicas: &ReplicaSelector, reads: u64) -> u64 {
        (0..reads).filter(|_| replicas.begin().is_at_home()).count() as u64
    }

    #[test]
    fn busy_mirrors_send_a_share_of_reads_to_the_home_copy() {
        let replicas = replicas();
        let in_mirrors: Vec<_> = (0..REPLICAS.busy_reads - 1).map(|_| replicas.begin()).collect();
        assert_eq!(at_home(&replicas, SHARE_SCALE), 0, "few are under way");
        let _one_more = replicas.begin();
        // No round ends in this test.
        replicas.round_ends.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(at_home(&replicas, 10 * SHARE_SCALE), 10 * REPLICAS.share_step);
        drop(in_mirrors);
        assert_eq!(at_home(&replicas, SHARE_SCALE), 0);
    }

    #[test]
    fn the_share_grows_while_the_other_class_is_quicker_and_shrinks_when_it_is_not() {
        let replicas = replicas();
        let round = |mirror_us, home_us| {
            replicas.mirrors_took.add(Duration::from_micros(mirror_us));
            replicas.homes_took.add(Duration::from_micros(home_us));
            replicas.end_round();
            replicas.share.load(Ordering::Relaxed)
        };
        let grown: Vec<u64> = [500, 950, 1100].into_iter().map(|us| round(1000, us)).collect();
        assert_eq!(grown, [2 * REPLICAS.share_step, 3 * REPLICAS.share_step, 4 * REPLICAS.share_step]);
        assert_eq!(round(1000, 1250), 4 * REPLICAS.share_step, "somewhat slower");
        assert_eq!(round(1000, 1500), 3 * REPLICAS.share_step);
        assert_eq!(round(1000, 2500), REPLICAS.share_step + REPLICAS.share_step / 2);
        assert_eq!(round(1000, 2500), 0);
        let rests = (0..).take_while(|_| round(1000, 2500) == 0).count() as u64;
        assert_eq!(rests, REPLICAS.pause_rounds - 1);
    }

    #[test]
    fn a_round_is_over_after_its_time() {
        let replicas = replicas();
        let at = |is_at_home, ms| {
            let now = Duration::from_millis(ms);
            replicas.ended(
                is_at_home,
                now.saturating_sub(Duration::from_millis(1 + u64::from(!is_at_home))),
                now,
            );
            replicas.share.load(Ordering::Relaxed)
        };
        // The first read begins a round.
        assert_eq!(at(false, 1000), REPLICAS.share_step);
        assert_eq!([at(true, 1010), at(false, 1049)], [REPLICAS.share_step; 2]);
        assert_eq!([at(false, 1050), at(true, 1060)], [2 * REPLICAS.share_step; 2]);
    }

    #[test]
    fn without_a_clock_all_is_read_in_mirrors() {
        let replicas = ReplicaSelector::default();
        let _in_mirrors: Vec<_> = (0..2 * REPLICAS.busy_reads).map(|_| replicas.begin()).collect();
        assert_eq!(at_home(&replicas, SHARE_SCALE), 0);
    }
}
