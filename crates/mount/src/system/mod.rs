//! What a file system does, on a volume.
//!
//! - [`names`]: looking up, making, renaming, removing;
//! - [`data`]: reads, writes, sizes, holes, syncs;
//! - [`attributes`]: what `stat`, `chmod` and extended attributes see.
//!
//! Names change under one lock, in memory and in the volume's journal in the same order; no I/O is done under it. A
//! file that is unlinked while it is open, and one whose name another file takes, is renamed to a name below
//! [`UNLINKED`] and deleted when it is closed, or at the next mount.

mod attributes;
mod data;
mod names;

use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tanada_io::BufferPool;
use tanada_volume::{FileAttributes, Folder, Object, Volume};

pub(crate) use attributes::BLOCK_BYTES;
pub use attributes::{Attributes, Change, Space};
pub use names::{Entry, Maker};

use crate::tree::{Content, FileNode, RESERVED, Tree};
use crate::{Errno, Ino, Kind, Observer, ROOT, Result};

/// Where in the volume files are that have no name any more.
pub const UNLINKED: &str = "tanada.unlinked";

const DEFAULT_FILE_MODE: u32 = 0o644;
const DEFAULT_FOLDER_MODE: u32 = 0o755;

/// Tells the time in nanoseconds since 1970.
pub(crate) type Now = Arc<dyn Fn() -> i64 + Send + Sync>;

/// A volume as a file system. Cheap to share: all calls take `&self`.
pub struct FileSystem {
    volume: Volume,
    buffers: Arc<BufferPool>,
    tree: Mutex<Tree>,
    is_read_only: bool,
    now: Now,
    observer: OnceLock<Arc<dyn Observer>>,
}

impl std::fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSystem").field("is_read_only", &self.is_read_only).finish_non_exhaustive()
    }
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// User and group of this process.
fn owner() -> (u32, u32) {
    std::fs::metadata("/proc/self").map_or((0, 0), |process| (process.uid(), process.gid()))
}

impl FileSystem {
    /// The file system of a volume's objects. Files that have no name any more are deleted.
    ///
    /// # Errors
    /// If an object has the name of a folder, and as deleting does.
    pub async fn open(volume: Volume, buffers: Arc<BufferPool>) -> Result<Arc<FileSystem>> {
        FileSystem::open_at(volume, buffers, Arc::new(now_ns)).await
    }

    async fn open_at(volume: Volume, buffers: Arc<BufferPool>, now: Now) -> Result<Arc<FileSystem>> {
        let is_read_only = volume.read_only_reason().is_some();
        if !is_read_only {
            for object in volume.objects() {
                if object.name().starts_with(UNLINKED) {
                    volume.delete(&object.name()).await?;
                }
            }
        }
        let tree = load(&volume, is_read_only, now())?;
        Ok(Arc::new(FileSystem {
            volume,
            buffers,
            tree: Mutex::new(tree),
            is_read_only,
            now,
            observer: OnceLock::new(),
        }))
    }

    /// Has somebody told of reads and writes from now on. The first who asks for it is the only one.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let _ = self.observer.set(observer);
    }

    /// Whether nothing can be changed.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Hands all times over to the volume, and makes everything durable.
    ///
    /// # Errors
    /// As [`Volume::sync`].
    pub async fn sync(&self) -> Result<()> {
        if self.is_read_only {
            return Ok(());
        }
        let dirty: Vec<Ino> = {
            let tree = self.tree.lock();
            tree.files().filter(|(_, file)| file.is_dirty).map(|(ino, _)| ino).collect()
        };
        dirty.into_iter().try_for_each(|ino| self.keep_times(ino))?;
        Ok(self.volume.sync().await?)
    }

    /// Lets the volume know when a file was changed.
    pub(crate) fn keep_times(&self, ino: Ino) -> Result<()> {
        let mut tree = self.tree.lock();
        let Ok(file) = tree.file_mut(ino) else { return Ok(()) };
        if file.is_dirty && !file.is_orphan {
            file.object.set_file_attributes(file.file)?;
            file.is_dirty = false;
        }
        Ok(())
    }

    fn object(&self, ino: Ino) -> Result<Object> {
        Ok(self.tree.lock().file(ino)?.object.clone())
    }

    fn check_writable(&self) -> Result<()> {
        if self.is_read_only { Err(Errno::new(libc::EROFS)) } else { Ok(()) }
    }

    /// Notes that the data of a file change now.
    fn touch(&self, ino: Ino) {
        let now = (self.now)();
        if let Ok(file) = self.tree.lock().file_mut(ino) {
            file.file.modified_ns = now;
            file.file.changed_ns = now;
            // A program that may write is not to make a file that runs as somebody else.
            file.file.mode &= !0o6000;
            file.is_dirty = true;
        }
    }
}

/// The tree of what lies in a volume. Folders that only follow from names of objects become folders of themselves.
fn load(volume: &Volume, is_read_only: bool, now: i64) -> Result<Tree> {
    let (uid, gid) = owner();
    let default = |mode: u32| FileAttributes { mode, uid, gid, modified_ns: now, changed_ns: now };
    let default_folder = || Folder { file: default(DEFAULT_FOLDER_MODE), ..Folder::default() };
    let mut known: std::collections::BTreeMap<String, Folder> = volume.folders().into_iter().collect();
    let root = known.remove("").unwrap_or_else(default_folder);
    let mut tree = Tree::new(root);
    let clash = |name: &str| {
        let why =
            format!("{name:?} is an object, and a folder of others: rename it before the volume is mounted");
        Errno::because(libc::EINVAL, why)
    };
    let mut folder_of = |tree: &mut Tree, path: &str| -> Result<Ino> {
        let mut at = ROOT;
        let mut end = 0;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            end = if end == 0 { part.len() } else { end + 1 + part.len() };
            let name = &path[..end];
            let child = tree.child(at, part).map_err(|_| clash(name))?;
            at = match child {
                Some(child) => child,
                None => {
                    let folder = match known.remove(name) {
                        Some(folder) => folder,
                        None => {
                            let folder = default_folder();
                            if !is_read_only {
                                volume.set_folder(name, &folder)?;
                            }
                            folder
                        }
                    };
                    tree.add_folder(at, part, folder).map_err(|_| clash(name))?
                }
            };
        }
        Ok(at)
    };
    for (name, _) in volume.folders() {
        folder_of(&mut tree, &name)?;
    }
    for object in volume.objects() {
        let name = object.name();
        if name.starts_with(RESERVED) {
            continue;
        }
        let (folder, part) = name.rsplit_once('/').unwrap_or(("", &name));
        let parent = folder_of(&mut tree, folder)?;
        let mode = if object.is_adopted() { DEFAULT_FILE_MODE & 0o444 } else { DEFAULT_FILE_MODE };
        let file = object.file_attributes().unwrap_or_else(|| default(mode));
        tree.add_file(parent, part, object, file).map_err(|_| clash(&name))?;
    }
    Ok(tree)
}
