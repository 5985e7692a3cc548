//! The names of a mounted volume: a tree of folders and files.
//!
//! Invariants:
//! - every node but the root has a parent that is a folder and knows it by its name, unless it is an *orphan*: a file
//!   that was unlinked while it was open;
//! - numbers of nodes are never given to another node: even ones follow from the numbers of objects, odd ones are
//!   counted.

use std::collections::{BTreeMap, HashMap};

use tanada_volume::{FileAttributes, Folder, LONGEST_NAME, Object};

use crate::{Errno, Result};

/// The number of a node.
pub type Ino = u64;

/// The number of the root.
pub const ROOT: Ino = 1;

/// Longest name of one file or folder, in bytes.
pub(crate) const LONGEST_PART: usize = 255;

/// Names in the root that begin so belong to the volume and are not shown.
pub(crate) const RESERVED: &str = "tanada.";

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A file.
    File,
}

#[derive(Debug)]
pub(crate) struct FileNode {
    pub(crate) object: Object,
    pub(crate) file: FileAttributes,
    /// `file` differs from what the volume knows.
    pub(crate) is_dirty: bool,
    pub(crate) handles: u64,
    pub(crate) is_orphan: bool,
}

#[derive(Debug)]
pub(crate) struct FolderNode {
    pub(crate) folder: Folder,
    pub(crate) children: BTreeMap<String, Ino>,
}

#[derive(Debug)]
pub(crate) enum Content {
    File(Box<FileNode>),
    Folder(Box<FolderNode>),
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) parent: Ino,
    pub(crate) name: String,
    pub(crate) content: Content,
}

impl Node {
    pub(crate) fn kind(&self) -> Kind {
        match self.content {
            Content::File(_) => Kind::File,
            Content::Folder(_) => Kind::Folder,
        }
    }
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: HashMap<Ino, Node>,
    next_folder: Ino,
}

/// The number of the node of an object.
pub(crate) fn ino_of(object: &Object) -> Ino {
    object.id() * 2 + 2
}

