//! What a policy that places whole chunks knows of where they are.
//!
//! Invariant: `taken` is the number of chunks that have room in the fast class, on their way there or away from it
//! included, so it never exceeds what [`Residency::has_room`] was asked about.

use crate::action::{Action, Decision};
use crate::layout::ChunkNo;

/// Where a chunk is, as far as its policy knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Where {
    #[default]
    Slow,
    /// A copy is under way.
    Arriving,
    /// Home in the fast class.
    Fast,
    /// Copy in the fast class.
    Mirrored,
    /// Its way down is under way.
    Leaving,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Residency {
    places: Vec<Where>,
    taken: u32,
    under_way: u32,
}

impl Residency {
    pub(super) fn of(&self, chunk: ChunkNo) -> Where {
        self.places.get(chunk.index()).copied().unwrap_or_default()
    }

    /// Numbers of the chunks that are in the fast class or on their way there.
    pub(super) fn present(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.places).filter(|(_, place)| **place != Where::Slow).map(|(no, _)| no)
    }

    /// Copies that have been decided on and are not done.
    pub(super) fn under_way(&self) -> u32 {
        self.under_way
    }

    pub(super) fn has_room(&self, capacity: u32) -> bool {
        self.taken < capacity
    }

    fn set(&mut self, chunk: ChunkNo, place: Where) {
        if self.places.len() <= chunk.index() {
            self.places.resize(chunk.index() + 1, Where::Slow);
        }
        let before = std::mem::replace(&mut self.places[chunk.index()], place);
        self.taken += u32::from(place != Where::Slow);
        self.taken -= u32::from(before != Where::Slow);
        let moves = |place| u32::from(matches!(place, Where::Arriving | Where::Leaving));
        self.under_way += moves(place);
        self.under_way -= moves(before);
    }

    /// Notes a decision and hands it on.
    pub(super) fn decide(&mut self, decision: Decision, decisions: &mut Vec<Decision>) {
        let place = match decision.action {
            Action::Promote(_) | Action::Mirror(_) => Where::Arriving,
            Action::Demote => Where::Leaving,
            Action::DropMirror => Where::Slow,
            Action::Clean | Action::Merge => self.of(decision.chunk),
        };
        self.set(decision.chunk, place);
        decisions.push(decision);
    }

    /// A decision came to its end.
    pub(super) fn done(&mut self, chunk: ChunkNo, action: Action, is_done: bool) {
        let place = match (action, is_done) {
            (Action::Promote(_), true) | (Action::Demote, false) => Where::Fast,
            (Action::Mirror(_), true) => Where::Mirrored,
            (Action::Promote(_) | Action::Mirror(_), false) | (Action::Demote, true) => Where::Slow,
            (Action::DropMirror | Action::Clean | Action::Merge, _) => return,
        };
        self.set(chunk, place);
    }

    /// A write drops a mirror, and spoils one that is being made.
    pub(super) fn written(&mut self, chunk: ChunkNo) {
        if self.of(chunk) == Where::Mirrored {
            self.set(chunk, Where::Slow);
        }
    }
}
