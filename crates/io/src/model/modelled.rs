//! Devices whose bytes come from another device and whose completions come when a model says so.
//!
//! 1. A request arrives. It is mapped to the array's addresses and handed to the model, and started on the device
//!    below.
//! 2. When the model's time has come *and* the device below is done, the request completes. In virtual time the clock
//!    stands still until the device below is done, so the latter never counts.
//! 3. The model says when to come back; the timeline sees to it.
//!
//! In real time a completion is late by what a thread needs to wake up, so whoever waits for it comes late with its
//! next request. An arrival is therefore dated back by how [late](super::lateness) its thread was, or, of a thread that
//! waited for nothing yet, by the lateness of the last completions: rates are the model's, as long as the machine keeps
//! up.
//!
//! Invariants:
//! - a request completes once both its model and its device are done, and is in `requests` until then;
//! - nothing completes under the lock: completions run foreign code.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use slab::Slab;

use super::placement::Placement;
use super::{Array, Command, Completed, ModelSpec, Nanos, lateness};
use crate::timeline::Timeline;
use crate::{Backend, Buffer, Completion, Device, Medium, Method, Operation, Request, Result, Ticket};

/// No event.
const NEVER: Nanos = Nanos::MAX;

/// An emulated array of disks or SSDs on a timeline. Files placed on it share its members, as the files of a folder
/// share a disk.
///
/// See [`Timeline::array`].
#[derive(Debug, Clone)]
pub struct ModelledArray {
    core: Arc<Core>,
}

impl ModelledArray {
    pub(crate) fn new(timeline: &Timeline, spec: &ModelSpec, seed: u64) -> ModelledArray {
        let is_real = !timeline.is_virtual();
        let mut array = Array::new(spec, seed);
        array.take_late_ones(is_real);
        let core = Arc::new(Core {
            state: Mutex::new(State {
                array,
                requests: Slab::new(),
                generation: 0,
                placement: Placement::new(spec.segment_bytes().saturating_mul(u64::from(spec.members()))),
                scheduled: NEVER,
                lag: 0,
                is_real,
                completed: Vec::new(),
            }),
            next_event: AtomicU64::new(NEVER),
            timeline: timeline.clone(),
            spec: spec.clone(),
        });
        timeline.register(&core);
        ModelledArray { core }
    }

    /// What it emulates.
    pub fn spec(&self) -> &ModelSpec {
        &self.core.spec
    }

    /// `device` behind this array: its bytes, the array's times. It lies behind what was placed before, at the
    /// beginning of a stripe row; a path that has been placed already keeps its place. What is written beyond the
    /// device's present end gets further room as needed.
    ///
    /// # Errors
    /// If the device cannot tell its size.
    pub fn place(&self, device: Device) -> Result<Device> {
        self.place_with(device, None)
    }

    /// The same, beginning at `address` of the array.
    ///
    /// # Errors
    /// As [`place`](Self::place).
    pub fn place_at(&self, device: Device, address: u64) -> Result<Device> {
        self.place_with(device, Some(address))
    }

    fn place_with(&self, device: Device, address: Option<u64>) -> Result<Device> {
        let len = device.size_bytes()?;
        let mut state = self.core.state.lock();
        let file = state.placement.place(device.path(), len, address);
        let extent = state.placement.extent();
        state.array.set_extent(extent);
        drop(state);
        Ok(Device::from_backend(Modelled { inner: Arc::new(device), core: self.core.clone(), file }))
    }

    /// Addresses taken by the files placed so far.
    pub fn extent_bytes(&self) -> u64 {
        self.core.state.lock().placement.extent()
    }

    /// Requests under way.
    pub fn in_flight(&self) -> usize {
        self.core.state.lock().requests.len()
    }
}

