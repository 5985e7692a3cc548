//! Tasks: futures with a number, and the handles that wait for them.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::shared::Shared;

pub(super) type LocalFuture = Pin<Box<dyn Future<Output = ()>>>;

/// What wakes a task: it puts the task's number among the ready ones, once.
#[derive(Debug)]
pub(super) struct TaskWaker {
    pub(super) no: usize,
    pub(super) is_ready: AtomicBool,
    pub(super) shared: Arc<Shared>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_ready.swap(true, Ordering::Relaxed) {
            self.shared.ready.lock().push(self.no);
        }
    }
}

struct Task {
    /// `None` while it is polled, and when it is done.
    future: Option<LocalFuture>,
    waker: Arc<TaskWaker>,
}

/// All tasks of a simulation, by number.
#[derive(Default)]
pub(super) struct Tasks {
    tasks: RefCell<Vec<Task>>,
}

impl Tasks {
    pub(super) fn add(&self, shared: &Arc<Shared>, future: LocalFuture) -> usize {
        let mut tasks = self.tasks.borrow_mut();
        let no = tasks.len();
        let waker = Arc::new(TaskWaker { no, is_ready: AtomicBool::new(false), shared: shared.clone() });
        waker.wake_by_ref();
        tasks.push(Task { future: Some(future), waker });
        no
    }

    /// Polls the task once; it may add and drop tasks meanwhile.
    pub(super) fn poll(&self, no: usize) {
        let (future, waker) = {
            let mut tasks = self.tasks.borrow_mut();
            let task = &mut tasks[no];
            task.waker.is_ready.store(false, Ordering::Relaxed);
            (task.future.take(), task.waker.clone())
        };
        let Some(mut future) = future else { return };
        let waker = Waker::from(waker);
        if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            self.tasks.borrow_mut()[no].future = Some(future);
        }
    }

    pub(super) fn is_done(&self, no: usize) -> bool {
        self.tasks.borrow()[no].future.is_none()
    }

    fn drop_future(&self, no: usize) {
        let future = self.tasks.borrow_mut()[no].future.take();
        drop(future);
    }

    /// Drops all futures: what a power cut does to a program.
    pub(super) fn drop_all(&self) {
        let count = self.tasks.borrow().len();
        (0..count).for_each(|no| self.drop_future(no));
    }
}

pub(super) struct Joint<T> {
    pub(super) result: Option<T>,
    pub(super) waker: Option<Waker>,
}

/// Waits for a task of [`World::spawn`](super::World::spawn). Dropping it lets the task go on.
pub struct JoinHandle<T> {
    pub(super) joint: Rc<RefCell<Joint<T>>>,
    pub(super) tasks: Rc<Tasks>,
    pub(super) no: usize,
}

impl<T> JoinHandle<T> {
    /// Drops the task's future where it stands, as a caller does who loses interest. Waiting for the handle then never
    /// ends.
    pub fn abort(&self) {
        self.tasks.drop_future(self.no);
    }

    /// Whether it has its result (or had it, and gave it away).
    pub fn is_finished(&self) -> bool {
        self.tasks.is_done(self.no)
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut joint = self.joint.borrow_mut();
        match joint.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                joint.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
