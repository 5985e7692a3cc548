//! What statements have read of each index in earlier runs, chunk by chunk.
//!
//! 1. At the end of a run what it read of an index is averaged with what is known of the statement there, the newest
//!    counting half. An index that it did not read any more loses half; one of which nothing was ever read, all being
//!    in the page cache, has no history yet.
//! 2. A plan's expectation of a statement that ran before is refined by it: as much as was read, times what this plan
//!    expects over what those plans did.
//! 3. With each session it fades: what does not come again is forgotten.
//!
//! Invariant: statements, their indexes and chunks are bounded, and a statement's indexes are in the order of their
//! objects and names; of the statement that was not run for longest the chunks are forgotten first, and then all. Of an
//! index with more chunks than there is room for, those with the fewest I/Os go first, and no more than half of the
//! room is kept from statements that ran before.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Statements that are remembered,
const MOST_STATEMENTS: usize = 256;
/// indexes of one of them, each partition of a table having its own,
const MOST_INDEXES: usize = 256;
/// and chunks of all of them together.
const MOST_CHUNKS: usize = 32_768;
/// How much the newest run counts.
const NEWEST: f64 = 0.5;
/// Fewer I/Os of a chunk are forgotten.
const LEAST_IOS: f64 = 0.1;
/// What is left of a count of runs after a session.
const FADING: f64 = 0.9;
/// Statements that count for less are forgotten: after about 15 sessions, if they ran once.
const LEAST_RUNS: f64 = 0.2;
/// A run with a smaller part of the I/Os is short.
const SHORT: f64 = 0.25;
/// By how much a plan's other expectation may scale what was read before.
const MOST_SCALE: f64 = 8.0;

/// What was read of an index.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Observed {
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
    /// I/Os by chunk of the object.
    pub(crate) chunks: BTreeMap<u64, u64>,
}

/// A run's expectation and reads of one index.
#[derive(Debug)]
pub(crate) struct IndexRun<'a> {
    pub(crate) object: &'a str,
    pub(crate) index: &'a str,
    pub(crate) expected_pages: u64,
    pub(crate) observed: Observed,
}

/// A statement's reads of one index in one object, averaged over its runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct IndexHistory {
    pub(crate) object: String,
    pub(crate) index: String,
    /// Pages that plans expected.
    pub(crate) expected_pages: f64,
    pub(crate) ios: f64,
    pub(crate) bytes: f64,
    /// Chunks of the object with their I/Os, by number.
    pub(crate) chunks: Vec<(u64, f32)>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct StatementHistory {
    pub(crate) fingerprint: u64,
    /// The statement as it was last run.
    pub(crate) statement: String,
    /// Runs, those of earlier sessions counting less.
    pub(crate) runs: f64,
    /// Whether the last run was short.
    was_short: bool,
    indexes: Vec<IndexHistory>,
}

/// All statements, the one that ran last at the end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct History {
    pub(crate) statements: Vec<StatementHistory>,
}

impl History {
    /// A run of a statement is over.
    pub(crate) fn ended(&mut self, fingerprint: u64, statement: &str, runs: Vec<IndexRun<'_>>) {
        let known = self.statements.iter().position(|known| known.fingerprint == fingerprint);
        let mut known = known.map(|place| self.statements.remove(place)).unwrap_or_default();
        (known.fingerprint, known.statement) = (fingerprint, statement.to_owned());
        known.runs += 1.0;
        let is_short = known.is_short(&runs);
        // One that was given up, or had all in the page cache, says nothing; two in succession do.
        let counts = !is_short || known.was_short;
        known.was_short = is_short && !counts;
        if counts {
            known.blend(&runs);
        }
        if !known.indexes.is_empty() {
            self.statements.push(known);
        }
        self.forget();
    }

    fn forget(&mut self) {
        let excess = self.statements.len().saturating_sub(MOST_STATEMENTS);
        self.statements.drain(..excess);
        self.keep_chunks(MOST_CHUNKS);
    }

