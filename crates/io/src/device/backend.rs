//! What stands behind a [`Device`](super::Device): something that starts requests and completes them later.
//!
//! The kernel's files are one [`Backend`]; models of slower devices and simulated disks are others, under the same API.
//!
//! 1. A device's future makes a [`Request`] and a [`Completion`] and calls [`Backend::start`].
//! 2. The backend keeps both as long as it works on them; the request owns its buffer.
//! 3. It calls [`Completion::complete`], from any thread, with the result and the buffer. The waiting task is woken.
//!
//! If the future is dropped before that, the completion is *abandoned* and [`Backend::cancel`] is called; the backend still owns
//! request and buffer and lets go of them when it can.
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
use crate::Buffer;

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

    /// Starts `request`; it may transfer fewer bytes than asked for. Never blocks on the device.
    fn start(&self, request: Request, completion: Completion) -> Ticket;

    /// Nobody waits for this request any more. It may have completed, or go on.
    fn cancel(&self, ticket: Ticket) {
        let _ = ticket;
    }

    /// Called with the error of a failed request: changes to another way of doing I/O if that may help, and says whether to try again.
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
}

#[derive(Debug, Default)]
struct State {
    waker: Option<Waker>,
    outcome: Option<Outcome>,
    abandoned: bool,
}

/// The backend's end of a request in flight.
#[derive(Debug)]
pub struct Completion {
    /// `None` once completed.
    state: Option<Arc<Mutex<State>>>,
}

impl Completion {
    /// Hands over bytes transferred (or the error) and the request's buffer, and wakes who waits.
    pub fn complete(mut self, result: io::Result<usize>, buffer: Option<Buffer>) {
        self.finish(Outcome { result, buffer });
    }

    /// Whether nobody waits any more.
    pub fn is_abandoned(&self) -> bool {
        self.state.as_ref().is_none_or(|state| state.lock().abandoned)
    }

    fn finish(&mut self, outcome: Outcome) {
        let Some(state) = self.state.take() else { return };
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
        self.finish(Outcome { result: Err(io::Error::from_raw_os_error(libc::ECANCELED)), buffer: None });
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
            let ticket = self.backend.start(request, Completion { state: Some(state.clone()) });
            self.started = Some((state, ticket));
        }
        let (state, _) = self.started.as_ref().expect("polled after it was ready");
        let mut state = state.lock();
        if let Some(outcome) = state.outcome.take() {
            drop(state);
            self.started = None;
            return Poll::Ready(outcome);
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
