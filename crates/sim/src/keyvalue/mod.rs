//! Campaigns for the key-value engine: writers, readers and background jobs on simulated disks, power cuts, failing
//! devices, rot.
//!
//! 1. A database is made in a small volume of two classes, and [a story](story) is told to it: several writers at once,
//!    each with keys of its own, and beside them [transactions](contention) over the same few keys, [a store](lodger)
//!    that comes and goes, [one](brief) in which everything expires, and [a caretaker](caretaker), and somebody who
//!    changes [settings](tuning).
//! 2. Before I/Os [power is cut](cuts) with some chance; crash points are counted, so that none is never passed. What
//!    the disks hold then is recovered in a world of its own; [the model](model) says whether what is found there may
//!    be.
//! 3. The recovery may be cut as well; or the story goes on from there, ends cleanly, and everything must be there.

mod brief;
mod caretaker;
mod contention;
mod cuts;
mod environment;
mod lodger;
mod model;
mod story;
mod tuning;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use parking_lot::Mutex;
use tanada_base::SplitMix64;
use tanada_io::BufferPool;
use tanada_kv::{
    CrashPoints, CrashProbe, Database, DatabaseSettings, Environment, OpenOptions, PlantedBug, Store,
};
use tanada_volume::{ClassSettings, Volume, VolumeSettings};

use crate::campaign::Images;
use crate::campaign::{Case, Density, Failure, Report, Trial};
use crate::campaign::{ClassLayout, Layout, Rig};
use crate::executor::{Simulation, World};
use crate::fault::Rule;
use crate::history::Level;
use crate::trace::mix;
use brief::Brief;
use contention::Contended;
use cuts::Cutter;
use environment::SimEnvironment;
use model::{Model, STORES, State, Writer};
use story::{NAMES, Teller};

/// Writers of a story.
const WRITERS: u8 = 3;

/// Steps of each.
const STEPS: u64 = 60;

/// Those who share keys, and transactions of each.
const CONTENDERS: u64 = 2;
const TRANSACTIONS: u64 = 25;

/// Steps of the store that comes and goes, for each 100 of a writer.
const LODGERS_STEPS: u64 = 60;

/// Compactions and copies, for each 100 of a writer's steps.
const CARETAKERS_STEPS: u64 = 10;

/// Changes of settings, for each 100 of a writer's steps.
const TUNERS_STEPS: u64 = 10;

/// Steps of who writes what expires, for each 100 of a writer.
const BRIEF_STEPS: u64 = 40;

/// How a story is tried.
#[derive(Debug, Clone)]
pub struct KeyValueTrial {
    /// Where and how often power is cut.
    pub density: Density,
    /// What goes wrong with I/Os once the database is made. Operations may fail then.
    pub rules: Vec<Rule>,
    /// Steps of each writer.
    pub steps: u64,
    /// Transactions of each who shares keys with others.
    pub transactions: u64,
    /// A bug that the engine is asked to have.
    pub planted_bug: PlantedBug,
}

impl KeyValueTrial {
    /// Power cuts alone.
    pub fn cuts(per_thousand: u32, outcomes: u64) -> KeyValueTrial {
        KeyValueTrial {
            density: Density { per_thousand, outcomes },
            rules: Vec::new(),
            steps: STEPS,
            transactions: TRANSACTIONS,
            planted_bug: PlantedBug::None,
        }
    }

    /// The same cuts and faults as those of a volume's trial.
    pub fn of(trial: &Trial) -> KeyValueTrial {
        KeyValueTrial {
            density: trial.density,
            rules: trial.rules.clone(),
            planted_bug: trial.key_value_bug,
            ..KeyValueTrial::cuts(0, 0)
        }
    }

