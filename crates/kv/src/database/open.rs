//! Making and opening databases.
//!
//! Opening for writing:
//!
//! 1. the latest whole manifest says what there is;
//! 2. what no manifest knows (orphans: what a stop left of work that was under way) is told apart from log segments,
//!    whose numbers are not smaller than that of the segment where the replay begins;
//! 3. the log is replayed into memtables;
//! 4. a new manifest is written with the next epoch, and replaces the old one;
//! 5. orphans are deleted; the log goes on in a new segment.
//!
//! Opening read-only does 1 to 3 and changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use tanada_volume::{Claim, Volume};

use super::Database;
use super::background::Background;
use super::conflict::Recent;
use super::coop::YieldBudget;
use super::core::{Commit, Core, Writing};
use super::limit::{Watch, room_by_class};
use super::live::LiveDatabaseSettings;
use super::memory_budget::MemoryBudget;
use super::snapshot::Snapshots;
use super::statistics::Counters;
use super::store::StoreState;
use crate::cache::{Cache, Owner};
use crate::classes::Classes;
use crate::crash::{CrashPoints, PlantedBug};
use crate::entry::{SegmentNo, SequenceNo};
use crate::environment::Environment;
use crate::log::BLOCK;
use crate::log::frame::StoreNo;
use crate::log::replay::{ReplayFrom, Replayed, replay};
use crate::log::segment::PlacedSegment;
use crate::log::writer::{Appended, Log, LogOptions};
use crate::manifest::{DatabaseRecord, LogRecord, Manifest, Record};
use crate::memory::{Blocks, Memtable};
use crate::objects::{FIRST_OBJECT, ObjectKind, Objects};
use crate::settings::{DatabaseSettings, FilterMemory, LONGEST_NAME, OpenOptions, RecoveryProgress};
use crate::tree::Opener;
use crate::value::Segments;
use crate::{Error, ErrorKind, Result};

/// The fastest class has space for at least this many log segments.
const MIN_LOG_SEGMENTS_PER_CLASS: u64 = 32;

/// A name of a database or a store.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) || name.starts_with('.') {
        return Err(Error::invalid(format!(
            "{name:?} is no name: from 1 to {LONGEST_NAME} bytes of letters, digits, spaces, _ - and . (not at the beginning) are one"
        )));
    }
    Ok(())
}

/// The right to have a database open in this process, or to `what` else with it.
fn claim(volume: &Volume, name: &str, what: &str, is_exclusive: bool) -> Result<Arc<Claim>> {
    let claim = volume.claim(&format!("kv/{name}"), is_exclusive);
    claim.map(Arc::new).map_err(|error| {
        Error::volume(format!("cannot {what} database {name:?}: close the other opening first"), &error)
    })
}

/// All objects of a database, whatever numbers they have.
fn objects_of(volume: &Volume, name: &str, environment: &dyn Environment) -> Arc<Objects> {
    Objects::new(volume.clone(), name, FIRST_OBJECT, environment.buffers())
}

/// The same, with numbers that were not given yet.
fn numbered(objects: &Objects, state: &DatabaseRecord, name: &str) -> Arc<Objects> {
    let largest = objects.list().into_iter().map(|(_, no)| no + 1).max();
    let next = largest.unwrap_or(FIRST_OBJECT).max(state.next_object).max(FIRST_OBJECT);
    Objects::new(objects.volume().clone(), name, next, objects.buffers().clone())
}

/// Returns whether there is an object of that kind.
fn has(objects: &Objects, wanted: ObjectKind) -> bool {
    objects.list().iter().any(|(kind, _)| *kind == wanted)
}

