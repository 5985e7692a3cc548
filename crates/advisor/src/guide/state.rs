//! What placement beside a mount knows: the policy, numbers of objects and indexes, running queries.
//!
//! Invariants: an object is known by its identifier, since files are renamed; running queries and relocations that are
//! remembered are bounded.

use std::collections::{HashMap, VecDeque};

use tanada_placement::live::{MEMORY, Rate, counted};
use tanada_placement::{
    Access, Cause, ChunkCount, Event, Fingerprint, Footprint, IoKind, ObjectIo, ObjectNo, Placed, Placer,
    QueryId,
};
use tanada_volume::{Object, Volume};

use crate::message::{Announcement, Foreseen, Move, ObjectReads, Relocated};

/// A policy is told of passing time so often, if anything happens at all.
const TICK_NS: u64 = 1_000_000_000;
/// Relocations that are remembered.
const MAX_PLACED: usize = 4096;
/// Queries that run at once; the oldest ends when another one begins.
const MAX_RUNNING: usize = 1024;
/// Moves that a forecast tells one by one.
const MAX_MOVES: usize = 256;
/// Reads of so many bytes are those of scans, wherever the one before ended.
const SCAN_BYTES: u32 = 64 << 10;

/// A read or a write that reached the volume.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) at_ns: u64,
    pub(super) object: Object,
    pub(super) offset: u64,
    pub(super) bytes: u32,
    pub(super) kind: IoKind,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) placer: Placer,
    pub(super) rate: Rate,
    pub(super) placed: VecDeque<Relocated>,
    placed_count: u64,
    /// Numbers of objects by their identifiers, with where the last read ended.
    objects: HashMap<u64, (ObjectNo, u64)>,
    causes: HashMap<String, Cause>,
    classes: [String; 2],
    /// The number of the first of them.
    fast: u8,
    /// Those that run, the oldest first.
    running: VecDeque<Running>,
    next_query: u32,
    ticked_ns: u64,
    counts: Vec<ChunkCount>,
    /// Objects whose counts are the volume's own.
    own_counts: Vec<ObjectNo>,
}

#[derive(Debug)]
struct Running {
    query: QueryId,
    accesses: Vec<Access>,
}

impl State {
    pub(super) fn new(placer: Placer, rate: Rate, classes: [String; 2], fast: u8) -> State {
        State {
            placer,
            rate,
            placed: VecDeque::new(),
            placed_count: 0,
            objects: HashMap::new(),
            causes: HashMap::new(),
            classes,
            fast,
            running: VecDeque::new(),
            next_query: 1,
            ticked_ns: 0,
            counts: Vec::new(),
            own_counts: Vec::new(),
        }
    }

    /// The number of an object, which it gets if it has none.
    pub(super) fn add(&mut self, object: &Object) -> Option<ObjectNo> {
        if let Some((no, _)) = self.objects.get(&object.id()) {
            return Some(*no);
        }
        if MEMORY.has_name(&object.name()) {
            return None;
        }
        let no = self.placer.add(object.clone());
        self.objects.insert(object.id(), (no, u64::MAX));
        let own = counted(no, object);
        if own.iter().any(|count| count.reads > 0) {
            self.own_counts.push(no);
        }
        self.counts.extend(own);
        Some(no)
    }

    /// Takes over what earlier mounts have learned.
    pub(super) fn remember(&mut self, bytes: &[u8]) {
        if let Err(error) = self.placer.remember(bytes) {
            tanada_io::warn(&format!("what placement had learned is given up: {error}"));
        }
    }

    pub(super) fn memory(&self) -> Vec<u8> {
        self.placer.memory()
    }

    /// Policies that learn from a run before are told what was counted.
    pub(super) fn prepare(&mut self, now_ns: u64) {
        self.placer.train_counts(&self.counts);
        self.placer.prepare(now_ns);
    }

