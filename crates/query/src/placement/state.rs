//! What placement of a volume knows: the policy, names of what it places, and what has happened so far.
//!
//! Invariant: what is remembered for those who ask is bounded ([`REMEMBERED`]); what a query has read by chunk goes to
//! the history at its end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use tanada_placement::live::Rate;
use tanada_placement::{
    Access, Action, Cause, Costs, Event, Footprint, IoKind, ObjectIo, ObjectNo, Pattern, Placed, Placer,
    QueryId,
};
use tanada_volume::Object;

use super::announcement::Announcement;
use super::history::{IndexRun, Observed};
use super::inbox::{Hears, Told};
use super::journal::{FootprintRow, Journal, PlacementRow};
use super::naming::Naming;
use super::steering::Wanted;
use crate::relation::FileFootprint;

/// A policy is told of passing time so often, if anything happens at all.
const TICK_NS: u64 = 1_000_000_000;
/// Queries and relocations that are remembered for those who ask.
const REMEMBERED: usize = 1_024;

#[derive(Debug)]
pub(super) struct State {
    pub(super) wanted: Wanted,
    pub(super) costs: Costs,
    pub(super) placer: Placer,
    pub(super) rate: Rate,
    pub(super) generation: u64,
    pub(super) naming: Naming,
    pub(super) causes: u16,
    pub(super) objects: Vec<Object>,
    /// Names of the class that is filled and of the one below.
    pub(super) classes: [String; 2],
    pub(super) ticked_ns: u64,
    /// Of earlier sessions, and the history that goes on.
    pub(super) journal: Journal,
    /// Whether a query was told of in this session, so that what earlier ones have learned is older than it was.
    has_run: bool,
    queries: VecDeque<SeenQuery>,
    placed: VecDeque<Noted>,
}

/// A query that was announced, and what it has read so far.
#[derive(Debug, Clone)]
struct SeenQuery {
    query: QueryId,
    name: String,
    fingerprint: u64,
    depth: u32,
    is_over: bool,
    accesses: Vec<SeenAccess>,
    /// By object and index.
    observed: BTreeMap<(ObjectNo, Cause), Observed>,
}

/// An access that was announced.
#[derive(Debug, Clone)]
struct SeenAccess {
    access: Access,
    /// Names of the object and the index.
    object: String,
    index: String,
    /// Names of the columns.
    columns: String,
    earlier_runs: f64,
}

/// A relocation that was tried.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    pub(crate) at_ns: u64,
    pub(crate) policy: String,
    pub(crate) object: String,
    /// Its number in the volume.
    pub(crate) object_id: u64,
    pub(crate) chunk: u64,
    pub(crate) action: &'static str,
    /// Where it was to go; none if a mirror was given up.
    pub(crate) class: Option<String>,
    pub(crate) why: String,
    pub(crate) gain_s: f32,
    pub(crate) bytes: u64,
    pub(crate) refusal: Option<String>,
}

impl State {
    pub(super) fn new(wanted: Wanted, costs: Costs, placer: Placer, classes: [String; 2]) -> State {
        State {
            rate: Rate::new(wanted.bytes_per_second),
            wanted,
            costs,
            placer,
            generation: 0,
            naming: Naming::default(),
            causes: 0,
            objects: Vec::new(),
            classes,
            ticked_ns: 0,
            journal: Journal::default(),
            has_run: false,
            queries: VecDeque::new(),
            placed: VecDeque::new(),
        }
    }

