//! Objects by name: creating, finding, renaming, deleting.
//!
//! These change memory and queue records; they are durable after the next sync of anything. In memory and on the device
//! they happen in the same order.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Volume;
use crate::adopted::AdoptedFile;
use crate::crash::PlantedBug;
use crate::metadata::{AttributeRecord, FileAttributes, FileRecord, Record};
use crate::object::{Attributes, ObjectState};
use crate::page::Wanted;
use crate::settings::LONGEST_NAME;
use crate::{Error, ErrorKind, Object, Result};

pub(super) fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > LONGEST_NAME {
        return Err(Error::invalid(format!("the name of an object has from 1 to {LONGEST_NAME} bytes")));
    }
    // Folders of objects become folders of files, and nobody's files may be overwritten by a name.
    if name.contains('\0') || name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(Error::invalid(format!(
            "{name:?} is no name of an object: its parts, separated by single slashes, are not empty, not . or .., and without NUL"
        )));
    }
    Ok(())
}

pub(super) fn exists(name: &str) -> Error {
    Error::new(ErrorKind::AlreadyExists, format!("there is an object {name:?} already"))
}

impl Volume {
    fn object(&self, state: &Arc<ObjectState>) -> Object {
        Object { core: self.core.clone(), state: state.clone() }
    }

    /// Makes an empty object.
    ///
    /// ```
    /// use tanada_volume::{Attributes, ErrorKind};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let fast = Attributes { class: Some("fast".to_owned()), ..Attributes::default() };
    /// volume.create_object("a", &fast)?;
    /// assert_eq!(volume.create_object("a", &fast).unwrap_err().kind(), ErrorKind::AlreadyExists);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `AlreadyExists`, `InvalidInput` if the name is no name, `NotFound` if an attribute names no class, `ReadOnly`.
    pub fn create_object(&self, name: &str, attributes: &Attributes) -> Result<Object> {
        self.create_with(name, attributes, None)
    }

    pub(super) fn create_with(
        &self,
        name: &str,
        attributes: &Attributes,
        file: Option<FileAttributes>,
    ) -> Result<Object> {
        self.core.check_writable()?;
        check_name(name)?;
        let wanted = self.core.wanted(attributes, None)?;
        let attributes = self.attribute_record(attributes)?;
        self.add_object(name, attributes, Some(&wanted).filter(|wanted| !wanted.is_plain()), None, file)
    }

    pub(crate) fn create_adopted(
        &self,
        name: &str,
        attributes: &Attributes,
        file: AdoptedFile,
    ) -> Result<Object> {
        check_name(name)?;
        if !self.core.wanted(attributes, None)?.is_plain() {
            return Err(Error::invalid(
                "an adopted file is read as it is: it cannot be compressed or encrypted",
            ));
        }
        let attributes = self.attribute_record(attributes)?;
        self.add_object(name, attributes, None, Some(file), None)
    }

    /// Adds an object, plain or adopted.
    fn add_object(
        &self,
        name: &str,
        attributes: AttributeRecord,
        wanted: Option<&Wanted>,
        adopted: Option<AdoptedFile>,
        file: Option<FileAttributes>,
    ) -> Result<Object> {
        let (added, _) = self.core.journal.change(|queue| {
            let mut namespace = self.core.namespace.lock();
            if namespace.by_name.contains_key(name) {
                return Err(exists(name));
            }
            let id = namespace.next_id;
            namespace.next_id += 1;
            let record = adopted.as_ref().map(|file| (file.path.clone(), file.identity()));
            let size_bytes = record.as_ref().map_or(0, |(_, identity)| identity.size_bytes);
            queue.push(&Record::Object { id, name: name.to_owned(), adopted: record });
            queue.push(&Record::Size { id, size_bytes, tail_is_stale: false });
            if attributes != AttributeRecord::default() {
                queue.push(&Record::Attributes { id, attributes });
            }
            let state = ObjectState::new(id, name.to_owned(), adopted);
            state.size.store(size_bytes, Ordering::SeqCst);
            state.journaled_size.store(size_bytes, Ordering::SeqCst);
            *state.attributes.lock() = attributes;
            if let Some(file) = file {
                queue.push(&Record::File(FileRecord::Attributes { id, file }));
                *state.file.lock() = Some(file);
            }
            if let Some(wanted) = wanted {
                queue.push(&Record::Paged { id, shift: wanted.shift() as u8, pages: 0 });
                let records = self.core.settings_records(id, wanted.settings);
                records.iter().for_each(|record| queue.push(record));
                let is_first = state.pages.set(self.core.new_pages(wanted)).is_ok();
                debug_assert!(is_first);
            }
            let state = Arc::new(state);
            namespace.objects.insert(id, state.clone());
            namespace.by_name.insert(name.to_owned(), id);
            Ok(state)
        });
        Ok(self.object(&added?))
    }

    /// The object of that name. An adopted file is compared with what it was.
    ///
    /// ```
    /// use tanada_volume::ErrorKind;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// assert_eq!(volume.open_object("no such").unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `NotFound`.
    pub fn open_object(&self, name: &str) -> Result<Object> {
        let namespace = self.core.namespace.lock();
        let state = namespace
            .by_name(name)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no object {name:?}")))?;
        Ok(self.object(state))
    }

    /// All objects, in order of their making.
    ///
    /// ```
    /// use tanada_volume::Attributes;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// volume.create_object("b", &Attributes::default())?;
    /// volume.create_object("a", &Attributes::default())?;
    /// assert_eq!(volume.objects().len(), 2);
    /// # Ok(()) }).unwrap();
    /// ```
    pub fn objects(&self) -> Vec<Object> {
        self.core.namespace.lock().objects.values().map(|state| self.object(state)).collect()
    }