impl Tree {
    pub(crate) fn new(root: Folder) -> Tree {
        let content = Content::Folder(Box::new(FolderNode { folder: root, children: BTreeMap::new() }));
        let root = Node { parent: ROOT, name: String::new(), content };
        Tree { nodes: HashMap::from([(ROOT, root)]), next_folder: ROOT + 2 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.nodes.len() as u64
    }

    pub(crate) fn node(&self, ino: Ino) -> Result<&Node> {
        self.nodes.get(&ino).ok_or(Errno::new(libc::ESTALE))
    }

    pub(crate) fn folder(&self, ino: Ino) -> Result<&FolderNode> {
        match &self.node(ino)?.content {
            Content::Folder(folder) => Ok(folder),
            Content::File(_) => Err(Errno::new(libc::ENOTDIR)),
        }
    }

    pub(crate) fn folder_mut(&mut self, ino: Ino) -> Result<&mut FolderNode> {
        match self.nodes.get_mut(&ino).map(|node| &mut node.content) {
            Some(Content::Folder(folder)) => Ok(folder),
            Some(Content::File(_)) => Err(Errno::new(libc::ENOTDIR)),
            None => Err(Errno::new(libc::ESTALE)),
        }
    }

    pub(crate) fn file(&self, ino: Ino) -> Result<&FileNode> {
        match &self.node(ino)?.content {
            Content::File(file) => Ok(file),
            Content::Folder(_) => Err(Errno::new(libc::EISDIR)),
        }
    }

    pub(crate) fn file_mut(&mut self, ino: Ino) -> Result<&mut FileNode> {
        match self.nodes.get_mut(&ino).map(|node| &mut node.content) {
            Some(Content::File(file)) => Ok(file),
            Some(Content::Folder(_)) => Err(Errno::new(libc::EISDIR)),
            None => Err(Errno::new(libc::ESTALE)),
        }
    }

    /// All files.
    pub(crate) fn files(&self) -> impl Iterator<Item = (Ino, &FileNode)> {
        self.nodes.iter().filter_map(|(ino, node)| match &node.content {
            Content::File(file) => Some((*ino, &**file)),
            Content::Folder(_) => None,
        })
    }

    pub(crate) fn child(&self, parent: Ino, name: &str) -> Result<Option<Ino>> {
        Ok(self.folder(parent)?.children.get(name).copied())
    }

    /// The name of a node in the volume: that of the root is empty.
    pub(crate) fn path(&self, ino: Ino) -> Result<String> {
        let mut parts = Vec::new();
        let mut at = ino;
        while at != ROOT {
            let node = self.node(at)?;
            parts.push(node.name.as_str());
            at = node.parent;
        }
        parts.reverse();
        Ok(parts.join("/"))
    }

    /// The name in the volume of what may be called `name` in a folder.
    pub(crate) fn path_of(&self, parent: Ino, name: &str) -> Result<String> {
        self.folder(parent)?;
        check_part(parent, name)?;
        let folder = self.path(parent)?;
        let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
        if path.len() > LONGEST_NAME {
            return Err(Errno::new(libc::ENAMETOOLONG));
        }
        Ok(path)
    }

    /// Whether `folder` is `ino` or lies above it.
    pub(crate) fn is_above(&self, folder: Ino, ino: Ino) -> Result<bool> {
        let mut at = ino;
        loop {
            if at == folder {
                return Ok(true);
            }
            if at == ROOT {
                return Ok(false);
            }
            at = self.node(at)?.parent;
        }
    }

    pub(crate) fn add_file(
        &mut self,
        parent: Ino,
        name: &str,
        object: Object,
        file: FileAttributes,
    ) -> Result<Ino> {
        let ino = ino_of(&object);
        let file = FileNode { object, file, is_dirty: false, handles: 0, is_orphan: false };
        self.add(ino, parent, name, Content::File(Box::new(file)))
    }

    pub(crate) fn add_folder(&mut self, parent: Ino, name: &str, folder: Folder) -> Result<Ino> {
        let ino = self.next_folder;
        self.next_folder += 2;
        self.add(
            ino,
            parent,
            name,
            Content::Folder(Box::new(FolderNode { folder, children: BTreeMap::new() })),
        )
    }

    fn add(&mut self, ino: Ino, parent: Ino, name: &str, content: Content) -> Result<Ino> {
        let children = &mut self.folder_mut(parent)?.children;
        if children.contains_key(name) {
            return Err(Errno::new(libc::EEXIST));
        }
        children.insert(name.to_owned(), ino);
        self.nodes.insert(ino, Node { parent, name: name.to_owned(), content });
        Ok(ino)
    }

    /// Takes a name out of its folder; the node stays.
    pub(crate) fn detach(&mut self, parent: Ino, name: &str) -> Result<Ino> {
        self.folder_mut(parent)?.children.remove(name).ok_or(Errno::new(libc::ENOENT))
    }

    /// Puts a node that was detached under another name, which is free.
    pub(crate) fn attach(&mut self, ino: Ino, parent: Ino, name: &str) -> Result<()> {
        let children = &mut self.folder_mut(parent)?.children;
        debug_assert!(!children.contains_key(name), "{name:?} is taken");
        children.insert(name.to_owned(), ino);
        if let Some(node) = self.nodes.get_mut(&ino) {
            (node.parent, node.name) = (parent, name.to_owned());
        }
        Ok(())
    }

    /// Forgets a node that was detached.
    pub(crate) fn forget(&mut self, ino: Ino) {
        self.nodes.remove(&ino);
    }
}

/// Fails for a name that no file or folder may have there.
fn check_part(parent: Ino, name: &str) -> Result<()> {
    if name.len() > LONGEST_PART {
        return Err(Errno::new(libc::ENAMETOOLONG));
    }
    if matches!(name, "" | "." | "..") || name.contains(['/', '\0']) {
        return Err(Errno::new(libc::EINVAL));
    }
    if parent == ROOT && name.starts_with(RESERVED) {
        return Err(Errno::new(libc::EPERM));
    }
    Ok(())
}
