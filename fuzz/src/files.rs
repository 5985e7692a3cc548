//! Files in memory, which take the place of the host's.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use futures::future::{BoxFuture, FutureExt, ready};
use tanada_innodb::{FileKind, Files};
use tanada_io::{Backend, Completion, Device, Method, Request, Ticket};

/// A tree of files whose content can be replaced between two reads.
#[derive(Debug, Default)]
pub struct MemoryFiles(RwLock<BTreeMap<PathBuf, Arc<Vec<u8>>>>);

impl MemoryFiles {
    /// Replaces all files.
    pub fn set(&self, files: impl IntoIterator<Item = (PathBuf, Arc<Vec<u8>>)>) {
        *self.0.write().expect("no panic under the lock") = files.into_iter().collect();
    }

    fn file(&self, path: &Path) -> io::Result<Arc<Vec<u8>>> {
        let files = self.0.read().expect("no panic under the lock");
        files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Files for MemoryFiles {
    fn kind(&self, path: &Path) -> io::Result<FileKind> {
        let files = self.0.read().expect("no panic under the lock");
        if let Some(bytes) = files.get(path) {
            return Ok(FileKind::File { bytes: bytes.len() as u64 });
        }
        let is_folder = files.keys().any(|file| file.starts_with(path));
        is_folder.then_some(FileKind::Folder).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn entries(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.0.read().expect("no panic under the lock");
        let below = files.keys().filter_map(|file| file.strip_prefix(folder).ok()?.components().next());
        let names: BTreeSet<_> = below.collect();
        Ok(names.into_iter().map(|name| folder.join(name)).collect())
    }

    fn read<'a>(
        &'a self,
        path: &'a Path,
        offset: u64,
        most_bytes: usize,
    ) -> BoxFuture<'a, io::Result<Vec<u8>>> {
        let read = self.file(path).map(|file| {
            let rest = usize::try_from(offset).ok().and_then(|offset| file.get(offset..)).unwrap_or_default();
            rest[..rest.len().min(most_bytes)].to_vec()
        });
        ready(read).boxed()
    }

    fn open(&self, path: &Path, _: Method) -> tanada_io::Result<Device> {
        let bytes = self.file(path).map_err(|error| {
            tanada_io::Error::new(tanada_io::ErrorKind::NotFound, format!("{}: {error}", path.display()))
        })?;
        Ok(Device::from_backend(MemoryFile { path: path.to_owned(), bytes }))
    }
}

#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    bytes: Arc<Vec<u8>>,
}

impl Backend for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn method(&self) -> Method {
        Method::Buffered
    }

    fn alignment(&self) -> usize {
        4096
    }

    fn start(&self, request: Request, completion: Completion) -> Ticket {
        let Some(mut buffer) = request.buffer else {
            completion.complete(Err(io::ErrorKind::Unsupported.into()), None);
            return Ticket::default();
        };
        let present = self.bytes.get(request.offset as usize..).unwrap_or_default();
        let len = present.len().min(request.len as usize);
        buffer[request.from..request.from + len].copy_from_slice(&present[..len]);
        completion.complete(Ok(len), Some(buffer));
        Ticket::default()
    }
}
