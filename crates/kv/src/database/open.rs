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

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use parking_lot::{Mutex, RwLock};
use tanada_volume::{Claim, Volume};

use crate::cache::Cache;
use crate::classes::Classes;
use crate::crash::CrashPoints;
use crate::database::background::Background;
use crate::database::commit::committer::Commit;
use crate::database::commit::conflict::Recent;
use crate::database::coop::YieldBudget;
use crate::database::core::Core;
use crate::database::handle::Database;
use crate::database::live::LiveDatabaseSettings;
use crate::database::records::check_name;
use crate::database::recovery::{begin_writing, leave_out_lost_copies, recover};
use crate::database::shared::Shared;
use crate::database::snapshot::Snapshots;
use crate::database::space::account::SpaceManager;
use crate::database::stats::counters::Counters;
use crate::environment::Environment;
use crate::manifest::DatabaseRecord;
use crate::memory::Blocks;
use crate::objects::{FIRST_OBJECT, ObjectKind, Objects};
use crate::opening::OpenOptions;
use crate::settings::{DatabaseSettings, FilterMemory};
use crate::tree::Opener;
use crate::value::Segments;
use crate::{Error, ErrorKind, Result};

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
    pub(crate) async fn make(
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
    ///
    /// ```
    /// use tanada_kv::Database;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # tanada_kv::example::run(folder.path(), async |database, store| {
    /// // The volume is the one that the database lies in.
    /// # let directory = folder.path().join("other");
    /// # let class = tanada_volume::directory::ClassConfig::new("a", vec!["a".into()], Some(64 << 20));
    /// # let volume = tanada_volume::directory::Directory::create(
    /// #     &directory, &Default::default(), &[class], Default::default()).await?;
    /// # let volume = volume.volume();
    /// assert!(Database::names(volume).is_empty());
    /// # Ok(()) }).unwrap();
    /// ```
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
        let shared = Shared {
            name: name.to_owned(),
            instance,
            live: LiveDatabaseSettings::new(state.settings),
            objects,
            opener,
            environment,
            crash,
            writing,
            stores: RwLock::new(recovered.stores.into_values().collect()),
            snapshots,
            background,
            counters: Counters::default(),
            earlier: state.activity,
            activity_noted: Mutex::default(),
            turns: YieldBudget::default(),
            hurry: Arc::default(),
            classes,
            is_closed: AtomicBool::new(false),
            claim: Mutex::new(Some(claim)),
        };
        let next_store = AtomicU32::new(state.next_store.max(1));
        let core = Arc::new(Core::new(shared, blocks, Commit { sequence, recent }, next_table, next_store));
        core.memory.shrink_cache().await;
        SpaceManager::keep_limit(&core.space);
        SpaceManager::follow_classes(&core.space);
        core.space.note_reserve();
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
