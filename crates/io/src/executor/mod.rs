//! Executors: threads that own a ring and run tasks driven by completions.
//!
//! A task is a future that lives on one executor from its first poll to its drop; it need not be `Send`. It awaits I/O
//! on devices, other tasks, and anything that works with plain wakers; nothing in it may block. To hand results to
//! another runtime, send them through a bounded `futures::channel::mpsc`: its two ends may live on an executor and in
//! tokio, and a full channel suspends the task.
//!
//! Invariant: a panic in a task ends that task alone and is reported through its handle.

mod join;
mod local;
mod ready;
mod remote;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use futures::FutureExt;

use crate::ring::{Ring, Sibling};
use crate::{BufferPool, Error, ErrorKind, Fallback, Method, Result, ring};
pub use join::JoinHandle;
use local::Local;
pub use local::{Chain, begin_chain, operations_since_resumed, others_are_ready};
pub(crate) use local::{cancel_on_this_thread, executor_thread, is_executor_thread, start_on_this_thread};
use remote::{Item, Load, TaskNo};
pub(crate) use remote::{RemoteHandle, Sleeper};

/// How to start executors.
#[derive(Debug, Clone)]
pub struct ExecutorOptions {
    /// Threads; 0 means one per core.
    pub threads: usize,
    /// Wanted method.
    pub method: Method,
    /// Memory registered for I/O buffers, in bytes; it is taken from the system at once.
    pub registered_bytes: usize,
    /// Memory that buffers are cut from before the heap serves, in bytes, the registered part included; the rest is
    /// taken from the system as it is used, in huge pages. Whoever keeps buffers for long (a page cache) adds what it
    /// keeps: I/O into huge pages is cheaper than into the heap.
    pub buffer_bytes: usize,
}

impl Default for ExecutorOptions {
    /// One thread per core, io_uring, 64 MiB, all of it registered.
    fn default() -> ExecutorOptions {
        ExecutorOptions { threads: 0, method: Method::Uring, registered_bytes: 64 << 20, buffer_bytes: 0 }
    }
}

/// A set of executor threads. They stop when the last `Arc` goes: their tasks are dropped and I/O in flight is waited
/// for.
///
/// ```
/// use tanada_io::{ExecutorOptions, Executors};
/// let executors = Executors::start(ExecutorOptions { threads: 2, ..ExecutorOptions::default() })?;
/// let sum = executors.block_on(|| async {
///     let other = tanada_io::spawn_local(async { 40 });
///     other.await + 2
/// })?;
/// assert_eq!(sum, 42);
/// # Ok::<(), tanada_io::Error>(())
/// ```
#[derive(Debug)]
pub struct Executors {
    threads: Vec<ExecutorThread>,
    next: AtomicUsize,
    method: Method,
    pool: Arc<BufferPool>,
}

#[derive(Debug)]
struct ExecutorThread {
    remote: RemoteHandle,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Executors {
    /// Starts the threads.
    ///
    /// # Errors
    /// If the system gives no threads or descriptors. A missing facility is no error: see [`Fallback`].
    pub fn start(options: ExecutorOptions) -> Result<Arc<Executors>> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let count = if options.threads == 0 { cores() } else { options.threads };
        let with_rings = options.method == Method::Uring && ring::is_available();
        let mut executors = Executors {
            threads: Vec::with_capacity(count),
            next: AtomicUsize::new(0),
            method: if with_rings { Method::Uring } else { fallback_method(options.method) },
            pool: BufferPool::with_registered(options.buffer_bytes, options.registered_bytes),
        };
        let mut sibling = None;
        for no in 0..count {
            let started = executors.start_thread(no, with_rings, sibling);
            let ring = started.map_err(|error| {
                Error::new(
                    ErrorKind::Device,
                    format!("cannot start executor thread {no} of {count}: {error}"),
                )
            })?;
            if with_rings && ring.is_none() {
                executors.method = Method::Threads;
            }
            sibling = sibling.or(ring);
        }
        Ok(Arc::new(executors))
    }

