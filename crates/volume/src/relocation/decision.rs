//! Why a chunk is where it is: the last decisions are remembered.
//!
//! One note for each relocation, not for each chunk, and the newest [`MOST_DECISIONS`] of them: so memory is bounded,
//! whatever was moved.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use parking_lot::Mutex;

/// Decisions that are remembered.
pub(crate) const MOST_DECISIONS: usize = 4096;

/// What was decided.
///
/// ```
/// use tanada_volume::Action;
///
/// assert_ne!(Action::Move, Action::Mirror);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// To move the home.
    Move,
    /// To make a mirror.
    Mirror,
    /// To drop the mirror.
    DropMirror,
    /// To leave it where it is.
    Stay,
}

/// A decision on a range of chunks.
///
/// ```
/// use tanada_volume::{Action, Attributes, Relocation};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # tanada_volume::example::run(folder.path(), async |volume| {
/// let object = volume.create_object("a", &Attributes::default())?;
/// object.note_decision(0..4, Action::Stay, &Relocation::default());
/// assert_eq!(object.explain(3).unwrap().action, Action::Stay);
/// assert!(object.explain(4).is_none());
/// # Ok(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What was decided.
    pub action: Action,
    /// The class that it was to go to.
    pub class: Option<String>,
    /// On these chunks.
    pub chunks: Range<u64>,
    /// Who decided.
    pub who: String,
    /// Why.
    pub why: String,
    /// Seconds that it was expected to save.
    pub gain_s: f64,
    /// When, by the volume's clock.
    pub at: Duration,
}

/// The newest decisions of a volume, with the objects they were on.
#[derive(Debug, Default)]
pub(crate) struct Decisions(Mutex<VecDeque<(u64, Decision)>>);

impl Decisions {
    pub(crate) fn note(&self, object: u64, decision: Decision) {
        let mut decisions = self.0.lock();
        if decisions.len() == MOST_DECISIONS {
            decisions.pop_front();
        }
        decisions.push_back((object, decision));
    }

    pub(super) fn last(&self, object: u64, chunk: u64) -> Option<Decision> {
        let decisions = self.0.lock();
        let found =
            decisions.iter().rev().find(|(id, decision)| *id == object && decision.chunks.contains(&chunk));
        found.map(|(_, decision)| decision.clone())
    }
}
