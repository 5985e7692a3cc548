//! `benefit`, the default: what saves most time lies in the fast class, as far as bringing it there pays back.
//!
//! 1. A chunk is worth the time that its reads would take longer in the slow class, by their pattern and the query's depth: random
//!    look-ups are worth much, sequential bytes of an array little or less than nothing. What running queries have [still to read](running) counts
//!    in full; what [likely](history) next ones would read counts by their chance, and no more than it costs to fetch it again then.
//! 2. The most valuable chunks, as many as there is room for, are the target; what is not there yet pays the cost of its copy. Copies go in the
//!    order in which the query comes to them, in tenths of the query, and then by worth; a few are under way at a time, so that each is decided
//!    on with what is known when its turn comes. What the query has passed, and what no longer pays back, is left where it is.
//! 3. Chunks are mirrored, not moved: giving one up costs nothing. The least valuable gives its room up, when it is needed.
//! 4. When nothing is left to do for running queries, the very next ones' chunks are fetched ahead.
//! 5. A query that keeps many I/Os in flight is over when the busier class is: chunks go up until the fast class would be busy for longer.
//! 6. Reads that nothing announced are rent: when it has come to what a copy costs, the chunk is copied, too.
//!
//! Invariant: a chunk that is not in the fast class goes there only with a positive gain.

mod history;
mod ranking;
mod running;

use std::collections::{BTreeMap, BTreeSet};

use self::history::History;
use self::ranking::{Candidate, Ranking};
use self::running::Running;
use super::residency::{Residency, Where};
use super::{Options, Policy};
use crate::Result;
use crate::action::{Action, Decision, Reason, Source};
use crate::event::{Context, Event, Io, IoKind};
use crate::footprint::{Fingerprint, Footprint, QueryId};
use crate::layout::ChunkNo;

/// Copies decided on at once.
const MOST_UNDER_WAY: u32 = 8;

/// The ranking is made anew this often in a query.
const RANKINGS_PER_QUERY: f64 = 24.0;

/// Rent is halved this often, in ticks of a second.
const RENT_HALF_LIFE: u32 = 60;

/// How many times its cost a copy must save: what is expected is not sure.
const PAYBACK: f64 = 1.2;

/// Which targets copies are being made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Running queries.
    Now,
    /// Those that come next.
    Next,
    /// All is where it is wanted, for the time being.
    Rest,
}

#[derive(Debug)]
struct Benefit {
    /// Bytes that may be written to the fast class per second of the trace, in the mean; 0 for no bound.
    write_budget: u64,
    written: u64,
    history: History,
    running: Vec<Running>,
    residency: Residency,
    ranking: Ranking,
    phase: Phase,
    /// I/Os until the next ranking.
    until_ranking: f64,
    rent: BTreeMap<u32, f64>,
    ticks: u32,
    blocked: BTreeSet<u32>,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    let budget = options.value("write-budget", tanada_base::ByteSize::new(0), "bytes a second, like 20MB")?;
    Ok(Box::new(Benefit {
        write_budget: budget.bytes(),
        written: 0,
        history: History::default(),
        running: Vec::new(),
        residency: Residency::default(),
        ranking: Ranking::default(),
        phase: Phase::Rest,
        until_ranking: 0.0,
        rent: BTreeMap::new(),
        ticks: 0,
        blocked: BTreeSet::new(),
    }))
}

impl Benefit {
    fn begin(
        &mut self,
        context: &Context<'_>,
        (query, statement, depth): (QueryId, Fingerprint, u32),
        footprint: &Footprint,
    ) {
        self.history.begins(statement);
        let known = self.history.profile(statement);
        let running = Running::new((query, statement, depth), footprint, known, context.layout);
        self.running.push(running);
        self.blocked.clear();
    }

    fn end(&mut self, query: QueryId) {
        if let Some(place) = self.running.iter().position(|running| running.query == query) {
            let running = self.running.remove(place);
            self.history.ended(running.statement, running.into_profile());
        }
    }

