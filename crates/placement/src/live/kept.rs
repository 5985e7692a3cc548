//! The objects of a volume that keep what placement has learned there.
//!
//! 1. One is written as a whole beside the old one, under another name, and synced.
//! 2. The old one goes, and the new one takes its name. Whoever opens the volume in between finds the new one by its
//!    other name.

use std::fmt;

use tanada_volume::{Attributes, Volume};

use crate::Memory;

/// Bytes that tell whether it is one, at most.
const MAGIC_BYTES: usize = 64;
/// Bytes read of it at most.
const MOST_BYTES: u64 = 4 << 20;

/// An object that keeps something.
#[derive(Debug, Clone, Copy)]
pub struct Kept {
    /// Its name,
    name: &'static str,
    /// and while it is written.
    new_name: &'static str,
    /// Whether bytes begin as its own.
    is_own: fn(&[u8]) -> bool,
}

/// What the policy has learned.
pub const MEMORY: Kept = Kept::new("tanada.placement", "tanada.placement.new", Memory::is_one);

/// Why something is not kept.
#[derive(Debug)]
pub enum KeepError {
    /// The object of this name is something else.
    Foreign(&'static str),
    /// The volume's error.
    Volume(tanada_volume::Error),
}

impl fmt::Display for KeepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepError::Foreign(name) => {
                write!(f, "the object {name:?} is something else; give it another name")
            }
            KeepError::Volume(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for KeepError {}

impl From<tanada_volume::Error> for KeepError {
    fn from(error: tanada_volume::Error) -> KeepError {
        KeepError::Volume(error)
    }
}

impl Kept {
    /// Of these names, the second while it is written; `is_own` tells whether bytes begin as its own.
    pub const fn new(name: &'static str, new_name: &'static str, is_own: fn(&[u8]) -> bool) -> Kept {
        Kept { name, new_name, is_own }
    }

    /// Whether an object of this name is it.
    pub fn has_name(&self, name: &str) -> bool {
        name == self.name || name == self.new_name
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What is kept; nothing if nothing is.
    ///
    /// # Errors
    /// The volume's.
    pub async fn read(&self, volume: &Volume) -> tanada_volume::Result<Vec<u8>> {
        // The whole one of both, if there is one.
        let Ok(object) = volume.open_object(self.name).or_else(|_| volume.open_object(self.new_name)) else {
            return Ok(Vec::new());
        };
        let bytes = object.size_bytes().min(MOST_BYTES) as usize;
        object.read_bytes(0, bytes).await
    }

    /// Writes it beside the old one, which goes when the new one is durable.
    ///
    /// # Errors
    /// Besides the volume's: if an object of either name is somebody else's.
    pub async fn write(&self, volume: &Volume, bytes: &[u8]) -> Result<(), KeepError> {
        for name in [self.name, self.new_name] {
            let Ok(object) = volume.open_object(name) else { continue };
            let begin = object.read_bytes(0, MAGIC_BYTES.min(object.size_bytes() as usize)).await?;
            // What was begun and not finished may still be zeros.
            let is_own = begin.iter().all(|byte| *byte == 0) || (self.is_own)(&begin);
            if object.is_adopted() || !is_own {
                return Err(KeepError::Foreign(name));
            }
        }
        if volume.open_object(self.name).is_ok() && volume.open_object(self.new_name).is_ok() {
            volume.delete(self.new_name).await?;
        } else if volume.open_object(self.new_name).is_ok() {
            volume.rename(self.new_name, self.name)?;
        }
        if let Err(error) = self.write_new(volume, bytes).await {
            // What matters is why it could not be written; the room it took is given back if that can be done.
            let _ = volume.delete(self.new_name).await;
            return Err(error.into());
        }
        if volume.open_object(self.name).is_ok() {
            volume.delete(self.name).await?;
        }
        volume.rename(self.new_name, self.name)?;
        Ok(volume.sync().await?)
    }

    async fn write_new(&self, volume: &Volume, bytes: &[u8]) -> tanada_volume::Result<()> {
        let object = volume.create_object(self.new_name, &Attributes::default())?;
        object.write_bytes(0, bytes).await?;
        object.sync().await
    }
}