/// Refuses a name under which there is a database, or something of one that somebody may want to have back. A copy
/// takes the place of one that was not finished, and whatever is made that of what was hardly begun.
async fn check_free(objects: &Arc<Objects>, name: &str, is_copy: bool) -> Result<()> {
    if has(objects, ObjectKind::Manifest) {
        let taken = |message| Err(Error::new(ErrorKind::AlreadyExists, message));
        return match crate::manifest::journal::recover(objects).await {
            Ok(None) => Ok(()),
            Ok(Some(state)) if state.is_unfinished && is_copy => Ok(()),
            Ok(Some(state)) if state.is_unfinished => taken(format!(
                "{name:?} is a copy that was not finished: destroy what there is, or make it again"
            )),
            _ => taken(format!("there is a database {name:?} already")),
        };
    }
    if has(objects, ObjectKind::Keys) {
        return Err(Error::corrupted(format!(
            "database {name:?} lacks its manifest, and a new one would take what is left of it: restore it from a copy, or destroy it"
        )));
    }
    Ok(())
}

/// Deletes all objects of a database, manifests last: what is left after a stop is a database that can be destroyed, or
/// nothing that can be opened.
async fn delete_all(objects: &Objects) -> Result<()> {
    let mut all = objects.list();
    all.sort_by_key(|(kind, _)| *kind == ObjectKind::Manifest);
    for (kind, no) in all {
        objects.delete(kind, no).await?;
    }
    Ok(())
}

/// The state that a replay builds.
struct Recovered {
    stores: BTreeMap<StoreNo, Arc<StoreState>>,
    sequence: SequenceNo,
    replayed: Replayed,
    /// Segments that are neither referenced nor part of the log.
    orphans: Vec<(ObjectKind, u64)>,
}

impl Database {
    /// Makes a database. After a stop, or if the future is dropped, there is one that can be opened or none, and then
    /// it can be made again.
    ///
    /// # Errors
    /// `AlreadyExists`, or `Locked` while it is being made; `InvalidInput` for a wrong name or wrong settings,
    /// `NoSpace`, `Device`.
    pub async fn create(
        volume: &Volume,
        name: &str,
        settings: &DatabaseSettings,
        environment: Arc<dyn Environment>,
    ) -> Result<Database> {
        Database::create_with(volume, name, settings, CrashPoints::default(), environment).await
    }

