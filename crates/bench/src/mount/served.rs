//! A volume of its own, mounted by this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::{ExecutorOptions, Executors};
use tanada_mount::{FileSystem, MountOptions, Mounted};
use tanada_volume::directory::{ClassConfig, Directory, Settings};
use tanada_volume::{Volume, VolumeSettings};

use crate::{Error, Result};

/// See the module's head. It is unmounted when it is dropped, also under open files.
pub struct Served {
    executors: Arc<Executors>,
    mounted: Option<(Mounted, Directory)>,
    root: PathBuf,
    folder: PathBuf,
}

/// What volume it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct ServedOptions<'a> {
    /// Bytes of its class.
    pub class_bytes: u64,
    /// Threads that read the kernel's requests.
    pub threads: usize,
    /// The emulated device of the class.
    pub model: Option<&'a str>,
    /// Threads that transform pages behind the back of who writes them.
    pub cleaners: usize,
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::failed(format!("{what}: {error}"))
}

impl Served {
    /// A volume of one class of `class_bytes`, in the folder `volume` below `beside`, mounted at `mount`.
    pub fn new(beside: &Path, class_bytes: u64, threads: usize) -> Result<Served> {
        Served::with(beside, &ServedOptions { class_bytes, threads, ..ServedOptions::default() })
    }

    /// The same with all options.
    pub fn with(beside: &Path, options: &ServedOptions<'_>) -> Result<Served> {
        let (folder, root) = (beside.join("volume"), beside.join("mount"));
        std::fs::create_dir(&root).map_err(|error| Error::at_path("make", &root, &error))?;
        let executors =
            Executors::start(ExecutorOptions::default()).map_err(|error| failed("executors", &error))?;
        let (volume, buffers) = (folder.clone(), executors.buffers().clone());
        let class = ClassConfig {
            model: options.model.map(str::to_owned),
            ..ClassConfig::new("disk", vec![".".into()], Some(options.class_bytes))
        };
        let settings = Settings { cleaners: options.cleaners, ..tanada_query::volume::settings(&executors) };
        let open = move || async move {
            let directory =
                Directory::create(&volume, &VolumeSettings::default(), &[class], settings).await?;
            let system = FileSystem::open(directory.volume().clone(), buffers).await;
            Ok::<_, tanada_volume::Error>((directory, system))
        };
        let opened = executors.block_on(open).map_err(|error| failed("executors", &error))?;
        let (directory, system) = opened.map_err(|error| failed("cannot make a volume", &error))?;
        let system = system.map_err(|error| failed("cannot make a file system", &error))?;
        let mount =
            MountOptions { volume: folder.clone(), threads: options.threads, ..MountOptions::default() };
        let mounted = Mounted::mount(system, &executors, &root, &mount)
            .map_err(|error| failed("cannot mount the volume", &error))?;
        Ok(Served { executors, mounted: Some((mounted, directory)), root, folder })
    }

    /// The volume, until it ends.
    pub fn volume(&self) -> Option<&Volume> {
        self.mounted.as_ref().map(|(_, directory)| directory.volume())
    }

    /// The volume's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Unmounts it and closes the volume.
    pub fn end(mut self) -> Result<()> {
        let Some((mounted, directory)) = self.mounted.take() else { return Ok(()) };
        mounted.unmount(false).map_err(|error| failed("cannot unmount the volume", &error))?;
        mounted.wait().map_err(|error| failed("the mount failed", &error))?;
        let closed = self.executors.block_on(move || async move { directory.close().await });
        let closed = closed.map_err(|error| failed("executors", &error))?;
        closed.map_err(|error| failed("cannot close the volume", &error))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some((mounted, _)) = &self.mounted {
            // It failed before: nothing may stay mounted.
            let _ = mounted.unmount(true);
        }
    }
}
