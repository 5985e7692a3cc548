//! An executor's thread: its run queue, its ring, its tasks.
//!
//! The loop:
//! 1. take what other threads sent;
//! 2. poll ready tasks, at most [`POLLS_A_ROUND`], and none again that has yielded: [the oldest chain
//!    first](super::ready); when enough I/Os have gathered (`submit_batch`), submit them in one call, and begin anew;
//! 3. with nothing ready, submit the rest and sleep until a completion or a message comes; otherwise only look for
//!    completions;
//! 4. complete what landed, which makes tasks ready.
//!
//! Invariants: a task is polled and dropped on this thread only; `tasks` has an entry for every future that is not
//! dropped yet, so stopping can drop them all; the ring is never borrowed while foreign code (a waker, a destructor)
//! runs.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use async_task::{Builder, Runnable};
use slab::Slab;

use super::ready::{Age, ReadyQueue};
use super::remote::{Item, Load, RemoteHandle, TaskNo};
use crate::device::{Completion, OpenFile, Request, Ticket};
use crate::ring::{Landed, Ring};
use crate::{Fallback, timeline};

/// Tasks polled before completions are looked for.
const POLLS_A_ROUND: usize = 256;

/// Most I/Os gathered before they are submitted while tasks are still ready: enough to share the cost of a system call,
/// and of waking who works for the device.
const MOST_SUBMIT_BATCH: usize = 16;

/// Of what the device has to do, and of the tasks that will go on in any case, one in so many more I/Os may wait to be
/// submitted.
const SUBMIT_PART: usize = 4;

/// I/Os gathered before they are submitted, with `under_way` of them submitted and `ready` tasks that can go on. A
/// device that has nothing to do gets the first one. With a few under way it gets few at once, so that it does not run
/// dry while tasks compute. With many tasks ready an I/O that has ended would wait for them, and those gathered
/// meanwhile wait no longer.
fn submit_batch(under_way: usize, ready: usize) -> usize {
    if under_way == 0 {
        return 1;
    }
    (under_way.max(ready) / SUBMIT_PART).clamp(1, MOST_SUBMIT_BATCH)
}

thread_local! {
    static LOCAL: RefCell<Option<Rc<Local>>> = const { RefCell::new(None) };
}

pub(super) struct Local {
    remote: RemoteHandle,
    ready: RefCell<ReadyQueue>,
    ring: RefCell<Option<Ring>>,
    tasks: RefCell<Slab<Entry>>,
    /// The task that is being polled, and how often it has called [`operations_since_resumed`] meanwhile.
    running: Cell<Option<TaskNo>>,
    operations: Cell<u64>,
    is_stopped: Cell<bool>,
}

/// A task whose future is not dropped yet.
struct Entry {
    waker: Waker,
    /// Of the chain that it is in.
    age: Option<Age>,
}

/// The executor whose thread this is.
pub(super) fn current() -> Option<Rc<Local>> {
    LOCAL.try_with(|local| local.borrow().clone()).ok().flatten()
}

fn with_current<T>(then: impl FnOnce(&Local) -> T) -> Option<T> {
    LOCAL.try_with(|local| local.borrow().as_deref().map(then)).ok().flatten()
}

/// Which executor's thread this is, in the whole process; none elsewhere.
pub(crate) fn executor_thread() -> Option<u64> {
    with_current(|local| local.remote.id())
}

/// Whether this is an executor's thread.
pub(crate) fn is_executor_thread() -> bool {
    with_current(|_| ()).is_some()
}

/// Starts `request` on this thread's ring; gives it back if the thread has none.
pub(crate) fn start_on_this_thread(
    file: &Arc<OpenFile>,
    request: Request,
    completion: Completion,
) -> Result<Ticket, (Request, Completion)> {
    let mut pair = Some((request, completion));
    let ticket = with_current(|local| {
        let mut ring = local.ring.borrow_mut();
        let ring = ring.as_mut()?;
        let (request, completion) = pair.take()?;
        Some(Ticket { place: local.remote.id(), no: ring.start(file, request, completion, &local.remote) })
    });
    match (ticket.flatten(), pair) {
        (_, Some(pair)) => Err(pair),
        (ticket, None) => Ok(ticket.unwrap_or_default()),
    }
}

