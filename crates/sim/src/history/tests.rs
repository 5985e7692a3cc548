//! Histories written by hand: each anomaly is found and called by its name, and what is legal passes.

use super::{AnomalyKind, End, History, Key, Level, Operation, Transaction, Value};

const X: Key = 0;
const Y: Key = 1;

/// A transaction that was committed at once: from when to when, what it read, what it wrote.
fn committed(from: u64, to: u64, reads: &[(Key, Value)], writes: &[(Key, Value)]) -> Transaction {
    // 0 stands for a key that nobody wrote.
    let reads = reads.iter().map(|(key, value)| Operation::Read(*key, (*value != 0).then_some(*value)));
    let writes = writes.iter().map(|(key, value)| Operation::Write(*key, *value));
    Transaction {
        begun: from,
        snapped: from,
        committing: Some(to),
        ended: Some(to),
        end: End::Committed,
        is_durable: true,
        is_after_stop: false,
        operations: reads.chain(writes).collect(),
    }
}

fn history(transactions: Vec<Transaction>) -> History {
    History { now: 100, last_value: 100, transactions, has_stopped: false }
}

fn found(level: Level, transactions: Vec<Transaction>) -> Option<AnomalyKind> {
    history(transactions).check(level).err().map(|anomaly| anomaly.kind)
}

/// Under both levels.
fn is_found(kind: AnomalyKind, transactions: Vec<Transaction>) {
    for level in [Level::Snapshot, Level::Serializable] {
        assert_eq!(found(level, transactions.clone()), Some(kind), "{level:?}");
    }
}

fn passes(transactions: Vec<Transaction>) {
    for level in [Level::Snapshot, Level::Serializable] {
        assert_eq!(history(transactions.clone()).check(level), Ok(()));
    }
}

#[test]
fn reads_of_unwritten_values_are_found() {
    is_found(AnomalyKind::UnknownValue, vec![committed(1, 2, &[(X, 7)], &[])]);
    // Under another key does not count, and twice is too often to tell.
    let other = vec![committed(1, 2, &[], &[(Y, 7)]), committed(3, 4, &[(X, 7)], &[])];
    is_found(AnomalyKind::UnknownValue, other);
    let twice = vec![committed(1, 2, &[], &[(X, 7)]), committed(3, 4, &[], &[(X, 7)])];
    is_found(AnomalyKind::UnknownValue, twice);
}

#[test]
fn a_write_that_its_own_transaction_does_not_read_is_found() {
    let mut transaction = committed(1, 2, &[], &[(X, 7)]);
    transaction.operations.push(Operation::Read(X, None));
    is_found(AnomalyKind::OwnWriteMissed, vec![transaction.clone()]);
    transaction.operations[1] = Operation::Read(X, Some(7));
    passes(vec![transaction]);
}

/// G1a.
#[test]
fn aborted_reads_are_found() {
    let mut aborted = committed(1, 2, &[], &[(X, 1)]);
    aborted.end = End::Aborted;
    is_found(AnomalyKind::AbortedRead, vec![aborted.clone(), committed(3, 4, &[(X, 1)], &[])]);
    // One that was told nothing may have been committed.
    aborted.end = End::Open;
    passes(vec![aborted.clone(), committed(3, 4, &[(X, 1)], &[])]);
    passes(vec![aborted, committed(3, 4, &[(X, 0)], &[])]);
}

/// G1b.
#[test]
fn intermediate_reads_are_found() {
    let writer = committed(1, 2, &[], &[(X, 1), (X, 2)]);
    is_found(AnomalyKind::IntermediateRead, vec![writer.clone(), committed(3, 4, &[(X, 1)], &[])]);
    passes(vec![writer, committed(3, 4, &[(X, 2)], &[])]);
}

/// G1c.
#[test]
fn transactions_that_depend_on_each_other_are_found() {
    let (mut one, mut two) = (committed(1, 10, &[(Y, 2)], &[(X, 1)]), committed(1, 10, &[(X, 1)], &[(Y, 2)]));
    // Even if the times would allow it.
    (one.committing, two.committing) = (Some(1), Some(1));
    is_found(AnomalyKind::CircularInformation, vec![one, two]);
}

#[test]
fn reads_of_later_commits_are_found() {
    let transactions = vec![committed(1, 9, &[(X, 1)], &[]), committed(2, 3, &[], &[(X, 1)])];
    is_found(AnomalyKind::FutureRead, transactions);
    // The commit was asked for before the reader began, so it may have come first.
    let mut writer = committed(1, 9, &[], &[(X, 1)]);
    writer.committing = Some(2);
    passes(vec![writer, committed(3, 4, &[(X, 1)], &[])]);
}

#[test]
fn a_key_that_gives_two_values_is_found() {
    let transactions = vec![
        committed(1, 2, &[], &[(X, 1)]),
        committed(3, 9, &[(X, 1), (X, 2)], &[]),
        committed(4, 5, &[], &[(X, 2)]),
    ];
    is_found(AnomalyKind::NonRepeatableRead, transactions);
}

#[test]
fn lost_updates_are_found() {
    let base = committed(1, 2, &[], &[(X, 1)]);
    let one = committed(3, 6, &[(X, 1)], &[(X, 2)]);
    is_found(AnomalyKind::LostUpdate, vec![base.clone(), one.clone(), committed(4, 7, &[(X, 1)], &[(X, 3)])]);
    // Also of those that wrote without reading, and of what was never written before.
    is_found(AnomalyKind::LostUpdate, vec![base.clone(), one.clone(), committed(4, 7, &[], &[(X, 3)])]);
    let new = vec![committed(3, 6, &[(X, 0)], &[(X, 2)]), committed(7, 8, &[(X, 0)], &[(X, 3)])];
    is_found(AnomalyKind::LostUpdate, new);
    // One that failed has lost nothing, and one after the other is what updates are.
    let mut aborted = committed(4, 7, &[(X, 1)], &[(X, 3)]);
    aborted.end = End::Aborted;
    passes(vec![base.clone(), one.clone(), aborted]);
    passes(vec![base, one, committed(7, 8, &[(X, 2)], &[(X, 3)])]);
}

