//! How many reads a class is given in a second.
//!
//! Disks that are sold with a number of reads per second, and those that the kernel limits, answer as fast as they can
//! until that number is used up, and then nothing until the second, or a part of it, is over. Who gives them all reads
//! at once so has the same number of reads in the end, but some take a hundred times as long as others, and all that
//! waits for one of these stands still. So:
//!
//! 1. A class *holds up* reads if several are under way, none ends for [`GAP`] and as long as many others took, and
//!    another one was begun meanwhile, so that it was not the program that stood still.
//! 2. When that has happened [`HOLD_UPS`] times within [`LATELY`], the class is given a little less than it has
//!    answered at best, evenly. What is more waits here, first come, first served.
//! 3. If it goes on to hold up reads as often, it is given less, but no less than nearly what it answers. If it does
//!    not, and some wait, it is given slowly more, up to what it answered; and if it has held up none for [`QUIET`],
//!    sooner and sooner more than that, for it may have become faster, or was asked for little before. When far more is
//!    given than is asked for, all pass at once again.
//!
//! Reads of single values, most of which somebody waits for, go this way; what jobs and scans read does not.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::channel::oneshot;
use parking_lot::Mutex;

use crate::environment::Environment;

/// No read ends for so long.
const GAP: Duration = Duration::from_millis(4);

/// And for as long as so many reads take one after the other when most are answered.
const READS_OF_A_GAP: f64 = 32.0;

/// And of that, after another one was begun.
const AFTER_BEGIN: Duration = Duration::from_millis(2);

/// Fewer reads under way say nothing.
const SEVERAL: usize = 4;

/// So often within that time, and it is no chance.
const HOLD_UPS: u32 = 3;
const LATELY: Duration = Duration::from_secs(1);

/// The best of so much time counts, and of as much before that.
const BEST_OF: Duration = Duration::from_secs(30);

/// The part of what is answered that is given at most, as long as that is known, and at least.
const MOST: f64 = 0.98;
const LEAST: f64 = 0.9;

/// Between two hold-ups so much of what was answered in a second at best has to be, or it says nothing.
const ENOUGH: f64 = 0.8;

/// What is given after one more hold-up, of what was.
const LESS: f64 = 0.98;

/// How much more is given each second, at first; as much again in the next one, up to that, or to much if nothing was
/// held up for long.
const MORE: f64 = 0.0025;
const MOST_MORE: f64 = 0.02;
const MUCH_MORE: f64 = 0.25;
const QUIET: Duration = Duration::from_secs(10);

/// So many times what was answered lately is no limit.
const NO_LIMIT: f64 = 2.0;

/// How long who waits for a turn sleeps: those that have theirs by then pass together.
const TICK: Duration = Duration::from_millis(1);

/// After so many in which nobody waited nobody looks after those that do.
const IDLE_TICKS: u32 = 100;

/// Turns that were not taken for so long are lost.
const KEPT: Duration = Duration::from_millis(4);

/// The most of some time, and of as much before that.
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

/// How many reads are answered in a second.
#[derive(Debug, Default)]
struct Answered {
    since_hold_up: u64,
    /// In the second that is going on, and in the last one.
    lately: u64,
    began: Duration,
    in_a_second: f64,
    /// In a second, at best. Though a class stands still for other reasons, it is given nearly that.
    at_best: Best,
    /// Between two hold-ups, at best: both are where the time is over that so many reads are for, so it is no more than
    /// the class gives.
    most: Best,
    best_began: Duration,
}

impl Answered {
    fn note(&mut self, now: Duration) {
        self.since_hold_up += 1;
        self.lately += 1;
        let took = now.saturating_sub(self.began);
        if took >= LATELY {
            self.in_a_second = self.lately as f64 / took.as_secs_f64();
            (self.lately, self.began) = (0, now);
            if now.saturating_sub(self.best_began) >= BEST_OF {
                self.at_best.next();
                self.most.next();
                self.best_began = now;
            }
            self.at_best.note(self.in_a_second);
        }
    }

