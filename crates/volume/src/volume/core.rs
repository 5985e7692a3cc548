//! What all handles of an open volume share.
//!
//! Locks, in the order in which they may be taken: the journal's, the namespace's, that of an object's pages, an
//! object's table, its fresh list, the retired places', the list of classes, a class's allocator. None is held over an
//! await, or while a waker runs.
//!
//! Space goes through these states: *free* in its class's allocator -> *reserved* by an operation that fills it
//! ([`Reserved`]) -> *mapped* -> *retired*: out of the mapping, but maybe still in the durable one, and maybe still
//! read from -> free again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tanada_base::Clock;
use tanada_io::BufferPool;

use super::claims::Claims;
use super::listeners::ClassListeners;
use crate::adopted::Opener;
use crate::chunk::Place;
use crate::class::{Class, ClassList};
use crate::crash::{CrashPoints, PlantedBug};
use crate::metadata::journal::Lsn;
use crate::metadata::{FolderRecord, Journal, renamed_below, renamed_folders};
use crate::object::ObjectState;
use crate::page::Cleaning;
use crate::relocation::decision::Decisions;
use crate::relocation::{SharedPace, Timer};
use crate::statistics::Counters;
use crate::transform::KeyRing;
use crate::waiting::{Grace, Holds};
use crate::{Error, ErrorKind, Result};

/// Objects by number and by name.
#[derive(Debug, Default)]
pub(crate) struct Namespace {
    pub(crate) objects: BTreeMap<u64, Arc<ObjectState>>,
    pub(crate) by_name: HashMap<String, u64>,
    pub(crate) next_id: u64,
    /// Folders that are there of themselves.
    pub(crate) folders: BTreeMap<String, FolderRecord>,
}

impl Namespace {
    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<ObjectState>> {
        self.objects.get(self.by_name.get(name)?)
    }

    /// Gives an object a name that none has; its number.
    pub(crate) fn rename_object(&mut self, name: &str, new_name: &str) -> Option<u64> {
        let id = self.by_name.remove(name)?;
        self.by_name.insert(new_name.to_owned(), id);
        *self.objects.get(&id)?.name.write() = new_name.to_owned();
        Some(id)
    }

    /// Gives a folder a name that nothing has, and all that lies below it.
    pub(crate) fn rename_folder(&mut self, name: &str, new_name: &str) {
        self.folders = renamed_folders(std::mem::take(&mut self.folders), name, new_name);
        let names: Vec<(String, String)> = self
            .by_name
            .keys()
            .filter_map(|old| Some((old.clone(), renamed_below(old, name, new_name)?)))
            .collect();
        for (old, new) in names {
            self.rename_object(&old, &new);
        }
    }
}

/// A place that left the mapping.
#[derive(Debug)]
struct Retired {
    place: Place,
    /// It may be used again when this change is durable,
    lsn: Lsn,
    /// and when this period of grace is over.
    period: u64,
}

/// Retired places, oldest first.
#[derive(Debug, Default)]
pub(crate) struct RetiredPlaces {
    places: VecDeque<Retired>,
    by_class: BTreeMap<u8, u64>,
}

impl RetiredPlaces {
    fn push(&mut self, retired: Retired) {
        *self.by_class.entry(retired.place.class).or_default() += 1;
        self.places.push_back(retired);
    }

    fn pop(&mut self) -> Option<Retired> {
        let retired = self.places.pop_front()?;
        if let Some(count) = self.by_class.get_mut(&retired.place.class) {
            *count -= 1;
        }
        Some(retired)
    }
}

