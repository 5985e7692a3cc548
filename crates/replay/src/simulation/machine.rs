//! The storage of a replay: two classes of modelled devices, the store, the policy, and the copies that it wants.
//!
//! 1. A read goes to where its chunks lie; then the policy is told of it. Of a write the policy is told first.
//! 2. What the policy decides is done, begun or queued before anything else happens. What is refused, it is told at
//!    once.
//!
//! Invariant: every request of a device carries in its id what it belongs to: the trace's I/O, a copy, or nothing (the
//! fill of a cache).

use tanada_io::{ModelQueue, Operation};

use tanada_placement::{
    Action, ChunkNo, Context, Costs, Decision, Event, Eviction, Io, IoKind, Layout, ObjectNo, Policy, Result,
    Route, Source, Tier, Trace, TraceEvent, TraceIo, measure,
};

use super::outcome::Outcome;
use super::relocation::{Job, Relocations};
use super::store::{Held, Store};

use super::SimulationOptions;

/// Fills of caches that may be under way; more are refused, as caches pass by a device that is congested.
const MOST_FILLS: usize = 1024;

/// Times in a row that a policy may answer refusals with further wishes.
const MOST_ROUNDS: usize = 64;

const TICK_NS: u64 = 1_000_000_000;

/// What a device's request belongs to.
#[derive(Debug, Clone, Copy)]
enum Owner {
    /// Number of the trace's I/O under way.
    Foreground(usize),
    /// Number of the copy.
    Copy(usize),
    Fill,
}

impl Owner {
    fn id(self) -> u64 {
        match self {
            Owner::Foreground(no) => (no as u64) << 2,
            Owner::Copy(no) => (no as u64) << 2 | 1,
            Owner::Fill => 2,
        }
    }

    fn of(id: u64) -> Owner {
        match id & 3 {
            0 => Owner::Foreground((id >> 2) as usize),
            1 => Owner::Copy((id >> 2) as usize),
            _ => Owner::Fill,
        }
    }
}

/// An I/O of the trace under way.
#[derive(Debug, Clone, Copy)]
struct Foreground {
    issued: Issued,
    parts: u32,
}

/// Whose I/O one is, and which of its query's.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Issued {
    pub(super) client: usize,
    pub(super) query: u32,
    pub(super) no: u32,
}

pub(super) struct Machine {
    pub(super) now_ns: u64,
    pub(super) layout: Layout,
    pub(super) outcome: Outcome,
    unit: u64,
    capacity: u32,
    costs: Costs,
    policy: Box<dyn Policy>,
    store: Store,
    slow: ModelQueue,
    fast: ModelQueue,
    relocations: Relocations,
    relocation_bytes: u64,
    bytes_per_second: Option<u64>,
    foreground: Vec<Foreground>,
    free: Vec<usize>,
    decisions: Vec<Decision>,
    refused: Vec<Decision>,
    completed: Vec<(u64, u64)>,
    next_tick_ns: u64,
    read_bytes: u64,
    hit_bytes: u64,
}

impl Machine {
    /// Trained and prepared.
    pub(super) fn new(
        training: &Trace,
        trace: &Trace,
        rules: Option<&Layout>,
        options: &SimulationOptions,
    ) -> Result<Machine> {
        let (policy, mut layout) = options.policy_and_layout(trace)?;
        let unit = layout.chunk_bytes();
        for object in 0..rules.map_or(0, Layout::objects) {
            let range = rules.map(|rules| rules.all(ObjectNo(object))).unwrap_or_default();
            if let (Some(rules), Some(first)) = (rules, range.first()) {
                layout.set_rule(ObjectNo(object), rules.rule_of(ChunkNo(first.start)));
            }
        }
        let capacity = (f64::from(layout.chunks()) * options.fast_share.clamp(0.0, 1.0)).floor() as u32;
        let (slow_bytes, fast_bytes) = (u64::from(layout.chunks()) * unit, u64::from(capacity) * unit);
        let device = |spec, extent, seed| {
            let mut queue = ModelQueue::new(spec, seed);
            queue.set_extent(extent);
            queue
        };
        let mut machine = Machine {
            now_ns: 0,
            store: Store::new(&layout, capacity),
            outcome: Outcome {
                policy: options.policy.clone(),
                fast_share: options.fast_share,
                capacity_chunks: capacity,
                ..Outcome::default()
            },
            unit,
            capacity,
            costs: Costs {
                fast: measure(&options.fast, fast_bytes),
                slow: measure(&options.slow, slow_bytes),
            },
            policy,
            slow: device(&options.slow, slow_bytes, options.seed),
            fast: device(&options.fast, fast_bytes, options.seed ^ 1),
            layout,
            relocations: Relocations::default(),
            relocation_bytes: options.relocation_bytes,
            bytes_per_second: options.relocation_bytes_per_second.filter(|rate| *rate > 0),
            foreground: Vec::new(),
            free: Vec::new(),
            decisions: Vec::new(),
            refused: Vec::new(),
            completed: Vec::new(),
            next_tick_ns: TICK_NS,
            read_bytes: 0,
            hit_bytes: 0,
        };
        machine.pin();
        if options.trains && machine.policy.learns() {
            machine.train(training, options.pace.depth());
        }
        machine.prepare();
        Ok(machine)
    }

