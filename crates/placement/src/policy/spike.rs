//! `spike`: where most of the last I/Os fall into a small area, that area is moved up at once. Knows I/Os alone.
//!
//! 1. I/Os are counted by chunk in windows of `window` seconds.
//! 2. At the end of a window its chunks are taken, most I/Os first, until they have `share` percent of its I/Os. If
//!    that takes at most `area` percent of all chunks, they are a spike. A window with next to no I/Os has none.
//! 3. A spike's chunks are mirrored, most I/Os first; who was part of a spike longest ago makes room.
//! 4. A mirror that was part of no spike for `quiet` windows is dropped.

use super::residency::{Residency, Where};
use super::{Options, Policy};
use crate::Result;
use crate::action::{Action, Decision, Reason, Source};
use crate::event::{Context, Event, IoKind};
use crate::layout::ChunkNo;

/// A window with fewer I/Os has no spike.
const MIN_IOS: u64 = 100;

/// Copies decided on at once.
const MAX_UNDER_WAY: u32 = 16;

#[derive(Debug, Clone)]
struct Spike {
    window_ns: u64,
    share_percent: u32,
    area_percent: u32,
    quiet_windows: u64,
    /// I/Os of the window by chunk, and the chunks that have some.
    counts: Vec<u32>,
    touched: Vec<u32>,
    /// The number of the window, from 1.
    window: u64,
    /// The last window in which a chunk was part of a spike, by chunk; 0 is none.
    last_spike: Vec<u64>,
    /// Chunks of the spike that are to be mirrored, the next last, with their I/Os.
    wanted: Vec<(u32, u32)>,
    residency: Residency,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    Ok(Box::new(Spike {
        window_ns: u64::from(options.count("window", 10, 1..=86_400)?) * 1_000_000_000,
        share_percent: options.count("share", 50, 1..=100)?,
        area_percent: options.count("area", 5, 1..=100)?,
        quiet_windows: u64::from(options.count("quiet", 3, 1..=1_000_000)?),
        counts: Vec::new(),
        touched: Vec::new(),
        window: 1,
        last_spike: Vec::new(),
        wanted: Vec::new(),
        residency: Residency::default(),
    }))
}

impl Spike {
    /// Ends the window if its time is over.
    fn pass(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        let now = context.now_ns / self.window_ns + 1;
        if now <= self.window {
            return;
        }
        self.find(context);
        self.window = now;
        self.drop_quiet(decisions);
        self.act(context, decisions);
    }

    /// Looks whether the window that is over had a spike.
    fn find(&mut self, context: &Context<'_>) {
        let counts = &mut self.counts;
        let mut ranked: Vec<(u32, u32)> =
            self.touched.drain(..).map(|no| (std::mem::take(&mut counts[no as usize]), no)).collect();
        ranked.sort_unstable_by_key(|(ios, no)| (std::cmp::Reverse(*ios), *no));
        let all: u64 = ranked.iter().map(|(ios, _)| u64::from(*ios)).sum();
        let enough = (all * u64::from(self.share_percent)).div_ceil(100);
        let mut sum = 0;
        let most = ranked.iter().take_while(|(ios, _)| {
            let goes_on = sum < enough;
            sum += u64::from(*ios);
            goes_on
        });
        let most = most.count();
        self.wanted.clear();
        let area = u64::from(context.layout.chunks()) * u64::from(self.area_percent) / 100;
        if all < MIN_IOS || most as u64 > area.max(1) {
            return;
        }
        ranked.truncate(most);
        self.last_spike.resize(context.layout.chunks() as usize, 0);
        for (ios, no) in ranked.into_iter().rev() {
            if let Some(last) = self.last_spike.get_mut(no as usize) {
                *last = self.window;
                self.wanted.push((ios, no));
            }
        }
    }

    fn last_spike_of(&self, no: u32) -> u64 {
        self.last_spike.get(no as usize).copied().unwrap_or(0)
    }

    fn drop_quiet(&mut self, decisions: &mut Vec<Decision>) {
        let present: Vec<u32> = self.residency.present().collect();
        for no in present {
            let chunk = ChunkNo(no);
            let is_quiet = self.last_spike_of(no) + self.quiet_windows < self.window;
            if is_quiet && self.residency.of(chunk) == Where::Mirrored {
                let dropped = Decision::new(chunk, Action::DropMirror, Reason::Unwanted);
                self.residency.decide(dropped, decisions);
            }
        }
    }

