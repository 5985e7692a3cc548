//! Relocations, told to whoever wants to know of them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::state::Noted;

/// A relocation that placement has done, or was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedChunk {
    /// The volume's folder.
    pub volume: PathBuf,
    /// The object's number.
    pub object: u64,
    /// The chunk of the object.
    pub chunk: u64,
    /// What was done or to be done, in the past tense.
    pub action: &'static str,
    /// Where it went; none if a mirror was given up.
    pub class: Option<String>,
    /// Who wanted it.
    pub who: String,
    /// Why.
    pub why: String,
    /// Seconds that it is expected to save, its own cost subtracted; 0 where the policy does not reckon.
    pub gain_s: f64,
    /// Why it was not done.
    pub refusal: Option<String>,
}

impl PlacedChunk {
    pub(crate) fn new(volume: &Path, noted: Noted) -> PlacedChunk {
        PlacedChunk {
            volume: volume.to_owned(),
            object: noted.object_id,
            chunk: noted.chunk,
            action: noted.action,
            class: noted.class,
            who: format!("policy {}", noted.policy),
            why: noted.why,
            gain_s: f64::from(noted.gain_s),
            refusal: noted.refusal,
        }
    }
}

/// Who is told of each relocation.
#[derive(Clone)]
pub(crate) struct OnPlaced(Arc<dyn Fn(&PlacedChunk) + Send + Sync>);

impl fmt::Debug for OnPlaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnPlaced")
    }
}

impl OnPlaced {
    pub(crate) fn new(listener: impl Fn(&PlacedChunk) + Send + Sync + 'static) -> OnPlaced {
        OnPlaced(Arc::new(listener))
    }

    pub(super) fn tell(&self, placed: &PlacedChunk) {
        (self.0)(placed);
    }
}
