//! What a mount is compared with: a file system of the same FUSE library that passes everything through to one plain
//! file.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, WriteFlags,
};
use tanada_io::BufferPool;

const KEPT: Duration = Duration::from_secs(3600);
const FILE: INodeNo = INodeNo(2);

/// The name of its only file.
pub const NAME: &str = "data";

const O_DIRECT: i32 = 0o40000;

struct Passthrough {
    file: File,
    size: u64,
    buffers: std::sync::Arc<BufferPool>,
}

impl Passthrough {
    fn attributes(&self, ino: INodeNo) -> FileAttr {
        let (kind, perm) =
            if ino == FILE { (FileType::RegularFile, 0o644) } else { (FileType::Directory, 0o755) };
        FileAttr {
            ino,
            size: self.size,
            blocks: self.size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for Passthrough {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for flag in [InitFlags::FUSE_ASYNC_READ, InitFlags::FUSE_ASYNC_DIO, InitFlags::FUSE_MAX_PAGES] {
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_write(1 << 20);
        Ok(())
    }

    fn lookup(&self, _request: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == NAME {
            reply.entry(&KEPT, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _request: &Request, ino: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&KEPT, &self.attributes(ino));
    }

    fn open(&self, _request: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut buffer = self.buffers.allocate(size as usize);
        match self.file.read_at(&mut buffer, offset) {
            Ok(len) => reply.data(&buffer[..len]),
            Err(error) => reply.error(error.into()),
        }
    }

    fn write(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // The kernel's payload is not aligned as O_DIRECT wants it.
        let mut buffer = self.buffers.allocate(data.len());
        buffer.copy_from_slice(data);
        match self.file.write_at(&buffer, offset) {
            Ok(len) => reply.written(len as u32),
            Err(error) => reply.error(error.into()),
        }
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

    fn fsync(
        &self,
        _request: &Request,
        _ino: INodeNo,
        _handle: FileHandle,
        _only_data: bool,
        reply: ReplyEmpty,
    ) {
        match self.file.sync_data() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error.into()),
        }
    }
}

/// Passes `file` through at `folder`, with `threads` threads that read requests and answer them.
pub fn mount(file: &Path, folder: &Path, threads: usize) -> io::Result<fuser::BackgroundSession> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(O_DIRECT).open(file)?;
    let size = file.metadata()?.len();
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("passthrough".to_owned())];
    config.n_threads = Some(threads);
    config.clone_fd = true;
    let buffers = BufferPool::new(0);
    fuser::Session::new(Passthrough { file, size, buffers }, folder, &config)?.spawn()
}