/// See the module's head.
pub(crate) struct Core {
    pub(crate) id: [u8; 16],
    pub(crate) chunk_bytes: u64,
    pub(crate) chunk_shift: u32,
    pub(crate) half_life_s: f32,
    pub(crate) clock: Arc<dyn Clock>,
    /// The time since 1970, and that of the clock, when the volume was opened.
    wall_time: Option<(Duration, Duration)>,
    pub(crate) opener: Arc<dyn Opener>,
    pub(crate) timer: Option<Arc<dyn Timer>>,
    pub(crate) decisions: Decisions,
    pub(crate) pace: SharedPace,
    /// Adopted objects whose mirrors the opening dropped, until somebody asks: their files are not what they were.
    pub(crate) changed_at_opening: Mutex<Vec<Arc<ObjectState>>>,
    /// I/Os on adopted files, which are in no class.
    pub(crate) adopted_counters: Counters,
    pub(crate) buffers: Arc<BufferPool>,
    pub(crate) crash: CrashPoints,
    pub(crate) bug: PlantedBug,
    pub(crate) grace: Arc<Grace>,
    /// One change of the classes at a time: a hold on it is a turn.
    pub(crate) class_turns: Arc<Holds>,
    pub(crate) classes: RwLock<Arc<ClassList>>,
    pub(crate) class_listeners: ClassListeners,
    pub(crate) namespace: Mutex<Namespace>,
    pub(crate) journal: Arc<Journal>,
    retired: Mutex<RetiredPlaces>,
    /// Why nothing may be written, if so.
    pub(crate) read_only: Option<Error>,
    pub(crate) was_clean: bool,
    pub(crate) is_closed: AtomicBool,
    pub(crate) claims: Claims,
    pub(crate) keys: KeyRing,
    /// Who stores pages behind the back of those who write them, if anybody does.
    pub(crate) cleaning: Option<Cleaning>,
    /// Check values of the keys that the metadata know. Changed under the journal's lock.
    pub(crate) key_checks: Mutex<BTreeMap<NonZeroU16, [u8; 8]>>,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("journal", &self.journal).finish_non_exhaustive()
    }
}

/// What [`Core::new`] is made from.
pub(crate) struct CoreParts {
    pub(crate) parts: crate::Parts,
    pub(crate) id: [u8; 16],
    pub(crate) chunk_bytes: u64,
    pub(crate) half_life_s: f32,
    pub(crate) classes: ClassList,
    pub(crate) namespace: Namespace,
    pub(crate) journal: Arc<Journal>,
    pub(crate) read_only: Option<Error>,
    pub(crate) was_clean: bool,
    pub(crate) key_checks: BTreeMap<NonZeroU16, [u8; 8]>,
}