    /// No more than `most` chunks are kept, those of the statements that ran last before others. An index has half of
    /// the room that is left, and more as far as those after it leave it.
    pub(crate) fn keep_chunks(&mut self, most: usize) {
        let (mut room, mut others) = (most, self.chunks());
        for index in self.statements.iter_mut().rev().flat_map(|statement| &mut statement.indexes) {
            others -= index.chunks.len();
            index.keep_chunks(room.saturating_sub(others).max(room.div_ceil(2)));
            room -= index.chunks.len();
        }
        debug_assert!(self.chunks() <= most);
    }

    /// Chunks that are known, of all statements.
    pub(crate) fn chunks(&self) -> usize {
        self.statements.iter().flat_map(|statement| &statement.indexes).map(|index| index.chunks.len()).sum()
    }

    /// Makes it older by a session in which something ran.
    pub(crate) fn fade(&mut self) {
        self.statements.iter_mut().for_each(|statement| statement.runs *= FADING);
        self.statements.retain(|statement| statement.runs >= LEAST_RUNS);
    }

    /// Puts indexes in their order: older programs kept them in that in which they were met.
    pub(crate) fn order(&mut self) {
        self.statements
            .iter_mut()
            .for_each(|statement| statement.indexes.sort_by(|a, b| a.key().cmp(&b.key())));
    }

    /// Runs of a statement, and what they read of an index.
    pub(crate) fn of(&self, fingerprint: u64, object: &str, index: &str) -> Option<(f64, &IndexHistory)> {
        let statement = self.statements.iter().find(|known| known.fingerprint == fingerprint)?;
        let place = statement.place((object, index)).ok()?;
        Some((statement.runs, &statement.indexes[place]))
    }
}

