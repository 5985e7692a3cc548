//! `plan` (PST as published): before each query the chunks of the tables and indexes that its plan names, ranked by
//! their I/Os in a training run, fill the fast class; the rest goes down.
//!
//! 1. The training run counts I/Os per chunk, over all queries, as for `static`.
//! 2. A query begins: the chunks of its footprint are ranked by that count and the first of them moved up, as many as
//!    there is room for.
//! 3. What lies in the fast class and is not among them is moved down as far as its room is needed, fewest I/Os first.
//!    (The paper moves all of it down; what nobody needs the room of may as well stay, which is in its favour.)
//! 4. What somebody else has put there comes back when the last query is over, as it was (its home, or a mirror), as
//!    far as pins and quotas let it, and what the policy brought goes as far as its room is needed. What it or another
//!    policy brought in an earlier session is not somebody else's.
//! 5. What is still away when a session ends is remembered, and comes back at the beginning of the next one with this
//!    policy.
//!
//! With `no-counts` nothing was ever counted: the chunks of a plan are ranked by the pages that it expects of each
//! access, spread evenly over its chunks.

use std::collections::{BTreeMap, BTreeSet};

use super::fixed::{Counts, is_there};
use super::quotas::Quotas;
use super::residency::{Residency, Where};
use super::{Counted, Options, Policy};
use crate::Result;
use crate::action::{Action, Decision, Reason, Source};
use crate::event::{Context, Event};
use crate::footprint::{Footprint, QueryId};
use crate::layout::{ChunkNo, Layout};
use crate::memory::Memory;

#[derive(Debug, Clone, Default)]
struct Plan {
    /// I/Os in the training run; without them, what the newest plan expects.
    counts: Counts,
    has_no_counts: bool,
    residency: Residency,
    /// Chunks that others have brought to the fast class, by number, and what brings them there. None that rules do not
    /// let in, whenever they are to come back.
    others: BTreeMap<u32, Action>,
    /// Queries that run, of those that it was told of.
    running: BTreeSet<QueryId>,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    Ok(Box::new(Plan { has_no_counts: options.switch("no-counts")?, ..Plan::default() }))
}

/// Expected pages of each chunk that a plan names, in thousandths.
fn expected(layout: &Layout, footprint: &Footprint) -> Counts {
    let mut counts = Counts::default();
    for access in &footprint.accesses {
        let chunks: Vec<u32> = access.chunks(layout).into_iter().flatten().collect();
        let each = access.expected_pages.saturating_mul(1000) / (chunks.len() as u64).max(1);
        chunks.into_iter().for_each(|chunk| counts.add(ChunkNo(chunk), each.max(1)));
    }
    counts
}

impl Plan {
    /// Brings up what is wanted. Others' chunks come back as they were, whoever wants them.
    fn place(&mut self, context: &Context<'_>, wanted: Vec<ChunkNo>, decisions: &mut Vec<Decision>) {
        let ios = |chunk| if self.has_no_counts { 0 } else { self.counts.of(chunk) };
        let how = |chunk: ChunkNo, rank| match self.others.get(&chunk.0) {
            Some(action) => (*action, Reason::Returns),
            None => (Action::Promote(Source::Copy), Reason::Planned { ios: ios(chunk), rank }),
        };
        self.counts.place(context, &mut self.residency, wanted, how, decisions);
    }

    fn place_for(&mut self, context: &Context<'_>, footprint: &Footprint, decisions: &mut Vec<Decision>) {
        if self.has_no_counts {
            self.counts = expected(context.layout, footprint);
        }
        let named = footprint.accesses.iter().flat_map(|access| access.chunks(context.layout)).flatten();
        self.place(context, self.counts.wanted(context, named), decisions);
    }

    /// Brings back what had to make room.
    fn restore(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        self.obey(context);
        let is_away = |no: &u32| matches!(self.residency.of(ChunkNo(*no)), Where::Slow | Where::Leaving);
        if self.others.keys().any(is_away) {
            // What is there does not go for what is not.
            let all = self.others.keys().copied().map(ChunkNo);
            let (mut wanted, away): (Vec<ChunkNo>, Vec<ChunkNo>) =
                all.partition(|chunk| is_there(&self.residency, *chunk));
            wanted.extend(away);
            wanted.truncate(context.capacity as usize);
            self.place(context, wanted, decisions);
        }
    }

