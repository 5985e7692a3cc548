//! One io_uring, owned by one executor's thread.
//!
//! 1. [`Ring::start`] puts a request and its buffer into `flights` and its entry into the submission queue; no system
//!    call yet.
//! 2. [`Ring::enter`] submits all entries in one call and, if told to, waits for a completion or a wake-up from another
//!    thread (a poll on an eventfd that is always armed).
//! 3. [`Ring::reap`] takes all completions out of the completion queue; the executor completes them when the ring is no
//!    longer borrowed.
//!
//! Buffers in the arena that the kernel has registered use the `_FIXED` operations, files go through the ring's file
//! table.
//!
//! Invariants:
//! - what the kernel may still read or write is owned by `flights` (file and buffer), whatever becomes of the future
//!   that waits;
//! - `user_data` is the flight's place and generation, so a late cancellation never meets the next flight in the same
//!   place;
//! - a ring is torn down only when `flights` is empty; if the kernel does not give them back, they are leaked, never
//!   freed.

pub(crate) mod batch;
mod files;
mod setup;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use io_uring::{IoUring, opcode, squeue, types};
use slab::Slab;

use crate::buffer::REGION_BYTES;
use crate::device::{Completion, OpenFile, Operation, Request};
use crate::executor::RemoteHandle;
use crate::{Buffer, BufferPool};
use files::FileTable;
pub(crate) use setup::{Sibling, is_available};

/// Submission queue entries: more than this many I/Os a batch cost one more system call.
const ENTRIES: u32 = 512;
/// Completions that fit without the kernel's overflow list.
const COMPLETIONS: u32 = 4096;

const WAKE: u64 = u64::MAX;
const CANCEL: u64 = u64::MAX - 1;

/// The kernel transfers at most 2 GiB less a page at once; the device asks for the rest.
const MOST_BYTES: u64 = 1 << 30;

/// A request that the kernel works on.
#[derive(Debug)]
struct Flight {
    generation: u32,
    /// Keeps the file open.
    _file: Arc<OpenFile>,
    /// Keeps the bytes allocated.
    buffer: Option<Buffer>,
    completion: Completion,
}

/// A flight that has ended; to be completed when the ring is no longer borrowed.
#[derive(Debug)]
pub(crate) struct Landed {
    result: i32,
    buffer: Option<Buffer>,
    completion: Completion,
}

impl Landed {
    pub(crate) fn complete(self) {
        let result = match usize::try_from(self.result) {
            Ok(bytes) => Ok(bytes),
            Err(_) => Err(io::Error::from_raw_os_error(self.result.wrapping_neg())),
        };
        self.completion.complete(result, self.buffer);
    }
}

/// A ring; see the module's head.
pub(crate) struct Ring {
    uring: IoUring,
    flights: Slab<Flight>,
    generation: u32,
    landed: Vec<Landed>,
    files: FileTable,
    pool: Arc<BufferPool>,
    /// This much of the pool's arena, from its start, is registered.
    registered_bytes: usize,
    wake: Arc<OwnedFd>,
    wake_is_armed: bool,
}

impl Ring {
    /// A ring for the calling thread, and only for it. `wake` is an eventfd that ends waiting; `sibling` is another
    /// ring that registered the same pool.
    pub(crate) fn new(
        wake: Arc<OwnedFd>,
        pool: Arc<BufferPool>,
        sibling: Option<Sibling>,
    ) -> io::Result<Ring> {
        let uring = setup::build(ENTRIES, COMPLETIONS)?;
        let registered_bytes = setup::register_arena(&uring, &pool, sibling);
        let files = FileTable::new(&uring);
        Ok(Ring {
            uring,
            flights: Slab::with_capacity(256),
            generation: 0,
            landed: Vec::with_capacity(256),
            files,
            pool,
            registered_bytes,
            wake,
            wake_is_armed: false,
        })
    }

    /// What another ring needs to register the same buffers.
    pub(crate) fn as_sibling(&self) -> Sibling {
        (self.uring.as_raw_fd(), self.registered_bytes)
    }

