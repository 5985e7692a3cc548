//! Noting decisions on an object's chunks, and asking for them.

use std::ops::Range;

use super::Relocation;
use super::decision::{Action, Decision};
use crate::Object;

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
