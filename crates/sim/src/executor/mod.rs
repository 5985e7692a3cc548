//! A deterministic executor: one thread, virtual time, and a seed that decides everything that is left open elsewhere.
//!
//! 1. Among the tasks that are ready, the seed chooses which is polled next.
//! 2. When none is ready, time jumps to the earliest event: a timer's end or the completion of an I/O. Observers are
//!    told of an I/O before its effect takes place; then it takes place and its task is woken.
//! 3. The run ends when the scenario's future is done, when power is cut, or when nothing can happen any more.
//!
//! Invariants: the same seed and scenario give the same [`Run::trace`]; no wall clock, no thread and no operating
//! system takes part.

mod clock;
mod shared;
mod task;
mod timer;

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tanada_base::{Clock, SplitMix64};

pub use clock::VirtualClock;
pub(crate) use shared::{Action, Shared};
pub use task::JoinHandle;
pub use timer::{Sleep, VirtualTimer};

use crate::disk::{Disk, DiskImage, DiskOptions, DiskSet, IoNote, SimDisk, Wreck};
use crate::fault::{Rule, RuleNo};
use task::{Joint, Tasks};

/// More polls than any sound scenario takes: tasks that wake each other for ever, with or without I/O between, end
/// here.
const MOST_POLLS: u64 = 1_000_000;
const MOST_IOS: u64 = 100_000;

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<T> {
    /// The scenario's future gave this.
    Done(T),
    /// Power was cut ([`World::cut_power`]).
    PowerCut,
    /// No task is ready, nothing is in flight, no timer runs: a wake-up was lost or tasks wait for each other.
    Stuck,
    /// Tasks woke each other more often than any sound scenario does.
    Runaway,
}

impl<T> Outcome<T> {
    /// What the scenario gave.
    ///
    /// # Panics
    /// If it did not come to its end.
    pub fn unwrap(self) -> T {
        match self {
            Outcome::Done(value) => value,
            Outcome::PowerCut => panic!("power was cut"),
            Outcome::Stuck => panic!("stuck: nothing is ready and nothing is in flight"),
            Outcome::Runaway => panic!("tasks woke each other without end"),
        }
    }
}

impl<T> Outcome<Result<T, String>> {
    /// What the scenario gave, where it may also tell what is wrong. `subject` is what did not come to its end then:
    /// "the recovery".
    pub(crate) fn told(self, subject: &str) -> Result<T, String> {
        match self {
            Outcome::Done(result) => result,
            Outcome::Stuck => Err(format!("{subject} is stuck: nothing is ready and nothing in flight")),
            Outcome::PowerCut | Outcome::Runaway => Err(format!("{subject} never ends")),
        }
    }
}

/// What a run leaves behind.
#[derive(Debug)]
pub struct Run<T> {
    /// How it ended.
    pub outcome: Outcome<T>,
    /// The hash of all that happened.
    pub trace: u64,
    /// I/Os that were started.
    pub ios: u64,
    /// Virtual time at the end.
    pub elapsed: Duration,
    /// The disks as they were at the end, with what was not durable yet.
    pub wreck: Wreck,
}

/// Runs scenarios.
///
/// ```
/// use std::time::Duration;
/// use tanada_io::{BufferPool, ErrorKind};
/// use tanada_sim::{DiskOptions, Fault, Rule, Simulation};
///
/// let run = Simulation::run(7, |world| async move {
///     let disk = world.disk(DiskOptions::named("capacity"));
///     let device = disk.device();
///     let mut page = BufferPool::new(0).allocate(4096);
///     page.fill(1);
///     let page = device.write(0, page).await?;
///     world.inject(Rule::nth(Fault::Error, 0));
///     assert_eq!(device.sync().await.unwrap_err().kind(), ErrorKind::Device);
///     world.sleep(Duration::from_secs(3600)).await; // takes no time
///     Ok::<usize, tanada_io::Error>(page.len())
/// });
/// assert!(run.elapsed > Duration::from_secs(3600));
/// assert_eq!(run.outcome.unwrap().unwrap(), 4096);
/// ```
#[derive(Debug)]
pub struct Simulation;

impl Simulation {
    /// Runs `scenario` to its end. All that happens follows from `seed`.
    pub fn run<T, F>(seed: u64, scenario: impl FnOnce(World) -> F) -> Run<T>
    where
        T: 'static,
        F: Future<Output = T> + 'static,
    {
        let shared = Arc::new(Shared::new(seed));
        let world = World {
            shared: shared.clone(),
            tasks: Rc::new(Tasks::default()),
            disks: DiskSet::default(),
            observers: Rc::default(),
        };
        let main = world.spawn(scenario(world.clone()));
        let ending = world.drive(main.no);
        let result = main.joint.borrow_mut().result.take();
        let outcome = result.map_or(ending, Outcome::Done);
        // The wreck is what the cut found, before tasks that are dropped can start anything.
        let wreck = world.wreck();
        let (trace, ios) = (shared.trace.value(), shared.ios());
        let elapsed = Duration::from_nanos(shared.now_ns());
        world.end();
        Run { outcome, trace, ios, elapsed, wreck }
    }
}

type Observer = Box<dyn FnMut(&IoNote)>;

/// A scenario's view of its simulation: tasks, time, disks, faults. Cheap to clone.
#[derive(Clone)]
pub struct World {
    shared: Arc<Shared>,
    tasks: Rc<Tasks>,
    disks: DiskSet,
    observers: Rc<RefCell<Vec<Observer>>>,
}

