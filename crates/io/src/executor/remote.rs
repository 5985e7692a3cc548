//! An executor as other threads see it: an inbox and a way to wake its thread.
//!
//! The inbox holds each live task at most once (a task is in one queue at a time), besides spawn requests and closed
//! files; so its length is bounded by what the callers keep alive.
//!
//! 1. A sender puts its item into the inbox, then swaps the state to `NOTIFIED`; if it was `SLEEPING` the sender writes
//!    to the eventfd.
//! 2. The executor, with nothing to do, changes the state from `RUNNING` to `SLEEPING` and waits. If the change fails
//!    somebody was quicker: it looks into the inbox again.
//! 3. When it wakes it sets `RUNNING` *before* it empties the inbox.
//!
//! 4. The order to end is a flag and a notification; the executor looks at the flag after it took the notification, and
//!    before it sleeps.
//!
//! Invariant: an item in the inbox of an executor that sleeps has written, or is about to write, to the eventfd.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use async_task::Runnable;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::timeline;

const RUNNING: u8 = 0;
const SLEEPING: u8 = 1;
const NOTIFIED: u8 = 2;

/// A task among those of its executor.
pub(super) type TaskNo = usize;

/// What other threads send to an executor.
pub(super) enum Item {
    /// A task to poll.
    Run(Runnable<TaskNo>),
    /// Something to do there: make a future and spawn it.
    Start(Box<dyn FnOnce() + Send>),
    /// A file is being closed: the ring's table must let go of it.
    ForgetFile(u64),
}

#[derive(Default)]
struct Inbox {
    items: VecDeque<Item>,
    is_closed: bool,
}

struct Remote {
    id: u64,
    inbox: Mutex<Inbox>,
    state: AtomicU8,
    is_stopping: AtomicBool,
    load: AtomicUsize,
    /// How often the thread has gone to sleep.
    sleeps: AtomicU64,
    has_ended: AtomicBool,
    wake: Arc<OwnedFd>,
}

/// What virtual time wants to know of an executor.
pub(crate) trait Sleeper: Send + Sync {
    /// How often it has gone to sleep so far, if it sleeps now (or has ended); `None` as soon as somebody has woken it.
    fn asleep(&self) -> Option<u64>;
}

impl Sleeper for Remote {
    fn asleep(&self) -> Option<u64> {
        let asleep = self.state.load(Ordering::SeqCst) == SLEEPING || self.has_ended.load(Ordering::SeqCst);
        asleep.then(|| self.sleeps.load(Ordering::SeqCst))
    }
}

/// A handle of one executor's inbox. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RemoteHandle(Arc<Remote>);

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl RemoteHandle {
    pub(super) fn new() -> std::io::Result<RemoteHandle> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let remote = Arc::new(Remote {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            inbox: Mutex::default(),
            state: AtomicU8::new(RUNNING),
            is_stopping: AtomicBool::new(false),
            load: AtomicUsize::new(0),
            sleeps: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
            wake: Arc::new(wake),
        });
        let sleeper: Weak<dyn Sleeper> = Arc::<Remote>::downgrade(&remote);
        timeline::watch_executor(sleeper);
        Ok(RemoteHandle(remote))
    }

    /// Unique in the process, never 0.
    pub(super) fn id(&self) -> u64 {
        self.0.id
    }

    pub(super) fn is(&self, other: &RemoteHandle) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn wake_fd(&self) -> Arc<OwnedFd> {
        self.0.wake.clone()
    }

    /// Puts `item` into the inbox; drops it if the executor has ended.
    pub(super) fn send(&self, item: Item) {
        let mut inbox = self.0.inbox.lock();
        if inbox.is_closed {
            // Dropping it may run foreign code, which may send again.
            drop(inbox);
            return drop(item);
        }
        inbox.items.push_back(item);
        drop(inbox);
        self.notify();
    }

    /// Tells the executor that a file is being closed.
    pub(crate) fn forget_file(&self, id: u64) {
        self.send(Item::ForgetFile(id));
    }

    fn notify(&self) {
        if self.0.state.swap(NOTIFIED, Ordering::SeqCst) == SLEEPING {
            // It fails only if the counter is full, and then the thread is woken already.
            let _ = rustix::io::write(&*self.0.wake, &1u64.to_ne_bytes());
        }
    }

    /// Asks the thread to end.
    pub(super) fn stop(&self) {
        self.0.is_stopping.store(true, Ordering::SeqCst);
        self.notify();
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.0.is_stopping.load(Ordering::SeqCst)
    }

    /// Live tasks, those still in the inbox included.
    pub(super) fn load(&self) -> usize {
        self.0.load.load(Ordering::Relaxed)
    }

    pub(super) fn add_load(&self) -> Load {
        self.0.load.fetch_add(1, Ordering::Relaxed);
        Load(self.clone())
    }

    /// Executor's side: moves the inbox to `items` if somebody sent something.
    pub(super) fn receive(&self, items: &mut VecDeque<Item>) {
        if self.0.state.load(Ordering::SeqCst) == NOTIFIED {
            self.awake(items);
        }
    }

    /// Executor's side: the thread runs (again); takes the inbox.
    pub(super) fn awake(&self, items: &mut VecDeque<Item>) {
        self.0.state.store(RUNNING, Ordering::SeqCst);
        items.append(&mut self.0.inbox.lock().items);
    }

    /// Executor's side: whether it may sleep now.
    pub(super) fn try_sleep(&self) -> bool {
        // Counted first, so that who sees it asleep sees the count too. Only this thread counts.
        let sleeps = self.0.sleeps.load(Ordering::Relaxed);
        self.0.sleeps.store(sleeps.wrapping_add(1), Ordering::Relaxed);
        self.0.state.compare_exchange(RUNNING, SLEEPING, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Executor's side: it does not sleep after all.
    pub(super) fn stay_awake(&self) {
        let _ = self.0.state.compare_exchange(SLEEPING, RUNNING, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Executor's side: resets the eventfd.
    pub(super) fn clear_wake(&self) {
        let _ = rustix::io::read(&*self.0.wake, &mut [0u8; 8]);
    }

    /// Executor's side, without a ring: sleeps until somebody sends.
    pub(super) fn wait(&self) {
        // An interruption is a wake-up for nothing, which the loop copes with.
        let _ = poll(&mut [PollFd::new(&*self.0.wake, PollFlags::IN)], None);
        self.clear_wake();
    }

    /// Executor's side, when it has no task left: takes no more; what is in the inbox.
    pub(super) fn close(&self) -> VecDeque<Item> {
        let mut inbox = self.0.inbox.lock();
        inbox.is_closed = true;
        self.0.has_ended.store(true, Ordering::SeqCst);
        std::mem::take(&mut inbox.items)
    }
}

impl std::fmt::Debug for RemoteHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor")
            .field("id", &self.0.id)
            .field("tasks", &self.load())
            .finish_non_exhaustive()
    }
}

/// One live task, counted until dropped.
pub(super) struct Load(RemoteHandle);

impl Drop for Load {
    fn drop(&mut self) {
        self.0.0.load.fetch_sub(1, Ordering::Relaxed);
    }
}