    pub(super) fn begins(&mut self, now_ns: u64, announcement: &Announcement) {
        self.learn(announcement);
        let footprint = self.footprint(announcement);
        if footprint.accesses.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.has_run, true) {
            self.journal.history.fade();
        }
        let (query, fingerprint, depth) = (announcement.query, announcement.fingerprint, announcement.depth);
        let begins = Event::QueryBegins { query, fingerprint, depth, footprint: &footprint };
        self.placer.tell(now_ns, &begins);
        let accesses =
            footprint.accesses.into_iter().zip(self.known(announcement)).map(|(access, announced)| {
                let (object, index) = (announced.path.display().to_string(), announced.index.clone());
                let earlier_runs =
                    self.journal.history.of(fingerprint.0, &object, &index).map_or(0.0, |(runs, _)| runs);
                let columns = announced.columns.join(", ");
                SeenAccess { access, object, index, columns, earlier_runs }
            });
        let seen = SeenQuery {
            query,
            name: announcement.name.clone(),
            fingerprint: fingerprint.0,
            depth,
            is_over: false,
            accesses: accesses.collect(),
            observed: BTreeMap::new(),
        };
        remember_newest(&mut self.queries, seen);
    }

    pub(super) fn read(&mut self, now_ns: u64, query: QueryId, file: &Path, offset: u64, bytes: u64) {
        let Some(named) = self.naming.read(file, offset, bytes) else { return };
        let io = ObjectIo {
            object: named.object,
            offset,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            kind: IoKind::Read,
            is_sequential: named.is_sequential,
            query,
            cause: named.cause,
        };
        self.placer.io(now_ns, &io);
        if let Some(seen) = self.queries.iter_mut().rev().find(|seen| seen.query == query) {
            let observed = seen.observed.entry((named.object, named.cause)).or_default();
            observed.ios += 1;
            observed.bytes += bytes;
            *observed.chunks.entry(offset / self.placer.layout().chunk_bytes()).or_default() += 1;
        }
        self.tick(now_ns);
    }

    pub(super) fn ends(&mut self, now_ns: u64, query: QueryId) {
        self.placer.tell(now_ns, &Event::QueryEnds { query });
        if let Some(seen) = self.queries.iter_mut().rev().find(|seen| seen.query == query) {
            seen.is_over = true;
            let (fingerprint, name) = (seen.fingerprint, seen.name.clone());
            self.journal.history.ended(fingerprint, &name, seen.runs());
        }
    }

    /// Whether there is something to do for the task that carries out wishes.
    pub(super) fn has_work(&self) -> bool {
        self.placer.waiting() > 0 || self.placer.wants_to_think()
    }

    /// Indexes of the announced tables get numbers.
    pub(super) fn learn(&mut self, announcement: &Announcement) {
        let State { naming, causes, .. } = self;
        for places in announcement.tables.iter().flat_map(|table| table.iter()) {
            naming.learn(places, |_| {
                *causes = causes.saturating_add(1);
                Cause(*causes)
            });
        }
    }

    /// What the announced query is going to read of objects of this volume, with what its statement read of them
    /// before.
    pub(super) fn footprint(&self, announcement: &Announcement) -> Footprint {
        let mut footprint = announcement
            .footprint(|access| Some((self.naming.object(&access.path)?, self.naming.cause(&access.index)?)));
        for (access, announced) in footprint.accesses.iter_mut().zip(self.known(announcement)) {
            access.earlier_pages = self.earlier_pages(announcement, announced);
        }
        footprint
    }

    /// The pages that earlier runs of the announced statement let expect of an access, if it had any that read the
    /// index.
    pub(super) fn earlier_pages(&self, announcement: &Announcement, access: &FileFootprint) -> Option<u64> {
        let object = access.path.display().to_string();
        let (_, known) = self.journal.history.of(announcement.fingerprint.0, &object, &access.index)?;
        Some(known.pages(access.pages, access.page_bytes))
    }

    /// The accesses of its footprint, in the same order.
    fn known<'a>(&self, announcement: &'a Announcement) -> impl Iterator<Item = &'a FileFootprint> {
        announcement.accesses.iter().filter(|access| {
            self.naming.object(&access.path).is_some() && self.naming.cause(&access.index).is_some()
        })
    }

    pub(super) fn tick(&mut self, now_ns: u64) {
        if now_ns >= self.ticked_ns + TICK_NS {
            self.ticked_ns = now_ns;
            self.placer.tell(now_ns, &Event::Tick);
        }
    }

    /// Remembers a relocation that was done or refused.
    pub(super) fn note(&mut self, at_ns: u64, placed: &Placed) -> Option<Noted> {
        let (object, chunk) = self.placer.layout().owner(placed.decision.chunk)?;
        let [fast, slow] = &self.classes;
        let class = match placed.decision.action {
            action if action.takes_room() => Some(fast.clone()),
            Action::Demote => Some(slow.clone()),
            _ => None,
        };
        let noted = Noted {
            at_ns,
            policy: placed.policy.clone(),
            object: self.placer.layout().name(object).to_owned(),
            object_id: self.objects.get(object.0 as usize).map_or(0, Object::id),
            chunk,
            action: placed.decision.action.verb(),
            class,
            why: placed.why.clone(),
            gain_s: placed.decision.gain_s,
            bytes: placed.bytes,
            refusal: placed.refusal.as_ref().map(ToString::to_string),
        };
        remember_newest(&mut self.placed, noted.clone());
        Some(noted)
    }

    /// Relocations of this session, the newest last.
    pub(super) fn placed(&self) -> Vec<Noted> {
        self.placed.iter().cloned().collect()
    }

    /// What queries of this session were expected to read and did read.
    pub(super) fn footprint_rows(&self) -> Vec<FootprintRow> {
        self.queries.iter().flat_map(|query| query.rows(self.journal.session)).collect()
    }

    /// The relocations of this session.
    pub(super) fn placement_rows(&self) -> Vec<PlacementRow> {
        self.placed.iter().map(|noted| noted.row(self.journal.session)).collect()
    }
}