    /// The same, telling of crash points.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn create_with(
        volume: &Volume,
        name: &str,
        settings: &DatabaseSettings,
        crash: CrashPoints,
        environment: Arc<dyn Environment>,
    ) -> Result<Database> {
        check_name(name)?;
        settings.check()?;
        Classes::new(volume, None).check_names(settings.log_class.as_deref())?;
        let state = DatabaseRecord { settings: settings.clone(), ..DatabaseRecord::default() };
        Database::make(volume, name, state, crash, environment).await
    }

    /// Makes a database that has the settings of `state`, and says of itself whether it is finished what that says.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub(super) async fn make(
        volume: &Volume,
        name: &str,
        state: DatabaseRecord,
        crash: CrashPoints,
        environment: Arc<dyn Environment>,
    ) -> Result<Database> {
        check_name(name)?;
        state.settings.check()?;
        let objects = objects_of(volume, name, &*environment);
        check_free(&objects, name, state.is_unfinished).await?;
        let claim = claim(volume, name, "make", true)?;
        // Another task may have created it meanwhile.
        check_free(&objects, name, state.is_unfinished).await?;
        // Leftovers of an unfinished creation or destruction of that name.
        delete_all(&objects).await?;
        // The volume gives a number to an object once.
        let state = DatabaseRecord { identity: next_identity(volume), ..state };
        // CRASH: there is no database.
        crash.reached("create.before-manifest");
        let options = OpenOptions { crash_points: crash, ..OpenOptions::default() };
        let started = Database::start(objects.clone(), (name, claim.clone()), state, &options, environment);
        let started = started.await;
        if started.is_err() {
            // Objects that cannot be deleted are left to `destroy`.
            for (kind, no) in objects.list() {
                let _ = objects.delete(kind, no).await;
            }
        }
        started
    }

    /// Opens a database and replays its log. In a process it is open once for writing, or read-only any number of
    /// times, until it is closed, or its last handle was dropped and what was under way has ended.
    ///
    /// # Errors
    /// `Locked` if it is open already; `NotFound`, `Corrupted`, `FutureFormat`, `Device`.
    pub async fn open(
        volume: &Volume,
        name: &str,
        options: &OpenOptions,
        environment: Arc<dyn Environment>,
    ) -> Result<Database> {
        check_name(name)?;
        let claim = claim(volume, name, "open", !options.read_only)?;
        let objects = objects_of(volume, name, &*environment);
        let recovered = crate::manifest::journal::recover(&objects).await?;
        let missing =
            |why: &str| Error::new(ErrorKind::NotFound, format!("there is no database {name:?}{why}"));
        let Some(mut state) = recovered.filter(|state| !state.is_unfinished) else {
            return Err(if has(&objects, ObjectKind::Manifest) {
                missing(
                    ": a database or a copy of that name was not finished; make it again, or destroy what there is",
                )
            } else {
                missing("")
            });
        };
        if !options.read_only
            && let Some(why) = volume.read_only_reason()
        {
            return Err(Error::volume(format!("cannot open database {name:?} for writing"), &why));
        }
        if !options.settings.is_empty() {
            let settings = options.settings.over(&state.settings);
            settings.check()?;
            if options.settings.log_class.is_some() {
                let classes = Classes::new(volume, settings.log_class.as_deref());
                classes.check_names(settings.log_class.as_deref())?;
                for store in state.stores.values() {
                    let checked = classes.check_log(&store.settings.policy);
                    checked.map_err(|error| Error::invalid(format!("store {:?}: {error}", store.name)))?;
                }
            }
            state.settings = settings;
        }
        let started = Database::start(objects, (name, claim), state, options, environment).await;
        // The database exists, so a missing object is a part of it.
        started.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                Error::corrupted(format!("database {name:?} lacks a part: {error}; restore it from a copy"))
            }
            _ => error,
        })
    }

    /// Deletes a database that is not open.
    ///
    /// # Errors
    /// `Locked` if it is open; `NotFound`, `Device`.
    pub async fn destroy(volume: &Volume, name: &str, environment: Arc<dyn Environment>) -> Result<()> {
        check_name(name)?;
        let _claim = claim(volume, name, "destroy", true)?;
        let objects = objects_of(volume, name, &*environment);
        if objects.list().is_empty() {
            return Err(Error::new(ErrorKind::NotFound, format!("there is no database {name:?}")));
        }
        delete_all(&objects).await
    }

    /// The names of the databases in a volume.
    pub fn names(volume: &Volume) -> Vec<String> {
        let named = |object: tanada_volume::Object| {
            let name = object.name();
            let (database, file) = name.strip_prefix("kv/")?.rsplit_once('/')?;
            file.starts_with("manifest-").then(|| database.to_owned())
        };
        let mut names: Vec<String> = volume.objects().into_iter().filter_map(named).collect();
        names.sort();
        names.dedup();
        names
    }

    async fn start(
        objects: Arc<Objects>,
        (name, claim): (&str, Arc<Claim>),
        mut state: DatabaseRecord,
        options: &OpenOptions,
        environment: Arc<dyn Environment>,
    ) -> Result<Database> {
        let objects = numbered(&objects, &state, name);
        let next_table = AtomicU64::new(1);
        let cache = Cache::new(state.settings.memory_bytes);
        let segments = Segments::new(&objects, &cache, Some(environment.clone()));
        let (has_damaged, filters) = (Arc::default(), FilterMemory::Paged);
        let opener = Opener { objects: objects.clone(), segments, cache, has_damaged, filters };
        let value_segments = leave_out_lost_copies(&opener, &mut state).await?;
        let instance = NEXT_INSTANCE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let background = Background::default();
        let blocks = Arc::new(Blocks::new(state.settings.table_bytes(), background.work.clone()));
        let known = (&state, &value_segments);
        let recovered = recover(&opener, known, options, (instance, &next_table, &blocks)).await?;
        let sequence = recovered.sequence;
        state.log.sequence = sequence;
        state.epoch += 1;
        let crash = options.crash_points.clone();
        let mut writing = None;
        let classes = Classes::new(objects.volume(), state.settings.log_class.as_deref());
        if !options.read_only {
            let begun = begin_writing(
                &opener,
                state.clone(),
                &recovered,
                crash.clone(),
                environment.clone(),
                classes.clone(),
                claim.clone(),
            );
            writing = Some(begun.await?);
        }
        let snapshots = Arc::new(Snapshots::default());
        snapshots.publish(sequence);
        let recent = Recent::new(state.settings.memory_bytes);
        let memory = MemoryBudget::new(blocks, opener.cache.clone());
        let core = Arc::new(Core {
            name: name.to_owned(),
            instance,
            live: LiveDatabaseSettings::new(state.settings),
            objects,
            opener,
            environment,
            crash,
            writing,
            stores: RwLock::new(recovered.stores.into_values().collect()),
            memory,
            commit: Mutex::new(Commit { sequence, recent }),
            snapshots,
            next_table,
            next_store: AtomicU32::new(state.next_store.max(1)),
            background,
            counters: Counters::default(),
            earlier: state.activity,
            activity_noted: Mutex::default(),
            classes,
            is_closed: AtomicBool::new(false),
            ended: futures::lock::Mutex::default(),
            claim: Mutex::new(Some(claim)),
            table_bytes: AtomicU64::new(u64::MAX),
            largest_need: AtomicU64::new(0),
            limit: Watch::default(),
            class_listener: OnceLock::new(),
            slowed_us: AtomicU32::new(0),
            turns: YieldBudget::default(),
            hurry: Arc::default(),
        });
        core.shrink_cache().await;
        Core::keep_limit(&core);
        Core::follow_classes(&core);
        core.note_reserve();
        core.make_room_at_opening().await;
        Core::start_background(&core);
        Ok(Database { core })
    }
}

