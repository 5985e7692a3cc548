//! Virtual time: a clock that counts CPU time and jumps over idleness.
//!
//! A jump:
//! 1. Nothing is under way on the devices below the models or on devices without one, all executors sleep, and all
//!    registered threads sleep.
//! 2. The clock is brought up to the CPU time that every thread has used since the last jump.
//! 3. It goes to the next event of the models or the next alarm, and what completes then is completed. Who waited wakes
//!    up, and time stands until all sleep again.
//!
//! Who finds out that all are idle jumps: an executor about to sleep (its own tasks are then woken without any other
//! thread), the thread that completed the last I/O below, or the watcher. What becomes due while executors still run,
//! because CPU time passes it, they complete between two rounds of their tasks.
//!
//! Invariants:
//! - the clock never goes backwards;
//! - it jumps under `jumping` only, and what a jump completes is completed before the lock is released, so nobody takes
//!   a woken task that has not run yet for idleness;
//! - a thread's `base` and `used` change only by itself or, while it sleeps, by a jump.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::channel::oneshot;
use parking_lot::Mutex;

use super::alarms::VirtualAlarms;
use super::cpu::{self, Thread};
use super::{VirtualTimeOptions, sleepers, watcher};
use crate::model::{Core, Finished, Nanos};

/// Virtual timelines that live: all that a process without any looks at.
static LIVING: AtomicUsize = AtomicUsize::new(0);
static ALL: Mutex<Vec<Weak<VirtualTime>>> = Mutex::new(Vec::new());

thread_local! {
    /// What the calling thread is to the timelines that it takes part in.
    static PARTS: RefCell<Vec<(Weak<VirtualTime>, Arc<Part>)>> = const { RefCell::new(Vec::new()) };
    /// Whether the calling thread is within a jump: what it completes may want to jump as well.
    static JUMPING: Cell<bool> = const { Cell::new(false) };
}

/// A thread that takes part.
#[derive(Debug)]
struct Part {
    thread: Thread,
    /// Executors say themselves when they sleep.
    is_executor: bool,
    /// The clock when its CPU time was last counted, or when it last woke up.
    base: AtomicU64,
    /// Its CPU time then.
    used: AtomicU64,
}

