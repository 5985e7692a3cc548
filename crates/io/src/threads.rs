//! The thread pool: blocking system calls for whoever has no ring.
//!
//! One pool for the process. A request is taken by an idle thread, or by a new one while there are fewer than
//! [`MOST_THREADS`]; threads that stay idle end. Requests whose caller has gone are not started.
//!
//! Invariant: while a request is queued, at least one thread lives that will take it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::device::{Completion, OpenFile, Request, Ticket};
use crate::wait::keep_back;

/// Most threads at once; also the most blocking I/Os at once.
const MOST_THREADS: usize = 64;

const IDLE: Duration = Duration::from_secs(5);

pub(crate) struct Job {
    pub(crate) file: Arc<OpenFile>,
    /// The file's I/O may go by a ring.
    pub(crate) by_ring: bool,
    pub(crate) request: Request,
    pub(crate) completion: Completion,
}

impl Job {
    pub(crate) fn run(self) {
        let Job { file, mut request, completion, .. } = self;
        if completion.is_abandoned() {
            return;
        }
        let result = file.perform(&mut request);
        drop(file);
        completion.complete(result, request.buffer);
    }
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { jobs: VecDeque::new(), threads: 0, idle: 0 });
static WORK: Condvar = Condvar::new();

/// Starts `request` on the pool, or on the calling thread if that waits for it.
pub(crate) fn start(file: &Arc<OpenFile>, by_ring: bool, request: Request, completion: Completion) -> Ticket {
    let job = Job { file: file.clone(), by_ring, request, completion };
    if let Some(job) = keep_back(job) {
        enqueue(job);
    }
    Ticket::default()
}

/// Has a thread of the pool do it.
pub(crate) fn enqueue(job: Job) {
    let mut queue = QUEUE.lock();
    queue.jobs.push_back(job);
    if queue.jobs.len() <= queue.idle || queue.threads >= MOST_THREADS {
        drop(queue);
        WORK.notify_one();
        return;
    }
    queue.threads += 1;
    drop(queue);
    let spawned = std::thread::Builder::new().name("tanada-io-pool".to_owned()).spawn(work);
    if spawned.is_err() {
        give_up_thread();
    }
}

/// The system gave no thread: others will take the job, or the caller does it itself.
fn give_up_thread() {
    let mut queue = QUEUE.lock();
    queue.threads -= 1;
    while queue.threads == 0
        && let Some(job) = queue.jobs.pop_front()
    {
        drop(queue);
        job.run();
        queue = QUEUE.lock();
    }
}

fn work() {
    let mut queue = QUEUE.lock();
    loop {
        while let Some(job) = queue.jobs.pop_front() {
            drop(queue);
            job.run();
            queue = QUEUE.lock();
        }
        queue.idle += 1;
        let timed_out = WORK.wait_for(&mut queue, IDLE).timed_out();
        queue.idle -= 1;
        if timed_out && queue.jobs.is_empty() {
            queue.threads -= 1;
            return;
        }
    }
}