    fn observe(&mut self, io: &Io) {
        if let Some(running) = self.running.iter_mut().find(|running| running.query == io.query) {
            running.note(io);
        }
        if io.kind == IoKind::Write {
            self.residency.written(io.chunk);
        }
    }

    fn rank(&mut self, context: &Context<'_>, phase: Phase) {
        self.phase = phase;
        let likely = self.history.likely();
        self.ranking = Ranking::new(
            context,
            &self.running,
            &self.history,
            &likely,
            &self.residency,
            phase == Phase::Next,
        );
        let expected: f64 = self.running.iter().map(|running| running.ios().1).sum();
        self.until_ranking = (expected / RANKINGS_PER_QUERY).max(256.0);
    }

    /// Decides on the next copies, as many as may be under way.
    fn act(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        while self.residency.under_way() < MOST_UNDER_WAY && self.may_write(context) {
            let Some(candidate) = self.ranking.next() else {
                match self.phase {
                    Phase::Now => self.rank(context, Phase::Next),
                    Phase::Next | Phase::Rest => {
                        self.phase = Phase::Rest;
                        return;
                    }
                }
                continue;
            };
            self.mirror(context, &candidate, decisions);
        }
    }

    fn may_write(&self, context: &Context<'_>) -> bool {
        self.write_budget == 0
            || self.written as f64 <= self.write_budget as f64 * (1.0 + context.now_ns as f64 / 1e9)
    }

    /// Mirrors the candidate, if it still pays and there is or can be room.
    fn mirror(&mut self, context: &Context<'_>, candidate: &Candidate, decisions: &mut Vec<Decision>) {
        let chunk = ChunkNo(candidate.chunk);
        if self.residency.of(chunk) != Where::Slow || self.blocked.contains(&candidate.chunk) {
            return;
        }
        let cost = context.costs.copy_up_s(context.layout.chunk_bytes() as f64);
        let now = self.ranking.now_s(context, &self.running, candidate.chunk);
        let gain = now + candidate.later_s - cost;
        if now + candidate.later_s < cost * PAYBACK {
            return;
        }
        if !self.residency.has_room(context.capacity) {
            let is_there = |no: u32| self.residency.of(ChunkNo(no)) == Where::Mirrored;
            let Some(victim) = self.ranking.victim(context, &self.running, gain, is_there) else { return };
            let reason = Reason::MakesRoom { other: chunk };
            self.residency.decide(Decision::new(ChunkNo(victim), Action::DropMirror, reason), decisions);
        }
        let remaining = self.running.iter().map(|running| running.remaining(candidate.chunk));
        let (random, bytes) = remaining.fold((0.0, 0.0), |sum, left| (sum.0 + left.random, sum.1 + left.bytes));
        let reason = if candidate.is_rented {
            Reason::Rented { spent_s: candidate.later_s as f32, cost_s: cost as f32 }
        } else if now > 0.0 {
            Reason::Expected { random, sequential_bytes: bytes, cost_s: cost as f32 }
        } else {
            Reason::Likely { percent: candidate.chance_percent, saves_s: candidate.later_s as f32 }
        };
        self.written += context.layout.chunk_bytes();
        let decision = Decision {
            order: candidate.order,
            gain_s: gain as f32,
            ..Decision::new(chunk, Action::Mirror(Source::Copy), reason)
        };
        self.residency.decide(decision, decisions);
    }