    fn context(&self) -> Context<'_> {
        Context { now_ns: self.now_ns, layout: &self.layout, capacity: self.capacity, costs: &self.costs }
    }

    /// What users pinned to the fast class is there, and its room is nobody else's.
    fn pin(&mut self) {
        for chunk in (0..self.layout.chunks()).map(ChunkNo) {
            if self.capacity > 0
                && self.layout.has_rules()
                && self.layout.rule_of(chunk).pin == Some(Tier::Fast)
                && self.store.reserve(&self.layout, chunk).is_some()
            {
                self.store.hold(chunk, Held::Home);
                self.capacity -= 1;
            }
        }
    }

    fn train(&mut self, trace: &Trace, depth: u32) {
        let mut policy = std::mem::replace(&mut self.policy, Box::new(Nobody));
        let context = self.context();
        for event in trace.events() {
            match event {
                TraceEvent::Begins(query) => {
                    let Some(begins) = trace.queries().get(query.0 as usize) else { continue };
                    let (fingerprint, footprint) = (begins.fingerprint, &begins.footprint);
                    policy.train(
                        &context,
                        &Event::QueryBegins { query: *query, fingerprint, depth, footprint },
                    );
                }
                TraceEvent::Ends(query) => policy.train(&context, &Event::QueryEnds { query: *query }),
                TraceEvent::Io(io) => {
                    pieces(&self.layout, io, |io| policy.train(&context, &Event::Io(io)));
                }
                TraceEvent::Evicted(_) => {}
            }
        }
        self.policy = policy;
    }

    fn prepare(&mut self) {
        let mut policy = std::mem::replace(&mut self.policy, Box::new(Nobody));
        let mut decisions = Vec::new();
        policy.prepare(&self.context(), &mut decisions);
        self.policy = policy;
        for Decision { chunk, action, .. } in decisions {
            let is_done = action.takes_room()
                && self.admits(chunk)
                && self.store.held(chunk) == Held::Not
                && self.store.reserve(&self.layout, chunk).is_some();
            if is_done {
                self.hold(chunk, action);
                self.outcome.prepared_bytes += self.unit;
            }
            self.tell(&Event::Done { chunk, action, is_done });
        }
    }

    fn hold(&mut self, chunk: ChunkNo, action: Action) {
        let held = if matches!(action, Action::Mirror(_)) { Held::Mirror } else { Held::Home };
        self.store.hold(chunk, held);
    }

    /// Whether the chunk exists, and the rules leave it to the policy.
    fn admits(&self, chunk: ChunkNo) -> bool {
        self.store.exists(chunk) && self.store.allows(&self.layout, chunk) && !self.is_pinned(chunk)
    }

    fn is_pinned(&self, chunk: ChunkNo) -> bool {
        self.layout.has_rules() && self.layout.rule_of(chunk).pin == Some(Tier::Fast)
    }

    /// Tells the policy and does what it wants.
    pub(super) fn tell(&mut self, event: &Event<'_>) {
        let mut decisions = std::mem::take(&mut self.decisions);
        let context = Context {
            now_ns: self.now_ns,
            layout: &self.layout,
            capacity: self.capacity,
            costs: &self.costs,
        };
        self.policy.handle(&context, event, &mut decisions);
        for _ in 0..MOST_ROUNDS {
            if decisions.is_empty() {
                break;
            }
            for decision in decisions.drain(..) {
                self.wish(&decision);
            }
            let refused = std::mem::take(&mut self.refused);
            let context = Context {
                now_ns: self.now_ns,
                layout: &self.layout,
                capacity: self.capacity,
                costs: &self.costs,
            };
            for Decision { chunk, action, .. } in &refused {
                self.outcome.refused += 1;
                let event = Event::Done { chunk: *chunk, action: *action, is_done: false };
                self.policy.handle(&context, &event, &mut decisions);
            }
        }
        decisions.clear();
        self.decisions = decisions;
    }

    /// Does, queues or refuses what the policy wants.
    fn wish(&mut self, decision: &Decision) {
        let Decision { chunk, action, .. } = *decision;
        if !self.store.exists(chunk) || self.is_pinned(chunk) {
            return self.refused.push(*decision);
        }
        let is_done = match action {
            _ if Relocations::is_copy(action) => {
                self.relocations.enqueue(decision);
                true
            }
            Action::DropMirror => {
                let is_mirror = self.store.held(chunk) == Held::Mirror;
                if is_mirror {
                    self.store.release(&self.layout, chunk);
                }
                is_mirror
            }
            Action::Promote(source) | Action::Mirror(source) => self.fill(chunk, action, source),
            Action::Demote | Action::Clean | Action::Merge => false,
        };
        if !is_done {
            self.refused.push(*decision);
        }
    }

    /// The chunk's bytes are at hand.
    fn fill(&mut self, chunk: ChunkNo, action: Action, source: Source) -> bool {
        let is_home = matches!(action, Action::Promote(_));
        match self.store.held(chunk) {
            Held::Reserved => return false,
            Held::Home => return true,
            Held::Mirror => {
                if is_home {
                    self.store.hold(chunk, Held::Home);
                }
            }
            Held::Not => {
                if !self.store.allows(&self.layout, chunk) || self.fast.in_flight() > MOST_FILLS {
                    return false;
                }
                if self.store.reserve(&self.layout, chunk).is_none() {
                    return false;
                }
                self.hold(chunk, action);
            }
        }
        if source == Source::Memory
            && let Some(slot) = self.store.slot(chunk)
        {
            self.fast.submit(Owner::Fill.id(), Operation::Write, u64::from(slot) * self.unit, self.unit);
            self.outcome.relocation_fast_ios += 1;
            self.outcome.relocation_bytes += self.unit;
            self.outcome.fast_bytes_written += self.unit;
        }
        true
    }

    /// Begins the copies that there is budget for.
    pub(super) fn begin_copies(&mut self) {
        while let Some((chunk, action)) = self.relocations.peek() {
            let running = self.relocations.running() as u64;
            if running > 0 && (running + 1) * self.unit > self.relocation_bytes {
                return;
            }
            if self.bytes_per_second.is_some() && self.relocations.next_ns > self.now_ns {
                return;
            }
            let held = self.store.held(chunk);
            let is_possible = match action {
                Action::Promote(_) | Action::Mirror(_) => held == Held::Not && self.admits(chunk),
                Action::Demote | Action::Clean => held == Held::Home,
                Action::DropMirror | Action::Merge => true,
            };
            if is_possible && action.takes_room() && self.store.is_full() && self.relocations.is_demoting() {
                return;
            }
            self.relocations.pop();
            if !is_possible || (action.takes_room() && self.store.reserve(&self.layout, chunk).is_none()) {
                self.outcome.refused += 1;
                self.tell(&Event::Done { chunk, action, is_done: false });
                continue;
            }
            if let Some(rate) = self.bytes_per_second {
                let since = self.relocations.next_ns.max(self.now_ns);
                self.relocations.next_ns =
                    since + (u128::from(self.unit) * 1_000_000_000 / u128::from(rate)) as u64;
            }
            let no = self.relocations.begin(chunk, action);
            self.copy_half(no, chunk, Operation::Read, matches!(action, Action::Demote | Action::Clean));
        }
    }

    /// One half of a copy: its read or its write, at the fast or the slow class.
    fn copy_half(&mut self, no: usize, chunk: ChunkNo, operation: Operation, is_fast: bool) {
        let id = Owner::Copy(no).id();
        match self.store.slot(chunk) {
            Some(slot) if is_fast => {
                self.fast.submit(id, operation, u64::from(slot) * self.unit, self.unit);
                self.outcome.relocation_fast_ios += 1;
                if operation == Operation::Write {
                    self.outcome.fast_bytes_written += self.unit;
                }
            }
            _ => {
                self.slow.submit(id, operation, u64::from(chunk.0) * self.unit, self.unit);
                self.outcome.relocation_slow_ios += 1;
            }
        }
    }

    fn copy_completed(&mut self, no: usize) {
        let Some(job) = self.relocations.job(no) else { return };
        let Job { chunk, action, is_read, is_spoiled } = *job;
        if !is_read && !is_spoiled {
            job.is_read = true;
            self.outcome.relocation_bytes += self.unit;
            return self.copy_half(no, chunk, Operation::Write, action.takes_room());
        }
        self.relocations.end(no);
        match action {
            _ if is_spoiled && action.takes_room() => self.store.release(&self.layout, chunk),
            Action::Promote(_) | Action::Mirror(_) => self.hold(chunk, action),
            Action::Demote if !is_spoiled => self.store.release(&self.layout, chunk),
            Action::Clean if !is_spoiled => self.store.hold(chunk, Held::Mirror),
            Action::Demote | Action::Clean | Action::DropMirror | Action::Merge => {}
        }
        self.tell(&Event::Done { chunk, action, is_done: !is_spoiled });
    }

    /// An I/O of the trace; its client is told when it is done. The requests that went to the slow class.
    pub(super) fn io(&mut self, issued: Issued, io: &TraceIo) -> u32 {
        let no = self.free.pop().unwrap_or(self.foreground.len());
        if no == self.foreground.len() {
            self.foreground.push(Foreground { issued, parts: 0 });
        }
        self.foreground[no] = Foreground { issued, parts: 0 };
        self.outcome.ios += 1;
        let mut slow_ios = 0;
        // A run of neighbours in one class, not yet sent.
        let mut run: Option<Run> = None;
        let mut offset = io.offset;
        let layout = std::mem::replace(&mut self.layout, Layout::new(1));
        let mut units = Vec::new();
        pieces(&layout, io, |piece| units.push(piece));
        self.layout = layout;
        for piece in units {
            let inside = offset % self.unit;
            offset += u64::from(piece.bytes);
            let part = if piece.kind == IoKind::Read { self.read(&piece) } else { self.write(&piece) };
            let address = u64::from(part.place) * self.unit + inside;
            let next =
                Run { is_fast: part.is_fast, address, len: part.bytes.unwrap_or(u64::from(piece.bytes)) };
            run = match run {
                Some(run) if run.is_fast == next.is_fast && run.address + run.len == next.address => {
                    Some(Run { len: run.len + next.len, ..run })
                }
                run => {
                    slow_ios += self.send(no, io.kind, run);
                    Some(next)
                }
            };
            if let Some(bytes) = part.log {
                let log = Run { is_fast: true, address: 0, len: bytes };
                self.send(no, IoKind::Read, Some(log));
            }
        }
        slow_ios + self.send(no, io.kind, run)
    }

    fn send(&mut self, no: usize, kind: IoKind, run: Option<Run>) -> u32 {
        let Some(run) = run else { return 0 };
        let operation = if kind == IoKind::Read { Operation::Read } else { Operation::Write };
        self.foreground[no].parts += 1;
        let id = Owner::Foreground(no).id();
        if run.is_fast {
            self.outcome.fast_ios += 1;
            self.fast.submit(id, operation, run.address, run.len);
            self.outcome.fast_bytes_written += if kind == IoKind::Write { run.len } else { 0 };
            return 0;
        }
        self.outcome.slow_ios += 1;
        self.slow.submit(id, operation, run.address, run.len);
        1
    }

    fn read(&mut self, io: &Io) -> Part {
        let slot = self.store.readable(io.chunk);
        let route = self.policy.route(io);
        self.tell(&Event::Io(*io));
        self.read_bytes += u64::from(io.bytes);
        self.hit_bytes += if slot.is_some() { u64::from(io.bytes) } else { 0 };
        let log = if let Route::WithLog { bytes } = route { Some(u64::from(bytes)) } else { None };
        Part { is_fast: slot.is_some(), place: slot.unwrap_or(io.chunk.0), bytes: None, log }
    }

    fn write(&mut self, io: &Io) -> Part {
        self.tell(&Event::Io(*io));
        if let Route::Logged { bytes } = self.policy.route(io) {
            return Part { is_fast: true, place: 0, bytes: Some(u64::from(bytes)), log: None };
        }
        self.relocations.spoil(io.chunk);
        match (self.store.held(io.chunk), self.store.slot(io.chunk)) {
            (Held::Home, Some(slot)) => Part { is_fast: true, place: slot, bytes: None, log: None },
            (held, _) => {
                if held == Held::Mirror {
                    self.store.release(&self.layout, io.chunk);
                }
                Part { is_fast: false, place: io.chunk.0, bytes: None, log: None }
            }
        }
    }

    /// The page cache gave up a page.
    pub(super) fn evicted(&mut self, page: &Eviction) {
        for range in self.layout.range(page.object, page.offset, u64::from(page.bytes)) {
            for chunk in range.map(ChunkNo) {
                self.tell(&Event::Evicted { chunk, is_dirty: page.is_dirty });
            }
        }
    }

    /// When something happens next.
    pub(super) fn next_event_ns(&mut self) -> Option<u64> {
        let device = [self.slow.next_event_ns(), self.fast.next_event_ns()].into_iter().flatten().min();
        // Only the budget's time, not its bytes, holds a copy back when nothing is under way.
        let waits = self.relocations.peek().is_some() && self.relocations.next_ns > self.now_ns;
        let budget = waits.then_some(self.relocations.next_ns);
        device.into_iter().chain(budget).min()
    }

    /// Brings everything to `now_ns`; the I/Os that are done are added to `done`.
    pub(super) fn advance(&mut self, now_ns: u64, done: &mut Vec<Issued>) {
        self.now_ns = now_ns;
        let mut completed = std::mem::take(&mut self.completed);
        self.slow.advance(now_ns, &mut completed);
        self.fast.advance(now_ns, &mut completed);
        for (id, _) in completed.drain(..) {
            match Owner::of(id) {
                Owner::Foreground(no) => {
                    let request = &mut self.foreground[no];
                    request.parts -= 1;
                    if request.parts == 0 {
                        done.push(request.issued);
                        self.free.push(no);
                    }
                }
                Owner::Copy(no) => self.copy_completed(no),
                Owner::Fill => {}
            }
        }
        self.completed = completed;
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns - now_ns % TICK_NS + TICK_NS;
            self.tell(&Event::Tick);
        }
    }

    /// What came of it, until now.
    pub(super) fn finish(mut self) -> Outcome {
        self.outcome.hit_rate = self.hit_bytes as f64 / self.read_bytes.max(1) as f64;
        self.outcome.most_chunks = self.store.most_taken();
        self.outcome
    }
}