    /// Spreads a server's counters over the chunks of an object, unless the volume has counted itself.
    pub(super) fn count(&mut self, object: &Object, reads: &ObjectReads) {
        let Some(no) = self.add(object) else { return };
        let chunks = object.size_bytes().div_ceil(self.placer.layout().chunk_bytes());
        if self.own_counts.contains(&no) || chunks == 0 {
            return;
        }
        self.counts.retain(|count| count.object != no);
        let page_bytes = reads.bytes.checked_div(reads.reads).unwrap_or(0);
        let sequential_share = if page_bytes >= u64::from(SCAN_BYTES) { 1.0 } else { 0.0 };
        let (reads, bytes) = (reads.reads.div_ceil(chunks), reads.bytes.div_ceil(chunks));
        self.counts.extend((0..chunks).map(|chunk| ChunkCount {
            object: no,
            chunk,
            reads,
            bytes,
            sequential_share,
        }));
    }

    /// Objects that have come since get their numbers; of all announced ones the policy learns what the volume has
    /// counted by now.
    pub(super) fn find_objects(&mut self, volume: &Volume, announcement: &Announcement) {
        for access in &announcement.accesses {
            let Ok(object) = volume.open_object(&access.object) else { continue };
            let Some(no) = self.add(&object) else { continue };
            let counts = counted(no, &object);
            if counts.iter().any(|count| count.reads > 0) {
                self.placer.train_counts(&counts);
            }
        }
    }

    fn footprint(&mut self, announcement: &Announcement) -> Footprint {
        let named: HashMap<String, ObjectNo> =
            self.placer.objects().map(|(no, object)| (object.name(), no)).collect();
        let causes = &mut self.causes;
        let accesses = announcement.accesses.iter().filter_map(|access| {
            let next = Cause(u16::try_from(causes.len() + 1).unwrap_or(u16::MAX));
            Some(Access {
                object: *named.get(&access.object)?,
                cause: *causes.entry(access.index.clone()).or_insert(next),
                extents: access.extents.clone(),
                pattern: access.pattern,
                expected_pages: access.expected_pages,
                earlier_pages: None,
                page_bytes: access.page_bytes.max(1),
                stage: access.stage,
            })
        });
        Footprint { accesses: accesses.collect() }
    }

    pub(super) fn begins(&mut self, now_ns: u64, announcement: &Announcement) -> u32 {
        if self.running.len() >= MAX_RUNNING
            && let Some(oldest) = self.running.front().map(|running| running.query.0)
        {
            self.ends(now_ns, oldest);
        }
        let footprint = self.footprint(announcement);
        let query = QueryId(self.next_query);
        // 0 is no query, and the last number is the forecasts'.
        self.next_query = if self.next_query >= u32::MAX - 1 { 1 } else { self.next_query + 1 };
        let (fingerprint, depth) = (Fingerprint(announcement.fingerprint), announcement.depth.max(1));
        let begins = Event::QueryBegins { query, fingerprint, depth, footprint: &footprint };
        self.placer.tell(now_ns, &begins);
        self.running.push_back(Running { query, accesses: footprint.accesses });
        query.0
    }

    pub(super) fn ends(&mut self, now_ns: u64, query: u32) {
        let before = self.running.len();
        self.running.retain(|running| running.query.0 != query);
        if self.running.len() < before {
            self.placer.tell(now_ns, &Event::QueryEnds { query: QueryId(query) });
        }
    }

