//! What a log says, put together: classes, objects and their chunks.

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU16;
use std::time::Duration;

use super::{AttributeRecord, FileAttributes, FileRecord, FolderRecord, Record};
use crate::adopted::Identity;
use crate::chunk::table::ChunkTable;
use crate::page::PageSettings;
use crate::page::recovered::RecoveredPages;
use crate::settings::{LARGEST_OBJECT, MOST_CLASSES};
use crate::transform::{Algorithm, Compression};

/// A class as recorded.
#[derive(Debug, Clone)]
pub(crate) struct RecoveredClass {
    pub(crate) id: u8,
    pub(crate) name: String,
    pub(crate) segment_bytes: u64,
    pub(crate) chunks: u32,
    pub(crate) devices: u16,
    pub(crate) is_draining: bool,
}

/// An object as recorded.
#[derive(Debug, Default)]
pub(crate) struct RecoveredObject {
    pub(crate) name: String,
    pub(crate) adopted: Option<(String, Identity)>,
    pub(crate) size_bytes: u64,
    pub(crate) tail_is_stale: bool,
    pub(crate) attributes: AttributeRecord,
    pub(crate) table: ChunkTable,
    pub(crate) pages: Option<RecoveredPages>,
    pub(crate) file: Option<FileAttributes>,
}

/// What time it is outside when a log is read, and in which time heat halves: heats went on cooling while the volume
/// was closed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct WallTime {
    /// Since 1970; `None` if nobody said.
    pub(crate) now: Option<Duration>,
    pub(crate) half_life_s: f32,
}

/// All that a log says.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    /// Fastest first.
    pub(crate) classes: Vec<RecoveredClass>,
    pub(crate) objects: BTreeMap<u64, RecoveredObject>,
    pub(crate) next_object: u64,
    /// Folders by name.
    pub(crate) folders: BTreeMap<String, FolderRecord>,
    /// Check values of keys.
    pub(crate) keys: BTreeMap<NonZeroU16, [u8; 8]>,
    chunk_bytes: u64,
    now: Duration,
    wall: WallTime,
    /// What is left of heats that the checkpoint remembers.
    cooling: f32,
    by_name: HashMap<String, u64>,
}

impl Recovered {
    pub(crate) fn new(chunk_bytes: u64, now: Duration, wall: WallTime) -> Recovered {
        Recovered { chunk_bytes, now, wall, cooling: 1.0, next_object: 1, ..Recovered::default() }
    }

    fn object(&mut self, id: u64) -> Result<&mut RecoveredObject, String> {
        self.objects.get_mut(&id).ok_or_else(|| format!("there is no object number {id}"))
    }

    fn class(&mut self, id: u8) -> Result<&mut RecoveredClass, String> {
        self.classes
            .iter_mut()
            .find(|class| class.id == id)
            .ok_or_else(|| format!("there is no class number {id}"))
    }

    /// The largest chunk number plus one.
    fn most_chunks(&self) -> u64 {
        LARGEST_OBJECT / self.chunk_bytes
    }

    fn check_chunks(&self, first: u64, count: u64) -> Result<(), String> {
        match first.checked_add(count) {
            Some(end) if end <= self.most_chunks() => Ok(()),
            _ => Err(format!("{count} chunks from {first} are more than an object has")),
        }
    }