/// A request that the model, the device below or both still work on.
struct Pending {
    generation: u32,
    completion: Option<Completion>,
    /// Runs of addresses that the model has not completed; 0 when its time has come.
    parts: usize,
    /// When the model was done with it, by what is known so far.
    due: Nanos,
    /// What the device below said.
    outcome: Option<(io::Result<usize>, Option<Buffer>)>,
    below: Option<Ticket>,
}

struct State {
    array: Array,
    requests: Slab<Pending>,
    generation: u32,
    placement: Placement,
    /// When the real-time timer is to come; `NEVER` if it need not.
    scheduled: Nanos,
    lag: Nanos,
    is_real: bool,
    completed: Vec<Completed>,
}

/// A request that is over, to be completed when no lock is held.
pub(crate) struct Finished {
    completion: Completion,
    result: io::Result<usize>,
    buffer: Option<Buffer>,
    /// When the model was done with it.
    due: Nanos,
    /// In real time it matters how late that is heard of.
    is_real: bool,
}

impl Finished {
    pub(crate) fn complete(self) {
        let due = self.is_real.then_some(self.due);
        lateness::completing(due, || self.completion.complete(self.result, self.buffer));
    }
}

/// What all devices of an array share.
pub(crate) struct Core {
    state: Mutex<State>,
    /// As the model says; `NEVER` if nothing is under way.
    next_event: AtomicU64,
    timeline: Timeline,
    spec: ModelSpec,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("spec", &self.spec.to_string()).finish_non_exhaustive()
    }
}

impl State {
    /// Brings the model to `now`; what is over now goes to `finished`.
    fn advance(&mut self, now: Nanos, finished: &mut Vec<Finished>) -> usize {
        let mut completed = std::mem::take(&mut self.completed);
        self.array.advance(now, &mut completed);
        let count = completed.len();
        let mut late = 0;
        for (key, at) in completed.drain(..) {
            late += now.saturating_sub(at).min(lateness::MOST);
            let key = key as usize;
            self.requests[key].parts -= 1;
            self.requests[key].due = at;
            finished.extend(self.finish(key));
        }
        if count > 0 {
            self.lag = late / count as u64;
        }
        self.completed = completed;
        count
    }

    /// Takes the request out if both sides are done with it.
    fn finish(&mut self, key: usize) -> Option<Finished> {
        let request = &mut self.requests[key];
        if request.parts > 0 || request.outcome.is_none() {
            return None;
        }
        let Pending { completion, outcome, due, .. } = self.requests.remove(key);
        let (result, buffer) = outcome?;
        Some(Finished { completion: completion?, result, buffer, due, is_real: self.is_real })
    }
}

impl Core {
    /// When to come back.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        Some(self.next_event.load(Ordering::SeqCst)).filter(|at| *at != NEVER)
    }

    fn note_next_event(&self, state: &mut State) -> Nanos {
        let next = state.array.next_event().unwrap_or(NEVER);
        self.next_event.store(next, Ordering::SeqCst);
        next
    }

    /// Works off everything until `now`.
    pub(crate) fn run(&self, now: Nanos, finished: &mut Vec<Finished>) {
        let mut state = self.state.lock();
        state.advance(now, finished);
        self.note_next_event(&mut state);
    }

    /// The real-time timer, set for `at`, rings at `now`: works off everything; when it is to ring again.
    pub(crate) fn ring(&self, at: Nanos, now: Nanos, finished: &mut Vec<Finished>) -> Option<Nanos> {
        let mut state = self.state.lock();
        if state.scheduled != at {
            return None;
        }
        state.advance(now, finished);
        state.scheduled = self.note_next_event(&mut state);
        Some(state.scheduled).filter(|at| *at != NEVER)
    }

    /// Hands a request of `file` to the model; its key and generation.
    fn arrive(
        self: &Arc<Core>,
        file: usize,
        request: &Request,
        completion: Completion,
        finished: &mut Vec<Finished>,
    ) -> (usize, u32) {
        let now = self.timeline.now();
        let mut state = self.state.lock();
        let arrival = match state.is_real {
            true => now - lateness::arrives(now).unwrap_or(state.lag).min(now),
            false => now,
        };
        state.advance(arrival, finished);
        state.generation = state.generation.wrapping_add(1);
        let generation = state.generation;
        let pending = Pending {
            generation,
            completion: Some(completion),
            parts: 0,
            due: now,
            outcome: None,
            below: None,
        };
        let key = state.requests.insert(pending);
        let parts = state.hand_over(file, key, request, arrival);
        state.requests[key].parts = parts;
        // What is already over, its arrival having been dated back, is so now.
        state.advance(now, finished);
        self.plan_ring(state);
        (key, generation)
    }

    fn plan_ring(self: &Arc<Core>, mut state: MutexGuard<'_, State>) {
        let next = self.note_next_event(&mut state);
        if next < state.scheduled && !self.timeline.is_virtual() {
            state.scheduled = next;
            drop(state);
            self.timeline.schedule(next, self);
        }
    }

    /// The device below is done.
    fn below_done(&self, key: usize, result: io::Result<usize>, buffer: Option<Buffer>) {
        let mut state = self.state.lock();
        state.requests[key].outcome = Some((result, buffer));
        let finished = state.finish(key);
        drop(state);
        if let Some(finished) = finished {
            finished.complete();
        }
        self.timeline.below_done();
    }
}

