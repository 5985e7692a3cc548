//! `benefit`, the default: what saves most time lies in the fast class, as far as bringing it there pays back.
//!
//! 1. A chunk is worth the time that its reads would take longer in the slow class, by their pattern and the query's
//!    depth: random look-ups are worth much, sequential bytes of an array little or less than nothing. What running
//!    queries [read soon](running) counts most; what [likely](history) next ones would read counts by their chance, and
//!    no more than it costs to fetch it again then.
//! 2. The [most valuable](ranking) chunks, as many as there is room for, are the target; what is not there yet pays the
//!    cost of its copy. Copies go in the order in which the query comes to them, and then by place; a few are under way
//!    at a time, so that each is decided on with what is known when its turn comes. A copy costs what it holds queries
//!    up: [its share](balance) of a class, from those who are there. What the query has passed, and what no longer pays
//!    back, is left where it is.
//! 3. Chunks are mirrored, not moved: giving one up costs nothing. The least valuable gives its room up, when it is
//!    needed.
//! 4. When nothing is left to do soon, what running and the very next queries need later is fetched ahead, into room
//!    that nothing needs soon.
//! 5. A query that keeps many I/Os in flight is over when the busier class is: no further chunks go up once the fast
//!    class has more to do, and least of all those that the slow class reads quickly.
//! 6. Reads that nothing announced are rent: when it has come to what a copy costs, the chunk is copied, too.
//! 7. Rankings are made anew as a query goes on, as often as its I/Os [pay for](due) them; on a volume they wait for
//!    whoever is asked to [`think`](Policy::think), so that who tells of a read does not make one.
//!
//! Invariant: a chunk that is not in the fast class goes there only with a positive gain.

mod balance;
mod due;
mod ends;
mod history;
mod ranking;
mod running;
mod smooth;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use tanada_base::ByteSize;

use self::balance::Pressure;
use self::due::Due;
use self::history::History;
use self::ranking::{Candidate, Moment, Ranking, View};
use self::running::Running;
use super::quotas::{Present, is_of};
use super::residency::{Residency, Where};
use super::{Options, Policy};
use crate::Result;
use crate::action::{Action, Decision, Reason, Source};
use crate::costs::{Load, Reads};
use crate::event::{Context, Event, Io, IoKind};
use crate::footprint::{Fingerprint, Footprint, QueryId};
use crate::layout::ChunkNo;
use crate::memory::Memory;

/// Copies decided on at once.
const MOST_UNDER_WAY: u32 = 4;

/// Rent is halved this often, in ticks of a second.
const RENT_HALF_LIFE: u32 = 60;

/// How many times its cost a copy must save: what is expected is not sure.
const PAYBACK: f64 = 1.2;

/// How much the newest copy counts in the mean time that they take.
const NEWEST_COPY: f64 = 0.1;

/// What the gain of an exchange counts as long as expectations do not come true.
const DOUBT: f64 = 0.5;

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

#[derive(Debug, Clone)]
struct Benefit {
    /// Bytes that may be written to the fast class per second, in the mean since the policy began.
    write_budget: u64,
    written: u64,
    began_ns: u64,
    history: History,
    running: Vec<Running>,
    residency: Residency,
    ranking: Ranking,
    phase: Phase,
    pressure: Pressure,
    /// When each copy under way was decided on, and how long they take in the mean.
    decided_ns: BTreeMap<u32, u64>,
    copy_ns: f64,
    /// Until a copy that begins now is there, as far as that is to be reckoned with.
    lead_ns: f64,
    /// How far the last query's expectations came true.
    trust: f64,
    /// I/Os that the query which began last keeps in flight; one until there was any.
    usual_depth: u32,
    due: Due,
    /// Rankings are left to [`Policy::think`],
    defers: bool,
    /// which has this one to make,
    due_phase: Option<Phase>,
    /// or one as soon as it is paid for, though nothing happens until then: the last query has ended before it was.
    is_owed: bool,
    rent: BTreeMap<u32, f64>,
    ticks: u32,
    blocked: BTreeSet<u32>,
}

