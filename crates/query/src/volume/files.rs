//! The objects of a volume as files: an object's name is its path, `/` separates folders.
//!
//! The tree is that of the moment of mounting. Objects whose names are no relative paths (`/x`, `a/../b`) are not in
//! it. An absolute path is looked for among the adopted files: so an `.isl` file leads to the tablespace it names if
//! that was adopted too.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Component, Path, PathBuf};

use futures::future::BoxFuture;
use tanada_innodb::files::Lock;
use tanada_innodb::{FileKind, FileStamp, Files, HostFiles};
use tanada_io::{Device, Method};
use tanada_volume::{Object, Volume};

/// The objects of a volume, read only.
#[derive(Debug)]
pub struct VolumeFiles {
    objects: HashMap<PathBuf, Object>,
    /// What lies in each folder; the uppermost is the empty path.
    folders: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// By the path that was adopted.
    adopted: HashMap<PathBuf, Object>,
}

impl VolumeFiles {
    /// The objects that `volume` has now.
    pub fn new(volume: &Volume) -> VolumeFiles {
        let mut files = VolumeFiles {
            objects: HashMap::new(),
            folders: BTreeMap::from([(PathBuf::new(), BTreeSet::new())]),
            adopted: HashMap::new(),
        };
        for object in volume.objects() {
            if let Some(path) = object.adopted_path() {
                files.adopted.insert(PathBuf::from(path), object.clone());
            }
            let path = PathBuf::from(object.name());
            if is_relative(&path) {
                files.add(path, object);
            }
        }
        files
    }

    fn add(&mut self, path: PathBuf, object: Object) {
        let mut entry = path.clone();
        while let Some(folder) = entry.parent().map(Path::to_owned) {
            let is_known = self.folders.contains_key(&folder);
            self.folders.entry(folder.clone()).or_default().insert(entry);
            if is_known {
                break;
            }
            entry = folder;
        }
        self.objects.insert(path, object);
    }

    /// The folders, from the uppermost down.
    pub(super) fn folders(&self) -> &BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        &self.folders
    }

    fn object(&self, path: &Path) -> io::Result<&Object> {
        let found = self.objects.get(path).or_else(|| self.adopted.get(path));
        found.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no object {}", path.display()))
        })
    }
}

/// Whether each part of a name is a name.
fn is_relative(path: &Path) -> bool {
    let names = path.components().all(|part| matches!(part, Component::Normal(_)));
    names && path.components().collect::<PathBuf>().as_os_str() == path.as_os_str()
}

impl Files for VolumeFiles {
    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        if self.folders.contains_key(path) {
            return Ok(FileKind::Folder);
        }
        self.object(path).map(|object| FileKind::File { bytes: object.size_bytes() })
    }

    fn entries(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        match self.folders.get(folder) {
            Some(entries) => Ok(entries.iter().cloned().collect()),
            None => self.object(folder).and(Err(io::Error::from(io::ErrorKind::NotADirectory))),
        }
    }

    /// Of an adopted file the file itself: of a definition or a log whoever reads it cannot tell whether a mirror is
    /// damaged.
    fn read<'a>(
        &'a self,
        path: &'a Path,
        offset: u64,
        most_bytes: usize,
    ) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        Box::pin(async move {
            let object = self.object(path)?;
            if let Some(file) = object.adopted_path() {
                return HostFiles.read(Path::new(file), offset, most_bytes).await;
            }
            let len = object.size_bytes().saturating_sub(offset).min(most_bytes as u64);
            if len == 0 {
                return Ok(Vec::new());
            }
            object.read_bytes(offset, len as usize).await.map_err(io::Error::other)
        })
    }

    /// Of an adopted file the file's own. Other objects do not say when they were last written.
    fn stamp(&self, path: &Path) -> io::Result<FileStamp> {
        match self.object(path)?.adopted_path() {
            Some(file) => HostFiles.stamp(Path::new(file)),
            None => Err(io::Error::from(io::ErrorKind::Unsupported)),
        }
    }

    /// The method is that of the volume's devices.
    fn open(&self, path: &Path, _method: Method) -> tanada_io::Result<Device> {
        match self.object(path) {
            Ok(object) => Ok(object.device()),
            Err(error) => {
                Err(tanada_io::Error::new(tanada_io::ErrorKind::NotFound, format!("cannot open: {error}")))
            }
        }
    }

    /// A server that runs on adopted files holds its locks on the files themselves.
    fn lock(&self, path: &Path) -> Option<Lock> {
        HostFiles.lock(Path::new(self.object(path).ok()?.adopted_path()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_paths_of_names_are_files() {
        for name in ["a", "a/b.ibd", "#innodb_redo/#ib_redo1", "a b/c"] {
            assert!(is_relative(Path::new(name)), "{name}");
        }
        for name in ["/a", "a//b", "a/../b", "./a", "a/", "..", "a/."] {
            assert!(!is_relative(Path::new(name)), "{name}");
        }
    }
}