impl Core {
    pub(crate) fn new(from: CoreParts) -> Arc<Core> {
        Arc::new(Core {
            id: from.id,
            chunk_bytes: from.chunk_bytes,
            chunk_shift: from.chunk_bytes.trailing_zeros(),
            half_life_s: from.half_life_s,
            wall_time: from.parts.wall_time.map(|wall| (wall, from.parts.clock.now())),
            clock: from.parts.clock,
            opener: from.parts.opener,
            timer: from.parts.timer,
            decisions: Decisions::default(),
            pace: SharedPace::default(),
            changed_at_opening: Mutex::default(),
            adopted_counters: Counters::default(),
            buffers: from.parts.buffers,
            crash: from.parts.crash_points,
            bug: from.parts.planted_bug,
            grace: Arc::default(),
            class_turns: Arc::default(),
            classes: RwLock::new(Arc::new(from.classes)),
            class_listeners: ClassListeners::default(),
            namespace: Mutex::new(from.namespace),
            journal: from.journal,
            retired: Mutex::default(),
            read_only: from.read_only,
            was_clean: from.was_clean,
            is_closed: AtomicBool::new(false),
            claims: Claims::default(),
            keys: from.parts.keys,
            cleaning: from.parts.cleaners.map(Cleaning::new),
            key_checks: Mutex::new(from.key_checks),
        })
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    /// The time since 1970, if anybody told it.
    pub(crate) fn wall_time(&self) -> Option<Duration> {
        self.wall_time.map(|(wall, began)| wall + self.now().saturating_sub(began))
    }

    /// The classes now.
    pub(crate) fn class_list(&self) -> Arc<ClassList> {
        self.classes.read().clone()
    }

    /// The class that a place is in.
    pub(crate) fn class(&self, id: u8) -> Result<Arc<Class>> {
        self.classes.read().by_id(id).cloned().ok_or_else(|| {
            Error::corrupted(format!("a chunk lies in class number {id}, which does not exist"))
        })
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        if let Some(error) = &self.read_only {
            return Err(error.clone());
        }
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::ReadOnly, "the volume is closed"));
        }
        if let Some(error) = self.journal.failure() {
            return Err(error);
        }
        Ok(())
    }

    /// Makes all changes up to `lsn` durable, and what they freed usable.
    pub(crate) async fn commit(self: &Arc<Self>, lsn: Lsn) -> Result<()> {
        self.journal.commit(lsn, &**self).await?;
        self.reclaim();
        Ok(())
    }

    /// Takes a free chunk for an object that prefers `wanted` (its rank), or only that class if it is pinned there; of
    /// none of the classes `but`, a bit each, which it has tried.
    pub(crate) async fn reserve(self: &Arc<Self>, wanted: usize, only: bool, but: u64) -> Result<Reserved> {
        self.reclaim();
        loop {
            if let Some(place) = self.try_reserve(wanted, only, but) {
                return Ok(Reserved { core: self.clone(), place, is_mapped: AtomicBool::new(false) });
            }
            // What was freed may only lack a commit, or the end of the reads that were under way.
            let Some((lsn, period)) = self.newest_retired() else {
                return Err(self.no_space(wanted, only));
            };
            self.journal.commit(lsn, &**self).await?;
            self.grace.wait(period).await;
            if self.reclaim() == 0 && self.newest_retired().is_none() {
                if let Some(place) = self.try_reserve(wanted, only, but) {
                    return Ok(Reserved { core: self.clone(), place, is_mapped: AtomicBool::new(false) });
                }
                return Err(self.no_space(wanted, only));
            }
        }
    }

    fn try_reserve(&self, wanted: usize, only: bool, but: u64) -> Option<Place> {
        let classes = self.class_list();
        let now = self.now();
        let candidates = || classes.candidates(wanted).take(if only { 1 } else { usize::MAX });
        // One whose devices had no space a moment ago is asked when there is no other: they may have some now.
        for is_last_resort in [false, true] {
            for class in candidates().filter(|class| class.is_out_of_space(now) == is_last_resort) {
                if class.refusal().is_some() || but >> class.id & 1 == 1 {
                    continue;
                }
                if let Some(no) = class.allocator.lock().take() {
                    return Some(Place { class: class.id, no });
                }
            }
        }
        None
    }

    /// Bytes of free chunks that an object may get that prefers `wanted`.
    pub(crate) fn free_bytes(&self, wanted: usize, only: bool) -> u64 {
        let classes = self.class_list();
        let now = self.now();
        let candidates = classes.candidates(wanted).take(if only { 1 } else { usize::MAX });
        let giving = candidates.filter(|class| class.refusal().is_none() && !class.is_out_of_space(now));
        let free = |class: &Arc<Class>| {
            let allocator = class.allocator.lock();
            u64::from(allocator.limit()).saturating_sub(u64::from(allocator.taken()))
        };
        giving.map(free).sum::<u64>() * self.chunk_bytes
    }

    fn no_space(&self, wanted: usize, only: bool) -> Error {
        let classes = self.class_list();
        let names: Vec<String> = classes
            .candidates(wanted)
            .take(if only { 1 } else { usize::MAX })
            .map(|class| {
                let allocator = class.allocator.lock();
                let is_out = class.is_out_of_space(self.now());
                let is_smaller = allocator.limit() < allocator.chunks();
                let why = class.refusal().or(is_out.then_some("its devices have no space"));
                let smaller = || {
                    format!(
                        "it is being made smaller: none but the first {} are given out",
                        allocator.limit()
                    )
                };
                let why = why.map(str::to_owned).or_else(|| is_smaller.then(smaller));
                let why = why.map(|why| format!("; {why}")).unwrap_or_default();
                format!("{} ({} of {} chunks taken{why})", class.name, allocator.taken(), allocator.chunks())
            })
            .collect();
        let is_draining = classes.candidates(wanted).any(|class| class.is_draining());
        let or_fill =
            if is_draining { ", or let the one that is being drained take chunks again" } else { "" };
        let message =
            format!("no free chunk in class {}: free space or enlarge a class{or_fill}", names.join(", "));
        Error::new(ErrorKind::NoSpace, message)
    }

    /// Notes that `places` left the mapping with change `lsn` (0: the metadata never knew of them).
    pub(crate) fn retire(&self, places: impl IntoIterator<Item = Place>, lsn: Lsn) {
        let mut retired = self.retired.lock();
        let period = self.grace.period();
        places.into_iter().for_each(|place| retired.push(Retired { place, lsn, period }));
    }

    fn newest_retired(&self) -> Option<(Lsn, u64)> {
        let retired = self.retired.lock();
        let lsn = retired.places.iter().map(|retired| retired.lsn).max()?;
        let period = retired.places.iter().map(|retired| retired.period).max()?;
        Some((lsn, period))
    }

    /// How many places of a class are retired.
    pub(crate) fn retired_of(&self, class: u8) -> u64 {
        self.retired.lock().by_class.get(&class).copied().unwrap_or_default()
    }

    /// Makes retired places free that may be; how many.
    pub(crate) fn reclaim(&self) -> usize {
        if self.retired.lock().places.is_empty() {
            return 0;
        }
        let durable = self.journal.durable();
        let mut freed = 0;
        let mut retired = self.retired.lock();
        while let Some(first) = retired.places.front() {
            let is_durable = first.lsn <= durable || self.bug == PlantedBug::ReuseBeforeFree;
            if !is_durable || !self.grace.is_over(first.period) {
                break;
            }
            let Some(first) = retired.pop() else { break };
            if let Some(class) = self.classes.read().by_id(first.place.class) {
                class.allocator.lock().give_back(first.place.no);
                class.has_space_again();
            }
            freed += 1;
        }
        drop(retired);
        if freed > 0 {
            // CRASH: the freeing is durable, so the durable mapping does not lead here, whoever writes here next.
            self.crash.reached("free.before-reuse");
        }
        freed
    }

    /// Waits until everything that was freed so far may be used again.
    pub(crate) async fn settle(self: &Arc<Self>) -> Result<()> {
        while let Some((lsn, period)) = self.newest_retired() {
            self.journal.commit(lsn, &**self).await?;
            self.grace.wait(period).await;
            self.reclaim();
        }
        Ok(())
    }

    /// What a failed sync of a class means: nothing is known about what its objects wrote there since the last one.
    pub(crate) fn poison_writers_of(&self, class: u8, why: &Error) {
        let objects: Vec<Arc<ObjectState>> = self.namespace.lock().objects.values().cloned().collect();
        for object in objects {
            if object.dirty_classes.load(Ordering::SeqCst) >> class & 1 == 1 {
                object.poison(why);
            }
        }
    }

    /// Makes everything durable that was written to `class`; if that fails, those who wrote there are poisoned.
    pub(crate) async fn sync_class(&self, class: &Class) -> Result<()> {
        let synced = class.sync().await;
        if let Err(error) = &synced {
            class.is_failed.store(true, Ordering::SeqCst);
            self.poison_writers_of(class.id, error);
        }
        synced
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.journal.abandon();
    }
}

/// A chunk that an operation fills. It is free again when dropped, unless it was mapped.
#[derive(Debug)]
pub(crate) struct Reserved {
    core: Arc<Core>,
    place: Place,
    is_mapped: AtomicBool,
}

impl Reserved {
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// It is in the mapping now.
    pub(crate) fn mapped(&self) {
        self.is_mapped.store(true, Ordering::SeqCst);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if !self.is_mapped.load(Ordering::SeqCst)
            && let Some(class) = self.core.classes.read().by_id(self.place.class)
        {
            class.allocator.lock().give_back(self.place.no);
        }
    }
}