impl StatementHistory {
    fn is_short(&self, runs: &[IndexRun<'_>]) -> bool {
        let known: f64 = self.indexes.iter().map(|index| index.ios).sum();
        let newest: u64 = runs.iter().map(|run| run.observed.ios).sum();
        (newest as f64) < SHORT * known
    }

    /// Where the index is, or would be.
    fn place(&self, key: (&str, &str)) -> std::result::Result<usize, usize> {
        self.indexes.binary_search_by(|known| known.key().cmp(&key))
    }

    /// What is known fades, and what was read is added.
    fn blend(&mut self, runs: &[IndexRun<'_>]) {
        self.indexes.iter_mut().for_each(IndexHistory::halve);
        for run in runs {
            match self.place((run.object, run.index)) {
                Ok(place) => self.indexes[place].add(run),
                Err(place) if run.observed.ios > 0 => self.indexes.insert(place, IndexHistory::new(run)),
                // All of it was in the page cache, which says nothing of the next run.
                Err(_) => {}
            }
        }
        self.indexes.retain(|index| index.ios >= LEAST_IOS);
        if self.indexes.len() > MOST_INDEXES {
            self.indexes.sort_by(|a, b| b.ios.total_cmp(&a.ios));
            self.indexes.truncate(MOST_INDEXES);
            self.indexes.sort_by(|a, b| a.key().cmp(&b.key()));
        }
    }

    pub(crate) fn indexes(&self) -> &[IndexHistory] {
        &self.indexes
    }
}

impl IndexHistory {
    fn new(run: &IndexRun<'_>) -> IndexHistory {
        let chunks = run.observed.chunks.iter().map(|(chunk, ios)| (*chunk, *ios as f32));
        IndexHistory {
            object: run.object.to_owned(),
            index: run.index.to_owned(),
            expected_pages: run.expected_pages as f64,
            ios: run.observed.ios as f64,
            bytes: run.observed.bytes as f64,
            chunks: chunks.collect(),
        }
    }

    fn key(&self) -> (&str, &str) {
        (&self.object, &self.index)
    }

    /// A further run counts; what plans expected stays, for the next that reads it.
    fn halve(&mut self) {
        self.ios *= 1.0 - NEWEST;
        self.bytes *= 1.0 - NEWEST;
        self.chunks.iter_mut().for_each(|(_, ios)| *ios *= (1.0 - NEWEST) as f32);
        self.forget_chunks();
    }

    /// What the run read of it.
    fn add(&mut self, run: &IndexRun<'_>) {
        self.expected_pages = self.expected_pages * (1.0 - NEWEST) + run.expected_pages as f64 * NEWEST;
        self.ios += run.observed.ios as f64 * NEWEST;
        self.bytes += run.observed.bytes as f64 * NEWEST;
        let mut chunks: BTreeMap<u64, f32> = std::mem::take(&mut self.chunks).into_iter().collect();
        for (chunk, ios) in &run.observed.chunks {
            *chunks.entry(*chunk).or_default() += (*ios as f64 * NEWEST) as f32;
        }
        self.chunks = chunks.into_iter().collect();
    }

    fn forget_chunks(&mut self) {
        self.chunks.retain(|(_, ios)| f64::from(*ios) > LEAST_IOS);
    }

    /// Those with the most I/Os are kept.
    fn keep_chunks(&mut self, most: usize) {
        if self.chunks.len() > most {
            self.chunks.sort_by(|(one, one_ios), (other, other_ios)| {
                other_ios.total_cmp(one_ios).then(one.cmp(other))
            });
            self.chunks.truncate(most);
            self.chunks.sort_unstable_by_key(|(chunk, _)| *chunk);
        }
    }

    /// The pages that a run is going to read whose plan expects so many.
    pub(crate) fn pages(&self, expected_pages: u64, page_bytes: u32) -> u64 {
        let scale = match self.expected_pages > 0.0 && expected_pages > 0 {
            true => (expected_pages as f64 / self.expected_pages).clamp(1.0 / MOST_SCALE, MOST_SCALE),
            false => 1.0,
        };
        (self.bytes / f64::from(page_bytes.max(1)) * scale).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(expected_pages: u64, ios: u64, chunks: std::ops::Range<u64>) -> IndexRun<'static> {
        let observed = Observed { ios, bytes: ios * 16384, chunks: chunks.map(|chunk| (chunk, 2)).collect() };
        IndexRun { object: "shop/t.ibd", index: "t.PRIMARY", expected_pages, observed }
    }

    #[test]
    fn runs_are_averaged_and_refine_what_a_plan_expects() {
        let mut history = History::default();
        history.ended(7, "select 1", vec![run(1000, 100, 0..3)]);
        history.ended(7, "select 2", vec![run(1000, 200, 2..4)]);
        let (runs, index) = history.of(7, "shop/t.ibd", "t.PRIMARY").unwrap();
        assert_eq!(
            (runs, index.ios, index.chunks.as_slice()),
            (2.0, 150.0, &[(0, 1.0), (1, 1.0), (2, 2.0), (3, 1.0)][..])
        );
        assert_eq!(
            [index.pages(1000, 16384), index.pages(500, 16384), index.pages(0, 16384)],
            [150, 75, 150]
        );
        assert_eq!(history.statements[0].statement, "select 2");
        let ios = |history: &History| history.of(7, "shop/t.ibd", "t.PRIMARY").map(|(_, index)| index.ios);
        history.ended(7, "select 3", vec![run(1000, 0, 0..0)]);
        assert_eq!(ios(&history), Some(150.0), "all was in the page cache");
        history.ended(7, "select 4", vec![run(1000, 0, 0..0)]);
        assert_eq!(ios(&history), Some(75.0), "and so it was again");
        assert!(history.of(8, "shop/t.ibd", "t.PRIMARY").is_none());
        assert!(history.of(7, "shop/t.ibd", "t.b").is_none());
    }

    /// Its I/Os went on being expected, so that every second run was taken for a short one.
    #[test]
    fn an_index_that_is_not_read_any_more_fades() {
        let mut history = History::default();
        let other = || IndexRun { index: "t.b", ..run(1000, 10, 0..3) };
        history.ended(7, "s", vec![run(1000, 1000, 0..3)]);
        let ios = |history: &History, index| history.of(7, "shop/t.ibd", index).map(|(_, known)| known.ios);
        let is_gone = |history: &History| ios(history, "t.PRIMARY").is_none();
        let runs = (1..40).find(|_| {
            history.ended(7, "s", vec![other()]);
            is_gone(&history)
        });
        assert!((10..30).contains(&runs.unwrap()), "{runs:?}");
        assert_eq!(ios(&history, "t.b"), Some(10.0));
        assert!(!history.statements[0].was_short);
        history.ended(7, "s", vec![IndexRun { index: "t.b", ..run(1000, 30, 0..3) }]);
        assert_eq!(ios(&history, "t.b"), Some(20.0));
    }

    /// The next run was expected to read nothing.
    #[test]
    fn a_first_run_from_the_page_cache_is_no_history() {
        let mut history = History::default();
        history.ended(7, "s", vec![run(1000, 0, 0..0)]);
        assert!(history.of(7, "shop/t.ibd", "t.PRIMARY").is_none() && history.statements.is_empty());
        history.ended(7, "s", vec![run(1000, 100, 0..3), IndexRun { index: "t.b", ..run(9, 0, 0..0) }]);
        assert_eq!(history.of(7, "shop/t.ibd", "t.PRIMARY").unwrap().1.ios, 100.0);
        assert!(history.of(7, "shop/t.ibd", "t.b").is_none());
    }

    #[test]
    fn a_statement_keeps_so_many_indexes_those_that_are_read_most() {
        let names: Vec<String> = (0..2 * MOST_INDEXES).map(|no| format!("shop/t#p#p{no}.ibd")).collect();
        let run = |no: usize| IndexRun { object: &names[no], ..run(1, 1 + no as u64, 0..1) };
        let mut history = History::default();
        history.ended(7, "s", (0..names.len()).rev().map(run).collect());
        let known = |no: usize| history.of(7, &names[no], "t.PRIMARY").map(|(_, index)| index.ios);
        assert_eq!(history.statements[0].indexes().len(), MOST_INDEXES);
        assert_eq!([known(MOST_INDEXES - 1), known(MOST_INDEXES)], [None, Some(1.0 + MOST_INDEXES as f64)]);
    }

    #[test]
    fn old_history_is_forgotten_and_its_size_is_bounded() {
        let mut history = History::default();
        (0..300).for_each(|statement| history.ended(statement, "s", vec![run(1, 1, 0..200)]));
        assert_eq!(history.statements.len(), MOST_STATEMENTS);
        let chunks = |history: &History| {
            let indexes = history.statements.iter().flat_map(|statement| &statement.indexes);
            indexes.map(|index| index.chunks.len()).collect::<Vec<_>>()
        };
        let kept = chunks(&history);
        assert!(kept.iter().sum::<usize>() <= MOST_CHUNKS && kept[255] == 200 && kept[0] == 0);
        assert!(kept.is_sorted(), "{kept:?}");
        let sessions = (1..).find(|_| {
            history.fade();
            history.statements.is_empty()
        });
        assert!((10..20).contains(&sessions.unwrap()), "{sessions:?}");
    }

    /// It lost all of its chunks, and so did every statement that had run before.
    #[test]
    fn an_index_with_too_many_chunks_keeps_those_that_are_read_most_and_leaves_others_theirs() {
        let mut history = History::default();
        history.ended(1, "small", vec![run(1, 1, 0..500)]);
        let mut large = run(1, 1, 0..2 * MOST_CHUNKS as u64);
        large.observed.chunks.insert(7, 1);
        large.observed.chunks.insert(MOST_CHUNKS as u64 + 9, 3);
        history.ended(2, "large", vec![large]);
        let chunks =
            |history: &History, no| history.of(no, "shop/t.ibd", "t.PRIMARY").unwrap().1.chunks.clone();
        let kept = chunks(&history, 2);
        assert_eq!((kept.len(), chunks(&history, 1).len()), (MOST_CHUNKS - 500, 500));
        assert!(kept.is_sorted_by_key(|(chunk, _)| *chunk));
        assert!(kept.contains(&(MOST_CHUNKS as u64 + 9, 3.0)) && kept.iter().all(|(chunk, _)| *chunk != 7));
        // As a journal does that is too long.
        history.keep_chunks(600);
        assert_eq!((chunks(&history, 2).len(), chunks(&history, 1).len()), (300, 300));
        history.keep_chunks(0);
        assert_eq!(history.chunks(), 0);
    }
}