impl State {
    /// The number of commands that the request became.
    fn hand_over(&mut self, file: usize, key: usize, request: &Request, now: Nanos) -> usize {
        let id = key as u64;
        let operation = request.operation;
        if operation == Operation::Sync {
            self.array.arrive(now, Command { id, operation, offset: 0, len: 0 });
            return 1;
        }
        let extent = self.placement.extent();
        let mut parts = 0;
        for (offset, len) in self.placement.map(file, request.offset, request.len) {
            self.array.arrive(now, Command { id, operation, offset, len });
            parts += 1;
        }
        if self.placement.extent() != extent {
            self.array.set_extent(self.placement.extent());
        }
        parts
    }
}

/// The backend of a device on an array.
struct Modelled {
    inner: Arc<Device>,
    core: Arc<Core>,
    file: usize,
}

impl fmt::Debug for Modelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Modelled").field("inner", &self.inner).field("core", &self.core).finish()
    }
}

impl Backend for Modelled {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes().map_err(io::Error::other)
    }

    fn method(&self) -> Method {
        self.inner.method()
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }

    fn medium(&self) -> Medium {
        let extent_bytes = self.core.state.lock().placement.extent();
        Medium::Model { spec: self.core.spec.clone(), extent_bytes }
    }

    fn start(&self, request: Request, completion: Completion) -> Ticket {
        let mut finished = Vec::new();
        self.core.timeline.below_begins();
        let (key, generation) = self.core.arrive(self.file, &request, completion, &mut finished);
        finished.into_iter().for_each(Finished::complete);
        let core = self.core.clone();
        let below = Completion::below_model(move |result, buffer| core.below_done(key, result, buffer));
        let ticket = self.inner.start(request, below);
        let mut state = self.core.state.lock();
        if let Some(pending) = state.requests.get_mut(key)
            && pending.generation == generation
        {
            pending.below = Some(ticket);
        }
        Ticket { place: u64::from(generation), no: key as u64 }
    }

    fn cancel(&self, ticket: Ticket) {
        let state = self.core.state.lock();
        let pending = state.requests.get(ticket.no as usize);
        let below = pending
            .filter(|pending| u64::from(pending.generation) == ticket.place && pending.outcome.is_none())
            .and_then(|pending| pending.below);
        drop(state);
        // The model goes on with it: a disk cannot be told to forget a command.
        if let Some(below) = below {
            self.inner.cancel(below);
        }
    }

    fn degrade(&self, error: &io::Error) -> bool {
        self.inner.degrade(error)
    }
}
