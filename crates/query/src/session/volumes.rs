//! Volumes of a session: opened for writing, so that what is read is counted for good; closed with [`Session::close`].

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tanada_innodb::MountOptions;
use tanada_volume::directory::Directory;
use tanada_volume::{ErrorKind as VolumeErrorKind, Object, OpenOptions};

use super::Session;
use super::announce::{placed_by, wanted};
use crate::cost::{CALIBRATION_FILE, Measurements, use_measurements};
use crate::external::FILES;
use crate::placement::Steering;
use crate::store::VolumeObjects;
use crate::volume::{VolumeFiles, databases, settings};
use crate::{Error, ErrorKind, Result};

/// What opening a volume fails with that can be read all the same: somebody has it, the place cannot be written, or it
/// is full.
const CANNOT_BE_WRITTEN: [VolumeErrorKind; 3] =
    [VolumeErrorKind::Locked, VolumeErrorKind::Device, VolumeErrorKind::NoSpace];

/// Tells of an adopted file that is not what it was.
fn changed(object: &Object) -> String {
    let path = object.adopted_path().unwrap_or_default();
    match Path::new(path).exists() {
        true => format!("{path} has changed since it was adopted; mirrors of it were dropped"),
        false => format!("{path} is gone; if there were mirrors of it, they were dropped"),
    }
}

