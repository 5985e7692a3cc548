//! `volume.json`: where a volume's classes are.
//!
//! The log of the volume is the truth about its classes; this file says where to find their devices, and what lies
//! under them. It is replaced as a whole: written beside, made durable, renamed.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::settings::ClassSettings;
use crate::{Error, ErrorKind, Result};

const FORMAT: u32 = 1;

pub(super) const FILE: &str = "volume.json";

/// The volume's own metadata.
pub(super) const METADATA: &str = "metadata";

/// The same as `volume.json`, while the volume is being made.
pub(super) const CREATING: &str = "volume.json.creating";

/// What is in a volume's folder beside the files of classes.
const OWN_FILES: [&str; 6] =
    [METADATA, "lock", "volume.json", CREATING, "volume.json.new", "volume.json.creating.new"];

/// A class of a volume in a folder.
///
/// ```
/// use tanada_volume::directory::ClassConfig;
///
/// let class = ClassConfig::new("flash", vec!["flash".into()], Some(64 << 20));
/// assert_eq!((class.name.as_str(), class.paths.len()), ("flash", 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassConfig {
    /// Its name.
    pub name: String,
    /// Where its devices are: folders, files or block devices; relative paths begin at the volume's folder.
    pub paths: Vec<PathBuf>,
    /// Bytes of data it holds, over all devices; by default what its block devices hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Bytes that go to one device before the next has its turn.
    pub segment_bytes: u64,
    /// A model of a slower device to put under each of its devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Files that were made for the class, and go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<PathBuf>,
}

impl ClassConfig {
    /// A class named `name` on `paths`, with segments of 128 KiB and no model.
    pub fn new(name: &str, paths: Vec<PathBuf>, size_bytes: Option<u64>) -> ClassConfig {
        let segment_bytes = ClassSettings::default().segment_bytes;
        ClassConfig { name: name.to_owned(), paths, size_bytes, segment_bytes, model: None, made: Vec::new() }
    }

    pub(super) fn settings(&self) -> ClassSettings {
        ClassSettings {
            name: self.name.clone(),
            segment_bytes: self.segment_bytes,
            size_bytes: self.size_bytes.unwrap_or_default(),
        }
    }

    /// With a file for each folder, and with a size.
    pub(super) fn resolved(&self, folder: &Path, volume: [u8; 16], chunk_bytes: u64) -> Result<ClassConfig> {
        let mut class = self.clone();
        class.made.clear();
        let id: String = volume.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        for (index, path) in class.paths.iter_mut().enumerate() {
            if folder.join(&*path).is_dir() {
                *path = path.join(format!("tanada-{id}-{}-{index}", self.name));
            }
            if !folder.join(&*path).exists() {
                class.made.push(path.clone());
            }
        }
        if class.size_bytes.is_none() {
            class.size_bytes = Some(class.size_of_devices(folder, chunk_bytes)?);
        }
        Ok(class)
    }

    fn size_of_devices(&self, folder: &Path, chunk_bytes: u64) -> Result<u64> {
        let mut least = u64::MAX;
        for path in self.device_paths(folder) {
            let options = tanada_io::DeviceOptions::default();
            let device = tanada_io::Device::open(&path, &options);
            let size = device.and_then(|device| device.size_bytes()).map_err(|error| {
                Error::io(format!("class {}: give its size, for it cannot be told", self.name), &error)
            })?;
            least = least.min(size);
        }
        // Each device has its label first.
        let usable = least.saturating_sub(self.segment_bytes) / self.segment_bytes * self.segment_bytes;
        Ok(usable * self.paths.len() as u64 / chunk_bytes * chunk_bytes)
    }

    pub(super) fn device_paths(&self, folder: &Path) -> Vec<PathBuf> {
        self.paths.iter().map(|path| folder.join(path)).collect()
    }

