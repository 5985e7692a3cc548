//! What the engine runs in: time that passes, and tasks in the background. Injected, because the engine has no threads
//! and no clock.
//!
//! - [`LiveEnvironment`]: executors of `tanada-io`, in real time or in virtual time;
//! - [`ThreadEnvironment`]: a thread a task, for tests and for tools that have no executors.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tanada_base::Clock;
use tanada_io::{BufferPool, Executors, Timeline};

/// A future without a result that may run on any thread.
pub type BackgroundTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes a future without a result that stays on the thread it was made on.
pub type MakeLocalTask = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// The runtime of a database: tasks, time, buffers. All databases of a process may share one.
///
/// ```
/// use std::time::Duration;
/// use tanada_kv::{Environment, ThreadEnvironment};
///
/// async fn rest(environment: &dyn Environment) {
///     environment.sleep(Duration::from_millis(1)).await;
/// }
/// tanada_kv::blocking::wait(rest(&*ThreadEnvironment::new()));
/// ```
pub trait Environment: Send + Sync + fmt::Debug {
    /// Runs a future to its end, in the background.
    fn spawn(&self, task: BackgroundTask);

    /// Runs a future to its end on one thread, in the background. Such futures wait for nothing, and only let others
    /// run now and then: unless an environment has something better, each is a task that does it all at once.
    fn spawn_local(&self, make: MakeLocalTask) {
        self.spawn(Box::pin(async move { wait_for(make()) }));
    }

    /// A future that is ready after `duration`.
    fn sleep(&self, duration: Duration) -> BackgroundTask;

    /// The time since some moment; it never goes back.
    fn now(&self) -> Duration;

    /// Seconds since 1970: decides what has expired.
    fn wall_time_s(&self) -> u64;

    /// Buffers for I/O.
    fn buffers(&self) -> Arc<BufferPool>;
}

fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// Executors, and a timeline that is real or virtual.
///
/// ```
/// use tanada_io::{ExecutorOptions, Executors, Timeline};
/// use tanada_kv::{Environment, LiveEnvironment};
///
/// let executors = Executors::start(ExecutorOptions::default())?;
/// let environment = LiveEnvironment::new(executors, Timeline::real());
/// assert!(environment.now() <= environment.now());
/// # Ok::<(), tanada_io::Error>(())
/// ```
pub struct LiveEnvironment {
    executors: Arc<Executors>,
    timeline: Timeline,
    clock: Arc<dyn Clock>,
}

impl LiveEnvironment {
    /// Background tasks run on `executors`; they end when the databases are closed, which has to be before the
    /// executors go.
    pub fn new(executors: Arc<Executors>, timeline: Timeline) -> Arc<LiveEnvironment> {
        let clock = timeline.clock();
        Arc::new(LiveEnvironment { executors, timeline, clock })
    }
}

impl fmt::Debug for LiveEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveEnvironment").field("executors", &self.executors).finish_non_exhaustive()
    }
}

impl Environment for LiveEnvironment {
    fn spawn(&self, task: BackgroundTask) {
        self.executors.spawn(move || task).detach();
    }

    fn spawn_local(&self, make: MakeLocalTask) {
        self.executors.spawn(make).detach();
    }

    fn sleep(&self, duration: Duration) -> BackgroundTask {
        Box::pin(self.timeline.sleep(duration))
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn wall_time_s(&self) -> u64 {
        seconds_since_1970()
    }

    fn buffers(&self) -> Arc<BufferPool> {
        self.executors.buffers().clone()
    }
}

/// A thread for each task, in real time.
///
/// ```
/// use tanada_kv::{Environment, ThreadEnvironment};
///
/// let environment = ThreadEnvironment::new();
/// assert!(environment.wall_time_s() > 1_700_000_000);
/// ```
pub struct ThreadEnvironment {
    timeline: Timeline,
    clock: Arc<dyn Clock>,
    buffers: Arc<BufferPool>,
}

impl ThreadEnvironment {
    /// An environment with buffers from the heap.
    pub fn new() -> Arc<ThreadEnvironment> {
        let timeline = Timeline::real();
        let clock = timeline.clock();
        Arc::new(ThreadEnvironment { timeline, clock, buffers: BufferPool::new(0) })
    }
}

impl fmt::Debug for ThreadEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadEnvironment").finish_non_exhaustive()
    }
}

impl Environment for ThreadEnvironment {
    fn spawn(&self, task: BackgroundTask) {
        let thread = std::thread::Builder::new().name("tanada-kv".to_owned());
        // Without a thread the task is dropped, and its waiters are notified.
        if let Err(error) = thread.spawn(move || wait_for(task)) {
            tanada_io::warn(&format!("no thread for a background task: {error}"));
        }
    }

    fn sleep(&self, duration: Duration) -> BackgroundTask {
        Box::pin(self.timeline.sleep(duration))
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn wall_time_s(&self) -> u64 {
        seconds_since_1970()
    }

    fn buffers(&self) -> Arc<BufferPool> {
        self.buffers.clone()
    }
}

/// Runs a future to its end on the calling thread.
pub(crate) fn wait_for<F: Future>(future: F) -> F::Output {
    tanada_io::wait(future)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::yield_now;
    use futures::channel::oneshot;
    use tanada_io::{ExecutorOptions, VirtualTimeOptions};

    fn runs_local_tasks(environment: &dyn Environment) {
        let (sender, receiver) = oneshot::channel();
        environment.spawn_local(Box::new(|| {
            Box::pin(async move {
                let stays_here = std::rc::Rc::new(7);
                yield_now().await;
                let _ = sender.send(*stays_here);
            })
        }));
        assert_eq!(wait_for(receiver), Ok(7));
    }

    fn runs_tasks(environment: &dyn Environment) {
        runs_local_tasks(environment);
        let (sender, receiver) = oneshot::channel();
        let began = environment.now();
        let slept = environment.sleep(Duration::from_millis(20));
        environment.spawn(Box::pin(async move {
            slept.await;
            let _ = sender.send(7);
        }));
        assert_eq!(wait_for(receiver), Ok(7));
        assert!(environment.now() >= began + Duration::from_millis(19));
        assert!(environment.wall_time_s() > 1_700_000_000);
    }

    #[test]
    fn tasks_run_and_time_passes() {
        runs_tasks(&*ThreadEnvironment::new());
        let options = ExecutorOptions { threads: 1, registered_bytes: 0, ..ExecutorOptions::default() };
        let executors = Executors::start(options).unwrap();
        runs_tasks(&*LiveEnvironment::new(executors.clone(), Timeline::real()));
    }

    #[test]
    fn virtual_time_passes_without_waiting() {
        let timeline = Timeline::virtual_time(VirtualTimeOptions { cpu: false });
        let options = ExecutorOptions { threads: 1, registered_bytes: 0, ..ExecutorOptions::default() };
        let executors = Executors::start(options).unwrap();
        let environment = LiveEnvironment::new(executors.clone(), timeline);
        let (sender, receiver) = oneshot::channel();
        let hour = environment.sleep(Duration::from_secs(3600));
        environment.spawn(Box::pin(async move {
            hour.await;
            let _ = sender.send(());
        }));
        assert_eq!(wait_for(receiver), Ok(()));
        assert!(environment.now() >= Duration::from_secs(3600));
    }
}
