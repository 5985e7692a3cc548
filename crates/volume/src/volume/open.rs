//! Making a volume and opening one.
//!
//! Opening:
//! 1. choose the superblock (if one is lost, see `metadata/successor.rs`), read its log;
//! 2. match classes and devices, by name and label; what is missing makes the volume read-only, unless only mirrors
//!    were there;
//! 3. derive what is taken from the mapping; what is claimed twice is damage;
//! 4. after an unclean stop: make durable what survived in the devices' caches, so that it cannot change any more, take
//!    every object's tail for stale, and begin a new log;
//! 5. mark the volume as in use;
//! 6. look whether adopted files are what they were.

use std::collections::{BTreeMap, HashSet};
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::join_all;

use super::Volume;
use super::core::{Core, CoreParts, Namespace};
use crate::adopted::AdoptedFile;
use crate::chunk::Place;
use crate::class::{Class, ClassList, Keep};
use crate::metadata::{
    FIRST_LOG_OFFSET, InForce, Journal, Log, Recovered, RecoveredClass, RecoveredObject, Replayed,
    Superblock, WallTime, read_superblock, replay,
};
use crate::object::ObjectState;
use crate::settings::{ClassSettings, MOST_DEVICES, OpenOptions, VolumeSettings};
use crate::{Error, ErrorKind, Parts, Result};

/// How many names a message lists.
const MOST_NAMES: usize = 8;

impl Volume {
    /// Makes a volume on `parts`, which must not hold one.
    ///
    /// # Errors
    /// `InvalidInput` if settings or parts make no sense, `AlreadyExists` if there is a volume on the metadata device,
    /// `Device`.
    pub async fn create(parts: Parts, settings: &VolumeSettings) -> Result<Volume> {
        settings.check()?;
        match read_superblock(&parts.metadata, &parts.buffers).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(_) => {
                let message = format!("{} holds a volume already", parts.metadata.path().display());
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
        }
        let mut classes = ClassList::default();
        for (rank, class) in settings.classes.iter().enumerate() {
            let class = new_class(rank as u8, class, settings.chunk_bytes, &parts)?;
            prepare_class(&class, settings.id, &parts).await?;
            classes.insert(rank, class);
        }
        // CRASH: no superblock yet, so no volume.
        parts.crash_points.reached("create.before-superblock");
        let blank = Superblock {
            sequence: 0,
            volume: settings.id,
            chunk_bytes: settings.chunk_bytes,
            is_clean: false,
            generation: first_generation(settings.id),
            log_offset: FIRST_LOG_OFFSET,
            log_bytes: 0,
            checkpoint_blocks: 0,
            clean_seq: 0,
            journal_bytes: settings.journal_bytes,
            heat_half_life_s: settings.heat_half_life_s,
        };
        let log = Log { used_bytes: 0, next_seq: 0 };
        let core = assemble(
            parts,
            blank,
            log,
            classes,
            Namespace { next_id: 1, ..Namespace::default() },
            None,
            true,
            BTreeMap::new(),
        );
        // One for each superblock: from here on a place that holds none is damage.
        core.journal.checkpoint(&*core).await?;
        core.journal.checkpoint(&*core).await?;
        Ok(Volume { core })
    }

    /// Opens the volume on `parts`.
    ///
    /// # Errors
    /// `NotFound` if there is none, `FutureFormat`, `WrongVolume` if metadata or devices are another's, `Corrupted`,
    /// `Device`.
    pub async fn open(parts: Parts, options: &OpenOptions) -> Result<Volume> {
        Volume::open_with(parts, options, false).await
    }

    /// Opens, and drops mirrors that cannot be right.
    pub(crate) async fn open_and_repair(parts: Parts, options: &OpenOptions) -> Result<Volume> {
        Volume::open_with(parts, options, true).await
    }

