//! Requests of the kernel.
//!
//! What needs no I/O is answered by the thread that reads the request. The rest becomes a task on an executor, which
//! answers when its I/O is done; so as many are in flight as programs ask for, however few threads read requests.
//!
//! Names and attributes may be kept by the kernel as long as it likes: nobody but it changes them. Data are kept in its
//! page cache unless a file was opened with `O_DIRECT`; writes always come at once.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use parking_lot::Mutex;
use tanada_io::Executors;

use super::convert::{attributes, file_type, nanoseconds};
use crate::system::BLOCK_BYTES;
use crate::{Change, Entry, Errno, FileSystem, Ino, Maker, Result};

/// How long the kernel may keep names and attributes.
const KEPT: Duration = Duration::from_secs(3600);

/// Largest write that comes in one request.
const LARGEST_WRITE_BYTES: u32 = 1 << 20;

/// Requests that the kernel sends before it waits for answers.
const MOST_BACKGROUND: u16 = 512;

/// Answers the kernel's requests.
pub(super) struct Requests {
    system: Arc<FileSystem>,
    executors: Arc<Executors>,
    /// What open folders held when they were opened.
    folders: Mutex<HashMap<u64, Vec<Entry>>>,
    next_folder: AtomicU64,
}

impl Requests {
    pub(super) fn new(system: Arc<FileSystem>, executors: Arc<Executors>) -> Requests {
        Requests { system, executors, folders: Mutex::default(), next_folder: AtomicU64::new(1) }
    }

    /// Runs what may wait for I/O; `answer` gets what it came to.
    fn spawn<T, F>(
        &self,
        work: impl FnOnce(Arc<FileSystem>) -> F + Send + 'static,
        answer: impl FnOnce(Result<T>) + Send + 'static,
    ) where
        F: Future<Output = Result<T>> + 'static,
        T: 'static,
    {
        let system = self.system.clone();
        let task =
            self.executors.spawn(move || async move { answer(work(system).await.inspect_err(report)) });
        task.detach();
    }

    fn entry(&self, ino: Result<Ino>, reply: ReplyEntry) {
        match ino.and_then(|ino| self.system.attributes(ino)) {
            Ok(found) => reply.entry(&KEPT, &attributes(&found), Generation(0)),
            Err(error) => reply.error(error.into()),
        }
    }
}

/// Tells the operator of a failed device or damaged data; programs only get a number.
fn report(error: &Errno) {
    if error.is_failure() {
        tanada_io::warn(&format!("mount: {error}"));
    }
}

fn text(name: &OsStr) -> Result<&str> {
    name.to_str().ok_or_else(Errno::no_text)
}

fn empty(reply: ReplyEmpty) -> impl FnOnce(Result<()>) + Send + 'static {
    move |done| match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error.into()),
    }
}

fn maker(request: &Request, mode: u32, umask: u32) -> Maker {
    Maker { mode: mode & 0o7777 & !umask, uid: request.uid(), gid: request.gid() }
}

/// How the kernel treats an open file: its page cache serves all but those opened with `O_DIRECT`.
fn open_flags(flags: i32) -> FopenFlags {
    let kept = FopenFlags::FOPEN_NOFLUSH;
    if flags & libc::O_DIRECT == 0 {
        kept | FopenFlags::FOPEN_KEEP_CACHE
    } else {
        kept | FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
    }
}

/// The answer to a request for extended attributes of at most `size` bytes; 0 asks how many there are.
fn extended(value: Result<Vec<u8>>, size: u32, reply: ReplyXattr) {
    match value {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) if value.len() > size as usize => reply.error(fuser::Errno::ERANGE),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(error.into()),
    }
}

