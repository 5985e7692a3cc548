//! A policy's wish on its way to being done.
//!
//! 1. [`Placer::begin`] takes the first that waits. What cannot be (a rule is against it, or the chunk is not there any
//!    more) is refused at once.
//! 2. [`Wish::run`] does it on the volume. Wishes own what they need, so several run at once, on one thread or several.
//! 3. [`Placer::finish`] tells the policy. A wish that is dropped before counts as abandoned.
//!
//! Invariant: one that needs room does not begin while there is none and another is about to make some.

use std::sync::{Arc, Mutex, PoisonError};

use std::cmp::Reverse;
use std::collections::BTreeSet;

use tanada_volume::{Object, Relocation};

use super::Placer;
use crate::action::{Action, Decision, Reason, Source};
use crate::event::Event;
use crate::layout::{ChunkNo, ObjectNo, Tier};

/// A relocation that the policy wants, ready to be done.
#[derive(Debug)]
pub struct Wish {
    /// What is done and why. Of an adopted object, whose home cannot be moved, this is a mirror or its end where the
    /// policy wanted a move.
    pub decision: Decision,
    object: Object,
    chunk_of_object: u64,
    policy: String,
    relocation: Relocation,
    fast: String,
    slow: String,
    ticket: Ticket,
}

/// Tells the placer when its wish is gone.
#[derive(Debug)]
struct Ticket {
    no: u64,
    dropped: Arc<Mutex<Vec<u64>>>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(self.no);
    }
}

/// What the volume made of a wish.
#[derive(Debug)]
pub struct WishOutcome {
    /// The bytes copied; `None` if there was nothing to do.
    result: tanada_volume::Result<Option<u64>>,
}

impl WishOutcome {
    /// Whether it is as wanted now, by this wish.
    pub fn is_done(&self) -> bool {
        matches!(self.result, Ok(Some(_)))
    }
}

/// What became of a wish.
#[derive(Debug)]
pub struct Placed {
    /// The wish.
    pub decision: Decision,
    /// The policy that wanted it, without its options.
    pub policy: String,
    /// Why it was wanted, with chunks named as people know them.
    pub why: String,
    /// Whether something was done; if not and nothing refused it, it was so already.
    pub is_done: bool,
    /// Bytes that were copied for it.
    pub bytes: u64,
    /// Why it was not done.
    pub refusal: Option<tanada_volume::Error>,
}

impl Placed {
    fn new(wish: &Wish, decision: Decision, outcome: WishOutcome) -> Placed {
        let is_done = outcome.is_done();
        let (bytes, refusal) = match outcome.result {
            Ok(bytes) => (bytes.unwrap_or(0), None),
            Err(error) => (0, Some(error)),
        };
        let (policy, why) = (wish.policy.clone(), wish.relocation.why.clone());
        Placed { decision, policy, why, is_done, bytes, refusal }
    }
}

impl Wish {
    /// The object whose chunk it is about.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Which of its chunks.
    pub fn chunk_of_object(&self) -> u64 {
        self.chunk_of_object
    }

    /// Does it. Dropping the future leaves the chunk where it is.
    pub async fn run(&self) -> WishOutcome {
        WishOutcome { result: self.act().await }
    }

    async fn act(&self) -> tanada_volume::Result<Option<u64>> {
        let (object, chunks) = (&self.object, self.chunk_of_object..self.chunk_of_object + 1);
        let relocated = match self.decision.action {
            Action::Promote(_) => object.move_to(chunks, &self.fast, &self.relocation).await?,
            Action::Mirror(_) => object.mirror_to(chunks, &self.fast, &self.relocation).await?,
            Action::Demote => object.move_to(chunks, &self.slow, &self.relocation).await?,
            Action::DropMirror => {
                let dropped = object.drop_mirrors(chunks, &self.relocation)?;
                return Ok((dropped > 0).then_some(0));
            }
            // Caches of blocks want these, and they are for replays.
            Action::Clean | Action::Merge => return Ok(None),
        };
        Ok((relocated.done > 0).then_some(relocated.bytes))
    }
}

fn makes_room(action: Action) -> bool {
    matches!(action, Action::Demote | Action::DropMirror)
}

impl Placer {
    /// The first wish that waits and is not refused at once. `None` if there is none, or if it has to wait until one
    /// that runs has made room: with wishes running, finish one and ask again.
    pub fn begin(&mut self) -> Option<Wish> {
        self.give_up_dropped();
        loop {
            let Reverse((order, no)) = self.waiting.peek().copied()?;
            let decision = self.wishes.get(&no).copied()?;
            if decision.action.takes_room() && (self.waits_for_room() || self.waits_for_quota(&decision)) {
                return None;
            }
            self.waiting.pop();
            self.wishes.remove(&no);
            debug_assert_eq!(order, decision.order);
            if !self.admits(&decision) {
                self.tell_outcome(&decision, false);
                continue;
            }
            let wish = self.wish_of(no, decision)?;
            self.running.insert(no, decision);
            self.count_fast(decision.chunk, decision.action, 1, 0);
            return Some(wish);
        }
    }