    /// Writes, closes, lets bits of the classes' disks rot, one after the other, and reads everything again: what is
    /// read is right or an error. Gives how often it was an error.
    ///
    /// # Errors
    /// What was read wrongly.
    pub fn rot(&self, case: &Case, flips: u64) -> Result<u64, Failure> {
        let (trial, told) = (KeyValueTrial { transactions: 0, ..self.clone() }, case.clone());
        let run = Simulation::run(case.seed, |world| async move {
            let mut written = State::default();
            trial
                .tell_of(&world, told, |model| {
                    for writer in &model.writers {
                        for (all, own) in written.iter_mut().zip(writer.after(writer.written.len())) {
                            all.extend(own);
                        }
                    }
                })
                .await
                .map(|_| written)
        });
        let fail = |what: String| Failure { case: case.clone(), what, settings: String::new() };
        let written = run.outcome.told("the story").map_err(fail)?;
        let sound: Images = run.wreck.survivors(&mut SplitMix64::new(1)).into_iter().collect();
        let mut random = SplitMix64::new(mix(case.seed, 0x707));
        let mut noticed = 0;
        for flip in 0..flips {
            let mut images = sound.clone();
            let class = if random.below(2) == 0 { "fast.0" } else { "slow.0" };
            if let Some(image) = images.get_mut(class) {
                // Where something is: most of a disk is zeros that nobody reads.
                let place = |random: &mut SplitMix64| random.below(image.size_bytes().max(1));
                let is_data = |at: &u64| {
                    let mut byte = [0];
                    image.read(*at, &mut byte);
                    byte != [0]
                };
                let at = (0..10_000).map(|_| place(&mut random)).find(is_data).unwrap_or_default();
                image.flip(at, random.below(8) as u32);
            }
            let expected = written.clone();
            let run =
                Simulation::run(flip, |world| async move { read_again(world, images, &expected).await });
            let read = run.outcome.told("reading");
            noticed += u64::from(read.map_err(|what| fail(format!("flip {flip} in {class}: {what}")))?);
        }
        Ok(noticed)
    }

    /// Tells the story of `case` and judges it.
    ///
    /// # Errors
    /// The first promise that was broken.
    pub fn run(&self, case: &Case) -> Result<Report, Failure> {
        let (trial, told) = (self.clone(), case.clone());
        let run = Simulation::run(case.seed, |world| async move { trial.tell(world, told).await });
        let fail = |what: String| Failure { case: case.clone(), what, settings: self.settings() };
        let mut report = run.outcome.told("the story").map_err(fail)?;
        report.stories += 1;
        report.ios += run.ios;
        report.traces.push(run.trace);
        Ok(report)
    }

    /// What differs from power cuts alone, as words of a command.
    fn settings(&self) -> String {
        let mut words: String = self.rules.iter().map(|rule| format!(" FAULT={rule}")).collect();
        if self.planted_bug != PlantedBug::None {
            words.push_str(&format!(" BUG={:?}", self.planted_bug));
        }
        words
    }

    async fn tell(self, world: World, case: Case) -> Result<Report, String> {
        self.tell_of(&world, case, |_| {}).await
    }

