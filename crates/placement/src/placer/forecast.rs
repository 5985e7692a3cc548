//! What a policy would do for a query, without doing it.
//!
//! 1. A copy of the policy is told that the query begins, and of each wish that it was done, until it wants nothing
//!    more for this query.
//! 2. What it wants for likely later queries is left out.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::Placer;
use crate::action::{Action, Decision, Reason};
use crate::costs::{Load, Reads};
use crate::event::{Context, Event};
use crate::footprint::{Access, Fingerprint, Footprint, QueryId};
use crate::layout::{ChunkNo, ObjectNo};

/// Moves that are told one by one.
const MOST_MOVES: usize = 4096;

/// Moves that are looked at in all.
const MOST_WISHES: usize = 1 << 18;

/// A chunk that would be moved.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedMove {
    /// Which.
    pub chunk: ChunkNo,
    /// Of which object.
    pub object: ObjectNo,
    /// Which of its chunks.
    pub chunk_of_object: u64,
    /// What would be done.
    pub action: Action,
    /// Seconds that it is expected to save, its own cost subtracted; 0 where the policy does not reckon.
    pub gain_s: f32,
    /// Why.
    pub why: String,
}

/// What a policy would do for a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Forecast {
    /// Chunks that the footprint names.
    pub chunks: u32,
    /// Those of them that are in the fast class.
    pub fast_chunks: u32,
    /// What would be moved, in this order; the first some thousand.
    pub moves: Vec<PlannedMove>,
    /// How many there are in all.
    pub move_count: u32,
    /// Bytes that would be copied, by all moves.
    pub move_bytes: u64,
    /// Seconds that the moves are expected to save, the copies not subtracted. Of a policy that does not reckon: what
    /// the plan's reads would save.
    pub gain_s: f64,
    /// Seconds that the copies keep both classes busy.
    pub cost_s: f64,
    /// Runs of the statement that the policy remembers.
    pub remembered_runs: u32,
}

impl Placer {
    /// What the policy would do now if the query began, all copies done at once. Nothing changes.
    pub fn forecast(&self, fingerprint: Fingerprint, depth: u32, footprint: &Footprint) -> Forecast {
        let named: BTreeSet<u32> =
            footprint.accesses.iter().flat_map(|access| access.chunks(&self.layout)).flatten().collect();
        let mut forecast = Forecast {
            chunks: named.len() as u32,
            fast_chunks: named.iter().filter(|no| self.is_fast(ChunkNo(**no))).count() as u32,
            remembered_runs: self.policy.runs_of(fingerprint),
            ..Forecast::default()
        };
        let planned_s = self.planned_s(depth, footprint);
        let chunk_bytes = self.layout.chunk_bytes();
        let costs = &self.options.costs;
        for decision in self.rehearse(fingerprint, depth, footprint) {
            let Some((object, _, chunk_of_object)) = self.member_of(decision.chunk) else { continue };
            let Decision { chunk, reason, gain_s, .. } = decision;
            let action = self.effective(&decision);
            let cost_s = match action {
                Action::Promote(_) | Action::Mirror(_) => costs.copy_up_s(chunk_bytes as f64),
                Action::Demote => costs.copy_down_s(chunk_bytes as f64),
                Action::DropMirror | Action::Clean | Action::Merge => 0.0,
            };
            if cost_s > 0.0 {
                forecast.move_bytes += chunk_bytes;
                forecast.cost_s += cost_s;
            }
            if action.takes_room() {
                forecast.gain_s += match gain_s {
                    0.0 => planned_s.get(&chunk.0).copied().unwrap_or(0.0),
                    gain_s => f64::from(gain_s) + cost_s,
                };
            }
            forecast.move_count += 1;
            if forecast.moves.len() < MOST_MOVES {
                let why = reason.told(&self.layout);
                let planned = PlannedMove { chunk, object, chunk_of_object, action, gain_s, why };
                forecast.moves.push(planned);
            }
        }
        forecast
    }

    /// What the policy would want for the query, in order.
    fn rehearse(&self, fingerprint: Fingerprint, depth: u32, footprint: &Footprint) -> Vec<Decision> {
        let mut policy = self.policy.boxed();
        let (now_ns, capacity) = (self.now_ns, self.capacity());
        let context = Context { now_ns, layout: &self.layout, capacity, costs: &self.options.costs };
        let query = QueryId(u32::MAX);
        let mut decisions = Vec::new();
        policy.handle(&context, &Event::QueryBegins { query, fingerprint, depth, footprint }, &mut decisions);
        policy.think(&context, &mut decisions);
        let mut waiting: VecDeque<Decision> = decisions.drain(..).collect();
        let mut wanted = Vec::new();
        while let Some(decision) = waiting.pop_front() {
            if matches!(decision.reason, Reason::Likely { .. }) || wanted.len() >= MOST_WISHES {
                break;
            }
            let Decision { chunk, action, .. } = decision;
            let is_done = self.admits(&decision);
            if is_done {
                wanted.push(decision);
            }
            if action != Action::DropMirror || !is_done {
                policy.handle(&context, &Event::Done { chunk, action, is_done }, &mut decisions);
                policy.think(&context, &mut decisions);
                waiting.extend(decisions.drain(..));
            }
        }
        // Room that was made for what is left out is not made.
        while wanted.last().is_some_and(|last| matches!(last.reason, Reason::MakesRoom { .. })) {
            wanted.pop();
        }
        wanted.sort_by_key(|decision| decision.order);
        wanted
    }

    /// Seconds that the plan's reads of each chunk would save, spread evenly over what each access names.
    fn planned_s(&self, depth: u32, footprint: &Footprint) -> HashMap<u32, f64> {
        let reads = |access: &Access| {
            let pages = access.likely_pages() as f32;
            match access.is_sequential() {
                true => Reads::sequential(pages, pages * access.page_bytes as f32),
                false => Reads::random(pages),
            }
        };
        let all =
            footprint.accesses.iter().fold(Reads::default(), |sum, access| sum.plus(reads(access), 1.0));
        let load = Load::of(depth, &all);
        let mut saved: HashMap<u32, f64> = HashMap::new();
        for access in &footprint.accesses {
            let chunks: Vec<u32> = access.chunks(&self.layout).into_iter().flatten().collect();
            let saved_s = self.options.costs.saved_s(&reads(access), load) / chunks.len().max(1) as f64;
            chunks.into_iter().for_each(|no| *saved.entry(no).or_default() += saved_s);
        }
        saved
    }
}
