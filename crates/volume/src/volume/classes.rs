//! Changing the classes of a volume that is in use: adding, draining, removing, resizing. Classes are added, removed and resized one after the
//! other, so that nobody takes the devices of one for ready that another is still preparing.
//!
//! - A class that is drained takes no new chunks; its homes move to the next slower class with room (else to a faster one), its mirrors are
//!   dropped. It stays drained, across openings, until it is removed or filled again.
//! - A class can be removed when nothing lies in it.
//! - A class that is made smaller first gives nothing out behind its new end, then moves what lies there.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Volume;
use super::open::{new_class, prepare_class};
use crate::class::{Class, Keep};
use crate::metadata::Record;
use crate::parts::ClassParts;
use crate::relocation::{Relocated, Relocation};
use crate::settings::{BLOCK_BYTES, ClassSettings, MOST_CLASSES};
use crate::statistics::IoStatistics;
use crate::{Error, ErrorKind, Result};

/// A class as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassInfo {
    /// Its name.
    pub name: String,
    /// Its number: what [`crate::Place::class`] says.
    pub number: u8,
    /// Bytes that go to one device before the next has its turn.
    pub segment_bytes: u64,
    /// What its devices are called; `None` for one that is missing.
    pub devices: Vec<Option<String>>,
    /// Physical chunks.
    pub chunks: u64,
    /// Those that are taken, or not yet free again.
    pub taken: u64,
    /// It takes no new chunks.
    pub is_draining: bool,
    /// Its mirrors are not read, because a device is missing or failed.
    pub is_failed: bool,
    /// I/Os since the opening.
    pub statistics: IoStatistics,
}

impl Volume {
    /// The classes, fastest first.
    pub fn classes(&self) -> Vec<ClassInfo> {
        let classes = self.core.class_list();
        let info = |class: &Arc<Class>| {
            let (chunks, taken) = {
                let allocator = class.allocator.lock();
                (u64::from(allocator.chunks()), u64::from(allocator.taken()))
            };
            ClassInfo {
                name: class.name.clone(),
                number: class.id,
                segment_bytes: class.segment_bytes,
                devices: class
                    .devices
                    .iter()
                    .map(|device| device.as_ref().map(|device| device.device().path().display().to_string()))
                    .collect(),
                chunks,
                taken,
                is_draining: class.is_draining(),
                is_failed: class.is_failed(),
                statistics: class.counters.snapshot(),
            }
        };
        classes.ranked().iter().map(info).collect()
    }

