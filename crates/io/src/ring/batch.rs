//! A small io_uring of a thread that waits for what it starts.
//!
//! 1. [`start`] takes jobs; no system call yet.
//! 2. [`land`] submits them in one call and waits for one of them at least. Whoever calls it completes what has landed.
//!
//! Invariants: as those of a [`Ring`](super::Ring); and between two waits of its thread nothing is in flight.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use io_uring::{IoUring, types};
use slab::Slab;

use super::{Landed, plain_entry, setup};
use crate::Buffer;
use crate::device::{Completion, OpenFile};
use crate::threads::Job;

/// I/Os at once.
const ENTRIES: u32 = 64;

thread_local! {
    /// Made when it is needed first; `None` inside if it could not be made.
    static BATCH: RefCell<Option<Option<Batch>>> = const { RefCell::new(None) };
}

/// Has the thread's ring do something; `None` if it has none.
fn with<T>(act: impl FnOnce(&mut Batch) -> T) -> Option<T> {
    let make = || if setup::is_available() { Batch::new().ok() } else { None };
    let act = |batch: &RefCell<Option<Option<Batch>>>| {
        let mut batch = batch.try_borrow_mut().ok()?;
        let batch = batch.get_or_insert_with(make);
        let done = batch.as_mut().map(act);
        // Its queue may hold entries of what has failed by now: nothing must come to the kernel by it any more.
        if batch.as_ref().is_some_and(|batch| batch.has_failed) {
            *batch = None;
        }
        done
    };
    // A thread that is about to end has none any more.
    BATCH.try_with(act).ok().flatten()
}

/// Takes jobs, as many as there is room for; the others are given back. To be followed by [`land`].
pub(crate) fn start(mut jobs: Vec<Job>) -> Vec<Job> {
    with(|batch| {
        while batch.flights.len() < ENTRIES as usize
            && let Some(job) = jobs.pop()
        {
            batch.start(job);
        }
    });
    jobs
}

/// Waits until something has landed, if anything is in flight.
pub(crate) fn land() -> Vec<Landed> {
    with(Batch::land).unwrap_or_default()
}

/// How many I/Os the thread has in flight.
pub(crate) fn in_flight() -> usize {
    let count = |batch: &RefCell<Option<Option<Batch>>>| {
        let batch = batch.try_borrow().ok()?;
        Some(batch.as_ref()?.as_ref()?.flights.len())
    };
    BATCH.try_with(count).ok().flatten().unwrap_or(0)
}

#[derive(Debug)]
struct Flight {
    /// Keeps the file open, and the bytes allocated.
    kept: (Arc<OpenFile>, Option<Buffer>),
    completion: Completion,
}

/// The ring of a thread.
struct Batch {
    uring: IoUring,
    flights: Slab<Flight>,
    /// The kernel takes nothing by it any more.
    has_failed: bool,
}

impl Batch {
    fn new() -> io::Result<Batch> {
        Ok(Batch { uring: setup::build(ENTRIES, 2 * ENTRIES)?, flights: Slab::new(), has_failed: false })
    }

    /// Only if there is room for one more.
    fn start(&mut self, job: Job) {
        let Job { file, mut request, completion, .. } = job;
        if completion.is_abandoned() {
            return;
        }
        let entry = plain_entry(types::Fd(file.raw_fd()), &mut request);
        let key = self.flights.insert(Flight { kept: (file, request.buffer), completion });
        // SAFETY: the flight owns the file and the buffer that the entry points to, until its completion is reaped.
        let pushed = unsafe { self.uring.submission().push(&entry.user_data(key as u64)) };
        if pushed.is_err() {
            // There are as many entries as flights, so it never comes to that; if it did, the request would be
            // cancelled.
            self.flights.remove(key);
        }
    }

    fn land(&mut self) -> Vec<Landed> {
        let mut landed = Vec::new();
        while landed.is_empty() && !self.flights.is_empty() {
            let entered = self.uring.submit_and_wait(1);
            for completion in self.uring.completion() {
                if let Some(flight) = self.flights.try_remove(completion.user_data() as usize) {
                    let Flight { kept: (_, buffer), completion: waiting } = flight;
                    landed.push(Landed { result: completion.result(), buffer, completion: waiting });
                }
            }
            match entered {
                Ok(_) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => {
                    self.has_failed = true;
                    let result = -error.raw_os_error().unwrap_or(libc::EIO);
                    landed.extend(self.flights.drain().map(|Flight { kept, completion }| {
                        // They stay the kernel's for good.
                        std::mem::forget(kept);
                        Landed { result, buffer: None, completion }
                    }));
                }
            }
        }
        landed
    }
}

/// Interrupted, or completions have to be reaped first.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
}

impl Drop for Batch {
    fn drop(&mut self) {
        while !self.flights.is_empty() {
            self.land().into_iter().for_each(Landed::complete);
        }
    }
}
