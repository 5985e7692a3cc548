//! A volume in a folder: which files and devices it is made of.
//!
//! The folder holds `volume.json` (what the classes are and where their devices are), `metadata`, and `lock`. A class's
//! path is a folder (a file is made there), a file, or a block device. A device model is kept as text here and put
//! under the class by who opens the volume ([`Settings::model`]).
//!
//! One process writes, or several read: a lock on `lock`, which the kernel gives up with the process, keeps it so.

mod cleaners;
mod config;
mod files;
mod lock;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tanada_io::{BufferPool, Device, DeviceOptions, Method, ModelledArray, Timeline};

pub use cleaners::CLEANER_MEMORY_BYTES;
pub use config::{ClassConfig, DirectoryConfig};
pub use files::HostOpener;
pub use lock::DirectoryLock;

use cleaners::CleanerThreads;
use config::{CREATING, FILE, METADATA, join};

use crate::parts::ClassParts;
use crate::settings::{OpenOptions, VolumeSettings};
use crate::{CheckReport, Error, ErrorKind, Parts, Relocated, Relocation, Result, Volume};

/// Makes the array that a device model, given as text, describes: one for each device of a class.
pub type ModelFn = Arc<dyn Fn(&str) -> Result<ModelledArray> + Send + Sync>;

/// How a folder's files are opened.
#[derive(Clone, Default)]
pub struct Settings {
    /// How I/O is done.
    pub method: Method,
    /// Makes the models that are put under devices; without it a class that has one is refused.
    pub model: Option<ModelFn>,
    /// Buffers; a small pool of its own by default.
    pub buffers: Option<Arc<BufferPool>>,
    /// The clock of statistics and budgets; the machine's by default.
    pub clock: Option<Arc<dyn tanada_base::Clock>>,
    /// Where the keys of encrypted objects are; nowhere by default.
    pub keys: Keys,
    /// Threads that transform and store pages behind the back of those who write them; by default none: who writes
    /// does it.
    pub cleaners: usize,
}

/// Where keys are.
#[derive(Debug, Clone, Default)]
pub enum Keys {
    /// Nowhere: encrypted objects cannot be read.
    #[default]
    Nowhere,
    /// In the environment: [`KeyRing::from_environment`](crate::KeyRing::from_environment).
    Environment,
    /// Here.
    Ring(crate::KeyRing),
}

impl Keys {
    fn ring(&self) -> Result<crate::KeyRing> {
        match self {
            Keys::Nowhere => Ok(crate::KeyRing::default()),
            Keys::Environment => crate::KeyRing::from_environment(|name| std::env::var_os(name)),
            Keys::Ring(keys) => Ok(keys.clone()),
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("method", &self.method)
            .field("model", &self.model.is_some())
            .finish_non_exhaustive()
    }
}

/// An open volume in a folder, and its lock.
///
/// ```
/// use tanada_volume::directory::{ClassConfig, Directory, Settings};
/// use tanada_volume::{OpenOptions, VolumeSettings};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("volume");
/// let flash = ClassConfig::new("flash", vec!["flash".into()], Some(16 << 20));
/// # tanada_io::wait(async {
/// let directory = Directory::create(&path, &VolumeSettings::default(), &[flash], Settings::default()).await?;
/// directory.close().await?;
/// let directory = Directory::open(&path, &OpenOptions::default(), Settings::default()).await?;
/// assert_eq!(directory.volume().classes()[0].name, "flash");
/// directory.close().await?;
/// # Ok::<(), tanada_volume::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    settings: Settings,
    config: parking_lot::Mutex<DirectoryConfig>,
    volume: Volume,
    // Before the lock: nothing is stored any more when another process may open the volume.
    _cleaners: Option<CleanerThreads>,
    _lock: Option<DirectoryLock>,
}

