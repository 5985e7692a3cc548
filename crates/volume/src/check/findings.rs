//! What a check can find.

use std::fmt;

use crate::chunk::Place;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing can be derived: bring back a device, restore.
    NotRepairable,
    /// A repair puts it right without losing anything.
    Repairable,
    /// Outside of the volume: a file or a device is not there; nothing to repair.
    Outside,
}

/// One thing that is not as it should be; the fields say where: which object and chunk, or which class and device.
///
/// ```
/// use tanada_volume::{Finding, Severity};
///
/// let finding = Finding::SuperblockDamaged { place: 1 };
/// assert_eq!(finding.severity(), Severity::Repairable);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Finding {
    /// One of the two superblocks, 0 or 1; the other one counts.
    SuperblockDamaged { place: u8 },
    /// The log, or both superblocks.
    MetadataDamaged { message: String },
    /// A home or a mirror lies behind the end of its class, or in none.
    PlaceOutside { object: String, chunk: u64, place: Place, is_mirror: bool },
    /// Two chunks claim one place.
    PlaceTwice { object: String, chunk: u64, place: Place, is_mirror: bool, other: String, other_chunk: u64 },
    /// A mirror is not in a faster class than its home.
    MirrorNotFaster { object: String, chunk: u64 },
    /// A page lies nowhere, or where another page lies.
    PagesWrong { object: String, why: String },
    /// A device is not there, or cannot be read.
    DeviceMissing { class: String, device: u16 },
    /// A device is another one's, of this volume or not.
    WrongDevice { class: String, device: u16 },
    /// A device's label cannot be read.
    LabelDamaged { class: String, device: u16 },
    /// A device is smaller than its class needs.
    DeviceTooSmall { class: String, device: u16, size: u64, needed: u64 },
    /// An adopted file is not what it was; its mirrors count for nothing.
    AdoptedChanged { object: String, path: String },
    /// An adopted file cannot be looked at.
    AdoptedMissing { object: String, path: String, why: String },
}

impl Finding {
    /// How bad it is.
    pub fn severity(&self) -> Severity {
        match self {
            Finding::SuperblockDamaged { .. }
            | Finding::PlaceOutside { is_mirror: true, .. }
            | Finding::PlaceTwice { is_mirror: true, .. }
            | Finding::MirrorNotFaster { .. }
            | Finding::AdoptedChanged { .. } => Severity::Repairable,
            Finding::MetadataDamaged { .. }
            | Finding::PlaceOutside { .. }
            | Finding::PlaceTwice { .. }
            | Finding::PagesWrong { .. }
            | Finding::WrongDevice { .. }
            | Finding::LabelDamaged { .. }
            | Finding::DeviceTooSmall { .. } => Severity::NotRepairable,
            Finding::DeviceMissing { .. } | Finding::AdoptedMissing { .. } => Severity::Outside,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = |is_mirror: &bool| if *is_mirror { "the mirror" } else { "the home" };
        match self {
            Finding::SuperblockDamaged { place } => {
                write!(
                    f,
                    "superblock {} is damaged; the other one counts",
                    if *place == 0 { "A" } else { "B" }
                )
            }
            Finding::MetadataDamaged { message } => f.write_str(message),
            Finding::PlaceOutside { object, chunk, place, is_mirror } => {
                write!(
                    f,
                    "object {object:?}, chunk {chunk}: {} lies at {place}, which does not exist",
                    what(is_mirror)
                )
            }
            Finding::PlaceTwice { object, chunk, place, is_mirror, other, other_chunk } => write!(
                f,
                "object {object:?}, chunk {chunk}: {} lies at {place}, which chunk {other_chunk} of object {other:?} has",
                what(is_mirror)
            ),
            Finding::MirrorNotFaster { object, chunk } => {
                write!(
                    f,
                    "object {object:?}, chunk {chunk}: the mirror is not in a faster class than the home"
                )
            }
            Finding::PagesWrong { object, why } => write!(f, "object {object:?}: {why}"),
            Finding::DeviceMissing { class, device } => {
                write!(f, "class {class}: device {device} is missing or cannot be read")
            }
            Finding::WrongDevice { class, device } => {
                write!(f, "class {class}: what was given as device {device} is another device")
            }
            Finding::LabelDamaged { class, device } => {
                write!(f, "class {class}: the label of device {device} is damaged")
            }
            Finding::DeviceTooSmall { class, device, size, needed } => {
                write!(f, "class {class}: device {device} has {size} bytes, {needed} are needed")
            }
            Finding::AdoptedChanged { object, path } => {
                write!(f, "object {object:?}: the adopted file {path} has changed")
            }
            Finding::AdoptedMissing { object, path, why } => {
                write!(f, "object {object:?}: the adopted file {path} cannot be looked at: {why}")
            }
        }
    }
}
