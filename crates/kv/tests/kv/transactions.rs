//! Transactions: what they see, and when they fail.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use proptest::prelude::*;
use tanada_kv::blocking::wait;
use tanada_kv::{
    CursorOptions, Database, ErrorKind, Isolation, LONGEST_KEY, LONGEST_VALUE, Store, StoreSettings,
    WriteOptions,
};

use crate::volumes::Bench;

fn start(bench: &Bench) -> (Database, Store, Store) {
    let database = bench.create();
    let a = wait(database.create_store("a", &StoreSettings::default())).unwrap();
    let b = wait(database.create_store("b", &StoreSettings::default())).unwrap();
    (database, a, b)
}

fn text(value: Option<Bytes>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| String::from_utf8(value.to_vec()).unwrap())
}

/// It was told that it had been written, and nothing was.
#[test]
fn a_transaction_whose_writes_were_all_refused_fails() {
    let bench = Bench::new();
    let (database, a, _) = start(&bench);
    for (key, value) in [(LONGEST_KEY + 1, 1), (1, LONGEST_VALUE + 1)] {
        for isolation in [Isolation::Snapshot, Isolation::Serializable] {
            let mut transaction = database.begin(isolation);
            transaction.put(&a, &vec![b'k'; key], &vec![b'v'; value]);
            let error = wait(transaction.commit(&WriteOptions::default())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
    }
    wait(database.begin(Isolation::Snapshot).commit(&WriteOptions::default())).unwrap();
    wait(database.close()).unwrap();
}

#[test]
fn a_transaction_sees_its_snapshot_and_its_own_writes() {
    let bench = Bench::new();
    let (database, a, b) = start(&bench);
    wait(a.put(b"1", b"one")).unwrap();
    wait(a.put(b"2", b"two")).unwrap();
    let mut transaction = database.begin(Isolation::Snapshot);
    wait(a.put(b"1", b"later")).unwrap();
    assert_eq!(text(wait(transaction.get(&a, b"1")).unwrap()), "one");
    transaction.put(&b, b"1", b"mine");
    transaction.delete(&a, b"2");
    assert_eq!(text(wait(transaction.get(&b, b"1")).unwrap()), "mine");
    assert_eq!(text(wait(transaction.get(&a, b"2")).unwrap()), "-");
    assert_eq!(text(wait(b.get(b"1")).unwrap()), "-");
    transaction.delete_prefix(&b, b"");
    transaction.put(&b, b"9", b"after");
    assert_eq!(text(wait(transaction.get(&b, b"1")).unwrap()), "-");
    wait(transaction.commit(&WriteOptions::default())).unwrap();
    let all = [wait(a.get(b"1")), wait(a.get(b"2")), wait(b.get(b"1")), wait(b.get(b"9"))];
    assert_eq!(all.map(|value| text(value.unwrap())), ["later", "-", "-", "after"]);
    let mut rolled_back = database.begin(Isolation::Snapshot);
    rolled_back.put(&a, b"1", b"never");
    rolled_back.rollback();
    assert_eq!(text(wait(a.get(b"1")).unwrap()), "later");
    wait(database.close()).unwrap();
}

#[test]
fn the_first_of_two_writers_wins() {
    let bench = Bench::new();
    let (database, a, b) = start(&bench);
    let mut first = database.begin(Isolation::Snapshot);
    let mut second = database.begin(Isolation::Snapshot);
    let mut third = database.begin(Isolation::Snapshot);
    first.put(&a, b"1", b"first");
    second.put(&a, b"1", b"second");
    third.put(&b, b"1", b"third");
    wait(first.commit(&WriteOptions::default())).unwrap();
    assert_eq!(wait(second.commit(&WriteOptions::default())).unwrap_err().kind(), ErrorKind::Conflict);
    wait(third.commit(&WriteOptions::default())).unwrap();
    assert_eq!(text(wait(a.get(b"1")).unwrap()), "first");
    // Plain writes and ranges count too.
    let mut fourth = database.begin(Isolation::Snapshot);
    fourth.put(&a, b"2", b"fourth");
    wait(a.put(b"2", b"plain")).unwrap();
    assert_eq!(wait(fourth.commit(&WriteOptions::default())).unwrap_err().kind(), ErrorKind::Conflict);
    let mut fifth = database.begin(Isolation::Snapshot);
    fifth.put(&a, b"3", b"fifth");
    wait(a.delete_range(b"2", Some(b"4"))).unwrap();
    assert_eq!(wait(fifth.commit(&WriteOptions::default())).unwrap_err().kind(), ErrorKind::Conflict);
    let mut sixth = database.begin(Isolation::Snapshot);
    sixth.delete_prefix(&a, b"7");
    wait(a.put(b"71", b"plain")).unwrap();
    assert_eq!(wait(sixth.commit(&WriteOptions::default())).unwrap_err().kind(), ErrorKind::Conflict);
    wait(database.close()).unwrap();
}

/// Two that each read what the other writes: under snapshots both may commit, one after another only one.
#[test]
fn write_skew_is_for_serializable_to_prevent() {
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let bench = Bench::new();
        let (database, a, _) = start(&bench);
        let mut first = database.begin(isolation);
        let mut second = database.begin(isolation);
        wait(first.get(&a, b"x")).unwrap();
        wait(second.get(&a, b"y")).unwrap();
        first.put(&a, b"y", b"1");
        second.put(&a, b"x", b"1");
        wait(first.commit(&WriteOptions::default())).unwrap();
        let second = wait(second.commit(&WriteOptions::default()));
        assert_eq!(second.is_ok(), isolation == Isolation::Snapshot);
        wait(database.close()).unwrap();
    }
}

/// What was loaded meanwhile is not overwritten by who has not seen it.
#[test]
fn a_load_that_ends_meanwhile_is_a_conflict() {
    let bench = Bench::new();
    let (database, a, b) = start(&bench);
    let mut load = wait(a.bulk_load()).unwrap();
    wait(load.put(b"1", b"loaded")).unwrap();
    wait(load.put(b"5", b"loaded")).unwrap();
    let begin = |isolation, key: &[u8]| {
        let mut transaction = database.begin(isolation);
        assert_eq!(text(wait(transaction.get(&a, key)).unwrap()), "-");
        transaction.put(&a, key, b"mine");
        transaction
    };
    let [same, other] = [b"5", b"7"].map(|key| begin(Isolation::Snapshot, key));
    let mut reader = database.begin(Isolation::Serializable);
    assert_eq!(text(wait(reader.get(&a, b"1")).unwrap()), "-");
    reader.put(&b, b"1", b"there was nothing");
    wait(load.finish()).unwrap();
    let commit = |transaction: tanada_kv::Transaction| wait(transaction.commit(&WriteOptions::default()));
    assert_eq!(commit(same).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(commit(reader).unwrap_err().kind(), ErrorKind::Conflict);
    commit(other).unwrap();
    let later = begin_again(&database, &a);
    commit(later).unwrap();
    let all = [b"1", b"5", b"7"].map(|key| text(wait(a.get(key)).unwrap()));
    assert_eq!(all, ["loaded", "later", "mine"]);
    wait(database.close()).unwrap();
}

fn begin_again(database: &Database, store: &Store) -> tanada_kv::Transaction {
    let mut transaction = database.begin(Isolation::Serializable);
    assert_eq!(text(wait(transaction.get(store, b"5")).unwrap()), "loaded");
    transaction.put(store, b"5", b"later");
    transaction
}

/// What is flushed while an update reads leaves the memtables, by which it is told whether anybody was faster.
#[test]
fn an_update_ends_and_loses_nothing_though_all_is_written_out_meanwhile() {
    let bench = Bench::new();
    let (database, a, b) = start(&bench);
    wait(a.put(b"sum", &0u64.to_be_bytes())).unwrap();
    let tries = std::cell::Cell::new(0);
    let aside = |work: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| {
            scope.spawn(work);
        });
    };
    let change = |old: Option<&Bytes>| {
        let old = u64::from_be_bytes(old.unwrap()[..].try_into().unwrap());
        tries.set(tries.get() + 1);
        if tries.get() == 2 {
            aside(&|| wait(a.put(b"sum", &(old + 10).to_be_bytes())).unwrap());
        }
        // Somebody writes beside it, and everything is flushed, in the other store as well.
        aside(&|| {
            wait(a.put(b"other", b"1")).unwrap();
            wait(b.put(b"other", b"1")).unwrap();
            wait(a.compact()).unwrap();
            wait(b.compact()).unwrap();
        });
        Some(Bytes::copy_from_slice(&(old + 1).to_be_bytes()))
    };
    wait(a.update(b"sum", change, &WriteOptions::default())).unwrap();
    assert_eq!(wait(a.get(b"sum")).unwrap().unwrap(), 11u64.to_be_bytes()[..]);
    assert!(tries.get() <= 5, "{}", tries.get());
    wait(database.close()).unwrap();
}

