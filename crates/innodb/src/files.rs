//! Where files come from: the host's file system, or whatever else has paths and bytes (objects of a volume, emulated
//! disks).
//!
//! This crate opens nothing by itself: all it reads, it reads through the [`Files`] of its
//! [`Environment`](crate::Environment), which are [`HostFiles`] unless others are injected. Pages are read through the
//! [`Device`] that [`Files::open`] gives; the few kilobytes of definitions and logs that mounting looks at, through
//! [`Files::read`].

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use futures::future::BoxFuture;
use rustix::process::{Flock, FlockType, fcntl_getlk};
use tanada_io::{Device, DeviceOptions, Method};

/// What lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file of this many bytes.
    File {
        /// Its size.
        bytes: u64,
    },
    /// A folder.
    Folder,
}

/// Which file lies at a path, and when it was last written: two stamps that are equal, of which the first was old when
/// it was taken, are of the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// The device of the file system.
    pub device: u64,
    /// The file's number there.
    pub inode: u64,
    /// Its size.
    pub bytes: u64,
    /// When its bytes last changed, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// When anything of it last changed, in nanoseconds since 1970; nobody can set it.
    pub changed_ns: i128,
}

impl FileStamp {
    /// When it was last touched, in nanoseconds since 1970.
    pub fn newest_ns(&self) -> i128 {
        self.modified_ns.max(self.changed_ns)
    }
}

/// A tree of named files, read only. Paths are those given to [`Catalog::open`](crate::Catalog::open) and what lies
/// below, around, and where an `.isl` file points.
///
/// All of it is called on executors' threads: what waits is a future.
pub trait Files: fmt::Debug + Send + Sync {
    /// What lies at `path`, links followed.
    ///
    /// # Errors
    /// `NotFound` if nothing does.
    fn kind(&self, path: &Path) -> io::Result<FileKind>;

    /// The paths of what lies in `folder`, in any order.
    ///
    /// # Errors
    /// `NotFound`, or `NotADirectory`.
    fn entries(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;

    /// Up to `most_bytes` bytes of a file from `offset` on; fewer only at its end.
    ///
    /// # Errors
    /// `NotFound`, or what the medium says.
    fn read<'a>(
        &'a self,
        path: &'a Path,
        offset: u64,
        most_bytes: usize,
    ) -> BoxFuture<'a, io::Result<Vec<u8>>>;

    /// Opens a file for page reads; `method` is a wish of the host's.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be opened.
    fn open(&self, path: &Path, method: Method) -> tanada_io::Result<Device>;

    /// `path` without links and relative steps. Where there are none of these, as is the default, it is `path`.
    ///
    /// # Errors
    /// `NotFound` if nothing lies there.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.kind(path).map(|_| path.to_owned())
    }

    /// Whether a server holds a lock on the file, and if it can be told, its process. No, where files have no locks, as
    /// is the default.
    fn lock(&self, path: &Path) -> Option<Lock> {
        let _ = path;
        None
    }

    /// The stamp of what lies at `path`, links followed.
    ///
    /// # Errors
    /// `NotFound` if nothing does, `Unsupported` where changes of files leave no trace, as is the default.
    fn stamp(&self, path: &Path) -> io::Result<FileStamp> {
        let _ = path;
        Err(io::Error::from(io::ErrorKind::Unsupported))
    }

    /// Whether something lies at `path`.
    fn exists(&self, path: &Path) -> bool {
        self.kind(path).is_ok()
    }

    /// Whether a folder lies at `path`.
    fn is_folder(&self, path: &Path) -> bool {
        self.kind(path).is_ok_and(|kind| kind == FileKind::Folder)
    }

    /// Whether a file lies at `path`.
    fn is_file(&self, path: &Path) -> bool {
        self.kind(path).is_ok_and(|kind| kind != FileKind::Folder)
    }
}

/// A lock that a process holds on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// The process, if it is known.
    pub process: Option<i32>,
}

/// The host's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostFiles;

impl HostFiles {
    fn read_now(path: &Path, offset: u64, most_bytes: usize) -> io::Result<Vec<u8>> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut bytes = vec![0; size.saturating_sub(offset).min(most_bytes as u64) as usize];
        file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }
}

impl Files for HostFiles {
    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        let metadata = std::fs::metadata(path)?;
        let bytes = metadata.len();
        Ok(if metadata.is_dir() { FileKind::Folder } else { FileKind::File { bytes } })
    }

    fn entries(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect()
    }

    /// Reads at once: what is read this way is small and read once per table or mount.
    fn read<'a>(
        &'a self,
        path: &'a Path,
        offset: u64,
        most_bytes: usize,
    ) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        Box::pin(std::future::ready(HostFiles::read_now(path, offset, most_bytes)))
    }

    fn open(&self, path: &Path, method: Method) -> tanada_io::Result<Device> {
        Device::open(path, &DeviceOptions { method, ..DeviceOptions::default() })
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn stamp(&self, path: &Path) -> io::Result<FileStamp> {
        let metadata = std::fs::metadata(path)?;
        let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Ok(FileStamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        })
    }

    /// A lock for reading conflicts with a server's lock for writing only. Where locks cannot be asked for, there is
    /// none.
    fn lock(&self, path: &Path) -> Option<Lock> {
        let file = File::open(path).ok()?;
        let lock = fcntl_getlk(&file, &Flock::from(FlockType::ReadLock)).ok()??;
        Some(Lock { process: lock.pid.map(|pid| pid.as_raw_nonzero().get()) })
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;

    #[test]
    fn the_host_tells_files_from_folders_and_reads_up_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        std::fs::write(&file, b"0123456789").unwrap();
        assert_eq!(HostFiles.kind(&file).unwrap(), FileKind::File { bytes: 10 });
        assert!(HostFiles.is_folder(folder.path()) && !HostFiles.is_folder(&file));
        assert!(HostFiles.is_file(&file) && HostFiles.exists(&file));
        assert_eq!(HostFiles.entries(folder.path()).unwrap(), std::slice::from_ref(&file));
        let missing = folder.path().join("none");
        assert_eq!(HostFiles.kind(&missing).unwrap_err().kind(), io::ErrorKind::NotFound);
        for (offset, most, expected) in [(0, 4, &b"0123"[..]), (8, 4, b"89"), (10, 1, b""), (99, 9, b"")] {
            assert_eq!(block_on(HostFiles.read(&file, offset, most)).unwrap(), expected);
        }
        assert!(block_on(HostFiles.read(&missing, 0, 1)).is_err());
        assert_eq!(HostFiles.lock(&file), None);
    }

    #[test]
    fn a_stamp_changes_with_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("f"), folder.path().join("g"));
        std::fs::write(&file, b"0123456789").unwrap();
        let first = HostFiles.stamp(&file).unwrap();
        assert_eq!(HostFiles.stamp(&file).unwrap(), first);
        std::fs::write(&other, b"abcdefghij").unwrap();
        std::fs::File::open(&other).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        std::fs::rename(&other, &file).unwrap();
        let replaced = HostFiles.stamp(&file).unwrap();
        assert!(replaced.inode != first.inode && replaced.bytes == first.bytes);
        assert!(replaced.modified_ns == 0 && replaced.newest_ns() == replaced.changed_ns);
        assert!(HostFiles.stamp(&other).is_err());
    }
}
