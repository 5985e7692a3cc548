//! Which chunks are worth the room of the fast class, and in which order they are copied.
//!
//! 1. Every chunk that anybody may read gets its worth: what it saves running queries, and what it saves later ones.
//! 2. Those that are there already are worth that; the others less the cost of a copy. The best are the target.
//! 3. At a depth above 1, time is what the busier class takes: chunks are added until the fast one would be busier than the slow one.
//! 4. What is in the target and not there is copied, by the tenth of the query in which it is read first, then by worth.
//! 5. What is there and not in the target may be a victim, the least worth first.

use std::collections::BTreeMap;

use super::super::residency::Residency;
use super::history::{History, Use};
use super::running::Running;
use crate::event::Context;
use crate::footprint::Fingerprint;
use crate::layout::{ChunkNo, Tier};

/// What a chunk that is given up is worth later, at most: this many copies.
const MOST_COPIES: f64 = 2.0;

/// Statements that are less likely are not prepared for.
const LEAST_CHANCE: f64 = 0.05;

/// A chunk to be copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) chunk: u32,
    /// Its place in the order of copies.
    pub(super) order: u32,
    /// Seconds that it saves later.
    pub(super) later_s: f64,
    /// The chance of that.
    pub(super) chance_percent: u32,
    /// Whether it is wanted for reads that nothing announced.
    pub(super) is_rented: bool,
}

/// A chunk's worth, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Worth {
    now_s: f64,
    later_s: f64,
    first: f32,
    chance: f64,
    is_there: bool,
    /// Seconds that running queries keep either class busy with it.
    slow_busy_s: f64,
    fast_busy_s: f64,
}

#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// The next last.
    copies: Vec<Candidate>,
    /// With what they are worth later, the least worth last.
    victims: Vec<(u32, f64)>,
    /// There, and better not.
    pub(super) saturating: Vec<u32>,
}

fn saved(context: &Context<'_>, uses: &Use, depth: u32) -> f64 {
    context.costs.saved_s(f64::from(uses.random), f64::from(uses.bytes), depth)
}

fn worths(
    context: &Context<'_>,
    running: &[Running],
    history: &History,
    likely: &[(Fingerprint, f64, f64)],
    is_next_in_full: bool,
) -> BTreeMap<u32, Worth> {
    let costs = context.costs;
    let copy_s = costs.copy_up_s(context.layout.chunk_bytes() as f64);
    let mut worths: BTreeMap<u32, Worth> = BTreeMap::new();
    for query in running {
        for no in query.chunks() {
            let left = query.remaining(no);
            let worth = worths.entry(no).or_insert(Worth { first: 1.0, ..Worth::default() });
            worth.first = worth.first.min(left.first);
        }
    }
    for (no, worth) in &mut worths {
        for query in running {
            let left = query.remaining(*no);
            let (random, bytes, depth) = (f64::from(left.random), f64::from(left.bytes), query.depth);
            worth.now_s += costs.saved_s(random, bytes, depth);
            worth.slow_busy_s += random * costs.slow.random_s(depth) + costs.slow.sequential_s(bytes, depth);
            worth.fast_busy_s += random * costs.fast.random_s(depth) + costs.fast.sequential_s(bytes, depth);
        }
    }
    let depth = running.iter().map(|query| query.depth).max().unwrap_or(1);
    for (statement, next, soon) in likely.iter().filter(|(_, _, soon)| *soon >= LEAST_CHANCE) {
        let Some(profile) = history.profile(*statement) else { continue };
        for (no, uses) in &profile.uses {
            let saves = saved(context, uses, depth);
            let worth = worths.entry(*no).or_insert(Worth { first: 1.0, ..Worth::default() });
            let capped = soon * saves.min(MOST_COPIES * copy_s);
            worth.later_s += if is_next_in_full { capped.max(next * saves) } else { capped };
            worth.chance = worth.chance.max(*soon);
        }
    }
    worths
}

/// What is best put into the fast class before anything runs, when that costs nothing; most worth first.
pub(super) fn beforehand(
    context: &Context<'_>,
    history: &History,
    likely: &[(Fingerprint, f64, f64)],
) -> Vec<(Candidate, f64)> {
    let worths = worths(context, &[], history, likely, true);
    let allowed = |no: u32| context.layout.rule_of(ChunkNo(no)).pin != Some(Tier::Slow);
    let mut ranked: Vec<(u32, Worth)> =
        worths.into_iter().filter(|(no, worth)| worth.later_s > 0.0 && allowed(*no)).collect();
    ranked.sort_by(|a, b| b.1.later_s.total_cmp(&a.1.later_s).then(a.0.cmp(&b.0)));
    ranked.truncate(context.capacity as usize);
    let candidate = |(no, worth): (u32, Worth)| {
        let chance_percent = (worth.chance * 100.0).round() as u32;
        let candidate =
            Candidate { chunk: no, order: 0, later_s: worth.later_s, chance_percent, is_rented: false };
        (candidate, worth.later_s)
    };
    ranked.into_iter().map(candidate).collect()
}