/// Cancels a request that was started on this thread's ring. Any other goes on to its end, unobserved.
pub(crate) fn cancel_on_this_thread(ticket: Ticket) {
    with_current(|local| {
        if ticket.place == local.remote.id()
            && let Some(ring) = local.ring.borrow_mut().as_mut()
        {
            ring.cancel(ticket.no);
        }
    });
}

/// Counts an operation of the calling task: how many there were since the task waited for something, or let others run;
/// `None` on threads that are no executor's. Whoever does many that do not wait lets others run now and then.
pub fn operations_since_resumed() -> Option<u64> {
    with_current(|local| {
        local.operations.set(local.operations.get() + 1);
        local.operations.get()
    })
}

/// Whether other tasks of this thread can go on; `None` on threads that are no executor's. Who is about to begin what
/// need not be done at once lets them, so that what has to wait for the thread waits before it begins, rather than
/// after each of its I/Os.
pub fn others_are_ready() -> Option<bool> {
    with_current(|local| !local.ready.borrow().is_empty())
}

/// A chain of I/Os that a task drives, until this is dropped: see [`begin_chain`].
#[derive(Debug)]
pub struct Chain(Option<(u64, TaskNo, Age)>);

/// What the calling task does from now on is one chain of I/Os, until what this gives is dropped: between them it goes
/// on before tasks whose chains began later, and before those that became ready later and are in none. Without effect
/// on threads that are no executor's, and inside of another chain of the task.
///
/// Where more is to be done than threads can do, a chain of several I/Os would otherwise wait in the queue for as long
/// after each of them as one that begins does before its first one.
///
/// ```
/// # let executors = tanada_io::Executors::start(tanada_io::ExecutorOptions { threads: 1, ..Default::default() })?;
/// executors.block_on(|| async {
///     let chain = tanada_io::begin_chain();
///     // Reads an index page, then the leaf page that it names, then the value that this one names.
///     drop(chain);
/// })?;
/// # Ok::<(), tanada_io::Error>(())
/// ```
pub fn begin_chain() -> Chain {
    let began = with_current(|local| {
        let task = local.running.get()?;
        let mut tasks = local.tasks.borrow_mut();
        let entry = tasks.get_mut(task).filter(|entry| entry.age.is_none())?;
        let age = local.ready.borrow_mut().next_age();
        entry.age = Some(age);
        Some((local.remote.id(), task, age))
    });
    Chain(began.flatten())
}

impl Drop for Chain {
    fn drop(&mut self) {
        let Some((executor, task, age)) = self.0 else { return };
        with_current(|local| {
            if local.remote.id() == executor
                && let Some(entry) = local.tasks.borrow_mut().get_mut(task)
            {
                // It may have been moved elsewhere, and the task's number be another's by now.
                entry.age = entry.age.filter(|its_age| *its_age != age);
            }
        });
    }
}

/// Puts a woken task into the queue of its executor.
fn schedule(remote: &RemoteHandle, runnable: Runnable<TaskNo>) {
    let mut runnable = Some(runnable);
    with_current(|local| {
        if local.remote.is(remote)
            && let Some(runnable) = runnable.take()
        {
            local.make_ready(runnable);
        }
    });
    if let Some(runnable) = runnable {
        remote.send(Item::Run(runnable));
    }
}

/// Takes the task's entry out of the list when its future is dropped.
struct Registration {
    local: Rc<Local>,
    key: usize,
    _load: Load,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let entry = self.local.tasks.borrow_mut().try_remove(self.key);
        drop(entry);
    }
}

impl Local {
    pub(super) fn new(remote: RemoteHandle, ring: Option<Ring>) -> Rc<Local> {
        Rc::new(Local {
            remote,
            ready: RefCell::default(),
            ring: RefCell::new(ring),
            tasks: RefCell::default(),
            running: Cell::new(None),
            operations: Cell::new(0),
            is_stopped: Cell::new(false),
        })
    }

