//! Adaptive read-rate limiter for a media class.
//!
//! Volumes with an IOPS quota (cloud disks, limits of the kernel) serve reads at full speed until the quota is spent
//! and then stall until the next accounting period. Sending every read at once does not change the throughput, but the
//! tail latency is a hundred times the median. This limiter detects stalls and paces reads just below the capacity
//! (AIMD).
//!
//! 1. A *stall* is a gap of at least `LIMITER.stall_gap`, and of `LIMITER.stall_gap_reads` reads, without a completion
//!    while several reads are in flight and another one was submitted during the gap, so that the process itself was
//!    running.
//! 2. After `LIMITER.stalls_to_limit` stalls within `LIMITER.stall_window` the rate is limited to
//!    `LIMITER.max_rate_fraction` of the capacity observed. Further reads wait in a queue, first in, first out.
//! 3. A further stall lowers the limit, but not below `LIMITER.min_rate_fraction` of the capacity. Without stalls, and
//!    with reads waiting, the limit rises slowly, up to the capacity; after `LIMITER.quiet_time` faster and beyond it,
//!    since the class may have become faster. The limit is dropped when it is far above the demand.
//!
//! Reads of single values pass the limiter; scans and jobs bypass it.

use crate::tuning::reads::LIMITER;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::channel::oneshot;
use parking_lot::Mutex;

use crate::environment::Environment;

/// The maximum over the current window and the one before.
#[derive(Debug, Default)]
struct Best {
    now: f64,
    before: f64,
}

impl Best {
    fn note(&mut self, value: f64) {
        self.now = self.now.max(value);
    }

    fn get(&self) -> f64 {
        self.now.max(self.before)
    }

    fn next(&mut self) {
        (self.before, self.now) = (self.now, 0.0);
    }
}

/// The capacity of a class, from its completions.
#[derive(Debug, Default)]
struct Answered {
    since_stall: u64,
    /// Completions in the current second.
    lately: u64,
    began: Duration,
    in_a_second: f64,
    /// Best rate of a second. The limit stays near it, although a class may stall for other reasons.
    at_best: Best,
    /// Best rate between two stalls. Both are at the end of an accounting period, so it does not exceed the capacity.
    most: Best,
    best_began: Duration,
}

impl Answered {
    fn note(&mut self, now: Duration) {
        self.since_stall += 1;
        self.lately += 1;
        let took = now.saturating_sub(self.began);
        if took >= LIMITER.stall_window {
            self.in_a_second = self.lately as f64 / took.as_secs_f64();
            (self.lately, self.began) = (0, now);
            if now.saturating_sub(self.best_began) >= LIMITER.capacity_window {
                self.at_best.next();
                self.most.next();
                self.best_began = now;
            }
            self.at_best.note(self.in_a_second);
        }
    }

    /// Notes the end of a stall, `since` after the stall before.
    fn note_stall(&mut self, since: Duration) {
        let in_a_second = self.since_stall as f64 / since.max(LIMITER.stall_gap).as_secs_f64();
        if since <= LIMITER.stall_window
            && in_a_second >= self.at_best.get() * LIMITER.capacity_sample_fraction
        {
            self.most.note(in_a_second);
        }
        self.since_stall = 0;
    }

    /// Returns a lower bound of the capacity.
    fn least(&self) -> f64 {
        self.at_best.get().max(self.most.get())
    }

    /// Returns an upper bound of the capacity, if it is known.
    fn most(&self) -> Option<f64> {
        Some(self.most.get()).filter(|most| *most > 0.0)
    }
}

/// The state machine of the limit: reads in, rate out.
#[derive(Debug, Default)]
struct Limit {
    in_flight: usize,
    last_end: Duration,
    /// When a read was first submitted in the present gap.
    begun_in_gap: Option<Duration>,
    answered: Answered,
    stalls: u32,
    last_stall: Duration,
    /// The limit in reads a second; `None` if there is none.
    per_second: Option<f64>,
    more: f64,
    changed: Duration,
    /// Reads have waited since the limit was changed.
    has_waited: bool,
}

impl Limit {
    fn begin(&mut self, now: Duration) {
        if self.in_flight == 0 {
            self.last_end = now;
        } else if self.begun_in_gap.is_none()
            && now.saturating_sub(self.last_end) >= LIMITER.stall_gap - LIMITER.stall_after_submit
        {
            self.begun_in_gap = Some(now);
        }
        self.in_flight += 1;
    }