    async fn open_with(parts: Parts, options: &OpenOptions, repair: bool) -> Result<Volume> {
        let InForce { superblock, is_derived, .. } = read_superblock(&parts.metadata, &parts.buffers).await?;
        if options.expected_id.is_some_and(|id| id != superblock.volume) {
            let message = format!("{} holds another volume", parts.metadata.path().display());
            return Err(Error::new(ErrorKind::WrongVolume, message));
        }
        let wall = WallTime { now: parts.wall_time, half_life_s: superblock.heat_half_life_s };
        let mut recovered = Recovered::new(superblock.chunk_bytes, parts.clock.now(), wall);
        let replayed =
            replay(&parts.metadata, &parts.buffers, &superblock, |record| recovered.apply(record)).await?;
        // CRASH: nothing was changed yet; the next opening reads the same.
        parts.crash_points.reached("recovery.after-replay");
        let classes = open_classes(&recovered, &superblock, &parts).await?;
        let wrong_mirrors = if repair { drop_wrong_mirrors(&recovered, &classes) } else { Vec::new() };
        take_places(&recovered, &classes)?;
        let missing = missing_error(&recovered, &classes);
        let read_only =
            options.read_only.then(|| Error::new(ErrorKind::ReadOnly, "the volume was opened read-only"));
        let read_only = missing.or(read_only);
        check_keys(&recovered, &parts)?;
        let keys = std::mem::take(&mut recovered.keys);
        let mut lost_mirrors = drop_lost_mirrors(&recovered, &classes);
        lost_mirrors.extend(wrong_mirrors);
        let namespace = namespace(recovered, &superblock, &replayed, &parts)?;
        let Replayed { log, is_clean } = replayed;
        let core = assemble(parts, superblock, log, classes, namespace, read_only, is_clean, keys);
        core.check_adopted_at_opening();
        if core.read_only.is_none() {
            if is_derived {
                // Before the next one overwrites the one that is left.
                core.journal.restore_superblock().await?;
            }
            core.begin(is_clean, lost_mirrors).await?;
        }
        Ok(Volume { core })
    }
}

/// Logs of different volumes that come to lie in the same place must not take each other's blocks for their own.
fn first_generation(id: [u8; 16]) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&id[..8]);
    u64::from_be_bytes(word) >> 1
}

/// Fails if a key is at hand under the identifier of another one.
fn check_keys(recovered: &Recovered, parts: &Parts) -> Result<()> {
    for (key, check) in &recovered.keys {
        if parts.keys.check_value(*key).is_some_and(|found| found != *check) {
            let message =
                format!("key {key} is not the one that the volume was encrypted with: bring that one");
            return Err(Error::new(ErrorKind::MissingKey, message));
        }
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "they are what a volume is made of")]
fn assemble(
    parts: Parts,
    superblock: Superblock,
    log: Log,
    classes: ClassList,
    namespace: Namespace,
    read_only: Option<Error>,
    was_clean: bool,
    key_checks: BTreeMap<NonZeroU16, [u8; 8]>,
) -> Arc<Core> {
    let (id, chunk_bytes, half_life_s) =
        (superblock.volume, superblock.chunk_bytes, superblock.heat_half_life_s);
    let journal = Journal::new(
        parts.metadata.clone(),
        parts.buffers.clone(),
        parts.crash_points.clone(),
        parts.planted_bug,
        superblock,
        log,
    );
    Core::new(CoreParts {
        parts,
        id,
        chunk_bytes,
        half_life_s,
        classes,
        namespace,
        journal,
        read_only,
        was_clean,
        key_checks,
    })
}

/// A new class on the devices that `parts` have for it.
pub(super) fn new_class(
    id: u8,
    settings: &ClassSettings,
    chunk_bytes: u64,
    parts: &Parts,
) -> Result<Arc<Class>> {
    let name = &settings.name;
    let found = parts.classes.iter().find(|class| class.name == *name);
    let devices = found.map(|class| class.devices.clone()).unwrap_or_default();
    if devices.is_empty() || devices.len() > MOST_DEVICES {
        return Err(Error::invalid(format!("class {name} needs from 1 to {MOST_DEVICES} devices")));
    }
    if devices.iter().any(Option::is_none) {
        return Err(Error::new(ErrorKind::MissingDevice, format!("class {name}: a device is missing")));
    }
    Ok(Class::new(id, settings, chunk_bytes, devices))
}

/// Makes a new class's devices large enough and labels them, durably.
pub(super) async fn prepare_class(class: &Arc<Class>, volume: [u8; 16], parts: &Parts) -> Result<()> {
    let keep: Keep = Arc::new(());
    let chunks = class.allocator.lock().chunks();
    class.reserve(0, chunks, &parts.buffers, &keep).await?;
    class.write_labels(volume, &parts.buffers, &keep).await?;
    // CRASH: labels of a class that no metadata name; the devices may be given to another.
    parts.crash_points.reached("class.before-label-sync");
    class.sync().await
}

async fn open_classes(recovered: &Recovered, superblock: &Superblock, parts: &Parts) -> Result<ClassList> {
    let mut classes = ClassList::default();
    for (rank, class) in recovered.classes.iter().enumerate() {
        let class = open_class(recovered, class, superblock, parts).await?;
        classes.insert(rank, class);
    }
    Ok(classes)
}

