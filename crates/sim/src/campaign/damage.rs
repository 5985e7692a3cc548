//! What is not a power cut: metadata that rot while the volume is closed or after it was stopped uncleanly, repairs of
//! that, and devices that are gone when it is opened again.
//!
//! 1. A story is told and the volume closed, so all that there is is durable; or the power is cut at its end.
//! 2. The disks are damaged; the volume is opened in a world of its own.
//! 3. It may refuse to open, and objects may refuse to be read; but what is read is right, and without the damage all
//!    is there.

use tanada_base::SplitMix64;
use tanada_io::BufferPool;
use tanada_volume::{Attributes, CrashPoints, OpenOptions, PlantedBug, Volume};

use super::book::Book;
use super::layout::{Images, Layout, Rig};
use super::recovery::{read_all, read_one};
use super::report::{Case, Failure};
use super::story;
use super::teller::Teller;
use crate::disk::Tearing;
use crate::executor::{Outcome, Simulation};
use crate::oracle::Oracle;
use crate::trace::mix;

/// What damage did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DamageReport {
    /// Openings of a damaged volume.
    pub openings: u64,
    /// Those that were refused.
    pub refused: u64,
    /// Objects that were read and right.
    pub right: u64,
    /// Objects that could not be read.
    pub unreadable: u64,
}

/// A closed volume: its disks, and what is in it.
struct Closed {
    images: Images,
    oracle: Oracle,
}

fn failure(case: &Case, what: String) -> Failure {
    Failure { case: case.clone(), what, settings: String::new() }
}

/// What a run that has to come to its end gave.
fn ended<T>(case: &Case, outcome: Outcome<Result<T, String>>) -> Result<T, Failure> {
    outcome.told("the story").map_err(|what| failure(case, what))
}

fn told_and_closed(case: &Case) -> Result<Closed, Failure> {
    told(case, true)
}

fn told(case: &Case, is_closed: bool) -> Result<Closed, Failure> {
    let name = case.story.clone();
    let run = Simulation::run(case.seed, |world| async move {
        let layout = Layout::usual();
        let rig = Rig::attach(&world, &layout, Images::default());
        let buffers = BufferPool::new(0);
        let parts = rig.parts(&world, &buffers, CrashPoints::default(), PlantedBug::None);
        let made = Volume::create(parts, &layout.settings()).await;
        let volume = made.map_err(|error| error.to_string())?;
        let book = Book::default();
        let teller = Teller::new(&world, &book, volume, &buffers, &rig);
        let teller = story::tell(&name, &teller).await?;
        if is_closed {
            teller.close().await;
        }
        let mut pages = book.open();
        pages.failure.take().map_or(Ok(pages.oracle.clone()), Err)
    });
    let mut random = SplitMix64::new(case.seed);
    let images = match is_closed {
        true => run.wreck.survivors_of(Tearing::LoseAll, &mut random),
        false => run.wreck.survivors(&mut random),
    };
    let images = images.into_iter().collect();
    Ok(Closed { images, oracle: ended(case, run.outcome)? })
}

/// Flips bits of the metadata of a closed volume, one for each of `flips` openings.
///
/// # Errors
/// If wrong bytes are read, or an object is missing from a volume that opens.
pub fn rot_of_metadata(case: &Case, flips: u64) -> Result<DamageReport, Failure> {
    let closed = told_and_closed(case)?;
    let mut report = DamageReport::default();
    for no in 0..flips {
        let mut random = SplitMix64::new(mix(case.seed, no));
        let mut images = closed.images.clone();
        if let Some(metadata) = images.get_mut("metadata") {
            // Half of them in the superblocks, most of them where something is written.
            let bytes = metadata.to_bytes();
            let most = if no % 2 == 0 { 8192 } else { bytes.len() as u64 };
            let mut at = random.below(most);
            for _ in 0..1000 {
                if bytes[at as usize] != 0 {
                    break;
                }
                at = random.below(most);
            }
            metadata.flip(at, random.below(8) as u32);
        }
        let oracle = closed.oracle.clone();
        let run = Simulation::run(no, |world| async move {
            let rig = Rig::attach(&world, &Layout::usual(), images);
            let buffers = BufferPool::new(0);
            let parts = rig.parts(&world, &buffers, CrashPoints::default(), PlantedBug::None);
            if no % 3 == 0 {
                // What it may not repair it leaves alone; what it repairs is right.
                let _ = Volume::repair(&parts).await;
            }
            let Ok(volume) = Volume::open(parts, &OpenOptions::default()).await else { return Ok(None) };
            let found = read_all(&volume, &buffers).await?;
            oracle.check_recovered(&found).map_err(|why| format!("with bit {no} flipped: {why}"))?;
            Ok(Some(found.len() as u64))
        });
        report.openings += 1;
        match ended(case, run.outcome)? {
            Some(objects) => report.right += objects,
            None => report.refused += 1,
        }
    }
    Ok(report)
}