impl Session {
    /// Mounts the databases among the objects of the volume in the folder `path`; gives their names and warnings. The
    /// volume stays open until [`close`](Self::close): then the reads of this session are in its statistics for good.
    /// While other readers have the volume, and where it may not be written, it is only read, with a warning.
    ///
    /// # Errors
    /// If there is no volume or it cannot be opened, `NotFound` if no object is an InnoDB file, `InvalidInput` if
    /// placement is set to what does not exist, and as [`mount_innodb`](Self::mount_innodb).
    pub async fn mount_volume(
        &self,
        path: &Path,
        options: &MountOptions,
    ) -> Result<(Vec<String>, Vec<String>)> {
        let mut warnings = Vec::new();
        let real_path = |path: &Path| std::fs::canonicalize(path).ok();
        let is_mounted = |volume: &Arc<Directory>| real_path(volume.path()) == real_path(path);
        if path.exists() && self.shared.volumes.read().iter().any(is_mounted) {
            let message = format!("the volume {} is mounted already", path.display());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let directory = match self.open_volume(path, false).await {
            Err(error) if CANNOT_BE_WRITTEN.contains(&error.kind()) => {
                // If it is a writer that has it, or it cannot be read either, this fails for the same reason.
                let shared = self.open_volume(path, true).await?;
                warnings.push(format!(
                    "reads of this session are not counted, and no chunks are placed: {error}"
                ));
                shared
            }
            opened => {
                let opened = opened?;
                warnings.extend(opened.volume().read_only_reason().map(|why| why.to_string()));
                opened
            }
        };
        match Measurements::read(&path.join(CALIBRATION_FILE)) {
            Ok(Some(measured)) => use_measurements(measured),
            Ok(None) => {}
            Err(error) => warnings.push(format!("{error}; the cost model has its defaults")),
        }
        let mounted = self.mount_objects(&directory, options, &mut warnings).await;
        if mounted.is_err() {
            // What went wrong with mounting is what matters.
            let _ = directory.volume().close().await;
        } else {
            self.shared.volumes.write().push(Arc::clone(&directory));
            self.place(&directory, &mut warnings).await?;
        }
        mounted.map(|names| (names, warnings))
    }

    /// Has the chunks of a volume placed from now on, if there is anything to be decided.
    async fn place(&self, directory: &Arc<Directory>, warnings: &mut Vec<String>) -> Result<()> {
        let executors = &self.shared.environment.executors;
        let on_placed = self.shared.on_placed.read().clone();
        let wanted = wanted(&self.options());
        let steering = Steering::start(directory, &wanted, executors, on_placed, warnings).await?;
        self.shared.placements.write().extend(steering);
        Ok(())
    }

    async fn open_volume(&self, path: &Path, read_only: bool) -> tanada_volume::Result<Arc<Directory>> {
        let executors = &self.shared.environment.executors;
        let (path, settings) = (path.to_owned(), settings(executors));
        let options = OpenOptions { read_only, ..OpenOptions::default() };
        let opened =
            executors.spawn(move || async move { Directory::open(&path, &options, settings).await }).await;
        opened?.map(Arc::new)
    }

    async fn mount_objects(
        &self,
        directory: &Arc<Directory>,
        options: &MountOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<String>> {
        let volume = directory.volume();
        for object in volume.check_adopted() {
            warnings.push(changed(&object));
        }
        let files = Arc::new(VolumeFiles::new(volume));
        let folders = databases(&files);
        let schemas = self.mount_file_objects(directory, warnings);
        if folders.is_empty() && schemas.is_empty() {
            let path = directory.path().display();
            let message = format!(
                "no object of the volume {path} is an InnoDB file, or a Parquet file; adopt some with: tanada volume adopt {path} PATH"
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let environment = self.environment_over(files);
        let mut names = Vec::new();
        for folder in folders {
            let (found, warned) = self.mount_in(&folder, options, &environment).await?;
            names.extend(found);
            warnings.extend(warned);
        }
        names.extend(schemas);
        Ok(names)
    }

    /// Mounts each uppermost folder of a volume that has Parquet files as a schema; gives their names.
    fn mount_file_objects(&self, directory: &Arc<Directory>, warnings: &mut Vec<String>) -> Vec<String> {
        let executors = Arc::clone(&self.shared.environment.executors);
        let objects = VolumeObjects::new(Arc::clone(directory), executors);
        let mut names = Vec::new();
        for folder in objects.folders_with("parquet") {
            let own = directory.path().file_name().and_then(|name| name.to_str()).unwrap_or(FILES);
            let name = if folder.is_empty() { own.to_owned() } else { folder.clone() };
            match self.mount_files(&name, Arc::new(objects.clone()), folder) {
                Ok(()) => names.push(name),
                Err(error) => warnings.push(format!("Parquet files of a volume are not mounted: {error}")),
            }
        }
        names
    }

    /// Looks whether the adopted files among `names` are what they were, so that no query reads mirrors that are older
    /// than their files; gives warnings.
    pub(super) fn check_adopted<'a>(&self, names: impl Iterator<Item = &'a Path>) -> Vec<String> {
        let volumes = self.shared.volumes.read();
        let names: BTreeSet<&Path> = names.filter(|_| !volumes.is_empty()).collect();
        let mut warnings = Vec::new();
        for (directory, name) in
            volumes.iter().flat_map(|volume| names.iter().map(move |name| (volume, name)))
        {
            let object = name.to_str().and_then(|name| directory.volume().open_object(name).ok());
            warnings.extend(object.filter(Object::check_adopted).map(|object| changed(&object)));
        }
        warnings
    }

    /// Closes the mounted volumes: statistics of what was read are durable then. Their tables can still be read,
    /// uncounted. Gives warnings, of what placement has learned and could not be kept.
    ///
    /// # Errors
    /// If a volume's metadata cannot be written.
    pub async fn close(&self) -> Result<Vec<String>> {
        let placements = std::mem::take(&mut *self.shared.placements.write());
        let mut warnings = Vec::new();
        for steering in placements {
            let stopped = steering.stop(&self.shared.environment.executors).await;
            self.shared.placed.write().extend(placed_by(&steering));
            if let Err(error) = stopped {
                let volume = steering.directory().path().display();
                warnings
                    .push(format!("what placement has learned is not kept in the volume {volume}: {error}"));
            }
        }
        self.leave_spill().await?;
        // They may be objects of a volume.
        *self.shared.mirrors.write() = None;
        let volumes = std::mem::take(&mut *self.shared.volumes.write());
        for directory in volumes {
            let executors = &self.shared.environment.executors;
            executors.spawn(move || async move { directory.volume().close().await }).await??;
        }
        Ok(warnings)
    }
}
