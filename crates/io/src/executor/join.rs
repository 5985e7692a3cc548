//! The result of a task, awaited or dropped on any thread.
//!
//! Invariant: a [`Reporter`] is dropped exactly when no result can come any more; whoever waits then gets a `Cancelled`
//! error.

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::remote::TaskNo;
use crate::{Error, ErrorKind, Result};

struct State<T> {
    result: Option<Result<T>>,
    is_finished: bool,
    is_cancelled: bool,
    waker: Option<Waker>,
    task: Option<async_task::Task<(), TaskNo>>,
}

/// Resolves to the task's output, or to a `Cancelled` or `Panicked` error. Dropping it cancels the task (buffers of I/O
/// in flight live until the kernel is done with them); [`detach`](Self::detach) lets it run.
pub struct JoinHandle<T> {
    /// `None` once detached.
    state: Option<Arc<Mutex<State<T>>>>,
}

/// The task's end.
pub(super) struct Reporter<T> {
    state: Arc<Mutex<State<T>>>,
}

pub(super) fn pair<T>() -> (Reporter<T>, JoinHandle<T>) {
    let state = State { result: None, is_finished: false, is_cancelled: false, waker: None, task: None };
    let state = Arc::new(Mutex::new(state));
    (Reporter { state: state.clone() }, JoinHandle { state: Some(state) })
}

/// Where the running task is put, so that dropping the handle can cancel it.
pub(super) struct TaskPlace<T> {
    state: Arc<Mutex<State<T>>>,
}

impl<T> TaskPlace<T> {
    pub(super) fn put(self, task: async_task::Task<(), TaskNo>) {
        let mut state = self.state.lock();
        if state.is_cancelled {
            // Cancelling runs foreign destructors: not under the lock.
            drop(state);
            drop(task);
        } else if state.is_finished {
            drop(state);
            task.detach();
        } else {
            state.task = Some(task);
        }
    }
}

impl<T> Reporter<T> {
    pub(super) fn is_cancelled(&self) -> bool {
        self.state.lock().is_cancelled
    }

    pub(super) fn task_place(&self) -> TaskPlace<T> {
        TaskPlace { state: self.state.clone() }
    }

    /// Hands over the output, or what the task panicked with.
    pub(super) fn finish(self, output: std::thread::Result<T>) {
        self.report(output.map_err(|panic| {
            let message = format!("a task panicked: {}", panic_message(&*panic));
            Error::new(ErrorKind::Panicked, message)
        }));
    }

    fn report(&self, result: Result<T>) {
        let mut state = self.state.lock();
        if state.is_finished {
            return;
        }
        state.is_finished = true;
        // A result that nobody waits for is dropped here, on the executor, and not under the lock.
        let unwanted = if state.is_cancelled { Some(result) } else { state.result.replace(result) };
        let (waker, task) = (state.waker.take(), state.task.take());
        drop(state);
        drop(unwanted);
        if let Some(task) = task {
            task.detach();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Drop for Reporter<T> {
    fn drop(&mut self) {
        self.report(Err(Error::cancelled(
            "the task was cancelled, or its executor stopped, before it ended",
        )));
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("(no message)")
}

impl<T> JoinHandle<T> {
    /// Lets the task run to its end on its own.
    pub fn detach(mut self) {
        self.state = None;
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let state = self.state.as_ref().expect("polled after it was ready");
        let mut state = state.lock();
        if let Some(result) = state.result.take() {
            drop(state);
            self.state = None;
            return Poll::Ready(result);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        let Some(state) = self.state.take() else { return };
        let mut state = state.lock();
        state.is_cancelled = true;
        let left = (state.task.take(), state.result.take(), state.waker.take());
        drop(state);
        drop(left);
    }
}

impl<T> std::fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let is_finished = self.state.as_ref().is_none_or(|state| state.lock().is_finished);
        f.debug_struct("JoinHandle").field("is_finished", &is_finished).finish()
    }
}