    /// A read was dropped before it completed.
    fn give_up(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn end(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.last_end);
        let is_gap = gap >= LIMITER.stall_gap
            && gap.as_secs_f64() * self.answered.in_a_second >= LIMITER.stall_gap_reads;
        let begun = self.begun_in_gap.take();
        let goes_on = begun.is_some_and(|begun| now.saturating_sub(begun) >= LIMITER.stall_after_submit);
        let is_stall = is_gap && goes_on && self.in_flight >= LIMITER.min_reads_in_flight;
        self.in_flight = self.in_flight.saturating_sub(1);
        self.last_end = now;
        self.answered.note(now);
        if is_stall {
            self.note_stall(now);
        } else if self.per_second.is_some() && now.saturating_sub(self.changed) >= LIMITER.stall_window {
            self.increase(now);
        }
    }

    fn note_stall(&mut self, now: Duration) {
        let since = now.saturating_sub(self.last_stall);
        self.answered.note_stall(since);
        let is_chance = since > LIMITER.stall_window;
        self.stalls = if is_chance { 1 } else { self.stalls + 1 };
        self.last_stall = now;
        if self.stalls < LIMITER.stalls_to_limit {
            return;
        }
        let least = self.answered.least();
        let per_second = self
            .per_second
            .map_or(least, |given| (given * LIMITER.rate_decrease).max(least * LIMITER.min_rate_fraction));
        self.change(now, Some(self.within(per_second).max(1.0)), LIMITER.rate_increase_per_s);
    }

    /// Bounds a rate by the capacity, if it is known.
    fn within(&self, per_second: f64) -> f64 {
        self.answered.most().map_or(per_second, |most| per_second.min(most * LIMITER.max_rate_fraction))
    }

    fn increase(&mut self, now: Duration) {
        let is_quiet = now.saturating_sub(self.last_stall) >= LIMITER.quiet_time;
        if is_quiet {
            self.answered.most = Best::default();
        }
        let per_second = match self.per_second {
            Some(given) if self.has_waited => Some(self.within(given * (1.0 + self.more))),
            given => given,
        };
        let is_limit = |given: &f64| *given <= LIMITER.unlimited_factor * self.answered.in_a_second;
        let max_increase =
            if is_quiet { LIMITER.max_rate_increase_per_s_quiet } else { LIMITER.max_rate_increase_per_s };
        self.change(now, per_second.filter(is_limit), (self.more * 2.0).min(max_increase));
    }

    fn change(&mut self, now: Duration, per_second: Option<f64>, more: f64) {
        (self.per_second, self.more) = (per_second, more);
        (self.changed, self.has_waited) = (now, false);
    }

    /// Time between two admissions; `None` if there is no limit.
    fn interval(&self) -> Option<Duration> {
        self.per_second.map(|per_second| Duration::from_secs_f64(1.0 / per_second))
    }
}

#[derive(Debug, Default)]
struct Queue {
    limit: Limit,
    /// When the next read may be admitted.
    next: Duration,
    /// A dispatcher task is running.
    has_dispatcher: bool,
    /// Waiting reads; each is notified when it is admitted.
    waiting: VecDeque<oneshot::Sender<()>>,
}

impl Queue {
    /// Admits a read if one is due; returns true if so.
    fn take(&mut self, now: Duration) -> bool {
        let Some(interval) = self.limit.interval() else { return true };
        self.next = self.next.max(now.saturating_sub(LIMITER.max_burst));
        let has_come = self.next <= now;
        if has_come {
            self.next += interval;
        }
        has_come
    }

    /// Removes and returns the waiting reads that are due.
    fn passing(&mut self, now: Duration) -> Vec<oneshot::Sender<()>> {
        let mut passing = Vec::new();
        while let Some(first) = self.waiting.front() {
            // Dropped readers take no admission.
            if !first.is_canceled() && !self.take(now) {
                break;
            }
            passing.extend(self.waiting.pop_front());
        }
        passing
    }
}

/// The limiter of a class; see the module.
#[derive(Debug)]
pub(crate) struct ReadLimiter {
    environment: Arc<dyn Environment>,
    queue: Mutex<Queue>,
    /// There is a limit.
    is_limited: AtomicBool,
}

/// Notifies admitted readers. No lock may be held: a reader may run at once.
fn tell(passing: impl IntoIterator<Item = oneshot::Sender<()>>) {
    for one in passing {
        // The reader may have been dropped; its admission is lost.
        let _ = one.send(());
    }
}

/// The task that admits waiting reads, independent of which of them are polled. When it is dropped, all are admitted.
struct Dispatcher(Weak<ReadLimiter>);

impl Drop for Dispatcher {
    fn drop(&mut self) {
        let Some(limiter) = self.0.upgrade() else { return };
        let waiting = {
            let mut queue = limiter.queue.lock();
            queue.has_dispatcher = false;
            std::mem::take(&mut queue.waiting)
        };
        tell(waiting);
    }
}