/// Databases that were opened in this process are told apart by a number: those of two volumes may have the same
/// identity.
static NEXT_INSTANCE: AtomicU64 = AtomicU64::new(1);

fn next_identity(volume: &Volume) -> u64 {
    volume.objects().iter().map(tanada_volume::Object::id).max().unwrap_or(0) + 1
}

/// The objects of a database, by what they are to it.
struct Sorted {
    /// Segments that trees know.
    known_segments: BTreeSet<SegmentNo>,
    /// Segments that may be of the log, ascending.
    candidates: Vec<SegmentNo>,
    /// Objects that nothing references.
    orphans: Vec<(ObjectKind, u64)>,
}

/// Takes copies that are lost out of what is to be opened. The segments of values that there were before: what lies in
/// those of lost copies is not of the log.
async fn leave_out_lost_copies(opener: &Opener, state: &mut DatabaseRecord) -> Result<BTreeSet<SegmentNo>> {
    let mut value_segments = BTreeSet::new();
    for store in state.stores.values_mut() {
        value_segments.extend(store.tree.segments.keys().copied());
        opener.leave_out_lost_copies(&mut store.tree).await?;
    }
    Ok(value_segments)
}

/// `value_segments` are those that the manifest knows, some of which may belong to copies that are lost.
fn sorted(objects: &Objects, state: &DatabaseRecord, value_segments: &BTreeSet<SegmentNo>) -> Sorted {
    let mut known_segments: BTreeSet<SegmentNo> = BTreeSet::new();
    let mut known_keys: BTreeSet<u64> = BTreeSet::new();
    for store in state.stores.values() {
        known_segments.extend(store.tree.references().keys().chain(store.tree.mirrors.keys()));
        known_segments.extend(store.tree.segments.keys());
        known_keys.extend(store.tree.kvsets().map(|kvset| kvset.no));
    }
    let first = state.log.segment.unwrap_or(0);
    let (mut candidates, mut orphans) = (Vec::new(), Vec::new());
    for (kind, no) in objects.list() {
        match kind {
            ObjectKind::Segment if no >= first && !value_segments.contains(&no) => candidates.push(no),
            ObjectKind::Segment if !known_segments.contains(&no) => orphans.push((kind, no)),
            ObjectKind::Keys if !known_keys.contains(&no) => orphans.push((kind, no)),
            _ => {}
        }
    }
    candidates.sort_unstable();
    Sorted { known_segments, candidates, orphans }
}

