//! Which chunks are worth the room of the fast class, and in which order they are copied.
//!
//! 1. Every chunk that anybody may read gets its worth: what it saves soon, nearer reads counting more, and what it
//!    saves in all.
//! 2. Where room is scarce, soon is what counts: a chunk that is needed later can be fetched later, in exchange for one
//!    that is not needed any more. What it saves in all only decides between equals.
//! 3. Those that are there already are worth that; the others less the cost of a copy. The best are the target.
//! 4. With many I/Os in flight, both classes work at once: chunks are added as long as what both take
//!    [together](super::balance) falls.
//! 5. What is in the target and not there is copied, by the segment in which it is read first, and in a segment by its
//!    place: a disk reads neighbours in one sweep, which takes a third of the time.
//! 6. What is there and not in the target may be a victim, the least worth first.
//! 7. What a pin keeps where it is is neither copied nor a victim; what is pinned to the fast class has its part in
//!    what keeps that busy.

use std::collections::{BTreeMap, HashMap};

use super::super::quotas::Quotas;
use super::super::residency::{Residency, Where};
use super::balance::{Busy, Pressure, compared};
use super::history::{History, Profile};
use super::running::{HORIZON, Running, horizon, nearness, weighted};
use crate::costs::{Load, Reads};
use crate::event::Context;
use crate::footprint::Fingerprint;
use crate::layout::{ChunkNo, Tier};

/// What a chunk that is given up is worth later, at most: this many copies.
const MOST_COPIES: f64 = 2.0;

/// Statements that are less likely are not prepared for.
const LEAST_CHANCE: f64 = 0.05;

/// What all that comes later counts against what comes soon.
const LATER: f64 = 0.01;

/// Which worth counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// What comes soon.
    Soon,
    /// All that running queries have left, and the very next ones.
    All,
}

/// A chunk to be copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) chunk: u32,
    /// Its place in the order of copies.
    pub(super) order: u32,
    /// Seconds that it is worth, without its cost.
    pub(super) worth_s: f64,
    /// The chance of what it is worth for later queries.
    pub(super) chance_percent: u32,
}

/// A chunk's worth, in seconds.
#[derive(Debug, Clone, Copy, Default)]
struct Worth {
    soon_s: f64,
    all_s: f64,
    later_s: f64,
    first: u32,
    chance: f64,
    is_there: bool,
    /// Seconds that running queries keep either class busy with it, if it lies there.
    busy: Busy,
}

impl Worth {
    fn of(&self, view: View) -> f64 {
        match view {
            View::Soon => self.soon_s + LATER * (self.all_s + self.later_s),
            View::All => self.soon_s.max(self.all_s) + self.later_s,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Ranking {
    /// The next last.
    copies: Vec<Candidate>,
    /// With what they are worth, the least worth last.
    victims: Vec<(u32, f64)>,
    /// Chunks that were weighed.
    chunks: usize,
}

/// What is known of a moment.
pub(super) struct Moment<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) pressure: Pressure,
    /// Nanoseconds until a copy that begins now is there.
    pub(super) lead_ns: f64,
    pub(super) running: &'a [Running],
    pub(super) history: &'a History,
    /// Statement, chance to be the very next, chance to come within the horizon.
    pub(super) likely: &'a [(Fingerprint, f64, f64)],
}

impl Moment<'_> {
    fn saved_s(&self, reads: &Reads, load: Load) -> f64 {
        self.pressure.saved_s(self.context.costs, reads, load)
    }

    /// Of all chunks that anybody may read, and of those that are there.
    fn worths(&self, present: impl Iterator<Item = u32>) -> HashMap<u32, Worth> {
        let unread = Worth { first: u32::MAX, ..Worth::default() };
        let there = present.map(|no| (no, Worth { is_there: true, ..unread }));
        let mut worths: HashMap<u32, Worth> = there.collect();
        let costs = self.context.costs;
        for query in self.running {
            let load = query.load(self.pressure);
            for (segment, weight, ahead) in query.ahead(self.lead_ns) {
                for (no, uses) in segment {
                    let worth = worths.entry(*no).or_insert(unread);
                    let weight = if worth.is_there { weight.now } else { weight.then };
                    worth.soon_s += self.saved_s(uses, load) * f64::from(weight);
                    worth.first = worth.first.min(ahead as u32);
                }
            }
            for (no, uses) in query.left() {
                let worth = worths.entry(no).or_insert(unread);
                worth.all_s += self.saved_s(&uses, load);
                worth.busy = worth.busy.plus(costs.slow.busy_s(&uses, load), costs.fast.busy_s(&uses, load));
            }
        }
        self.add_later(&mut worths);
        worths
    }