/// The identity of a new volume.
fn random_id(path: &Path) -> Result<[u8; 16]> {
    let mut id = [0; 16];
    let drawn = std::fs::File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut id));
    drawn.map_err(|error| join(path, &error, "draw an id from /dev/urandom"))?;
    Ok(id)
}

impl Directory {
    /// Makes a volume in the folder `path`, which is made if need be and must not hold one. `classes` are fastest
    /// first; of `volume` all but the classes counts, and an id of zeros, as by default, is drawn.
    ///
    /// # Errors
    /// As [`Volume::create`]; `InvalidInput` if a device is named twice, `AlreadyExists` if a file has data in it; and
    /// if files cannot be made.
    pub async fn create(
        path: &Path,
        volume: &VolumeSettings,
        classes: &[ClassConfig],
        settings: Settings,
    ) -> Result<Directory> {
        let is_new = !path.exists();
        std::fs::create_dir_all(path).map_err(|error| join(path, &error, "make the folder"))?;
        if path.join("volume.json").exists() {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("{} holds a volume already", path.display()),
            ));
        }
        let lock = DirectoryLock::exclusive(path)?;
        let made = Directory::create_in(path, volume, classes, settings).await;
        made.map(|made| Directory { _lock: Some(lock), ..made }).inspect_err(|_| {
            // Why it failed is what matters: what cannot be cleared now is by the next creation here.
            let _ = clear_failed(path, is_new);
        })
    }

    /// The same in a folder that is there and is locked.
    async fn create_in(
        path: &Path,
        volume: &VolumeSettings,
        classes: &[ClassConfig],
        settings: Settings,
    ) -> Result<Directory> {
        clear_leftovers(path)?;
        let mut volume = volume.clone();
        if volume.id == [0; 16] {
            volume.id = random_id(path)?;
        }
        let mut config = DirectoryConfig::new(volume.id);
        for class in classes {
            config.classes.push(class.resolved(path, volume.id, volume.chunk_bytes)?);
        }
        config::check_free(&config.classes, path)?;
        volume.classes = config.classes.iter().map(ClassConfig::settings).collect();
        // Until the volume is there, this says which files are leftovers.
        config.store_as(path, CREATING)?;
        let mut parts = parts(path, &config, &settings, Access::Create)?;
        let cleaners = CleanerThreads::start(settings.cleaners, settings.method)?;
        parts.cleaners = cleaners.as_ref().map(CleanerThreads::part);
        let made = Volume::create(parts, &volume).await?;
        config.store(path)?;
        remove_if_there(&path.join(CREATING))?;
        let config = parking_lot::Mutex::new(config);
        let path = path.to_owned();
        Ok(Directory { path, settings, config, volume: made, _cleaners: cleaners, _lock: None })
    }

    /// Opens the volume in the folder `path`.
    ///
    /// # Errors
    /// `Locked` if another process has it, and as [`Volume::open`].
    pub async fn open(path: &Path, options: &OpenOptions, settings: Settings) -> Result<Directory> {
        let config = DirectoryConfig::load(path)?;
        let lock = if options.read_only {
            DirectoryLock::shared(path)?
        } else {
            Some(DirectoryLock::exclusive(path)?)
        };
        let access = if options.read_only { Access::Read } else { Access::Write };
        let mut parts = parts(path, &config, &settings, access)?;
        let count = if options.read_only { 0 } else { settings.cleaners };
        let cleaners = CleanerThreads::start(count, settings.method)?;
        parts.cleaners = cleaners.as_ref().map(CleanerThreads::part);
        let options = OpenOptions { expected_id: Some(config.id()?), ..*options };
        let volume = Volume::open(parts, &options).await.map_err(|error| lost(path, error))?;
        let config = parking_lot::Mutex::new(config);
        let path = path.to_owned();
        Ok(Directory { path, settings, config, volume, _cleaners: cleaners, _lock: lock })
    }

    /// Checks the volume in the folder `path`, or repairs it.
    ///
    /// # Errors
    /// `Locked` if another process has it, and as [`Volume::check`].
    pub async fn check(path: &Path, repair: bool, settings: Settings) -> Result<CheckReport> {
        let config = DirectoryConfig::load(path)?;
        if repair {
            let _lock = DirectoryLock::exclusive(path)?;
            let repaired = Volume::repair(&parts(path, &config, &settings, Access::Write)?).await;
            return repaired.map_err(|error| lost(path, error));
        }
        let _lock = DirectoryLock::shared(path)?;
        let checked = Volume::check(&parts(path, &config, &settings, Access::Read)?).await;
        checked.map_err(|error| lost(path, error))
    }

    /// The volume.
    pub fn volume(&self) -> &Volume {
        &self.volume
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the classes are and where, as it is now.
    pub fn config(&self) -> DirectoryConfig {
        self.config.lock().clone()
    }

    /// Adds a class, before those of `rank` or more.
    ///
    /// # Errors
    /// As [`Volume::add_class`]; `InvalidInput` if a device is named twice, `AlreadyExists` if a file has data in it.
    pub async fn add_class(&self, class: &ClassConfig, rank: usize) -> Result<()> {
        let class = class.resolved(&self.path, self.volume.id(), self.volume.chunk_bytes())?;
        config::check_free(std::slice::from_ref(&class), &self.path)?;
        class.settings().check(self.volume.chunk_bytes())?;
        // Its place is written below, and would be that of the one that is there.
        if self.volume.classes().iter().any(|other| other.name == class.name) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a class {} already", class.name),
            ));
        }
        let (devices, _) = class_parts(&self.path, &class, &self.settings, Access::Create)?;
        // Written first: a class that the volume does not know is passed over at the next opening; one whose place is
        // forgotten is missing.
        let config = {
            let mut config = self.config.lock();
            config.classes.retain(|other| other.name != class.name);
            let rank = rank.min(config.classes.len());
            config.classes.insert(rank, class.clone());
            config.clone()
        };
        config.store(&self.path)?;
        self.volume.add_class(&class.settings(), devices, rank).await
    }

    /// Removes a drained class, and the files that were made for it.
    ///
    /// # Errors
    /// As [`Volume::remove_class`].
    pub async fn remove_class(&self, name: &str) -> Result<()> {
        self.volume.remove_class(name).await?;
        let (config, removed) = {
            let mut config = self.config.lock();
            let place = config.classes.iter().position(|class| class.name == name);
            let removed = place.map(|place| config.classes.remove(place));
            (config.clone(), removed)
        };
        config.store(&self.path)?;
        if let Some(class) = removed {
            class.remove_made_files(&self.path)?;
        }
        Ok(())
    }

    /// Makes a class larger or smaller.
    ///
    /// # Errors
    /// As [`Volume::resize_class`].
    pub async fn resize_class(
        &self,
        name: &str,
        size_bytes: u64,
        relocation: &Relocation,
    ) -> Result<Relocated> {
        let moved = self.volume.resize_class(name, size_bytes, relocation).await?;
        let config = {
            let mut config = self.config.lock();
            for class in config.classes.iter_mut().filter(|class| class.name == name) {
                class.size_bytes = Some(size_bytes);
            }
            config.clone()
        };
        config.store(&self.path)?;
        Ok(moved)
    }

    /// Makes everything durable and marks the volume as stopped cleanly.
    ///
    /// # Errors
    /// As [`Volume::close`].
    pub async fn close(self) -> Result<()> {
        self.volume.close().await
    }
}

