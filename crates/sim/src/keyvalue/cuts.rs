//! Power cuts of a story, and what is found behind them.
//!
//! 1. [`Cutter`] passes points: before each I/O, and at the end. With some chance power is cut there, which the story
//!    does not notice.
//! 2. [`judge`] draws what the disks hold then, recovers it in a world of its own, and asks the model.
//! 3. By chance the recovery is cut as well, and judged in its turn, or the story goes on behind it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tanada_base::SplitMix64;
use tanada_io::BufferPool;
use tanada_kv::{CrashPoints, Database, Environment, OpenOptions, PlantedBug, Store};
use tanada_volume::Volume;

use super::caretaker::sweep;
use super::environment::{SimEnvironment, wall_time_s};
use super::model::{Model, STORES};
use super::story::{NAMES, Teller, everything};
use super::{CONTENDERS, Probe, WRITERS, as_stores, layout};
use crate::campaign::{Case, Density, Images, Report, Rig, cut_while};
use crate::disk::{DiskSet, Wreck};
use crate::executor::{Simulation, World};
use crate::trace::mix;

/// Power cuts during recoveries of recoveries end here.
const DEEPEST: u32 = 3;

/// What came of the cuts of a story.
#[derive(Default)]
pub(super) struct Judged {
    next_point: u64,
    pub(super) report: Report,
    pub(super) failure: Option<String>,
}

/// Cuts the power at points of a story. Cheap to clone.
#[derive(Clone)]
pub(super) struct Cutter {
    pub(super) case: Case,
    pub(super) density: Density,
    pub(super) disks: DiskSet,
    pub(super) model: Rc<RefCell<Model>>,
    pub(super) state: Rc<RefCell<Judged>>,
    pub(super) world: World,
    pub(super) planted_bug: PlantedBug,
}

impl Cutter {
    /// A point is passed.
    pub(super) fn point(&self) {
        let no = {
            let mut state = self.state.borrow_mut();
            if state.failure.is_some() {
                return;
            }
            state.next_point += 1;
            state.next_point - 1
        };
        if self.density.is_chosen(&self.case, no) {
            self.cut(no);
        }
    }

    /// The last point of a story, always.
    pub(super) fn point_surely(&self) {
        let no = self.state.borrow().next_point;
        if self.state.borrow().failure.is_none() {
            self.cut(no);
        }
    }

    fn cut(&self, point: u64) {
        let wreck = self.disks.wreck();
        let now = self.world.now();
        let mut report = Report { points: 1, ..Report::default() };
        for (outcome, mut random) in self.density.outcomes_at(&self.case, point) {
            let model = self.model.borrow().clone();
            if let Err(what) = judge(&wreck, (model, self.planted_bug), now, &mut random, &mut report, 0) {
                self.state.borrow_mut().failure = Some(format!("POINT={point} OUTCOME={outcome}: {what}"));
                break;
            }
        }
        self.state.borrow_mut().report.add(&report);
    }
}

/// How a recovery goes on once everything was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sequel {
    CutDuring,
    GoOn,
    Nothing,
}

/// Judges one outcome of a power cut at `now` of the story.
fn judge(
    wreck: &Wreck,
    (model, planted_bug): (Model, PlantedBug),
    now: Duration,
    random: &mut SplitMix64,
    report: &mut Report,
    depth: u32,
) -> Result<(), String> {
    report.cuts += 1;
    report.second_cuts += u64::from(depth > 0);
    let images: Images = wreck.survivors(random).into_iter().collect();
    let sequel = match random.below(8) {
        _ if depth >= DEEPEST => Sequel::Nothing,
        0 | 1 => Sequel::CutDuring,
        2 => Sequel::GoOn,
        _ => Sequel::Nothing,
    };
    let during: Rc<RefCell<Option<Wreck>>> = Rc::default();
    let marks = Arc::new(Probe::default());
    let recovery = Recovery {
        model: model.clone(),
        planted_bug,
        now,
        sequel,
        cut_at: random.below(30),
        during: during.clone(),
        marks: marks.clone(),
        seed: random.next_u64(),
    };
    let run = Simulation::run(random.next_u64(), |world| async move { recovery.run(world, images).await });
    for (name, count) in &*marks.marks.lock() {
        *report.marks.entry(name).or_default() += count;
    }
    run.outcome.told("the recovery")?;
    if let Some(wreck) = during.take() {
        let judged = judge(&wreck, (model, planted_bug), now, random, report, depth + 1);
        return judged.map_err(|why| format!("after a power cut during the recovery: {why}"));
    }
    Ok(())
}