    fn add_later(&self, worths: &mut HashMap<u32, Worth>) {
        let unread = Worth { first: u32::MAX, ..Worth::default() };
        let copy_s = self.pressure.copy_up_s(self.context.costs, self.context.layout.chunk_bytes() as f64);
        let depth = self.pressure.deepest;
        let ahead = self
            .running
            .iter()
            .map(|query| (query.segments_ahead(), nearness(query.depth, query.segment_ios())));
        let (until_next, nearness_until) = ahead.min_by_key(|(ahead, _)| *ahead).unwrap_or((0, 1.0));
        for (statement, next, soon) in self.likely.iter().filter(|(_, _, soon)| *soon >= LEAST_CHANCE) {
            let Some(profile) = self.history.profile(*statement) else { continue };
            let load = profile.load(self.pressure.depth);
            for (no, uses) in &profile.totals {
                let saves = self.saved_s(uses, load);
                let worth = worths.entry(*no).or_insert(unread);
                worth.later_s += (soon * saves.min(MOST_COPIES * copy_s)).max(next * saves);
                worth.chance = worth.chance.max(*soon);
            }
            if until_next >= HORIZON || *next < LEAST_CHANCE {
                continue;
            }
            let nearness = nearness(depth, profile.segment_ios);
            let distance = nearness_until.powi(until_next as i32 + 1);
            let segments = profile.segments.iter().take(horizon(profile.segment_ios));
            for (segment, weight, ahead) in weighted(segments, 1.0, nearness) {
                for (no, uses) in segment {
                    let worth = worths.entry(*no).or_insert(unread);
                    worth.soon_s += self.saved_s(uses, load) * f64::from(weight * distance) * next;
                    worth.first = worth.first.min((until_next + 1 + ahead) as u32);
                }
            }
        }
    }

    /// What holds on the way from how it lies to how all that running queries have left lies best.
    pub(super) fn pressure(&self, residency: &Residency) -> Pressure {
        let balance = self.pressure.balance();
        let mut chunks: BTreeMap<u32, (Busy, Reads)> = BTreeMap::new();
        for query in self.running {
            let (costs, load) = (self.context.costs, query.load(self.pressure));
            for (no, reads) in query.left() {
                let (busy, sum) = chunks.entry(no).or_default();
                *busy = busy.plus(costs.slow.busy_s(&reads, load), costs.fast.busy_s(&reads, load));
                *sum = sum.plus(reads, 1.0);
            }
        }
        let is_pinned_there = |no: u32| self.context.layout.is_pinned_to(ChunkNo(no), Tier::Fast);
        let mut present = Busy::default();
        for (no, (busy, _)) in &chunks {
            let is_there = residency.of(ChunkNo(*no)) != Where::Slow || is_pinned_there(*no);
            present = if is_there { present.plus(0.0, busy.fast_s) } else { present.plus(busy.slow_s, 0.0) };
        }
        let (pinned, others): (Vec<_>, Vec<_>) = chunks.into_iter().partition(|(no, _)| is_pinned_there(*no));
        let mut chunks: Vec<(Busy, Reads)> = others.into_iter().map(|(_, chunk)| chunk).collect();
        chunks.sort_by(|(a, _), (b, _)| (b.slow_s - b.fast_s).total_cmp(&(a.slow_s - a.fast_s)));
        let mut busy = Busy {
            slow_s: chunks.iter().map(|(chunk, _)| chunk.slow_s).sum(),
            fast_s: pinned.iter().map(|(_, (chunk, _))| chunk.fast_s).sum(),
        };
        let mut room = self.context.capacity;
        let mut left = Reads::default();
        for (chunk, reads) in chunks {
            let then = busy.plus(-chunk.slow_s, chunk.fast_s);
            if room > 0 && balance.seconds(then) < balance.seconds(busy) {
                busy = then;
                room -= 1;
            } else {
                left = left.plus(reads, 1.0);
            }
        }
        // One after the other leaves a disk the time to read ahead.
        let meets = 1.0 - 1.0 / f64::from(self.pressure.depth);
        let interference = meets * f64::from(left.random) / left.ios().max(1.0);
        let weights = balance.weights_between(present, busy);
        let copies = self.pressure.held_up_by_copies(busy);
        Pressure { interference, weights, copies, ..self.pressure }
    }

