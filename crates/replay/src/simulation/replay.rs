//! The loop of a replay: clients issue the trace's I/Os, devices complete them.
//!
//! 1. A client goes on with its events until one has to wait: an I/O for its turn (no more than the depth in flight)
//!    and for what the query computes before it, the beginning and the end of a query for all I/Os before it.
//! 2. An I/O that was let begin by the end of another one, as the trace tells, is set aside until that has ended; those
//!    behind it go on.
//! 3. The clock jumps to the next completion or the end of the next computation.
//!
//! Invariant: a client's I/Os are issued in the order of the trace, but for those that were set aside.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use tanada_placement::{Error, Event, Layout, QueryId, Result, Trace, TraceEvent, TraceIo, TraceObject};

use super::machine::{Issued, Machine};
use super::outcome::{Outcome, QueryOutcome};
use super::{Pace, SimulationOptions};

/// I/Os that may be set aside for each that may be in flight: as far as out-of-order execution looks ahead.
const SET_ASIDE: usize = 8;

#[derive(Debug, Default)]
struct Client {
    events: Range<usize>,
    in_flight: u32,
    /// When the next I/O may be issued, once that is known.
    ready_ns: Option<u64>,
    /// When it stops computing what comes before that.
    computes_until_ns: u64,
    /// I/Os that wait for another's end,
    set_aside: usize,
    /// and those that it has come for.
    released: VecDeque<(Issued, TraceIo)>,
}

impl Client {
    /// Whether all that it has begun is over.
    fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.set_aside == 0 && self.released.is_empty()
    }
}

#[derive(Debug, Clone, Default)]
struct Query {
    began_ns: u64,
    place: usize,
    /// Of each of its I/Os so far, whether it has ended.
    ended: Vec<bool>,
    /// I/Os that wait for one of a number.
    waiting: HashMap<u32, Vec<(Issued, TraceIo)>>,
}

impl Query {
    /// The number of the I/O that `io`, the next one, waits for, if that has not ended.
    fn awaited(&self, io: &TraceIo) -> Option<u32> {
        let no = self.ended.len().checked_sub(io.after as usize).filter(|_| io.after > 0)?;
        self.ended.get(no).is_some_and(|ended| !ended).then_some(no as u32)
    }
}

struct Replay<'a> {
    trace: &'a Trace,
    pace: Pace,
    machine: Machine,
    clients: Vec<Client>,
    /// Events that no client has taken.
    segments: VecDeque<Range<usize>>,
    queries: Vec<Query>,
    ended_ns: u64,
}

/// Replays the trace. `rules` are users' pins and quotas, by the trace's objects.
///
/// # Errors
/// If the policy cannot be made, or several clients are to share a trace whose queries overlap.
pub fn simulate(trace: &Trace, rules: Option<&Layout>, options: &SimulationOptions) -> Result<Outcome> {
    simulate_after(trace, trace, rules, options)
}

/// The same, after another run than the one that counts: policies that learn are trained by `training`, which has the
/// same objects. So one sees what they are worth when a statement comes back with other parameters.
///
/// # Errors
/// As [`simulate`], and if the objects are not the same.
pub fn simulate_after(
    training: &Trace,
    trace: &Trace,
    rules: Option<&Layout>,
    options: &SimulationOptions,
) -> Result<Outcome> {
    if training.objects() != trace.objects() {
        return Err(Error::invalid(format!(
            "the training run has other objects than the trace: {}; both have to be of the same files, of the same size and met in the same order",
            first_difference(training.objects(), trace.objects())
        )));
    }
    let segments = if options.clients <= 1 {
        std::iter::once(0..trace.events().len()).collect()
    } else {
        segments(trace.events())?
    };
    let mut replay = Replay {
        trace,
        pace: options.pace,
        machine: Machine::new(training, trace, rules, options)?,
        clients: (0..options.clients.max(1)).map(|_| Client::default()).collect(),
        segments,
        queries: vec![Query::default(); trace.queries().len()],
        ended_ns: 0,
    };
    replay.run();
    let Replay { machine, ended_ns, .. } = replay;
    Ok(Outcome { total_s: ended_ns as f64 / 1e9, ..machine.finish() })
}

fn first_difference(training: &[TraceObject], trace: &[TraceObject]) -> String {
    let count = training.len().max(trace.len());
    let pairs = (0..count).map(|no| (training.get(no), trace.get(no)));
    let described = |object: Option<&TraceObject>| {
        object.map_or("none".to_owned(), |object| format!("{} of {} bytes", object.name, object.bytes))
    };
    let (no, (there, here)) = pairs.enumerate().find(|(_, (there, here))| there != here).unwrap_or_default();
    format!("the {}. is {} there and {} here", no + 1, described(there), described(here))
}

/// The events of each query, which must not overlap.
fn segments(events: &[TraceEvent]) -> Result<VecDeque<Range<usize>>> {
    let mut segments = VecDeque::new();
    let mut begun = None;
    for (no, event) in events.iter().enumerate() {
        match (event, begun) {
            (TraceEvent::Begins(_), None) => begun = Some(no),
            (TraceEvent::Begins(_), Some(_)) => {
                return Err(Error::invalid(
                    "the trace's queries overlap, so it can be replayed by one client only",
                ));
            }
            (TraceEvent::Ends(_), Some(start)) => {
                segments.push_back(start..no + 1);
                begun = None;
            }
            _ => {}
        }
    }
    // A recording that was cut short ends within a query.
    segments.extend(begun.map(|start| start..events.len()));
    Ok(segments)
}

