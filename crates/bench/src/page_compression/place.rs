//! Where the data directory of an arm lies: on a plain file system or on a mounted volume, on the machine's disk or on
//! an emulated device.
//!
//! The emulation belongs to the volume. So a plain file system on an emulated device is an ext4 file system in a file
//! of a mounted volume, behind the kernel's loop device.

use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::resource::{UsageWho, getrusage};
use tempfile::TempDir;

use super::arm::{Arm, Storage};
use crate::mount::served::{Served, ServedOptions};
use crate::{Error, Result};

/// The file of the file system on an emulated device.
const IMAGE: &str = "image";

/// The kernel counts written bytes in units of so many.
const COUNTED_BLOCK_BYTES: u64 = 512;

/// See the module's head. What is mounted is unmounted when it is dropped, and the folder removed.
pub(super) struct Place {
    root: PathBuf,
    /// Where an image is mounted.
    loop_folder: Option<PathBuf>,
    served: Option<Served>,
    is_emulated: bool,
    folder: TempDir,
}

/// What tables take.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// Bytes as programs see them.
    pub(super) logical_bytes: u64,
    /// Bytes of blocks or of chunks.
    pub(super) allocated_bytes: u64,
    /// Within the chunks of a volume, bytes of the blocks that pages have; else those allocated.
    pub(super) stored_bytes: u64,
    /// Pages that a volume has compressed.
    pub(super) compressed_pages: u64,
}

impl Place {
    /// Makes a place in `parent` that holds `capacity_bytes`; `model` is the emulated device.
    pub(super) fn new(
        parent: &Path,
        arm: &Arm,
        model: Option<&str>,
        capacity_bytes: u64,
        threads: usize,
    ) -> Result<Place> {
        let folder = tempfile::Builder::new()
            .prefix("tanada-bench-pages-")
            .tempdir_in(parent)
            .map_err(|error| Error::at_path("make a folder in", parent, &error))?;
        let is_plain = arm.storage == Storage::FileSystem;
        if is_plain && model.is_none() {
            let root = folder.path().join("plain");
            std::fs::create_dir(&root).map_err(|error| Error::at_path("make", &root, &error))?;
            return Ok(Place { root, loop_folder: None, served: None, is_emulated: false, folder });
        }
        let class_bytes = if is_plain { 2 * capacity_bytes } else { capacity_bytes };
        let options = ServedOptions { class_bytes, threads, model, cleaners: arm.cleaners };
        let served = Served::with(folder.path(), &options)?;
        let is_emulated = model.is_some();
        let mounted = served.root().to_owned();
        let mut place =
            Place { root: mounted.clone(), loop_folder: None, served: Some(served), is_emulated, folder };
        if is_plain {
            let loop_folder = place.folder.path().join("loop");
            std::fs::create_dir(&loop_folder)
                .map_err(|error| Error::at_path("make", &loop_folder, &error))?;
            mount_image(&mounted.join(IMAGE), &loop_folder, capacity_bytes)?;
            place.loop_folder = Some(loop_folder.clone());
            place.root = loop_folder;
        }
        Ok(place)
    }

    /// Where the data directory goes.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Where else files go: on no device that is measured.
    pub(super) fn beside(&self) -> &Path {
        self.folder.path()
    }

    /// Bytes that were written to the device so far. An emulated one counts by itself; on the machine's disk the kernel
    /// counts for the processes that wrote: servers that have ended, or this process, which serves the mount.
    pub(super) fn written_bytes(&self) -> Result<u64> {
        if self.is_emulated
            && let Some(volume) = self.served.as_ref().and_then(Served::volume)
        {
            return Ok(volume.classes().iter().map(|class| class.statistics.written.bytes).sum());
        }
        let who = if self.served.is_some() { UsageWho::RUSAGE_SELF } else { UsageWho::RUSAGE_CHILDREN };
        let usage = getrusage(who)
            .map_err(|error| Error::failed(format!("the kernel does not tell what was written: {error}")))?;
        Ok(u64::try_from(usage.block_writes()).unwrap_or_default() * COUNTED_BLOCK_BYTES)
    }

    /// Holes that the volume punched: issued, avoided, in vain.
    pub(super) fn punches(&self) -> [u64; 3] {
        let volume = self.served.as_ref().and_then(Served::volume);
        let classes = volume.map(tanada_volume::Volume::classes).unwrap_or_default();
        let sum = |count: fn(&tanada_volume::PunchStatistics) -> u64| {
            classes.iter().map(|class| count(&class.punches)).sum()
        };
        [sum(|of| of.issued), sum(|of| of.avoided), sum(|of| of.in_vain)]
    }

