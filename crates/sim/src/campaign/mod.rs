//! Campaigns: stories told to a volume on simulated disks, with power cuts at their points and an oracle that judges.
//!
//! 1. A [`Case`] names a story and a seed. [`Trial::run`] makes a volume and tells the story: operations by one task or
//!    several.
//! 2. At points of the story power is cut ([`Density`]); each outcome that is drawn is recovered from in a world of its
//!    own and judged, and power may be cut again during that recovery or after it.
//! 3. What goes wrong is a [`Failure`] with the command that repeats it.

mod altering;
mod begun;
mod book;
mod busy;
mod cutter;
mod damage;
mod fixed;
mod layout;
mod ledger;
mod mirrored;
mod moves;
mod recovery;
mod report;
mod story;
mod teller;
mod transformed;

use std::sync::Arc;

use tanada_io::BufferPool;
use tanada_volume::{CrashPoints, PlantedBug, Volume};

pub use cutter::Density;
pub use damage::{DamageReport, a_device_is_gone, rot_of_a_superblock, rot_of_metadata};
pub use report::{Case, Failure, Report};
pub use story::story_names;

use crate::executor::{Simulation, World};
use crate::fault::Rule;
use book::{Book, Probe};
use cutter::Cutter;
pub(crate) use layout::{ClassLayout, Images, Layout, Rig};
use recovery::Judge;
pub(crate) use recovery::cut_while;
use teller::Teller;

const PLANTED_BUGS: [PlantedBug; 13] = [
    PlantedBug::None,
    PlantedBug::SwitchBeforeSync,
    PlantedBug::ReuseBeforeFree,
    PlantedBug::SuperblockBeforeCheckpoint,
    PlantedBug::MapBeforeData,
    PlantedBug::ForgetAttributes,
    PlantedBug::OverrunQuota,
    PlantedBug::IgnorePin,
    PlantedBug::CountHalf,
    PlantedBug::TrustMirrors,
    PlantedBug::JournalPagesBeforeData,
    PlantedBug::ReusePagesEarly,
    PlantedBug::SyncBeforeCleaners,
];

const KEY_VALUE_BUGS: [tanada_kv::PlantedBug; 8] = [
    tanada_kv::PlantedBug::LeaveOutConflicts,
    tanada_kv::PlantedBug::ForgetReads,
    tanada_kv::PlantedBug::SnapshotTooLate,
    tanada_kv::PlantedBug::ReplayInPart,
    tanada_kv::PlantedBug::AcknowledgeBeforeSync,
    tanada_kv::PlantedBug::DropDeletes,
    tanada_kv::PlantedBug::CutTooLate,
    tanada_kv::PlantedBug::SkipManifestSync,
];

/// How a story is tried.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Where and how often power is cut.
    pub density: Density,
    /// A bug that the volume is asked to have.
    pub planted_bug: PlantedBug,
    /// The same of the key-value engine, if the story is told to it.
    pub key_value_bug: tanada_kv::PlantedBug,
    /// What goes wrong with I/Os once the volume is made. Operations may fail then.
    pub rules: Vec<Rule>,
    /// Cut the power while the volume is made, too.
    pub cuts_creation: bool,
    /// Tell on stderr what happens.
    pub is_aloud: bool,
}

impl Trial {
    /// Power cuts alone.
    pub fn cuts(per_thousand: u32, outcomes: u64) -> Trial {
        Trial {
            density: Density { per_thousand, outcomes },
            planted_bug: PlantedBug::None,
            key_value_bug: tanada_kv::PlantedBug::None,
            rules: Vec::new(),
            cuts_creation: false,
            is_aloud: false,
        }
    }