    /// Chunks of others that are not there, and what brings them back.
    fn displaced(&self) -> impl Iterator<Item = (ChunkNo, Action)> + '_ {
        let others = self.others.iter().map(|(no, action)| (ChunkNo(*no), *action));
        others.filter(|(chunk, _)| !is_there(&self.residency, *chunk))
    }

    /// What rules do not let in does not come back; what is there goes before what is not.
    fn obey(&mut self, context: &Context<'_>) {
        if self.others.is_empty() || !context.layout.has_rules() {
            return;
        }
        let is_there = |no: &u32| is_there(&self.residency, ChunkNo(*no));
        let (there, away): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.others).into_iter().partition(|(no, _)| is_there(no));
        let mut quotas = Quotas::new(context.layout);
        let all = there.into_iter().chain(away);
        self.others = all.filter(|(no, _)| quotas.admits(ChunkNo(*no))).collect();
    }

    /// Something lies elsewhere now. What the policy has not decided on, others have brought. A copy of its own that
    /// ends when no query runs any more may be in the way of what is to come back, and could not make room before.
    fn done(&mut self, context: &Context<'_>, event: (ChunkNo, Action, bool), decisions: &mut Vec<Decision>) {
        let (chunk, action, is_done) = event;
        let before = self.residency.of(chunk);
        if is_done && action.takes_room() && before == Where::Slow {
            self.others.insert(chunk.0, action);
        }
        self.residency.done(chunk, action, is_done);
        let was_own = before == Where::Arriving && !self.others.contains_key(&chunk.0);
        if was_own && self.running.is_empty() {
            self.restore(context, decisions);
        }
    }
}

impl Policy for Plan {
    fn name(&self) -> &'static str {
        "plan"
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn learns(&self) -> bool {
        !self.has_no_counts
    }

    fn train(&mut self, _: &Context<'_>, event: &Event<'_>) {
        if !self.has_no_counts {
            self.counts.note(event);
        }
    }

    fn train_counts(&mut self, counts: &[Counted]) {
        if !self.has_no_counts {
            self.counts.train(counts);
        }
    }

    fn memory(&self) -> Memory {
        let counts = if self.has_no_counts { Memory::default() } else { self.counts.memory() };
        Memory { displaced: self.displaced().collect(), ..counts }
    }

    fn remember(&mut self, memory: Memory) {
        if !self.has_no_counts {
            self.counts.remember(&memory);
        }
        let is_away = |(chunk, _): &(ChunkNo, Action)| !is_there(&self.residency, *chunk);
        let displaced = memory.displaced.into_iter().filter(is_away);
        self.others.extend(displaced.map(|(chunk, action)| (chunk.0, action)));
    }

    fn begin_session(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        self.restore(context, decisions);
    }

    fn was_brought(&mut self, chunk: ChunkNo) {
        self.others.remove(&chunk.0);
    }

