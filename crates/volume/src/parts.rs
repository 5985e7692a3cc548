//! What a volume is made of: injected, so that real devices, models and simulated disks are all the same to it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tanada_base::{Clock, MonotonicClock};
use tanada_io::{BufferPool, Device};

use crate::adopted::{NoOpener, Opener};
use crate::crash::{CrashPoints, PlantedBug};
use crate::relocation::Timer;
use crate::transform::KeyRing;

/// The devices of one class.
#[derive(Debug, Clone)]
pub struct ClassParts {
    /// The class's name.
    pub name: String,
    /// Its devices in their order; `None` for one that is missing.
    pub devices: Vec<Option<Device>>,
}

/// Work of a cleaner.
pub type CleanerWork = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Runs cleaners, off the path of those who write.
pub trait SpawnCleaner: Send + Sync + fmt::Debug {
    /// Runs `work` to its end, or drops it.
    fn spawn(&self, work: CleanerWork);
}

/// Cleaners transform and store pages behind the back of those who write them.
#[derive(Debug, Clone)]
pub struct Cleaners {
    /// How many run at once, over all objects.
    pub count: usize,
    /// Memory for pages that wait for a cleaner; who finds it full stores his pages himself.
    pub memory_bytes: u64,
    /// Runs them.
    pub spawn: Arc<dyn SpawnCleaner>,
}

/// The parts of a volume.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Where the metadata are; it grows as needed.
    pub metadata: Device,
    /// The classes' devices, in any order.
    pub classes: Vec<ClassParts>,
    /// What time it is, for statistics and budgets.
    pub clock: Arc<dyn Clock>,
    /// The time since 1970 when the clock is looked at for the first time, if the caller can tell: chunks cool while
    /// the volume is closed.
    pub wall_time: Option<Duration>,
    /// Opens adopted files.
    pub opener: Arc<dyn Opener>,
    /// Lets time pass for bandwidth budgets; without it there are none.
    pub timer: Option<Arc<dyn Timer>>,
    /// Buffers for metadata, copies and unaligned I/O.
    pub buffers: Arc<BufferPool>,
    /// Keys of encrypted pages.
    pub keys: KeyRing,
    /// Without them pages are transformed and stored by who writes them.
    pub cleaners: Option<Cleaners>,
    /// Where crash points are reported.
    pub crash_points: CrashPoints,
    /// A bug on demand, for tests of tests.
    #[doc(hidden)]
    pub planted_bug: PlantedBug,
}

impl Parts {
    /// Parts on `metadata` without classes, with the machine's clock, no opener and a small pool of buffers.
    pub fn new(metadata: Device) -> Parts {
        Parts {
            metadata,
            classes: Vec::new(),
            clock: Arc::new(MonotonicClock::new()),
            wall_time: None,
            opener: Arc::new(NoOpener),
            timer: None,
            buffers: BufferPool::new(0),
            keys: KeyRing::default(),
            cleaners: None,
            crash_points: CrashPoints::default(),
            planted_bug: PlantedBug::None,
        }
    }

    /// Adds the devices of a class.
    #[must_use]
    pub fn with_class(mut self, name: &str, devices: Vec<Device>) -> Parts {
        self.classes
            .push(ClassParts { name: name.to_owned(), devices: devices.into_iter().map(Some).collect() });
        self
    }
}
