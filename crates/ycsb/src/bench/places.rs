//! Where the files of one engine's data set lie during a round: folders or loop devices, removed at the end.

use std::path::Path;

use tempfile::TempDir;

use super::WITH_STAGING;
use super::guard::Guard;
use crate::engine::ClassFolder;
use crate::media::{Limits, LoopDisk, MediaKind};
use crate::{Error, Result};

/// Room for the engine's files beside its data: journals of the file system, metadata.
const SPARE_BYTES: u64 = 256 << 20;

/// How large the classes are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    /// Bytes that an engine may use of the staging class.
    pub staging_bytes: u64,
    /// Bytes that an engine may use of the capacity class.
    pub capacity_bytes: u64,
    /// Bytes of keys and values.
    pub data_bytes: u64,
}

impl Sizes {
    /// How large the disk of a class is made. An engine that treats its limit as a wish (RocksDB its paths' sizes) must
    /// not run out of space for that: on staging all data and what is merged have room besides.
    pub fn disk_bytes(&self, class: &str) -> u64 {
        SPARE_BYTES
            + match class {
                "staging" => self.staging_bytes + self.data_bytes / 2 * 3,
                _ => self.capacity_bytes,
            }
    }
}

/// Folders of one data set.
#[derive(Debug)]
pub(super) struct Places {
    pub classes: Vec<ClassFolder>,
    pub has_devices: bool,
    // Disks are unmounted before the folder with their mount points goes.
    _disks: Vec<LoopDisk>,
    _folder: TempDir,
    guard: Guard,
}

impl Places {
    /// Who cleans up if this process is stopped.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Empty ones in `directory`, for `tiers`.
    pub fn create(directory: &Path, media: MediaKind, tiers: &str, sizes: Sizes) -> Result<Places> {
        let folder = tempfile::Builder::new()
            .prefix("tanada-bench-ycsb-")
            .tempdir_in(directory)
            .map_err(|error| Error::at_path("make a folder in", directory, &error))?;
        let guard = Guard::of(folder.path())?;
        let mut wanted = vec![("capacity", sizes.capacity_bytes, Limits::CAPACITY)];
        if tiers == WITH_STAGING {
            wanted.insert(0, ("staging", sizes.staging_bytes, Limits::STAGING));
        }
        let (mut disks, mut classes) = (Vec::new(), Vec::new());
        for (name, size_bytes, limits) in wanted {
            let path = folder.path().join(name);
            if media == MediaKind::Folder {
                std::fs::create_dir(&path).map_err(|error| Error::at_path("make", &path, &error))?;
            } else {
                let limits = (media == MediaKind::Limited).then_some(&limits);
                disks.push(LoopDisk::create(folder.path(), name, sizes.disk_bytes(name), limits)?);
            }
            classes.push(ClassFolder { name: name.to_owned(), path, size_bytes, model: None });
        }
        Ok(Places { classes, has_devices: media != MediaKind::Folder, _disks: disks, _folder: folder, guard })
    }
}