    /// A hold-up has ended, so long after the last one.
    fn note_hold_up(&mut self, since: Duration) {
        let in_a_second = self.since_hold_up as f64 / since.max(GAP).as_secs_f64();
        if since <= LATELY && in_a_second >= self.at_best.get() * ENOUGH {
            self.most.note(in_a_second);
        }
        self.since_hold_up = 0;
    }

    /// A class answers no less.
    fn least(&self) -> f64 {
        self.at_best.get().max(self.most.get())
    }

    /// A class answers no more, if that is known.
    fn most(&self) -> Option<f64> {
        Some(self.most.get()).filter(|most| *most > 0.0)
    }
}

/// What a class is given, by what it does.
#[derive(Debug, Default)]
struct Limit {
    under_way: usize,
    last_end: Duration,
    /// When a read was begun first since then, though for some time none had ended.
    begun_in_gap: Option<Duration>,
    answered: Answered,
    hold_ups: u32,
    last_hold_up: Duration,
    /// Reads in a second; `None` if there is no limit.
    per_second: Option<f64>,
    more: f64,
    changed: Duration,
    /// Some waited since it was changed.
    has_waited: bool,
}

impl Limit {
    fn begin(&mut self, now: Duration) {
        if self.under_way == 0 {
            self.last_end = now;
        } else if self.begun_in_gap.is_none() && now.saturating_sub(self.last_end) >= GAP - AFTER_BEGIN {
            self.begun_in_gap = Some(now);
        }
        self.under_way += 1;
    }

    /// A read was given up.
    fn give_up(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    fn end(&mut self, now: Duration) {
        let gap = now.saturating_sub(self.last_end);
        let is_gap = gap >= GAP && gap.as_secs_f64() * self.answered.in_a_second >= READS_OF_A_GAP;
        let begun = self.begun_in_gap.take();
        let goes_on = begun.is_some_and(|begun| now.saturating_sub(begun) >= AFTER_BEGIN);
        let is_held_up = is_gap && goes_on && self.under_way >= SEVERAL;
        self.under_way = self.under_way.saturating_sub(1);
        self.last_end = now;
        self.answered.note(now);
        if is_held_up {
            self.note_hold_up(now);
        } else if self.per_second.is_some() && now.saturating_sub(self.changed) >= LATELY {
            self.give_more(now);
        }
    }

    fn note_hold_up(&mut self, now: Duration) {
        let since = now.saturating_sub(self.last_hold_up);
        self.answered.note_hold_up(since);
        let is_chance = since > LATELY;
        self.hold_ups = if is_chance { 1 } else { self.hold_ups + 1 };
        self.last_hold_up = now;
        if self.hold_ups < HOLD_UPS {
            return;
        }
        let least = self.answered.least();
        let per_second = self.per_second.map_or(least, |given| (given * LESS).max(least * LEAST));
        self.change(now, Some(self.within(per_second).max(1.0)), MORE);
    }

    /// No more than is known to be answered.
    fn within(&self, per_second: f64) -> f64 {
        self.answered.most().map_or(per_second, |most| per_second.min(most * MOST))
    }

    fn give_more(&mut self, now: Duration) {
        let is_quiet = now.saturating_sub(self.last_hold_up) >= QUIET;
        if is_quiet {
            self.answered.most = Best::default();
        }
        let per_second = match self.per_second {
            Some(given) if self.has_waited => Some(self.within(given * (1.0 + self.more))),
            given => given,
        };
        let is_limit = |given: &f64| *given <= NO_LIMIT * self.answered.in_a_second;
        let most_more = if is_quiet { MUCH_MORE } else { MOST_MORE };
        self.change(now, per_second.filter(is_limit), (self.more * 2.0).min(most_more));
    }

    fn change(&mut self, now: Duration, per_second: Option<f64>, more: f64) {
        (self.per_second, self.more) = (per_second, more);
        (self.changed, self.has_waited) = (now, false);
    }

    /// Between two reads; `None` if there is no limit.
    fn interval(&self) -> Option<Duration> {
        self.per_second.map(|per_second| Duration::from_secs_f64(1.0 / per_second))
    }
}

#[derive(Debug, Default)]
struct Queue {
    limit: Limit,
    /// When the next read may begin.
    next: Duration,
    /// Somebody looks after those that wait.
    is_led: bool,
    /// They are told when they have their turn.
    waiting: VecDeque<oneshot::Sender<()>>,
}

impl Queue {
    /// Takes a turn, if it has come.
    fn take(&mut self, now: Duration) -> bool {
        let Some(interval) = self.limit.interval() else { return true };
        self.next = self.next.max(now.saturating_sub(KEPT));
        let has_come = self.next <= now;
        if has_come {
            self.next += interval;
        }
        has_come
    }