    pub(super) fn remove_made_files(&self, folder: &Path) -> Result<()> {
        for path in &self.made {
            let path = folder.join(path);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(join(&path, &error, "remove the file"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// New classes must not take what others need: none of their paths twice, and no file with data in it. A block device
/// is overwritten.
///
/// # Errors
/// `InvalidInput`, `AlreadyExists`, or if a file cannot be read.
pub(super) fn check_free(classes: &[ClassConfig], folder: &Path) -> Result<()> {
    let mut seen = Vec::new();
    let folder_itself = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    for path in classes.iter().flat_map(|class| class.device_paths(folder)) {
        let whole = whole(&path);
        let is_own = |name: &&str| whole == folder_itself.join(name);
        if OWN_FILES.iter().any(is_own) {
            let message = format!("{} is the volume's own: name another file", path.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if seen.contains(&whole) {
            let message = format!("{} is named twice: a device is of one class, once", path.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        seen.push(whole);
        if path.is_file() && has_data(&path)? {
            let message = format!(
                "{} has data in it, which would be overwritten: name another file, or remove it if nobody needs it",
                path.display()
            );
            return Err(Error::new(ErrorKind::AlreadyExists, message));
        }
    }
    Ok(())
}

/// The path by which a file is known however it is named, whether it is there yet or not.
fn whole(path: &Path) -> PathBuf {
    let in_folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(in_folder).unwrap_or_else(|| path.to_owned())
}

/// Whether anything but zeros is at a file's beginning, where files and labels begin.
fn has_data(path: &Path) -> Result<bool> {
    let mut beginning = Vec::new();
    let read = File::open(path).and_then(|file| file.take(64 << 10).read_to_end(&mut beginning));
    read.map_err(|error| join(path, &error, "read"))?;
    Ok(beginning.iter().any(|byte| *byte != 0))
}

/// What `volume.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryConfig {
    format: u32,
    id: String,
    /// Fastest first.
    pub classes: Vec<ClassConfig>,
}

impl DirectoryConfig {
    pub(super) fn new(id: [u8; 16]) -> DirectoryConfig {
        let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
        DirectoryConfig { format: FORMAT, id, classes: Vec::new() }
    }

    /// The volume's id.
    ///
    /// # Errors
    /// `Corrupted` if the file has none.
    pub fn id(&self) -> Result<[u8; 16]> {
        let damaged = || Error::corrupted(format!("volume.json: {:?} is no id of a volume", self.id));
        let mut id = [0; 16];
        if self.id.len() != 32 || !self.id.is_ascii() {
            return Err(damaged());
        }
        for (i, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&self.id[2 * i..2 * i + 2], 16).map_err(|_| damaged())?;
        }
        Ok(id)
    }

    /// Reads the file of `folder`.
    ///
    /// # Errors
    /// `NotFound` if there is none, `Corrupted`, `FutureFormat`.
    pub fn load(folder: &Path) -> Result<DirectoryConfig> {
        DirectoryConfig::load_from(folder, FILE)
    }

    pub(super) fn load_from(folder: &Path, name: &str) -> Result<DirectoryConfig> {
        let path = folder.join(name);
        let text = std::fs::read(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let is_there = |file| folder.join(file).exists();
                let why = if is_there(CREATING) {
                    ": its making was cut short; create it again"
                } else if is_there(METADATA) {
                    return Error::corrupted(format!(
                        "{} is missing, though {} is there: put it back from a copy",
                        path.display(),
                        folder.join(METADATA).display()
                    ));
                } else {
                    "; tanada volume create makes one"
                };
                Error::new(ErrorKind::NotFound, format!("{} holds no volume{why}", folder.display()))
            }
            _ => join(&path, &error, "read it"),
        })?;
        let config: DirectoryConfig = serde_json::from_slice(&text).map_err(|error| {
            let message =
                format!("{} is not what Tanada wrote: put it back from a copy: {error}", path.display());
            Error::corrupted(message)
        })?;
        if config.format > FORMAT {
            let message =
                format!("{} has format {}, this program knows {FORMAT}", path.display(), config.format);
            return Err(Error::new(ErrorKind::FutureFormat, message));
        }
        Ok(config)
    }

    pub(super) fn store(&self, folder: &Path) -> Result<()> {
        self.store_as(folder, FILE)
    }

    pub(super) fn store_as(&self, folder: &Path, name: &str) -> Result<()> {
        let (path, beside) = (folder.join(name), folder.join(format!("{name}.new")));
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| Error::corrupted(format!("{}: {error}", path.display())))?;
        let written = || -> std::io::Result<()> {
            let mut file = std::fs::File::create(&beside)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&beside, &path)?;
            std::fs::File::open(folder)?.sync_all()
        };
        written().map_err(|error| join(&path, &error, "write it"))
    }
}

pub(super) fn join(folder: &Path, error: &std::io::Error, what: &str) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        std::io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
        std::io::ErrorKind::StorageFull => ErrorKind::NoSpace,
        _ => ErrorKind::Device,
    };
    Error::new(kind, format!("{}: cannot {what}: {error}", folder.display()))
}
