//! Why a chunk is where it is: the last decisions are remembered.
//!
//! One note for each relocation, not for each chunk, and the newest [`MOST_DECISIONS`] of them: so memory is bounded,
//! whatever was moved.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use parking_lot::Mutex;

use super::Relocation;
use crate::Object;

/// Decisions that are remembered.
pub(crate) const MOST_DECISIONS: usize = 4096;

/// What was decided.
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

    fn last(&self, object: u64, chunk: u64) -> Option<Decision> {
        let decisions = self.0.lock();
        let found =
            decisions.iter().rev().find(|(id, decision)| *id == object && decision.chunks.contains(&chunk));
        found.map(|(_, decision)| decision.clone())
    }
}

impl Object {
    /// The last decision on a chunk, if it is remembered.
    pub fn explain(&self, chunk: u64) -> Option<Decision> {
        self.core.decisions.last(self.state.id, chunk)
    }

    /// Notes a decision that moves nothing.
    pub fn note_decision(&self, chunks: Range<u64>, action: Action, relocation: &Relocation) {
        self.decide(&chunks, action, None, relocation);
    }

    pub(super) fn decide(
        &self,
        chunks: &Range<u64>,
        action: Action,
        class: Option<&str>,
        relocation: &Relocation,
    ) {
        let decision = Decision {
            action,
            class: class.map(str::to_owned),
            chunks: chunks.clone(),
            who: relocation.who.clone(),
            why: relocation.why.clone(),
            gain_s: relocation.gain_s,
            at: self.core.now(),
        };
        self.core.decisions.note(self.state.id, decision);
    }
}