    /// Those whose turn has come.
    fn passing(&mut self, now: Duration) -> Vec<oneshot::Sender<()>> {
        let mut passing = Vec::new();
        while let Some(first) = self.waiting.front() {
            // Those that have gone take no turn.
            if !first.is_canceled() && !self.take(now) {
                break;
            }
            passing.extend(self.waiting.pop_front());
        }
        passing
    }
}

/// What the reads of a class pass.
#[derive(Debug)]
pub(crate) struct Valve {
    environment: Arc<dyn Environment>,
    queue: Mutex<Queue>,
    /// There is a limit.
    is_limited: AtomicBool,
}

/// Tells them; without any lock, for who is woken may go at once.
fn tell(passing: impl IntoIterator<Item = oneshot::Sender<()>>) {
    for one in passing {
        // If it has gone by now, its turn is lost.
        let _ = one.send(());
    }
}

/// A task that looks after those that wait, whoever of them goes or is not polled. If it goes, all pass.
struct Leads(Weak<Valve>);

impl Drop for Leads {
    fn drop(&mut self) {
        let Some(valve) = self.0.upgrade() else { return };
        let waiting = {
            let mut queue = valve.queue.lock();
            queue.is_led = false;
            std::mem::take(&mut queue.waiting)
        };
        tell(waiting);
    }
}

impl Leads {
    /// Holds on to nothing while it sleeps: nobody waits for its end when a database is closed.
    async fn lead(self) {
        let mut idle = 0;
        while idle <= IDLE_TICKS {
            let Some(tick) = self.0.upgrade().map(|valve| valve.environment.sleep(TICK)) else { return };
            tick.await;
            let Some(valve) = self.0.upgrade() else { return };
            let passing = {
                let mut queue = valve.queue.lock();
                idle = if queue.waiting.is_empty() { idle + 1 } else { 0 };
                queue.passing(valve.environment.now())
            };
            tell(passing);
        }
        // Who comes before the end is told by that.
    }
}

/// A read that is under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Passed<'a> {
    valve: &'a Valve,
    is_answered: bool,
}

impl Passed<'_> {
    /// It has ended.
    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Passed<'_> {
    fn drop(&mut self) {
        let mut queue = self.valve.queue.lock();
        match self.is_answered {
            true => queue.limit.end(self.valve.environment.now()),
            false => queue.limit.give_up(),
        }
        self.valve.is_limited.store(queue.limit.per_second.is_some(), Ordering::Relaxed);
    }
}

impl Valve {
    pub(crate) fn new(environment: Arc<dyn Environment>) -> Arc<Valve> {
        Arc::new(Valve { environment, queue: Mutex::default(), is_limited: AtomicBool::new(false) })
    }

    /// What is given in a second, if that is limited.
    pub(crate) fn most_reads_per_second(&self) -> Option<u64> {
        self.queue.lock().limit.per_second.map(|per_second| per_second as u64)
    }