    fn act(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        while self.residency.under_way() < MAX_UNDER_WAY {
            let Some((ios, no)) = self.wanted.pop() else { return };
            let chunk = ChunkNo(no);
            if self.residency.of(chunk) != Where::Slow || context.layout.is_pinned(chunk) {
                continue;
            }
            if !self.residency.has_room(context.capacity) {
                let newest = self.last_spike_of(no);
                let others = self.residency.present().filter(|other| {
                    self.residency.of(ChunkNo(*other)) == Where::Mirrored
                        && self.last_spike_of(*other) < newest
                });
                let Some(victim) = others.min_by_key(|other| (self.last_spike_of(*other), *other)) else {
                    self.wanted.clear();
                    return;
                };
                let reason = Reason::MakesRoom { other: chunk };
                self.residency.decide(Decision::new(ChunkNo(victim), Action::DropMirror, reason), decisions);
            }
            let reason = Reason::Spike { ios, seconds: (self.window_ns / 1_000_000_000) as u32 };
            let mirror = Decision::new(chunk, Action::Mirror(Source::Copy), reason);
            self.residency.decide(mirror, decisions);
        }
    }
}

impl Policy for Spike {
    fn name(&self) -> &'static str {
        "spike"
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn handle(&mut self, context: &Context<'_>, event: &Event<'_>, decisions: &mut Vec<Decision>) {
        match event {
            Event::Io(io) => {
                self.pass(context, decisions);
                if io.kind == IoKind::Write {
                    self.residency.written(io.chunk);
                }
                if self.counts.len() <= io.chunk.index() {
                    self.counts.resize(io.chunk.index() + 1, 0);
                }
                let count = &mut self.counts[io.chunk.index()];
                if *count == 0 {
                    self.touched.push(io.chunk.0);
                }
                *count = count.saturating_add(1);
            }
            Event::Tick => self.pass(context, decisions),
            Event::Done { chunk, action, is_done } => {
                self.residency.done(*chunk, *action, *is_done);
                self.act(context, decisions);
            }
            Event::QueryBegins { .. } | Event::QueryEnds { .. } | Event::Evicted { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::bench;
    use crate::testing::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// Reads of each of these chunks, so many times; what was wanted meanwhile.
    fn reads(bench: &mut Bench, chunks: &[u32], times: u32) -> Vec<String> {
        (0..times).flat_map(|_| chunks.to_vec()).flat_map(|chunk| bench.read(chunk)).collect()
    }

    #[test]
    fn chunks_of_a_spike_are_mirrored_and_dropped_when_it_is_over() {
        let mut bench = bench("spike:window=10,quiet=2", 100, 4);
        reads(&mut bench, &[7, 8], 50);
        reads(&mut bench, &(20..80).collect::<Vec<_>>(), 1);
        bench.now_ns = 10 * SECOND_NS;
        assert_eq!(bench.read(50), ["mirror 7", "mirror 8"]);
        bench.done_all();
        // All over the place is no spike.
        assert!(reads(&mut bench, &(0..100).collect::<Vec<_>>(), 1).is_empty());
        bench.now_ns = 20 * SECOND_NS;
        assert!(bench.read(50).is_empty(), "it may come back");
        bench.now_ns = 40 * SECOND_NS;
        assert_eq!(bench.read(50), ["drop 7", "drop 8"]);
    }

    #[test]
    fn an_older_spike_makes_room_for_a_new_one() {
        let mut bench = bench("spike:window=10,quiet=100,share=90", 100, 2);
        reads(&mut bench, &[1, 2], 50);
        bench.now_ns = 10 * SECOND_NS;
        reads(&mut bench, &[1], 1);
        bench.done_all();
        reads(&mut bench, &[2, 3], 50);
        bench.now_ns = 20 * SECOND_NS;
        let moved = bench.read(50);
        assert_eq!(moved, ["drop 1", "mirror 3"]);
        bench.done_all();
        // The spike is larger than the fast class: what is there and part of it stays.
        reads(&mut bench, &[2, 3, 4], 50);
        bench.now_ns = 30 * SECOND_NS;
        assert!(bench.read(50).is_empty());
    }
}