impl Dispatcher {
    /// Holds no reference while it sleeps, so closing a database does not wait for it.
    async fn lead(self) {
        let mut idle = 0;
        while idle <= LIMITER.idle_ticks {
            let Some(tick) = self.0.upgrade().map(|limiter| limiter.environment.sleep(LIMITER.tick_time))
            else {
                return;
            };
            tick.await;
            let Some(limiter) = self.0.upgrade() else { return };
            let passing = {
                let mut queue = limiter.queue.lock();
                idle = if queue.waiting.is_empty() { idle + 1 } else { 0 };
                queue.passing(limiter.environment.now())
            };
            tell(passing);
        }
        // Readers that arrived meanwhile are admitted by the drop.
    }
}

/// A read in flight; ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Passed<'a> {
    limiter: &'a ReadLimiter,
    is_answered: bool,
}

impl Passed<'_> {
    /// Marks the read as completed.
    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Passed<'_> {
    fn drop(&mut self) {
        let mut queue = self.limiter.queue.lock();
        match self.is_answered {
            true => queue.limit.end(self.limiter.environment.now()),
            false => queue.limit.give_up(),
        }
        self.limiter.is_limited.store(queue.limit.per_second.is_some(), Ordering::Relaxed);
    }
}

impl ReadLimiter {
    pub(crate) fn new(environment: Arc<dyn Environment>) -> Arc<ReadLimiter> {
        Arc::new(ReadLimiter { environment, queue: Mutex::default(), is_limited: AtomicBool::new(false) })
    }

    /// Returns the limit in reads a second, if there is one.
    pub(crate) fn most_reads_per_second(&self) -> Option<u64> {
        self.queue.lock().limit.per_second.map(|per_second| per_second as u64)
    }