    /// Whether entries wait to be submitted or the kernel has completions it has not shown yet.
    pub(crate) fn wants_enter(&mut self) -> bool {
        let submission = self.uring.submission();
        !submission.is_empty() || submission.taskrun() || submission.cq_overflow()
    }

    /// Entries that wait to be submitted.
    pub(crate) fn unsubmitted(&mut self) -> usize {
        self.uring.submission().len()
    }

    /// Requests that have not been reaped, submitted or not.
    pub(crate) fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Queues `request`; its ticket number. `executor` is who owns this ring.
    pub(crate) fn start(
        &mut self,
        file: &Arc<OpenFile>,
        mut request: Request,
        completion: Completion,
        executor: &RemoteHandle,
    ) -> u64 {
        let entry = self.entry(file, &mut request, executor);
        self.generation = self.generation.wrapping_add(1) & (u32::MAX >> 1);
        let flight =
            Flight { generation: self.generation, _file: file.clone(), buffer: request.buffer, completion };
        let key = self.flights.insert(flight);
        let ticket = u64::from(self.generation) << 32 | key as u64;
        self.push(&entry.user_data(ticket));
        ticket
    }

    /// Asks the kernel to give up the request with this ticket, if it is still in flight.
    pub(crate) fn cancel(&mut self, ticket: u64) {
        let is_in_flight = |flight: &Flight| u64::from(flight.generation) == ticket >> 32;
        if self.flights.get(ticket as u32 as usize).is_some_and(is_in_flight) {
            self.push(&opcode::AsyncCancel::new(ticket).build().user_data(CANCEL));
        }
    }

    /// Takes a file that is being closed out of the table.
    pub(crate) fn forget_file(&mut self, id: u64) {
        self.files.remove(&self.uring, id);
    }

