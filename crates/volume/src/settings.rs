//! What a volume is told at its creation and at its opening, as plain data.

use crate::{Error, Result};

/// The smallest unit of everything in a volume: chunks and segments are multiples of it.
pub const BLOCK_BYTES: u64 = 4096;

/// Most classes of a volume.
pub const MOST_CLASSES: usize = 64;

/// Most devices of a class.
pub const MOST_DEVICES: usize = 1024;

/// Longest name of an object, in bytes of UTF-8.
pub const LONGEST_NAME: usize = 1024;

/// Largest object: 64 TiB.
pub const LARGEST_OBJECT: u64 = 64 << 40;

/// What is fixed when a volume is created.
///
/// ```
/// use tanada_volume::VolumeSettings;
///
/// let settings = VolumeSettings { chunk_bytes: 4 << 20, ..VolumeSettings::default() };
/// assert!(settings.classes.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeSettings {
    /// Identity of the volume: 16 random bytes, which the caller draws, or a [`Directory`](crate::directory::Directory)
    /// where they are zeros.
    pub id: [u8; 16],
    /// Bytes of a chunk: a power of two from 4 KiB to 64 MiB. Default: 1 MiB.
    pub chunk_bytes: u64,
    /// Classes, fastest first.
    pub classes: Vec<ClassSettings>,
    /// Bytes of the journal after each checkpoint, at least 64 KiB; a full journal makes the next checkpoint. Default:
    /// 16 MiB.
    pub journal_bytes: u64,
    /// The time in which a chunk's heat halves, in seconds. Default: one hour.
    pub heat_half_life_s: f32,
}

impl Default for VolumeSettings {
    fn default() -> VolumeSettings {
        VolumeSettings {
            id: [0; 16],
            chunk_bytes: 1 << 20,
            classes: Vec::new(),
            journal_bytes: 16 << 20,
            heat_half_life_s: 3600.0,
        }
    }
}

/// What is fixed when a class is made.
///
/// ```
/// use tanada_volume::ClassSettings;
///
/// let class = ClassSettings { name: "flash".to_owned(), size_bytes: 64 << 20, ..ClassSettings::default() };
/// assert_eq!(class.size_bytes % class.segment_bytes, 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassSettings {
    /// Its name, unique in the volume; up to 255 bytes.
    pub name: String,
    /// Bytes that go to one device before the next has its turn: a power of two, at least 4 KiB. Default: 128 KiB.
    pub segment_bytes: u64,
    /// Bytes of data it holds, over all its devices; rounded down to whole chunks.
    pub size_bytes: u64,
}

impl Default for ClassSettings {
    fn default() -> ClassSettings {
        ClassSettings { name: String::new(), segment_bytes: 128 << 10, size_bytes: 0 }
    }
}

/// How to open a volume.
///
/// ```
/// use tanada_volume::OpenOptions;
///
/// let options = OpenOptions { read_only: true, ..OpenOptions::default() };
/// assert_eq!(options.expected_id, None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// Change nothing. Several may do that at once; what a writer does meanwhile is not seen.
    pub read_only: bool,
    /// Refuse a volume with another id.
    pub expected_id: Option<[u8; 16]>,
}

impl VolumeSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if !self.chunk_bytes.is_power_of_two() || !(BLOCK_BYTES..=64 << 20).contains(&self.chunk_bytes) {
            return Err(Error::invalid(format!(
                "a chunk of {} bytes: a power of two from 4 KiB to 64 MiB is needed",
                self.chunk_bytes
            )));
        }
        if self.journal_bytes < 64 << 10 {
            return Err(Error::invalid("the journal needs at least 64 KiB"));
        }
        if self.heat_half_life_s.is_nan() || self.heat_half_life_s <= 0.0 {
            return Err(Error::invalid("the half-life of heat must be more than 0 seconds"));
        }
        if self.classes.is_empty() || self.classes.len() > MOST_CLASSES {
            return Err(Error::invalid(format!("a volume has from 1 to {MOST_CLASSES} classes")));
        }
        for (i, class) in self.classes.iter().enumerate() {
            class.check(self.chunk_bytes)?;
            if self.classes[..i].iter().any(|other| other.name == class.name) {
                return Err(Error::invalid(format!("two classes are named {:?}", class.name)));
            }
        }
        Ok(())
    }
}

impl ClassSettings {
    pub(crate) fn check(&self, chunk_bytes: u64) -> Result<()> {
        let name = &self.name;
        if name.is_empty() || name.len() > 255 {
            return Err(Error::invalid("the name of a class has from 1 to 255 bytes"));
        }
        if !self.segment_bytes.is_power_of_two() || !(BLOCK_BYTES..=1 << 30).contains(&self.segment_bytes) {
            return Err(Error::invalid(format!(
                "class {name}: segments of {} bytes: a power of two from 4 KiB to 1 GiB is needed",
                self.segment_bytes
            )));
        }
        if self.size_bytes < chunk_bytes {
            return Err(Error::invalid(format!(
                "class {name} is smaller than one chunk of {chunk_bytes} bytes"
            )));
        }
        if self.size_bytes / chunk_bytes > u64::from(u32::MAX) {
            return Err(Error::invalid(format!("class {name} has more than 2^32 chunks: use larger chunks")));
        }
        Ok(())
    }
}