    /// Waits until a read is admitted. To be called before each read.
    pub(crate) async fn pass(self: &Arc<ReadLimiter>) -> Passed<'_> {
        if self.is_limited.load(Ordering::Relaxed)
            && let Some(told) = self.wait()
        {
            // The dispatcher notifies, or its drop does.
            let _ = told.await;
        }
        let mut queue = self.queue.lock();
        queue.limit.begin(self.environment.now());
        Passed { limiter: self, is_answered: false }
    }

    /// Enqueues a read; `None` if it is admitted at once.
    fn wait(self: &Arc<ReadLimiter>) -> Option<oneshot::Receiver<()>> {
        let (receiver, has_dispatcher) = {
            let mut queue = self.queue.lock();
            if queue.waiting.is_empty() && queue.take(self.environment.now()) {
                return None;
            }
            queue.limit.has_waited = true;
            let (sender, receiver) = oneshot::channel();
            queue.waiting.push_back(sender);
            (receiver, std::mem::replace(&mut queue.has_dispatcher, true))
        };
        if !has_dispatcher {
            self.environment.spawn(Box::pin(Dispatcher(Arc::downgrade(self)).lead()));
        }
        Some(receiver)
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;
    use crate::ThreadEnvironment;
    use crate::environment::wait_for;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// Keeps ten reads in flight until `end`, on a disk with latency `read` and a quota of `most` reads in a tenth of a
    /// second.
    fn reads(limit: &mut Limit, (mut now, end): (Duration, Duration), read: Duration, most: u64) -> Duration {
        let (mut given, mut slice) = (0, now);
        for _ in 0..9 {
            limit.begin(now);
        }
        while now < end {
            limit.begin(now);
            if given == most {
                // Other readers submit meanwhile.
                for ms in [10, 20] {
                    limit.begin(now + Duration::from_millis(ms));
                }
                now = now.max(slice + Duration::from_millis(100));
                limit.end(now);
                limit.end(now);
                (given, slice) = (0, now);
            }
            now += read;
            given += 1;
            limit.end(now);
        }
        for _ in 0..9 {
            limit.end(now);
        }
        now
    }

    #[test]
    fn a_class_with_a_quota_is_limited_just_below_it() {
        let mut limit = Limit::default();
        let at = reads(&mut limit, (us(7), Duration::from_secs(2)), us(20), 1500);
        let given = limit.per_second.unwrap();
        assert!((13_000.0..15_100.0).contains(&given), "{given}");
        // The limit stays near the capacity, however often the class stalls.
        reads(&mut limit, (at, Duration::from_secs(30)), us(20), 1500);
        let given = limit.per_second.unwrap();
        assert!((13_000.0..15_100.0).contains(&given), "{given}");
    }

    #[test]
    fn a_class_without_stalls_has_no_rate_limit() {
        for read in [us(20), us(700), us(8000)] {
            let mut limit = Limit::default();
            reads(&mut limit, (us(7), Duration::from_secs(20)), read, u64::MAX);
            assert_eq!(limit.per_second, None, "{read:?}");
        }
    }

    #[test]
    fn a_class_that_stalls_is_limited_to_its_capacity() {
        let mut limit = Limit::default();
        let at = reads(&mut limit, (us(7), Duration::from_secs(2)), us(20), u64::MAX);
        // A second with a quota of a hundred in a tenth of a second, and then none.
        let at = reads(&mut limit, (at, at + Duration::from_secs(1)), us(20), 100);
        let given = limit.per_second.unwrap();
        assert!(given > 40_000.0, "{given} of 50,000");
        reads(&mut limit, (at, at + Duration::from_secs(20)), us(20), u64::MAX);
        assert!(limit.per_second.is_none_or(|given| given > 40_000.0), "{:?}", limit.per_second);
    }

    #[test]
    fn a_stopped_process_is_not_counted_as_a_stall() {
        let mut limit = Limit::default();
        let mut now = us(7);
        for round in 0..100_000u32 {
            (0..10).for_each(|_| limit.begin(now));
            if round.is_multiple_of(5000) {
                now += Duration::from_millis(20);
                limit.begin(now);
                limit.end(now + us(10));
            }
            now += us(200);
            (0..10).for_each(|_| limit.end(now));
        }
        assert_eq!((limit.per_second, limit.stalls), (None, 0));
    }

    #[test]
    fn the_rate_limit_rises_under_demand_until_the_next_stall() {
        let second = Duration::from_secs(1);
        let mut limit = Limit::default();
        let mut now = reads(&mut limit, (us(7), 2 * second), us(20), 1500);
        let first = limit.per_second.unwrap();
        let mut given = |limit: &mut Limit, waits, seconds| -> Vec<f64> {
            let mut next = || {
                limit.has_waited = waits;
                now = reads(limit, (now, now + second), us(70), u64::MAX);
                limit.per_second.unwrap_or(f64::INFINITY)
            };
            (0..seconds).map(|_| next()).collect()
        };
        let more = given(&mut limit, true, 8);
        assert!(more.is_sorted() && more[7] > first * 0.99 && more[7] < 15_100.0, "{first} {more:?}");
        // Without waiting reads the limit does not rise.
        assert!(given(&mut limit, false, 20).into_iter().all(|given| given == more[7]));
        // After a long time without stalls it rises beyond the capacity.
        let more = given(&mut limit, true, 20);
        assert!(more.is_sorted() && more[19] == f64::INFINITY, "{more:?}");
    }

    #[test]
    fn dropped_readers_do_not_block_the_rate_limiter() {
        let environment = ThreadEnvironment::new();
        let limiter = ReadLimiter::new(environment);
        limiter.queue.lock().limit.per_second = Some(20_000.0);
        limiter.is_limited.store(true, Ordering::Relaxed);
        let passes = async |no: u64| {
            for round in 0..50u64 {
                let mut passing = Box::pin(limiter.pass());
                // Some of the waiting readers are dropped.
                let goes = (no + round).is_multiple_of(3);
                match futures::poll!(&mut passing) {
                    std::task::Poll::Ready(passed) => passed.answered(),
                    std::task::Poll::Pending if goes => drop(passing),
                    std::task::Poll::Pending => drop(passing.await),
                }
                // The limit was dropped; set it again.
                limiter.is_limited.store(true, Ordering::Relaxed);
            }
        };
        // A waiting reader that is not polled while others are.
        let mut forgotten = Box::pin(limiter.pass());
        limiter.queue.lock().next = limiter.environment.now() + Duration::from_millis(20);
        assert!(futures::FutureExt::now_or_never(&mut forgotten).is_none());
        wait_for(join_all((0..30).map(passes)));
        drop(wait_for(forgotten));
        let has_dispatcher = || limiter.queue.lock().has_dispatcher;
        let queue_is_empty = {
            let queue = limiter.queue.lock();
            queue.waiting.is_empty() && queue.limit.in_flight == 0
        };
        assert!(queue_is_empty);
        // The dispatcher ends, and the next waiting reader starts another one.
        while has_dispatcher() {
            std::thread::sleep(LIMITER.tick_time);
        }
        limiter.is_limited.store(true, Ordering::Relaxed);
        limiter.queue.lock().limit.per_second = Some(20_000.0);
        limiter.queue.lock().next = limiter.environment.now() + Duration::from_millis(20);
        let mut next = Box::pin(limiter.pass());
        assert!(futures::FutureExt::now_or_never(&mut next).is_none() && has_dispatcher());
        drop(wait_for(next));
    }
}
