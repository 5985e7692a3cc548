//! `history` (KNOWAC, LAM): what came next the last time is fetched ahead. Knows I/Os alone, no plans.
//!
//! 1. The history is a cycle of windows of `window` I/Os, each the chunks that were hot in it. A training run is its
//!    first cycle.
//! 2. At the end of each window, the window of the history that it resembles most is looked for: first just behind
//!    where the last match was (cycles repeat), then everywhere. Resemblance is the cosine of the two heat profiles.
//! 3. The chunks of the next `ahead` windows, nearer ones counting more, are mirrored ahead of their predicted peak,
//!    most I/Os first; what is not among them makes room.
//! 4. Where nothing resembles, nothing is moved; what has been seen is appended to the history, up to a bound.

use super::options::MOST_COUNTED;
use super::residency::{Residency, Where};
use super::{Options, Policy};
use crate::Result;
use crate::action::{Action, Decision, Reason, Source};
use crate::event::{Context, Event};
use crate::layout::ChunkNo;
use crate::memory::Memory;

/// Windows that are remembered.
const MOST_WINDOWS: usize = 4096;

/// Windows ahead that may be asked for: all of them are looked at with each window.
const MOST_AHEAD: u32 = 1024;

/// Windows behind the last match that are looked at first.
const NEAR: usize = 8;

/// Less than this is no resemblance.
const LEAST_RESEMBLANCE: f64 = 0.5;

/// Copies decided on at once.
const MOST_UNDER_WAY: u32 = 16;

/// The hot chunks of a window and their I/Os, by number.
type Profile = Vec<(u32, u32)>;

#[derive(Debug, Clone)]
struct History {
    window: u32,
    ahead: usize,
    counts: Vec<u32>,
    touched: Vec<u32>,
    ios: u32,
    cycle: Vec<Profile>,
    position: Option<usize>,
    residency: Residency,
    /// Wanted and not yet decided on, the next last.
    wanted: Vec<(u32, u32)>,
    is_wanted: Vec<bool>,
    is_training: bool,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    Ok(Box::new(History {
        window: options.count("window", 5000, 1..=MOST_COUNTED)?,
        ahead: options.count("ahead", 4, 1..=MOST_AHEAD)? as usize,
        counts: Vec::new(),
        touched: Vec::new(),
        ios: 0,
        cycle: Vec::new(),
        position: None,
        residency: Residency::default(),
        wanted: Vec::new(),
        is_wanted: Vec::new(),
        is_training: false,
    }))
}

fn resemblance(a: &Profile, b: &Profile) -> f64 {
    let norm = |profile: &Profile| profile.iter().map(|(_, n)| f64::from(*n).powi(2)).sum::<f64>().sqrt();
    let (mut i, mut j, mut product) = (0, 0, 0.0);
    while let (Some((left, n)), Some((right, m))) = (a.get(i), b.get(j)) {
        if left == right {
            product += f64::from(*n) * f64::from(*m);
        }
        i += usize::from(left <= right);
        j += usize::from(right <= left);
    }
    product / (norm(a) * norm(b)).max(1e-9)
}

impl History {
    /// Counts an I/O; the profile of the window that it ends.
    fn count(&mut self, chunk: ChunkNo) -> Option<Profile> {
        if self.counts.len() <= chunk.index() {
            self.counts.resize(chunk.index() + 1, 0);
        }
        if self.counts[chunk.index()] == 0 {
            self.touched.push(chunk.0);
        }
        self.counts[chunk.index()] += 1;
        self.ios += 1;
        if self.ios < self.window {
            return None;
        }
        self.ios = 0;
        self.touched.sort_unstable();
        let touched = std::mem::take(&mut self.touched);
        Some(touched.into_iter().map(|no| (no, std::mem::take(&mut self.counts[no as usize]))).collect())
    }

    fn remember(&mut self, profile: Profile) {
        if self.cycle.len() < MOST_WINDOWS {
            self.cycle.push(profile);
        }
    }

    fn locate(&self, profile: &Profile) -> Option<usize> {
        let len = self.cycle.len();
        let at = |no: usize| (resemblance(profile, &self.cycle[no]), no);
        let best = |found: &mut dyn Iterator<Item = usize>| {
            found.map(at).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))
        };
        let near = self.position.and_then(|last| best(&mut (1..=NEAR).map(|step| (last + step) % len)));
        if let Some((value, no)) = near
            && value >= LEAST_RESEMBLANCE
        {
            return Some(no);
        }
        best(&mut (0..len)).filter(|(value, _)| *value >= LEAST_RESEMBLANCE).map(|(_, no)| no)
    }

    /// What the windows behind `position` ask for.
    fn foresee(&mut self, context: &Context<'_>, position: usize) {
        let chunks = context.layout.chunks() as usize;
        let mut heat = vec![0u32; chunks];
        for step in 0..=self.ahead {
            for (no, ios) in &self.cycle[(position + step) % self.cycle.len()] {
                if let Some(heat) = heat.get_mut(*no as usize) {
                    *heat = heat.saturating_add(ios.saturating_mul((self.ahead + 1 - step) as u32));
                }
            }
        }
        let mut ranked: Vec<(u32, u32)> =
            heat.iter().zip(0..).filter(|(heat, _)| **heat > 0).map(|(heat, no)| (*heat, no)).collect();
        ranked.retain(|(_, no)| !context.layout.is_pinned(ChunkNo(*no)));
        ranked.sort_unstable_by_key(|(heat, no)| (std::cmp::Reverse(*heat), *no));
        ranked.truncate(context.capacity as usize);
        ranked.reverse();
        self.is_wanted = vec![false; chunks];
        ranked.iter().for_each(|(_, no)| self.is_wanted[*no as usize] = true);
        self.wanted = ranked;
    }

    fn act(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        let mut next_victim = 0;
        while self.residency.under_way() < MOST_UNDER_WAY {
            let Some((ios, no)) = self.wanted.pop() else { return };
            let chunk = ChunkNo(no);
            if self.residency.of(chunk) != Where::Slow {
                continue;
            }
            if !self.residency.has_room(context.capacity) {
                let unwanted = |no: &u32| {
                    self.residency.of(ChunkNo(*no)) == Where::Mirrored
                        && !self.is_wanted.get(*no as usize).copied().unwrap_or(false)
                };
                let Some(victim) = (next_victim..context.layout.chunks()).find(unwanted) else {
                    self.wanted.clear();
                    return;
                };
                next_victim = victim + 1;
                let reason = Reason::MakesRoom { other: chunk };
                self.residency.decide(Decision::new(ChunkNo(victim), Action::DropMirror, reason), decisions);
            }
            let reason = Reason::Foreseen { windows: self.ahead as u32, ios };
            let mirror = Decision::new(chunk, Action::Mirror(Source::Copy), reason);
            self.residency.decide(mirror, decisions);
        }
    }

    fn end_window(&mut self, context: &Context<'_>, profile: Profile) {
        if self.cycle.is_empty() {
            return self.remember(profile);
        }
        self.position = self.locate(&profile);
        match self.position {
            Some(position) => self.foresee(context, position),
            None => self.remember(profile),
        }
    }
}