/// Replays the log into memtables.
async fn recover(
    opener: &Opener,
    (state, value_segments): (&DatabaseRecord, &BTreeSet<SegmentNo>),
    options: &OpenOptions,
    (instance, next_table, blocks): (u64, &AtomicU64, &Arc<Blocks>),
) -> Result<Recovered> {
    let objects = &opener.objects;
    let table = || {
        let no = next_table.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Memtable::new(no, state.log.begin, blocks)
    };
    let mut stores: BTreeMap<StoreNo, Arc<StoreState>> = BTreeMap::new();
    for (no, store) in &state.stores {
        let tree = opener.holding(store.settings.filters.at_opening()).open_tree(&store.tree).await?;
        let owner = Owner::next(&opener.cache);
        let store = StoreState::new(instance, *no, &store.name, &store.settings, (table(), tree), owner);
        stores.insert(*no, store);
    }
    let Sorted { known_segments, candidates, mut orphans } = sorted(objects, state, value_segments);
    let from = ReplayFrom {
        database: state.identity,
        lsn: state.log.begin,
        segment: state.log.segment,
        durable: state.log.durable,
        takes_torn: options.crash_points.has(PlantedBug::CutTooLate),
    };
    let mut sequence = state.log.sequence;
    let flushed: BTreeMap<StoreNo, u64> =
        state.stores.iter().map(|(no, store)| (*no, store.flushed)).collect();
    let mut last = 0;
    let mut on_frame = |frame: crate::log::frame::Frame, place: crate::log::replay::FramePlace| {
        if frame.sequence <= last {
            return Err(Error::corrupted(format!(
                "the log's frame at LSN {} has sequence number {}, and {last} was before",
                frame.lsn, frame.sequence
            )));
        }
        last = frame.sequence;
        sequence = sequence.max(frame.sequence);
        let appended = Appended { segment: place.segment, offset: place.payload, end: frame.lsn };
        let left_out = usize::from(options.crash_points.has(PlantedBug::ReplayInPart));
        let left_out = left_out.min((frame.payload.operations as usize).saturating_sub(1));
        for operation in frame.payload.latest_first().skip(left_out) {
            // A store is in the manifest, durably, before anybody has it.
            if operation.store >= state.next_store.max(1) {
                return Err(Error::corrupted(format!(
                    "the log writes to store {} at LSN {}, and the manifest knows of none of that number: it has lost its end",
                    operation.store, frame.lsn
                )));
            }
            // Operations that were flushed, or are of dropped stores, are skipped.
            if let Some(store) = stores.get(&operation.store)
                && flushed.get(&operation.store).is_some_and(|flushed| frame.lsn >= *flushed)
            {
                let table = store.view.read().active.clone();
                super::core::insert(&table, store, operation, frame.sequence, appended);
            }
        }
        Ok(())
    };
    let mut on_progress = |progress: &RecoveryProgress| {
        if let Some(told) = &options.progress {
            told(progress);
        }
    };
    let replayed =
        replay(objects, &opener.segments, &candidates, from, &mut on_frame, &mut on_progress).await?;
    for no in candidates {
        let is_log = replayed.segments.iter().any(|segment| segment.no == no);
        if !is_log && !known_segments.contains(&no) {
            orphans.push((ObjectKind::Segment, no));
        }
    }
    Ok(Recovered { stores, sequence, replayed, orphans })
}