/// Only what is done to its key is in the way of an update.
#[test]
fn an_update_is_done_once_unless_its_key_is_written() {
    let bench = Bench::new();
    let (database, a, _) = start(&bench);
    let loaded = || {
        let mut load = wait(a.bulk_load()).unwrap();
        wait(load.put(b"key", b"3")).unwrap();
        wait(load.finish()).unwrap();
    };
    let writes: [(&dyn Fn(), u32); 8] = [
        (&|| (), 1),
        (&|| wait(a.put(b"other", b"1")).unwrap(), 1),
        (&|| wait(a.put(b"key", b"2")).unwrap(), 2),
        (&|| wait(a.delete(b"key")).unwrap(), 2),
        (&|| wait(a.delete_range(b"a", Some(b"b"))).unwrap(), 1),
        (&|| wait(a.delete_range(b"k", None)).unwrap(), 2),
        (&loaded, 2),
        // What is flushed is nobody's write.
        (&|| wait(a.compact()).unwrap(), 1),
    ];
    for (no, (write, expected)) in writes.into_iter().enumerate() {
        wait(a.put(b"key", b"1")).unwrap();
        let tries = std::cell::Cell::new(0);
        let change = |old: Option<&Bytes>| {
            tries.set(tries.get() + 1);
            if tries.get() == 1 {
                write();
            }
            Some(old.map_or_else(|| Bytes::from_static(b"none"), |old| [old, &b"+"[..]].concat().into()))
        };
        let written = wait(a.update(b"key", change, &WriteOptions::default())).unwrap().unwrap();
        let left = ["1+", "1+", "2+", "none", "1+", "none", "3+", "1+"][no];
        assert_eq!((&*written, tries.get()), (left.as_bytes(), expected), "{no}");
        assert_eq!(wait(a.get(b"key")).unwrap().unwrap(), left);
    }
    wait(database.close()).unwrap();
}