    async fn tell_of(&self, world: &World, case: Case, told: impl FnOnce(&Model)) -> Result<Report, String> {
        let rig = Rig::attach(world, &layout(), Images::default());
        let buffers = BufferPool::new(0);
        let volume = Volume::create(
            rig.parts(
                world,
                &buffers,
                tanada_volume::CrashPoints::default(),
                tanada_volume::PlantedBug::None,
            ),
            &volume_settings(),
        )
        .await
        .map_err(|error| format!("the volume cannot be made: {error}"))?;
        let (seed, mut random) = (case.seed, world.random());
        let model = Rc::new(RefCell::new(beginning(case.seed)));
        let cutter = Cutter {
            case,
            density: self.density,
            disks: world.disks(),
            model: model.clone(),
            state: Rc::default(),
            world: world.clone(),
            planted_bug: self.planted_bug,
        };
        let probe = Arc::new(Probe::default());
        let environment = SimEnvironment::of(world, &buffers);
        let crash_points = CrashPoints::to(probe.clone()).with_bug(self.planted_bug);
        let made =
            Database::create_with(&volume, "shop", &settings(seed), crash_points, environment.clone()).await;
        let database = made.map_err(|error| format!("the database cannot be made: {error}"))?;
        let stores = make_stores(&database, seed).await?;
        let at_io = cutter.clone();
        world.observe(move |_| at_io.point());
        // Crash points are passed on the simulation's one thread, inside of what an I/O woke: the disks are then as
        // before the next I/O.
        probe.marks.lock().clear();
        for rule in &self.rules {
            world.inject(*rule);
        }
        let teller = Teller {
            world: world.clone(),
            database: database.clone(),
            stores,
            store_count: STORES,
            model: model.clone(),
            expects_errors: !self.rules.is_empty(),
            operations: Rc::default(),
        };
        self.all_parts(&teller, seed, &mut random, (volume.clone(), environment)).await?;
        model.borrow().contended.check()?;
        let closed = database.close().await;
        if let Err(error) = closed
            && !teller.expects_errors
        {
            return Err(format!("the database cannot be closed: {error}"));
        }
        told(&model.borrow());
        // What was closed is there, whatever happens then.
        if !teller.expects_errors {
            model.borrow_mut().closed();
        }
        cutter.point_surely();
        let mut state = cutter.state.borrow_mut();
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        let mut report = std::mem::take(&mut state.report);
        for (name, count) in &*probe.marks.lock() {
            *report.marks.entry(name).or_default() += count;
        }
        for (name, count) in &*teller.operations.borrow() {
            *report.operations.entry(name).or_default() += count;
        }
        report.faults = world.struck_in_all();
        Ok(report)
    }

    /// All writers and contenders of a story, and who looks after the database, at once.
    async fn all_parts(
        &self,
        teller: &Teller,
        seed: u64,
        random: &mut SplitMix64,
        (volume, environment): (Volume, Arc<dyn Environment>),
    ) -> Result<(), String> {
        let (care, tunings) = (self.steps * CARETAKERS_STEPS / 100, self.steps * TUNERS_STEPS / 100);
        let care = teller.world.spawn(teller.clone().take_care((seed, care), volume, environment));
        let tuner = teller.world.spawn(teller.clone().tune((seed, tunings)));
        let mut tasks: Vec<_> = (0..usize::from(WRITERS))
            .map(|no| {
                let seed = random.next_u64();
                teller.world.spawn(teller.clone().write(no, self.steps, SplitMix64::new(seed)))
            })
            .collect();
        for _ in 0..CONTENDERS {
            let seed = random.next_u64();
            tasks.push(teller.world.spawn(teller.clone().contend(self.transactions, SplitMix64::new(seed))));
        }
        let steps = self.steps * LODGERS_STEPS / 100;
        tasks.push(teller.world.spawn(teller.clone().lodge(steps, SplitMix64::new(random.next_u64()))));
        if brief::is_told(seed) {
            let (steps, random) = (self.steps * BRIEF_STEPS / 100, SplitMix64::new(random.next_u64()));
            tasks.push(teller.world.spawn(teller.clone().fade(steps, random)));
        }
        for task in tasks {
            task.await?;
        }
        care.await?;
        tuner.await?;
        if teller.expects_errors { Ok(()) } else { caretaker::check_limit(&teller.database) }
    }
}

/// What there is before a story.
fn beginning(seed: u64) -> Model {
    // One story after the other keeps to one level and the other.
    let level = if seed.is_multiple_of(2) { Level::Snapshot } else { Level::Serializable };
    Model {
        writers: (0..WRITERS).map(|no| Writer::new(b'a' + no)).collect(),
        contended: Contended::new(level),
        brief: Brief::beginning(seed),
        ..Model::default()
    }
}

async fn make_stores(database: &Database, seed: u64) -> Result<[Store; STORES], String> {
    let mut stores = Vec::new();
    for (no, name) in NAMES.into_iter().enumerate() {
        let store = database.create_store(name, &caretaker::store_settings(seed, no as u64)).await;
        stores.push(store.map_err(|error| format!("store {name} cannot be made: {error}"))?);
    }
    if brief::is_told(seed) {
        let made = database.create_store(brief::NAME, &brief::settings()).await;
        made.map_err(|error| format!("store {} cannot be made: {error}", brief::NAME))?;
    }
    database.sync().await.map_err(|error| format!("the first sync failed: {error}"))?;
    as_stores(stores)
}

