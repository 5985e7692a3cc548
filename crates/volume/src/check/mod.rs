//! Checking a volume that is not in use, and repairing what can be derived.
//!
//! A check reads superblocks, the log, labels and the identity of adopted files, and changes nothing. It finds out
//! whether
//! - both superblocks are whole, and the log up to its end;
//! - every chunk's home and mirror lie within their class, and no place is claimed twice;
//! - mirrors lie in faster classes than their homes;
//! - pages lie in chunks that are mapped, and no two in the same block;
//! - every device is there, large enough and the right one;
//! - adopted files are what they were.
//!
//! A repair drops mirrors that cannot be right (homes are the truth), drops mirrors of changed files, and writes both
//! superblocks and a new log. It never guesses: homes that collide, a damaged log, a wrong device stay as they are
//! found.

mod findings;

use std::collections::HashMap;
use std::sync::Arc;

pub use findings::{Finding, Severity};

use crate::adopted::Opener;
use crate::chunk::Place;
use crate::class::{Class, Keep, Label};
use crate::metadata::{Recovered, RecoveredClass, Superblock, WallTime, read_superblock, replay};
use crate::settings::{BLOCK_BYTES, ClassSettings, OpenOptions};
use crate::{ErrorKind, Parts, Result, Volume};

/// What a check found.
///
/// ```
/// use tanada_volume::CheckReport;
///
/// let report = CheckReport::default();
/// assert!(report.is_sound() && report.findings.is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct CheckReport {
    /// Everything that is not as it should be, worst first.
    pub findings: Vec<Finding>,
    /// The volume had been stopped cleanly.
    pub was_clean: bool,
    /// Objects that were looked at.
    pub objects: u64,
    /// Chunks that were looked at.
    pub chunks: u64,
}

impl CheckReport {
    /// Whether nothing was found.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

impl Volume {
    /// Checks the volume on `parts`, which nobody may have open for writing. Changes nothing.
    ///
    /// # Errors
    /// If there is no volume, or the metadata device cannot be read; everything else is a finding.
    pub async fn check(parts: &Parts) -> Result<CheckReport> {
        let mut report = CheckReport::default();
        let superblock = match superblock(parts, &mut report).await? {
            Some(superblock) => superblock,
            None => return Ok(report),
        };
        let mut recovered = Recovered::new(superblock.chunk_bytes, parts.clock.now(), WallTime::default());
        match replay(&parts.metadata, &parts.buffers, &superblock, |record| recovered.apply(record)).await {
            Ok(replayed) => report.was_clean = replayed.is_clean,
            Err(error) if error.kind() == ErrorKind::Corrupted => {
                report.findings.push(Finding::MetadataDamaged { message: error.to_string() });
                return Ok(report);
            }
            Err(error) => return Err(error),
        }
        check_devices(&recovered, &superblock, parts, &mut report).await;
        check_chunks(&recovered, &mut report);
        check_pages(&recovered, superblock.chunk_bytes, &mut report);
        check_adopted(&recovered, &*parts.opener, &mut report);
        report.findings.sort_by_key(Finding::severity);
        Ok(report)
    }

