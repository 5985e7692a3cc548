//! A volume of two classes with a server's files in the slow one, mounted by this process and steered by a policy.
//!
//! 1. A template is made once: nothing is emulated, so the files are copied into it at the speed of the machine.
//! 2. A run gets a copy of a volume, device models below its classes, and a fast class of the wanted size.
//! 3. A place mounts it, with a policy if there is one, as `tanada mount --policy` does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tanada_advisor::{Guide, Listening, listen};
use tanada_io::{ExecutorOptions, Executors, ModelSpec};
use tanada_mount::{FileSystem, MountOptions, Mounted};
use tanada_volume::directory::{ClassConfig, Directory, DirectoryConfig};
use tanada_volume::{Object, OpenOptions, Relocation, Volume, VolumeSettings};
use tokio::runtime::Runtime;

use super::watching::{Recording, Watching};
use crate::pst::live::copy_folder;
use crate::{Error, Result};

/// The classes.
const FAST: &str = "ssd";
const SLOW: &str = "disks";

/// The folder of the data directory below the mount.
const SERVER: &str = "server";

/// What a server writes beside its tables: logs, temporary tablespaces.
const BYTES_OF_SERVER: u64 = 512 << 20;

/// Threads that read the kernel's requests: the default of `tanada mount`.
const THREADS: usize = 2;

/// What volumes are served with.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) executors: Arc<Executors>,
    pub(super) runtime: Runtime,
}

impl Host {
    pub(super) fn new() -> Result<Host> {
        let executors =
            Executors::start(ExecutorOptions::default()).map_err(|error| failed("executors", &error))?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed("cannot start the runtime", &error))?;
        Ok(Host { executors, runtime })
    }
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::failed(format!("{what}: {error}"))
}

/// Makes a volume in `folder` with a copy of the data directory `data`.
pub(super) fn make(host: &Host, folder: &Path, data: &Path) -> Result<()> {
    let chunk_bytes = VolumeSettings::default().chunk_bytes;
    // The smallest of PostgreSQL's thousand files takes a chunk.
    let slow_bytes = 2 * bytes_of(data, chunk_bytes)? + BYTES_OF_SERVER;
    let class = |name: &str, bytes: u64| ClassConfig::new(name, vec![".".into()], Some(bytes));
    let classes = [class(FAST, chunk_bytes), class(SLOW, slow_bytes)];
    let (path, settings) = (folder.to_owned(), tanada_query::volume::settings(&host.executors));
    let made = host.executors.block_on(move || async move {
        Directory::create(&path, &VolumeSettings::default(), &classes, settings).await?.close().await
    });
    made.map_err(|error| failed("executors", &error))??;
    let place = Place::mount(host, folder, None, None)?;
    let server = place.root.join(SERVER);
    std::fs::create_dir(&server).map_err(|error| Error::at_path("make", &server, &error))?;
    let (name, value) = ("user.tanada.class", SLOW.as_bytes());
    let set = rustix::fs::setxattr(&server, name, value, rustix::fs::XattrFlags::empty());
    set.map_err(|error| Error::at_path("set an attribute of", &server, &error.into()))?;
    let copied = Command::new("cp").arg("-a").arg(data).arg(place.data()).output();
    let copied = copied.map_err(|error| Error::program("cp", "coreutils", &error))?;
    if copied.status.success() {
        return place.end(host);
    }
    let said = String::from_utf8_lossy(&copied.stderr);
    let first = said.lines().next().unwrap_or("no reason given");
    Err(Error::failed(format!("cannot copy {} into a volume: {first}", data.display())))
}

/// Copies the volume `from` to `to`. With `models` they lie below its classes from then on, the fast one first; with
/// `fast_bytes` the fast class has that size, a chunk at least.
pub(super) fn copy(
    host: &Host,
    from: &Path,
    to: &Path,
    models: Option<[&ModelSpec; 2]>,
    fast_bytes: u64,
) -> Result<()> {
    copy_folder(from, to)?;
    if let Some(models) = models {
        let mut config = DirectoryConfig::load(to)?;
        for (class, model) in config.classes.iter_mut().zip(models) {
            class.model = Some(model.to_string());
        }
        let path = to.join("volume.json");
        let text = serde_json::to_string_pretty(&config).map_err(|error| failed("volume.json", &error))?;
        std::fs::write(&path, text).map_err(|error| Error::at_path("write", &path, &error))?;
    }
    let chunk_bytes = VolumeSettings::default().chunk_bytes;
    let size = (fast_bytes / chunk_bytes).max(1) * chunk_bytes;
    let (path, settings) = (to.to_owned(), tanada_query::volume::settings(&host.executors));
    let resized = host.executors.block_on(move || async move {
        let directory = Directory::open(&path, &OpenOptions::default(), settings).await?;
        directory.resize_class(FAST, size, &Relocation::default()).await?;
        directory.close().await
    });
    Ok(resized.map_err(|error| failed("executors", &error))??)
}

/// Bytes of all files below a folder, those of each rounded up to whole units.
pub(super) fn bytes_of(folder: &Path, unit_bytes: u64) -> Result<u64> {
    let mut bytes = 0;
    let entries = std::fs::read_dir(folder).map_err(|error| Error::at_path("list", folder, &error))?;
    for entry in entries.flatten() {
        let metadata = entry.metadata().map_err(|error| Error::at_path("look at", &entry.path(), &error))?;
        bytes += if metadata.is_dir() {
            bytes_of(&entry.path(), unit_bytes)?
        } else {
            metadata.len().next_multiple_of(unit_bytes)
        };
    }
    Ok(bytes)
}