#[test]
fn updates_of_many_threads_are_all_there() {
    let bench = Bench::new();
    let (database, a, _) = start(&bench);
    let add = |old: Option<&Bytes>| {
        let old = old.map_or(0, |old| u64::from_be_bytes(old[..].try_into().unwrap()));
        Some(Bytes::copy_from_slice(&(old + 1).to_be_bytes()))
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..500 {
                    wait(a.update(b"sum", add, &WriteOptions::default())).unwrap();
                }
            });
        }
    });
    assert_eq!(wait(a.get(b"sum")).unwrap().unwrap(), 2000u64.to_be_bytes()[..]);
    wait(database.close()).unwrap();
}

#[test]
fn cursors_see_their_own_transactions_writes_only() {
    let bench = Bench::new();
    let (database, a, _) = start(&bench);
    for key in [b"1", b"3", b"5"] {
        wait(a.put(key, b"before")).unwrap();
    }
    let mut transaction = database.begin(Isolation::Snapshot);
    let mut cursor = transaction.cursor(&a, CursorOptions::default());
    let next = |cursor: &mut tanada_kv::Cursor| text(wait(cursor.next()).unwrap().map(|(key, _)| key));
    assert_eq!(next(&mut cursor), "1");
    wait(a.put(b"2", b"of another")).unwrap();
    cursor.refresh();
    assert_eq!(next(&mut cursor), "3");
    transaction.put(&a, b"4", b"own");
    assert_eq!([next(&mut cursor), next(&mut cursor), next(&mut cursor)], ["4", "5", "-"]);
    cursor.seek_to_begin();
    assert_eq!([next(&mut cursor), next(&mut cursor)], ["1", "3"]);
    drop(transaction);
    wait(database.close()).unwrap();
}

