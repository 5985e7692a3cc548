//! Names: looking up, making, renaming, removing.

use tanada_volume::{FileAttributes, Folder, Object};

use super::{Errno, FileNode, FileSystem, Ino, Kind, Result, UNLINKED};
use crate::tree::Tree;

/// What a folder holds under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub ino: Ino,
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// Who makes a file or a folder, and with which permissions.
#[derive(Debug, Clone, Copy)]
pub struct Maker {
    /// Permissions.
    pub mode: u32,
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// A file that nothing leads to any more.
#[derive(Debug)]
#[must_use = "its space is free when it was deleted"]
pub(crate) struct Unlinked(Option<Object>);

impl FileSystem {
    /// What `name` leads to in a folder.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ESTALE`.
    pub fn lookup(&self, parent: Ino, name: &str) -> Result<Ino> {
        self.tree.lock().child(parent, name)?.ok_or(Errno::new(libc::ENOENT))
    }

    /// What lies in a folder, in order of names; `.` and `..` come first.
    ///
    /// # Errors
    /// `ENOTDIR`, `ESTALE`.
    pub fn entries(&self, ino: Ino) -> Result<Vec<Entry>> {
        let tree = self.tree.lock();
        let folder = tree.folder(ino)?;
        let dots = [(".", ino), ("..", tree.node(ino)?.parent)];
        let dots = dots.map(|(name, ino)| Entry { ino, name: name.to_owned(), kind: Kind::Folder });
        let mut entries = Vec::from(dots);
        for (name, ino) in &folder.children {
            entries.push(Entry { ino: *ino, name: name.clone(), kind: tree.node(*ino)?.kind() });
        }
        Ok(entries)
    }

    /// The attributes of what is made in a folder; its group is the folder's if that has the bit for it.
    fn made(
        &self,
        tree: &Tree,
        parent: Ino,
        maker: Maker,
    ) -> Result<(FileAttributes, tanada_volume::Attributes)> {
        let folder = &tree.folder(parent)?.folder;
        let now = (self.now)();
        let gid = if folder.file.mode & 0o2000 == 0 { maker.gid } else { folder.file.gid };
        let mode = maker.mode & 0o7777;
        let file = FileAttributes { mode, uid: maker.uid, gid, modified_ns: now, changed_ns: now };
        Ok((file, folder.attributes.clone()))
    }