#[test]
fn a_reader_that_saw_a_part_of_a_transaction_is_found() {
    let base = committed(1, 2, &[], &[(X, 1), (Y, 2)]);
    let writer = committed(3, 4, &[], &[(X, 3), (Y, 4)]);
    let mut reader = committed(5, 6, &[(X, 3), (Y, 2)], &[]);
    is_found(AnomalyKind::FracturedRead, vec![writer.clone(), committed(5, 6, &[(X, 3), (Y, 0)], &[])]);
    // Whichever of the two is the older one.
    is_found(AnomalyKind::FracturedRead, vec![base.clone(), writer.clone(), reader.clone()]);
    let updater = committed(3, 4, &[(Y, 2)], &[(X, 3), (Y, 4)]);
    is_found(AnomalyKind::FracturedRead, vec![base.clone(), updater, reader.clone()]);
    // Readers that failed have snapshots, too.
    reader.end = End::Aborted;
    is_found(AnomalyKind::FracturedRead, vec![base.clone(), writer.clone(), reader]);
    passes(vec![base, writer, committed(5, 6, &[(X, 3), (Y, 4)], &[])]);
}

/// Over what a third one wrote.
#[test]
fn causality_violations_are_found() {
    let transactions = vec![
        committed(1, 2, &[], &[(X, 1)]),
        committed(3, 4, &[(X, 1)], &[(Y, 2)]),
        committed(5, 6, &[(Y, 2), (X, 0)], &[]),
    ];
    is_found(AnomalyKind::FracturedRead, transactions);
}

#[test]
fn readers_that_disagree_about_an_order_are_found() {
    let transactions = vec![
        committed(1, 10, &[], &[(X, 1)]),
        committed(1, 10, &[], &[(Y, 2)]),
        committed(11, 12, &[(X, 1), (Y, 0)], &[]),
        committed(11, 12, &[(X, 0), (Y, 2)], &[]),
    ];
    is_found(AnomalyKind::LongFork, transactions.clone());
    // If they agree, or one of them sees both, all is well; as long as the writes are not acknowledged, too.
    let mut open = transactions;
    for writer in &mut open[..2] {
        writer.ended = None;
    }
    open[3] = committed(11, 12, &[(X, 1), (Y, 2)], &[]);
    passes(open.clone());
    open[3] = committed(11, 12, &[(X, 1), (Y, 0)], &[]);
    passes(open);
}

#[test]
fn stale_reads_are_found() {
    let writer = committed(1, 2, &[], &[(X, 1)]);
    is_found(AnomalyKind::StaleRead, vec![writer.clone(), committed(3, 4, &[(X, 0)], &[])]);
    passes(vec![writer, committed(1, 4, &[(X, 0)], &[])]);
}

/// The one anomaly that snapshots allow.
#[test]
fn write_skew_is_found_where_transactions_are_to_be_serializable() {
    let skew =
        vec![committed(1, 10, &[(X, 0), (Y, 0)], &[(X, 1)]), committed(1, 10, &[(X, 0), (Y, 0)], &[(Y, 2)])];
    assert_eq!(found(Level::Snapshot, skew.clone()), None);
    assert_eq!(found(Level::Serializable, skew), Some(AnomalyKind::WriteSkew));
    // A reader that sees one of them is no more than that, for both levels.
    let read_only = vec![
        committed(1, 10, &[(X, 0), (Y, 0)], &[(X, 1)]),
        committed(1, 3, &[(Y, 0)], &[(Y, 2)]),
        committed(4, 5, &[(X, 0), (Y, 2)], &[]),
    ];
    assert_eq!(found(Level::Snapshot, read_only.clone()), None);
    assert_eq!(found(Level::Serializable, read_only), Some(AnomalyKind::WriteSkew));
}

#[test]
fn a_crash_loses_only_a_suffix_of_undurable_commits() {
    let mut history = History::default();
    let values: Vec<Value> = (0..3)
        .map(|no| {
            let transaction = history.begin();
            history.begun(transaction);
            let value = history.write(transaction, no);
            history.committing(transaction);
            history.committed(transaction);
            value
        })
        .collect();
    history.durable(0);
    // Who read the second one has not made it durable.
    let reader = history.begin();
    history.begun(reader);
    history.read(reader, 1, Some(values[1]));
    history.committing(reader);
    history.committed(reader);
    history.durable(reader);
    let stopped = |found: &[usize]| {
        let mut history = history.clone();
        let found = found.iter().map(|no| (*no as Key, values[*no])).collect();
        history.stopped(&found, 0..3);
        history.check(Level::Snapshot).map_err(|anomaly| anomaly.kind)
    };
    for end in [&[0][..], &[0, 1], &[0, 1, 2]] {
        assert_eq!(stopped(end), Ok(()));
    }
    for hole in [&[][..], &[1], &[1, 2], &[0, 2]] {
        assert_eq!(stopped(hole), Err(AnomalyKind::StaleRead), "{hole:?}");
    }
}

#[test]
fn histories_continue_from_initial_values() {
    let mut history = History::beginning_with(&[(X, 5)].into());
    let no = history.begin();
    history.begun(no);
    history.read(no, X, Some(5));
    assert_eq!(history.write(no, X), 6);
    history.committing(no);
    history.committed(no);
    assert_eq!((history.check(Level::Serializable), history.len(), history.is_empty()), (Ok(()), 2, false));
}