    /// Spawns a task on this executor, which must be the calling thread's.
    pub(super) fn spawn<F: Future + 'static>(
        self: &Rc<Self>,
        future: F,
        load: Load,
    ) -> async_task::Task<F::Output, TaskNo> {
        let mut tasks = self.tasks.borrow_mut();
        let entry = tasks.vacant_entry();
        let task_no = entry.key();
        let registration = Registration { local: self.clone(), key: task_no, _load: load };
        let future = Contained(ManuallyDrop::new(future));
        let future = async move {
            let _registration = registration;
            future.await
        };
        let remote = self.remote.clone();
        let (runnable, task) = Builder::new()
            .propagate_panic(true)
            .metadata(task_no)
            .spawn_local(|_| future, move |runnable| schedule(&remote, runnable));
        entry.insert(Entry { waker: runnable.waker(), age: None });
        drop(tasks);
        if self.is_stopped.get() {
            drop(runnable);
            return task;
        }
        self.make_ready(runnable);
        task
    }

    /// Puts a task into the queue. One that is woken while it runs has mostly woken itself, to let others go first: the
    /// age of its chain does not count then.
    fn make_ready(&self, runnable: Runnable<TaskNo>) {
        let task = *runnable.metadata();
        let age = if self.running.get() == Some(task) {
            None
        } else {
            self.tasks.borrow().get(task).and_then(|entry| entry.age)
        };
        self.ready.borrow_mut().push(runnable, age);
    }

    pub(super) fn add_load(&self) -> Load {
        self.remote.add_load()
    }

    /// The thread's life, until it is told to stop.
    pub(super) fn run(self: Rc<Self>) {
        LOCAL.with(|local| *local.borrow_mut() = Some(self.clone()));
        let mut inbox = VecDeque::new();
        let mut landed = Vec::new();
        loop {
            self.remote.receive(&mut inbox);
            inbox.drain(..).for_each(|item| self.handle(item));
            // Looked at behind what takes the notification: the order to end has no item that would be found later.
            if self.remote.is_stopping() {
                break;
            }
            let has_submitted = self.poll_ready();
            self.turn_ring(has_submitted, &mut inbox, &mut landed);
            landed.drain(..).for_each(Landed::complete);
        }
        self.stop();
        LOCAL.with(|local| *local.borrow_mut() = None);
    }

    fn handle(&self, item: Item) {
        match item {
            Item::Run(runnable) => self.make_ready(runnable),
            Item::Start(start) => survive(start),
            Item::ForgetFile(id) => {
                if let Some(ring) = self.ring.borrow_mut().as_mut() {
                    ring.forget_file(id);
                }
            }
        }
    }

    /// Whether it ended because I/Os were submitted.
    fn poll_ready(&self) -> bool {
        let mut left = POLLS_A_ROUND;
        while left > 0 {
            let Some(runnable) = self.ready.borrow_mut().pop() else { return false };
            left -= 1;
            let mut has_yielded = false;
            self.running.set(Some(*runnable.metadata()));
            self.operations.set(0);
            survive(|| has_yielded = runnable.run());
            self.running.set(None);
            if has_yielded {
                // Woken while it ran, mostly by itself to let others go first, and they may wait for I/O: those before
                // it in the queue, then completions.
                left = left.min(self.ready.borrow().len().saturating_sub(1));
            }
            let ready = self.ready.borrow().len();
            let is_enough = |ring: &mut Ring| {
                let gathered = ring.unsubmitted();
                gathered > 0 && gathered >= submit_batch(ring.in_flight().saturating_sub(gathered), ready)
            };
            if self.ring.borrow_mut().as_mut().is_some_and(is_enough) {
                // What has landed by then may belong to older chains than what is ready, and so may what other threads
                // have woken.
                self.enter(false);
                return true;
            }
        }
        false
    }

    /// Submits what was not just now; sleeps if there is nothing else to do; reaps.
    fn turn_ring(&self, has_submitted: bool, inbox: &mut VecDeque<Item>, landed: &mut Vec<Landed>) {
        let sleep = self.ready.borrow().is_empty() && self.remote.try_sleep();
        let is_virtual = timeline::is_any_virtual();
        if sleep {
            if is_virtual {
                timeline::executor_sleeps(|| self.has_work());
            }
            // Virtual time may have found something to do here.
            let wait = !is_virtual || self.ready.borrow().is_empty();
            if self.ring.borrow().is_some() {
                self.enter(wait)
            } else if wait {
                self.remote.wait()
            }
            self.remote.awake(inbox);
            if is_virtual {
                timeline::executor_woke();
            }
        } else if is_virtual {
            timeline::executor_turns();
        }
        if !sleep && !has_submitted && self.ring.borrow_mut().as_mut().is_some_and(Ring::wants_enter) {
            self.enter(false);
        }
        let woken = self.ring.borrow_mut().as_mut().is_some_and(|ring| ring.reap(landed));
        if woken {
            self.remote.clear_wake();
        }
        inbox.drain(..).for_each(|item| self.handle(item));
    }

    /// Whether a task is ready; the thread does not count as asleep then.
    fn has_work(&self) -> bool {
        let has_work = !self.ready.borrow().is_empty();
        if has_work {
            self.remote.stay_awake();
        }
        has_work
    }

    fn enter(&self, wait: bool) {
        let entered = self.ring.borrow_mut().as_mut().map(|ring| ring.enter(wait));
        let Some(Err(error)) = entered else { return };
        // The ring itself failed (a sandbox that closed behind us): go on without it.
        Fallback::NoUring.warn(format_args!("{error}"));
        let mut landed = Vec::new();
        let ring = self.ring.borrow_mut().take();
        if let Some(mut ring) = ring {
            ring.reap(&mut landed);
            ring.abandon(&error, &mut landed);
        }
        landed.drain(..).for_each(Landed::complete);
    }

    /// Drops every task, then the ring, which waits for what is in flight.
    ///
    /// The inbox stays open until the last future is dropped: a task that another thread has just woken must come back
    /// here, because only this thread may drop it. What is spawned meanwhile is dropped at once.
    fn stop(&self) {
        self.is_stopped.set(true);
        let mut inbox = VecDeque::new();
        while !self.tasks.borrow().is_empty() {
            let wakers: Vec<Waker> =
                self.tasks.borrow().iter().map(|(_, entry)| entry.waker.clone()).collect();
            wakers.into_iter().for_each(Waker::wake);
            self.remote.awake(&mut inbox);
            inbox.drain(..).for_each(|item| survive(|| drop(item)));
            loop {
                let Some(runnable) = self.ready.borrow_mut().pop() else { break };
                survive(|| drop(runnable));
            }
            std::thread::yield_now();
        }
        self.remote.close().into_iter().for_each(|item| survive(|| drop(item)));
        let ring = self.ring.borrow_mut().take();
        drop(ring);
        // What was in flight has kept virtual time.
        timeline::executor_ended();
    }
}