    /// A read from the slow class that no running query was expected to do.
    fn pay_rent(&mut self, context: &Context<'_>, io: &Io, decisions: &mut Vec<Decision>) {
        let expects = |running: &Running| running.is_expected(io.chunk.0);
        if self.residency.of(io.chunk) != Where::Slow || self.running.iter().any(expects) {
            return;
        }
        let depth = self.running.iter().find(|running| running.query == io.query).map_or(1, |running| running.depth);
        let (random, bytes) = if io.is_sequential { (0.0, f64::from(io.bytes)) } else { (1.0, 0.0) };
        let rent = self.rent.entry(io.chunk.0).or_default();
        *rent += context.costs.saved_s(random, bytes, depth).max(0.0);
        let cost = context.costs.copy_up_s(context.layout.chunk_bytes() as f64);
        let later_s = *rent;
        if later_s > cost * PAYBACK && self.residency.under_way() < MOST_UNDER_WAY && self.may_write(context) {
            self.rent.remove(&io.chunk.0);
            let candidate =
                Candidate { chunk: io.chunk.0, order: 0, later_s, chance_percent: 0, is_rented: true };
            self.mirror(context, &candidate, decisions);
        }
    }

    fn tick(&mut self) {
        self.ticks += 1;
        if self.ticks.is_multiple_of(RENT_HALF_LIFE) {
            self.rent.values_mut().for_each(|rent| *rent /= 2.0);
            self.rent.retain(|_, rent| *rent > 1e-5);
        }
    }
}

impl Policy for Benefit {
    fn name(&self) -> &'static str {
        "benefit"
    }

    fn learns(&self) -> bool {
        true
    }

    fn train(&mut self, context: &Context<'_>, event: &Event<'_>) {
        match event {
            Event::QueryBegins { query, fingerprint, depth, footprint } => {
                self.begin(context, (*query, *fingerprint, *depth), footprint);
            }
            Event::QueryEnds { query } => self.end(*query),
            Event::Io(io) => self.observe(io),
            Event::Evicted { .. } | Event::Done { .. } | Event::Tick => {}
        }
    }

    fn prepare(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        self.running.clear();
        let likely = self.history.likely();
        for (candidate, value) in ranking::beforehand(context, &self.history, &likely) {
            let percent = candidate.chance_percent;
            let reason = Reason::Likely { percent, saves_s: value as f32 };
            let mirror = Decision {
                gain_s: value as f32,
                ..Decision::new(ChunkNo(candidate.chunk), Action::Mirror(Source::Copy), reason)
            };
            self.residency.decide(mirror, decisions);
        }
    }

    fn handle(&mut self, context: &Context<'_>, event: &Event<'_>, decisions: &mut Vec<Decision>) {
        match event {
            Event::Io(io) => {
                self.observe(io);
                if io.kind == IoKind::Read {
                    self.pay_rent(context, io, decisions);
                }
                self.until_ranking -= 1.0;
                if self.until_ranking <= 0.0 && !self.running.is_empty() {
                    self.rank(context, Phase::Now);
                    self.act(context, decisions);
                }
            }
            Event::QueryBegins { query, fingerprint, depth, footprint } => {
                self.begin(context, (*query, *fingerprint, *depth), footprint);
                self.rank(context, Phase::Now);
                self.drop_what_saturates(context, decisions);
                self.act(context, decisions);
            }
            Event::QueryEnds { query } => {
                self.end(*query);
                self.rank(context, Phase::Now);
                self.act(context, decisions);
            }
            Event::Done { chunk, action, is_done } => {
                self.residency.done(*chunk, *action, *is_done);
                if !is_done {
                    self.blocked.insert(chunk.0);
                }
                self.act(context, decisions);
            }
            Event::Tick => {
                self.tick();
                self.act(context, decisions);
            }
            Event::Evicted { .. } => {}
        }
    }
}

impl Benefit {
    /// Mirrors that would keep the fast class busy for longer than the slow one are given up.
    fn drop_what_saturates(&mut self, _: &Context<'_>, decisions: &mut Vec<Decision>) {
        for no in std::mem::take(&mut self.ranking.saturating) {
            if self.residency.of(ChunkNo(no)) == Where::Mirrored {
                let drop = Decision::new(ChunkNo(no), Action::DropMirror, Reason::Saturated);
                self.residency.decide(drop, decisions);
            }
        }
    }
}