impl Ranking {
    pub(super) fn new(
        context: &Context<'_>,
        running: &[Running],
        history: &History,
        likely: &[(Fingerprint, f64, f64)],
        residency: &Residency,
        is_next_in_full: bool,
    ) -> Ranking {
        let copy_s = context.costs.copy_up_s(context.layout.chunk_bytes() as f64);
        let mut worths = worths(context, running, history, likely, is_next_in_full);
        for no in residency.present() {
            worths.entry(no).or_default().is_there = true;
        }
        let score = |worth: &Worth| {
            worth.now_s + worth.later_s - if worth.is_there { 0.0 } else { copy_s }
        };
        let allowed = |no: u32| context.layout.rule_of(ChunkNo(no)).pin != Some(Tier::Slow);
        let mut ranked: Vec<(u32, Worth)> = worths.into_iter().filter(|(no, _)| allowed(*no)).collect();
        ranked.sort_by(|a, b| score(&b.1).total_cmp(&score(&a.1)).then(a.0.cmp(&b.0)));
        let depth = running.iter().map(|query| query.depth).max().unwrap_or(1);
        let saturating = if depth > 1 { saturating(&ranked, context.capacity) } else { Vec::new() };
        let mut ranking = Ranking { saturating: Vec::new(), ..Ranking::default() };
        let mut room = context.capacity;
        for (no, worth) in &ranked {
            let is_saturating = saturating.binary_search(no).is_ok();
            let is_target = room > 0 && score(worth) > 0.0 && !is_saturating;
            match (worth.is_there, is_target) {
                (true, true) => room -= 1,
                (true, false) => {
                    ranking.victims.push((*no, worth.later_s));
                    if is_saturating {
                        ranking.saturating.push(*no);
                    }
                }
                (false, true) => {
                    room -= 1;
                    ranking.copies.push(Candidate {
                        chunk: *no,
                        order: (worth.first * 10.0) as u32,
                        later_s: worth.later_s,
                        chance_percent: (worth.chance * 100.0).round() as u32,
                        is_rented: false,
                    });
                }
                (false, false) => {}
            }
        }
        // Stable: within a tenth of the query they stay in the order of their worth.
        ranking.copies.sort_by_key(|candidate| candidate.order);
        ranking.copies.reverse();
        ranking
    }

    /// The next chunk to be copied.
    pub(super) fn next(&mut self) -> Option<Candidate> {
        self.copies.pop()
    }

    /// Seconds that the chunk saves running queries from now on.
    pub(super) fn now_s(&self, context: &Context<'_>, running: &[Running], chunk: u32) -> f64 {
        running.iter().map(|query| saved(context, &query.remaining(chunk), query.depth)).sum()
    }

    /// The chunk to give its room to one that gains `gain_s`, if any is worth less.
    pub(super) fn victim(
        &mut self,
        context: &Context<'_>,
        running: &[Running],
        gain_s: f64,
        is_there: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        while let Some((no, later_s)) = self.victims.last().copied() {
            if is_there(no) {
                let worth = later_s + self.now_s(context, running, no);
                return (worth < gain_s).then(|| {
                    self.victims.pop();
                    no
                });
            }
            self.victims.pop();
        }
        None
    }
}

/// Chunks that are better left to the slow class, because the fast one would be busier than that; by number.
fn saturating(ranked: &[(u32, Worth)], capacity: u32) -> Vec<u32> {
    let mut slow_s: f64 = ranked.iter().map(|(_, worth)| worth.slow_busy_s).sum();
    let mut fast_s = 0.0;
    let mut room = capacity;
    let mut left = Vec::new();
    for (no, worth) in ranked.iter().filter(|(_, worth)| worth.slow_busy_s > 0.0) {
        let is_better = fast_s + worth.fast_busy_s <= slow_s - worth.slow_busy_s;
        if is_better && room > 0 {
            room -= 1;
            fast_s += worth.fast_busy_s;
            slow_s -= worth.slow_busy_s;
        } else if !is_better {
            left.push(*no);
        }
    }
    left.sort_unstable();
    left
}
