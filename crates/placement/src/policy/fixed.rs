//! `static` (FST of the pre-query storage tiering paper): the chunks with most I/Os in a training run, placed once.

use super::{Options, Policy};
use crate::Result;
use crate::action::{Action, Decision, Reason, Source};
use crate::event::{Context, Event};
use crate::layout::ChunkNo;

/// I/Os per chunk.
#[derive(Debug, Default)]
pub(super) struct Counts(Vec<u64>);

impl Counts {
    pub(super) fn note(&mut self, event: &Event<'_>) {
        if let Event::Io(io) = event {
            if self.0.len() <= io.chunk.index() {
                self.0.resize(io.chunk.index() + 1, 0);
            }
            self.0[io.chunk.index()] += 1;
        }
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
}

#[derive(Debug, Default)]
struct Static {
    counts: Counts,
}

pub(super) fn make(_: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    Ok(Box::new(Static::default()))
}

impl Policy for Static {
    fn name(&self) -> &'static str {
        "static"
    }

    fn learns(&self) -> bool {
        true
    }

    fn train(&mut self, _: &Context<'_>, event: &Event<'_>) {
        self.counts.note(event);
    }

    fn prepare(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        let ranked = self.counts.ranked(0..context.layout.chunks());
        for (rank, chunk) in ranked.into_iter().take(context.capacity as usize).enumerate() {
            let reason = Reason::Trained { ios: self.counts.of(chunk), rank: rank as u32 };
            decisions.push(Decision::new(chunk, Action::Promote(Source::Copy), reason));
        }
    }

    fn handle(&mut self, _: &Context<'_>, _: &Event<'_>, _: &mut Vec<Decision>) {}
}

#[cfg(test)]
mod tests {
    use super::super::blocks::testing::*;

    #[test]
    fn the_chunks_with_most_ios_are_placed_once() {
        let mut bench = Bench::new("static", 10, 2);
        for chunk in [1, 5, 5, 3, 3, 3, 1, 1, 1] {
            bench.train(chunk);
        }
        assert_eq!(bench.prepare(), ["promote 1", "promote 3"]);
        assert!(bench.read(5).is_empty() && bench.read(5).is_empty());
    }
}
