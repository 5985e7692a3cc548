//! What disks, clocks, timers and wakers of one simulation share: the time, the events to come, the ready tasks, the
//! trace.
//!
//! It is `Sync` only because wakers and devices must be; one thread uses it. Invariants:
//! - no lock is held while a completion or a waker is called;
//! - events fire in the order of their time, those of one time in the order of their making.

use std::cmp::Ordering as Order;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

use parking_lot::Mutex;
use tanada_base::SplitMix64;

use crate::disk::Disk;
use crate::fault::Faults;
use crate::trace::{Trace, mix};

/// What happens when an event's time comes.
#[derive(Debug)]
pub(crate) enum Action {
    /// A timer ends.
    Wake(Waker),
    /// A disk completes the I/O of this number.
    Complete(Arc<Disk>, u64),
}

#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) due_ns: u64,
    no: u64,
    pub(crate) action: Action,
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.no == other.no
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The heap gives its greatest first, which is the earliest here.
    fn cmp(&self, other: &Event) -> Order {
        (other.due_ns, other.no).cmp(&(self.due_ns, self.no))
    }
}

#[derive(Default)]
struct Agenda {
    events: BinaryHeap<Event>,
    made: u64,
}

pub(crate) struct Shared {
    seed: u64,
    now_ns: AtomicU64,
    streams: AtomicU64,
    ios: AtomicU64,
    stopped: AtomicBool,
    is_off: AtomicBool,
    agenda: Mutex<Agenda>,
    pub(super) ready: Mutex<Vec<usize>>,
    pub(crate) trace: Trace,
    pub(crate) faults: Faults,
}

impl Shared {
    pub(super) fn new(seed: u64) -> Shared {
        Shared {
            seed,
            now_ns: AtomicU64::new(0),
            streams: AtomicU64::new(0),
            ios: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            is_off: AtomicBool::new(false),
            agenda: Mutex::new(Agenda::default()),
            ready: Mutex::new(Vec::new()),
            trace: Trace::default(),
            faults: Faults::default(),
        }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Randomness of its own for one user, so that one user's draws do not shift another's.
    pub(crate) fn stream(&self) -> SplitMix64 {
        let no = self.streams.fetch_add(1, Ordering::Relaxed);
        SplitMix64::new(mix(self.seed, no))
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn at(&self, due_ns: u64, action: Action) {
        let mut agenda = self.agenda.lock();
        let no = agenda.made;
        agenda.made += 1;
        agenda.events.push(Event { due_ns, no, action });
    }

    /// The earliest event; time goes there.
    pub(super) fn next_event(&self) -> Option<Event> {
        let event = self.agenda.lock().events.pop()?;
        assert!(event.due_ns >= self.now_ns(), "time goes forwards");
        self.now_ns.store(event.due_ns, Ordering::Relaxed);
        self.trace.fold(event.due_ns);
        Some(event)
    }

    /// Lets go of all events, which hold what holds this.
    pub(super) fn forget_events(&self) {
        let events = std::mem::take(&mut self.agenda.lock().events);
        drop(events);
    }

    pub(crate) fn count_io(&self) {
        self.ios.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn ios(&self) -> u64 {
        self.ios.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// From now on no I/O is started: the run is over, and what is dropped must not begin anything.
    pub(super) fn switch_off(&self) {
        self.is_off.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("seed", &self.seed)
            .field("now_ns", &self.now_ns())
            .finish_non_exhaustive()
    }
}
