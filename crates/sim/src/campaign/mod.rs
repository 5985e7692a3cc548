//! Campaigns: stories told to a volume on simulated disks, with power cuts at their points and an oracle that judges.
//!
//! 1. A [`Case`] names a story and a seed. [`run`] makes a volume and tells the story: operations by several tasks at once.
//! 2. At points of the story power is cut ([`Density`]); each outcome that is drawn is recovered from in a world of its own and judged, and power
//!    may be cut again during that recovery or after it.
//! 3. What goes wrong is a [`Failure`] with the command that repeats it.

mod book;
mod busy;
mod cutter;
mod layout;
mod moves;
mod recovery;
mod report;
mod story;
mod teller;

use std::sync::Arc;

use tanada_io::BufferPool;
use tanada_volume::{CrashPoints, PlantedBug, Volume};

pub use cutter::Density;
pub use report::{Case, Failure, Report};
pub use story::story_names;

use crate::executor::{Outcome, Simulation, World};
use book::{Book, Probe};
use cutter::Cutter;
use layout::{Images, Layout, Rig};
use recovery::Judge;
use teller::Teller;

/// Tells the story of `case` and judges it.
///
/// # Errors
/// The first promise that was broken.
pub fn run(case: &Case, density: Density, planted_bug: PlantedBug) -> Result<Report, Failure> {
    let _announced = Announced(case);
    let book = Book::default().aloud(case.point.is_some());
    let layout = Layout::usual();
    let (inner, told) = (book.clone(), case.clone());
    let run = Simulation::run(case.seed, |world| async move {
        tell(world, told, density, layout, planted_bug, inner).await
    });
    let fail = |what: String| Failure { case: case.clone(), what };
    let (mut report, failure) = match run.outcome {
        Outcome::Done(result) => result.map_err(fail)?,
        Outcome::Stuck => {
            return Err(fail("the story is stuck: nothing is ready and nothing in flight".to_owned()));
        }
        Outcome::PowerCut | Outcome::Runaway => return Err(fail("the story never ends".to_owned())),
    };
    if let Some(failure) = failure {
        return Err(failure);
    }
    let mut pages = book.open();
    if let Some(what) = pages.failure.take() {
        return Err(fail(what));
    }
    report.add(&pages.report);
    report.stories += 1;
    report.ios += run.ios;
    Ok(report)
}

async fn tell(
    world: World,
    case: Case,
    density: Density,
    layout: Layout,
    planted_bug: PlantedBug,
    book: Book,
) -> Result<(Report, Option<Failure>), String> {
    let rig = Rig::attach(&world, &layout, Images::default());
    let judge = Judge { layout: layout.clone(), planted_bug, is_aloud: case.point.is_some() };
    let cutter = Cutter::new(&case, density, judge, world.disks(), &book);
    let buffers = BufferPool::new(0);
    let at_mark = cutter.clone();
    let is_made = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = is_made.clone();
    let hook = Arc::new(move || {
        if seen.load(std::sync::atomic::Ordering::Relaxed) {
            at_mark.point();
        }
    });
    let probe = Probe { book: book.clone(), hook: Some(hook) };
    let parts = rig.parts(&world, &buffers, CrashPoints::to(Arc::new(probe)), planted_bug);
    let made = Volume::create(parts, &layout.settings()).await;
    let volume = made.map_err(|error| format!("the volume cannot be made: {error}"))?;
    is_made.store(true, std::sync::atomic::Ordering::Relaxed);
    let at_io = cutter.clone();
    world.observe(move |_| at_io.point());
    let teller = Teller::new(&world, &book, volume, &buffers, &rig);
    story::tell(&case.story, &teller).await?;
    cutter.point();
    Ok(cutter.end())
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