/// Opens what rotted and reads all of it; whether the damage was noticed.
async fn read_again(world: World, images: Images, expected: &State) -> Result<bool, String> {
    let rig = Rig::attach(&world, &layout(), images);
    let buffers = BufferPool::new(0);
    let parts =
        rig.parts(&world, &buffers, tanada_volume::CrashPoints::default(), tanada_volume::PlantedBug::None);
    let Ok(volume) = Volume::open(parts, &tanada_volume::OpenOptions::default()).await else {
        return Ok(true);
    };
    let environment: Arc<dyn Environment> = SimEnvironment::of(&world, &buffers);
    let options = OpenOptions { read_only: true, ..OpenOptions::default() };
    let Ok(database) = Database::open(&volume, "shop", &options, environment).await else { return Ok(true) };
    let mut is_noticed = false;
    for (name, expected) in NAMES.iter().zip(expected) {
        let Ok(store) = database.open_store(name) else { return Ok(true) };
        for (key, value) in expected {
            match store.get(key).await {
                Ok(found) if found.as_deref() == Some(&**value) => {}
                Ok(found) => {
                    let len = found.map(|value| value.len());
                    return Err(format!(
                        "key {key:02x?} of {} bytes gives {len:?} bytes and no error",
                        value.len()
                    ));
                }
                Err(_) => is_noticed = true,
            }
        }
        match story::walked(&store, tanada_kv::CursorOptions::default(), true, &mut story::patient()).await {
            Ok(found) => {
                if let Some(what) = model::difference(&found?, expected) {
                    return Err(format!("walked over without an error: {what}"));
                }
            }
            Err(_) => is_noticed = true,
        }
    }
    Ok(is_noticed)
}

#[derive(Default)]
struct Probe {
    marks: Mutex<BTreeMap<&'static str, u64>>,
}

impl CrashProbe for Probe {
    fn reached(&self, name: &'static str) {
        *self.marks.lock().entry(name).or_default() += 1;
    }
}

fn layout() -> Layout {
    let class = |name, devices, chunks| ClassLayout {
        name,
        devices,
        chunks,
        segment_bytes: 64 << 10,
        is_there_from_the_start: true,
    };
    Layout {
        chunk_bytes: CHUNK_BYTES,
        journal_bytes: 256 << 10,
        classes: vec![class("fast", 1, FAST_CHUNKS), class("slow", 1, SLOW_CHUNKS)],
        files: Vec::new(),
    }
}

const CHUNK_BYTES: u64 = 64 << 10;
const FAST_CHUNKS: u64 = 128;
const SLOW_CHUNKS: u64 = 512;

fn volume_settings() -> VolumeSettings {
    let class = |name: &str, chunks: u64| ClassSettings {
        name: name.to_owned(),
        segment_bytes: 64 << 10,
        size_bytes: chunks * CHUNK_BYTES,
    };
    VolumeSettings {
        id: *b"a simulated disk",
        chunk_bytes: CHUNK_BYTES,
        classes: vec![class("fast", FAST_CHUNKS), class("slow", SLOW_CHUNKS)],
        journal_bytes: 256 << 10,
        ..VolumeSettings::default()
    }
}

/// So small that little data makes everything happen.
fn settings(seed: u64) -> DatabaseSettings {
    DatabaseSettings {
        fast_class_bytes: caretaker::fast_limit(seed),
        memory_bytes: 2 << 20,
        memory_table_bytes: 64 << 10,
        log_segment_bytes: 1 << 20,
        log_group_bytes: 64 << 10,
        log_replay_bytes: 1 << 20,
        slow_root_kvsets: 6,
        most_root_kvsets: 12,
        manifest_bytes: 64 << 10,
        ..DatabaseSettings::default()
    }
}

fn as_stores(stores: Vec<Store>) -> Result<[Store; STORES], String> {
    stores.try_into().map_err(|_| "there are too few stores".to_owned())
}