    fn waits_for_room(&self) -> bool {
        let is_making_room = self.running.values().any(|decision| makes_room(decision.action));
        let has_free = || {
            let classes = self.volume.classes();
            let reserved = self.running.values().filter(|decision| decision.action.takes_room()).count();
            let class = classes.iter().find(|class| class.number == self.fast);
            let reserved = (reserved + self.former.len()) as u64;
            class.is_some_and(|class| class.taken + reserved < class.chunks)
        };
        is_making_room && !has_free()
    }

    /// Whether its object's quota is used up, and another chunk of it is about to go.
    fn waits_for_quota(&self, decision: &Decision) -> bool {
        let Some(most) = self.layout.rule_of(decision.chunk).quota_chunks else { return false };
        let Some((object, member, _)) = self.member_of(decision.chunk) else { return false };
        let goes = |other: &Decision| {
            makes_room(other.action)
                && self.layout.owner(other.chunk).is_some_and(|(owner, _)| owner == object)
        };
        member.fast_chunks >= most && self.running.values().any(goes)
    }

    /// Whether the chunk is there, and the rules leave it to the policy.
    pub(super) fn admits(&self, decision: &Decision) -> bool {
        let Some((_, member, _)) = self.member_of(decision.chunk) else { return false };
        let rule = self.layout.rule_of(decision.chunk);
        match decision.action {
            Action::Clean | Action::Merge => false,
            // What is pinned to the fast class was brought there by whoever pinned it, or finds no room there.
            action if action.takes_room() => {
                rule.pin.is_none() && rule.quota_chunks.is_none_or(|most| member.fast_chunks < most)
            }
            _ => rule.pin != Some(Tier::Fast),
        }
    }

    /// What is done where the policy wants something: the home of a chunk stays if it cannot be moved, being an adopted
    /// file's, or if it lies in a class between the two, where a user has put it and a way down would not lead back.
    pub(super) fn effective(&self, decision: &Decision) -> Action {
        let stays = self.member_of(decision.chunk).is_some_and(|(_, member, place)| {
            let home = member.object.chunks(place..place + 1).first().and_then(|chunk| chunk.home);
            let is_between = home.is_some_and(|home| home.class != self.fast && home.class != self.slow);
            member.object.is_adopted() || is_between
        });
        match decision.action {
            Action::Promote(source) if stays => Action::Mirror(source),
            Action::Demote if stays => Action::DropMirror,
            other => other,
        }
    }

    fn wish_of(&self, no: u64, decision: Decision) -> Option<Wish> {
        let (_, member, chunk_of_object) = self.member_of(decision.chunk)?;
        let object = member.object.clone();
        let policy = self.policy.name().to_owned();
        let relocation = Relocation {
            budget: self.options.budget,
            who: format!("policy {policy}"),
            why: decision.reason.told(&self.layout),
            gain_s: f64::from(decision.gain_s),
            progress: None,
        };
        Some(Wish {
            decision: Decision { action: self.effective(&decision), ..decision },
            object,
            chunk_of_object,
            policy,
            relocation,
            fast: self.options.fast.clone(),
            slow: self.options.slow.clone(),
            ticket: Ticket { no, dropped: self.dropped.clone() },
        })
    }

    /// Tells the policy what came of the wish.
    pub fn finish(&mut self, wish: Wish, outcome: WishOutcome) -> Placed {
        self.conclude(wish.ticket.no, outcome.is_done());
        Placed::new(&wish, wish.decision, outcome)
    }

    /// Tells the policy what came of a wish of the placer that this one [follows](Self::follow): something lies
    /// elsewhere now. `None` if its object is not placed here.
    pub fn finish_former(&mut self, wish: &Wish, outcome: WishOutcome) -> Option<Placed> {
        let (no, chunk) = self.chunk_in(&wish.object, wish.chunk_of_object)?;
        self.former.remove(&chunk.0);
        let fast_chunks = |placer: &Placer| {
            placer.members.get(no.0 as usize).and_then(Option::as_ref).map_or(0, |member| member.fast_chunks)
        };
        let before = fast_chunks(self);
        self.recount(no);
        let decision = Decision { chunk, ..wish.decision };
        if outcome.is_done() {
            self.found += fast_chunks(self).saturating_sub(before);
            self.note_brought(&decision);
            if self.layout.is_pinned_to(chunk, Tier::Fast) {
                self.recount_pinned(no);
            } else if makes_room(decision.action) {
                // Of a mirror that it gave up itself a policy is not told; here it is told that nothing is there any
                // more.
                self.handle(&Event::Done { chunk, action: Action::Demote, is_done: true });
            } else {
                self.tell_found(chunk, decision.action);
            }
        }
        Some(Placed::new(wish, decision, outcome))
    }

