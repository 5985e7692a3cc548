//! What is wrong between several transactions: cycles.
//!
//! An edge says which of two comes first:
//!
//! - *dependence*: B read what A wrote; or wrote over it; or began when A's end had been told. A was committed when B
//!   took its snapshot.
//! - *anti-dependence*: A read what B wrote over. A took its snapshot before B was committed.
//!
//! 1. Of two writers of a key that depend on each other over others, too, that says whose version is the older one.
//!    Where somebody read B's version and depends on A, A's is older, or A's would have been read. Repeated until no
//!    edge is new. What stays open has no edge, so nothing legal is refused.
//! 2. Under snapshots there is no cycle of dependences with or without an anti-dependence behind each; so none with one
//!    anti-dependence, and none in which no two of them are neighbours.
//! 3. Serializable, there is no cycle at all.

use super::check::{Written, foreign_reads};
use super::{Anomaly, AnomalyKind, History, Key, Level, TransactionNo};
use std::collections::BTreeMap;

/// Which transactions lead to which.
#[derive(Clone, PartialEq, Eq)]
struct Relation {
    rows: Vec<Vec<u64>>,
}

impl Relation {
    fn new(len: usize) -> Relation {
        Relation { rows: vec![vec![0; len.div_ceil(64)]; len] }
    }

    fn has(&self, from: usize, to: usize) -> bool {
        self.rows[from][to / 64] >> (to % 64) & 1 == 1
    }

    fn add(&mut self, from: usize, to: usize) {
        self.rows[from][to / 64] |= 1 << (to % 64);
    }

    /// Adds to what `from` leads to all that `other` has for `to`.
    fn join(&mut self, from: usize, other: &Relation, to: usize) {
        self.rows[from].iter_mut().zip(&other.rows[to]).for_each(|(row, more)| *row |= more);
    }

    /// Over any number of steps.
    fn closed(&self) -> Relation {
        let mut closed = self.clone();
        for over in 0..self.rows.len() {
            let row = closed.rows[over].clone();
            for from in 0..self.rows.len() {
                if closed.has(from, over) {
                    closed.rows[from].iter_mut().zip(&row).for_each(|(row, more)| *row |= more);
                }
            }
        }
        closed
    }

    /// One of the shortest ways from a transaction to itself.
    fn cycle(&self) -> Option<Vec<TransactionNo>> {
        let closed = self.closed();
        let len = self.rows.len();
        let start = (0..len).find(|no| closed.has(*no, *no))?;
        let mut before = vec![None; len];
        let mut ring = vec![start];
        while let Some(to) = (before[start].is_none()).then(|| ring.clone()).filter(|ring| !ring.is_empty()) {
            ring.clear();
            for from in to {
                for next in (0..len).filter(|next| self.has(from, *next)) {
                    if before[next].is_none() {
                        before[next] = Some(from);
                        ring.push(next);
                    }
                }
            }
        }
        let mut way = vec![start];
        let mut at = before[start]?;
        while at != start {
            way.push(at);
            at = before[at]?;
        }
        way.push(start);
        way.reverse();
        Some(way)
    }
}

struct Graph {
    /// Those that a read or the time shows.
    shown: Relation,
    /// Those, too, that follow from what was not read.
    dependences: Relation,
    anti: Relation,
}

/// What each transaction read of others: key, and whose version; `None` if nobody had written it.
type Reads = Vec<Vec<(Key, Option<TransactionNo>)>>;

