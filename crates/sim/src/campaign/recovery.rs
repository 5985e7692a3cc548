//! What is asked of a volume after a power cut.
//!
//! 1. Open it. It must open: a power cut is no damage.
//! 2. Its own check must find nothing.
//! 3. Read every byte of every object; the oracle judges.
//! 4. Then one of: cut the power during the recovery and begin again; cut it right after, when nothing may differ any
//!    more; go on working, close cleanly and open once more.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use tanada_base::SplitMix64;
use tanada_io::BufferPool;
use tanada_volume::{CrashPoints, Finding, Object, OpenOptions, PlantedBug, Volume};

use super::book::{Book, Probe};
use super::busy;
use super::layout::{Images, Layout, Rig};
use super::report::Report;
use super::teller::Teller;
use crate::disk::{DiskImage, Wreck};
use crate::executor::{Simulation, World};
use crate::oracle::{Found, Oracle};

/// Power cuts during recoveries of recoveries end here.
const DEEPEST: u32 = 3;

/// Judges recoveries of one kind of volume.
#[derive(Debug, Clone)]
pub(crate) struct Judge {
    pub(crate) layout: Layout,
    pub(crate) planted_bug: PlantedBug,
    /// Whether the volume's making had come to its end.
    pub(crate) is_made: bool,
    /// A class whose labels may have rotted, which a check has to find.
    pub(crate) rotten: Option<&'static str>,
    /// Whether it tells on stderr what it does.
    pub(crate) is_aloud: bool,
}

/// How a recovery goes on once everything was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sequel {
    CutDuring,
    CutAfter,
    GoOn,
    Nothing,
}

impl Judge {
    /// Judges one outcome of a power cut; what is wrong, if anything.
    pub(crate) fn judge(
        &self,
        wreck: &Wreck,
        oracle: &Oracle,
        random: &mut SplitMix64,
        report: &mut Report,
    ) -> Result<(), String> {
        self.judge_at(wreck, oracle, random, report, 0)
    }

    fn judge_at(
        &self,
        wreck: &Wreck,
        oracle: &Oracle,
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
            2 => Sequel::CutAfter,
            3 => Sequel::GoOn,
            _ => Sequel::Nothing,
        };
        let recovery = Recovery {
            judge: self.clone(),
            oracle: oracle.clone(),
            sequel,
            cut_at: random.below(12),
            book: Book::default().aloud(self.is_aloud),
            during: Rc::default(),
        };
        let (book, during) = (recovery.book.clone(), recovery.during.clone());
        let changes: Vec<usize> = wreck.disks().iter().map(|disk| disk.pending_changes()).collect();
        book.tell(|| format!("power cut {depth}: {changes:?} changes are open; then {sequel:?}"));
        let run = Simulation::run(random.next_u64(), |world| recovery.run(world, images));
        report.add(&book.open().report);
        let next = run.outcome.told("the recovery")?;
        if let Some(failure) = book.open().failure.take() {
            return Err(format!("after the recovery: {failure}"));
        }
        let during = during.take();
        if let Some(wreck) = during {
            let judged = self.judge_at(&wreck, oracle, random, report, depth + 1);
            return judged.map_err(|why| format!("after a power cut during the recovery: {why}"));
        }
        if matches!(sequel, Sequel::CutAfter | Sequel::GoOn) {
            let judged = self.judge_at(&run.wreck, &next, random, report, depth + 1);
            return judged.map_err(|why| format!("after a second power cut: {why}"));
        }
        Ok(())
    }
}

/// One recovery in its world.
struct Recovery {
    judge: Judge,
    oracle: Oracle,
    sequel: Sequel,
    /// The I/O of the opening before which the power is cut a second time.
    cut_at: u64,
    book: Book,
    during: Rc<RefCell<Option<Wreck>>>,
}