impl Policy for History {
    fn name(&self) -> &'static str {
        "history"
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn learns(&self) -> bool {
        true
    }

    fn train(&mut self, _: &Context<'_>, event: &Event<'_>) {
        self.is_training = true;
        if let Event::Io(io) = event
            && let Some(profile) = self.count(io.chunk)
        {
            self.remember(profile);
        }
    }

    fn memory(&self) -> Memory {
        Memory { windows: self.cycle.clone(), ..Memory::default() }
    }

    fn remember(&mut self, memory: Memory) {
        if self.cycle.is_empty() {
            self.cycle = memory.windows;
            self.cycle.truncate(MOST_WINDOWS);
            self.is_training = true;
        }
    }

    fn prepare(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        // After the end of a cycle comes its beginning.
        if self.is_training && !self.cycle.is_empty() {
            self.counts.fill(0);
            self.touched.clear();
            self.ios = 0;
            self.position = Some(self.cycle.len() - 1);
            self.foresee(context, 0);
            let wanted = std::mem::take(&mut self.wanted);
            for (ios, no) in wanted.into_iter().rev() {
                if self.residency.of(ChunkNo(no)) != Where::Slow {
                    continue;
                }
                if !self.residency.has_room(context.capacity) {
                    break;
                }
                let reason = Reason::Foreseen { windows: self.ahead as u32, ios };
                let mirror = Decision::new(ChunkNo(no), Action::Mirror(Source::Copy), reason);
                self.residency.decide(mirror, decisions);
            }
        }
    }

    fn handle(&mut self, context: &Context<'_>, event: &Event<'_>, decisions: &mut Vec<Decision>) {
        match event {
            Event::Io(io) => {
                if io.kind == crate::event::IoKind::Write {
                    self.residency.written(io.chunk);
                }
                if let Some(profile) = self.count(io.chunk) {
                    self.end_window(context, profile);
                    self.act(context, decisions);
                }
            }
            Event::Done { chunk, action, is_done } => {
                self.residency.done(*chunk, *action, *is_done);
                self.act(context, decisions);
            }
            Event::QueryBegins { .. } | Event::QueryEnds { .. } | Event::Evicted { .. } | Event::Tick => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::tests::bench;
    use crate::testing::*;

    fn phase(bench: &mut Bench, chunks: [u32; 2]) -> Vec<String> {
        (0..5).flat_map(|_| chunks.map(|chunk| bench.read(chunk))).flatten().collect()
    }

    #[test]
    fn chunks_of_the_next_window_are_mirrored_ahead() {
        let mut bench = bench("history:window=10,ahead=1", 20, 4);
        for chunks in [[1, 2], [3, 4], [5, 6]] {
            (0..5).for_each(|_| chunks.iter().for_each(|chunk| bench.train(*chunk)));
        }
        assert_eq!(bench.prepare(), ["mirror 1", "mirror 2", "mirror 3", "mirror 4"]);
        bench.done_all();
        assert!(phase(&mut bench, [1, 2]).is_empty(), "all of it is there");
        bench.done_all();
        let moved = phase(&mut bench, [3, 4]);
        assert_eq!(moved, ["drop 1", "mirror 5", "drop 2", "mirror 6"]);
        bench.done_all();
        assert_eq!(
            phase(&mut bench, [5, 6]),
            ["drop 3", "mirror 1", "drop 4", "mirror 2"],
            "the cycle turns"
        );
    }

    #[test]
    fn resident_chunks_are_not_requested_again() {
        let mut bench = bench("history:window=10,ahead=1", 20, 3);
        for chunks in [[1, 2], [3, 4]] {
            (0..5).for_each(|_| chunks.iter().for_each(|chunk| bench.train(*chunk)));
        }
        assert_eq!(bench.prepare(), ["mirror 1", "mirror 2", "mirror 3"]);
        bench.done_all();
        assert_eq!(bench.prepare(), Vec::<String>::new(), "all of the room is taken");
    }

    #[test]
    fn nothing_is_moved_where_nothing_resembles() {
        let mut bench = bench("history:window=10", 20, 4);
        assert!(phase(&mut bench, [1, 2]).is_empty() && phase(&mut bench, [3, 4]).is_empty());
    }
}