    /// Chunks that are better left to the slow class, because the fast one has more to do; by number. What is pinned
    /// there keeps it busy for `pinned_s`.
    fn saturating(&self, ranked: &[(u32, Worth)], pinned_s: f64) -> Vec<u32> {
        let balance = self.pressure.balance();
        if balance.is_sum() {
            return Vec::new();
        }
        let (costs, bytes) = (self.context.costs, self.context.layout.chunk_bytes() as f64);
        let copy = Busy { slow_s: bytes * costs.slow.chunk_read_s, fast_s: bytes * costs.fast.chunk_write_s };
        let slow_s = ranked.iter().map(|(_, worth)| worth.busy.slow_s).sum();
        let mut busy = Busy { slow_s, fast_s: pinned_s };
        let mut room = self.context.capacity;
        let mut left = Vec::new();
        for (no, worth) in ranked.iter().filter(|(_, worth)| worth.busy.slow_s > 0.0) {
            let copy = if worth.is_there { Busy::default() } else { copy };
            let then = busy.plus(copy.slow_s - worth.busy.slow_s, copy.fast_s + worth.busy.fast_s);
            if balance.seconds(then) >= balance.seconds(busy) {
                left.push(*no);
            } else if room > 0 {
                room -= 1;
                busy = then;
            }
        }
        left.sort_unstable();
        left
    }

    /// Whether no pin keeps it where it is.
    fn allows(&self, no: u32) -> bool {
        !self.context.layout.is_pinned(ChunkNo(no))
    }

    /// Statements that are likely to come, with all of their chunks in the slow class.
    fn ahead(&self) -> Vec<Ahead<'_>> {
        let likely = self.likely.iter().filter(|(_, _, soon)| *soon >= LEAST_CHANCE);
        let ahead = likely.filter_map(|(statement, next, soon)| {
            let profile = self.history.profile(*statement)?;
            let load = profile.load(self.pressure.depth);
            let chunks = profile.totals.values().map(|uses| compared(self.context.costs, uses, load).slow_s);
            let busy = Busy { slow_s: chunks.sum(), fast_s: 0.0 };
            Some(Ahead { profile, chance: soon.max(*next), load, busy })
        });
        ahead.collect()
    }

    /// What is best put into the fast class before anything runs, when that costs nothing; most worth first, and as
    /// long as it shortens what both classes take [together](super::balance). If there is room then for most of what is
    /// left, that goes there, too, unless leaving it makes good for the way of the disks' heads to it.
    pub(super) fn beforehand(&self) -> Vec<Candidate> {
        let worths = self.worths(std::iter::empty()).into_iter();
        let worth_s = |worth: &Worth| worth.soon_s + worth.later_s;
        let mut ranked: Vec<(u32, Worth)> = worths.filter(|(no, _)| self.allows(*no)).collect();
        ranked.sort_by(|a, b| worth_s(&b.1).total_cmp(&worth_s(&a.1)).then(a.0.cmp(&b.0)));
        let mut ahead = self.ahead();
        let (mut chosen, mut left) = (Vec::new(), Vec::new());
        for (no, worth) in ranked {
            let saves = |statement: &Ahead<'_>| statement.saves_s(no, self);
            if worth_s(&worth) > 0.0 && ahead.iter().map(saves).sum::<f64>() > 0.0 {
                ahead.iter_mut().for_each(|statement| statement.busy = statement.with(no, self));
                chosen.push((no, worth));
            } else {
                left.push((no, worth));
            }
        }
        // By their worth, which is less than nothing, those that are read most would be left out.
        let ios = |no: u32| -> f64 { ahead.iter().map(|statement| statement.ios(no)).sum() };
        left.sort_by(|a, b| ios(b.0).total_cmp(&ios(a.0)).then(a.0.cmp(&b.0)));
        let room = (self.context.capacity as usize).saturating_sub(chosen.len()).min(left.len());
        let numbers: Vec<u32> = left.iter().map(|(no, _)| *no).collect();
        let loses = |statement: &Ahead<'_>| statement.loses_s(numbers.split_at(room), self);
        // What is free is worth more for copies while most of it lies there in any case.
        if 2 * room > left.len() && ahead.iter().map(loses).sum::<f64>() > 0.0 {
            chosen.extend(left.drain(..room));
        }
        let mut ranked = chosen;
        let mut quotas = Quotas::new(self.context.layout);
        ranked.retain(|(no, _)| quotas.takes(ChunkNo(*no)));
        ranked.truncate(self.context.capacity as usize);
        ranked.into_iter().map(|(no, worth)| candidate(no, &worth, worth_s(&worth))).collect()
    }
}

/// A statement that is likely to come, and what it keeps the classes busy with.
struct Ahead<'a> {
    profile: &'a Profile,
    chance: f64,
    load: Load,
    busy: Busy,
}

