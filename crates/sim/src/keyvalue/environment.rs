//! A simulation as what the key-value engine runs in.
//!
//! The engine's tasks may move between threads, the simulation's may not; so they are handed over by a queue, which a task of the simulation empties.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tanada_base::Clock;
use tanada_io::BufferPool;
use tanada_kv::{BackgroundTask, Environment};

use crate::executor::{VirtualClock, VirtualTimer, World};

/// Seconds since 1970 when a simulation begins.
const BEGINNING_S: u64 = 1_800_000_000;

#[derive(Default)]
struct Queue {
    tasks: VecDeque<BackgroundTask>,
    waker: Option<Waker>,
}

/// Tasks and time of one simulation.
pub(super) struct SimEnvironment {
    queue: Arc<Mutex<Queue>>,
    clock: Arc<VirtualClock>,
    timer: VirtualTimer,
    buffers: Arc<BufferPool>,
}

impl SimEnvironment {
    pub(super) fn of(world: &World, buffers: &Arc<BufferPool>) -> Arc<SimEnvironment> {
        let queue: Arc<Mutex<Queue>> = Arc::default();
        let (tasks, inner) = (queue.clone(), world.clone());
        world.spawn(async move {
            loop {
                let task = poll_fn(|context| {
                    let mut queue = tasks.lock();
                    match queue.tasks.pop_front() {
                        Some(task) => Poll::Ready(task),
                        None => {
                            queue.waker = Some(context.waker().clone());
                            Poll::Pending
                        }
                    }
                });
                inner.spawn(task.await);
            }
        });
        Arc::new(SimEnvironment {
            queue,
            clock: world.clock(),
            timer: world.timer(),
            buffers: buffers.clone(),
        })
    }
}

impl fmt::Debug for SimEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimEnvironment").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl Environment for SimEnvironment {
    fn spawn(&self, task: BackgroundTask) {
        let mut queue = self.queue.lock();
        queue.tasks.push_back(task);
        if let Some(waker) = queue.waker.take() {
            waker.wake();
        }
    }

    fn sleep(&self, duration: Duration) -> BackgroundTask {
        Box::pin(self.timer.sleep(duration))
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }

    fn wall_time_s(&self) -> u64 {
        BEGINNING_S + self.clock.now().as_secs()
    }

    fn buffers(&self) -> Arc<BufferPool> {
        self.buffers.clone()
    }
}
