//! A simulation as what the key-value engine runs in.
//!
//! The engine's tasks may move between threads, the simulation's may not; so they are handed over by a queue, which a
//! task of the simulation empties.

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

/// The time on the wall when so much of a story is over.
pub(super) fn wall_time_s(elapsed: Duration) -> u64 {
    BEGINNING_S.saturating_add(elapsed.as_secs())
}

/// Forgets what was handed over and never begun: such tasks hold the environment, which holds them.
struct Emptied(Arc<Mutex<Queue>>);

impl Drop for Emptied {
    fn drop(&mut self) {
        let never_begun = std::mem::take(&mut self.0.lock().tasks);
        drop(never_begun);
    }
}

/// Tasks and time of one simulation.
pub(super) struct SimEnvironment {
    /// Time before this simulation began.
    earlier: Duration,
    queue: Arc<Mutex<Queue>>,
    clock: Arc<VirtualClock>,
    timer: VirtualTimer,
    buffers: Arc<BufferPool>,
}

impl SimEnvironment {
    pub(super) fn of(world: &World, buffers: &Arc<BufferPool>) -> Arc<SimEnvironment> {
        SimEnvironment::after(Duration::ZERO, world, buffers)
    }

    /// That of a world which comes after another one, so much time later.
    pub(super) fn after(earlier: Duration, world: &World, buffers: &Arc<BufferPool>) -> Arc<SimEnvironment> {
        let queue: Arc<Mutex<Queue>> = Arc::default();
        let (tasks, inner, emptied) = (queue.clone(), world.clone(), Emptied(queue.clone()));
        world.spawn(async move {
            let _emptied = emptied;
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
            earlier,
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
        wall_time_s(self.earlier + self.clock.now())
    }

    fn buffers(&self) -> Arc<BufferPool> {
        self.buffers.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::Simulation;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Else each recovery that ends in memory would leave a whole database and its disks behind.
    #[test]
    fn a_task_that_never_began_keeps_nothing_alive() {
        let kept = Rc::new(RefCell::new(None));
        let given = kept.clone();
        let run = Simulation::run(1, |world| async move {
            world.sleep(Duration::from_millis(1)).await;
            let environment = SimEnvironment::of(&world, &BufferPool::new(0));
            *given.borrow_mut() = Some(Arc::downgrade(&environment));
            // The first task has begun when the second one is handed over, and the story ends before that is taken up.
            environment.spawn(Box::pin(std::future::pending()));
            world.sleep(Duration::from_millis(1)).await;
            let held = environment.clone();
            environment.spawn(Box::pin(async move {
                held.sleep(Duration::from_secs(1)).await;
            }));
        });
        drop(run);
        assert!(kept.borrow().as_ref().unwrap().upgrade().is_none());
    }
}
