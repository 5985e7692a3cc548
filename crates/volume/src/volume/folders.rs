//! What a file system needs beyond objects: folders, attributes of files, and renames that replace.
//!
//! Each call is one change of the journal: after a stop it is there as a whole or not at all. Calls become durable in
//! their order, with the next sync of any object or with [`Volume::sync_names`].

use std::num::NonZeroU16;

use super::Volume;
use super::namespace::{check_name, exists};
use crate::metadata::{FileAttributes, FileRecord, FolderRecord, Record};
use crate::object::Attributes;
use crate::settings::LONGEST_NAME;
use crate::{Error, ErrorKind, Object, Result};

/// A folder of objects that is there of itself, be it empty.
///
/// ```
/// use tanada_volume::Folder;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// volume.set_folder("shop", &Folder::default())?;
/// assert_eq!(volume.folders()[0].0, "shop");
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folder {
    /// Owner, mode and times.
    pub file: FileAttributes,
    /// What new files in it get.
    pub attributes: Attributes,
}

fn no_folder(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no folder {name:?}"))
}

/// Whether `name` lies below the folder, at any depth.
fn is_below(name: &str, folder: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

impl Volume {
    /// Makes an empty object with the attributes of a file.
    ///
    /// # Errors
    /// As [`create_object`](Self::create_object).
    pub fn create_file(&self, name: &str, attributes: &Attributes, file: FileAttributes) -> Result<Object> {
        self.create_with(name, attributes, Some(file))
    }

    /// All folders that are there of themselves, by name; that with the empty name is the root.
    pub fn folders(&self) -> Vec<(String, Folder)> {
        let records: Vec<(String, FolderRecord)> = {
            let namespace = self.core.namespace.lock();
            namespace.folders.iter().map(|(name, folder)| (name.clone(), *folder)).collect()
        };
        records.into_iter().map(|(name, record)| (name, self.folder(&record))).collect()
    }

    fn folder(&self, record: &FolderRecord) -> Folder {
        let classes = self.core.class_list();
        let name = |id: Option<u8>| id.and_then(|id| classes.by_id(id)).map(|class| class.name.clone());
        let attributes = Attributes {
            class: name(record.attributes.class),
            pin: name(record.attributes.pin),
            quota_bytes: record.attributes.quota_bytes,
            compression: record.settings.compression,
            page_bytes: record.page_shift.map(|shift| 1 << shift),
            encryption: record.settings.key.map(NonZeroU16::get),
        };
        Folder { file: record.file, attributes }
    }

    /// Makes a folder, or changes what is said about one.
    ///
    /// # Errors
    /// `InvalidInput` if the name is no name or the attributes make no sense, `NotFound` if they name no class,
    /// `AlreadyExists` if an object has the name, `MissingKey`, `ReadOnly`.
    pub fn set_folder(&self, name: &str, folder: &Folder) -> Result<()> {
        self.core.check_writable()?;
        if !name.is_empty() {
            check_name(name)?;
        }
        let wanted = self.core.wanted(&folder.attributes, None)?;
        let record = FolderRecord {
            file: folder.file,
            attributes: self.attribute_record(&folder.attributes)?,
            settings: wanted.settings,
            page_shift: wanted.page_bytes.map(|bytes| bytes.trailing_zeros() as u8),
        };
        let (set, _) = self.core.journal.change(|queue| {
            let mut namespace = self.core.namespace.lock();
            if namespace.by_name.contains_key(name) {
                return Err(exists(name));
            }
            namespace.folders.insert(name.to_owned(), record);
            queue.push(&Record::File(FileRecord::Folder { name: name.to_owned(), folder: record }));
            Ok(())
        });
        set
    }

    /// Removes a folder. What lies below it stays; who wants empty folders only has to look before.
    ///
    /// # Errors
    /// `NotFound`, `ReadOnly`.
    pub fn remove_folder(&self, name: &str) -> Result<()> {
        self.core.check_writable()?;
        let (removed, _) = self.core.journal.change(|queue| {
            let mut namespace = self.core.namespace.lock();
            namespace.folders.remove(name).ok_or_else(|| no_folder(name))?;
            queue.push(&Record::File(FileRecord::FolderRemoved { name: name.to_owned() }));
            Ok(())
        });
        removed
    }

    /// Gives a folder another name, with all objects and folders below it. It takes the place of an empty folder that
    /// has the name.
    ///
    /// # Errors
    /// `NotFound`; `AlreadyExists` if there is an object of the new name, or anything below it; `InvalidInput` if the
    /// new name is no name, lies below the folder itself, or makes a name too long; `ReadOnly`.
    pub fn rename_folder(&self, name: &str, new_name: &str) -> Result<()> {
        self.core.check_writable()?;
        check_name(name)?;
        check_name(new_name)?;
        if is_below(new_name, name) {
            return Err(Error::invalid(format!("folder {name:?} cannot lie below itself, as {new_name:?}")));
        }
        let (renamed, _) = self.core.journal.change(|queue| {
            let mut namespace = self.core.namespace.lock();
            if !namespace.folders.contains_key(name) {
                return Err(no_folder(name));
            }
            if name == new_name {
                return Ok(());
            }
            let names = || namespace.by_name.keys().chain(namespace.folders.keys());
            if namespace.by_name.contains_key(new_name) || names().any(|other| is_below(other, new_name)) {
                return Err(exists(new_name));
            }
            let longest = names().filter(|other| is_below(other, name)).map(String::len).max().unwrap_or(0);
            if (longest + new_name.len()).saturating_sub(name.len()) > LONGEST_NAME {
                let message = format!("below {new_name:?} a name would have more than {LONGEST_NAME} bytes");
                return Err(Error::invalid(message));
            }
            let (name, new_name) = (name.to_owned(), new_name.to_owned());
            if namespace.folders.remove(&new_name).is_some() {
                let name = new_name.clone();
                queue.push(&Record::File(FileRecord::FolderRemoved { name }));
            }
            namespace.rename_folder(&name, &new_name);
            queue.push(&Record::File(FileRecord::FolderRenamed { name, new_name }));
            Ok(())
        });
        renamed
    }

    /// Gives an object the name of another one, which gets the name `aside`.
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists` if `aside` is taken, `InvalidInput`, `ReadOnly`.
    pub fn replace(&self, name: &str, new_name: &str, aside: &str) -> Result<()> {
        self.core.check_writable()?;
        check_name(aside)?;
        let (replaced, _) = self.core.journal.change(|queue| {
            let mut namespace = self.core.namespace.lock();
            let there = |wanted: &str| namespace.by_name.contains_key(wanted);
            if let Some(missing) = [name, new_name].into_iter().find(|wanted| !there(wanted)) {
                return Err(Error::new(ErrorKind::NotFound, format!("there is no object {missing:?}")));
            }
            if there(aside) {
                return Err(exists(aside));
            }
            if name == new_name {
                return Ok(());
            }
            for (from, to) in [(new_name, aside), (name, new_name)] {
                if let Some(id) = namespace.rename_object(from, to) {
                    queue.push(&Record::Renamed { id, name: to.to_owned() });
                }
            }
            Ok(())
        });
        replaced
    }

    /// Returns when every change of names, folders and attributes that was made before the call is durable. Data are
    /// not made durable.
    ///
    /// # Errors
    /// If the metadata device fails.
    pub async fn sync_names(&self) -> Result<()> {
        self.core.check_writable()?;
        self.core.commit(self.core.journal.end()).await
    }
}

impl Object {
    /// What a file system keeps of it, if one ever had it.
    pub fn file_attributes(&self) -> Option<FileAttributes> {
        *self.state.file.lock()
    }

    /// Sets what a file system keeps of it. Durable after the next sync.
    ///
    /// # Errors
    /// `NotFound` if the object was deleted, `ReadOnly`.
    pub fn set_file_attributes(&self, file: FileAttributes) -> Result<()> {
        self.core.check_writable()?;
        let (set, _) = self.core.journal.change(|queue| {
            self.state.check_there()?;
            *self.state.file.lock() = Some(file);
            queue.push(&Record::File(FileRecord::Attributes { id: self.state.id, file }));
            Ok(())
        });
        set
    }
}
