//! Adopting files, and comparing them with what they were ([`crate::adopted`]).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tanada_io::Buffer;

use crate::adopted::AdoptedFile;
use crate::metadata::Record;
use crate::object::state::{Attributes, ObjectState};
use crate::settings::LARGEST_OBJECT;
use crate::volume::Core;
use crate::{Error, Object, Result, Volume};

impl Core {
    fn adopted(self: &Arc<Self>) -> impl Iterator<Item = Object> {
        let objects: Vec<Arc<ObjectState>> = self.namespace.lock().objects.values().cloned().collect();
        let adopted = objects.into_iter().filter(|state| state.adopted.is_some());
        adopted.map(|state| Object { core: self.clone(), state })
    }

    /// Compares all adopted files with what they were; mirrors of those that changed are not read any more. Those that
    /// had some are told of to whoever asks first.
    pub(crate) fn check_adopted_at_opening(self: &Arc<Self>) {
        let had_mirrors = |object: &Object| {
            object.state.table.read().iter_from(0).any(|(_, chunk)| chunk.mirror.get().is_some())
        };
        let changed = self.adopted().filter(|object| {
            let had_mirrors = had_mirrors(object);
            object.check_adopted() && had_mirrors
        });
        *self.changed_at_opening.lock() = changed.map(|object| object.state).collect();
    }
}

impl Volume {
    /// Adopts the file at `path`: it stays where it is, and is read through the object from now on.
    ///
    /// # Errors
    /// `NotFound` or `Device` if the file cannot be opened, `AlreadyExists` if there is an object of that name,
    /// `ReadOnly`.
    pub fn adopt(&self, name: &str, path: &str, attributes: &Attributes) -> Result<Object> {
        self.core.check_writable()?;
        let (device, identity) =
            self.core.opener.open(path).map_err(|error| Error::io(format!("cannot adopt {path}"), &error))?;
        if identity.size_bytes > LARGEST_OBJECT || path.len() > usize::from(u16::MAX) {
            return Err(Error::invalid(format!("cannot adopt {path}: it is too long")));
        }
        let file = AdoptedFile::new(path.to_owned(), Some(device), identity);
        self.create_adopted(name, attributes, file)
    }

    /// Looks whether adopted files are what they were; those that are not, whose mirrors were dropped. The first time
    /// those that lost mirrors at the opening are among them. To be called now and then: mirrors of a file that has
    /// changed since are served until then.
    pub fn check_adopted(&self) -> Vec<Object> {
        let at_opening = std::mem::take(&mut *self.core.changed_at_opening.lock());
        let mut changed: Vec<Object> = self.core.adopted().filter(Object::check_adopted).collect();
        let known: Vec<u64> = changed.iter().map(Object::id).collect();
        let at_opening = at_opening.into_iter().map(|state| Object { core: self.core.clone(), state });
        changed.extend(at_opening.filter(|object| !known.contains(&object.id())));
        changed
    }
}

impl Object {
    /// The path of an adopted file.
    pub fn adopted_path(&self) -> Option<&str> {
        self.state.adopted.as_ref().map(|file| file.path.as_str())
    }

    /// Compares the adopted file with what it was; if it has changed, drops its mirrors and takes it as it is now.
    /// Whether it has changed, or is gone.
    pub fn check_adopted(&self) -> bool {
        let Some(file) = &self.state.adopted else { return false };
        let now = self.core.opener.identity(&file.path);
        let is_same = now.as_ref().is_ok_and(|now| *now == file.identity());
        if is_same && file.device.read().is_some() {
            return false;
        }
        let opened = self.core.opener.open(&file.path).ok();
        let (mirrors, lsn) = self.core.journal.change(|queue| {
            let id = self.state.id;
            let mut mirrors = Vec::new();
            // Nothing may be recorded of an object that is gone.
            if self.state.is_deleted.load(Ordering::SeqCst) {
                return mirrors;
            }
            for (_, chunk) in self.state.table.read().iter_from(0) {
                mirrors.extend(chunk.mirror.get());
                chunk.mirror.set(None);
            }
            if !mirrors.is_empty() {
                queue.push(&Record::AllUnmirrored { id });
            }
            if let Some((_, identity)) = &opened {
                file.set_identity(*identity);
                self.state.size.store(identity.size_bytes, Ordering::SeqCst);
                self.state.journaled_size.store(identity.size_bytes, Ordering::SeqCst);
                queue.push(&Record::Adopted { id, identity: *identity });
            }
            mirrors
        });
        let old = std::mem::replace(&mut *file.device.write(), opened.map(|(device, _)| device));
        drop(old);
        self.core.retire(mirrors, lsn);
        true
    }

    /// A part of the adopted file, zeros behind its end; `None` if the file changed meanwhile, so that it must not
    /// become a mirror.
    pub(crate) async fn read_adopted(&self, offset: u64, mut buffer: Buffer) -> Result<Option<Buffer>> {
        let Some(file) = &self.state.adopted else { return Ok(None) };
        if self.check_adopted() {
            return Ok(None);
        }
        let device = file.device.read().clone();
        let Some(device) = device else { return Ok(None) };
        let len = buffer.len();
        let read = device.read(offset, buffer).await;
        buffer = read.map_err(|error| Error::io(format!("the adopted file {}", file.path), &error))?;
        let found = buffer.len();
        buffer.resize(len);
        buffer[found..].fill(0);
        Ok((!self.check_adopted()).then_some(buffer))
    }
}