    /// Adds a class, before those that have `rank` or more (0: the fastest).
    ///
    /// # Errors
    /// `InvalidInput`, `AlreadyExists` if there is a class of that name, `Device`, `ReadOnly`.
    pub async fn add_class(&self, settings: &ClassSettings, devices: ClassParts, rank: usize) -> Result<()> {
        let _turn = self.core.class_turns.hold(0..=0, true).await;
        self.core.check_writable()?;
        settings.check(self.core.chunk_bytes)?;
        let id = {
            let classes = self.core.class_list();
            if classes.by_name(&settings.name).is_ok() {
                let message = format!("there is a class {} already", settings.name);
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            classes
                .free_id()
                .ok_or_else(|| Error::invalid(format!("a volume has at most {MOST_CLASSES} classes")))?
        };
        let parts = crate::Parts {
            buffers: self.core.buffers.clone(),
            crash_points: self.core.crash.clone(),
            classes: vec![devices],
            ..crate::Parts::new(self.core.journal.device().clone())
        };
        let class = new_class(id, settings, self.core.chunk_bytes, &parts)?;
        prepare_class(&class, self.core.id, &parts).await?;
        // CRASH: labelled, but no class of the volume.
        self.core.crash.reached("class.before-commit");
        let (added, lsn) = self.core.journal.change(|queue| {
            let mut list = self.core.classes.write();
            let mut classes = (**list).clone();
            if classes.by_id(id).is_some() || classes.by_name(&settings.name).is_ok() {
                return Err(Error::new(ErrorKind::AlreadyExists, "another class was added meanwhile"));
            }
            let rank = rank.min(classes.ranked().len());
            queue.push(&Record::Class {
                id,
                rank: rank as u8,
                segment_bytes: class.segment_bytes,
                chunks: class.allocator.lock().chunks(),
                devices: class.devices.len() as u16,
                is_draining: false,
                name: class.name.clone(),
            });
            classes.insert(rank, class);
            *list = Arc::new(classes);
            Ok(())
        });
        added?;
        self.core.commit(lsn).await
    }

    /// Empties a class: see the module's head.
    ///
    /// # Errors
    /// `NoSpace` if the other classes cannot take its chunks: what was moved stays moved, and the class stays drained; `InvalidInput` if an object is
    /// pinned to it; `Device`.
    pub async fn drain_class(&self, name: &str, relocation: &Relocation) -> Result<Relocated> {
        self.core.check_writable()?;
        let class = self.core.class_list().by_name(name)?.clone();
        self.check_not_pinned_to(&class)?;
        self.set_draining(&class, true).await?;
        self.empty(&class, 0, relocation).await
    }

    /// Lets a class take chunks again.
    ///
    /// # Errors
    /// `NotFound`, `ReadOnly`, `Device`.
    pub async fn fill_class(&self, name: &str) -> Result<()> {
        self.core.check_writable()?;
        let class = self.core.class_list().by_name(name)?.clone();
        self.set_draining(&class, false).await
    }

    async fn set_draining(&self, class: &Class, is_draining: bool) -> Result<()> {
        let (_, lsn) = self.core.journal.change(|queue| {
            class.is_draining.store(is_draining, Ordering::SeqCst);
            queue.push(&Record::ClassDraining { id: class.id, is_draining });
        });
        self.core.commit(lsn).await
    }

    fn check_not_pinned_to(&self, class: &Class) -> Result<()> {
        let pinned: Vec<String> = self
            .objects()
            .iter()
            .filter(|object| object.state.attributes.lock().pin == Some(class.id))
            .map(crate::Object::name)
            .collect();
        if pinned.is_empty() {
            return Ok(());
        }
        Err(Error::invalid(format!("class {} has objects pinned to it: {}", class.name, pinned.join(", "))))
    }

    /// Moves everything away that lies in `class` at or behind `from_no`.
    async fn empty(&self, class: &Arc<Class>, from_no: u32, relocation: &Relocation) -> Result<Relocated> {
        let mut all = Relocated::default();
        loop {
            let rank = self.core.class_list().rank(class.id).unwrap_or(0);
            let mut round = Relocated::default();
            for object in self.objects() {
                let moved = object.move_away(class, rank, from_no, relocation).await?;
                round.done += moved.done;
                round.bytes += moved.bytes;
                round.chunks += moved.done;
            }
            all.done += round.done;
            all.bytes += round.bytes;
            all.chunks += round.chunks;
            // First writes that had reserved their chunk before may have come to their end meanwhile.
            if round.done == 0 {
                break;
            }
        }
        self.core.settle().await?;
        Ok(all)
    }

    /// Removes a class in which nothing lies any more.
    ///
    /// # Errors
    /// `InvalidInput` if something does (drain it first), or if it is the only one; `Device`.
    pub async fn remove_class(&self, name: &str) -> Result<()> {
        let _turn = self.core.class_turns.hold(0..=0, true).await;
        self.core.check_writable()?;
        let class = self.core.class_list().by_name(name)?.clone();
        if !class.is_draining() {
            return Err(Error::invalid(format!("class {name} is in use: drain it first")));
        }
        self.core.settle().await?;
        let (removed, lsn) = self.core.journal.change(|queue| {
            let mut list = self.core.classes.write();
            let taken = class.allocator.lock().taken();
            if taken > 0 {
                return Err(Error::invalid(format!(
                    "{taken} chunks lie in class {name} still: drain it first"
                )));
            }
            let mut classes = (**list).clone();
            if classes.ranked().len() == 1 {
                return Err(Error::invalid("a volume needs at least one class"));
            }
            classes.remove(class.id);
            *list = Arc::new(classes);
            drop(list);
            for object in self.core.namespace.lock().objects.values() {
                object.attributes.lock().forget_class(class.id);
                object.dirty_classes.fetch_and(!(1 << class.id), Ordering::SeqCst);
            }
            queue.push(&Record::ClassRemoved { id: class.id });
            Ok(())
        });
        removed?;
        self.core.commit(lsn).await
    }

    /// Makes a class larger or smaller.
    ///
    /// # Errors
    /// `NoSpace` if what lies behind the new end finds no other place; `InvalidInput`, `Device`.
    pub async fn resize_class(
        &self,
        name: &str,
        size_bytes: u64,
        relocation: &Relocation,
    ) -> Result<Relocated> {
        let _turn = self.core.class_turns.hold(0..=0, true).await;
        self.core.check_writable()?;
        let class = self.core.class_list().by_name(name)?.clone();
        let settings = ClassSettings {
            name: name.to_owned(),
            segment_bytes: class.segment_bytes.max(BLOCK_BYTES),
            size_bytes,
        };
        settings.check(self.core.chunk_bytes)?;
        let chunks = (size_bytes / self.core.chunk_bytes) as u32;
        let keep: Keep = Arc::new(());
        let before = class.allocator.lock().chunks();
        let mut moved = Relocated::default();
        if chunks > before {
            class.reserve(before, chunks, &self.core.buffers, &keep).await?;
            self.core.sync_class(&class).await?;
        } else {
            class.allocator.lock().set_limit(chunks);
            let emptied = self.empty(&class, chunks, relocation).await;
            moved = emptied.inspect_err(|_| class.allocator.lock().set_limit(before))?;
        }
        let (resized, lsn) = self.core.journal.change(|queue| {
            let mut allocator = class.allocator.lock();
            if (chunks..allocator.chunks()).any(|no| allocator.is_taken(no)) {
                allocator.set_limit(before);
                return Err(Error::invalid(format!(
                    "class {name}: chunks behind the new end are in use; try again"
                )));
            }
            allocator.resize(chunks);
            queue.push(&Record::ClassChunks { id: class.id, chunks });
            Ok(())
        });
        resized?;
        self.core.commit(lsn).await?;
        Ok(moved)
    }
}