    /// Gives an object another name. Durable after the next sync.
    ///
    /// ```
    /// use tanada_volume::Attributes;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let object = volume.create_object("old", &Attributes::default())?;
    /// volume.rename("old", "new")?;
    /// assert_eq!(object.name(), "new");
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `AlreadyExists`, `InvalidInput`, `ReadOnly`.
    pub fn rename(&self, name: &str, new_name: &str) -> Result<()> {
        self.core.check_writable()?;
        check_name(new_name)?;
        let (renamed, _) = self.core.journal.change(|queue| {
            let mut namespace = self.core.namespace.lock();
            if !namespace.by_name.contains_key(name) {
                return Err(Error::new(ErrorKind::NotFound, format!("there is no object {name:?}")));
            }
            if name == new_name {
                return Ok(());
            }
            if namespace.by_name.contains_key(new_name) {
                return Err(exists(new_name));
            }
            if let Some(id) = namespace.rename_object(name, new_name) {
                queue.push(&Record::Renamed { id, name: new_name.to_owned() });
            }
            Ok(())
        });
        renamed
    }

    /// Deletes an object; its handles are of no use afterwards. Its space is free when that is durable, after the next
    /// sync or when space is needed.
    ///
    /// ```
    /// use tanada_volume::Attributes;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// volume.create_object("a", &Attributes::default())?;
    /// volume.delete("a").await?;
    /// assert!(volume.objects().is_empty());
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `ReadOnly`.
    pub async fn delete(&self, name: &str) -> Result<()> {
        self.core.check_writable()?;
        let object = self.open_object(name)?;
        let hold = object.state.holds.hold(0..=u64::MAX, true).await;
        self.core.check_writable()?;
        let (freed, lsn) = self.core.journal.change(|queue| {
            let state = &object.state;
            let mut namespace = self.core.namespace.lock();
            if state.is_deleted.swap(true, Ordering::SeqCst) {
                return None;
            }
            namespace.objects.remove(&state.id);
            namespace.by_name.remove(&*state.name.read());
            let freed = object.unmap(0, u64::MAX, queue);
            queue.push(&Record::Deleted { id: state.id });
            Some(freed)
        });
        if let Some(pages) = object.state.pages.get() {
            pages.forget_dirty();
        }
        drop(hold);
        let Some(freed) = freed else {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no object {name:?}")));
        };
        self.core.retire(freed.fresh, 0);
        self.core.retire(freed.journaled, lsn);
        Ok(())
    }

    pub(super) fn attribute_record(&self, attributes: &Attributes) -> Result<AttributeRecord> {
        let classes = self.core.class_list();
        let id = |name: &Option<String>| match name {
            Some(name) => classes.by_name(name).map(|class| Some(class.id)),
            None => Ok(None),
        };
        Ok(AttributeRecord {
            class: id(&attributes.class)?,
            pin: id(&attributes.pin)?,
            quota_bytes: attributes.quota_bytes,
        })
    }
}

impl Object {
    /// What was said about the object.
    pub fn attributes(&self) -> Attributes {
        let record = *self.state.attributes.lock();
        let classes = self.core.class_list();
        let name = |id: Option<u8>| id.and_then(|id| classes.by_id(id)).map(|class| class.name.clone());
        let pages = self.state.pages.get();
        let settings = pages.map(|pages| *pages.settings.lock()).unwrap_or_default();
        Attributes {
            class: name(record.class),
            pin: name(record.pin),
            quota_bytes: record.quota_bytes,
            compression: settings.compression,
            page_bytes: pages.map(|pages| pages.page_bytes() as u32),
            encryption: settings.key.map(NonZeroU16::get),
        }
    }

    /// Changes what is said about the object; chunks that are there stay where they are, and pages as they are. Durable
    /// after the next sync.
    ///
    /// ```
    /// use tanada_volume::Attributes;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let object = volume.create_object("a", &Attributes::default())?;
    /// let quota = Attributes { quota_bytes: Some(4 << 20), ..object.attributes() };
    /// object.set_attributes(&quota)?;
    /// assert_eq!(object.attributes(), quota);
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `NotFound` if there is no such class, `ReadOnly`, `MissingKey`; `InvalidInput` for another page size, or a
    /// transform of an object that has none: [`alter`](Self::alter) gives it one.
    pub fn set_attributes(&self, attributes: &Attributes) -> Result<()> {
        self.core.check_writable()?;
        self.state.check_there()?;
        let record = Volume { core: self.core.clone() }.attribute_record(attributes)?;
        let wanted = self.wanted(attributes)?;
        self.check_transform(&wanted)?;
        self.core.journal.change(|queue| {
            if !self.state.is_deleted.load(Ordering::SeqCst) {
                *self.state.attributes.lock() = record;
                if self.core.bug == PlantedBug::ForgetAttributes {
                    return;
                }
                queue.push(&Record::Attributes { id: self.state.id, attributes: record });
                self.set_transform(&wanted, queue);
            }
        });
        Ok(())
    }

    /// Whether something was written that no sync has covered yet; one that is under way has taken the marks, but not
    /// covered it yet.
    pub(crate) fn has_unsynced(&self) -> bool {
        self.state.is_poisoned()
            || self.state.dirty_classes.load(Ordering::SeqCst) != 0
            || self.state.size() != self.state.journaled_size.load(Ordering::SeqCst)
            || !self.state.fresh.lock().entries.is_empty()
            || self.state.pages.get().is_some_and(|pages| pages.has_unsynced())
            || self.state.sync_turns.try_hold(0..=0, true).is_none()
    }
}