    /// What the files in a folder below the root take.
    pub(super) fn usage(&self, below: &str) -> Result<Usage> {
        let mut all = Usage::default();
        let volume = self.served.as_ref().and_then(Served::volume).filter(|_| self.loop_folder.is_none());
        if let Some(volume) = volume {
            let prefix = format!("{below}/");
            for object in volume.objects().into_iter().filter(|object| object.name().starts_with(&prefix)) {
                all.logical_bytes += object.size_bytes();
                all.allocated_bytes += object.allocated_bytes();
                let pages = object.page_statistics();
                all.stored_bytes +=
                    pages.as_ref().map_or(object.allocated_bytes(), |pages| pages.stored_bytes);
                let forms = pages.iter().flat_map(|pages| &pages.by_algorithm);
                all.compressed_pages +=
                    forms.filter(|(form, _)| *form != "none").map(|(_, pages)| pages).sum::<u64>();
            }
            return Ok(all);
        }
        for path in files(&self.root.join(below))? {
            use std::os::unix::fs::MetadataExt;
            let metadata = path.metadata().map_err(|error| Error::at_path("look at", &path, &error))?;
            all.logical_bytes += metadata.len();
            all.allocated_bytes += metadata.blocks() * 512;
        }
        all.stored_bytes = all.allocated_bytes;
        Ok(all)
    }

    /// Extents of the data directory's files; on a volume those of the files of its class.
    pub(super) fn extents(&self) -> Result<u64> {
        let folder = match (&self.served, &self.loop_folder) {
            (Some(served), None) => served.folder().to_owned(),
            _ => self.root.clone(),
        };
        let files = files(&folder)?;
        let output = Command::new("filefrag").args(&files).output();
        let output = output.map_err(|error| Error::program("filefrag", "e2fsprogs", &error))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Error::failed(format!("filefrag failed: {}", said.trim())));
        }
        extents_of(&String::from_utf8_lossy(&output.stdout))
            .ok_or_else(|| Error::failed("the output of filefrag is not understood"))
    }

    /// Unmounts what is mounted and removes the folder.
    pub(super) fn end(mut self) -> Result<()> {
        if let Some(loop_folder) = self.loop_folder.take() {
            run(Command::new("umount").arg(&loop_folder), "umount", "mount")?;
        }
        match self.served.take() {
            Some(served) => served.end(),
            None => Ok(()),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(loop_folder) = &self.loop_folder {
            // It failed before: nothing may stay mounted.
            let _ = Command::new("umount").arg("--lazy").arg(loop_folder).output();
        }
    }
}

/// Makes a file system in a file of `bytes` and mounts it.
fn mount_image(image: &Path, folder: &Path, bytes: u64) -> Result<()> {
    let made = std::fs::File::create(image).and_then(|file| file.set_len(bytes));
    made.map_err(|error| Error::at_path("make", image, &error))?;
    run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(image), "mkfs.ext4", "e2fsprogs")?;
    run(Command::new("mount").args(["-o", "loop"]).arg(image).arg(folder), "mount", "mount")
}

/// Runs a program that has to succeed.
pub(super) fn run(command: &mut Command, program: &str, package: &str) -> Result<()> {
    let output = command.output().map_err(|error| Error::program(program, package, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::failed(format!("{program} failed: {}", said.trim())))
}

/// All files below a folder, symbolic links and sockets not among them.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|error| Error::at_path("list", folder, &error))?;
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files(&path)?),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
    Ok(found)
}

/// The sum of what filefrag says of each file: "FILE: N extents found".
fn extents_of(output: &str) -> Option<u64> {
    let counts = output.lines().filter(|line| !line.trim().is_empty()).map(|line| {
        let (_, said) = line.rsplit_once(": ")?;
        said.split(' ').next()?.parse::<u64>().ok()
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_of_all_files_are_summed_up() {
        let output = "/a/b: c.ibd: 12 extents found\n/a/d: 1 extent found\n/a/e: 0 extents found\n";
        assert_eq!(extents_of(output), Some(13));
        assert_eq!(extents_of("nothing of the kind\n"), None);
    }

    #[test]
    fn files_of_all_folders_are_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        for name in ["x", "a/y"] {
            std::fs::write(folder.path().join(name), "z").unwrap();
        }
        assert_eq!(files(folder.path()).unwrap().len(), 2);
        assert!(files(&folder.path().join("b")).is_err());
    }
}
