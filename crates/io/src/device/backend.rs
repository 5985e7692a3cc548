//! What stands behind a [`Device`](super::Device): something that starts requests and completes them later.
//!
//! The kernel's files are one [`Backend`]; models of slower devices and simulated disks are others, under the same API.
//!
//! 1. A device's future makes a [`Request`] and a [`Completion`] and calls [`Backend::start`].
//! 2. The backend keeps both as long as it works on them; the request owns its buffer.
//! 3. It calls [`Completion::complete`], from any thread, with the result and the buffer. The waiting task is woken.
//!
//! If the future is dropped before that, the completion is *abandoned* and [`Backend::cancel`] is called; the backend
//! still owns request and buffer and lets go of them when it can.
//!
//! A layer between (a volume, a model) takes the completion of the layer above into a callback of its own
//! ([`Completion::from_fn`]) and starts the request on the device below ([`Device::start`](super::Device::start)).
//!
//! Invariant: a completion is completed once, by value; one that is dropped instead completes with `ECANCELED`.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use super::Method;
use crate::model::lateness;
use crate::{Buffer, Medium, timeline};

/// What a request wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Fill the buffer from the device.
    Read,
    /// Write the buffer to the device.
    Write,
    /// Make completed writes durable.
    Sync,
    /// Free blocks.
    Punch,
}

/// One I/O, with the buffer it owns.
#[derive(Debug)]
pub struct Request {
    /// What to do.
    pub operation: Operation,
    /// Where on the device.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// The buffer of a read or a write.
    pub buffer: Option<Buffer>,
    /// The first byte of the buffer that takes part; `len` bytes from here do.
    pub from: usize,
}

/// Names a started request, for [`Backend::cancel`]; backends choose the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticket {
    /// Where it was started.
    pub place: u64,
    /// Which one it is there.
    pub no: u64,
}

/// Something that does I/O.
pub trait Backend: Send + Sync + fmt::Debug + 'static {
    /// What error messages call it.
    fn path(&self) -> &Path;

    /// Size in bytes now.
    ///
    /// # Errors
    /// If it cannot be told.
    fn size_bytes(&self) -> io::Result<u64>;

    /// How the I/O is done.
    fn method(&self) -> Method;

    /// Offsets and lengths of reads and writes must be multiples of this many bytes.
    fn alignment(&self) -> usize;

    /// Whether blocks are allocated for any of `len` bytes at `offset`, which read as zeros otherwise; `None` if that
    /// cannot be told.
    fn has_data(&self, offset: u64, len: u64) -> Option<bool> {
        let _ = (offset, len);
        None
    }

    /// What it lies on, or most of it.
    fn medium(&self) -> Medium {
        Medium::Unknown
    }

    /// Starts `request`; it may transfer fewer bytes than asked for. Never blocks on the device.
    fn start(&self, request: Request, completion: Completion) -> Ticket;

    /// Nobody waits for this request any more. It may have completed, or go on.
    fn cancel(&self, ticket: Ticket) {
        let _ = ticket;
    }

    /// What `len` bytes at `offset` read as is damaged, as whoever reads them can tell: if they lie elsewhere too, they
    /// are read from there from now on.
    fn distrust(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// Called with the error of a failed request: changes to another way of doing I/O if that may help, and says
    /// whether to try again.
    fn degrade(&self, error: &io::Error) -> bool {
        let _ = error;
        false
    }
}

/// How a request ended.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) result: io::Result<usize>,
    pub(super) buffer: Option<Buffer>,
    /// When it was over by a model in real time.
    due: Option<u64>,
}

impl Outcome {
    fn new(result: io::Result<usize>, buffer: Option<Buffer>) -> Outcome {
        Outcome { result, buffer, due: lateness::due() }
    }

    /// The calling thread goes on with it.
    fn taken(self) -> Outcome {
        lateness::taken(self.due, timeline::real_now);
        self
    }
}

#[derive(Debug, Default)]
struct State {
    waker: Option<Waker>,
    outcome: Option<Outcome>,
    abandoned: bool,
}

type Callback = Box<dyn FnOnce(io::Result<usize>, Option<Buffer>) + Send>;

/// Who is told.
enum Receiver {
    Waiting(Arc<Mutex<State>>),
    Callback(Callback),
}

/// The backend's end of a request in flight.
pub struct Completion {
    /// `None` once completed.
    receiver: Option<Receiver>,
    /// A model takes care of the time.
    is_timed: bool,
    /// Let go of after the receiver was told.
    _held: Option<Box<timeline::Held>>,
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let receiver = match &self.receiver {
            None => "completed",
            Some(Receiver::Waiting(_)) => "waiting",
            Some(Receiver::Callback(_)) => "callback",
        };
        f.debug_tuple("Completion").field(&receiver).finish()
    }
}

impl Completion {
    /// A completion that calls `callback` with the result and the buffer, on the thread that completes it. The callback
    /// must not block; it may start other requests. It runs in any case: if the backend drops the completion, with
    /// `ECANCELED` and no buffer.
    pub fn from_fn(callback: impl FnOnce(io::Result<usize>, Option<Buffer>) + Send + 'static) -> Completion {
        Completion::of(Receiver::Callback(Box::new(callback)))
    }

    /// As [`from_fn`](Self::from_fn), for the device below a model, which says itself when virtual time may jump.
    pub(crate) fn below_model(
        callback: impl FnOnce(io::Result<usize>, Option<Buffer>) + Send + 'static,
    ) -> Completion {
        let mut completion = Completion::from_fn(callback);
        completion.is_timed = true;
        completion
    }