    fn start_thread(
        &mut self,
        no: usize,
        with_ring: bool,
        sibling: Option<Sibling>,
    ) -> std::io::Result<Option<Sibling>> {
        let remote = RemoteHandle::new()?;
        let (report, reported) = mpsc::channel();
        let (pool, on_thread) = (self.pool.clone(), remote.clone());
        let life = move || {
            let ring = with_ring.then(|| Ring::new(on_thread.wake_fd(), pool, sibling));
            let ring = ring.and_then(|made| {
                made.inspect_err(|error| Fallback::NoUring.warn(format_args!("{error}"))).ok()
            });
            let _ = report.send(ring.as_ref().map(Ring::as_sibling));
            Local::new(on_thread, ring).run();
        };
        let thread = std::thread::Builder::new().name(format!("tanada-io-{no}")).spawn(life)?;
        self.threads.push(ExecutorThread { remote, thread: Some(thread) });
        Ok(reported.recv().unwrap_or(None))
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The method in use: `Threads` if io_uring was wanted and not to be had.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The buffers of these executors.
    pub fn buffers(&self) -> &Arc<BufferPool> {
        &self.pool
    }

    /// Live tasks.
    pub fn tasks(&self) -> usize {
        self.threads.iter().map(|thread| thread.remote.load()).sum()
    }

    /// Runs the future that `make` builds on the least loaded executor; callable from any thread or runtime.
    pub fn spawn<M, F, T>(&self, make: M) -> JoinHandle<T>
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        // Equally loaded ones take turns.
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.threads.len();
        let load = |no: &usize| self.threads[(first + no) % count].remote.load();
        let no = (0..count).min_by_key(load).unwrap_or(0);
        self.spawn_on(first.wrapping_add(no), make)
    }

    /// The same, on executor `no` modulo their number.
    pub fn spawn_on<M, F, T>(&self, no: usize, make: M) -> JoinHandle<T>
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        let remote = &self.threads[no % self.threads.len()].remote;
        let load = remote.add_load();
        let (reporter, handle) = join::pair();
        remote.send(Item::Start(Box::new(move || begin(make, reporter, load))));
        handle
    }

    /// Runs a future to its end and blocks the calling thread (never an executor's or tokio's own thread).
    ///
    /// # Errors
    /// `InvalidInput` on an executor's thread, which would wait for itself; `Panicked` if the future panics.
    pub fn block_on<M, F, T>(&self, make: M) -> Result<T>
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future<Output = T> + 'static,
        T: Send + 'static,
    {
        if local::current().is_some() {
            return Err(Error::new(ErrorKind::InvalidInput, "an executor's thread must not block on a task"));
        }
        let mut handle = pin!(self.spawn(make));
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut context = Context::from_waker(&waker);
        loop {
            match handle.as_mut().poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => std::thread::park(),
            }
        }
    }
}

fn fallback_method(wanted: Method) -> Method {
    if wanted == Method::Uring { Method::Threads } else { wanted }
}

/// On the executor: makes the future and spawns it.
fn begin<M, F, T>(make: M, reporter: join::Reporter<T>, load: Load)
where
    M: FnOnce() -> F + Send + 'static,
    F: Future<Output = T> + 'static,
    T: Send + 'static,
{
    let Some(local) = local::current() else { return };
    if reporter.is_cancelled() {
        return;
    }
    let future = match catch_unwind(AssertUnwindSafe(make)) {
        Ok(future) => future,
        Err(panic) => return reporter.finish(Err(panic)),
    };
    let place = reporter.task_place();
    let task = local.spawn(
        async move {
            let output = AssertUnwindSafe(future).catch_unwind().await;
            reporter.finish(output);
        },
        load,
    );
    place.put(task);
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Drop for Executors {
    fn drop(&mut self) {
        for thread in &self.threads {
            thread.remote.stop();
        }
        // A task that drops the last `Arc` cannot wait for its own thread.
        if local::current().is_some() {
            return;
        }
        for thread in &mut self.threads {
            if let Some(thread) = thread.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

/// A task on the same executor; a future of its output. Dropping it cancels; `detach` lets it run.
///
/// A panic in the task goes on in whoever awaits it.
#[derive(Debug)]
pub struct Task<T>(async_task::FallibleTask<T, TaskNo>);

impl<T> Task<T> {
    /// Lets the task run to its end on its own.
    pub fn detach(self) {
        self.0.detach();
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match Pin::new(&mut self.0).poll(context) {
            Poll::Ready(Some(output)) => Poll::Ready(output),
            // Its executor has stopped, and whoever waits here is about to be dropped too.
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// Spawns a task (not `Send`) on the executor whose thread this is; panics elsewhere.
pub fn spawn_local<F: Future + 'static>(future: F) -> Task<F::Output> {
    let local = local::current().expect("spawn_local works on an executor's thread only");
    let load = local.add_load();
    Task(local.spawn(future, load).fallible())
}
