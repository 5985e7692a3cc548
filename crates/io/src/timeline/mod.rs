//! Time for device models: real, or virtual.
//!
//! In **real time** ([`Timeline::real`]) completions of modelled devices come when the model says so, by the machine's
//! clock; one timer thread serves the whole process.
//!
//! In **virtual time** ([`Timeline::virtual_time`]) nobody waits for modelled devices. The clock advances by the CPU
//! time that is used, and when everybody is idle it jumps to the next modelled completion, or to the next alarm of who
//! [sleeps](Timeline::sleep). Bytes still come from the device below, but waiting for them does not count. So hours of
//! disk experiments take minutes, with the same order of events.
//!
//! *Idle* means: every executor thread of the process sleeps with nothing ready, nothing is under way on the devices
//! below the models or on devices without a model (which take no time), and every thread registered with
//! [`Timeline::register_thread`] sleeps.
//!
//! *CPU time*: between two jumps every thread that takes part counts its own CPU time from the moment it last woke up;
//! the clock is the furthest of them. What runs at the same time on several threads is so not added up, what one thread
//! does after it was woken by another is.

mod alarms;
mod cpu;
mod real;
mod sleepers;
mod virtually;
mod watcher;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tanada_base::Clock;

use crate::model::{Core, Nanos};
use crate::{Device, ModelSpec, ModelledArray, Result};
pub(crate) use real::now as real_now;
pub(crate) use sleepers::watch_executor;
pub(crate) use virtually::{
    Held, executor_ended, executor_sleeps, executor_turns, executor_woke, is_any_virtual,
};
use virtually::{ThreadRegistration, VirtualTime};

/// A timeline that device models live on: real time or virtual time. Cheap to clone.
///
/// ```
/// use tanada_io::{Device, DeviceOptions, ExecutorOptions, Executors, ModelSpec, Timeline, VirtualTimeOptions};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("pages");
/// # std::fs::write(&path, vec![7; 1 << 20]).unwrap();
/// let model: ModelSpec = "8xhdd-7200".parse()?;
/// let timeline = Timeline::virtual_time(VirtualTimeOptions::default());
/// // One device alone on an array; for several files on one array see `Timeline::array`.
/// let device = timeline.model(Device::open(&path, &DeviceOptions::default())?, &model, 1)?;
///
/// let executors = Executors::start(ExecutorOptions { threads: 1, ..ExecutorOptions::default() })?;
/// let (pool, clock) = (executors.buffers().clone(), timeline.clock());
/// let took = executors.block_on(move || async move {
///     let began = clock.now();
///     for page in [7, 40, 3, 55] {
///         device.read(page * 16384, pool.allocate(16384)).await?;
///     }
///     Ok::<_, tanada_io::Error>(clock.now() - began)
/// })??;
/// // Four random reads, each with a seek and half a turn of a disk that is not there.
/// assert!(took.as_millis() > 4 && took.as_millis() < 100, "{took:?}");
/// # Ok::<(), tanada_io::Error>(())
/// ```
#[derive(Clone)]
pub struct Timeline {
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Real,
    Virtual(Arc<VirtualTime>),
}

/// How virtual time runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VirtualTimeOptions {
    /// Whether CPU time advances the clock. Without, only modelled devices take time, and one executor's completions
    /// come in the same order in every run.
    pub cpu: bool,
}

impl Default for VirtualTimeOptions {
    /// With CPU time.
    fn default() -> VirtualTimeOptions {
        VirtualTimeOptions { cpu: true }
    }
}

impl Timeline {
    /// The machine's time.
    pub fn real() -> Timeline {
        Timeline { kind: Kind::Real }
    }

    /// A virtual time that begins at zero. Made before the work that is to be measured begins; all executors of the
    /// process take part as long as it (or anything on it) lives, and an [`IoContext`](crate::IoContext) made meanwhile
    /// measures by its clock.
    pub fn virtual_time(options: VirtualTimeOptions) -> Timeline {
        Timeline { kind: Kind::Virtual(VirtualTime::begin(options)) }
    }

    /// The virtual timeline of this process made last, if one lives.
    pub fn current_virtual() -> Option<Timeline> {
        virtually::newest().map(|time| Timeline { kind: Kind::Virtual(time) })
    }

    /// Whether it is virtual.
    pub fn is_virtual(&self) -> bool {
        matches!(self.kind, Kind::Virtual(_))
    }

