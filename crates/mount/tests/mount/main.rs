//! What a mounted volume promises, through the kernel, beside what a plain file system does.
//!
//! Where there is no `/dev/fuse`, or it may not be opened, the tests say so and pass.

#![allow(clippy::unwrap_used)]

mod operations;
mod posix;

use std::path::PathBuf;
use std::sync::Arc;

use tanada_io::{ExecutorOptions, Executors};
use tanada_mount::{FileSystem, MountOptions, Mounted, kernel_refusal};
use tanada_volume::directory::{ClassConfig, Directory, Settings};
use tanada_volume::{OpenOptions, VolumeSettings};
use tempfile::TempDir;

const CLASS_BYTES: u64 = 256 << 20;

/// A volume in a folder of its own, mounted at another.
struct Mount {
    executors: Arc<Executors>,
    served: Option<(Mounted, Directory)>,
    folder: TempDir,
}

impl Mount {
    /// A new volume, mounted; `None` where that cannot be.
    fn new() -> Option<Mount> {
        if let Some(why) = kernel_refusal() {
            eprintln!("skipped: {why}");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let options = ExecutorOptions { threads: 2, ..ExecutorOptions::default() };
        let executors = Executors::start(options).unwrap();
        std::fs::create_dir(folder.path().join("mount")).unwrap();
        let mut mount = Mount { executors, served: None, folder };
        mount.serve(true);
        Some(mount)
    }

    fn settings(&self) -> Settings {
        Settings { buffers: Some(self.executors.buffers().clone()), ..Settings::default() }
    }

    fn serve(&mut self, is_new: bool) {
        let (path, settings, buffers) =
            (self.folder.path().join("volume"), self.settings(), self.executors.buffers().clone());
        let open = move || async move {
            let directory = if is_new {
                let class = |name: &str| ClassConfig::new(name, vec![".".into()], Some(CLASS_BYTES));
                let settings_of_volume =
                    VolumeSettings { chunk_bytes: 256 << 10, ..VolumeSettings::default() };
                let classes = [class("fast"), class("slow")];
                Directory::create(&path, &settings_of_volume, &classes, settings).await.unwrap()
            } else {
                Directory::open(&path, &OpenOptions::default(), settings).await.unwrap()
            };
            let system = FileSystem::open(directory.volume().clone(), buffers).await.unwrap();
            (directory, system)
        };
        let (directory, system) = self.executors.block_on(open).unwrap();
        let options = MountOptions { volume: self.folder.path().join("volume"), ..MountOptions::default() };
        let mounted = Mounted::mount(system, &self.executors, &self.root(), &options).unwrap();
        self.served = Some((mounted, directory));
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    /// The classes that chunks of a file have their homes in.
    fn classes_of(&self, name: &str) -> Vec<String> {
        let (_, directory) = self.served.as_ref().unwrap();
        let volume = directory.volume();
        let object = volume.open_object(name).unwrap();
        let homes = object.chunks(0..u64::MAX).into_iter().filter_map(|chunk| chunk.home);
        let mut numbers: Vec<u8> = homes.map(|home| home.class).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let name =
            |number: &u8| volume.classes().into_iter().find(|class| class.number == *number).unwrap().name;
        numbers.iter().map(name).collect()
    }

    /// Unmounts it, closes the volume, and mounts it again.
    fn again(&mut self) {
        self.end();
        self.serve(false);
    }

    fn end(&mut self) {
        let Some((mounted, directory)) = self.served.take() else { return };
        mounted.unmount(false).unwrap();
        let system = mounted.wait().unwrap();
        let close = move || async move {
            system.sync().await.unwrap();
            directory.close().await.unwrap();
        };
        self.executors.block_on(close).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if std::thread::panicking() {
            if let Some((mounted, _)) = self.served.take() {
                let _ = mounted.unmount(true);
            }
        } else {
            self.end();
        }
    }
}