    /// Tells the story of `case` and judges it.
    ///
    /// # Errors
    /// The first promise that was broken.
    pub fn run(&self, case: &Case) -> Result<Report, Failure> {
        let _announced = Announced(case);
        let book = Book::default().aloud(self.is_aloud);
        let (trial, inner, told) = (self.clone(), book.clone(), case.clone());
        let run = Simulation::run(case.seed, |world| async move { trial.tell(world, told, inner).await });
        let fail = |what: String| Failure { case: case.clone(), what, settings: self.settings() };
        let (mut report, failure) = run.outcome.told("the story").map_err(fail)?;
        if let Some(failure) = failure {
            return Err(Failure { settings: self.settings(), ..failure });
        }
        let mut pages = book.open();
        if let Some(what) = pages.failure.take() {
            return Err(fail(what));
        }
        report.add(&pages.report);
        report.stories += 1;
        report.ios += run.ios;
        report.traces.push(run.trace);
        Ok(report)
    }

    /// Changes one thing by a word of a command, `NAME=VALUE`; `false` if it is none of a trial.
    ///
    /// # Errors
    /// If the value makes no sense.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, String> {
        let number = || value.parse::<u64>().map_err(|error| format!("{name}={value}: {error}"));
        match name {
            "DENSITY" => self.density.per_thousand = number()? as u32,
            "OUTCOMES" => self.density.outcomes = number()?,
            "CREATION" => self.cuts_creation = number()? > 0,
            "FAULT" => self.rules.push(value.parse()?),
            "BUG" => {
                if let Some(bug) = KEY_VALUE_BUGS.iter().find(|bug| format!("{bug:?}") == value) {
                    self.key_value_bug = *bug;
                    return Ok(true);
                }
                let bug = PLANTED_BUGS.iter().find(|bug| format!("{bug:?}") == value);
                self.planted_bug = *bug.ok_or_else(|| {
                    format!("there is no planted bug {value}: {PLANTED_BUGS:?} {KEY_VALUE_BUGS:?}")
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What differs from power cuts alone, as words of a command.
    fn settings(&self) -> String {
        let mut words = String::new();
        if self.cuts_creation {
            words.push_str(" CREATION=1");
        }
        if self.planted_bug != PlantedBug::None {
            words.push_str(&format!(" BUG={:?}", self.planted_bug));
        }
        self.rules.iter().for_each(|rule| words.push_str(&format!(" FAULT={rule}")));
        words
    }

    async fn tell(self, world: World, case: Case, book: Book) -> Result<(Report, Option<Failure>), String> {
        let layout = Layout::usual();
        let rig = Rig::attach(&world, &layout, Images::default());
        let judge = Judge {
            layout: layout.clone(),
            planted_bug: self.planted_bug,
            is_made: true,
            rotten: (case.story == "mirrored").then_some(mirrored::MIRRORS),
            is_aloud: self.is_aloud,
        };
        let cutter = Cutter::new(&case, self.density, judge, world.disks(), &book);
        cutter.set_made(!self.cuts_creation);
        let (at_mark, at_io) = (cutter.clone(), cutter.clone());
        let hook = Arc::new(move || at_mark.point());
        let crash_points = CrashPoints::to(Arc::new(Probe { book: book.clone(), hook: Some(hook) }));
        let buffers = BufferPool::new(0);
        if self.cuts_creation {
            let at_io = cutter.clone();
            world.observe(move |_| at_io.point());
        } else {
            cutter.pause(true);
        }
        let parts = rig.parts(&world, &buffers, crash_points.clone(), self.planted_bug);
        let made = Volume::create(parts, &layout.settings()).await;
        let volume = made.map_err(|error| format!("the volume cannot be made: {error}"))?;
        cutter.set_made(true);
        if !self.cuts_creation {
            cutter.pause(false);
            world.observe(move |_| at_io.point());
        }
        let mut teller = Teller::new(&world, &book, volume, &buffers, &rig);
        teller.crash_points = crash_points;
        teller.planted_bug = self.planted_bug;
        teller.expects_errors.set(!self.rules.is_empty());
        let rules: Vec<_> = self.rules.iter().map(|rule| world.inject(*rule)).collect();
        let teller = story::tell(&case.story, &teller).await?;
        teller.check_counts();
        cutter.point();
        let (mut report, failure) = cutter.end();
        report.faults = rules.into_iter().map(|rule| world.struck(rule)).sum();
        Ok((report, failure))
    }
}

/// Says which case was under way when something panics.
struct Announced<'a>(&'a Case);

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("repeat it: {}", self.0.command());
        }
    }
}
