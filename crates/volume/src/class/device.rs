//! One device of a class: its I/O, and its syncs, which all that wait for one share.
//!
//! Invariants:
//! - `synced` never exceeds the writes that were complete when the last successful sync began;
//! - after a failed sync nothing is known about what was written since the one before, so the device takes no more
//!   writes.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use tanada_io::{Buffer, Completion, Device, Operation, Request};

use crate::statistics::PunchStatistics;
use crate::waiting::SharedTask;
use crate::{Error, ErrorKind, Result};

/// What must live as long as an I/O runs, even if nobody waits for it any more: the right to use the place.
pub(crate) type Keep = Arc<dyn Any + Send + Sync>;

/// How often an I/O that the kernel put off is started again.
const MOST_RETRIES: u32 = 1000;

type Flight = (u64, Arc<SharedTask<tanada_io::Result<()>>>);

/// A device of a class.
pub(crate) struct ClassDevice {
    /// "class staging, device 0 (path)": what messages call it.
    name: String,
    device: Device,
    completed: AtomicU64,
    synced: AtomicU64,
    failed: AtomicBool,
    flight: Mutex<Option<Flight>>,
    punches: PunchCounters,
}

/// Punches since the opening.
#[derive(Debug, Default)]
struct PunchCounters {
    issued: AtomicU64,
    avoided: AtomicU64,
    in_vain: AtomicU64,
}