    /// Its clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(TimelineClock(self.clone()))
    }

    pub(crate) fn now(&self) -> Nanos {
        match &self.kind {
            Kind::Real => real::now(),
            Kind::Virtual(time) => virtually::now(time),
        }
    }

    /// A future that is ready after `duration` of this timeline, counted from now: in virtual time after no time at all
    /// if nobody has anything else to do. Ready at once if the process cannot start the thread that wakes sleepers in
    /// real time.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + 'static {
        let alarm = match &self.kind {
            Kind::Real => alarms::set_real(duration),
            Kind::Virtual(time) => Some(time.set_alarm(duration)),
        };
        async move {
            if let Some(alarm) = alarm {
                let _ = alarm.await;
            }
        }
    }

    /// `device` behind an array of its own.
    ///
    /// # Errors
    /// If the device cannot tell its size.
    pub fn model(&self, device: Device, model: &ModelSpec, seed: u64) -> Result<Device> {
        self.array(model, seed).place(device)
    }

    /// An array that many files can be placed on.
    ///
    /// ```
    /// use tanada_io::{Device, DeviceOptions, Timeline};
    /// # let directory = tempfile::tempdir().unwrap();
    /// # for name in ["a.ibd", "b.ibd"] { std::fs::write(directory.path().join(name), vec![7; 1 << 20]).unwrap(); }
    /// let array = Timeline::real().array(&"8xhdd-7200".parse()?, 42);
    /// let open = |name| array.place(Device::open(directory.path().join(name), &DeviceOptions::default())?);
    /// let (a, b) = (open("a.ibd")?, open("b.ibd")?);
    /// assert_eq!((a.size_bytes()?, array.extent_bytes()), (1 << 20, 2 << 20));
    /// # let _ = b;
    /// # Ok::<(), tanada_io::Error>(())
    /// ```
    pub fn array(&self, model: &ModelSpec, seed: u64) -> ModelledArray {
        ModelledArray::new(self, model, seed)
    }

    /// Makes the calling thread take part in virtual time until the registration is dropped (on this thread): the clock
    /// does not jump while it runs, and its CPU time counts. For threads that are not executors and either start I/O on
    /// modelled devices or work on what comes from them. Without effect in real time.
    ///
    /// A thread counts as idle when the kernel says that it sleeps, so nothing needs to be told when it waits; telling
    /// it ([`thread_idle`](Self::thread_idle)) saves time. For tokio:
    ///
    /// ```
    /// use tanada_io::Timeline;
    /// let timeline = Timeline::virtual_time(Default::default());
    /// let [start, stop, park, unpark] = std::array::from_fn(|_| timeline.clone());
    /// let runtime = tokio::runtime::Builder::new_multi_thread()
    ///     .on_thread_start(move || start.thread_started())
    ///     .on_thread_stop(move || stop.thread_stopped())
    ///     .on_thread_park(move || park.thread_idle())
    ///     .on_thread_unpark(move || unpark.thread_busy())
    ///     .build()
    ///     .unwrap();
    /// # runtime.block_on(async { tokio::task::yield_now().await });
    /// ```
    pub fn register_thread(&self) -> RegisteredThread {
        let time = match &self.kind {
            Kind::Real => None,
            Kind::Virtual(time) => Some(ThreadRegistration::new(time)),
        };
        RegisteredThread { _time: time, _not_send: std::marker::PhantomData }
    }

    /// [`register_thread`](Self::register_thread) for hooks: in force until [`thread_stopped`](Self::thread_stopped) or
    /// the thread's end.
    pub fn thread_started(&self) {
        if let Kind::Virtual(time) = &self.kind {
            virtually::join(time);
        }
    }

    /// Undoes [`thread_started`](Self::thread_started).
    pub fn thread_stopped(&self) {
        if let Kind::Virtual(time) = &self.kind {
            virtually::part(time);
        }
    }

    /// The calling thread, registered before, is about to sleep.
    pub fn thread_idle(&self) {
        if let Kind::Virtual(time) = &self.kind {
            time.thread_idle();
        }
    }

    /// The calling thread, registered before, has woken up.
    pub fn thread_busy(&self) {
        if let Kind::Virtual(time) = &self.kind {
            time.thread_woke();
        }
    }

    pub(crate) fn register(&self, core: &Arc<Core>) {
        if let Kind::Virtual(time) = &self.kind {
            time.register(core);
        }
    }

    /// A request begins on a device below a model.
    pub(crate) fn below_begins(&self) {
        if let Kind::Virtual(time) = &self.kind {
            time.below_begins();
        }
    }

    /// It is over.
    pub(crate) fn below_done(&self) {
        if let Kind::Virtual(time) = &self.kind {
            time.below_done();
        }
    }

    /// Has the timer ring for `core` at `at`; real time only.
    pub(crate) fn schedule(&self, at: Nanos, core: &Arc<Core>) {
        real::schedule(at, core);
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.is_virtual() { "Virtual" } else { "Real" };
        f.debug_struct(name).field("now", &Duration::from_nanos(self.now())).finish()
    }
}

/// A thread that takes part in a timeline; see [`Timeline::register_thread`].
#[must_use = "the thread takes part until this is dropped"]
#[derive(Debug)]
pub struct RegisteredThread {
    _time: Option<ThreadRegistration>,
    _not_send: std::marker::PhantomData<*const ()>,
}

#[derive(Debug)]
struct TimelineClock(Timeline);

impl Clock for TimelineClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.now())
    }
}

/// What I/O is timed by: as cheap as the machine's clock where nothing is virtual.
#[derive(Debug, Clone)]
pub(crate) enum IoClock {
    Machine,
    Virtual(Timeline),
}

impl IoClock {
    /// By the virtual timeline if there is one.
    pub(crate) fn current() -> IoClock {
        if !is_any_virtual() {
            return IoClock::Machine;
        }
        Timeline::current_virtual().map_or(IoClock::Machine, IoClock::Virtual)
    }

    pub(crate) fn of(timeline: &Timeline) -> IoClock {
        if timeline.is_virtual() { IoClock::Virtual(timeline.clone()) } else { IoClock::Machine }
    }

    pub(crate) fn now(&self) -> Duration {
        match self {
            IoClock::Machine => Duration::from_nanos(real::now()),
            IoClock::Virtual(timeline) => Duration::from_nanos(timeline.now()),
        }
    }
}