impl Part {
    /// How far the clock is by this thread's CPU time.
    fn reached(&self, used: Nanos) -> Nanos {
        self.base.load(Ordering::Relaxed) + used.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    fn restart(&self, base: Nanos, used: Nanos) {
        self.base.store(base, Ordering::Relaxed);
        self.used.store(used, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(super) struct VirtualTime {
    options: VirtualTimeOptions,
    now: AtomicU64,
    /// Requests on devices below models, and on devices without one.
    below: AtomicUsize,
    /// Requests begun there so far.
    begun: AtomicU64,
    cores: Mutex<Vec<Weak<Core>>>,
    alarms: VirtualAlarms,
    parts: Mutex<Vec<Arc<Part>>>,
    jumping: Mutex<()>,
}

impl Drop for VirtualTime {
    fn drop(&mut self) {
        LIVING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What came of looking for a jump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Jump {
    /// The clock went on and what was due then is done.
    Done,
    /// Nothing is due, or somebody runs who will look when done.
    Needless,
    /// Only a foreign thread runs, which may fall asleep unnoticed.
    Blocked,
}

/// Whether any virtual timeline lives.
pub(crate) fn is_any_virtual() -> bool {
    LIVING.load(Ordering::Relaxed) > 0
}

fn living() -> Vec<Arc<VirtualTime>> {
    let mut all = ALL.lock();
    all.retain(|time| time.strong_count() > 0);
    all.iter().filter_map(Weak::upgrade).collect()
}

pub(super) fn newest() -> Option<Arc<VirtualTime>> {
    living().pop()
}

/// Keeps all timelines from jumping: a request is under way whose end no model knows of, and which takes no virtual
/// time.
#[derive(Debug)]
pub(crate) struct Held(Vec<Arc<VirtualTime>>);

impl Held {
    /// All that live now.
    pub(crate) fn all() -> Held {
        let times = living();
        times.iter().for_each(|time| time.below_begins());
        Held(times)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.iter().for_each(|time| time.below_done());
    }
}

/// An executor's thread, marked as sleeping and with nothing ready, is about to wait. `has_work` tells whether there is
/// something to do after all, and takes the mark back then.
pub(crate) fn executor_sleeps(mut has_work: impl FnMut() -> bool) {
    for time in living() {
        join_as(&time, true);
        time.publish();
        let mut works = false;
        while !works {
            // The mark is taken back before anybody else may look for a jump: its own tasks are woken without a
            // message.
            match time.jump(|| works = has_work()) {
                Jump::Done => {}
                Jump::Needless => break,
                Jump::Blocked => {
                    watcher::look_again();
                    break;
                }
            }
        }
        if works {
            return;
        }
    }
}

/// An executor's thread has woken up.
pub(crate) fn executor_woke() {
    living().iter().for_each(|time| time.thread_woke());
}

/// An executor's thread has no task left and will not look again: others may have waited for it to sleep.
pub(crate) fn executor_ended() {
    if is_any_virtual() {
        watcher::look_again();
    }
}

/// An executor's thread is between two rounds of its tasks: completes what has become due.
pub(crate) fn executor_turns() {
    for time in living() {
        join_as(&time, true);
        time.complete_due();
    }
}

/// The clock as the calling thread sees it. Executors take part from the first look on.
pub(super) fn now(time: &Arc<VirtualTime>) -> Nanos {
    if time.options.cpu && crate::executor::is_executor_thread() {
        join_as(time, true);
    }
    time.now()
}

/// Jumps wherever it can; whether a foreign thread is in the way.
pub(super) fn jump_all() -> bool {
    let mut is_blocked = false;
    for time in living() {
        is_blocked |= time.jump_on();
    }
    is_blocked
}

/// The calling thread takes part.
pub(super) fn join(time: &Arc<VirtualTime>) {
    join_as(time, false);
}

fn join_as(time: &Arc<VirtualTime>, is_executor: bool) {
    with_part(time, |_| ()).unwrap_or_else(|| {
        let part = Arc::new(Part {
            thread: Thread::current(),
            is_executor,
            base: AtomicU64::new(time.now.load(Ordering::SeqCst)),
            used: AtomicU64::new(cpu::of_this_thread()),
        });
        time.parts.lock().push(part.clone());
        PARTS.with_borrow_mut(|parts| {
            parts.retain(|(time, _)| time.strong_count() > 0);
            parts.push((Arc::downgrade(time), part));
        });
    });
}

/// The calling thread takes part no longer.
pub(super) fn part(time: &Arc<VirtualTime>) {
    time.publish();
    if let Some(part) = with_part(time, Arc::clone) {
        time.parts.lock().retain(|other| !Arc::ptr_eq(other, &part));
        PARTS.with_borrow_mut(|parts| parts.retain(|(_, other)| !Arc::ptr_eq(other, &part)));
        watcher::look_again();
    }
}

fn with_part<T>(time: &VirtualTime, then: impl FnOnce(&Arc<Part>) -> T) -> Option<T> {
    PARTS
        .try_with(|parts| {
            let parts = parts.borrow();
            parts.iter().find(|(other, _)| std::ptr::eq(other.as_ptr(), time)).map(|(_, part)| then(part))
        })
        .ok()
        .flatten()
}

impl VirtualTime {
    pub(super) fn begin(options: VirtualTimeOptions) -> Arc<VirtualTime> {
        let time = Arc::new(VirtualTime {
            options,
            now: AtomicU64::new(0),
            below: AtomicUsize::new(0),
            begun: AtomicU64::new(0),
            cores: Mutex::default(),
            alarms: VirtualAlarms::default(),
            parts: Mutex::default(),
            jumping: Mutex::default(),
        });
        ALL.lock().push(Arc::downgrade(&time));
        LIVING.fetch_add(1, Ordering::SeqCst);
        time
    }

    /// The clock, brought up to the calling thread's CPU time if that takes part.
    fn now(&self) -> Nanos {
        if self.options.cpu {
            self.publish();
        }
        self.now.load(Ordering::SeqCst)
    }

    /// Counts the calling thread's CPU time.
    fn publish(&self) {
        if !self.options.cpu {
            return;
        }
        if let Some(reached) = with_part(self, |part| part.reached(cpu::of_this_thread())) {
            self.now.fetch_max(reached, Ordering::SeqCst);
        }
    }

    /// The calling thread goes on from where the clock is: what woke it has brought it there.
    pub(super) fn thread_woke(&self) {
        if !self.options.cpu {
            return;
        }
        with_part(self, |part| {
            let used = cpu::of_this_thread();
            let reached = self.now.fetch_max(part.reached(used), Ordering::SeqCst);
            part.restart(reached.max(part.reached(used)), used);
        });
    }

    pub(super) fn thread_idle(&self) {
        self.publish();
        if self.next_event().is_some() {
            watcher::look_again();
        }
    }

    pub(super) fn register(&self, core: &Arc<Core>) {
        let mut cores = self.cores.lock();
        cores.retain(|core| core.strong_count() > 0);
        cores.push(Arc::downgrade(core));
    }

    pub(super) fn below_begins(&self) {
        self.begun.fetch_add(1, Ordering::SeqCst);
        self.below.fetch_add(1, Ordering::SeqCst);
    }

    pub(super) fn below_done(&self) {
        let was_last = self.below.fetch_sub(1, Ordering::SeqCst) == 1;
        // An executor looks when it goes to sleep; any other thread may be the last that knows.
        if was_last && !crate::executor::is_executor_thread() && self.jump_on() {
            watcher::look_again();
        }
    }

    fn cores(&self) -> Vec<Arc<Core>> {
        self.cores.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Has somebody woken after `duration`.
    pub(super) fn set_alarm(&self, duration: Duration) -> oneshot::Receiver<()> {
        let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let alarm = self.alarms.set(self.now().saturating_add(duration));
        // An executor looks when it goes to sleep; any other thread may be about to.
        if !crate::executor::is_executor_thread() {
            watcher::look_again();
        }
        alarm
    }

    fn next_event(&self) -> Option<Nanos> {
        self.next_event_of(&self.cores())
    }

    fn next_event_of(&self, cores: &[Arc<Core>]) -> Option<Nanos> {
        cores.iter().filter_map(|core| core.next_event()).chain(self.alarms.next()).min()
    }

    /// Completes what is due by the clock as it is.
    fn complete_due(&self) {
        let now = self.now();
        let mut finished = Vec::new();
        for core in self.cores() {
            if core.next_event().is_some_and(|at| at <= now) {
                core.run(now, &mut finished);
            }
        }
        finished.into_iter().for_each(Finished::complete);
        self.alarms.ring(now);
    }

    /// Jumps as long as nobody wakes up; whether a foreign thread is in the way.
    fn jump_on(&self) -> bool {
        loop {
            match self.jump(|| ()) {
                Jump::Done => {}
                Jump::Needless => return false,
                Jump::Blocked => return true,
            }
        }
    }

    /// `after` is called under the lock when something was completed.
    fn jump(&self, after: impl FnOnce()) -> Jump {
        if JUMPING.get() {
            return Jump::Needless;
        }
        let _jumping = self.jumping.lock();
        let begun = self.begun.load(Ordering::SeqCst);
        if self.below.load(Ordering::SeqCst) > 0 {
            return Jump::Needless;
        }
        let Some(sleeps) = sleepers::all_asleep() else { return Jump::Needless };
        let cores = self.cores();
        if self.next_event_of(&cores).is_none() {
            return Jump::Needless;
        }
        if !self.foreign_threads_sleep() {
            return Jump::Blocked;
        }
        let unchanged = sleepers::all_asleep() == Some(sleeps)
            && self.below.load(Ordering::SeqCst) == 0
            && self.begun.load(Ordering::SeqCst) == begun;
        // Somebody did something in the meantime: it may be over already, so look again.
        if !unchanged {
            return Jump::Blocked;
        }
        self.leap(&cores);
        after();
        Jump::Done
    }

    /// Whether all foreign threads sleep at one moment. One look at each is not enough: work may pass from a thread not
    /// yet looked at to one that was. Whoever sleeps in both looks and has used no CPU time in between has slept all
    /// along.
    fn foreign_threads_sleep(&self) -> bool {
        let parts = self.parts.lock();
        let look = || -> Option<Vec<Option<Nanos>>> {
            let foreign = parts.iter().filter(|part| !part.is_executor);
            foreign.map(|part| part.thread.is_asleep().then(|| part.thread.cpu())).collect()
        };
        look().is_some_and(|first| look() == Some(first))
    }

    fn leap(&self, cores: &[Arc<Core>]) {
        let next = self.next_event_of(cores);
        let now = self.count_all(next.unwrap_or(0));
        let mut finished = Vec::new();
        cores.iter().for_each(|core| core.run(now, &mut finished));
        JUMPING.set(true);
        finished.into_iter().for_each(Finished::complete);
        self.alarms.ring(now);
        JUMPING.set(false);
    }

    /// Counts everybody's CPU time and brings the clock to `next` at least; what the clock then is.
    fn count_all(&self, next: Nanos) -> Nanos {
        if !self.options.cpu {
            return self.now.fetch_max(next, Ordering::SeqCst).max(next);
        }
        let mut parts = self.parts.lock();
        let mut used = Vec::with_capacity(parts.len());
        parts.retain(|part| {
            let cpu = part.thread.cpu();
            used.extend(cpu);
            cpu.is_some()
        });
        let reached = parts.iter().zip(&used).map(|(part, used)| part.reached(*used)).max().unwrap_or(0);
        let now = self.now.fetch_max(reached.max(next), Ordering::SeqCst).max(reached).max(next);
        parts.iter().zip(used).for_each(|(part, used)| part.restart(now, used));
        now
    }
}

/// A thread's part in a timeline, until dropped on that thread.
#[derive(Debug)]
pub(super) struct ThreadRegistration {
    time: Arc<VirtualTime>,
}

impl ThreadRegistration {
    pub(super) fn new(time: &Arc<VirtualTime>) -> ThreadRegistration {
        join(time);
        ThreadRegistration { time: time.clone() }
    }
}

impl Drop for ThreadRegistration {
    fn drop(&mut self) {
        part(&self.time);
    }
}