/// Whether any chunk has its home in the class.
fn lies_in(recovered: &Recovered, class: u8) -> bool {
    let mut chunks = recovered.objects.values().flat_map(|object| object.table.iter_from(0));
    chunks.any(|(_, chunk)| chunk.home.get().is_some_and(|home| home.class == class))
}

async fn open_class(
    recovered: &Recovered,
    recorded: &RecoveredClass,
    superblock: &Superblock,
    parts: &Parts,
) -> Result<Arc<Class>> {
    let settings = ClassSettings {
        name: recorded.name.clone(),
        segment_bytes: recorded.segment_bytes,
        size_bytes: u64::from(recorded.chunks) * superblock.chunk_bytes,
    };
    let found = parts.classes.iter().find(|class| class.name == recorded.name);
    let mut devices = found.map(|class| class.devices.clone()).unwrap_or_default();
    let count = recorded.devices as usize;
    if !devices.is_empty() && devices.len() != count {
        let message = format!("class {} has {count} devices, {} were given", recorded.name, devices.len());
        return Err(Error::new(ErrorKind::WrongVolume, message));
    }
    devices.resize(count, None);
    let class = Class::new(recorded.id, &settings, superblock.chunk_bytes, devices.clone());
    let mut silent = class.check_labels(superblock.volume, &parts.buffers).await?;
    silent.extend(class.too_small());
    let class = if silent.is_empty() {
        class
    } else {
        // A device that cannot even be read is as good as missing; and so is one with anything else on it, as long as
        // only mirrors were there.
        for (index, error) in silent {
            if error.kind() == ErrorKind::Corrupted && lies_in(recovered, recorded.id) {
                return Err(error);
            }
            devices[index] = None;
        }
        Class::new(recorded.id, &settings, superblock.chunk_bytes, devices)
    };
    class.is_draining.store(recorded.is_draining, Ordering::SeqCst);
    Ok(class)
}

/// Takes the places of all chunks in their classes' allocators.
fn take_places(recovered: &Recovered, classes: &ClassList) -> Result<()> {
    for object in recovered.objects.values() {
        for (no, chunk) in object.table.iter_from(0) {
            for place in [chunk.home.get(), chunk.mirror.get()].into_iter().flatten() {
                let taken = classes
                    .by_id(place.class)
                    .is_some_and(|class| class.allocator.lock().take_this(place.no));
                if !taken {
                    let message = format!(
                        "chunk {no} of object {:?} lies at {place}, which another chunk has or which does not exist: check the volume",
                        object.name
                    );
                    return Err(Error::corrupted(message));
                }
            }
        }
    }
    Ok(())
}

/// Forgets mirrors that lie outside of their class, where something else lies, or in a class that is not faster; what
/// was forgotten.
fn drop_wrong_mirrors(recovered: &Recovered, classes: &ClassList) -> Vec<(u64, u64)> {
    let chunks = || {
        let objects = recovered.objects.iter();
        objects.flat_map(|(id, object)| object.table.iter_from(0).map(move |(no, chunk)| (*id, no, chunk)))
    };
    let mut claimed: HashSet<Place> = chunks().filter_map(|(_, _, chunk)| chunk.home.get()).collect();
    let mut dropped = Vec::new();
    for (id, no, chunk) in chunks() {
        let Some(mirror) = chunk.mirror.get() else { continue };
        let is_inside =
            classes.by_id(mirror.class).is_some_and(|class| mirror.no < class.allocator.lock().chunks());
        let is_faster =
            chunk.home.get().is_none_or(|home| classes.rank(mirror.class) < classes.rank(home.class));
        if !is_inside || !is_faster || !claimed.insert(mirror) {
            chunk.mirror.set(None);
            dropped.push((id, no));
        }
    }
    dropped
}

/// Whether the object has chunks in a class that is not all there.
fn misses(object: &RecoveredObject, classes: &ClassList) -> bool {
    let homes = object.table.iter_from(0).filter_map(|(_, chunk)| chunk.home.get());
    let mut homes = homes.map(|place| place.class);
    homes.any(|class| classes.by_id(class).is_some_and(|class| class.is_missing()))
}