    fn of(receiver: Receiver) -> Completion {
        Completion { receiver: Some(receiver), is_timed: false, _held: None }
    }

    /// Virtual time does not jump before it was completed and who waits is awake, unless a model sees to that.
    pub(super) fn holding_time(mut self) -> Completion {
        if !self.is_timed && timeline::is_any_virtual() {
            self._held = Some(Box::new(timeline::Held::all()));
        }
        self
    }

    /// A completion and the future of its outcome. Dropping the future abandons the completion.
    pub fn awaited() -> (Completion, Awaited) {
        let state = Arc::new(Mutex::new(State::default()));
        (Completion::of(Receiver::Waiting(state.clone())), Awaited { state: Some(state) })
    }

    /// Hands over bytes transferred (or the error) and the request's buffer, and wakes who waits.
    pub fn complete(mut self, result: io::Result<usize>, buffer: Option<Buffer>) {
        self.finish(Outcome::new(result, buffer));
    }

    /// Whether nobody waits any more.
    pub fn is_abandoned(&self) -> bool {
        match &self.receiver {
            None => true,
            Some(Receiver::Waiting(state)) => state.lock().abandoned,
            Some(Receiver::Callback(_)) => false,
        }
    }

    fn finish(&mut self, outcome: Outcome) {
        let state = match self.receiver.take() {
            None => return,
            Some(Receiver::Callback(callback)) => return callback(outcome.result, outcome.buffer),
            Some(Receiver::Waiting(state)) => state,
        };
        let mut state = state.lock();
        if state.abandoned {
            return;
        }
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.finish(Outcome::new(Err(io::Error::from_raw_os_error(libc::ECANCELED)), None));
    }
}

/// The future of a completion's outcome: bytes transferred or the error, and the request's buffer.
#[derive(Debug)]
pub struct Awaited {
    /// `None` once it was ready.
    state: Option<Arc<Mutex<State>>>,
}

impl Future for Awaited {
    type Output = (io::Result<usize>, Option<Buffer>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(shared) = self.state.take() else {
            return Poll::Ready((Err(io::Error::from_raw_os_error(libc::ECANCELED)), None));
        };
        let mut state = shared.lock();
        if let Some(outcome) = state.outcome.take() {
            let outcome = outcome.taken();
            return Poll::Ready((outcome.result, outcome.buffer));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        drop(state);
        self.state = Some(shared);
        Poll::Pending
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if let Some(state) = self.state.take() {
            let leftovers = {
                let mut state = state.lock();
                state.abandoned = true;
                (state.outcome.take(), state.waker.take())
            };
            drop(leftovers);
        }
    }
}

/// The caller's end: a future of the outcome. Starts the request when first polled.
#[derive(Debug)]
pub(super) struct InFlight<'a> {
    backend: &'a dyn Backend,
    request: Option<Request>,
    started: Option<(Arc<Mutex<State>>, Ticket)>,
}

impl<'a> InFlight<'a> {
    pub(super) fn new(backend: &'a dyn Backend, request: Request) -> InFlight<'a> {
        InFlight { backend, request: Some(request), started: None }
    }
}

impl Future for InFlight<'_> {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        if let Some(request) = self.request.take() {
            let state = State { waker: Some(context.waker().clone()), ..State::default() };
            let state = Arc::new(Mutex::new(state));
            let ticket = self.backend.start(request, Completion::of(Receiver::Waiting(state.clone())));
            self.started = Some((state, ticket));
        }
        let (state, _) = self.started.as_ref().expect("polled after it was ready");
        let mut state = state.lock();
        if let Some(outcome) = state.outcome.take() {
            drop(state);
            self.started = None;
            return Poll::Ready(outcome.taken());
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let Some((state, ticket)) = self.started.take() else { return };
        let leftovers = {
            let mut state = state.lock();
            state.abandoned = true;
            (state.outcome.take(), state.waker.take())
        };
        if leftovers.0.is_none() {
            self.backend.cancel(ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::BufferPool;

    #[test]
    fn a_callback_is_called_once_and_also_when_the_completion_is_dropped() {
        let called = Arc::new(Mutex::new(Vec::new()));
        let note = || {
            let called = called.clone();
            Completion::from_fn(move |result, buffer| called.lock().push((result.ok(), buffer.is_some())))
        };
        let completion = note();
        assert!(!completion.is_abandoned());
        completion.complete(Ok(7), Some(BufferPool::new(0).allocate(1)));
        drop(note());
        assert_eq!(*called.lock(), [(Some(7), true), (None, false)]);
    }

    #[test]
    fn an_outcome_can_be_awaited_or_abandoned() {
        let (completion, mut awaited) = Completion::awaited();
        assert!((&mut awaited).now_or_never().is_none());
        completion.complete(Ok(3), None);
        assert_eq!(awaited.now_or_never().map(|(result, _)| result.ok()), Some(Some(3)));
        let (completion, awaited) = Completion::awaited();
        drop(awaited);
        assert!(completion.is_abandoned());
        let (completion, awaited) = Completion::awaited();
        drop(completion);
        let (result, _) = awaited.now_or_never().expect("it was dropped");
        assert_eq!(result.map_err(|error| error.raw_os_error()), Err(Some(libc::ECANCELED)));
    }
}
