//! What is wrong with a single read, or between two writers of a key.

use std::collections::{BTreeMap, BTreeSet};

use super::{Anomaly, AnomalyKind, End, History, Key, Operation, Transaction, TransactionNo, Value};

/// Who wrote what.
pub(super) struct Written {
    /// By value: who, and under which key.
    writers: BTreeMap<Value, (TransactionNo, Key)>,
    /// What each transaction wrote last under each of its keys.
    last: Vec<BTreeMap<Key, Value>>,
    /// Who is committed: who was told so, and of those that were told nothing those whose writes somebody saw.
    is_committed: Vec<bool>,
}

fn anomaly(kind: AnomalyKind, what: String) -> Anomaly {
    Anomaly { kind, what }
}

impl Written {
    pub(super) fn of(history: &History) -> Result<Written, Anomaly> {
        let mut writers = BTreeMap::new();
        let mut last = vec![BTreeMap::new(); history.len()];
        for (no, transaction) in history.transactions.iter().enumerate() {
            for operation in &transaction.operations {
                let Operation::Write(key, value) = *operation else { continue };
                if writers.insert(value, (no, key)).is_some() {
                    return Err(anomaly(AnomalyKind::UnknownValue, format!("{value} was written twice")));
                }
                last[no].insert(key, value);
            }
        }
        let mut seen = BTreeSet::new();
        for (no, transaction) in history.transactions.iter().enumerate() {
            for operation in &transaction.operations {
                if let Operation::Read(_, Some(value)) = operation
                    && let Some((writer, _)) = writers.get(value)
                    && *writer != no
                {
                    seen.insert(*writer);
                }
            }
        }
        let is_committed = history.transactions.iter().enumerate();
        let is_committed = is_committed.map(|(no, transaction)| match transaction.end {
            End::Committed => true,
            End::Aborted => false,
            End::Open => seen.contains(&no),
        });
        Ok(Written { writers, last, is_committed: is_committed.collect() })
    }

    /// Who wrote `value`.
    pub(super) fn writer(&self, value: Value) -> Option<TransactionNo> {
        self.writers.get(&value).map(|(no, _)| *no)
    }

    /// The committed writers of each key.
    pub(super) fn by_key(&self) -> BTreeMap<Key, Vec<TransactionNo>> {
        let mut keys: BTreeMap<Key, Vec<TransactionNo>> = BTreeMap::new();
        for (no, last) in self.last.iter().enumerate().filter(|(no, _)| self.is_committed[*no]) {
            last.keys().for_each(|key| keys.entry(*key).or_default().push(no));
        }
        keys
    }
}

/// What a transaction read of others: the first value of each key, before it wrote the key itself.
pub(super) fn foreign_reads(transaction: &Transaction) -> BTreeMap<Key, Option<Value>> {
    let mut own = BTreeSet::new();
    let mut reads = BTreeMap::new();
    for operation in &transaction.operations {
        match *operation {
            Operation::Write(key, _) => drop(own.insert(key)),
            Operation::Read(key, value) if !own.contains(&key) => drop(reads.entry(key).or_insert(value)),
            Operation::Read(..) => {}
        }
    }
    reads
}

/// Each read by itself.
pub(super) fn reads(history: &History, written: &Written) -> Result<(), Anomaly> {
    for (no, transaction) in history.transactions.iter().enumerate() {
        let mut own: BTreeMap<Key, Value> = BTreeMap::new();
        let mut seen: BTreeMap<Key, Option<Value>> = BTreeMap::new();
        for operation in &transaction.operations {
            let (key, value) = match *operation {
                Operation::Write(key, value) => {
                    own.insert(key, value);
                    continue;
                }
                Operation::Read(key, value) => (key, value),
            };
            if let Some(own) = own.get(&key) {
                if value != Some(*own) {
                    let what = format!("transaction {no} wrote {own} under key {key} and read {value:?}");
                    return Err(anomaly(AnomalyKind::OwnWriteMissed, what));
                }
                continue;
            }
            if let Some(before) = seen.insert(key, value)
                && before != value
            {
                let what = format!("transaction {no} read {before:?} under key {key}, and then {value:?}");
                return Err(anomaly(AnomalyKind::NonRepeatableRead, what));
            }
            if let Some(value) = value {
                foreign_read(history, written, no, key, value)?;
            }
        }
    }
    Ok(())
}

fn foreign_read(
    history: &History,
    written: &Written,
    no: TransactionNo,
    key: Key,
    value: Value,
) -> Result<(), Anomaly> {
    let what = |why: &str| format!("transaction {no} read {value} under key {key}, {why}");
    let writer = written.writers.get(&value).filter(|(_, written)| *written == key);
    let Some((writer, _)) = writer else {
        return Err(anomaly(AnomalyKind::UnknownValue, what("where nobody wrote it")));
    };
    let other = &history.transactions[*writer];
    let kind = if other.end == End::Aborted {
        AnomalyKind::AbortedRead
    } else if written.last[*writer].get(&key) != Some(&value) {
        AnomalyKind::IntermediateRead
    } else if other.committing.is_none_or(|committing| committing > history.transactions[no].snapped) {
        AnomalyKind::FutureRead
    } else {
        return Ok(());
    };
    Err(anomaly(kind, what(&format!("of transaction {writer}"))))
}

/// Each pair of writers of a key.
pub(super) fn writers(history: &History, written: &Written) -> Result<(), Anomaly> {
    for (key, writers) in written.by_key() {
        let mut based_on: BTreeMap<Option<Value>, TransactionNo> = BTreeMap::new();
        for no in &writers {
            if let Some(base) = foreign_reads(&history.transactions[*no]).get(&key)
                && let Some(other) = based_on.insert(*base, *no)
            {
                let what = format!("transactions {other} and {no} both replaced {base:?} under key {key}");
                return Err(anomaly(AnomalyKind::LostUpdate, what));
            }
        }
        for (at, no) in writers.iter().enumerate() {
            let one = &history.transactions[*no];
            // Each began before the other one asked for its commit.
            let runs_beside = |other: &&TransactionNo| {
                let other = &history.transactions[**other];
                let began_before = |one: &Transaction, other: &Transaction| {
                    other.committing.is_some_and(|committing| one.snapped < committing)
                };
                began_before(one, other) && began_before(other, one)
            };
            if let Some(other) = writers[..at].iter().find(runs_beside) {
                let what = format!("transactions {other} and {no} ran at once and both wrote key {key}");
                return Err(anomaly(AnomalyKind::LostUpdate, what));
            }
        }
    }
    Ok(())
}
