//! Changing the classes of a volume that is in use: adding, draining, removing, resizing. Classes are added, removed
//! and resized one after the other, so that nobody takes the devices of one for ready that another is still preparing.
//!
//! - A class that is drained takes no new chunks; its homes move to the next slower class with room (else to a faster
//!   one), its mirrors are dropped. It stays drained, across openings, until it is removed or filled again.
//! - A class can be removed when nothing lies in it.
//! - A class that is made smaller first gives nothing out behind its new end, then moves what lies there.
//!
//! Who places things by what classes there are can have himself told of changes, whoever makes them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Volume;
use super::listeners::ClassListener;
use super::open::{new_class, prepare_class};
use crate::class::{Class, Keep};
use crate::metadata::Record;
use crate::parts::ClassParts;
use crate::relocation::{Relocated, Relocation};
use crate::settings::{BLOCK_BYTES, ClassSettings, MOST_CLASSES};
use crate::statistics::{IoStatistics, PunchStatistics};
use crate::{Error, ErrorKind, Result};

/// A class as it is.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let classes = volume.classes();
/// let names: Vec<&str> = classes.iter().map(|class| &*class.name).collect();
/// assert_eq!(names, ["fast", "slow"]);
/// assert_eq!(classes[0].free(), classes[0].chunks - classes[0].taken);
/// # Ok(()) }).unwrap();
/// ```
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
    /// How many of these nothing leads to any more: they are free when that is durable and who reads them has ended,
    /// which whoever finds no other chunk sees to.
    pub retired: u64,
    /// It takes no new chunks.
    pub is_draining: bool,
    /// Its mirrors are not read, because a device is missing or failed.
    pub is_failed: bool,
    /// I/Os since the opening.
    pub statistics: IoStatistics,
    /// Holes punched since the opening.
    pub punches: PunchStatistics,
}

impl ClassInfo {
    /// Chunks that can be had.
    pub fn free(&self) -> u64 {
        self.chunks.saturating_sub(self.taken.saturating_sub(self.retired))
    }
}

impl Volume {
    /// Has `listener` called after a class was added, removed, resized or emptied, and when one takes chunks no more or
    /// again, on the thread of who did that, as long as what is given back lives.
    pub fn on_class_change(&self, listener: impl Fn() + Send + Sync + 'static) -> ClassListener {
        let listener = ClassListener(Arc::new(listener));
        self.core.class_listeners.add(&listener);
        listener
    }