pub(super) fn make(options: &mut Options, _: u64) -> Result<Box<dyn Policy>> {
    const BUDGET: &str = "bytes a second, like 20MB; without it there is no bound";
    let budget = options.value("write-budget", ByteSize::new(u64::MAX), BUDGET)?;
    if budget.bytes() == 0 {
        return Err(options.wrong("write-budget", "0", BUDGET));
    }
    Ok(Box::new(Benefit {
        write_budget: budget.bytes(),
        written: 0,
        began_ns: 0,
        history: History::default(),
        running: Vec::new(),
        residency: Residency::default(),
        ranking: Ranking::default(),
        phase: Phase::Rest,
        pressure: Pressure::default(),
        decided_ns: BTreeMap::new(),
        copy_ns: 0.0,
        lead_ns: 0.0,
        trust: 0.0,
        usual_depth: 1,
        due: Due::default(),
        defers: false,
        due_phase: None,
        is_owed: false,
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
        self.usual_depth = depth;
        let known = self.history.profile(statement);
        let running = Running::new((query, statement, depth), footprint, known, self.trust, context.layout);
        self.running.push(running);
        self.blocked.clear();
    }

    fn end(&mut self, query: QueryId) {
        if let Some(place) = self.running.iter().position(|running| running.query == query) {
            let running = self.running.remove(place);
            self.trust = running.trust().unwrap_or(self.trust);
            self.history.ended(running.statement, running.into_profile());
        }
    }

    /// Notes an I/O; whether it goes on where an earlier one ended.
    fn observe(&mut self, context: &Context<'_>, io: &Io) -> bool {
        if io.kind == IoKind::Write {
            self.residency.written(io.chunk);
        }
        let running = self.running.iter_mut().find(|running| running.query == io.query);
        running.map_or(io.is_sequential, |running| {
            running.note(context.now_ns, context.layout.chunk_bytes(), io)
        })
    }

    /// What holds for what is under way; if nothing is, for what would come next, taken to be like what began last.
    fn unweighted(&self) -> Pressure {
        match self.running.is_empty() {
            true => Pressure::new(std::iter::once(self.usual_depth)),
            false => Pressure::new(self.running.iter().map(|running| running.depth)),
        }
    }

    fn rank(&mut self, context: &Context<'_>, phase: Phase) {
        self.phase = phase;
        let likely = self.history.likely();
        let (running, history) = (&self.running[..], &self.history);
        let pressure = self.unweighted();
        let moment = Moment { context, pressure, lead_ns: 0.0, running, history, likely: &likely };
        self.pressure = moment.pressure(&self.residency);
        // Copies wait where the slow class has much to do.
        self.lead_ns = self.copy_ns * (1.0 - self.pressure.weights.fast_s);
        let moment = Moment { lead_ns: self.lead_ns, pressure: self.pressure, ..moment };
        let view = if phase == Phase::Now { View::Soon } else { View::All };
        self.ranking = Ranking::new(&moment, &self.residency, view);
        let segment = self.running.iter().map(Running::segment_ios).fold(f64::INFINITY, f64::min);
        self.due.ranked(context.now_ns, segment, self.ranking.chunks());
        (self.due_phase, self.is_owed) = (None, false);
    }

    /// What is to lie where has changed: a ranking, now or as soon as there is time for it.
    fn reconsider(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        if self.defers {
            self.due_phase = Some(Phase::Now);
        } else {
            self.rank(context, Phase::Now);
            self.act(context, decisions);
        }
    }

    /// Decides on the next copies, as many as may be under way.
    fn act(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        let mut present = Present::default();
        while self.residency.under_way() < MOST_UNDER_WAY && self.may_write(context) {
            let Some(candidate) = self.ranking.next() else {
                match self.phase {
                    Phase::Now if self.defers => {
                        self.due_phase.get_or_insert(Phase::Next);
                        return;
                    }
                    Phase::Now => self.rank(context, Phase::Next),
                    Phase::Next | Phase::Rest => {
                        self.phase = Phase::Rest;
                        return;
                    }
                }
                continue;
            };
            self.mirror(context, &candidate, (false, &mut present), decisions);
        }
    }

    /// Seconds that the chunk saves running queries soon.
    fn near_s(&self, context: &Context<'_>, chunk: ChunkNo) -> f64 {
        let saved = |query: &Running| {
            let reads = query.near(chunk.0, self.lead_ns);
            self.pressure.saved_s(context.costs, &reads, query.load(self.pressure))
        };
        self.running.iter().map(saved).sum()
    }

    /// Whether the write budget leaves something: that of the time since the policy began, and of a second in advance.
    fn may_write(&self, context: &Context<'_>) -> bool {
        let passed_ns = context.now_ns.saturating_sub(self.began_ns);
        self.written as f64 <= self.write_budget as f64 * (1.0 + passed_ns as f64 / 1e9)
    }

    /// Mirrors the candidate, if it still pays and there is or can be room.
    fn mirror(
        &mut self,
        context: &Context<'_>,
        candidate: &Candidate,
        (is_rented, present): (bool, &mut Present),
        decisions: &mut Vec<Decision>,
    ) {
        let chunk = ChunkNo(candidate.chunk);
        let is_out = self.blocked.contains(&candidate.chunk) || context.layout.is_pinned(chunk);
        if self.residency.of(chunk) != Where::Slow || is_out {
            return;
        }
        let cost = self.pressure.copy_up_s(context.costs, context.layout.chunk_bytes() as f64);
        // What counted for the ranking may be behind the query by now.
        let worth = if is_rented || self.phase == Phase::Next {
            candidate.worth_s
        } else {
            self.near_s(context, chunk)
        };
        if worth < cost * PAYBACK {
            return;
        }
        let full = present.used_up(context.layout, &self.residency, chunk);
        if full.is_some() || !self.residency.has_room(context.capacity) {
            let is_there = |no: u32| self.residency.of(ChunkNo(no)) == Where::Mirrored;
            let is_believed = self.running.iter().all(Running::is_believed);
            let gain = (worth - cost) * if is_believed { 1.0 } else { DOUBT };
            let victim = match full {
                Some(object) => {
                    let is_of = |no: u32| is_there(no) && is_of(context.layout, ChunkNo(no), object);
                    self.ranking.victim_among(gain, is_of)
                }
                None => self.ranking.victim(gain, is_there),
            };
            let Some(victim) = victim else { return };
            let reason = Reason::MakesRoom { other: chunk };
            self.residency.decide(Decision::new(ChunkNo(victim), Action::DropMirror, reason), decisions);
            present.went(context.layout, ChunkNo(victim));
        }
        let left = self.running.iter().map(|running| running.left_of(candidate.chunk));
        let left = left.fold(Reads::default(), |sum, left| sum.plus(left, 1.0));
        let cost_s = cost as f32;
        let reason = if is_rented {
            Reason::Rented { spent_s: candidate.worth_s as f32, cost_s }
        } else if left != Reads::default() {
            Reason::Expected { random: left.random + left.close, sequential_bytes: left.bytes, cost_s }
        } else {
            Reason::Likely { percent: candidate.chance_percent, saves_s: candidate.worth_s as f32 }
        };
        let gain = worth - cost;
        self.written += context.layout.chunk_bytes();
        let decision = Decision {
            order: candidate.order,
            gain_s: gain as f32,
            ..Decision::new(chunk, Action::Mirror(Source::Copy), reason)
        };
        self.decided_ns.insert(chunk.0, context.now_ns);
        self.residency.decide(decision, decisions);
        present.came(context.layout, chunk);
    }

    /// A read from the slow class that no running query was expected to do.
    fn pay_rent(&mut self, context: &Context<'_>, io: &Io, goes_on: bool, decisions: &mut Vec<Decision>) {
        let expects = |running: &Running| running.is_expected(io.chunk.0);
        let is_there = self.residency.of(io.chunk) != Where::Slow;
        if is_there || context.layout.is_pinned(io.chunk) || self.running.iter().any(expects) {
            return;
        }
        let running = self.running.iter().find(|running| running.query == io.query);
        let load = running.map_or(Load::IN_ORDER, |running| running.load(self.pressure));
        let reads = if goes_on { Reads::sequential(1.0, io.bytes as f32) } else { Reads::random(1.0) };
        let rent = self.rent.entry(io.chunk.0).or_default();
        *rent += self.pressure.saved_s(context.costs, &reads, load).max(0.0);
        let cost = self.pressure.copy_up_s(context.costs, context.layout.chunk_bytes() as f64);
        let later_s = *rent;
        if later_s > cost * PAYBACK && self.residency.under_way() < MOST_UNDER_WAY && self.may_write(context)
        {
            self.rent.remove(&io.chunk.0);
            let candidate = Candidate { chunk: io.chunk.0, order: 0, worth_s: later_s, chance_percent: 0 };
            self.mirror(context, &candidate, (true, &mut Present::default()), decisions);
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

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
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
            Event::Io(io) => {
                self.observe(context, io);
            }
            Event::Evicted { .. } | Event::Done { .. } | Event::Tick => {}
        }
    }

    fn memory(&self) -> Memory {
        Memory { trust: self.trust, ..self.history.memory() }
    }

    fn remember(&mut self, memory: Memory) {
        self.trust = self.trust.max(memory.trust);
        self.history.remember(memory);
    }

    fn runs_of(&self, statement: Fingerprint) -> u32 {
        self.history.runs_of(statement)
    }

    fn prepare(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        self.running.clear();
        self.began_ns = context.now_ns;
        let likely = self.history.likely();
        let pressure = self.unweighted();
        let moment =
            Moment { context, pressure, lead_ns: 0.0, running: &[], history: &self.history, likely: &likely };
        for candidate in moment.beforehand() {
            if !self.may_write(context) {
                break;
            }
            self.written += context.layout.chunk_bytes();
            let (percent, value) = (candidate.chance_percent, candidate.worth_s);
            let reason = Reason::Likely { percent, saves_s: value as f32 };
            let mirror = Decision {
                gain_s: value as f32,
                ..Decision::new(ChunkNo(candidate.chunk), Action::Mirror(Source::Copy), reason)
            };
            self.residency.decide(mirror, decisions);
        }
    }

    /// Statements that are likely to come are prepared for as at the end of a query: within the room, if it pays back,
    /// as fast as may be written.
    fn begin_session(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        self.running.clear();
        self.began_ns = context.now_ns;
        self.rank(context, Phase::Next);
        self.act(context, decisions);
    }

    fn defer(&mut self) {
        self.defers = true;
    }

    fn wants_to_think(&self) -> bool {
        self.due_phase.is_some()
    }

    fn thinks_at_ns(&self) -> Option<u64> {
        (self.is_owed && self.running.is_empty()).then(|| self.due.paid_ns())
    }

    fn think(&mut self, context: &Context<'_>, decisions: &mut Vec<Decision>) {
        let is_paid = self.thinks_at_ns().is_some_and(|at_ns| context.now_ns >= at_ns);
        let Some(phase) = self.due_phase.take().or(is_paid.then_some(Phase::Now)) else { return };
        let defers = std::mem::replace(&mut self.defers, false);
        self.rank(context, phase);
        self.act(context, decisions);
        self.defers = defers;
    }

    fn handle(&mut self, context: &Context<'_>, event: &Event<'_>, decisions: &mut Vec<Decision>) {
        match event {
            Event::Io(io) => {
                let goes_on = self.observe(context, io);
                if io.kind == IoKind::Read {
                    self.pay_rent(context, io, goes_on, decisions);
                }
                if self.due.after_io(context.now_ns) && !self.running.is_empty() {
                    self.reconsider(context, decisions);
                }
            }
            Event::QueryBegins { query, fingerprint, depth, footprint } => {
                self.begin(context, (*query, *fingerprint, *depth), footprint);
                let expected_ios = self.running.last().map_or(0.0, Running::expected_ios);
                if self.due.at_turn(context.now_ns, expected_ios) {
                    self.reconsider(context, decisions);
                }
            }
            Event::QueryEnds { query } => {
                self.end(*query);
                self.is_owed = !self.due.at_turn(context.now_ns, 0.0);
                if !self.is_owed {
                    self.reconsider(context, decisions);
                }
            }
            Event::Done { chunk, action, is_done } => {
                self.residency.done(*chunk, *action, *is_done);
                if let Some(decided_ns) = self.decided_ns.remove(&chunk.0)
                    && *is_done
                {
                    let took_ns = context.now_ns.saturating_sub(decided_ns) as f64;
                    self.copy_ns += (took_ns - self.copy_ns) * NEWEST_COPY;
                }
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