impl Ahead<'_> {
    /// With the chunk in the fast class, too.
    fn with(&self, no: u32, moment: &Moment<'_>) -> Busy {
        let Some(uses) = self.profile.totals.get(&no) else { return self.busy };
        let chunk = compared(moment.context.costs, uses, self.load);
        self.busy.plus(-chunk.slow_s, chunk.fast_s)
    }

    fn saves_s(&self, no: u32, moment: &Moment<'_>) -> f64 {
        let balance = moment.pressure.balance();
        self.chance * (balance.seconds(self.busy) - balance.seconds(self.with(no, moment)))
    }

    /// I/Os of the chunk that are likely.
    fn ios(&self, no: u32) -> f64 {
        self.chance * self.profile.totals.get(&no).map_or(0.0, Reads::ios)
    }

    /// What it loses if the first of `left` stay in the slow class as the others do: the way to them, if it reads none
    /// of the others, without the time that the fast class would have for them.
    fn loses_s(&self, left: (&[u32], &[u32]), moment: &Moment<'_>) -> f64 {
        let reads = |no: &u32| self.profile.totals.contains_key(no);
        if !left.0.iter().any(reads) {
            return 0.0;
        }
        let balance = moment.pressure.balance();
        let all = left.0.iter().fold(self.busy, |busy, no| Ahead { busy, ..*self }.with(*no, moment));
        let saved_s = balance.seconds(all) - balance.seconds(self.busy);
        let way_s = if left.1.iter().any(reads) { 0.0 } else { moment.context.costs.slow.random_s(1) };
        self.chance * (way_s - saved_s)
    }
}

fn candidate(no: u32, worth: &Worth, worth_s: f64) -> Candidate {
    let chance_percent = (worth.chance * 100.0).round() as u32;
    Candidate { chunk: no, order: worth.first, worth_s, chance_percent }
}

impl Ranking {
    pub(super) fn new(moment: &Moment<'_>, residency: &Residency, view: View) -> Ranking {
        let context = moment.context;
        let copy_s = moment.pressure.copy_up_s(context.costs, context.layout.chunk_bytes() as f64);
        let worths = moment.worths(residency.present());
        let chunks = worths.len();
        let score = |worth: &Worth| worth.of(view) - if worth.is_there { 0.0 } else { copy_s };
        let (mut ranked, pinned): (Vec<(u32, Worth)>, Vec<_>) =
            worths.into_iter().partition(|(no, _)| moment.allows(*no));
        ranked.sort_by(|a, b| score(&b.1).total_cmp(&score(&a.1)).then(a.0.cmp(&b.0)));
        let is_pinned_there = |no: u32| context.layout.is_pinned_to(ChunkNo(no), Tier::Fast);
        let pinned = pinned.iter().filter(|(no, _)| is_pinned_there(*no));
        let saturating = moment.saturating(&ranked, pinned.map(|(_, worth)| worth.busy.fast_s).sum());
        let mut ranking = Ranking { chunks, ..Ranking::default() };
        let mut room = context.capacity;
        let mut quotas = Quotas::new(context.layout);
        for (no, worth) in &ranked {
            let is_saturating = saturating.binary_search(no).is_ok();
            let is_target = room > 0
                && score(worth) > 0.0
                && (worth.is_there || !is_saturating)
                && quotas.takes(ChunkNo(*no));
            room -= u32::from(is_target);
            match (worth.is_there, is_target) {
                (true, false) => {
                    // What is fetched ahead does not take the place of what is needed soon.
                    if view == View::Soon || worth.soon_s < copy_s {
                        ranking.victims.push((*no, worth.of(view)));
                    }
                }
                (false, true) => ranking.copies.push(candidate(*no, worth, worth.of(view))),
                (true, true) | (false, false) => {}
            }
        }
        // Within a segment by their place: neighbours are read in one sweep.
        ranking.copies.sort_by_key(|candidate| (candidate.order, candidate.chunk));
        ranking.copies.reverse();
        ranking
    }

    /// Chunks that were weighed for it.
    pub(super) fn chunks(&self) -> usize {
        self.chunks
    }

    /// The next chunk to be copied.
    pub(super) fn next(&mut self) -> Option<Candidate> {
        self.copies.pop()
    }

    /// As [`victim`](Self::victim), of those that `makes_room` says.
    pub(super) fn victim_among(&mut self, gain_s: f64, makes_room: impl Fn(u32) -> bool) -> Option<u32> {
        let place = self.victims.iter().rposition(|(no, _)| makes_room(*no))?;
        (self.victims[place].1 < gain_s).then(|| self.victims.remove(place).0)
    }

    /// The chunk to give its room to one that gains `gain_s`, if any is worth less.
    pub(super) fn victim(&mut self, gain_s: f64, is_there: impl Fn(u32) -> bool) -> Option<u32> {
        while let Some((no, worth_s)) = self.victims.last().copied() {
            if !is_there(no) {
                self.victims.pop();
                continue;
            }
            if worth_s >= gain_s {
                return None;
            }
            self.victims.pop();
            return Some(no);
        }
        None
    }
}