/// Where a piece of an I/O goes.
#[derive(Debug, Clone, Copy)]
struct Part {
    is_fast: bool,
    /// Slot or chunk.
    place: u32,
    /// If not as many as the piece has.
    bytes: Option<u64>,
    /// Bytes of a log to be read besides.
    log: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    is_fast: bool,
    address: u64,
    len: u64,
}

/// An I/O, chunk by chunk.
fn pieces(layout: &Layout, io: &TraceIo, mut each: impl FnMut(Io)) {
    let unit = layout.chunk_bytes();
    let end = io.offset + u64::from(io.bytes);
    let mut offset = io.offset;
    while offset < end {
        let next = (offset - offset % unit + unit).min(end);
        if let Some(chunk) = layout.chunk(io.object, offset) {
            let bytes = (next - offset) as u32;
            each(Io {
                chunk,
                offset: (offset % unit) as u32,
                kind: io.kind,
                is_sequential: io.is_sequential,
                bytes,
                query: io.query,
                cause: io.cause,
            });
        }
        offset = next;
    }
}

/// Stands in for the policy while that is borrowed.
#[derive(Debug, Clone)]
struct Nobody;

impl Policy for Nobody {
    fn name(&self) -> &'static str {
        "nobody"
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }

    fn handle(&mut self, _: &Context<'_>, _: &Event<'_>, _: &mut Vec<Decision>) {}
}