    /// To be called before a read; waits for its turn.
    pub(crate) async fn pass(self: &Arc<Valve>) -> Passed<'_> {
        if self.is_limited.load(Ordering::Relaxed)
            && let Some(told) = self.wait()
        {
            // Whoever leads tells, or goes and tells all.
            let _ = told.await;
        }
        let mut queue = self.queue.lock();
        queue.limit.begin(self.environment.now());
        Passed { valve: self, is_answered: false }
    }

    /// `None` if its turn has come.
    fn wait(self: &Arc<Valve>) -> Option<oneshot::Receiver<()>> {
        let (receiver, is_led) = {
            let mut queue = self.queue.lock();
            if queue.waiting.is_empty() && queue.take(self.environment.now()) {
                return None;
            }
            queue.limit.has_waited = true;
            let (sender, receiver) = oneshot::channel();
            queue.waiting.push_back(sender);
            (receiver, std::mem::replace(&mut queue.is_led, true))
        };
        if !is_led {
            self.environment.spawn(Box::pin(Leads(Arc::downgrade(self)).lead()));
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

    /// Ten reads at once, again and again, of a disk that takes `read` for one and gives no more than `most` in a tenth
    /// of a second; until `end`.
    fn reads(limit: &mut Limit, (mut now, end): (Duration, Duration), read: Duration, most: u64) -> Duration {
        let (mut given, mut slice) = (0, now);
        for _ in 0..9 {
            limit.begin(now);
        }
        while now < end {
            limit.begin(now);
            if given == most {
                // Others want to read meanwhile.
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
    fn a_class_that_gives_so_many_in_a_time_and_then_none_is_given_few_less() {
        let mut limit = Limit::default();
        let at = reads(&mut limit, (us(7), Duration::from_secs(2)), us(20), 1500);
        let given = limit.per_second.unwrap();
        assert!((13_000.0..15_100.0).contains(&given), "{given}");
        // It is no less than nearly what is answered, however often it holds up.
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
        // For a second it gives a hundred in a tenth of one, and then all again.
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
        assert_eq!((limit.per_second, limit.hold_ups), (None, 0));
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
        // Who does not wait is given no more.
        assert!(given(&mut limit, false, 20).into_iter().all(|given| given == more[7]));
        // It has held up nothing for long, and may have become faster.
        let more = given(&mut limit, true, 20);
        assert!(more.is_sorted() && more[19] == f64::INFINITY, "{more:?}");
    }

    #[test]
    fn dropped_readers_do_not_block_the_rate_limiter() {
        let environment = ThreadEnvironment::new();
        let valve = Valve::new(environment);
        valve.queue.lock().limit.per_second = Some(20_000.0);
        valve.is_limited.store(true, Ordering::Relaxed);
        let passes = async |no: u64| {
            for round in 0..50u64 {
                let mut passing = Box::pin(valve.pass());
                // Some of those that wait go.
                let goes = (no + round).is_multiple_of(3);
                match futures::poll!(&mut passing) {
                    std::task::Poll::Ready(passed) => passed.answered(),
                    std::task::Poll::Pending if goes => drop(passing),
                    std::task::Poll::Pending => drop(passing.await),
                }
                // That is no limit for the test.
                valve.is_limited.store(true, Ordering::Relaxed);
            }
        };
        // One that waits, and that nobody asks for as long as others do.
        let mut forgotten = Box::pin(valve.pass());
        valve.queue.lock().next = valve.environment.now() + Duration::from_millis(20);
        assert!(futures::FutureExt::now_or_never(&mut forgotten).is_none());
        wait_for(join_all((0..30).map(passes)));
        drop(wait_for(forgotten));
        let is_led = || valve.queue.lock().is_led;
        let queue_is_empty = {
            let queue = valve.queue.lock();
            queue.waiting.is_empty() && queue.limit.under_way == 0
        };
        assert!(queue_is_empty);
        // Whoever looked after them goes, and another one comes with who waits next.
        while is_led() {
            std::thread::sleep(TICK);
        }
        valve.is_limited.store(true, Ordering::Relaxed);
        valve.queue.lock().limit.per_second = Some(20_000.0);
        valve.queue.lock().next = valve.environment.now() + Duration::from_millis(20);
        let mut next = Box::pin(valve.pass());
        assert!(futures::FutureExt::now_or_never(&mut next).is_none() && is_led());
        drop(wait_for(next));
    }
}