impl Graph {
    fn of(history: &History, written: &Written, in_time: bool) -> Graph {
        let len = history.len();
        let mut dependences = Relation::new(len);
        let mut reads: Reads = Vec::with_capacity(len);
        for (no, transaction) in history.transactions.iter().enumerate() {
            let foreign = foreign_reads(transaction).into_iter();
            let foreign: Vec<_> =
                foreign.map(|(key, value)| (key, value.and_then(|value| written.writer(value)))).collect();
            for (_, writer) in &foreign {
                writer.iter().filter(|writer| **writer != no).for_each(|writer| dependences.add(*writer, no));
            }
            reads.push(foreign);
            if !in_time {
                continue;
            }
            for (other, before) in history.transactions.iter().enumerate() {
                let survives = before.is_durable || before.is_after_stop == transaction.is_after_stop;
                if survives && before.ended.is_some_and(|ended| ended < transaction.begun) {
                    dependences.add(other, no);
                }
            }
        }
        let by_key = written.by_key();
        let shown = dependences.clone();
        let closed = loop {
            let closed = dependences.closed();
            let before = dependences.clone();
            for (no, writer, others) in versions(&reads, &by_key) {
                let Some(writer) = writer else { continue };
                for other in others {
                    if closed.has(other, no) && !closed.has(writer, other) {
                        dependences.add(other, writer);
                    }
                }
            }
            if before == dependences {
                break closed;
            }
        };
        let mut anti = Relation::new(len);
        for (no, writer, others) in versions(&reads, &by_key) {
            for other in others {
                if writer.is_none_or(|writer| closed.has(writer, other)) {
                    anti.add(no, other);
                }
            }
        }
        Graph { shown, dependences, anti }
    }

    /// Dependences of any number of steps, each with an anti-dependence behind it or not.
    fn snapshot_order(&self) -> Relation {
        let closed = self.dependences.closed();
        let mut order = closed.clone();
        for from in 0..closed.rows.len() {
            for over in (0..closed.rows.len()).filter(|over| closed.has(from, *over)) {
                order.join(from, &self.anti, over);
            }
        }
        order
    }

    /// A transaction that saw a part: it has an anti-dependence on what it depends on.
    fn with_one_anti_dependence(&self) -> Option<(TransactionNo, TransactionNo)> {
        let closed = self.dependences.closed();
        let len = closed.rows.len();
        let pairs = (0..len).flat_map(|from| (0..len).map(move |to| (from, to)));
        pairs.into_iter().find(|(from, to)| self.anti.has(*from, *to) && closed.has(*to, *from))
    }
}

/// Each read with all other committed writers of its key: reader, whose version it read, the others.
fn versions<'a>(
    reads: &'a Reads,
    by_key: &'a BTreeMap<Key, Vec<TransactionNo>>,
) -> impl Iterator<Item = (TransactionNo, Option<TransactionNo>, impl Iterator<Item = TransactionNo> + 'a)> + 'a
{
    reads.iter().enumerate().flat_map(move |(no, reads)| {
        reads.iter().map(move |(key, writer)| {
            let others = by_key.get(key).into_iter().flatten().copied();
            (no, *writer, others.filter(move |other| *other != no && Some(*other) != *writer))
        })
    })
}

/// Looks for cycles; `in_time` also by when ends were told and transactions began.
pub(super) fn check(
    history: &History,
    written: &Written,
    level: Level,
    in_time: bool,
) -> Result<(), Anomaly> {
    let graph = Graph::of(history, written, in_time);
    let named = |kind| if in_time { AnomalyKind::StaleRead } else { kind };
    let found = |kind, cycle: Vec<TransactionNo>| {
        Err(Anomaly { kind: named(kind), what: format!("transactions {cycle:?} each come before the next") })
    };
    if let Some(cycle) = graph.shown.cycle() {
        return found(AnomalyKind::CircularInformation, cycle);
    }
    if let Some(cycle) = graph.dependences.cycle() {
        return found(AnomalyKind::FracturedRead, cycle);
    }
    if let Some((reader, writer)) = graph.with_one_anti_dependence() {
        let what = format!(
            "transaction {reader} saw some, but not all that transaction {writer} wrote or that comes before it"
        );
        return Err(Anomaly { kind: named(AnomalyKind::FracturedRead), what });
    }
    if let Some(cycle) = graph.snapshot_order().cycle() {
        return found(AnomalyKind::LongFork, cycle);
    }
    if level == Level::Serializable {
        let mut all = graph.dependences.clone();
        (0..history.len()).for_each(|no| all.join(no, &graph.anti, no));
        if let Some(cycle) = all.cycle() {
            return found(AnomalyKind::WriteSkew, cycle);
        }
    }
    Ok(())
}
