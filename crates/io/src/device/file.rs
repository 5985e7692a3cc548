//! Files and block devices of the kernel, as a backend.
//!
//! 1. Open with O_DIRECT unless the method is `Buffered`; a file system that refuses is used buffered.
//! 2. Ask `statx` for the alignment of direct I/O; kernels that cannot tell are tried with 512 bytes, else 4096 is
//!    assumed.
//! 3. A request on an executor's thread goes to its ring, any other to the thread pool; all to AIO where that is the
//!    method.
//! 4. A direct file whose aligned I/O is refused all the same (EINVAL) loses its O_DIRECT flag and goes on buffered.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags};

use super::{Backend, Completion, DeviceOptions, Method, Operation, Request, Ticket};
use crate::buffer::BUFFER_ALIGNMENT;
use crate::executor::{self, RemoteHandle};
use crate::{BufferPool, Error, ErrorKind, Fallback, Medium, Result, aio, ring, threads};

/// An open file, shared by its device and by the I/Os in flight on it.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// Unique in the process, never used again: what rings know it by.
    pub(crate) id: u64,
    file: File,
    path: PathBuf,
    is_block_device: bool,
    direct: AtomicBool,
    /// Executors whose rings hold this file in their table and must let go of it.
    registered_with: Mutex<Vec<RemoteHandle>>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl OpenFile {
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Notes that the ring of `executor` has this file in its table.
    pub(crate) fn registered_with(&self, executor: RemoteHandle) {
        self.registered_with.lock().push(executor);
    }

    /// Does `request` now, blocking; bytes transferred.
    pub(crate) fn perform(&self, request: &mut Request) -> io::Result<usize> {
        let Request { operation, offset, len, buffer, from } = request;
        let range = *from..*from + *len as usize;
        let no_buffer = || io::Error::from(io::ErrorKind::InvalidInput);
        match operation {
            Operation::Read => self.file.read_at(&mut buffer.as_mut().ok_or_else(no_buffer)?[range], *offset),
            Operation::Write => self.file.write_at(&buffer.as_ref().ok_or_else(no_buffer)?[range], *offset),
            Operation::Sync => self.file.sync_data().map(|()| 0),
            Operation::Punch => {
                let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                rustix::fs::fallocate(&self.file, mode, *offset, *len).map(|()| 0).map_err(io::Error::from)
            }
        }
    }

    fn drop_direct(&self) -> bool {
        let cleared = rustix::fs::fcntl_getfl(&self.file)
            .and_then(|flags| rustix::fs::fcntl_setfl(&self.file, flags.difference(OFlags::DIRECT)));
        if cleared.is_ok() {
            self.direct.store(false, Ordering::SeqCst);
        }
        cleared.is_ok()
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        for executor in self.registered_with.get_mut().drain(..) {
            executor.forget_file(self.id);
        }
    }
}

/// The backend of a file.
#[derive(Debug)]
struct FileBackend {
    file: Arc<OpenFile>,
    method: Method,
    alignment: usize,
}

