//! `plan` (PST as published): before each query the chunks of the tables and indexes that its plan names, ranked by their I/Os in a
//! training run, fill the fast class; the rest goes down.
//!
//! 1. The training run counts I/Os per chunk, over all queries, as for `static`.
//! 2. A query begins: the chunks of its footprint are ranked by that count and the first of them moved up, as many as there is room for.
//! 3. What lies in the fast class and is not among them is moved down as far as its room is needed, fewest I/Os first. (The paper moves all of
//!    it down; what nobody needs the room of may as well stay, which is in its favour.)

use super::fixed::Counts;
use super::residency::Residency;
use super::{Counted, Options, Policy};
use crate::Result;
use crate::action::{Decision, Reason};
use crate::event::{Context, Event};
use crate::footprint::Footprint;
use crate::memory::Memory;

#[derive(Debug, Clone, Default)]
struct Plan {
    counts: Counts,
    residency: Residency,
}

pub(super) fn make(_: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    Ok(Box::new(Plan::default()))
}

impl Plan {
    fn place(&mut self, context: &Context<'_>, footprint: &Footprint, decisions: &mut Vec<Decision>) {
        let named = footprint.accesses.iter().flat_map(|access| access.chunks(context.layout)).flatten();
        let mut wanted = self.counts.ranked(named);
        wanted.truncate(context.capacity as usize);
        let reason = |ios, rank| Reason::Planned { ios, rank };
        self.counts.place(context, &mut self.residency, wanted, reason, decisions);
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
        true
    }

    fn train(&mut self, _: &Context<'_>, event: &Event<'_>) {
        self.counts.note(event);
    }

    fn train_counts(&mut self, counts: &[Counted]) {
        self.counts.train(counts);
    }

    fn memory(&self) -> Memory {
        self.counts.memory()
    }

    fn remember(&mut self, memory: Memory) {
        self.counts.remember(&memory);
    }

    fn handle(&mut self, context: &Context<'_>, event: &Event<'_>, decisions: &mut Vec<Decision>) {
        match event {
            Event::QueryBegins { footprint, .. } => self.place(context, footprint, decisions),
            Event::Done { chunk, action, is_done } => self.residency.done(*chunk, *action, *is_done),
            Event::Io(_) | Event::QueryEnds { .. } | Event::Evicted { .. } | Event::Tick => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::blocks::testing::*;

    #[test]
    fn each_query_gets_the_chunks_that_its_plan_names() {
        let mut bench = Bench::new("plan", 10, 2);
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
    fn what_had_fewest_ios_makes_room() {
        let mut bench = Bench::new("plan", 10, 2);
        for chunk in [0, 1, 1, 8, 8, 8] {
            bench.train(chunk);
        }
        assert_eq!(bench.begin(1, &[look_ups(0..2, 9)]), ["promote 1", "promote 0"]);
        bench.done_all();
        assert_eq!(bench.begin(2, &[look_ups(8..9, 9)]), ["demote 0", "promote 8"]);
    }
}