/// One recovery in its world.
struct Recovery {
    model: Model,
    planted_bug: PlantedBug,
    now: Duration,
    sequel: Sequel,
    /// The I/O of the opening before which the power is cut a second time.
    cut_at: u64,
    during: Rc<RefCell<Option<Wreck>>>,
    marks: Arc<Probe>,
    seed: u64,
}

impl Recovery {
    async fn run(mut self, world: World, images: Images) -> Result<(), String> {
        let rig = Rig::attach(&world, &layout(), images);
        let buffers = BufferPool::new(0);
        let parts = rig.parts(
            &world,
            &buffers,
            tanada_volume::CrashPoints::default(),
            tanada_volume::PlantedBug::None,
        );
        let volume = Volume::open(parts, &tanada_volume::OpenOptions::default())
            .await
            .map_err(|error| format!("the volume cannot be opened: {error}"))?;
        let is_opening = Rc::new(Cell::new(true));
        if self.sequel == Sequel::CutDuring {
            cut_while(&world, &is_opening, self.cut_at, &self.during);
        }
        let environment: Arc<dyn Environment> = SimEnvironment::after(self.now, &world, &buffers);
        let wall = || wall_time_s(self.now + world.now());
        let (database, stores) = self.open(&volume, &environment).await?;
        is_opening.set(false);
        self.model.judge(&everything(&database, &stores, wall).await?, self.now)?;
        if self.sequel != Sequel::GoOn {
            return Ok(());
        }
        sweep(&volume, &environment).await?;
        let teller = Teller {
            world: world.clone(),
            database: database.clone(),
            stores,
            store_count: STORES,
            model: Rc::new(RefCell::new(self.model.clone())),
            expects_errors: false,
            operations: Rc::default(),
        };
        for no in 0..usize::from(WRITERS) {
            let random = SplitMix64::new(mix(self.seed, no as u64));
            teller
                .clone()
                .write(no, 15, random)
                .await
                .map_err(|what| format!("after the recovery: {what}"))?;
        }
        let contenders = (0..CONTENDERS).map(|no| SplitMix64::new(mix(self.seed, 0x100 + no)));
        let mut contenders: Vec<_> =
            contenders.map(|random| world.spawn(teller.clone().contend(6, random))).collect();
        let random = SplitMix64::new(mix(self.seed, 0x200));
        contenders.push(world.spawn(teller.clone().lodge(8, random)));
        for task in contenders {
            task.await.map_err(|what| format!("after the recovery: {what}"))?;
        }
        let model = teller.model.clone();
        drop(teller);
        database.close().await.map_err(|error| format!("it cannot be closed after the recovery: {error}"))?;
        let (database, stores) = self.open(&volume, &environment).await?;
        let found = everything(&database, &stores, wall).await?;
        model.borrow_mut().closed();
        let judged = model.borrow_mut().judge(&found, Duration::MAX);
        judged.map_err(|what| format!("closed after the recovery and opened once more: {what}"))?;
        database.close().await.map_err(|error| format!("it cannot be closed in the end: {error}"))
    }

    async fn open(
        &self,
        volume: &Volume,
        environment: &Arc<dyn Environment>,
    ) -> Result<(Database, [Store; STORES]), String> {
        let crash_points = CrashPoints::to(self.marks.clone()).with_bug(self.planted_bug);
        let options = OpenOptions { crash_points, ..OpenOptions::default() };
        let database = Database::open(volume, "shop", &options, environment.clone())
            .await
            .map_err(|error| format!("the database cannot be opened: {error}"))?;
        let mut stores = Vec::new();
        for name in NAMES {
            let store = database.open_store(name);
            stores.push(store.map_err(|error| format!("store {name} is not there: {error}"))?);
        }
        Ok((database, as_stores(stores)?))
    }
}