    fn handle(&mut self, context: &Context<'_>, event: &Event<'_>, decisions: &mut Vec<Decision>) {
        match event {
            Event::QueryBegins { query, footprint, .. } => {
                self.running.insert(*query);
                self.place_for(context, footprint, decisions);
            }
            Event::QueryEnds { query } => {
                if self.running.remove(query) && self.running.is_empty() {
                    self.restore(context, decisions);
                }
            }
            Event::Done { chunk, action, is_done } => {
                self.done(context, (*chunk, *action, *is_done), decisions)
            }
            Event::Io(_) | Event::Evicted { .. } | Event::Tick => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::layout::{ObjectNo, Rule, Tier};
    use crate::policy::tests::bench;
    use crate::testing::*;
    use crate::{Action, ChunkNo, Event, QueryId, Source};

    #[test]
    fn each_query_gets_the_chunks_that_its_plan_names() {
        let mut bench = bench("plan", 10, 2);
        for chunk in [0, 1, 1, 2, 2, 2, 7, 8, 8, 8] {
            bench.train(chunk);
        }
        assert!(bench.prepare().is_empty());
        // Chunk 2 before 1 by their I/Os; 0 has no room, 8 is not named.
        assert_eq!(bench.begin(1, &[look_ups(0..3, 9)]), ["promote 2", "promote 1"]);
        bench.done_all();
        // What the next plan names too stays; the other goes.
        assert_eq!(bench.begin(2, &[look_ups(2..3, 9), look_ups(7..9, 9)]), ["demote 1", "promote 8"]);
        bench.done_all();
        assert!(bench.begin(3, &[look_ups(8..9, 1)]).is_empty());
    }

    #[test]
    fn without_counts_chunks_are_ranked_by_what_their_plan_expects() {
        let mut bench = bench("plan:no-counts", 10, 2);
        (0..5).for_each(|_| bench.train(0));
        // 100 pages in one chunk before 9 in three.
        assert_eq!(bench.begin(1, &[look_ups(0..3, 9), look_ups(7..8, 100)]), ["promote 7", "promote 0"]);
        bench.done_all();
        assert_eq!(bench.begin(2, &[look_ups(8..9, 9)]), ["demote 7", "promote 8"]);
    }

    #[test]
    fn chunks_with_the_fewest_ios_are_demoted_first() {
        let mut bench = bench("plan", 10, 2);
        for chunk in [0, 1, 1, 8, 8, 8] {
            bench.train(chunk);
        }
        assert_eq!(bench.begin(1, &[look_ups(0..2, 9)]), ["promote 1", "promote 0"]);
        bench.done_all();
        assert_eq!(bench.begin(2, &[look_ups(8..9, 9)]), ["demote 0", "promote 8"]);
    }

    /// Chunk 6, the only one that has room, is mirrored by others.
    fn with_mirror() -> Bench {
        let mut bench = bench("plan", 10, 1);
        [6, 8, 8, 8].into_iter().for_each(|chunk| bench.train(chunk));
        let (chunk, action) = (ChunkNo(6), Action::Mirror(Source::Copy));
        assert!(bench.handle(&Event::Done { chunk, action, is_done: true }).is_empty());
        bench
    }

    /// A bench whose chunks 5 and 6 others have put there, and whose query has moved 6 down for 8.
    fn with_others() -> Bench {
        let mut bench = with_others_under_way();
        assert!(bench.done_all().is_empty());
        bench
    }

    /// As that, but what the query wants is not done yet.
    fn with_others_under_way() -> Bench {
        let mut bench = bench("plan", 10, 2);
        [1, 1, 8, 8, 8].into_iter().for_each(|chunk| bench.train(chunk));
        for chunk in [5, 6] {
            let (chunk, action) = (ChunkNo(chunk), Action::Promote(Source::Copy));
            assert!(bench.handle(&Event::Done { chunk, action, is_done: true }).is_empty());
        }
        assert_eq!(bench.begin(1, &[look_ups(8..9, 9)]), ["demote 6", "promote 8"]);
        bench
    }

    /// It was left in the slow class for good.
    #[test]
    fn displaced_chunks_of_others_return_after_the_query() {
        let mut bench = with_others();
        assert_eq!(bench.end(), ["demote 8", "promote 6"]);
        bench.done_all();
        assert!(bench.end().is_empty());
    }

    /// What an earlier session has left to give back took the place of what its user had put there since.
    #[test]
    fn displaced_chunks_of_others_do_not_yield_to_returning_ones() {
        let mut bench = bench("plan", 10, 2);
        bench.train(8);
        let (chunk, action) = (ChunkNo(6), Action::Promote(Source::Copy));
        assert!(bench.handle(&Event::Done { chunk, action, is_done: true }).is_empty());
        let displaced = [3, 4].map(|no| (ChunkNo(no), Action::Mirror(Source::Copy))).to_vec();
        bench.policy.remember(crate::Memory { displaced, ..crate::Memory::default() });
        assert_eq!(bench.begin(1, &[look_ups(8..9, 9)]), ["promote 8"]);
        bench.done_all();
        assert_eq!(bench.end(), ["demote 8", "mirror 3"]);
    }

    /// The chunk that was to make room was still on its way, and what it was in the way of stayed away.
    #[test]
    fn displaced_chunks_return_when_the_query_ends_before_its_copies() {
        let mut bench = with_others_under_way();
        assert!(bench.end().is_empty(), "8 has not come yet");
        assert_eq!(bench.done_all(), ["demote 8", "promote 6"]);
    }

    /// It came back as its home, and so was moved.
    #[test]
    fn displaced_mirrors_return_as_mirrors() {
        for wanted in [false, true] {
            let mut bench = with_mirror();
            assert_eq!(bench.begin(1, &[look_ups(8..9, 9)]), ["drop 6", "promote 8"]);
            bench.done_all();
            let back = if wanted { bench.begin(2, &[look_ups(6..7, 9)]) } else { bench.end() };
            assert_eq!(back, ["demote 8", "mirror 6"]);
            bench.done_all();
        }
    }

    /// It counted ends, and so those of queries that it was not told of.
    #[test]
    fn the_end_of_an_unannounced_query_returns_nothing() {
        let mut bench = with_others();
        assert!(bench.handle(&Event::QueryEnds { query: QueryId(7) }).is_empty());
        assert_eq!(bench.end(), ["demote 8", "promote 6"]);
    }

    /// It was wanted again after each query, and refused.
    #[test]
    fn chunks_that_rules_forbid_do_not_return() {
        let mut bench = with_others();
        bench.layout.set_rule(ObjectNo(0), Rule { pin: None, quota_chunks: Some(1) });
        assert!(bench.end().is_empty(), "5 is there already");
        let mut bench = with_others();
        bench.layout.set_rule(ObjectNo(0), Rule { pin: Some(Tier::Slow), quota_chunks: None });
        assert!(bench.end().is_empty());
        bench.layout.set_rule(ObjectNo(0), Rule::default());
        assert!(bench.begin(2, &[]).is_empty() && bench.end().is_empty(), "it is nobody's any more");
    }
}
