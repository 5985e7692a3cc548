//! Devices: files and block devices with positioned asynchronous I/O.
//!
//! Invariants:
//! - what a direct device is asked for is aligned before it reaches the kernel;
//! - a read is short only at the end of the device, a write never;
//! - after a failed sync, or a write that the device failed, the device takes no more writes: what is durable is no
//!   longer known.

mod backend;
mod file;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use backend::{Awaited, Backend, Completion, Operation, Request, Ticket};
pub(crate) use file::OpenFile;

use crate::error::kind_of;
use crate::{Buffer, Error, ErrorKind, Medium, Result};
use backend::InFlight;

/// How a device's I/O is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// io_uring with O_DIRECT.
    #[default]
    Uring,
    /// Linux native AIO with O_DIRECT.
    Aio,
    /// A pool of threads with pread/pwrite and O_DIRECT.
    Threads,
    /// A pool of threads through the page cache of the kernel.
    Buffered,
}

/// How to open a device.
#[derive(Debug, Clone, Default)]
pub struct DeviceOptions {
    /// Wanted method; the next best one is taken, with one warning, where it is not to be had.
    pub method: Method,
    /// Open for writing too.
    pub writable: bool,
    /// Create the file if it does not exist (implies `writable`).
    pub create: bool,
}

/// A file or block device. Cheap to clone; closed when the last clone goes.
///
/// ```
/// use tanada_io::{BufferPool, Device, DeviceOptions};
/// # let directory = tempfile::tempdir().unwrap();
/// # let path = directory.path().join("file");
/// # futures::executor::block_on(async {
/// let device = Device::open(&path, &DeviceOptions { create: true, ..DeviceOptions::default() })?;
/// let pool = BufferPool::new(1 << 20);
/// let mut page = pool.allocate(4096);
/// page.fill(b'x');
/// let page = device.write(8192, page).await?;
/// let page = device.read(4096, page).await?; // the hole before it
/// assert_eq!(page[0], 0);
/// assert_eq!(device.size_bytes()?, 12288);
/// # Ok::<(), tanada_io::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    backend: Box<dyn Backend>,
    poisoned: AtomicBool,
}

/// How often an I/O that the kernel put off (EAGAIN, EINTR) is started again.
const MOST_RETRIES: u32 = 1000;

impl Device {
    /// Opens `path`.
    ///
    /// # Errors
    /// If it cannot be opened, or is neither a file nor a block device.
    pub fn open(path: impl AsRef<Path>, options: &DeviceOptions) -> Result<Device> {
        Ok(Device::from_backend(file::open(path.as_ref(), options)?))
    }

    /// A device on a backend made elsewhere.
    pub fn from_backend(backend: impl Backend) -> Device {
        Device { inner: Arc::new(Inner { backend: Box::new(backend), poisoned: AtomicBool::new(false) }) }
    }

    /// What messages call it.
    pub fn path(&self) -> &Path {
        self.inner.backend.path()
    }

    /// Size in bytes now.
    ///
    /// # Errors
    /// If the kernel cannot tell.
    pub fn size_bytes(&self) -> Result<u64> {
        self.inner
            .backend
            .size_bytes()
            .map_err(|error| Error::at_path("tell the size of", self.path(), &error))
    }

    /// The method in use.
    pub fn method(&self) -> Method {
        self.inner.backend.method()
    }

    /// Offsets, lengths and buffers are multiples of this many bytes.
    pub fn alignment(&self) -> usize {
        self.inner.backend.alignment()
    }

    /// What it lies on.
    pub fn medium(&self) -> Medium {
        self.inner.backend.medium()
    }

    /// Starts `request` as it is and tells `completion`; for layers that pass requests on. Nothing is checked, retried
    /// or remembered here: a transfer may be short, and a failed write does not keep later ones away.
    pub fn start(&self, request: Request, completion: Completion) -> Ticket {
        self.inner.backend.start(request, completion)
    }

    /// Nobody waits for the request that [`start`](Self::start) gave this ticket.
    pub fn cancel(&self, ticket: Ticket) {
        self.inner.backend.cancel(ticket);
    }

    /// Whether blocks are allocated for any of `len` bytes at `offset`; `None` if that cannot be told
    /// ([`Backend::has_data`]).
    pub fn has_data(&self, offset: u64, len: u64) -> Option<bool> {
        self.inner.backend.has_data(offset, len)
    }

    /// Tells of the error of a request that was [started](Self::start) here; whether to try it again
    /// ([`Backend::degrade`]).
    pub fn degrade(&self, error: &io::Error) -> bool {
        self.inner.backend.degrade(error)
    }

    /// Tells that what `len` bytes at `offset` read as is damaged; read again they may be other bytes
    /// ([`Backend::distrust`]).
    pub fn distrust(&self, offset: u64, len: u64) {
        self.inner.backend.distrust(offset, len);
    }

    /// Reads `buffer.len()` bytes at `offset`; the buffer comes back shortened to what was read (shorter only at the
    /// end of the file). On an executor's thread it uses that executor's ring; elsewhere the thread pool. Dropping the
    /// future is safe.
    ///
    /// # Errors
    /// `InvalidInput` if offset or length are not aligned; else what the device says.
    pub async fn read(&self, offset: u64, buffer: Buffer) -> Result<Buffer> {
        let (mut buffer, done) = self.transfer(Operation::Read, offset, buffer).await?;
        buffer.truncate(done);
        Ok(buffer)
    }