impl Hears for State {
    fn told(&mut self, at_ns: u64, told: &Told) {
        match told {
            Told::Begins(announcement) => self.begins(at_ns, announcement),
            Told::Read { query, file, offset, bytes } => self.read(at_ns, *query, file, *offset, *bytes),
            Told::Ends(query) => self.ends(at_ns, *query),
        }
    }
}

impl SeenQuery {
    /// The query is over: what each index was expected and seen to be read; several accesses to one count as one.
    /// Chunks are not kept any longer, those of indexes that were not announced among them.
    fn runs(&mut self) -> Vec<IndexRun<'_>> {
        let mut runs: BTreeMap<(ObjectNo, Cause), IndexRun<'_>> = BTreeMap::new();
        for seen in &self.accesses {
            let SeenAccess { access, object, index, .. } = seen;
            let key = (access.object, access.cause);
            let run = runs.entry(key).or_insert_with(|| {
                let observed = self.observed.get_mut(&key);
                let chunks = observed.map(|observed| Observed {
                    chunks: std::mem::take(&mut observed.chunks),
                    ..observed.clone()
                });
                IndexRun { object, index, expected_pages: 0, observed: chunks.unwrap_or_default() }
            });
            run.expected_pages = run.expected_pages.saturating_add(access.expected_pages);
        }
        self.observed.values_mut().for_each(|observed| observed.chunks.clear());
        runs.into_values().collect()
    }

    fn rows(&self, session: u64) -> Vec<FootprintRow> {
        // What several accesses to one index have read is not told apart: the first of them shows it.
        let mut shown = BTreeSet::new();
        let row = |seen: &SeenAccess| {
            let SeenAccess { access, object, index, columns, earlier_runs } = seen;
            let key = (access.object, access.cause);
            let read = self.observed.get(&key).map_or((0, 0), |observed| (observed.ios, observed.bytes));
            FootprintRow {
                session,
                query: self.query.0,
                statement: self.name.clone(),
                fingerprint: self.fingerprint,
                depth: self.depth,
                is_over: self.is_over,
                object: object.clone(),
                index: index.clone(),
                columns: columns.clone(),
                pattern: pattern_in_words(access.pattern),
                stage: access.stage,
                extents: access.extents.len() as u64,
                bytes: access.extents.iter().map(|extent| extent.len).sum(),
                expected_pages: access.expected_pages,
                earlier_runs: *earlier_runs,
                earlier_pages: access.earlier_pages,
                observed: shown.insert(key).then_some(read),
            }
        };
        self.accesses.iter().map(row).collect()
    }
}

impl Noted {
    fn row(&self, session: u64) -> PlacementRow {
        PlacementRow {
            session,
            at_s: self.at_ns as f64 / 1e9,
            policy: self.policy.clone(),
            object: self.object.clone(),
            chunk: self.chunk,
            action: self.action.to_owned(),
            bytes: self.bytes,
            gain_s: f64::from(self.gain_s),
            why: self.why.clone(),
            refusal: self.refusal.clone(),
        }
    }
}

/// How an access reads, in words.
pub(crate) fn pattern_in_words(pattern: Pattern) -> String {
    match pattern {
        Pattern::SequentialScan => "scan".to_string(),
        Pattern::RandomLookUps { expected } => format!("{expected} look-ups"),
        Pattern::IndexRange => "range".to_string(),
    }
}

fn remember_newest<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == REMEMBERED {
        list.pop_front();
    }
    list.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of indexes that were read and not announced stayed as long as the query was remembered.
    #[test]
    fn chunks_of_a_query_that_is_over_are_not_kept() {
        let read = || Observed { ios: 3, bytes: 3 << 14, chunks: (0..3).map(|chunk| (chunk, 1)).collect() };
        let access = Access {
            object: ObjectNo(0),
            cause: Cause(1),
            extents: Vec::new(),
            pattern: Pattern::SequentialScan,
            expected_pages: 9,
            earlier_pages: None,
            page_bytes: 16384,
            stage: 0,
        };
        let (object, index) = ("shop/t.ibd".to_owned(), "t.PRIMARY".to_owned());
        let columns = "id".to_owned();
        let mut seen = SeenQuery {
            query: QueryId(1),
            name: String::new(),
            fingerprint: 7,
            depth: 1,
            is_over: true,
            accesses: vec![SeenAccess { access, object, index, columns, earlier_runs: 0.0 }],
            observed: [1, 2].map(|cause| ((ObjectNo(0), Cause(cause)), read())).into(),
        };
        let runs = seen.runs();
        assert!(runs.len() == 1 && runs[0].observed == read(), "{runs:?}");
        assert!(seen.observed.values().all(|observed| observed.ios == 3 && observed.chunks.is_empty()));
    }
}