    /// Submits what is queued; waits for an event if `wait`. Interruption is no error.
    pub(crate) fn enter(&mut self, wait: bool) -> io::Result<()> {
        if !self.wake_is_armed {
            let fd = types::Fd(self.wake.as_raw_fd());
            let poll = opcode::PollAdd::new(fd, libc::POLLIN as u32).build().user_data(WAKE);
            self.wake_is_armed = true;
            self.push(&poll);
        }
        let wait = wait && self.landed.is_empty();
        let result = self.uring.submit_and_wait(usize::from(wait));
        // The kernel wakes the thread for the first completion and keeps those that came with it to itself; without
        // this call one task would run, and its I/O would be submitted alone.
        if wait && self.uring.submission().taskrun() {
            let _ = self.uring.submit();
        }
        match result {
            Ok(_) => Ok(()),
            // EAGAIN and EBUSY: the kernel wants completions reaped first.
            Err(error) if batch::is_passing(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Moves all completions that are there to the end of `landed`; whether a wake-up from another thread was among
    /// them.
    pub(crate) fn reap(&mut self, landed: &mut Vec<Landed>) -> bool {
        let woken = self.collect();
        landed.append(&mut self.landed);
        woken
    }

    fn collect(&mut self) -> bool {
        let mut woken = false;
        for completion in self.uring.completion() {
            match completion.user_data() {
                WAKE => {
                    woken = true;
                    self.wake_is_armed = false;
                }
                CANCEL => {}
                ticket => {
                    if let Some(flight) = self.flights.try_remove(ticket as u32 as usize) {
                        debug_assert_eq!(u64::from(flight.generation), ticket >> 32);
                        let Flight { buffer, completion: waiting, .. } = flight;
                        self.landed.push(Landed { result: completion.result(), buffer, completion: waiting });
                    }
                }
            }
        }
        woken
    }

    fn push(&mut self, entry: &squeue::Entry) {
        loop {
            // SAFETY: what the entry points to is owned by `flights` until its completion is reaped (or by the ring
            // itself: the eventfd).
            if unsafe { self.uring.submission().push(entry) }.is_ok() {
                return;
            }
            // Full: make room. If the kernel takes none because its completion queue is full, empty that.
            let _ = self.uring.submit();
            if self.uring.submission().is_full() {
                self.collect();
            }
        }
    }

    fn entry(
        &mut self,
        file: &Arc<OpenFile>,
        request: &mut Request,
        executor: &RemoteHandle,
    ) -> squeue::Entry {
        match self.files.place_of(&self.uring, file, executor) {
            Some(place) => self.entry_on(Target::Fixed(types::Fixed(place)), request),
            None => self.entry_on(Target::Fd(types::Fd(file.raw_fd())), request),
        }
    }

    fn entry_on(&self, fd: Target, request: &mut Request) -> squeue::Entry {
        let fixed = request.buffer.as_ref().and_then(|buffer| self.fixed_index(buffer));
        entry(fd, request, fixed)
    }

    /// The registered region that holds the whole buffer.
    fn fixed_index(&self, buffer: &Buffer) -> Option<u16> {
        let offset = buffer.arena_offset(&self.pool)?;
        (offset + buffer.capacity() <= self.registered_bytes).then_some((offset / REGION_BYTES) as u16)
    }

    /// Cancels all that is in flight and waits for the kernel to let go of it.
    fn drain(&mut self) -> io::Result<()> {
        let tickets: Vec<u64> = self
            .flights
            .iter()
            .map(|(key, flight)| u64::from(flight.generation) << 32 | key as u64)
            .collect();
        for ticket in tickets {
            self.cancel(ticket);
        }
        let mut landed = Vec::new();
        while !self.flights.is_empty() {
            self.enter(true)?;
            self.reap(&mut landed);
            landed.drain(..).for_each(Landed::complete);
        }
        self.collect();
        landed.append(&mut self.landed);
        landed.drain(..).for_each(Landed::complete);
        Ok(())
    }

    /// After a failure of the ring itself: all in flight fail with `error`. Their buffers stay the kernel's for good.
    pub(crate) fn abandon(&mut self, error: &io::Error, landed: &mut Vec<Landed>) {
        landed.append(&mut self.landed);
        let result = -error.raw_os_error().unwrap_or(libc::EIO);
        for flight in self.flights.drain() {
            let Flight { _file, buffer, completion, .. } = flight;
            std::mem::forget((_file, buffer));
            landed.push(Landed { result, buffer: None, completion });
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if let Err(error) = self.drain() {
            let mut landed = Vec::new();
            self.abandon(&error, &mut landed);
            landed.drain(..).for_each(Landed::complete);
        }
    }
}

/// Of a request for a file that no table has, and a buffer that is not registered.
fn plain_entry(fd: types::Fd, request: &mut Request) -> squeue::Entry {
    entry(Target::Fd(fd), request, None)
}

/// Of a request whose buffer lies in the registered region `fixed`, if it is.
fn entry(fd: Target, request: &mut Request, fixed: Option<u16>) -> squeue::Entry {
    let len = request.len.min(MOST_BYTES) as u32;
    let (offset, from) = (request.offset, request.from);
    let bytes = request.buffer.as_mut().map_or(std::ptr::null_mut(), |buffer| {
        assert!(len as usize <= buffer.len() - from, "an I/O stays within its buffer");
        buffer.pointer_at(from)
    });
    macro_rules! on {
        ($fd:ident => $entry:expr) => {
            match fd {
                Target::Fixed($fd) => $entry,
                Target::Fd($fd) => $entry,
            }
        };
    }
    match (request.operation, fixed) {
        (Operation::Read, Some(index)) => {
            on!(fd => opcode::ReadFixed::new(fd, bytes, len, index).offset(offset).build())
        }
        (Operation::Read, None) => on!(fd => opcode::Read::new(fd, bytes, len).offset(offset).build()),
        (Operation::Write, Some(index)) => {
            on!(fd => opcode::WriteFixed::new(fd, bytes, len, index).offset(offset).build())
        }
        (Operation::Write, None) => on!(fd => opcode::Write::new(fd, bytes, len).offset(offset).build()),
        (Operation::Sync, _) => {
            on!(fd => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build())
        }
        (Operation::Punch, _) => {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            on!(fd => opcode::Fallocate::new(fd, request.len).offset(offset).mode(mode).build())
        }
    }
}

/// A file as an entry names it.
enum Target {
    Fixed(types::Fixed),
    Fd(types::Fd),
}
