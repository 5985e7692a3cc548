//! Real time: one thread of the process rings for all modelled arrays.
//!
//! 1. An array that has something to complete asks to be rung at that time. The thread sleeps until the earliest such
//!    time.
//! 2. When it wakes it rings for everything that is due within the next moments, then sleeps for at least [`REST`]:
//!    with a thousand disks something is always due, and a wake-up for each would cost more than the model. What is
//!    rung a little late is made good by dating the next arrival back (see `model/modelled.rs`).
//!
//! Invariant: an array's earliest wish is in the heap; others are stale and dropped when they come up.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::model::{Core, Nanos};

/// What is due within this time is rung for at once.
const EARLY: Nanos = 10_000;

/// The thread's sleep between two rounds. Short enough that a fast SSD's requests are not held up by more than their
/// latency.
const REST: Duration = Duration::from_micros(60);

/// Nobody need wake the thread for what comes this much earlier than its planned wake-up.
const TOLERANCE: Nanos = 20_000;

struct Wish {
    at: Nanos,
    no: u64,
    core: Arc<Core>,
}

impl PartialEq for Wish {
    fn eq(&self, other: &Wish) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Wish {}

impl PartialOrd for Wish {
    fn partial_cmp(&self, other: &Wish) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wish {
    /// The earliest is the greatest, for the heap.
    fn cmp(&self, other: &Wish) -> Ordering {
        (other.at, other.no).cmp(&(self.at, self.no))
    }
}

#[derive(Default)]
struct Wishes {
    heap: BinaryHeap<Wish>,
    count: u64,
    /// 0 while the thread is awake.
    asleep_until: Nanos,
}

static WISHES: Mutex<Option<Wishes>> = Mutex::new(None);
static EARLIER: Condvar = Condvar::new();

/// Nanoseconds since the process first asked.
pub(crate) fn now() -> Nanos {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as Nanos
}

/// Has the timer ring for `core` at `at`.
pub(super) fn schedule(at: Nanos, core: &Arc<Core>) {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let spawned = std::thread::Builder::new().name("tanada-timer".to_owned()).spawn(serve);
        if let Err(error) = spawned {
            // Without the thread nothing modelled would ever complete: a process that cannot start one thread is at its
            // end anyway.
            panic!("cannot start the timer thread of device models: {error}");
        }
    });
    let mut wishes = WISHES.lock();
    let wishes = wishes.get_or_insert_default();
    wishes.push(at, core.clone());
    if at + TOLERANCE < wishes.asleep_until {
        wishes.asleep_until = 0;
        EARLIER.notify_one();
    }
}

impl Wishes {
    fn push(&mut self, at: Nanos, core: Arc<Core>) {
        self.count += 1;
        self.heap.push(Wish { at, no: self.count, core });
    }
}

fn serve() {
    super::cpu::sleep_precisely();
    let mut due = Vec::new();
    let mut finished = Vec::new();
    loop {
        let now = wait(&mut due);
        for Wish { at, core, .. } in due.drain(..) {
            let next = core.ring(at, now + EARLY, &mut finished);
            if let Some(next) = next {
                WISHES.lock().get_or_insert_default().push(next, core);
            }
        }
        finished.drain(..).for_each(crate::model::Finished::complete);
        std::thread::sleep(REST);
    }
}

/// Sleeps until something is due and takes all of it.
fn wait(due: &mut Vec<Wish>) -> Nanos {
    let mut guard = WISHES.lock();
    loop {
        let wishes = guard.get_or_insert_default();
        wishes.asleep_until = 0;
        let now = now();
        while wishes.heap.peek().is_some_and(|wish| wish.at <= now + EARLY) {
            due.extend(wishes.heap.pop());
        }
        if !due.is_empty() {
            return now;
        }
        let next = wishes.heap.peek().map(|wish| wish.at);
        wishes.asleep_until = next.unwrap_or(Nanos::MAX);
        match next {
            Some(at) => drop(EARLIER.wait_for(&mut guard, Duration::from_nanos(at - now))),
            None => EARLIER.wait(&mut guard),
        }
    }
}