impl Replay<'_> {
    fn run(&mut self) {
        let mut done = Vec::new();
        loop {
            for client in 0..self.clients.len() {
                while self.step(client) {}
            }
            self.machine.begin_copies();
            if self.is_over() {
                return;
            }
            let ready = self.clients.iter().filter(|client| client.in_flight < self.pace.depth());
            let ready = ready.filter_map(|client| client.ready_ns).min();
            let Some(next) = self.machine.next_event_ns().into_iter().chain(ready).min() else { return };
            self.machine.advance(next.max(self.machine.now_ns), &mut done);
            for issued in done.drain(..) {
                self.complete(issued);
            }
        }
    }

    /// What copies are still under way then counts for nothing.
    fn is_over(&self) -> bool {
        self.segments.is_empty()
            && self.clients.iter().all(|client| client.events.is_empty() && client.is_idle())
    }

    fn complete(&mut self, Issued { client, query, no }: Issued) {
        self.clients[client].in_flight -= 1;
        self.ended_ns = self.machine.now_ns;
        let Some(query) = self.queries.get_mut(query as usize) else { return };
        if let Some(ended) = query.ended.get_mut(no as usize) {
            *ended = true;
        }
        // A trace may name a query in another one's place, and then they are another client's.
        for (issued, io) in query.waiting.remove(&no).into_iter().flatten() {
            let client = &mut self.clients[issued.client];
            client.set_aside -= 1;
            client.released.push_back((issued, io));
        }
    }

    /// Does the client's next event, if that need not wait; whether it did.
    fn step(&mut self, no: usize) -> bool {
        let now = self.machine.now_ns;
        let client = &mut self.clients[no];
        if client.in_flight < self.pace.depth()
            && let Some((issued, io)) = client.released.pop_front()
        {
            self.issue(issued, &io);
            return true;
        }
        if client.events.is_empty() {
            if !client.is_idle() {
                return false;
            }
            let Some(segment) = self.segments.pop_front() else { return false };
            client.events = segment;
            client.computes_until_ns = now;
        }
        match self.trace.events()[client.events.start] {
            TraceEvent::Begins(_) | TraceEvent::Ends(_) if !client.is_idle() => return false,
            TraceEvent::Begins(query) => self.begin(query),
            TraceEvent::Ends(query) => self.end(query),
            TraceEvent::Evicted(page) => self.machine.evicted(&page),
            TraceEvent::Io(io) => {
                let depth = self.pace.depth();
                if client.in_flight >= depth || client.set_aside >= SET_ASIDE * depth as usize {
                    return false;
                }
                let thinks = || client.computes_until_ns.max(now) + u64::from(io.think_ns);
                let ready = client.ready_ns.unwrap_or_else(thinks);
                client.ready_ns = Some(ready);
                if ready > now {
                    return false;
                }
                client.ready_ns = None;
                client.computes_until_ns = ready;
                let mut issued = Issued { client: no, query: io.query.0, no: 0 };
                let query = self.queries.get_mut(io.query.0 as usize);
                let awaited = query.and_then(|query| {
                    let awaited = query.awaited(&io);
                    issued.no = query.ended.len() as u32;
                    query.ended.push(false);
                    query.waiting.entry(awaited?).or_default().push((issued, io));
                    awaited
                });
                match awaited {
                    Some(_) => client.set_aside += 1,
                    None => self.issue(issued, &io),
                }
            }
        }
        self.clients[no].events.start += 1;
        true
    }

    fn issue(&mut self, issued: Issued, io: &TraceIo) {
        self.clients[issued.client].in_flight += 1;
        let slow_ios = self.machine.io(issued, io);
        self.count(io.query, slow_ios);
    }

    fn begin(&mut self, query: QueryId) {
        let Some(begins) = self.trace.queries().get(query.0 as usize) else { return };
        let place = self.machine.outcome.queries.len();
        let outcome = QueryOutcome { name: begins.name.clone(), seconds: 0.0, ios: 0, slow_ios: 0 };
        self.machine.outcome.queries.push(outcome);
        let begun = &mut self.queries[query.0 as usize];
        (begun.began_ns, begun.place) = (self.machine.now_ns, place);
        let (fingerprint, depth, footprint) = (begins.fingerprint, self.pace.depth(), &begins.footprint);
        self.machine.tell(&Event::QueryBegins { query, fingerprint, depth, footprint });
    }

    fn end(&mut self, query: QueryId) {
        self.machine.tell(&Event::QueryEnds { query });
        self.ended_ns = self.machine.now_ns;
        let Some(Query { began_ns, place, .. }) = self.queries.get(query.0 as usize) else { return };
        let (began_ns, place) = (*began_ns, *place);
        if let Some(outcome) = self.machine.outcome.queries.get_mut(place) {
            outcome.seconds = (self.machine.now_ns - began_ns) as f64 / 1e9;
        }
    }

    fn count(&mut self, query: QueryId, slow_ios: u32) {
        let place = self.queries.get(query.0 as usize).map(|query| query.place);
        if let Some(outcome) = place.and_then(|place| self.machine.outcome.queries.get_mut(place)) {
            outcome.ios += 1;
            outcome.slow_ios += u64::from(slow_ios);
        }
    }
}