    pub(super) fn saw(&mut self, seen: &Seen) {
        let Some(object) = self.add(&seen.object) else { return };
        let end = seen.offset + u64::from(seen.bytes);
        let last = self.objects.get_mut(&seen.object.id()).map(|(_, last)| std::mem::replace(last, end));
        let is_sequential = last == Some(seen.offset) || seen.bytes >= SCAN_BYTES;
        let announced = self.running.iter().rev().find_map(|running| {
            let access = running
                .accesses
                .iter()
                .find(|access| access.object == object && holds(access, seen.offset))?;
            Some((running.query, access.cause))
        });
        let (query, cause) = match (announced, seen.kind) {
            (Some(announced), IoKind::Read) => announced,
            _ => (QueryId(0), Cause(0)),
        };
        let (offset, bytes, kind) = (seen.offset, seen.bytes, seen.kind);
        self.placer.io(seen.at_ns, &ObjectIo { object, offset, bytes, kind, is_sequential, query, cause });
        if seen.at_ns >= self.ticked_ns + TICK_NS {
            self.ticked_ns = seen.at_ns;
            self.placer.tell(seen.at_ns, &Event::Tick);
        }
    }

    /// Remembers a relocation that was done or refused.
    pub(super) fn note(&mut self, placed: &Placed) {
        if !placed.is_done && placed.refusal.is_none() {
            return;
        }
        let Some((object, chunk)) = self.placer.layout().owner(placed.decision.chunk) else { return };
        if self.placed.len() == MAX_PLACED {
            self.placed.pop_front();
        }
        self.placed.push_back(Relocated {
            no: self.placed_count,
            object: self.placer.layout().name(object).to_owned(),
            chunk,
            action: placed.decision.action.verb().to_owned(),
            why: placed.why.clone(),
            bytes: placed.bytes,
            refusal: placed.refusal.as_ref().map(ToString::to_string),
        });
        self.placed_count += 1;
    }

    pub(super) fn forecast(&mut self, announcement: &Announcement) -> Foreseen {
        let footprint = self.footprint(announcement);
        let (fingerprint, depth) = (Fingerprint(announcement.fingerprint), announcement.depth.max(1));
        let forecast = self.placer.forecast(fingerprint, depth, &footprint);
        let moves = forecast.moves.iter().take(MAX_MOVES).map(|planned| Move {
            object: self.placer.layout().name(planned.object).to_owned(),
            chunk: planned.chunk_of_object,
            order: planned.action.order().to_owned(),
            why: planned.why.clone(),
        });
        Foreseen {
            policy: self.placer.policy_name().to_owned(),
            classes: announcement.accesses.iter().map(|access| self.classes_of(access)).collect(),
            moves: moves.collect(),
            move_count: forecast.move_count,
            move_bytes: forecast.move_bytes,
            gain_s: forecast.gain_s,
            cost_s: forecast.cost_s,
            remembered_runs: forecast.remembered_runs,
        }
    }

    /// The bytes of an access in the first class, and elsewhere.
    fn classes_of(&self, access: &crate::message::ObjectAccess) -> Vec<(String, u64)> {
        let Some((_, object)) = self.placer.objects().find(|(_, object)| object.name() == access.object)
        else {
            return Vec::new();
        };
        let chunk_bytes = self.placer.layout().chunk_bytes();
        let fast: std::collections::HashSet<u64> = object
            .chunks(0..u64::MAX)
            .into_iter()
            .filter(|chunk| chunk.lies_in(self.fast))
            .map(|chunk| chunk.no)
            .collect();
        let (mut in_fast, mut in_all) = (0, 0);
        for extent in &access.extents {
            let (mut at, end) = (extent.offset, extent.offset.saturating_add(extent.len));
            while at < end {
                let next = ((at / chunk_bytes + 1) * chunk_bytes).min(end);
                in_all += next - at;
                in_fast += if fast.contains(&(at / chunk_bytes)) { next - at } else { 0 };
                at = next;
            }
        }
        let [first, last] = &self.classes;
        let both = [(first.clone(), in_fast), (last.clone(), in_all - in_fast)];
        both.into_iter().filter(|(_, bytes)| *bytes > 0).collect()
    }
}

fn holds(access: &Access, offset: u64) -> bool {
    let after = access.extents.partition_point(|extent| extent.offset <= offset);
    let before = after.checked_sub(1).and_then(|no| access.extents.get(no));
    before.is_some_and(|extent| offset - extent.offset < extent.len)
}