impl World {
    /// The seed of the run.
    pub fn seed(&self) -> u64 {
        self.shared.seed()
    }

    /// Randomness that follows from the seed; every call gives another stream.
    pub fn random(&self) -> SplitMix64 {
        self.shared.stream()
    }

    /// Virtual time, as a part to hand in.
    pub fn clock(&self) -> Arc<VirtualClock> {
        Arc::new(VirtualClock { shared: self.shared.clone() })
    }

    /// Virtual time since the start.
    pub fn now(&self) -> Duration {
        VirtualClock { shared: self.shared.clone() }.now()
    }

    /// Waits `span` of virtual time.
    pub fn sleep(&self, span: Duration) -> Sleep {
        self.timer().sleep(span)
    }

    /// Virtual time to wait for, as a part to hand in.
    pub fn timer(&self) -> VirtualTimer {
        VirtualTimer { shared: self.shared.clone() }
    }

    /// Starts a task.
    pub fn spawn<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
        let joint = Rc::new(RefCell::new(Joint { result: None, waker: None }));
        let given = joint.clone();
        let whole = Box::pin(async move {
            let result = future.await;
            let mut joint = given.borrow_mut();
            joint.result = Some(result);
            if let Some(waker) = joint.waker.take() {
                waker.wake();
            }
        });
        let no = self.tasks.add(&self.shared, whole);
        JoinHandle { joint, tasks: self.tasks.clone(), no }
    }

    /// An empty disk.
    pub fn disk(&self, options: DiskOptions) -> SimDisk {
        self.disk_with(options, DiskImage::default())
    }

    /// A disk that holds `image`, all of it durable.
    pub fn disk_with(&self, options: DiskOptions, image: DiskImage) -> SimDisk {
        let disk = self.disks.add(|no| Disk::new(no, options, image, self.shared.clone()));
        SimDisk { disk }
    }

    /// I/Os started so far, on all disks.
    pub fn ios(&self) -> u64 {
        self.shared.ios()
    }

    /// Folds a number of the scenario's own into the trace.
    pub fn note(&self, value: u64) {
        self.shared.trace.fold(value);
    }

    /// Calls `observer` before each I/O takes effect. It may look at the world ([`wreck`](Self::wreck)) and cut its
    /// power.
    pub fn observe(&self, observer: impl FnMut(&IoNote) + 'static) {
        self.observers.borrow_mut().push(Box::new(observer));
    }

    /// Adds a fault.
    pub fn inject(&self, rule: Rule) -> RuleNo {
        self.shared.faults.add(rule)
    }

    /// How often a fault struck.
    pub fn struck(&self, rule: RuleNo) -> u64 {
        self.shared.faults.struck(rule)
    }

    /// How often any fault struck.
    pub fn struck_in_all(&self) -> u64 {
        self.shared.faults.struck_in_all()
    }

    /// Takes all faults away.
    pub fn heal(&self) {
        self.shared.faults.clear();
    }

    /// Cuts the power: nothing runs any more once the calling task waits or an observer returns.
    pub fn cut_power(&self) {
        self.shared.stop();
    }

    /// The disks as a power cut would find them now. Cheap: pages are shared.
    pub fn wreck(&self) -> Wreck {
        self.disks.wreck()
    }

    /// All disks of the world, those to come included.
    pub fn disks(&self) -> DiskSet {
        self.disks.clone()
    }

    /// Polls and fires until there is an end; how it ended, unless the scenario's own future (task `main`) gave its
    /// result.
    fn drive<T>(&self, main: usize) -> Outcome<T> {
        let mut random = self.shared.stream();
        let mut polls = 0;
        loop {
            if self.shared.is_stopped() {
                return Outcome::PowerCut;
            }
            let next = {
                let mut ready = self.shared.ready.lock();
                let count = ready.len() as u64;
                (count > 0).then(|| ready.swap_remove(random.below(count) as usize))
            };
            if let Some(no) = next {
                polls += 1;
                if polls > MOST_POLLS || self.ios() > MOST_IOS {
                    return Outcome::Runaway;
                }
                self.shared.trace.fold(no as u64);
                self.tasks.poll(no);
                if no == main && self.tasks.is_done(main) {
                    return Outcome::Stuck;
                }
                continue;
            }
            match self.shared.next_event() {
                None => return Outcome::Stuck,
                Some(event) => match event.action {
                    Action::Wake(waker) => waker.wake(),
                    Action::Complete(disk, no) => self.complete(&disk, no),
                },
            }
        }
    }

    /// Lets go of tasks, events and I/Os in flight, which hold each other.
    fn end(&self) {
        self.shared.switch_off();
        let observers = self.observers.take();
        drop(observers);
        self.tasks.drop_all();
        self.shared.forget_events();
        self.disks.abandon();
    }

    fn complete(&self, disk: &Arc<Disk>, no: u64) {
        if let Some(note) = disk.note(no) {
            // An observer that adds another is heard from the next I/O on.
            let mut observers = std::mem::take(&mut *self.observers.borrow_mut());
            observers.iter_mut().for_each(|observer| observer(&note));
            let mut added = self.observers.borrow_mut();
            observers.append(&mut added);
            *added = observers;
        }
        if !self.shared.is_stopped() {
            disk.finish(no);
        }
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("seed", &self.seed()).field("now", &self.now()).finish_non_exhaustive()
    }
}