/// Removes what a creation that was cut short has left.
fn clear_leftovers(path: &Path) -> Result<()> {
    let metadata = path.join(METADATA);
    if !path.join(CREATING).exists() {
        if !metadata.exists() {
            return Ok(());
        }
        let message = format!(
            "{} is there, but volume.json is not: bring volume.json back, or remove that file if no volume is wanted",
            metadata.display()
        );
        return Err(Error::new(ErrorKind::AlreadyExists, message));
    }
    for class in DirectoryConfig::load_from(path, CREATING)?.classes {
        class.remove_made_files(path)?;
    }
    remove_if_there(&metadata)
}

/// Removes what a creation that failed has left, with its folder if that was made for it.
fn clear_failed(path: &Path, is_new: bool) -> Result<()> {
    if path.join("volume.json").exists() {
        // The volume is there, though it may not be durable.
        return Ok(());
    }
    clear_leftovers(path)?;
    remove_if_there(&path.join(CREATING))?;
    if is_new {
        remove_if_there(&path.join("lock"))?;
        std::fs::remove_dir(path).map_err(|error| join(path, &error, "remove the folder"))?;
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(join(path, &error, "remove it")),
        _ => Ok(()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    Create,
}

fn parts(folder: &Path, config: &DirectoryConfig, settings: &Settings, access: Access) -> Result<Parts> {
    let metadata =
        open_device(&folder.join(METADATA), settings, access).map_err(|error| match error.kind() {
            tanada_io::ErrorKind::NotFound => {
                Error::corrupted(format!("{error}: put {METADATA} back from a copy"))
            }
            _ => Error::io("metadata", &error),
        })?;
    let mut parts = Parts::new(metadata);
    parts.keys = settings.keys.ring()?;
    let mut arrays = Vec::new();
    for class in &config.classes {
        let (class, of_class) = class_parts(folder, class, settings, access)?;
        parts.classes.push(class);
        arrays = of_class;
    }
    // Adopted files lie on what the slowest class has for disks.
    parts.opener = Arc::new(HostOpener::new(settings.method).on_arrays(arrays));
    if let Some(buffers) = &settings.buffers {
        parts.buffers = buffers.clone();
    }
    if let Some(clock) = &settings.clock {
        parts.clock = clock.clone();
    }
    parts.wall_time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok();
    parts.timer = Some(Arc::new(timeline()));
    Ok(parts)
}

/// The virtual timeline of the process if it has one: who moves chunks must not sleep by another clock than the
/// devices'.
fn timeline() -> Timeline {
    Timeline::current_virtual().unwrap_or_else(Timeline::real)
}

/// `error`, unless it says that there is no volume: the folder is that of one, so its metadata are lost.
fn lost(folder: &Path, error: Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::corrupted(format!(
            "{error}, though {} says that there is one: it was emptied or written over; put it back from a copy",
            folder.join(FILE).display()
        )),
        _ => error,
    }
}

fn open_device(path: &Path, settings: &Settings, access: Access) -> tanada_io::Result<Device> {
    let options = DeviceOptions {
        method: settings.method,
        writable: access != Access::Read,
        create: access == Access::Create,
    };
    Device::open(path, &options)
}

/// The devices of a class, and the arrays that they lie on if it is emulated.
fn class_parts(
    folder: &Path,
    class: &ClassConfig,
    settings: &Settings,
    access: Access,
) -> Result<(ClassParts, Vec<ModelledArray>)> {
    let (mut devices, mut arrays) = (Vec::new(), Vec::new());
    for path in class.device_paths(folder) {
        let device = match open_device(&path, settings, access) {
            Ok(device) => device,
            // A device that is missing is the volume's to judge.
            Err(error) if access != Access::Create && error.kind() == tanada_io::ErrorKind::NotFound => {
                devices.push(None);
                continue;
            }
            Err(error) => return Err(Error::io(format!("class {}", class.name), &error)),
        };
        devices.push(Some(match (&class.model, &settings.model) {
            (None, _) => device,
            (Some(model), Some(make)) => {
                let array = make(model)?;
                let device = array.place(device)?;
                arrays.push(array);
                device
            }
            (Some(model), None) => {
                let message =
                    format!("class {} has the device model {model:?}, and none can be made here", class.name);
                return Err(Error::invalid(message));
            }
        }));
    }
    Ok((ClassParts { name: class.name.clone(), devices }, arrays))
}
