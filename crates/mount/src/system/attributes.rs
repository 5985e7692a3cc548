//! What `stat`, `chmod`, `statfs` and extended attributes see.

use tanada_volume::{Budget, FileAttributes, Object, Relocation};

use super::{Content, Errno, FileSystem, Ino, Kind, Result};
use crate::extended;

/// Bytes of a block, as programs are told.
pub(crate) const BLOCK_BYTES: u64 = tanada_volume::BLOCK_BYTES;

/// What `stat` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub ino: Ino,
    /// What it is.
    pub kind: Kind,
    /// Bytes as they are read.
    pub size: u64,
    /// Bytes of the chunks that it takes up.
    pub allocated_bytes: u64,
    /// Names and, of a folder, folders in it that lead to it.
    pub links: u32,
    /// Owner, permissions, times.
    pub file: FileAttributes,
}

/// What `chmod`, `chown` and `utimensat` change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Permissions.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// When its data changed, in nanoseconds since 1970.
    pub modified_ns: Option<i64>,
}

impl Change {
    fn apply(&self, file: &mut FileAttributes, now: i64) {
        file.mode = self.mode.map_or(file.mode, |mode| mode & 0o7777);
        file.uid = self.uid.unwrap_or(file.uid);
        file.gid = self.gid.unwrap_or(file.gid);
        file.modified_ns = self.modified_ns.unwrap_or(file.modified_ns);
        file.changed_ns = now;
    }
}

/// What `statfs` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes of all classes.
    pub total_bytes: u64,
    /// Bytes of chunks that can be had.
    pub free_bytes: u64,
    /// Files and folders.
    pub nodes: u64,
}

impl FileSystem {
    /// What `stat` says of a file or a folder.
    ///
    /// # Errors
    /// `ESTALE`.
    pub fn attributes(&self, ino: Ino) -> Result<Attributes> {
        let tree = self.tree.lock();
        let node = tree.node(ino)?;
        Ok(match &node.content {
            Content::File(file) => Attributes {
                ino,
                kind: Kind::File,
                size: file.object.size_bytes(),
                allocated_bytes: file.object.allocated_bytes(),
                links: u32::from(!file.is_orphan),
                file: file.file,
            },
            Content::Folder(folder) => {
                let is_folder = |child: &&Ino| tree.folder(**child).is_ok();
                let folders = folder.children.values().filter(is_folder).count();
                Attributes {
                    ino,
                    kind: Kind::Folder,
                    size: BLOCK_BYTES,
                    allocated_bytes: 0,
                    links: 2 + u32::try_from(folders).unwrap_or(u32::MAX - 2),
                    file: folder.folder.file,
                }
            }
        })
    }

    /// Changes owner, permissions or times.
    ///
    /// # Errors
    /// `ESTALE`, `EROFS`.
    pub fn change(&self, ino: Ino, change: Change) -> Result<()> {
        if change == Change::default() {
            return Ok(());
        }
        self.check_writable()?;
        let now = (self.now)();
        let mut tree = self.tree.lock();
        if let Ok(file) = tree.file_mut(ino) {
            change.apply(&mut file.file, now);
            file.is_dirty = true;
            drop(tree);
            return self.keep_times(ino);
        }
        let path = tree.path(ino)?;
        let folder = tree.folder_mut(ino)?;
        let mut changed = folder.folder.clone();
        change.apply(&mut changed.file, now);
        self.volume.set_folder(&path, &changed)?;
        folder.folder = changed;
        Ok(())
    }

    /// The names of the extended attributes that are set.
    ///
    /// # Errors
    /// `ESTALE`.
    pub fn extended_names(&self, ino: Ino) -> Result<Vec<String>> {
        Ok(extended::names(&self.said(ino)?))
    }

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// `ENODATA` if it is not set, `ESTALE`.
    pub fn extended(&self, ino: Ino, name: &str) -> Result<String> {
        extended::get(&self.said(ino)?, name)
    }

    /// Sets an extended attribute, or removes it. A file that is pinned is in its class when this returns.
    ///
    /// # Errors
    /// `EINVAL` for a value that makes no sense, `ENOENT` for a class that is not there, `ENOSPC` for one that has no
    /// room for what is pinned to it, `ENOKEY`, `EOPNOTSUPP` for names that are not ours, `EROFS`.
    pub async fn set_extended(&self, ino: Ino, name: &str, value: Option<&[u8]>) -> Result<()> {
        self.check_writable()?;
        let changed = extended::with(&self.said(ino)?, name, value)?;
        let object = {
            let mut tree = self.tree.lock();
            match &tree.node(ino)?.content {
                Content::File(file) => Some(file.object.clone()),
                Content::Folder(_) => {
                    let path = tree.path(ino)?;
                    let folder = tree.folder_mut(ino)?;
                    let folder_said =
                        tanada_volume::Folder { file: folder.folder.file, attributes: changed.clone() };
                    self.volume.set_folder(&path, &folder_said)?;
                    folder.folder = folder_said;
                    None
                }
            }
        };
        match object {
            Some(object) => self.alter(&object, &changed).await,
            None => Ok(()),
        }
    }

    /// Gives an object other attributes; where it is pinned now, its chunks are moved, or all stays as it was.
    async fn alter(&self, object: &Object, changed: &tanada_volume::Attributes) -> Result<()> {
        let before = object.attributes();
        object.alter(changed).await?;
        let Some(class) = changed.pin.as_deref().filter(|class| before.pin.as_deref() != Some(*class)) else {
            return Ok(());
        };
        let relocation = Relocation {
            budget: Budget::default(),
            who: "the user".to_owned(),
            why: "pinned by an attribute of the file".to_owned(),
            gain_s: 0.0,
            progress: None,
        };
        let chunks = object.size_bytes().div_ceil(self.volume.chunk_bytes());
        if let Err(error) = object.move_to(0..chunks, class, &relocation).await {
            object.alter(&before).await?;
            return Err(error.into());
        }
        Ok(())
    }

    /// What is said about an object, or by a folder about new ones.
    fn said(&self, ino: Ino) -> Result<tanada_volume::Attributes> {
        Ok(match &self.tree.lock().node(ino)?.content {
            Content::File(file) => file.object.attributes(),
            Content::Folder(folder) => folder.folder.attributes.clone(),
        })
    }

    /// What `statfs` says.
    pub fn space(&self) -> Space {
        let chunk_bytes = self.volume.chunk_bytes();
        let classes = self.volume.classes();
        let sum = |chunks: u64| chunks.saturating_mul(chunk_bytes);
        Space {
            total_bytes: sum(classes.iter().map(|class| class.chunks).sum()),
            free_bytes: sum(classes
                .iter()
                .filter(|class| !class.is_draining)
                .map(|class| class.free())
                .sum()),
            nodes: self.tree.lock().len(),
        }
    }
}

impl Errno {
    /// The error if a file system has a name in a form that it does not take.
    pub(crate) fn no_text() -> Errno {
        Errno::new(libc::EILSEQ)
    }
}