    /// Makes a file and opens it.
    ///
    /// # Errors
    /// `EEXIST`, `ENAMETOOLONG`, `EINVAL`, `EROFS`.
    pub fn create(&self, parent: Ino, name: &str, maker: Maker) -> Result<Ino> {
        self.check_writable()?;
        let mut tree = self.tree.lock();
        let path = tree.path_of(parent, name)?;
        if tree.child(parent, name)?.is_some() {
            return Err(Errno::new(libc::EEXIST));
        }
        let (file, attributes) = self.made(&tree, parent, maker)?;
        let object = self.volume.create_file(&path, &attributes, file)?;
        let ino = tree.add_file(parent, name, object, file)?;
        tree.file_mut(ino)?.handles = 1;
        self.changed(&mut tree, parent);
        Ok(ino)
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn make_folder(&self, parent: Ino, name: &str, maker: Maker) -> Result<Ino> {
        self.check_writable()?;
        let mut tree = self.tree.lock();
        let path = tree.path_of(parent, name)?;
        if tree.child(parent, name)?.is_some() {
            return Err(Errno::new(libc::EEXIST));
        }
        let (mut file, attributes) = self.made(&tree, parent, maker)?;
        file.mode |= tree.folder(parent)?.folder.file.mode & 0o2000;
        let folder = Folder { file, attributes };
        self.volume.set_folder(&path, &folder)?;
        let ino = tree.add_folder(parent, name, folder)?;
        self.changed(&mut tree, parent);
        Ok(ino)
    }

    /// Notes that the names in a folder change now. It becomes durable with the folder's next change of attributes.
    fn changed(&self, tree: &mut Tree, folder: Ino) {
        let now = (self.now)();
        if let Ok(node) = tree.folder_mut(folder) {
            node.folder.file.modified_ns = now;
            node.folder.file.changed_ns = now;
        }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// `ESTALE`, `EISDIR`; `EROFS` if it is opened for writing and takes no writes.
    pub fn open_file(&self, ino: Ino, for_writing: bool) -> Result<()> {
        if for_writing {
            self.check_writable()?;
        }
        let mut tree = self.tree.lock();
        let file = tree.file_mut(ino)?;
        if for_writing && file.object.is_adopted() {
            return Err(Errno::new(libc::EROFS));
        }
        file.handles += 1;
        Ok(())
    }

    /// Closes a file: the last close of one that was unlinked deletes it.
    ///
    /// # Errors
    /// As deleting does.
    pub async fn close_file(&self, ino: Ino) -> Result<()> {
        let unlinked = {
            let mut tree = self.tree.lock();
            let file = tree.file_mut(ino)?;
            file.handles = file.handles.saturating_sub(1);
            Unlinked(forget_if_orphan(&mut tree, ino))
        };
        if unlinked.0.is_none() && !self.is_read_only {
            self.keep_times(ino)?;
        }
        self.delete(unlinked).await
    }

    /// Takes a file's name away.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`, `EROFS`.
    pub async fn unlink(&self, parent: Ino, name: &str) -> Result<()> {
        self.check_writable()?;
        let unlinked = {
            let mut tree = self.tree.lock();
            let ino = tree.child(parent, name)?.ok_or(Errno::new(libc::ENOENT))?;
            let object = tree.file(ino)?.object.clone();
            self.volume.rename(&tree.path_of(parent, name)?, &aside(&object))?;
            tree.detach(parent, name)?;
            self.changed(&mut tree, parent);
            self.orphan(&mut tree, ino)?
        };
        self.delete(unlinked).await
    }

    /// Makes a file that was detached an orphan.
    fn orphan(&self, tree: &mut Tree, ino: Ino) -> Result<Unlinked> {
        let now = (self.now)();
        let file = tree.file_mut(ino)?;
        file.is_orphan = true;
        file.file.changed_ns = now;
        Ok(Unlinked(forget_if_orphan(tree, ino)))
    }

    async fn delete(&self, unlinked: Unlinked) -> Result<()> {
        match unlinked.0 {
            Some(object) => Ok(self.volume.delete(&object.name()).await?),
            None => Ok(()),
        }
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `ENOTEMPTY`, `EROFS`.
    pub fn remove_folder(&self, parent: Ino, name: &str) -> Result<()> {
        self.check_writable()?;
        let mut tree = self.tree.lock();
        let ino = tree.child(parent, name)?.ok_or(Errno::new(libc::ENOENT))?;
        if !tree.folder(ino)?.children.is_empty() {
            return Err(Errno::new(libc::ENOTEMPTY));
        }
        self.volume.remove_folder(&tree.path(ino)?)?;
        tree.detach(parent, name)?;
        tree.forget(ino);
        self.changed(&mut tree, parent);
        Ok(())
    }

    /// Gives a file or a folder another name; a file or an empty folder that has it already is replaced, in one step.
    ///
    /// # Errors
    /// `ENOENT`, `EEXIST` if nothing may be replaced, `EISDIR`, `ENOTDIR`, `ENOTEMPTY`, `EINVAL` if a folder would lie
    /// in itself, `EROFS`.
    pub async fn rename(&self, from: (Ino, &str), to: (Ino, &str), may_replace: bool) -> Result<()> {
        self.check_writable()?;
        let unlinked = {
            let mut tree = self.tree.lock();
            self.rename_locked(&mut tree, from, to, may_replace)?
        };
        self.delete(unlinked).await
    }

    fn rename_locked(
        &self,
        tree: &mut Tree,
        from: (Ino, &str),
        to: (Ino, &str),
        may_replace: bool,
    ) -> Result<Unlinked> {
        let ino = tree.child(from.0, from.1)?.ok_or(Errno::new(libc::ENOENT))?;
        let (path, new_path) = (tree.path(ino)?, tree.path_of(to.0, to.1)?);
        let kind = tree.node(ino)?.kind();
        if kind == Kind::Folder && tree.is_above(ino, to.0)? {
            return Err(Errno::new(libc::EINVAL));
        }
        let target = tree.child(to.0, to.1)?;
        if target == Some(ino) {
            return Ok(Unlinked(None));
        }
        if target.is_some() && !may_replace {
            return Err(Errno::new(libc::EEXIST));
        }
        let mut unlinked = Unlinked(None);
        match (kind, target) {
            (Kind::File, None) => self.volume.rename(&path, &new_path)?,
            (Kind::File, Some(target)) => {
                let object = tree.file(target)?.object.clone();
                self.volume.replace(&path, &new_path, &aside(&object))?;
                tree.detach(to.0, to.1)?;
                unlinked = self.orphan(tree, target)?;
            }
            (Kind::Folder, target) => {
                if let Some(target) = target
                    && !tree.folder(target)?.children.is_empty()
                {
                    return Err(Errno::new(libc::ENOTEMPTY));
                }
                self.volume.rename_folder(&path, &new_path)?;
                if let Some(target) = target {
                    tree.detach(to.0, to.1)?;
                    tree.forget(target);
                }
            }
        }
        tree.detach(from.0, from.1)?;
        tree.attach(ino, to.0, to.1)?;
        self.changed(tree, from.0);
        self.changed(tree, to.0);
        let now = (self.now)();
        if let Ok(file) = tree.file_mut(ino) {
            (file.file.changed_ns, file.is_dirty) = (now, true);
        }
        Ok(unlinked)
    }
}

/// The name of an object that has none any more.
fn aside(object: &Object) -> String {
    format!("{UNLINKED}/{}", object.id())
}

/// Forgets an orphan that nobody has open; its object.
fn forget_if_orphan(tree: &mut Tree, ino: Ino) -> Option<Object> {
    let file: &FileNode = tree.file(ino).ok()?;
    if !file.is_orphan || file.handles > 0 {
        return None;
    }
    let object = file.object.clone();
    tree.forget(ino);
    Some(object)
}
