//! Where spills lie: a folder, or a class of a volume.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use tanada_io::{Device, DeviceOptions, Executors, Method};
use tanada_volume::directory::Directory;
use tanada_volume::{Attributes, Object};

use crate::{Error, ErrorKind, Result};

/// Objects of volumes that hold spills are called by this and a number.
const OBJECT_PREFIX: &str = "tanada.spill.";
/// Files of folders, for the moment in which they have a name.
const FILE_PREFIX: &str = "tanada-spill-";
/// By how much an object of a volume grows at once.
const GROWTH_BYTES: u64 = 16 << 20;

/// Numbers of files, for names that are used once.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Where new spill files are made.
#[derive(Clone)]
pub(crate) enum Place {
    /// A folder of the host.
    Folder { path: PathBuf, method: Method },
    /// Objects of a volume, pinned to a class where one is named.
    Volume { directory: Arc<Directory>, class: Option<String> },
}

/// The bytes of one file.
#[derive(Debug)]
pub(super) enum Storage {
    /// A file without a name, whose space is free when its device is closed.
    File(Device),
    /// An object, deleted when this is dropped.
    Object { object: Object, device: Device, directory: Arc<Directory>, executors: Arc<Executors> },
}

impl Place {
    /// The folder `path`, where empty files of killed processes are removed.
    ///
    /// # Errors
    /// If it is no folder in which files can be made.
    pub(crate) fn folder(path: &Path, method: Method) -> Result<Place> {
        let place = Place::Folder { path: path.to_owned(), method };
        let described = path.display();
        if !path.is_dir() {
            let message = format!("tanada.spill: {described} is not a folder; name one that exists");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        remove_leftovers(path);
        open_unnamed(path, method)?;
        Ok(place)
    }

    /// The volume in `directory`, where objects that a killed process left are deleted.
    ///
    /// # Errors
    /// If it has no such class, cannot be written, or deleting fails.
    pub(crate) async fn volume(
        directory: Arc<Directory>,
        class: Option<&str>,
        executors: &Executors,
    ) -> Result<Place> {
        let volume = directory.volume();
        if let Some(reason) = volume.read_only_reason() {
            return Err(reason.into());
        }
        if let Some(class) = class
            && !volume.classes().iter().any(|known| known.name == class)
        {
            let names: Vec<String> = volume.classes().into_iter().map(|known| known.name).collect();
            let message =
                format!("tanada.spill: no class '{class}' in the volume; it has {}", names.join(", "));
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let own = own_prefix();
        delete_objects(&directory, |name| !name.starts_with(&own), executors).await?;
        Ok(Place::Volume { directory, class: class.map(str::to_owned) })
    }

    /// Leaves a volume, in which nothing remains; a query that still spills there fails.
    pub(crate) async fn leave(&self, executors: &Executors) -> Result<()> {
        match self {
            Place::Folder { .. } => Ok(()),
            Place::Volume { directory, .. } => delete_objects(directory, |_| true, executors).await,
        }
    }

    /// Bytes free for spills.
    pub(super) fn free_bytes(&self) -> Result<u64> {
        match self {
            Place::Folder { path, .. } => {
                let free = rustix::fs::statvfs(path)
                    .map_err(|error| failed("tell the free space of", path, &error.into()))?;
                Ok(free.f_bavail.saturating_mul(free.f_frsize))
            }
            Place::Volume { directory, class } => {
                let classes = directory.volume().classes();
                let counted = classes.iter().filter(|of| class.as_ref().is_none_or(|name| *name == of.name));
                let chunks: u64 = counted.map(tanada_volume::ClassInfo::free).sum();
                Ok(chunks * directory.volume().chunk_bytes())
            }
        }
    }

    /// A new, empty file.
    pub(super) fn create(&self, executors: &Arc<Executors>) -> Result<Storage> {
        match self {
            Place::Folder { path, method } => Ok(Storage::File(open_unnamed(path, *method)?)),
            Place::Volume { directory, class } => {
                let name = format!("{}{}", own_prefix(), NEXT.fetch_add(1, Ordering::Relaxed));
                let attributes = Attributes { pin: class.clone(), ..Attributes::default() };
                let object = directory.volume().create_object(&name, &attributes)?;
                let (directory, executors) = (Arc::clone(directory), Arc::clone(executors));
                Ok(Storage::Object { device: object.device(), object, directory, executors })
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Folder { path, .. } => write!(f, "{}", path.display()),
            Place::Volume { directory, class: Some(class) } => {
                write!(f, "class {class} of the volume {}", directory.path().display())
            }
            Place::Volume { directory, class: None } => {
                write!(f, "the volume {}", directory.path().display())
            }
        }
    }
}

impl Storage {
    pub(super) fn device(&self) -> &Device {
        match self {
            Storage::File(device) | Storage::Object { device, .. } => device,
        }
    }

    /// Has room for `len` bytes made, where writes do not make it themselves.
    pub(super) async fn reserve(&self, len: u64) -> Result<()> {
        match self {
            Storage::File(_) => Ok(()),
            Storage::Object { object, .. } if object.size_bytes() >= len => Ok(()),
            Storage::Object { object, .. } => Ok(object.resize(len.next_multiple_of(GROWTH_BYTES)).await?),
        }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Storage::Object { object, directory, executors, .. } = self {
            let (name, directory) = (object.name(), Arc::clone(directory));
            // Where this fails, the object is deleted when the volume is chosen again.
            executors.spawn(move || async move { directory.volume().delete(&name).await }).detach();
        }
    }
}

/// How names of this process's objects begin: others are left over, since a volume has one writer.
fn own_prefix() -> String {
    static STARTED: OnceLock<u128> = OnceLock::new();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{OBJECT_PREFIX}{}.", STARTED.get_or_init(now))
}

/// Deletes the spills that are in a volume and that `is_unwanted` names.
async fn delete_objects(
    directory: &Arc<Directory>,
    is_unwanted: impl Fn(&str) -> bool,
    executors: &Executors,
) -> Result<()> {
    let objects = directory.volume().objects().into_iter().map(|object| object.name());
    let spills: Vec<String> =
        objects.filter(|name| name.starts_with(OBJECT_PREFIX) && is_unwanted(name)).collect();
    let directory = Arc::clone(directory);
    let deleted = executors.spawn(move || async move {
        for name in spills {
            match directory.volume().delete(&name).await {
                // It was being deleted.
                Err(error) if error.kind() == tanada_volume::ErrorKind::NotFound => {}
                deleted => deleted?,
            }
        }
        Ok::<(), tanada_volume::Error>(())
    });
    Ok(deleted.await??)
}

/// A file of `folder` that has lost its name again.
fn open_unnamed(folder: &Path, method: Method) -> Result<Device> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = folder.join(format!("{FILE_PREFIX}{}-{number}", std::process::id()));
    let options = DeviceOptions { method, create: true, ..DeviceOptions::default() };
    let device = Device::open(&path, &options)?;
    std::fs::remove_file(&path).map_err(|error| failed("remove the name of", &path, &error))?;
    Ok(device)
}

/// Removes files of processes that ended between the making of a file and the removal of its name.
fn remove_leftovers(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(FILE_PREFIX)?.split('-').next());
        let is_empty = entry.metadata().is_ok_and(|of| of.is_file() && of.len() == 0);
        if let Some(Ok(owner)) = owner.map(str::parse::<u32>)
            && is_empty
            && !Path::new("/proc").join(owner.to_string()).exists()
        {
            // Another process may have removed it at the same time.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("spilling: cannot {what} {}: {error}", path.display()))
}
