//! `static` (FST of the pre-query storage tiering paper): the chunks with most I/Os in a training run, placed once.
//!
//! What lies in the fast class from before and is not among them makes room as it is needed, fewest I/Os first.

use std::collections::HashMap;

use super::quotas::{Present, Quotas};
use super::residency::{Residency, Where};
use super::{Counted, Options, Policy};
use crate::Result;
use crate::action::{Action, Decision, Reason, Source};
use crate::event::{Context, Event};
use crate::layout::{ChunkNo, Layout, ObjectNo};
use crate::memory::Memory;

/// I/Os per chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(Vec<u64>);

impl Counts {
    pub(super) fn note(&mut self, event: &Event<'_>) {
        if let Event::Io(io) = event {
            self.add(io.chunk, 1);
        }
    }

    pub(super) fn add(&mut self, chunk: ChunkNo, ios: u64) {
        if self.0.len() <= chunk.index() {
            self.0.resize(chunk.index() + 1, 0);
        }
        let count = &mut self.0[chunk.index()];
        *count = count.saturating_add(ios);
    }

    /// What was counted of these chunks since ever, which what is known of them is a part of.
    pub(super) fn train(&mut self, counts: &[Counted]) {
        for counted in counts {
            let known = self.of(counted.chunk);
            self.add(counted.chunk, counted.reads.saturating_sub(known));
            self.0[counted.chunk.index()] = counted.reads;
        }
    }

    pub(super) fn memory(&self) -> Memory {
        let all = (0..).map(ChunkNo).zip(self.0.iter().copied());
        Memory { counts: all.filter(|(_, ios)| *ios > 0).collect(), ..Memory::default() }
    }

    pub(super) fn remember(&mut self, memory: &Memory) {
        memory.counts.iter().for_each(|(chunk, ios)| self.add(*chunk, *ios));
    }

    pub(super) fn of(&self, chunk: ChunkNo) -> u64 {
        self.0.get(chunk.index()).copied().unwrap_or(0)
    }

    /// Those of `chunks` that had any, most first.
    pub(super) fn ranked(&self, chunks: impl Iterator<Item = u32>) -> Vec<ChunkNo> {
        let mut ranked: Vec<ChunkNo> = chunks.map(ChunkNo).filter(|chunk| self.of(*chunk) > 0).collect();
        ranked.sort_unstable_by_key(|chunk| (std::cmp::Reverse(self.of(*chunk)), *chunk));
        ranked.dedup();
        ranked
    }

    /// The first of those that users and room let in.
    pub(super) fn wanted(&self, context: &Context<'_>, chunks: impl Iterator<Item = u32>) -> Vec<ChunkNo> {
        let mut wanted = self.ranked(chunks);
        let mut quotas = Quotas::new(context.layout);
        wanted.retain(|chunk| quotas.admits(*chunk));
        wanted.truncate(context.capacity as usize);
        wanted
    }

    /// Brings up what of `wanted` is not there, as `how` says of the chunk and its place among them, and moves out of
    /// its way what is not wanted.
    pub(super) fn place(
        &self,
        context: &Context<'_>,
        residency: &mut Residency,
        wanted: Vec<ChunkNo>,
        how: impl Fn(ChunkNo, u32) -> (Action, Reason),
        decisions: &mut Vec<Decision>,
    ) {
        let mut is_wanted = vec![false; context.layout.chunks() as usize];
        wanted.iter().for_each(|chunk| is_wanted[chunk.index()] = true);
        let mut others: Vec<ChunkNo> = (0..context.layout.chunks())
            .map(ChunkNo)
            .filter(|chunk| !is_wanted[chunk.index()] && is_there(residency, *chunk))
            .collect();
        others.sort_unstable_by_key(|chunk| (std::cmp::Reverse(self.of(*chunk)), *chunk));
        let mut victims = Victims::new(context.layout, others);
        let mut present = Present::default();
        for (rank, chunk) in wanted.into_iter().enumerate() {
            if residency.of(chunk) != Where::Slow {
                continue;
            }
            let order = 2 * rank as u32;
            let full = present.used_up(context.layout, residency, chunk);
            if full.is_some() || !residency.has_room(context.capacity) {
                let Some(victim) = victims.next(residency, full) else { continue };
                let action =
                    if residency.of(victim) == Where::Mirrored { Action::DropMirror } else { Action::Demote };
                let reason = Reason::MakesRoom { other: chunk };
                residency.decide(Decision { order, ..Decision::new(victim, action, reason) }, decisions);
                // Its room is this chunk's, as soon as it has gone.
                residency.done(victim, action, true);
                present.went(context.layout, victim);
            }
            let (action, reason) = how(chunk, rank as u32);
            let comes = Decision { order: order + 1, ..Decision::new(chunk, action, reason) };
            residency.decide(comes, decisions);
            present.came(context.layout, chunk);
        }
    }
}