/// Why the volume takes no writes, if devices are missing on which chunks have their home.
fn missing_error(recovered: &Recovered, classes: &ClassList) -> Option<Error> {
    let missing: Vec<&Arc<Class>> = classes.ranked().iter().filter(|class| class.is_missing()).collect();
    if missing.is_empty() {
        return None;
    }
    let affected: Vec<&str> = recovered
        .objects
        .values()
        .filter(|object| misses(object, classes))
        .map(|object| object.name.as_str())
        .collect();
    if affected.is_empty() {
        return None;
    }
    let names: Vec<String> = missing
        .iter()
        .flat_map(|class| {
            let gone = class.devices.iter().enumerate().filter(|(_, device)| device.is_none());
            gone.map(|(index, _)| format!("{} (device {index})", class.name))
        })
        .collect();
    let more = match affected.len().saturating_sub(MOST_NAMES) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "the volume is read-only, because devices are missing: {}: put back the files or disks that the volume's settings name for them. Affected objects: {}{more}",
        names.join(", "),
        affected[..affected.len().min(MOST_NAMES)].join(", ")
    );
    Some(Error::new(ErrorKind::MissingDevice, message))
}

/// Forgets, in memory, mirrors on classes that are not all there; what was forgotten.
fn drop_lost_mirrors(recovered: &Recovered, classes: &ClassList) -> Vec<(u64, u64)> {
    let mut dropped = Vec::new();
    for class in classes.ranked().iter().filter(|class| class.is_missing()) {
        class.is_failed.store(true, Ordering::SeqCst);
        for (id, object) in &recovered.objects {
            for (no, chunk) in object.table.iter_from(0) {
                if let Some(place) = chunk.mirror.get().filter(|place| place.class == class.id) {
                    chunk.mirror.set(None);
                    class.allocator.lock().give_back(place.no);
                    dropped.push((*id, no));
                }
            }
        }
    }
    dropped
}

fn namespace(
    recovered: Recovered,
    superblock: &Superblock,
    replayed: &Replayed,
    parts: &Parts,
) -> Result<Namespace> {
    let mut namespace =
        Namespace { next_id: recovered.next_object, folders: recovered.folders, ..Namespace::default() };
    for (id, object) in recovered.objects {
        let RecoveredObject { name, adopted, size_bytes, tail_is_stale, attributes, table, pages, file } =
            object;
        let adopted = adopted.map(|(path, identity)| {
            let device = parts.opener.open(&path).ok().map(|(device, _)| device);
            AdoptedFile::new(path, device, identity)
        });
        let state = ObjectState::new(id, name.clone(), adopted);
        state.size.store(size_bytes, Ordering::SeqCst);
        state.journaled_size.store(size_bytes, Ordering::SeqCst);
        let last = size_bytes / superblock.chunk_bytes;
        let last_is_mapped = !size_bytes.is_multiple_of(superblock.chunk_bytes)
            && table.chunk(last).is_some_and(|chunk| chunk.home.get().is_some());
        let is_stale = tail_is_stale || (!replayed.is_clean && last_is_mapped);
        state.tail_is_stale.store(is_stale, Ordering::SeqCst);
        let chunks = table.iter_from(0).filter(|(_, chunk)| chunk.home.get().is_some()).count();
        state.chunks.store(chunks as u64, Ordering::SeqCst);
        if let Some(pages) = pages {
            let pages = pages.open(&name, &table, superblock.chunk_bytes, size_bytes)?;
            let is_first = state.pages.set(Arc::new(pages)).is_ok();
            debug_assert!(is_first);
        }
        *state.table.write() = table;
        *state.attributes.lock() = attributes;
        *state.file.lock() = file;
        namespace.by_name.insert(name, id);
        namespace.objects.insert(id, Arc::new(state));
    }
    Ok(namespace)
}

impl Core {
    /// Begins to write: see the module's head, 4 and 5.
    async fn begin(self: &Arc<Self>, was_clean: bool, lost_mirrors: Vec<(u64, u64)>) -> Result<()> {
        if was_clean {
            self.journal.mark_unclean().await?;
        } else {
            let classes = self.class_list();
            classes
                .ranked()
                .iter()
                .for_each(|class| class.devices.iter().flatten().for_each(|device| device.wrote()));
            let synced = join_all(classes.ranked().iter().map(|class| class.sync())).await;
            synced.into_iter().collect::<Result<()>>()?;
            self.journal.checkpoint(&**self).await?;
        }
        let (_, lsn) = self.journal.change(|queue| {
            for (id, chunk) in lost_mirrors {
                queue.push(&crate::metadata::Record::Unmirrored { id, chunk });
                queue.end_group();
            }
        });
        // Before a home changes: the device with its mirror may come back.
        self.commit(lsn).await
    }
}