/// What is done in a transaction, and with a cursor of it.
#[derive(Debug, Clone)]
enum Step {
    Put(u8, u8),
    Delete(u8),
    DeleteRange(u8, Option<u8>),
    Seek(u8),
    ToBegin,
    ToEnd,
    Next,
    Previous,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0u8..40, any::<u8>()).prop_map(|(key, value)| Step::Put(key, value)),
        2 => (0u8..40).prop_map(Step::Delete),
        1 => (0u8..40, proptest::option::of(0u8..40)).prop_map(|(start, end)| Step::DeleteRange(start, end)),
        1 => (0u8..40).prop_map(Step::Seek),
        1 => prop_oneof![Just(Step::ToBegin), Just(Step::ToEnd)],
        8 => Just(Step::Next),
        4 => Just(Step::Previous),
    ];
    proptest::collection::vec(step, 1..60)
}

/// Where the model of a cursor stands.
#[derive(Debug, Clone, Copy)]
enum Gap {
    Begin,
    Before(u8),
    Behind(u8),
    End,
}

fn next_in(map: &BTreeMap<u8, u8>, gap: &mut Gap) -> Option<(u8, u8)> {
    let from = match *gap {
        Gap::Begin => Bound::Unbounded,
        Gap::Before(key) => Bound::Included(key),
        Gap::Behind(key) => Bound::Excluded(key),
        Gap::End => return None,
    };
    let found = map.range((from, Bound::Unbounded)).next().map(|(key, value)| (*key, *value));
    *gap = found.map_or(Gap::End, |(key, _)| Gap::Behind(key));
    found
}

fn previous_in(map: &BTreeMap<u8, u8>, gap: &mut Gap) -> Option<(u8, u8)> {
    let to = match *gap {
        Gap::Begin => return None,
        Gap::Before(key) => Bound::Excluded(key),
        Gap::Behind(key) => Bound::Included(key),
        Gap::End => Bound::Unbounded,
    };
    let found = map.range((Bound::Unbounded, to)).next_back().map(|(key, value)| (*key, *value));
    *gap = found.map_or(Gap::Begin, |(key, _)| Gap::Before(key));
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However writes and steps come one after another.
    #[test]
    fn cursors_include_writes_made_after_they_were_opened(
        committed in proptest::collection::btree_map(0u8..40, any::<u8>(), 0..40),
        is_written_out in any::<bool>(),
        expected_keys in 0usize..20,
        steps in steps(),
    ) {
        let bench = Bench::new();
        let (database, a, _) = start(&bench);
        for (key, value) in &committed {
            wait(a.put(&[*key], &[*value])).unwrap();
        }
        if is_written_out {
            wait(a.compact()).unwrap();
        }
        let mut transaction = database.begin(Isolation::Snapshot);
        let mut cursor = transaction.cursor(&a, CursorOptions { expected_keys, ..CursorOptions::default() });
        let (mut map, mut gap) = (committed, Gap::Begin);
        for (no, step) in steps.iter().enumerate() {
            match *step {
                Step::Put(key, value) => {
                    transaction.put(&a, &[key], &[value]);
                    map.insert(key, value);
                }
                Step::Delete(key) => {
                    transaction.delete(&a, &[key]);
                    map.remove(&key);
                }
                Step::DeleteRange(start, end) => {
                    transaction.delete_range(&a, &[start], end.as_ref().map(std::slice::from_ref));
                    map.retain(|key, _| *key < start || end.is_some_and(|end| *key >= end));
                }
                Step::Seek(key) => {
                    wait(cursor.seek(&[key])).unwrap();
                    gap = Gap::Before(key);
                }
                Step::ToBegin => {
                    cursor.seek_to_begin();
                    gap = Gap::Begin;
                }
                Step::ToEnd => {
                    wait(cursor.seek_to_end()).unwrap();
                    gap = Gap::End;
                }
                Step::Next | Step::Previous => {
                    let (found, expected) = match step {
                        Step::Next => (wait(cursor.next()).unwrap(), next_in(&map, &mut gap)),
                        _ => (wait(cursor.previous()).unwrap(), previous_in(&map, &mut gap)),
                    };
                    let found = found.map(|(key, value)| (key[0], value[0]));
                    prop_assert_eq!(found, expected, "step {}", no);
                }
            }
        }
        drop((cursor, transaction));
        wait(database.close()).unwrap();
    }
}