    /// Tells of changed classes, and passes on what came of the change.
    fn told<T>(&self, changed: T) -> T {
        self.core.class_listeners.tell();
        changed
    }

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
                // Afterwards: what becomes free in between is not counted twice.
                retired: self.core.retired_of(class.id),
                is_draining: class.is_draining(),
                is_failed: class.is_failed(),
                statistics: class.counters.snapshot(),
                punches: class.punches(),
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
        self.told(self.core.commit(lsn).await)
    }

    /// Empties a class: see the module's head.
    ///
    /// ```
    /// use tanada_volume::{Attributes, Relocation};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_volume::example::run(folder.path(), async |volume| {
    /// let fast = Attributes { class: Some("fast".to_owned()), ..Attributes::default() };
    /// let object = volume.create_object("a", &fast)?;
    /// object.write_bytes(0, b"rice").await?;
    /// let drained = volume.drain_class("fast", &Relocation::default()).await?;
    /// assert_eq!(drained.done, 1);
    /// assert_eq!(object.read_bytes(0, 4).await?, b"rice");
    /// volume.fill_class("fast").await?; // it takes chunks again
    /// # Ok(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// `NoSpace` if the other classes cannot take its chunks: what was moved stays moved, and the class stays drained;
    /// `InvalidInput` if an object is pinned to it; `Device`.
    pub async fn drain_class(&self, name: &str, relocation: &Relocation) -> Result<Relocated> {
        self.core.check_writable()?;
        let class = self.core.class_list().by_name(name)?.clone();
        self.check_not_pinned_to(&class)?;
        self.set_draining(&class, true).await?;
        self.told(self.empty(&class, 0, relocation).await)
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

    async fn set_draining(&self, class: &Arc<Class>, is_draining: bool) -> Result<()> {
        let (set, lsn) = self.core.journal.change(|queue| {
            // Nothing may be recorded of a class that was removed meanwhile, nor of another that has its number now.
            let is_there =
                self.core.classes.read().by_id(class.id).is_some_and(|known| Arc::ptr_eq(known, class));
            if !is_there {
                return Err(Error::new(ErrorKind::NotFound, format!("class {} was removed", class.name)));
            }
            class.is_draining.store(is_draining, Ordering::SeqCst);
            queue.push(&Record::ClassDraining { id: class.id, is_draining });
            Ok(())
        });
        set?;
        self.told(self.core.commit(lsn).await)
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

    /// Removes a class in which nothing lies any more. One that lacks a device, or has failed, needs not be drained
    /// before, as long as nothing has its home there.
    ///
    /// # Errors
    /// `InvalidInput` if something lies there (drain it first) or an object is pinned to it, or if it is the only one;
    /// `Device`.
    pub async fn remove_class(&self, name: &str) -> Result<()> {
        let _turn = self.core.class_turns.hold(0..=0, true).await;
        self.core.check_writable()?;
        let class = self.core.class_list().by_name(name)?.clone();
        if !class.is_draining() {
            let is_lost = class.is_missing() || class.is_failed();
            if self.core.class_list().ranked().len() == 1 {
                return Err(Error::invalid("a volume needs at least one class"));
            }
            if !is_lost || self.has_homes(&class) {
                return Err(Error::invalid(format!("class {name} is in use: drain it first")));
            }
            // What lies there are mirrors that cannot be read.
            self.drain_class(name, &Relocation::default()).await?;
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
            let mut namespace = self.core.namespace.lock();
            for folder in namespace.folders.values_mut() {
                folder.attributes.forget_class(class.id);
            }
            for object in namespace.objects.values() {
                object.attributes.lock().forget_class(class.id);
                object.dirty_classes.fetch_and(!(1 << class.id), Ordering::SeqCst);
            }
            queue.push(&Record::ClassRemoved { id: class.id });
            Ok(())
        });
        removed?;
        self.told(self.core.commit(lsn).await)
    }

    /// Whether a chunk has its home in `class`.
    fn has_homes(&self, class: &Class) -> bool {
        let has_one = |object: &crate::Object| {
            let table = object.state.table.read();
            table.iter_from(0).any(|(_, chunk)| chunk.home.get().is_some_and(|home| home.class == class.id))
        };
        self.objects().iter().any(has_one)
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
        let mut shrinking = None;
        if chunks > before {
            class.reserve(before, chunks, &self.core.buffers, &keep).await?;
            self.core.sync_class(&class).await?;
        } else {
            shrinking = Some(Shrinking::begin(&class, chunks));
            moved = self.empty(&class, chunks, relocation).await?;
        }
        let (resized, lsn) = self.core.journal.change(|queue| {
            let mut allocator = class.allocator.lock();
            if (chunks..allocator.chunks()).any(|no| allocator.is_taken(no)) {
                return Err(Error::invalid(format!(
                    "class {name}: chunks behind the new end are in use; try again"
                )));
            }
            allocator.resize(chunks);
            queue.push(&Record::ClassChunks { id: class.id, chunks });
            Ok(())
        });
        resized?;
        if let Some(shrinking) = shrinking {
            shrinking.finish();
        }
        self.told(self.core.commit(lsn).await)?;
        Ok(moved)
    }
}

/// A class that is being made smaller. It gives out all its chunks again if that comes to nothing, even if nobody waits
/// for the end of it.
struct Shrinking<'a> {
    class: &'a Class,
    before: u32,
}