/// Damages one of the two superblocks after a story at whose end the power was cut, by a bit or by whole sectors, one
/// for each of `times` openings.
///
/// # Errors
/// If the volume does not open, or anything that was synced is missing.
pub fn rot_of_a_superblock(case: &Case, times: u64) -> Result<DamageReport, Failure> {
    let stopped = told(case, false)?;
    let mut report = DamageReport::default();
    for no in 0..times {
        let mut random = SplitMix64::new(mix(case.seed, no));
        let mut images = stopped.images.clone();
        if let Some(metadata) = images.get_mut("metadata") {
            let start = no % 2 * 4096;
            match random.below(2) {
                0 => metadata.flip(start + random.below(108), random.below(8) as u32),
                _ => metadata
                    .write(start, &vec![random.next_u64() as u8; 512 * (1 + random.below(8)) as usize]),
            }
        }
        let oracle = stopped.oracle.clone();
        let run = Simulation::run(no, |world| async move {
            let rig = Rig::attach(&world, &Layout::usual(), images);
            let buffers = BufferPool::new(0);
            let parts = rig.parts(&world, &buffers, CrashPoints::default(), PlantedBug::None);
            let opened = Volume::open(parts, &OpenOptions::default()).await;
            let volume = opened.map_err(|error| format!("with damage {no} it does not open: {error}"))?;
            let found = read_all(&volume, &buffers).await?;
            oracle.check_recovered(&found).map_err(|why| format!("with damage {no}: {why}"))?;
            Ok(found.len() as u64)
        });
        report.openings += 1;
        report.right += ended(case, run.outcome)?;
    }
    Ok(report)
}

/// Opens a closed volume without one of its devices, for each of them, and then with all again.
///
/// # Errors
/// If wrong bytes are read, a read-only volume takes writes, or an object is missing when the device is back.
pub fn a_device_is_gone(case: &Case) -> Result<DamageReport, Failure> {
    let mut closed = told_and_closed(case)?;
    let mut report = DamageReport::default();
    let names: Vec<String> =
        closed.images.keys().filter(|name| name.contains(".0") || name.contains(".1")).cloned().collect();
    for gone in names.iter().map(Some).chain([None]) {
        let (images, oracle, gone) = (closed.images.clone(), closed.oracle.clone(), gone.cloned());
        let run = Simulation::run(case.seed, |world| async move {
            let rig = Rig::attach(&world, &Layout::usual(), images);
            let buffers = BufferPool::new(0);
            let mut parts = rig.parts(&world, &buffers, CrashPoints::default(), PlantedBug::None);
            for class in &mut parts.classes {
                for (no, device) in class.devices.iter_mut().enumerate() {
                    if gone.as_ref().is_some_and(|gone| *gone == format!("{}.{no}", class.name)) {
                        *device = None;
                    }
                }
            }
            let opened = Volume::open(parts, &OpenOptions::default()).await;
            let volume = opened.map_err(|error| format!("without {gone:?} it does not open: {error}"))?;
            let (mut found, mut unreadable) = (Vec::new(), 0);
            for object in volume.objects() {
                match read_one(&object, &buffers).await {
                    Ok(object) => found.push(object),
                    Err(_) => unreadable += 1,
                }
            }
            oracle.check_found(&found).map_err(|why| format!("without {gone:?}: {why}"))?;
            if unreadable > 0 && volume.create_object("new", &Attributes::default()).is_ok() {
                return Err(format!("without {gone:?} objects cannot be read, but the volume takes writes"));
            }
            if gone.is_none() {
                oracle.check_recovered(&found).map_err(|why| format!("with all devices back: {why}"))?;
            }
            Ok((found.len() as u64, unreadable))
        });
        let survivors = run.wreck.survivors_of(Tearing::KeepAll, &mut SplitMix64::new(1));
        let (right, unreadable) = ended(case, run.outcome)?;
        // The device that is gone keeps what it had; the others keep what was written to them meanwhile.
        closed.images = survivors.into_iter().collect();
        report.openings += 1;
        report.right += right;
        report.unreadable += unreadable;
    }
    Ok(report)
}