impl fmt::Debug for ClassDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassDevice").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ClassDevice {
    pub(crate) fn new(class: &str, index: usize, device: Device) -> Arc<ClassDevice> {
        Arc::new(ClassDevice {
            name: format!("class {class}, device {index} ({})", device.path().display()),
            device,
            completed: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            flight: Mutex::new(None),
            punches: PunchCounters::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Whether a sync failed, so that no write is taken any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Counts a completed write or punch, which the next sync covers. One that failed counts too: part of it may be
    /// there for all that read, and is gone after a stop unless a sync comes before.
    pub(crate) fn wrote(&self) {
        self.completed.fetch_add(1, Ordering::SeqCst);
    }

    /// Makes all writes durable that are complete now.
    pub(crate) async fn sync(self: &Arc<Self>) -> Result<()> {
        let target = self.completed.load(Ordering::SeqCst);
        loop {
            if self.has_failed() {
                return Err(self.failed_before());
            }
            if self.synced.load(Ordering::SeqCst) >= target {
                return Ok(());
            }
            let (covered, task) = {
                let mut flight = self.flight.lock();
                flight
                    .get_or_insert_with(|| {
                        let device = self.device.clone();
                        let covered = self.completed.load(Ordering::SeqCst);
                        (covered, SharedTask::new(async move { device.sync().await }))
                    })
                    .clone()
            };
            let result = task.wait().await;
            let ended = {
                let mut flight = self.flight.lock();
                match &*flight {
                    Some((_, current)) if Arc::ptr_eq(current, &task) => flight.take(),
                    _ => None,
                }
            };
            drop(ended);
            match result {
                Ok(()) => drop(self.synced.fetch_max(covered, Ordering::SeqCst)),
                Err(error) => {
                    self.failed.store(true, Ordering::SeqCst);
                    return Err(Error::io(&self.name, &error));
                }
            }
        }
    }

    pub(crate) fn failed_before(&self) -> Error {
        Error::new(
            ErrorKind::Device,
            format!("{}: a sync failed earlier, so it takes no more writes; open the volume anew", self.name),
        )
    }

    /// Reads `buffer.len()` bytes; an end of the device before that is an error.
    pub(crate) async fn read(self: &Arc<Self>, offset: u64, buffer: Buffer, keep: &Keep) -> Result<Buffer> {
        let len = buffer.len() as u64;
        let (read, buffer) = self.transfer(Operation::Read, offset, len, Some(buffer), keep).await;
        read?;
        buffer.ok_or_else(|| self.lost_buffer())
    }

    /// Writes the whole buffer.
    pub(crate) async fn write(self: &Arc<Self>, offset: u64, buffer: Buffer, keep: &Keep) -> Result<Buffer> {
        let (written, buffer) = self.try_write(offset, buffer, keep).await;
        written?;
        buffer.ok_or_else(|| self.lost_buffer())
    }

    /// Writes the whole buffer, which comes back if that fails, unless it was lost.
    pub(crate) async fn try_write(
        self: &Arc<Self>,
        offset: u64,
        buffer: Buffer,
        keep: &Keep,
    ) -> (Result<()>, Option<Buffer>) {
        if self.has_failed() {
            return (Err(self.failed_before()), Some(buffer));
        }
        let len = buffer.len() as u64;
        self.transfer(Operation::Write, offset, len, Some(buffer), keep).await
    }

    /// Makes `len` bytes read as zeros by giving their blocks back; `false` if the device cannot. Where no block is
    /// allocated nothing is done.
    pub(crate) async fn punch(self: &Arc<Self>, offset: u64, len: u64, keep: &Keep) -> Result<bool> {
        if self.has_failed() {
            return Err(self.failed_before());
        }
        if self.device.has_data(offset, len) == Some(false) {
            self.punches.avoided.fetch_add(1, Ordering::Relaxed);
            return Ok(true);
        }
        self.punches.issued.fetch_add(1, Ordering::Relaxed);
        match self.attempt(Operation::Punch, offset, len, None, 0, keep).await {
            (Ok(_), _) => Ok(true),
            (Err(error), _) if is_unsupported(&error) => {
                self.punches.in_vain.fetch_add(1, Ordering::Relaxed);
                Ok(false)
            }
            (Err(error), _) => Err(self.error(Operation::Punch, offset, len, &error)),
        }
    }

    /// What became of punches since the opening.
    pub(crate) fn punches(&self) -> PunchStatistics {
        let PunchCounters { issued, avoided, in_vain } = &self.punches;
        PunchStatistics {
            issued: issued.load(Ordering::Relaxed),
            avoided: avoided.load(Ordering::Relaxed),
            in_vain: in_vain.load(Ordering::Relaxed),
        }
    }

    async fn transfer(
        self: &Arc<Self>,
        operation: Operation,
        offset: u64,
        len: u64,
        mut buffer: Option<Buffer>,
        keep: &Keep,
    ) -> (Result<()>, Option<Buffer>) {
        let mut done = 0;
        let mut degraded = 0;
        while done < len {
            let (result, back) =
                self.attempt(operation, offset + done, len - done, buffer, done as usize, keep).await;
            buffer = back;
            match result {
                Ok(0) => return (Err(self.error(operation, offset, len, &ends_early(operation))), buffer),
                Ok(bytes) => done = (done + bytes as u64).min(len),
                Err(error) if degraded < 2 && self.device.degrade(&error) => degraded += 1,
                Err(error) => return (Err(self.error(operation, offset, len, &error)), buffer),
            }
            if buffer.is_none() {
                return (Err(self.lost_buffer()), None);
            }
        }
        (Ok(()), buffer)
    }

    /// One request, started again as long as the kernel puts it off.
    async fn attempt(
        self: &Arc<Self>,
        operation: Operation,
        offset: u64,
        len: u64,
        mut buffer: Option<Buffer>,
        from: usize,
        keep: &Keep,
    ) -> (io::Result<usize>, Option<Buffer>) {
        for _ in 0..MOST_RETRIES {
            let request = Request { operation, offset, len, buffer, from };
            let (inner, awaited) = Completion::awaited();
            let (device, keep) = (self.clone(), keep.clone());
            let completion = Completion::from_fn(move |result, buffer| {
                if operation != Operation::Read {
                    device.wrote();
                }
                drop(keep);
                inner.complete(result, buffer);
            });
            self.device.start(request, completion);
            let (result, back) = awaited.await;
            match &result {
                Err(error) if is_put_off(error) && (back.is_some() || operation == Operation::Punch) => {
                    buffer = back;
                }
                _ => return (result, back),
            }
        }
        (Err(io::Error::from(io::ErrorKind::TimedOut)), None)
    }

    pub(crate) fn error(&self, operation: Operation, offset: u64, len: u64, error: &io::Error) -> Error {
        let what = match operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Sync => "sync",
            Operation::Punch => "free",
        };
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                ErrorKind::NoSpace
            }
            _ => ErrorKind::Device,
        };
        let hint =
            if kind == ErrorKind::NoSpace { ": free space on the file system that it lies on" } else { "" };
        Error::new(
            kind,
            format!("{}: cannot {what} {len} bytes at offset {offset}: {error}{hint}", self.name),
        )
    }

    fn lost_buffer(&self) -> Error {
        Error::new(ErrorKind::Cancelled, format!("{}: the I/O was cancelled", self.name))
    }
}

/// Whether the kernel only asks to start the I/O again.
pub(crate) fn is_put_off(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

/// What a transfer of no bytes means.
pub(crate) fn ends_early(operation: Operation) -> io::Error {
    match operation {
        Operation::Write => io::Error::new(io::ErrorKind::StorageFull, "the device took no bytes"),
        _ => io::Error::new(io::ErrorKind::UnexpectedEof, "the device ends before"),
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}