    /// Applies the next record of the log.
    pub(crate) fn apply(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Class { .. }
            | Record::ClassDraining { .. }
            | Record::ClassChunks { .. }
            | Record::ClassRemoved { .. } => self.apply_class(record),
            Record::Object { id, name, adopted } => {
                if self.objects.contains_key(&id) || self.by_name.insert(name.clone(), id).is_some() {
                    return Err(format!("object number {id}, {name:?}, is there twice"));
                }
                self.next_object = self.next_object.max(id.saturating_add(1));
                self.objects.insert(id, RecoveredObject { name, adopted, ..RecoveredObject::default() });
                Ok(())
            }
            Record::Renamed { id, name } => {
                let old = std::mem::replace(&mut self.object(id)?.name, name.clone());
                self.by_name.remove(&old);
                if self.by_name.insert(name.clone(), id).is_some() {
                    return Err(format!("two objects are named {name:?}"));
                }
                Ok(())
            }
            Record::Deleted { id } => {
                let gone =
                    self.objects.remove(&id).ok_or_else(|| format!("there is no object number {id}"))?;
                self.by_name.remove(&gone.name);
                Ok(())
            }
            Record::Size { id, size_bytes, tail_is_stale } => {
                if size_bytes > LARGEST_OBJECT {
                    return Err(format!("object number {id} has {size_bytes} bytes"));
                }
                let object = self.object(id)?;
                (object.size_bytes, object.tail_is_stale) = (size_bytes, tail_is_stale);
                Ok(())
            }
            Record::Attributes { id, attributes } => {
                self.object(id)?.attributes = attributes;
                Ok(())
            }
            Record::Adopted { id, identity } => {
                let object = self.object(id)?;
                let Some((_, adopted)) = &mut object.adopted else {
                    return Err(format!("object number {id} is no adopted file"));
                };
                *adopted = identity;
                object.size_bytes = identity.size_bytes;
                Ok(())
            }
            Record::WallTime { ms } => {
                let age_s = self.wall.now.map_or(0.0, |now| (now.as_millis() as f64 - ms as f64) / 1e3);
                self.cooling = (-age_s.max(0.0) / f64::from(self.wall.half_life_s)).exp2() as f32;
                Ok(())
            }
            Record::CheckpointEnd { .. } => Ok(()),
            Record::NextObject { id } => {
                self.next_object = self.next_object.max(id);
                Ok(())
            }
            Record::Paged { .. }
            | Record::Transform { .. }
            | Record::Pages { .. }
            | Record::PagesUnmapped { .. }
            | Record::LogicalSize { .. } => self.apply_pages(record),
            Record::Key { key, check } => {
                let key = NonZeroU16::new(key).ok_or("a key with the identifier 0")?;
                self.keys.insert(key, check);
                Ok(())
            }
            Record::File(record) => self.apply_file(record),
            _ => self.apply_chunks(record),
        }
    }

    fn apply_file(&mut self, record: FileRecord) -> Result<(), String> {
        match record {
            FileRecord::Attributes { id, file } => self.object(id)?.file = Some(file),
            FileRecord::Folder { name, folder } => {
                self.folders.insert(name, folder);
            }
            FileRecord::FolderRemoved { name } => {
                self.folders.remove(&name).ok_or_else(|| format!("there is no folder {name:?}"))?;
            }
            FileRecord::FolderRenamed { name, new_name } => {
                let folders = std::mem::take(&mut self.folders);
                self.folders = renamed_folders(folders, &name, &new_name);
                for (id, object) in &mut self.objects {
                    let Some(renamed) = renamed_below(&object.name, &name, &new_name) else { continue };
                    self.by_name.remove(&object.name);
                    if self.by_name.insert(renamed.clone(), *id).is_some() {
                        return Err(format!("two objects are named {renamed:?}"));
                    }
                    object.name = renamed;
                }
            }
        }
        Ok(())
    }

    fn pages(&mut self, id: u64) -> Result<&mut RecoveredPages, String> {
        self.object(id)?.pages.as_mut().ok_or_else(|| format!("object number {id} has no pages"))
    }

    fn apply_pages(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Paged { id, shift, pages } => {
                let chunk_bytes = self.chunk_bytes;
                let object = self.object(id)?;
                if object.pages.is_some() || object.adopted.is_some() {
                    return Err(format!("object number {id} cannot get pages"));
                }
                object.pages = Some(RecoveredPages::new(shift, pages, &object.table, chunk_bytes)?);
            }
            Record::Transform { id, algorithm, level, key } => {
                let algorithm = Algorithm::from_number(algorithm);
                let compression = algorithm.and_then(|algorithm| Compression::new(algorithm, level));
                let compression = compression.ok_or_else(|| format!("a compression of level {level}"))?;
                self.pages(id)?.settings = PageSettings { compression, key: NonZeroU16::new(key) };
            }
            Record::Pages { id, first, words } => self.pages(id)?.set(first, &words)?,
            Record::PagesUnmapped { id, first, count } => self.pages(id)?.unmap(first, count),
            Record::LogicalSize { id, size_bytes } if size_bytes <= LARGEST_OBJECT => {
                self.pages(id)?.size = size_bytes;
            }
            Record::LogicalSize { id, size_bytes } => {
                return Err(format!("object number {id} has {size_bytes} bytes"));
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_class(&mut self, record: Record) -> Result<(), String> {
        match record {
            Record::Class { id, rank, segment_bytes, chunks, devices, is_draining, name } => {
                let is_sane = (id as usize) < MOST_CLASSES
                    && segment_bytes.is_power_of_two()
                    && (4096..=1 << 30).contains(&segment_bytes)
                    && devices > 0
                    && !self.classes.iter().any(|class| class.id == id || class.name == name);
                if !is_sane {
                    return Err(format!("class {name:?}, number {id}, makes no sense"));
                }
                let class = RecoveredClass { id, name, segment_bytes, chunks, devices, is_draining };
                self.classes.insert((rank as usize).min(self.classes.len()), class);
            }
            Record::ClassDraining { id, is_draining } => self.class(id)?.is_draining = is_draining,
            Record::ClassChunks { id, chunks } => self.class(id)?.chunks = chunks,
            Record::ClassRemoved { id } => {
                self.class(id)?;
                self.classes.retain(|class| class.id != id);
                for object in self.objects.values_mut() {
                    object.attributes.forget_class(id);
                }
                for folder in self.folders.values_mut() {
                    folder.attributes.forget_class(id);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_chunks(&mut self, record: Record) -> Result<(), String> {
        let now = self.now;
        match record {
            Record::Mapped { id, first, count, place } => {
                self.check_chunks(first, u64::from(count))?;
                if place.no.checked_add(count).is_none() {
                    return Err(format!("{count} chunks from {place} are more than a class has"));
                }
                let table = &mut self.object(id)?.table;
                for i in 0..count {
                    let chunk = first + u64::from(i);
                    let place = crate::chunk::Place { no: place.no + i, ..place };
                    table.leaf_or_new(chunk).chunk(chunk).home.set(Some(place));
                }
            }
            Record::Unmapped { id, first, count } => {
                let object = self.object(id)?;
                let end = first.saturating_add(count);
                for (_, chunk) in object.table.iter_from(first).take_while(|(no, _)| *no < end) {
                    chunk.home.set(None);
                    chunk.mirror.set(None);
                }
            }
            Record::Mirrored { id, chunk, place } => {
                self.check_chunks(chunk, 1)?;
                self.object(id)?.table.leaf_or_new(chunk).chunk(chunk).mirror.set(Some(place));
            }
            Record::Unmirrored { id, chunk } => {
                if let Some(chunk) = self.object(id)?.table.chunk(chunk) {
                    chunk.mirror.set(None);
                }
            }
            Record::AllUnmirrored { id } => {
                self.object(id)?.table.iter_from(0).for_each(|(_, chunk)| chunk.mirror.set(None));
            }
            Record::Statistics { id, chunk, mut statistics } => {
                self.check_chunks(chunk, 1)?;
                statistics.heat *= self.cooling;
                self.object(id)?.table.leaf_or_new(chunk).chunk(chunk).restore(&statistics, now);
            }
            _ => {}
        }
        Ok(())
    }
}

/// The name of what lies below a folder, when the folder has another name; `None` if it does not lie there.
pub(crate) fn renamed_below(name: &str, folder: &str, new_folder: &str) -> Option<String> {
    let rest = name.strip_prefix(folder).filter(|rest| rest.starts_with('/'))?;
    Some(format!("{new_folder}{rest}"))
}

/// Folders when one of them has another name, with those below it.
pub(crate) fn renamed_folders(
    folders: BTreeMap<String, FolderRecord>,
    folder: &str,
    new_folder: &str,
) -> BTreeMap<String, FolderRecord> {
    let renamed = |name: String| match renamed_below(&name, folder, new_folder) {
        Some(renamed) => renamed,
        None if name == folder => new_folder.to_owned(),
        None => name,
    };
    folders.into_iter().map(|(name, record)| (renamed(name), record)).collect()
}

impl AttributeRecord {
    /// No attribute may name a class that is gone.
    pub(crate) fn forget_class(&mut self, id: u8) {
        if self.class == Some(id) {
            self.class = None;
        }
        if self.pin == Some(id) {
            self.pin = None;
        }
    }
}