impl Recovery {
    /// The oracle of what is certain afterwards.
    async fn run(self, world: World, images: Images) -> Result<Oracle, String> {
        let rig = Rig::attach(&world, &self.judge.layout, images);
        let is_opening = Rc::new(Cell::new(true));
        if self.sequel == Sequel::CutDuring {
            cut_while(&world, &is_opening, self.cut_at, &self.during);
        }
        let buffers = BufferPool::new(0);
        let volume = match self.open(&world, &rig, &buffers).await {
            // A volume whose making was cut short may be none.
            Err(_) if !self.judge.is_made => return Ok(self.oracle),
            opened => opened?,
        };
        is_opening.set(false);
        self.check(&world, &rig, &buffers).await?;
        let found = read_all(&volume, &buffers).await?;
        for object in &found {
            self.book.tell(|| format!("found {object}"));
        }
        let oracle = self.oracle.check_recovered(&found)?;
        if self.sequel != Sequel::GoOn {
            return Ok(oracle);
        }
        let book = Book::with(oracle).aloud(self.judge.is_aloud);
        let teller = Teller::new(&world, &book, volume, &buffers, &rig);
        busy::some_work(&teller, 6).await;
        if world.random().below(2) == 0 {
            teller.close().await;
            let volume = self.open(&world, &rig, &buffers).await?;
            if !volume.was_clean() {
                return Err("a volume that was closed counts as not closed".to_owned());
            }
            let found = read_all(&volume, &buffers).await?;
            let oracle = book.open().oracle.clone();
            oracle.check_recovered(&found).map_err(|why| format!("after a clean stop: {why}"))?;
        }
        let mut pages = book.open();
        if let Some(failure) = pages.failure.take() {
            return Err(format!("after the recovery: {failure}"));
        }
        self.book.open().report.add(&pages.report);
        Ok(pages.oracle.clone())
    }

    async fn open(&self, world: &World, rig: &Rig, buffers: &Arc<BufferPool>) -> Result<Volume, String> {
        let probe = Probe { book: self.book.clone(), hook: None };
        let parts = rig.parts(world, buffers, CrashPoints::to(Arc::new(probe)), self.judge.planted_bug);
        let opened = Volume::open(parts, &OpenOptions::default()).await;
        opened.map_err(|error| format!("the volume does not open: {error}"))
    }
}

impl Recovery {
    /// The volume's own check finds nothing.
    async fn check(&self, world: &World, rig: &Rig, buffers: &Arc<BufferPool>) -> Result<(), String> {
        let parts = rig.parts(world, buffers, CrashPoints::default(), PlantedBug::None);
        let report = Volume::check(&parts).await.map_err(|error| format!("the check fails: {error}"))?;
        let is_known = |finding: &&Finding| match finding {
            Finding::LabelDamaged { class, .. } => self.judge.rotten == Some(&**class),
            _ => false,
        };
        match report.findings.iter().find(|finding| !is_known(finding)) {
            None => Ok(()),
            Some(finding) => Err(format!("the check finds: {finding}")),
        }
    }
}

/// Keeps in `during` what the disks hold before the I/O no. `cut_at`, counted from 0, if `is_going_on` still holds
/// then.
pub(crate) fn cut_while(
    world: &World,
    is_going_on: &Rc<Cell<bool>>,
    cut_at: u64,
    during: &Rc<RefCell<Option<Wreck>>>,
) {
    let (disks, during, is_going_on) = (world.disks(), during.clone(), is_going_on.clone());
    let mut left = cut_at;
    world.observe(move |_| {
        if is_going_on.get() && left == 0 && during.borrow().is_none() {
            *during.borrow_mut() = Some(disks.wreck());
        }
        left = left.saturating_sub(1);
    });
}

/// Every byte of every object.
pub(super) async fn read_all(volume: &Volume, buffers: &Arc<BufferPool>) -> Result<Vec<Found>, String> {
    let mut found = Vec::new();
    for object in volume.objects() {
        found.push(read_one(&object, buffers).await?);
    }
    Ok(found)
}

/// Every byte of an object.
pub(super) async fn read_one(object: &Object, buffers: &Arc<BufferPool>) -> Result<Found, String> {
    let (name, size) = (object.name(), object.size_bytes());
    let mut buffer = buffers.allocate(size as usize);
    buffer.fill(0xee);
    let bytes = object.read(0, buffer).await.map_err(|error| format!("cannot read {name:?}: {error}"))?;
    if bytes.len() as u64 != size {
        return Err(format!("{name:?} has {size} bytes, but {} were read", bytes.len()));
    }
    Ok(Found { name, attributes: object.attributes(), image: DiskImage::from_bytes(&bytes) })
}