    /// Repairs what a check finds, as far as it can be derived; what was found before. Check again afterwards.
    ///
    /// # Errors
    /// As [`check`](Self::check) and [`open`](Self::open); nothing is changed where a finding cannot be repaired.
    pub async fn repair(parts: &Parts) -> Result<CheckReport> {
        let report = Volume::check(parts).await?;
        let is_hopeless = report.findings.iter().any(|finding| finding.severity() == Severity::NotRepairable);
        if report.is_sound() || is_hopeless {
            return Ok(report);
        }
        let volume = Volume::open_and_repair(parts.clone(), &OpenOptions::default()).await?;
        if let Some(error) = volume.read_only_reason() {
            return Err(error);
        }
        // One for each superblock.
        volume.checkpoint().await?;
        volume.checkpoint().await?;
        volume.close().await?;
        Ok(report)
    }
}

async fn superblock(parts: &Parts, report: &mut CheckReport) -> Result<Option<Superblock>> {
    match read_superblock(&parts.metadata, &parts.buffers).await {
        Ok(found) => {
            let places = found.damaged.into_iter();
            report.findings.extend(places.map(|place| Finding::SuperblockDamaged { place }));
            Ok(Some(found.superblock))
        }
        Err(error) if error.kind() == ErrorKind::Corrupted => {
            report.findings = vec![Finding::MetadataDamaged { message: error.to_string() }];
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

async fn check_devices(
    recovered: &Recovered,
    superblock: &Superblock,
    parts: &Parts,
    report: &mut CheckReport,
) {
    for recorded in &recovered.classes {
        let found = parts.classes.iter().find(|class| class.name == recorded.name);
        let mut devices = found.map(|class| class.devices.clone()).unwrap_or_default();
        devices.resize(recorded.devices as usize, None);
        let settings = ClassSettings {
            name: recorded.name.clone(),
            segment_bytes: recorded.segment_bytes,
            size_bytes: u64::from(recorded.chunks) * superblock.chunk_bytes,
        };
        let class = Class::new(recorded.id, &settings, superblock.chunk_bytes, devices);
        for index in 0..class.devices.len() {
            if let Some(finding) = check_device(&class, index, superblock, parts).await {
                report.findings.push(finding);
            }
        }
    }
}

async fn check_device(
    class: &Class,
    index: usize,
    superblock: &Superblock,
    parts: &Parts,
) -> Option<Finding> {
    let (name, device_no) = (class.name.clone(), index as u16);
    let Ok(device) = class.device(index) else {
        return Some(Finding::DeviceMissing { class: name, device: device_no });
    };
    let keep: Keep = Arc::new(());
    let Ok(block) = device.read(0, parts.buffers.allocate(BLOCK_BYTES as usize), &keep).await else {
        return Some(Finding::DeviceMissing { class: name, device: device_no });
    };
    let expected = Label {
        volume: superblock.volume,
        class: class.id,
        device: device_no,
        devices: class.devices.len() as u16,
    };
    match Label::decode(&block, device.name()) {
        Ok(Some(label)) if label == expected => {}
        Ok(Some(_)) => return Some(Finding::WrongDevice { class: name, device: device_no }),
        Ok(None) | Err(_) => return Some(Finding::LabelDamaged { class: name, device: device_no }),
    }
    let (needed, size) = (class.device_bytes(), device.device().size_bytes().unwrap_or(0));
    (size < needed).then_some(Finding::DeviceTooSmall { class: name, device: device_no, size, needed })
}

/// Who claims a place.
type Claims<'a> = HashMap<Place, (&'a str, u64)>;

fn check_chunks(recovered: &Recovered, report: &mut CheckReport) {
    let mut claims = Claims::new();
    let rank = |id: u8| recovered.classes.iter().position(|class| class.id == id);
    // Homes first, so that it is the mirror that is wrong where both claim a place.
    for is_mirror in [false, true] {
        for object in recovered.objects.values() {
            report.objects += u64::from(!is_mirror);
            for (no, chunk) in object.table.iter_from(0) {
                let home = chunk.home.get();
                let place = if is_mirror { chunk.mirror.get() } else { home };
                let Some(place) = place else { continue };
                report.chunks += u64::from(!is_mirror);
                let object_name = object.name.as_str();
                let finding = claim(&recovered.classes, &mut claims, place, object_name, no, is_mirror);
                report.findings.extend(finding);
                if is_mirror && home.is_some_and(|home| rank(place.class) >= rank(home.class)) {
                    report.findings.push(Finding::MirrorNotFaster { object: object.name.clone(), chunk: no });
                }
            }
        }
    }
}

fn claim<'a>(
    classes: &[RecoveredClass],
    claims: &mut Claims<'a>,
    place: Place,
    object: &'a str,
    chunk: u64,
    is_mirror: bool,
) -> Option<Finding> {
    let class = classes.iter().find(|class| class.id == place.class);
    if class.is_none_or(|class| place.no >= class.chunks) {
        return Some(Finding::PlaceOutside { object: object.to_owned(), chunk, place, is_mirror });
    }
    let (other, other_chunk) = claims.insert(place, (object, chunk))?;
    // The first claim stands.
    claims.insert(place, (other, other_chunk));
    Some(Finding::PlaceTwice {
        object: object.to_owned(),
        chunk,
        place,
        is_mirror,
        other: other.to_owned(),
        other_chunk,
    })
}

fn check_pages(recovered: &Recovered, chunk_bytes: u64, report: &mut CheckReport) {
    for object in recovered.objects.values() {
        let Some(pages) = &object.pages else { continue };
        if let Err(why) = pages.space(&object.table, chunk_bytes, object.size_bytes) {
            report.findings.push(Finding::PagesWrong { object: object.name.clone(), why });
        }
    }
}

fn check_adopted(recovered: &Recovered, opener: &dyn Opener, report: &mut CheckReport) {
    for object in recovered.objects.values() {
        let Some((path, identity)) = &object.adopted else { continue };
        let (object, path) = (object.name.clone(), path.clone());
        match opener.identity(&path) {
            Ok(now) if now == *identity => {}
            Ok(_) => report.findings.push(Finding::AdoptedChanged { object, path }),
            Err(error) => {
                report.findings.push(Finding::AdoptedMissing { object, path, why: error.to_string() });
            }
        }
    }
}