impl Filesystem for Requests {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = [
            InitFlags::FUSE_ASYNC_READ,
            InitFlags::FUSE_ASYNC_DIO,
            InitFlags::FUSE_BIG_WRITES,
            InitFlags::FUSE_MAX_PAGES,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_HANDLE_KILLPRIV_V2,
            // Else a file that was opened with O_DIRECT could not be mapped.
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ];
        for flag in wanted {
            // What an older kernel does not know is slower, or refused by it.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(LARGEST_WRITE_BYTES);
        if let Err(most) = config.set_max_readahead(LARGEST_WRITE_BYTES) {
            let _ = config.set_max_readahead(most);
        }
        let _ = config.set_max_background(MOST_BACKGROUND);
        let _ = config.set_congestion_threshold(MOST_BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.entry(text(name).and_then(|name| self.system.lookup(parent.0, name)), reply);
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.system.attributes(ino.0) {
            Ok(found) => reply.attr(&KEPT, &attributes(&found)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn setattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _accessed: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _changed: Option<SystemTime>,
        _handle: Option<FileHandle>,
        _created: Option<SystemTime>,
        _status_changed: Option<SystemTime>,
        _backed_up: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let change = Change { mode, uid, gid, modified_ns: modified.map(nanoseconds) };
        let work = move |system: Arc<FileSystem>| async move {
            if let Some(size) = size {
                system.resize(ino.0, size).await?;
            }
            system.change(ino.0, change)?;
            system.attributes(ino.0)
        };
        self.spawn(work, move |done| match done {
            Ok(found) => reply.attr(&KEPT, &attributes(&found)),
            Err(error) => reply.error(error.into()),
        });
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _device: u32,
        reply: ReplyEntry,
    ) {
        // Sockets, pipes and devices are files of other file systems.
        if mode & libc::S_IFMT != libc::S_IFREG {
            return reply.error(fuser::Errno::EPERM);
        }
        let made =
            text(name).and_then(|name| self.system.create(parent.0, name, maker(request, mode, umask)));
        let Ok(ino) = made else { return self.entry(made, reply) };
        let (system, kept) = (self.system.clone(), KEPT);
        let work = move |system: Arc<FileSystem>| async move { system.close_file(ino).await };
        self.spawn(work, move |closed| match closed.and_then(|()| system.attributes(ino)) {
            Ok(found) => reply.entry(&kept, &attributes(&found), Generation(0)),
            Err(error) => reply.error(error.into()),
        });
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        reply: ReplyEntry,
    ) {
        let maker = maker(request, mode, umask);
        self.entry(text(name).and_then(|name| self.system.make_folder(parent.0, name, maker)), reply);
    }

    fn unlink(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = text(name).map(str::to_owned);
        let work = move |system: Arc<FileSystem>| async move { system.unlink(parent.0, &name?).await };
        self.spawn(work, empty(reply));
    }

    fn rmdir(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        empty(reply)(text(name).and_then(|name| self.system.remove_folder(parent.0, name)));
    }

    fn rename(
        &self,
        _request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let may_replace = !flags.contains(RenameFlags::RENAME_NOREPLACE);
        if !(flags - RenameFlags::RENAME_NOREPLACE).is_empty() {
            return reply.error(fuser::Errno::EINVAL);
        }
        let names = text(name).and_then(|name| Ok((name.to_owned(), text(new_name)?.to_owned())));
        let work = move |system: Arc<FileSystem>| async move {
            let (name, new_name) = names?;
            system.rename((parent.0, &name), (new_parent.0, &new_name), may_replace).await
        };
        self.spawn(work, empty(reply));
    }

    fn open(&self, _request: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let for_writing = flags.acc_mode() != OpenAccMode::O_RDONLY;
        match self.system.open_file(ino.0, for_writing) {
            Ok(()) => reply.opened(FileHandle(ino.0), open_flags(flags.0)),
            Err(error) => reply.error(error.into()),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let maker = maker(request, mode, umask);
        let made = text(name).and_then(|name| self.system.create(parent.0, name, maker));
        match made.and_then(|ino| self.system.attributes(ino)) {
            Ok(found) => {
                let handle = FileHandle(found.ino);
                reply.created(&KEPT, &attributes(&found), Generation(0), handle, open_flags(flags));
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn read(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let work =
            move |system: Arc<FileSystem>| async move { system.read(ino.0, offset, size as usize).await };
        self.spawn(work, move |read| match read {
            Ok(buffer) => reply.data(&buffer),
            Err(error) => reply.error(error.into()),
        });
    }

    fn write(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = data.len() as u32;
        let buffer = self.system.buffer(data);
        let is_synced = flags.0 & (libc::O_SYNC | libc::O_DSYNC) != 0;
        let work = move |system: Arc<FileSystem>| async move {
            system.write(ino.0, offset, buffer, is_synced).await
        };
        self.spawn(work, move |done| match done {
            Ok(()) => reply.written(written),
            Err(error) => reply.error(error.into()),
        });
    }

    fn flush(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn release(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let work = move |system: Arc<FileSystem>| async move { system.close_file(ino.0).await };
        self.spawn(work, empty(reply));
    }

    fn fsync(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        only_data: bool,
        reply: ReplyEmpty,
    ) {
        let work = move |system: Arc<FileSystem>| async move { system.sync_file(ino.0, only_data).await };
        self.spawn(work, empty(reply));
    }

    fn opendir(&self, _request: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.system.entries(ino.0) {
            Ok(entries) => {
                let handle = self.next_folder.fetch_add(1, Ordering::Relaxed);
                self.folders.lock().insert(handle, entries);
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(error) => reply.error(error.into()),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut folders = self.folders.lock();
        let Some(entries) = folders.get_mut(&handle.0) else { return reply.error(fuser::Errno::EBADF) };
        if offset == 0 {
            // It was rewound, or has just been opened.
            match self.system.entries(ino.0) {
                Ok(now) => *entries = now,
                Err(error) => return reply.error(error.into()),
            }
        }
        for (place, entry) in entries.iter().enumerate().skip(offset as usize) {
            let next = place as u64 + 1;
            if reply.add(INodeNo(entry.ino), next, file_type(entry.kind), &entry.name) {
                break;
            }
        }
        reply.ok();
    }

    fn releasedir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.folders.lock().remove(&handle.0);
        reply.ok();
    }

    fn fsyncdir(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _only_data: bool,
        reply: ReplyEmpty,
    ) {
        self.spawn(|system| async move { system.sync_folder().await }, empty(reply));
    }

    fn statfs(&self, _request: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let space = self.system.space();
        let (total, free) = (space.total_bytes / BLOCK_BYTES, space.free_bytes / BLOCK_BYTES);
        reply.statfs(total, free, free, space.nodes, u64::from(u32::MAX), 4096, 255, 4096);
    }

    fn setxattr(
        &self,
        _request: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let (name, value) = (text(name).map(str::to_owned), value.to_vec());
        let work = move |system: Arc<FileSystem>| async move {
            system.set_extended(ino.0, &name?, Some(&value)).await
        };
        self.spawn(work, empty(reply));
    }

    fn getxattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let value = text(name).and_then(|name| self.system.extended(ino.0, name)).map(String::into_bytes);
        extended(value, size, reply);
    }

    fn listxattr(&self, _request: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let names = self.system.extended_names(ino.0);
        let list = names.map(|names| names.into_iter().flat_map(|name| (name + "\0").into_bytes()).collect());
        extended(list, size, reply);
    }

    fn removexattr(&self, _request: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let name = text(name).map(str::to_owned);
        let work = move |system: Arc<FileSystem>| async move {
            let name = name?;
            // Who removes what is not there is told.
            system.extended(ino.0, &name)?;
            system.set_extended(ino.0, &name, None).await
        };
        self.spawn(work, empty(reply));
    }

    fn fallocate(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let work =
            move |system: Arc<FileSystem>| async move { system.allocate(ino.0, offset, length, mode).await };
        self.spawn(work, empty(reply));
    }

    fn lseek(
        &self,
        _request: &Request,
        ino: INodeNo,
        _handle: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        match self.system.seek(ino.0, offset, whence) {
            Ok(found) => reply.offset(found),
            Err(error) => reply.error(error.into()),
        }
    }
}