/// I/Os that reached the classes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ios {
    pub(super) fast: u64,
    pub(super) slow: u64,
}

/// A mounted volume. It is unmounted when it is dropped, also under open files.
pub(super) struct Place {
    mounted: Option<(Mounted, Directory)>,
    guide: Option<(Arc<Guide>, Listening)>,
    root: PathBuf,
    folder: PathBuf,
}

impl Place {
    /// Mounts the volume in `folder` beside it. With a policy its chunks are placed; a recording hears what is read.
    pub(super) fn mount(
        host: &Host,
        folder: &Path,
        policy: Option<&str>,
        recording: Option<Arc<Recording>>,
    ) -> Result<Place> {
        let root = folder.with_extension("mount");
        if !root.exists() {
            std::fs::create_dir(&root).map_err(|error| Error::at_path("make", &root, &error))?;
        }
        let (path, settings) = (folder.to_owned(), tanada_query::volume::settings(&host.executors));
        let buffers = host.executors.buffers().clone();
        let opened = host.executors.block_on(move || async move {
            let directory = Directory::open(&path, &OpenOptions::default(), settings).await?;
            let system = FileSystem::open(directory.volume().clone(), buffers).await;
            Ok::<_, tanada_volume::Error>((directory, system))
        });
        let (directory, system) = opened.map_err(|error| failed("executors", &error))??;
        let system = system.map_err(|error| failed("cannot make a file system", &error))?;
        let guide = match policy {
            None => None,
            Some(policy) => Some(host.runtime.block_on(async {
                let guide = Guide::start(&directory, policy, None, &host.executors).await.map_err(advice)?;
                let listening = listen(folder, guide.clone()).map_err(advice)?;
                Ok::<_, Error>((guide, listening))
            })?),
        };
        let watching = Watching { guide: guide.as_ref().map(|(guide, _)| guide.clone()), recording };
        system.observe(Arc::new(watching));
        let options = MountOptions { volume: folder.to_owned(), allow_other: true, threads: THREADS };
        let mounted = Mounted::mount(system, &host.executors, &root, &options)
            .map_err(|error| failed("cannot mount the volume", &error))?;
        Ok(Place { mounted: Some((mounted, directory)), guide, root, folder: folder.to_owned() })
    }

    /// The server's data directory.
    pub(super) fn data(&self) -> PathBuf {
        self.root.join(SERVER).join("data")
    }

    /// The name of the objects in a folder of the data directory begins so.
    pub(super) fn prefix(inner: &Path) -> String {
        format!("{SERVER}/data/{}/", inner.display())
    }

    /// The volume's folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What places its chunks.
    pub(super) fn guide(&self) -> Option<&Arc<Guide>> {
        self.guide.as_ref().map(|(guide, _)| guide)
    }

    fn volume(&self) -> Option<&Volume> {
        self.mounted.as_ref().map(|(_, directory)| directory.volume())
    }

    /// The objects whose names begin so.
    pub(super) fn objects(&self, prefix: &str) -> Vec<Object> {
        let all = self.volume().map(Volume::objects).unwrap_or_default();
        all.into_iter().filter(|object| object.name().starts_with(prefix)).collect()
    }

    /// I/Os of the server so far; those of relocations are not among them.
    pub(super) fn ios(&self) -> Ios {
        let classes = self.volume().map(Volume::classes).unwrap_or_default();
        let of = |name: &str| {
            let class = classes.iter().find(|class| class.name == name);
            class.map_or(0, |class| class.statistics.read.ios + class.statistics.written.ios)
        };
        Ios { fast: of(FAST), slow: of(SLOW) }
    }

    /// Chunks of the fast class: those that are taken, and all.
    pub(super) fn fast_chunks(&self) -> (u64, u64) {
        let classes = self.volume().map(Volume::classes).unwrap_or_default();
        let fast = classes.iter().find(|class| class.name == FAST);
        fast.map_or((0, 0), |class| (class.taken.saturating_sub(class.retired), class.chunks))
    }

    /// Unmounts the volume, keeps what the policy has learned, and closes it.
    pub(super) fn end(mut self, host: &Host) -> Result<()> {
        let Some((mounted, directory)) = self.mounted.take() else { return Ok(()) };
        if let Err(error) = mounted.unmount(false) {
            self.mounted = Some((mounted, directory));
            return Err(failed("cannot unmount the volume", &error));
        }
        let system = mounted.wait().map_err(|error| failed("the mount failed", &error))?;
        if let Some((guide, listening)) = self.guide.take() {
            drop(listening);
            host.runtime.block_on(guide.stop(&host.executors)).map_err(advice)?;
        }
        let closed = host.executors.block_on(move || async move {
            system.sync().await.map_err(|error| failed("cannot sync the volume", &error))?;
            drop(system);
            directory.close().await.map_err(|error| failed("cannot close the volume", &error))
        });
        closed.map_err(|error| failed("executors", &error))?
    }
}

fn advice(error: tanada_advisor::Error) -> Error {
    failed("placement", &error)
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some((mounted, _)) = &self.mounted {
            // It failed before: nothing may stay mounted.
            let _ = mounted.unmount(true);
        }
    }
}