/// Opens `path` as `options` say.
pub(super) fn open(path: &Path, options: &DeviceOptions) -> Result<impl Backend> {
    let writable = options.writable || options.create;
    // A pipe would block the opening itself, so what is there already is looked at first.
    if let Ok(metadata) = std::fs::metadata(path) {
        let file_type = metadata.file_type();
        if !file_type.is_file() && !file_type.is_block_device() {
            let message = format!("cannot open {}: neither a file nor a block device", path.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
    }
    let open = |direct: bool| {
        let flags = if direct { libc::O_DIRECT } else { 0 };
        OpenOptions::new().read(true).write(writable).create(options.create).custom_flags(flags).open(path)
    };
    let fail = |error: io::Error| Error::at_path("open", path, &error);
    let wants_direct = options.method != Method::Buffered;
    let mut direct = wants_direct && !Fallback::NoDirect.is_forced();
    let file = match open(direct) {
        Err(error) if direct && error.raw_os_error() == Some(libc::EINVAL) => {
            direct = false;
            open(false)
        }
        opened => opened,
    }
    .map_err(fail)?;
    let is_block_device = file.metadata().map_err(fail)?.file_type().is_block_device();
    let alignment = if direct { direct_alignment(&file, is_block_device) } else { Some(1) };
    let open_file = Arc::new(OpenFile {
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        file,
        path: path.to_owned(),
        is_block_device,
        direct: AtomicBool::new(direct),
        registered_with: Mutex::new(Vec::new()),
    });
    if alignment.is_none() {
        direct = !open_file.drop_direct();
    }
    if wants_direct && !direct {
        warn_no_direct(path);
    }
    let method = match options.method {
        Method::Uring if direct && !ring::is_available() => Method::Threads,
        Method::Aio if direct && !aio::is_available() => Method::Threads,
        method => method,
    };
    Ok(FileBackend { file: open_file, method, alignment: alignment.unwrap_or(1) })
}

fn warn_no_direct(path: &Path) {
    Fallback::NoDirect.warn(format_args!("{} has no direct I/O", path.display()));
}

/// The alignment that direct I/O on `file` needs; `None` if it is not possible.
fn direct_alignment(file: &File, is_block_device: bool) -> Option<usize> {
    let told = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
    if let Some(told) = told.filter(|told| told.stx_mask & StatxFlags::DIOALIGN.bits() != 0) {
        let (offset, memory) = (told.stx_dio_offset_align as usize, told.stx_dio_mem_align as usize);
        let usable = offset.is_power_of_two() && memory.is_power_of_two() && memory <= BUFFER_ALIGNMENT;
        return usable.then_some(offset);
    }
    if is_block_device && let Ok(sector) = rustix::fs::ioctl_blksszget(file.as_fd()) {
        return Some((sector as usize).next_power_of_two());
    }
    let mut sector = BufferPool::new(0).allocate(512);
    Some(if file.read_at(&mut sector, 0).is_ok() { 512 } else { BUFFER_ALIGNMENT })
}

impl FileBackend {
    fn is_direct(&self) -> bool {
        self.file.direct.load(Ordering::Relaxed)
    }
}

impl Backend for FileBackend {
    fn path(&self) -> &Path {
        &self.file.path
    }

    fn size_bytes(&self) -> io::Result<u64> {
        if self.file.is_block_device {
            return (&self.file.file).seek(SeekFrom::End(0));
        }
        self.file.file.metadata().map(|metadata| metadata.len())
    }

    fn method(&self) -> Method {
        if self.is_direct() { self.method } else { Method::Buffered }
    }

    fn alignment(&self) -> usize {
        if self.is_direct() { self.alignment } else { 1 }
    }

    fn medium(&self) -> Medium {
        self.file.file.metadata().map(|metadata| Medium::of_metadata(&metadata)).unwrap_or_default()
    }

    /// Nobody uses the file's own position, which this moves.
    fn has_data(&self, offset: u64, len: u64) -> Option<bool> {
        if self.file.is_block_device {
            return None;
        }
        match rustix::fs::seek(&self.file.file, rustix::fs::SeekFrom::Data(offset)) {
            Ok(data) => Some(data < offset.saturating_add(len)),
            Err(rustix::io::Errno::NXIO) => Some(false),
            Err(_) => None,
        }
    }

    fn start(&self, request: Request, completion: Completion) -> Ticket {
        let completion = completion.holding_time();
        match self.method() {
            Method::Uring => executor::start_on_this_thread(&self.file, request, completion).unwrap_or_else(
                |(request, completion)| threads::start(&self.file, true, request, completion),
            ),
            Method::Aio => aio::start(&self.file, request, completion),
            Method::Threads | Method::Buffered => threads::start(&self.file, false, request, completion),
        }
    }

    fn cancel(&self, ticket: Ticket) {
        executor::cancel_on_this_thread(ticket);
    }

    fn degrade(&self, error: &io::Error) -> bool {
        if error.raw_os_error() != Some(libc::EINVAL) || self.method == Method::Buffered {
            return false;
        }
        // Another I/O may have been refused and changed the file in the meantime: then it is worth another try as well.
        if self.is_direct() {
            if !self.file.drop_direct() {
                return false;
            }
            warn_no_direct(&self.file.path);
        }
        true
    }
}