    /// Tells the policy that the wish was not done. Dropping it comes to the same, a little later.
    pub fn abandon(&mut self, wish: Wish) {
        self.conclude(wish.ticket.no, false);
    }

    /// Does what waits first. `None` if nothing waits.
    ///
    /// A wish that the volume refuses is no error: the policy learns of it. Dropping the future leaves the chunk where
    /// it is and the wish undone.
    pub async fn relocate(&mut self) -> Option<Placed> {
        let wish = self.begin()?;
        let outcome = wish.run().await;
        Some(self.finish(wish, outcome))
    }

    /// The policy is told of wishes that were dropped.
    pub(super) fn give_up_dropped(&mut self) {
        let dropped = std::mem::take(&mut *self.dropped.lock().unwrap_or_else(PoisonError::into_inner));
        dropped.into_iter().for_each(|no| self.conclude(no, false));
    }

    fn conclude(&mut self, no: u64, is_done: bool) {
        let Some(decision) = self.running.remove(&no) else { return };
        let (chunk, action) = (decision.chunk, decision.action);
        match (action.takes_room(), is_done) {
            // Where somebody else has brought it, it counts.
            (true, false) if !self.is_fast(chunk) => self.count_fast(chunk, action, 0, 1),
            (false, true) if makes_room(action) => self.count_fast(chunk, Action::Demote, 0, 1),
            _ => {}
        }
        if is_done {
            self.note_brought(&decision);
        }
        self.tell_outcome(&decision, is_done);
    }

    /// What comes back is as much somebody else's as it was before, whichever policy brings it.
    fn note_brought(&mut self, decision: &Decision) {
        let no = decision.chunk.0;
        if makes_room(decision.action) {
            self.brought.remove(&no);
        } else if decision.action.takes_room()
            && !matches!(decision.reason, Reason::Returns)
            && self.remembered.displaced.binary_search_by_key(&decision.chunk, |(chunk, _)| *chunk).is_err()
        {
            self.brought.insert(no);
        }
    }

    /// Tells the policy; where nothing was done, by what the volume has. Dropping a mirror is told only if it could not
    /// be done. Wherever a chunk lies that was pinned to the fast class meanwhile, to the policy it is not there.
    fn tell_outcome(&mut self, decision: &Decision, is_done: bool) {
        let Decision { chunk, action, .. } = *decision;
        if self.layout.is_pinned_to(chunk, Tier::Fast) {
            if let Some((no, _)) = self.layout.owner(chunk) {
                self.recount_pinned(no);
            }
            let event = match action.takes_room() {
                true => Event::Done { chunk, action, is_done: false },
                false => Event::Done { chunk, action: Action::Demote, is_done: true },
            };
            return self.handle(&event);
        }
        let is_there = !is_done && self.is_fast(chunk);
        let event = match action {
            Action::DropMirror if is_done => return,
            // It is still there.
            Action::DropMirror if is_there => {
                Event::Done { chunk, action: Action::Mirror(Source::Copy), is_done: true }
            }
            // Somebody else brought it up.
            action if action.takes_room() => Event::Done { chunk, action, is_done: is_done || is_there },
            action => Event::Done { chunk, action, is_done },
        };
        self.handle(&event);
    }

    /// Counts the chunks of an object in the fast class, and those on their way there, for whomever.
    pub(super) fn recount(&mut self, no: ObjectNo) {
        let Some(Some(member)) = self.members.get(no.0 as usize) else { return };
        let there = self.found_in(&member.object).len();
        let running = self.running.values().filter(|decision| decision.action.takes_room());
        let coming: BTreeSet<u32> =
            running.map(|decision| decision.chunk.0).chain(self.former.iter().copied()).collect();
        let is_coming = |chunk: &&u32| {
            let owner = self.layout.owner(ChunkNo(**chunk));
            owner.is_some_and(|(owner, _)| owner == no) && !self.is_fast(ChunkNo(**chunk))
        };
        let fast_chunks = (there + coming.iter().filter(is_coming).count()) as u32;
        if let Some(Some(member)) = self.members.get_mut(no.0 as usize) {
            member.fast_chunks = fast_chunks;
        }
    }

    fn count_fast(&mut self, chunk: ChunkNo, action: Action, more: u32, fewer: u32) {
        let more = if action.takes_room() { more } else { 0 };
        if let Some((no, _)) = self.layout.owner(chunk)
            && let Some(Some(member)) = self.members.get_mut(no.0 as usize)
        {
            member.fast_chunks = (member.fast_chunks + more).saturating_sub(fewer);
        }
    }
}