    /// Writes the whole buffer at `offset`.
    ///
    /// # Errors
    /// `InvalidInput` if offset or length are not aligned, `NoSpace` if the device is full; else what the device says.
    pub async fn write(&self, offset: u64, buffer: Buffer) -> Result<Buffer> {
        self.check_not_poisoned()?;
        let len = buffer.len() as u64;
        let (buffer, done) = self.transfer(Operation::Write, offset, buffer).await.inspect_err(|error| {
            if error.kind() == ErrorKind::Device {
                self.inner.poisoned.store(true, Ordering::SeqCst);
            }
        })?;
        if done < buffer.len() {
            let full = io::Error::from_raw_os_error(libc::ENOSPC);
            return Err(self.failed(Operation::Write, offset, len, &full));
        }
        Ok(buffer)
    }

    /// Makes all completed writes durable.
    ///
    /// # Errors
    /// If the device fails; it takes no more writes then.
    pub async fn sync(&self) -> Result<()> {
        self.check_not_poisoned()?;
        let synced = self.without_buffer(Operation::Sync, 0, 0).await;
        if synced.is_err() {
            self.inner.poisoned.store(true, Ordering::SeqCst);
        }
        synced
    }

    /// Frees the blocks of `len` bytes at `offset`; they read as zeros. The size stays.
    ///
    /// # Errors
    /// `Unsupported` if the file system cannot; else what the device says.
    pub async fn punch(&self, offset: u64, len: u64) -> Result<()> {
        self.check_not_poisoned()?;
        self.check_range(Operation::Punch, offset, len)?;
        if len == 0 {
            return Ok(());
        }
        self.without_buffer(Operation::Punch, offset, len).await
    }

    /// Transfers the whole buffer unless the end of the device comes first; the buffer and the bytes done.
    async fn transfer(
        &self,
        operation: Operation,
        offset: u64,
        mut buffer: Buffer,
    ) -> Result<(Buffer, usize)> {
        let want = buffer.len();
        self.check_range(operation, offset, want as u64)?;
        self.check_alignment(operation, offset, want)?;
        let mut done = 0;
        let mut retries = 0;
        while done < want {
            let request = Request {
                operation,
                offset: offset + done as u64,
                len: (want - done) as u64,
                buffer: Some(buffer),
                from: done,
            };
            let outcome = InFlight::new(&*self.inner.backend, request).await;
            let failed = |error: &io::Error| self.failed(operation, offset, want as u64, error);
            buffer = match (outcome.buffer, &outcome.result) {
                (Some(buffer), _) => buffer,
                (None, Err(error)) => return Err(failed(error)),
                (None, Ok(_)) => return Err(failed(&io::Error::other("the backend kept the buffer"))),
            };
            match outcome.result {
                Ok(0) => break,
                Ok(bytes) => {
                    done = (done + bytes).min(want);
                    // Direct I/O ends off a boundary only at the end of the file.
                    if !done.is_multiple_of(self.alignment()) {
                        break;
                    }
                }
                Err(error) if put_off(&error, &mut retries) => {}
                // A second refusal in a row has another cause than the method.
                Err(error) if retries <= 2 && self.inner.backend.degrade(&error) => {}
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok((buffer, done))
    }

    async fn without_buffer(&self, operation: Operation, offset: u64, len: u64) -> Result<()> {
        let mut retries = 0;
        loop {
            let request = Request { operation, offset, len, buffer: None, from: 0 };
            match InFlight::new(&*self.inner.backend, request).await.result {
                Ok(_) => return Ok(()),
                Err(error) if put_off(&error, &mut retries) => {}
                Err(error) => return Err(self.failed(operation, offset, len, &error)),
            }
        }
    }

    fn check_not_poisoned(&self) -> Result<()> {
        if self.inner.poisoned.load(Ordering::SeqCst) {
            let path = self.path().display();
            let message =
                format!("{path} takes no more writes: an earlier write or sync failed on the device");
            return Err(Error::new(ErrorKind::Device, message));
        }
        Ok(())
    }

    fn check_range(&self, operation: Operation, offset: u64, len: u64) -> Result<()> {
        match offset.checked_add(len) {
            Some(end) if end <= i64::MAX as u64 => Ok(()),
            _ => Err(self.invalid(operation, offset, len, "no file is that large")),
        }
    }

    fn check_alignment(&self, operation: Operation, offset: u64, len: usize) -> Result<()> {
        let alignment = self.alignment();
        if offset.is_multiple_of(alignment as u64) && len.is_multiple_of(alignment) {
            return Ok(());
        }
        let why = format!("direct I/O needs offset and length to be multiples of {alignment}");
        Err(self.invalid(operation, offset, len as u64, &why))
    }

    fn invalid(&self, operation: Operation, offset: u64, len: u64, why: &str) -> Error {
        Error::new(ErrorKind::InvalidInput, format!("{}: {why}", self.attempt(operation, offset, len)))
    }

    fn failed(&self, operation: Operation, offset: u64, len: u64, error: &io::Error) -> Error {
        Error::new(kind_of(error), format!("{}: {error}", self.attempt(operation, offset, len)))
    }

    fn attempt(&self, operation: Operation, offset: u64, len: u64) -> String {
        let path = self.path().display();
        match operation {
            Operation::Read => format!("cannot read {len} bytes at offset {offset} of {path}"),
            Operation::Write => format!("cannot write {len} bytes at offset {offset} of {path}"),
            Operation::Sync => format!("cannot sync {path}"),
            Operation::Punch => format!("cannot free {len} bytes at offset {offset} of {path}"),
        }
    }
}

/// Whether the kernel only asks to start the I/O again; counts the attempts.
fn put_off(error: &io::Error, retries: &mut u32) -> bool {
    *retries += 1;
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) && *retries < MOST_RETRIES
}
