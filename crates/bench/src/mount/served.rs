//! A volume of its own, mounted by this process.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::{ExecutorOptions, Executors};
use tanada_mount::{FileSystem, MountOptions, Mounted};
use tanada_volume::VolumeSettings;
use tanada_volume::directory::{ClassConfig, Directory, Settings};

use crate::{Error, Result};

/// See the module's head. It is unmounted when it is dropped, also under open files.
pub struct Served {
    executors: Arc<Executors>,
    mounted: Option<(Mounted, Directory)>,
    root: PathBuf,
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> Error {
    Error::failed(format!("{what}: {error}"))
}

impl Served {
    /// A volume of one class of `class_bytes`, in the folder `volume` below `beside`, mounted at `mount`.
    pub fn new(beside: &Path, class_bytes: u64, threads: usize) -> Result<Served> {
        let (folder, root) = (beside.join("volume"), beside.join("mount"));
        std::fs::create_dir(&root).map_err(|error| Error::at_path("make", &root, &error))?;
        let executors =
            Executors::start(ExecutorOptions::default()).map_err(|error| failed("executors", &error))?;
        let (volume, buffers) = (folder.clone(), executors.buffers().clone());
        let open = move || async move {
            let settings = Settings { buffers: Some(buffers.clone()), ..Settings::default() };
            let classes = [ClassConfig::new("disk", vec![".".into()], Some(class_bytes))];
            let directory =
                Directory::create(&volume, &VolumeSettings::default(), &classes, settings).await?;
            let system = FileSystem::open(directory.volume().clone(), buffers).await;
            Ok::<_, tanada_volume::Error>((directory, system))
        };
        let opened = executors.block_on(open).map_err(|error| failed("executors", &error))?;
        let (directory, system) = opened.map_err(|error| failed("cannot make a volume", &error))?;
        let system = system.map_err(|error| failed("cannot make a file system", &error))?;
        let options = MountOptions { volume: folder, threads, ..MountOptions::default() };
        let mounted = Mounted::mount(system, &executors, &root, &options)
            .map_err(|error| failed("cannot mount the volume", &error))?;
        Ok(Served { executors, mounted: Some((mounted, directory)), root })
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
