//! Histories of concurrent transactions, and whether an isolation level allows them.
//!
//! 1. Whoever runs transactions against a store [records](History) what they did: began, read, wrote, asked for a
//!    commit, were told of its end. No value is written twice, so what is read says who wrote it.
//! 2. [`History::check`] looks at each [read and each pair of writers](check), and then for [cycles](graph) among the
//!    transactions.
//! 3. What it finds is an [`Anomaly`] with the name that the literature has for it (Adya, *Weak Consistency*, 1999;
//!    Cerone and Gotsman, *Analysing Snapshot Isolation*, 2016).
//!
//! It knows nothing of the store: a history may be written by hand. Reads of transactions that failed or were rolled
//! back count as well, for they have a snapshot, too. What is acknowledged is seen by all that begin later.

mod check;
mod graph;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

/// A key: whatever the recorder takes it for.
pub type Key = u32;

/// What was written: each value once.
pub type Value = u64;

/// Which transaction, in the order of their beginnings.
pub type TransactionNo = usize;

/// What a history has to keep to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Each transaction reads from a snapshot, and of two that run at once only one writes a key.
    Snapshot,
    /// As if one had come after another.
    Serializable,
}

/// What no level allows, but for the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnomalyKind {
    /// A value that nobody wrote under this key.
    UnknownValue,
    /// A transaction does not read what it wrote itself.
    OwnWriteMissed,
    /// G1a: what was read was never committed.
    AbortedRead,
    /// G1b: what was read was written over by its own transaction.
    IntermediateRead,
    /// What was read was not yet committed when the reader began.
    FutureRead,
    /// G1c: transactions that each depend on the other.
    CircularInformation,
    /// The same key gave two values.
    NonRepeatableRead,
    /// Two transactions that ran at once wrote the same key, and both were committed.
    LostUpdate,
    /// G-single: a transaction saw part of what another one wrote.
    FracturedRead,
    /// Two readers saw two independent writes in different orders.
    LongFork,
    /// What had been acknowledged before the reader began was not seen.
    StaleRead,
    /// G2: each read what the other wrote over. Snapshots allow it.
    WriteSkew,
}

/// What is wrong with a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anomaly {
    /// Its name.
    pub kind: AnomalyKind,
    /// Between which transactions.
    pub what: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.what)
    }
}

impl std::error::Error for Anomaly {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read(Key, Option<Value>),
    Write(Key, Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Nothing is known: it runs, or a stop came between.
    Open,
    Committed,
    Aborted,
}

#[derive(Debug, Clone)]
struct Transaction {
    /// Before it was asked to begin.
    begun: u64,
    /// When it had begun: its snapshot was taken between the two.
    snapped: u64,
    /// When its commit was asked for.
    committing: Option<u64>,
    /// When its end was told.
    ended: Option<u64>,
    end: End,
    /// A stop cannot undo it.
    is_durable: bool,
    /// It came after a stop.
    is_after_stop: bool,
    operations: Vec<Operation>,
}

/// What transactions did, in the order in which it was recorded.
#[derive(Debug, Clone, Default)]
pub struct History {
    now: u64,
    last_value: Value,
    transactions: Vec<Transaction>,
    has_stopped: bool,
}

impl History {
    /// A history of keys that have values already.
    pub fn beginning_with(values: &BTreeMap<Key, Value>) -> History {
        let mut history = History::default();
        let no = history.begin();
        history.begun(no);
        let operations = values.iter().map(|(key, value)| Operation::Write(*key, *value));
        history.transactions[no].operations.extend(operations);
        history.last_value = values.values().copied().max().unwrap_or(0);
        history.committing(no);
        history.committed(no);
        history.durable(no);
        history
    }

    fn tick(&mut self) -> u64 {
        self.now += 1;
        self.now
    }

    /// A transaction is about to begin.
    pub fn begin(&mut self) -> TransactionNo {
        let begun = self.tick();
        self.transactions.push(Transaction {
            begun,
            snapped: u64::MAX,
            committing: None,
            ended: None,
            end: End::Open,
            is_durable: false,
            is_after_stop: self.has_stopped,
            operations: Vec::new(),
        });
        self.transactions.len() - 1
    }

    /// It has begun.
    pub fn begun(&mut self, no: TransactionNo) {
        self.transactions[no].snapped = self.tick();
    }

    /// It read a key; `None` if there was nothing.
    pub fn read(&mut self, no: TransactionNo, key: Key, value: Option<Value>) {
        self.transactions[no].operations.push(Operation::Read(key, value));
    }

    /// It writes a key; the value to be written.
    pub fn write(&mut self, no: TransactionNo, key: Key) -> Value {
        self.last_value += 1;
        self.transactions[no].operations.push(Operation::Write(key, self.last_value));
        self.last_value
    }

    /// Its commit is about to be asked for.
    pub fn committing(&mut self, no: TransactionNo) {
        self.transactions[no].committing = Some(self.tick());
    }

    /// It was told that it is committed.
    pub fn committed(&mut self, no: TransactionNo) {
        self.end(no, End::Committed);
    }

    /// It was told that it failed, or asked to be forgotten: nobody may see what it wrote.
    pub fn aborted(&mut self, no: TransactionNo) {
        self.end(no, End::Aborted);
    }

    fn end(&mut self, no: TransactionNo, end: End) {
        let now = self.tick();
        let transaction = &mut self.transactions[no];
        (transaction.end, transaction.ended) = (end, Some(now));
    }

    /// A stop from now on cannot undo it, nor what came before it. One that wrote nothing is never durable: what it
    /// read may be lost.
    pub fn durable(&mut self, no: TransactionNo) {
        let transaction = &mut self.transactions[no];
        let is_write = |operation: &Operation| matches!(operation, Operation::Write(..));
        transaction.is_durable = transaction.operations.iter().any(is_write);
    }

    /// Everything stops, and this is what is found then. An end of what was not durable may be lost, over all
    /// transactions.
    pub fn stopped(&mut self, found: &BTreeMap<Key, Value>, keys: impl IntoIterator<Item = Key>) {
        self.has_stopped = true;
        let no = self.begin();
        self.begun(no);
        keys.into_iter().for_each(|key| self.read(no, key, found.get(&key).copied()));
        self.committed(no);
    }

    /// Transactions so far.
    pub fn len(&self) -> usize {
        self.transactions.len()
    }

    /// Whether nothing was done.
    pub fn is_empty(&self) -> bool {
        self.transactions.is_empty()
    }

    /// Whether `level` allows it.
    ///
    /// # Errors
    /// The first anomaly.
    pub fn check(&self, level: Level) -> Result<(), Anomaly> {
        let written = check::Written::of(self)?;
        check::reads(self, &written)?;
        check::writers(self, &written)?;
        // First without the order in time, so that what that alone shows is called by its name.
        graph::check(self, &written, level, false)?;
        graph::check(self, &written, level, true)
    }
}
