//! The lock of a volume's folder: one writer, or several readers.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::join;
use crate::{Error, ErrorKind, Result};

/// Held as long as the volume is open; the kernel gives it up with the process.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
    is_exclusive: bool,
}

impl DirectoryLock {
    /// The writer's lock.
    ///
    /// # Errors
    /// `Locked` if another process has the volume; the message names it.
    pub fn exclusive(folder: &Path) -> Result<DirectoryLock> {
        let path = folder.join("lock");
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = options.map_err(|error| join(&path, &error, "open the lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(folder, &mut file)),
            Err(TryLockError::Error(error)) => return Err(join(&path, &error, "lock it")),
        }
        let noted = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()))
            .and_then(|()| file.flush());
        noted.map_err(|error| join(&path, &error, "write it"))?;
        Ok(DirectoryLock { file, is_exclusive: true })
    }

    /// A reader's lock; `None` where there is no lock file and none can be made (a read-only file system has no
    /// writer).
    ///
    /// # Errors
    /// `Locked` if a writer has the volume.
    pub fn shared(folder: &Path) -> Result<Option<DirectoryLock>> {
        let path = folder.join("lock");
        let Ok(mut file) = File::open(&path) else { return Ok(None) };
        match file.try_lock_shared() {
            Ok(()) => Ok(Some(DirectoryLock { file, is_exclusive: false })),
            Err(TryLockError::WouldBlock) => Err(held(folder, &mut file)),
            Err(TryLockError::Error(error)) => Err(join(&path, &error, "lock it")),
        }
    }
}

fn held(folder: &Path, file: &mut File) -> Error {
    let mut text = String::new();
    let read = file.take(20).read_to_string(&mut text);
    let holder = match (read, text.trim().parse::<u32>()) {
        (Ok(_), Ok(pid)) => format!("process {pid} has it open for writing"),
        _ => "other processes have it open for reading".to_owned(),
    };
    Error::new(ErrorKind::Locked, format!("the volume {} is in use: {holder}", folder.display()))
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        if self.is_exclusive {
            // Whoever finds it held later must not be told of this process. If that fails, the number is merely old.
            let _ = self.file.set_len(0);
        }
    }
}