impl<'a> Shrinking<'a> {
    fn begin(class: &'a Class, chunks: u32) -> Shrinking<'a> {
        let mut allocator = class.allocator.lock();
        let before = allocator.chunks();
        allocator.set_limit(chunks);
        Shrinking { class, before }
    }

    fn finish(mut self) {
        self.before = self.class.allocator.lock().chunks();
    }
}

impl Drop for Shrinking<'_> {
    fn drop(&mut self) {
        self.class.allocator.lock().set_limit(self.before);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use futures::executor::block_on;
    use parking_lot::Mutex;
    use tanada_io::{Device, DeviceOptions};

    use super::*;
    use crate::{OpenOptions, Parts, VolumeSettings};

    fn device(folder: &tempfile::TempDir, name: &str) -> Device {
        let options = DeviceOptions { create: true, ..DeviceOptions::default() };
        Device::open(folder.path().join(name), &options).unwrap()
    }

    #[test]
    fn listeners_hear_of_each_class_change() {
        let folder = tempfile::tempdir().unwrap();
        let class = |name: &str| ClassSettings {
            name: name.to_owned(),
            size_bytes: 1 << 20,
            ..ClassSettings::default()
        };
        let parts = Parts::new(device(&folder, "metadata")).with_class("slow", vec![device(&folder, "slow")]);
        let settings =
            VolumeSettings { id: [1; 16], classes: vec![class("slow")], ..VolumeSettings::default() };
        block_on(async {
            let volume = Volume::create(parts, &settings).await.unwrap();
            let seen = Arc::new(Mutex::new(Vec::new()));
            let (weak, noted) = (Arc::downgrade(&volume.core), seen.clone());
            let listener = volume.on_class_change(move || {
                let volume = Volume { core: weak.upgrade().unwrap() };
                let classes = volume.classes();
                noted
                    .lock()
                    .push(classes.iter().map(|class| (class.chunks, class.is_draining)).collect::<Vec<_>>());
            });
            let devices =
                ClassParts { name: "fast".to_owned(), devices: vec![Some(device(&folder, "fast"))] };
            volume.add_class(&class("fast"), devices, 0).await.unwrap();
            volume.resize_class("fast", 2 << 20, &Relocation::default()).await.unwrap();
            volume.drain_class("fast", &Relocation::default()).await.unwrap();
            volume.fill_class("fast").await.unwrap();
            volume.drain_class("fast", &Relocation::default()).await.unwrap();
            volume.remove_class("fast").await.unwrap();
            let all = seen.lock().clone();
            let chunks = all[0][1].0;
            let with = |fast: u64, is_draining| vec![(fast, is_draining), (chunks, false)];
            let drained = with(2 * chunks, true);
            assert_eq!(
                all,
                [
                    with(chunks, false),
                    with(2 * chunks, false),
                    // When it begins, and at its end.
                    drained.clone(),
                    drained.clone(),
                    with(2 * chunks, false),
                    drained.clone(),
                    drained,
                    vec![(chunks, false)],
                ]
            );
            drop(listener);
            volume.drain_class("slow", &Relocation::default()).await.unwrap();
            assert_eq!(seen.lock().len(), all.len());
        });
    }

    /// The next opening would take it for damage.
    #[test]
    fn removed_classes_are_not_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let device = |name: &str| device(&folder, name);
        let parts = || {
            let parts = Parts::new(device("metadata"));
            parts.with_class("fast", vec![device("a")]).with_class("slow", vec![device("b")])
        };
        let class = |name: &str| ClassSettings {
            name: name.to_owned(),
            size_bytes: 1 << 20,
            ..ClassSettings::default()
        };
        let settings = VolumeSettings {
            id: [1; 16],
            classes: vec![class("fast"), class("slow")],
            ..VolumeSettings::default()
        };
        block_on(async {
            let volume = Volume::create(parts(), &settings).await.unwrap();
            let class = volume.core.class_list().by_name("fast").unwrap().clone();
            volume.drain_class("fast", &Relocation::default()).await.unwrap();
            volume.remove_class("fast").await.unwrap();
            // Who had found it before.
            let kind = volume.set_draining(&class, false).await.unwrap_err().kind();
            assert_eq!(kind, ErrorKind::NotFound);
            volume.sync().await.unwrap();
            drop((class, volume));
            assert_eq!(Volume::open(parts(), &OpenOptions::default()).await.unwrap().classes().len(), 1);
        });
    }
}