/// Whether it lies in the fast class, and is not about to go.
pub(super) fn is_there(residency: &Residency, chunk: ChunkNo) -> bool {
    matches!(residency.of(chunk), Where::Fast | Where::Mirrored)
}

/// What may make room, the next to go at the end: of all objects, and of each that has a quota.
///
/// Whoever goes is left in the other list; it is skipped when its turn comes, so that each chunk is looked at twice at
/// most.
#[derive(Debug)]
struct Victims {
    all: Vec<ChunkNo>,
    of_object: HashMap<ObjectNo, Vec<ChunkNo>>,
}

impl Victims {
    fn new(layout: &Layout, all: Vec<ChunkNo>) -> Victims {
        let mut of_object: HashMap<ObjectNo, Vec<ChunkNo>> = HashMap::new();
        for chunk in all.iter().filter(|_| layout.has_rules()) {
            if let Some((object, _)) = layout.owner(*chunk)
                && layout.rule_of(*chunk).quota_chunks.is_some()
            {
                of_object.entry(object).or_default().push(*chunk);
            }
        }
        Victims { all, of_object }
    }

    /// The next that is still there; of that object, if its quota is what leaves no room.
    fn next(&mut self, residency: &Residency, full: Option<ObjectNo>) -> Option<ChunkNo> {
        let list = match full {
            Some(object) => self.of_object.get_mut(&object)?,
            None => &mut self.all,
        };
        std::iter::from_fn(|| list.pop()).find(|chunk| is_there(residency, *chunk))
    }
}

#[derive(Debug, Clone, Default)]
struct Static {
    counts: Counts,
    residency: Residency,
}

pub(super) fn make(_: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    Ok(Box::new(Static::default()))
}

impl Policy for Static {
    fn name(&self) -> &'static str {
        "static"
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

    fn prepare(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        let wanted = self.counts.wanted(context, 0..context.layout.chunks());
        let how = |chunk, rank| {
            (Action::Promote(Source::Copy), Reason::Trained { ios: self.counts.of(chunk), rank })
        };
        self.counts.place(context, &mut self.residency, wanted, how, decisions);
    }

    fn handle(&mut self, _: &Context<'_>, event: &Event<'_>, _: &mut Vec<Decision>) {
        if let Event::Done { chunk, action, is_done } = event {
            self.residency.done(*chunk, *action, *is_done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::bench;

    #[test]
    fn lifetime_counts_are_added_once() {
        let counted =
            |chunk, reads| Counted { chunk: ChunkNo(chunk), reads, bytes: 0, sequential_share: 0.0 };
        let mut counts = Counts::default();
        counts.train(&[counted(3, 5), counted(1, 9)]);
        let mut later = Counts::default();
        later.remember(&counts.memory());
        for reads in [7, 7, 8] {
            later.train(&[counted(3, reads)]);
        }
        assert_eq!([later.of(ChunkNo(3)), later.of(ChunkNo(1))], [8, 9]);
    }

    #[test]
    fn the_chunks_with_most_ios_are_placed_once() {
        let mut bench = bench("static", 10, 2);
        for chunk in [1, 5, 5, 3, 3, 3, 1, 1, 1] {
            bench.train(chunk);
        }
        assert_eq!(bench.prepare(), ["promote 1", "promote 3"]);
        assert!(bench.read(5).is_empty() && bench.read(5).is_empty());
    }
}