/// Makes what was recovered durable, and begins a new part of the log.
async fn begin_writing(
    opener: &Opener,
    mut state: DatabaseRecord,
    recovered: &Recovered,
    crash: CrashPoints,
    environment: Arc<dyn Environment>,
    classes: Arc<Classes>,
    claim: Arc<Claim>,
) -> Result<Writing> {
    let objects = &opener.objects;
    let Replayed { cut, end, segments, last, .. } = &recovered.replayed;
    if let Some((object, used)) = last {
        settle_segment(object, *used).await?;
    }
    state.log = LogRecord {
        // The replayed log is durable, and a later opening must not find less.
        durable: *cut,
        segment: segments.first().map(|segment| segment.no).or(state.log.segment),
        ..state.log
    };
    let options = LogOptions {
        segment_bytes: log_segment_bytes(objects.volume(), &state.settings),
        group_bytes: state.settings.group_bytes(),
        waiting_bytes: state.settings.waiting_log_bytes(),
        database: state.identity,
        epoch: state.epoch,
        start: *end,
        durable: *cut,
    };
    debug_assert!(end.is_multiple_of(BLOCK));
    let begin = |state| Manifest::begin(objects.clone(), classes.clone(), state, crash.clone());
    let mut begun = begin(state.clone()).await;
    if begun.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) && !recovered.orphans.is_empty()
    {
        // The room may be what a stop left behind, which nothing leads to.
        for (kind, no) in &recovered.orphans {
            objects.delete(*kind, *no).await?;
        }
        begun = begin(state).await;
    }
    let manifest = begun?;
    // CRASH: the next opening finds the same orphans.
    crash.reached("open.before-orphans");
    for (kind, no) in recovered.orphans.iter().filter(|(kind, no)| objects.find(*kind, *no).is_some()) {
        objects.delete(*kind, *no).await?;
    }
    // CRASH: as before, or they are gone.
    crash.reached("open.after-orphans");
    let placed: Vec<PlacedSegment> = segments.clone();
    let segments = opener.segments.clone();
    let log = Log::start(options, classes, placed, objects.clone(), segments, environment, crash);
    log.keep_until_ended(claim);
    Ok(Writing { log, manifest })
}

/// Cuts off what was torn, and makes what stands before it durable: it may have been read from a cache of the device.
async fn settle_segment(object: &tanada_volume::Object, used: u64) -> Result<()> {
    let failed = |error| Error::volume("cannot settle the log's last segment", &error);
    let used = used.next_multiple_of(BLOCK);
    object.resize(used).await.map_err(failed)?;
    match object.write_bytes(used, &[0; BLOCK as usize]).await {
        Err(error) if error.kind() != tanada_volume::ErrorKind::NoSpace => return Err(failed(error)),
        _ => {}
    }
    object.sync().await.map_err(failed)
}

/// Bytes of a log segment: as set, but no more than a 32nd of what the database may have on the fastest class, for a
/// segment takes up room as long as anything in it is used where it is, and one is always being filled and another one
/// ready.
pub(crate) fn log_segment_bytes(volume: &Volume, settings: &DatabaseSettings) -> u64 {
    let rooms = room_by_class(volume, settings);
    let Some(fastest) = rooms.first() else { return settings.log_segment_bytes };
    let share = fastest / MIN_LOG_SEGMENTS_PER_CLASS;
    settings.log_segment_bytes.min(share.max(settings.group_bytes()).max(1 << 20))
}

/// Makes a record of a new store.
pub(crate) fn store_records(no: StoreNo, name: &str, settings: &crate::StoreSettings) -> Vec<Record> {
    vec![
        Record::Store { no, name: name.to_owned() },
        Record::StoreSettings { no, settings: Box::new(settings.clone()) },
    ]
}