/// A future whose destructor may panic without harm: a cancelled task that does so would abort the process.
struct Contained<F>(ManuallyDrop<F>);

impl<F: Future> Future for Contained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is never moved out of its place: it is dropped there.
        unsafe { self.map_unchecked_mut(|contained| &mut *contained.0) }.poll(context)
    }
}

impl<F> Drop for Contained<F> {
    fn drop(&mut self) {
        // SAFETY: dropped once, here, and not used afterwards.
        survive(|| unsafe { ManuallyDrop::drop(&mut self.0) });
    }
}

/// Runs `code`, whose panic must not end the thread. The panic hook has reported it already.
fn survive(code: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(code));
}

#[cfg(test)]
mod tests {
    use futures::channel::oneshot;

    use super::*;
    use crate::{ExecutorOptions, Executors, spawn_local};

    async fn yield_once() {
        let mut has_yielded = false;
        std::future::poll_fn(|context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut has_yielded, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn on_one_thread<T: Send + 'static, F: Future<Output = T> + 'static>(
        make: impl FnOnce() -> F + Send + 'static,
    ) -> T {
        let options = ExecutorOptions { threads: 1, registered_bytes: 0, ..ExecutorOptions::default() };
        Executors::start(options).unwrap().block_on(make).unwrap()
    }

    #[test]
    fn ios_gather_as_long_as_device_and_tasks_have_enough_to_do() {
        assert_eq!(submit_batch(0, 100), 1, "the device has nothing to do");
        assert_eq!([submit_batch(3, 0), submit_batch(8, 3), submit_batch(40, 0)], [1, 2, 10]);
        assert_eq!([submit_batch(1, 40), submit_batch(1, 1000), submit_batch(1000, 0)], [10, 16, 16]);
    }

    /// Tasks wait, and are woken in an order; in which order they go on.
    async fn order_of(in_chain: [bool; 3], woken: [usize; 3]) -> Vec<usize> {
        let order = Rc::new(RefCell::new(Vec::new()));
        let (mut senders, mut tasks) = (Vec::new(), Vec::new());
        for (no, in_chain) in in_chain.into_iter().enumerate() {
            let (sender, receiver) = oneshot::channel::<()>();
            senders.push(Some(sender));
            let order = order.clone();
            tasks.push(spawn_local(async move {
                let _chain = in_chain.then(begin_chain);
                receiver.await.unwrap();
                order.borrow_mut().push(no);
            }));
        }
        yield_once().await;
        for no in woken {
            senders[no].take().unwrap().send(()).unwrap();
        }
        for task in tasks {
            task.await;
        }
        order.take()
    }

    #[test]
    fn the_oldest_chain_is_resumed_first() {
        let order = on_one_thread(|| order_of([true; 3], [2, 0, 1]));
        assert_eq!(order, [0, 1, 2]);
        let order = on_one_thread(|| order_of([false, true, false], [2, 0, 1]));
        assert_eq!(order, [1, 2, 0], "the others became ready later");
        let order = on_one_thread(|| order_of([false; 3], [2, 0, 1]));
        assert_eq!(order, [2, 0, 1]);
    }

    #[test]
    fn a_chain_that_lets_others_go_first_is_not_before_them() {
        let order = on_one_thread(|| async {
            let order = Rc::new(RefCell::new(Vec::new()));
            let task = |name: &'static str, in_chain: bool| {
                let order = order.clone();
                spawn_local(async move {
                    let _chain = in_chain.then(begin_chain);
                    for _ in 0..3 {
                        order.borrow_mut().push(name);
                        yield_once().await;
                    }
                })
            };
            let tasks = [task("chain", true), task("other", false)];
            for task in tasks {
                task.await;
            }
            order.take()
        });
        assert_eq!(order, ["chain", "other"].repeat(3));
    }

    #[test]
    fn operations_count_from_when_a_task_was_resumed() {
        let counted = on_one_thread(|| async {
            let count = || operations_since_resumed().unwrap();
            let first = [count(), count()];
            yield_once().await;
            (first, count())
        });
        assert_eq!(counted, ([1, 2], 1));
        assert_eq!(operations_since_resumed(), None);
    }

    #[test]
    fn whether_others_are_ready_is_known() {
        let ready = on_one_thread(|| async {
            let alone = others_are_ready();
            let other = spawn_local(async {});
            let before = others_are_ready();
            other.await;
            [alone, before, others_are_ready()]
        });
        assert_eq!(ready, [Some(false), Some(true), Some(false)]);
        assert_eq!(others_are_ready(), None);
    }

    #[test]
    fn a_chain_ends_with_its_operation() {
        let ages = on_one_thread(|| async {
            let age = || {
                let age = |local: &Local| local.tasks.borrow()[local.running.get().unwrap()].age;
                with_current(age).unwrap().is_some()
            };
            let outer = begin_chain();
            let inner = begin_chain();
            drop(inner);
            let within = age();
            drop(outer);
            [within, age()]
        });
        assert_eq!(ages, [true, false]);
        drop(begin_chain());
    }
}
