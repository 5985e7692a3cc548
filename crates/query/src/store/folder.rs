//! Files of the host. A name is an absolute path without its first slash.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tanada_io::{Device, DeviceOptions, Method};

use super::medium::{Entry, Identity, Medium, Opened, Source, Target};
use crate::{Error, ErrorKind, Result};

/// The files of the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct Folders;

impl Folders {
    /// The name of a path of the host; relative ones are taken from the process's folder.
    ///
    /// # Errors
    /// `InvalidInput` if it is no text, or has a part that names nothing.
    pub fn name(path: &Path) -> Result<String> {
        let invalid = |why: &str| {
            let message = format!("{}: {why}", path.display());
            Error::new(ErrorKind::InvalidInput, message)
        };
        let absolute = std::path::absolute(path).map_err(|error| invalid(&error.to_string()))?;
        // Steps upwards are taken by the folders as they are, links included.
        let parent = absolute.parent().filter(|parent| parent.exists());
        let real = match (parent.map(fs::canonicalize), absolute.file_name()) {
            (Some(Ok(parent)), Some(name)) => parent.join(name),
            _ => absolute,
        };
        let text = real.to_str().ok_or_else(|| invalid("its name is not UTF-8; give it another name"))?;
        Ok(text.trim_start_matches('/').to_owned())
    }
}

/// The path of a name.
fn path_of(name: &str) -> PathBuf {
    Path::new("/").join(name)
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Resources,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("cannot {what} {}: {error}", path.display()))
}

impl fmt::Display for Folders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("files of this machine")
    }
}

impl Medium for Folders {
    fn path_of(&self, name: &str) -> String {
        format!("/{name}")
    }

    fn shown(&self, name: &str) -> String {
        path_of(name).display().to_string()
    }

    fn open(&self, name: &str, method: Method) -> Result<Opened> {
        let path = path_of(name);
        let opened = || {
            let file = File::open(&path)?;
            let metadata = file.metadata()?;
            Ok::<_, io::Error>((file, metadata))
        };
        let (file, metadata) = opened().map_err(|error| failed("open", &path, &error))?;
        if !metadata.is_file() {
            let message = format!("{} is no file", path.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let device = Device::open(&path, &DeviceOptions { method, ..DeviceOptions::default() })?;
        let identity = Identity::of_host(&metadata);
        Ok(Opened { device, path, identity, source: Source::Host(file) })
    }

    fn entries(&self, folder: &str) -> Result<Vec<Entry>> {
        let path = path_of(folder);
        let failed = |error: io::Error| failed("read the folder", &path, &error);
        let mut entries = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // What a link leads to.
            let is_folder = fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir());
            if let Some(name) = entry.file_name().to_str() {
                entries.push(Entry { name: name.to_owned(), is_folder });
            }
        }
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    fn is_folder(&self, name: &str) -> bool {
        path_of(name).is_dir()
    }

    fn create<'a>(&'a self, name: &'a str, replaces: bool) -> BoxFuture<'a, Result<Box<dyn Target>>> {
        async move {
            let path = path_of(name);
            check_target(&path, replaces)?;
            let temporary = temporary(&path);
            let file = File::create_new(&temporary).map_err(|error| failed("create", &temporary, &error))?;
            // Removed from here on, whatever happens.
            let written = Written { path: temporary, committed: false };
            let options = DeviceOptions { writable: true, ..DeviceOptions::default() };
            let device = Device::open(&written.path, &options)?;
            Ok(Box::new(FolderTarget { written, file, device, path, replaces }) as Box<dyn Target>)
        }
        .boxed()
    }

    fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<()>> {
        async move {
            let path = path_of(name);
            fs::remove_file(&path).map_err(|error| failed("remove", &path, &error))
        }
        .boxed()
    }
}

fn check_target(path: &Path, replaces: bool) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            let message = format!("{} is a folder; name a file in it", path.display());
            Err(Error::new(ErrorKind::InvalidInput, message))
        }
        Ok(_) if !replaces => Err(exists(path)),
        _ => Ok(()),
    }
}

fn exists(path: &Path) -> Error {
    let message = format!(
        "{} exists already; name another file, or add OPTIONS (overwrite true) to replace it",
        path.display()
    );
    Error::new(ErrorKind::InvalidInput, message)
}

/// A name beside `path` that no file has.
fn temporary(path: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    // A long name has no place for more letters.
    let name: String = name.chars().take(40).collect();
    path.with_file_name(format!(".{name}.{}-{number}.tanada-tmp", std::process::id()))
}

/// A temporary file.
#[derive(Debug)]
struct Written {
    path: PathBuf,
    committed: bool,
}

impl Drop for Written {
    fn drop(&mut self) {
        if !self.committed {
            // There is nobody to be told.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[derive(Debug)]
struct FolderTarget {
    written: Written,
    file: File,
    device: Device,
    path: PathBuf,
    replaces: bool,
}

impl Target for FolderTarget {
    fn device(&self) -> &Device {
        &self.device
    }

    fn commit(&mut self, bytes: u64) -> BoxFuture<'_, Result<()>> {
        async move {
            let path = &self.path;
            self.file.set_len(bytes).map_err(|error| failed("write", path, &error))?;
            self.device.sync().await?;
            // The length, too.
            self.file.sync_all().map_err(|error| failed("sync", path, &error))?;
            let renamed = match self.replaces {
                true => fs::rename(&self.written.path, path),
                false => rename_to_new(&self.written.path, path),
            };
            renamed.map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => exists(path),
                _ => failed("name", path, &error),
            })?;
            self.written.committed = true;
            // The name is durable when its folder is; a folder that cannot be synced keeps it all the same.
            if let Some(Ok(folder)) = path.parent().map(File::open) {
                let _ = folder.sync_all();
            }
            Ok(())
        }
        .boxed()
    }
}

/// Renames unless there is a file of that name.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => match to.symlink_metadata() {
            Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            // This file system does not know the flag.
            Err(_) => fs::rename(from, to),
        },
        other => Ok(other?),
    }
}
