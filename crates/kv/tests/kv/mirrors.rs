//! Values that stay on the fastest class as long as it has space.

use tanada_kv::blocking::wait;
use tanada_kv::{
    CursorOptions, Database, DatabaseOverrides, DatabaseSettings, ErrorKind, PolicyTemplate, Store,
    StoreOverrides, StoreSettings,
};

use crate::volumes::Bench;

fn value(no: u64) -> Vec<u8> {
    (no as u32).to_be_bytes().repeat(300)
}

fn settings() -> StoreSettings {
    StoreSettings { leaf_bytes: 4 << 20, value_segment_bytes: 1 << 20, ..StoreSettings::default() }
}

/// A database whose store `a` has values of `0..end`, all in their place.
fn filled(bench: &Bench, end: u64) -> (Database, Store) {
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    write(&store, 0..end);
    wait(store.compact()).unwrap();
    (database, store)
}

/// The same, from before there were mirrors.
fn filled_without(bench: &Bench, end: u64) -> (Database, Store) {
    let database = bench.create();
    let store = fill_without(&database, end);
    (database, store)
}

fn fill_without(database: &Database, end: u64) -> Store {
    let store = wait(database.create_store("a", &StoreSettings { mirrors: false, ..settings() })).unwrap();
    write(&store, 0..end);
    wait(store.compact()).unwrap();
    store
}

fn lies_on(segment: &tanada_volume::Object, class: u8) -> bool {
    let first = segment.chunks(0..1).first().and_then(|chunk| chunk.home);
    first.is_some_and(|home| home.class == class)
}

fn write(store: &Store, numbers: std::ops::Range<u64>) {
    numbers.for_each(|no| wait(store.put(&no.to_be_bytes(), &value(no))).unwrap());
}

fn check(database: &Database, end: u64) {
    let store = database.open_store("a").unwrap();
    for no in 0..end {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().as_deref(), Some(&value(no)[..]), "{no}");
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
}

fn mirrored(database: &Database) -> u64 {
    database.statistics().stores[0].mirrored_bytes
}

#[test]
fn spilled_values_are_read_from_the_fastest_class() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, _store) = filled(&bench, 8000);
    let statistics = database.statistics();
    // All is where it stays,
    assert!(statistics.classes[1].segment_bytes > 9 << 20, "{statistics:#?}");
    // what of the log is a mirror is not the log's own,
    assert!(statistics.classes[0].log_bytes <= 8 << 20, "{statistics:#?}");
    // and still where it was.
    assert!(mirrored(&database) > 9 << 20, "{statistics:#?}");
    assert!(statistics.space_amplification < 2.5, "{statistics:#?}");
    wait(database.close()).unwrap();
    // They outlast a closing.
    let database = bench.open();
    let before = bench.read_from("slow");
    let store = database.open_store("a").unwrap();
    for no in (0..8000u64).step_by(3) {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no));
    }
    assert_eq!(bench.read_from("slow"), before);
    check(&database, 8000);
    wait(database.close()).unwrap();
}

/// Log segments stayed as mirrors as they were, though two of three values in them were garbage.
#[test]
fn mirrors_hold_little_garbage() {
    let bench = Bench::with_layout(64 << 10, &[("fast", 96 << 20), ("slow", 512 << 20)]);
    let settings_of_database =
        DatabaseSettings { memory_bytes: 32 << 20, memory_table_bytes: 2 << 20, ..Bench::settings() };
    let environment = bench.environment.clone();
    let database = wait(Database::create(&bench.volume, "test", &settings_of_database, environment)).unwrap();
    let store = wait(database.create_store("a", &settings())).unwrap();
    for no in 0..12_000 {
        (0..3).for_each(|_| write(&store, no..no + 1));
    }
    wait(store.compact()).unwrap();
    let statistics = database.statistics();
    assert!(mirrored(&database) > 13 << 20, "{statistics:#?}");
    assert!(statistics.classes[0].segment_bytes < 24 << 20, "{statistics:#?}");
    check(&database, 12_000);
    wait(database.close()).unwrap();
    // They outlast a closing.
    let database = bench.open();
    let before = bench.read_from("slow");
    let store = database.open_store("a").unwrap();
    for no in (0..12_000u64).step_by(7) {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no));
    }
    assert_eq!(bench.read_from("slow"), before);
    // And make room like others.
    wait(database.drain_class("fast")).unwrap();
    assert_eq!(mirrored(&database), 0);
    check(&database, 12_000);
    wait(database.close()).unwrap();
}

/// Those of a database whose values were all deleted filled the fastest class, and others were shown to the slow one.
#[test]
fn mirrors_of_deleted_values_are_evicted() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = filled(&bench, 8000);
    let most = mirrored(&database);
    assert!(most > 9 << 20);
    wait(store.delete_range(&0u64.to_be_bytes(), Some(&7000u64.to_be_bytes()))).unwrap();
    wait(store.compact()).unwrap();
    assert!(mirrored(&database) <= most / 3, "{:#?}", database.statistics());
    for no in 7000..8000u64 {
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no));
    }
    wait(store.delete_prefix(b"")).unwrap();
    wait(store.compact()).unwrap();
    let statistics = database.statistics();
    assert_eq!((mirrored(&database), statistics.bytes_in_use), (0, 0), "{statistics:#?}");
    wait(database.close()).unwrap();
}

/// What had no mirror stayed without, however often it was read and however much space there was.
#[test]
fn values_read_from_the_slow_class_get_mirrors_where_space_allows() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = filled_without(&bench, 8000);
    assert_eq!(mirrored(&database), 0);
    with_mirrors_from_now_on(&store);
    let some = || (0..8000u64).step_by(3);
    read_until(&database, some(), |bytes| bytes >= 9 << 20);
    let before = bench.read_from("slow");
    some().for_each(|no| assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no)));
    assert_eq!(bench.read_from("slow"), before);
    check(&database, 8000);
    wait(database.close()).unwrap();
    check(&bench.open(), 8000);
}

/// The values that get mirrors are read for it, and a damaged one among them made the database take no writes any more.
#[test]
fn damage_on_the_slow_class_affects_only_reads_of_damaged_values() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = filled_without(&bench, 8000);
    let segments = bench.objects("segment");
    let segment = segments.iter().find(|segment| lies_on(segment, 1)).unwrap();
    wait(segment.write_bytes(300 << 10, &[0xA5; 4096])).unwrap();
    with_mirrors_from_now_on(&store);
    let mut damaged = 0;
    for round in 0..30 {
        for no in (0..8000u64).step_by(3) {
            match wait(store.get(&no.to_be_bytes())) {
                Ok(found) => assert_eq!(found, Some(value(no).into())),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupted);
                    damaged += 1;
                }
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        wait(store.put(b"other", &[round])).unwrap();
    }
    assert!((30..=120).contains(&damaged), "{damaged}");
    assert!(mirrored(&database) > 0, "leaves without damage have theirs");
    wait(database.close()).unwrap();
}

#[test]
fn cursors_read_isolated_values_from_mirrors() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = filled(&bench, 8000);
    // Two of fifty values come to another place.
    (0..8000).step_by(25).for_each(|no| write(&store, no..no + 1));
    wait(store.compact()).unwrap();
    wait(database.close()).unwrap();
    let database = bench.open();
    let store = database.open_store("a").unwrap();
    let damage = |segment: &tanada_volume::Object| {
        wait(segment.write_bytes(0, &vec![0xA5; segment.size_bytes() as usize])).unwrap();
    };
    let mut cursor = store.cursor(CursorOptions { expected_keys: 50, ..CursorOptions::default() });
    let mut scan = |first: u64| {
        wait(cursor.seek(&first.to_be_bytes())).unwrap();
        for no in first..first + 50 {
            assert_eq!(wait(cursor.next()).unwrap().unwrap().1, value(no));
        }
    };
    // Where they are in the newest segment, they are not looked for.
    let segments = bench.objects("segment");
    let newest = segments.iter().rfind(|segment| lies_on(segment, 1)).unwrap();
    let whole = wait(newest.read_bytes(0, newest.size_bytes() as usize)).unwrap();
    damage(newest);
    scan(4000);
    wait(newest.write_bytes(0, &whole)).unwrap();
    // But where mirrors are damaged.
    segments.iter().filter(|segment| lies_on(segment, 0)).for_each(damage);
    scan(5000);
    wait(database.close()).unwrap();
}

#[test]
fn mirrors_give_way() {
    let bench = Bench::with_classes(24 << 20, 256 << 20);
    // Many times what the fastest class has space for.
    let (database, store) = filled(&bench, 60_000);
    let statistics = database.statistics();
    assert!(mirrored(&database) > 0, "{statistics:#?}");
    let fast = &statistics.classes[0];
    assert!(fast.segment_bytes + fast.key_bytes <= 24 << 20, "{statistics:#?}");
    check(&database, 60_000);
    // Another use of the class is wanted.
    wait(store.set_policy(&PolicyTemplate::CapacityOnly.into())).unwrap();
    write(&store, 60_000..60_001);
    wait(store.compact()).unwrap();
    let mut rounds = 0;
    while mirrored(&database) > 0 {
        rounds += 1;
        assert!(rounds < 3000, "{:#?}", database.statistics());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    check(&database, 60_001);
    wait(database.close()).unwrap();
}

#[test]
fn a_cursor_that_stands_keeps_no_mirror() {
    let bench = Bench::with_classes(48 << 20, 512 << 20);
    let (database, store) = filled(&bench, 20_000);
    assert!(mirrored(&database) > 0);
    let mut cursor = store.cursor(CursorOptions::default());
    assert_eq!(wait(cursor.next()).unwrap().unwrap().0.as_ref(), 0u64.to_be_bytes());
    // In steps, for how many have to go depends on how far jobs lag behind.
    for first in (20_000..80_000).step_by(5000) {
        write(&store, first..first + 5000);
        wait(store.compact()).unwrap();
    }
    let statistics = database.statistics();
    // Those that went made room: not all of them had to.
    assert!(mirrored(&database) > 9 << 20, "{statistics:#?}");
    for no in 1..20_000u64 {
        let (key, found) = wait(cursor.next()).unwrap().unwrap();
        assert_eq!((key.as_ref(), &found[..]), (&no.to_be_bytes()[..], &value(no)[..]));
    }
    assert_eq!(wait(cursor.next()).unwrap(), None);
    check(&database, 80_000);
    wait(database.close()).unwrap();
}

#[test]
fn nothing_is_lost_with_the_class_of_mirrors() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, _store) = filled(&bench, 8000);
    assert!(mirrored(&database) > 0);
    wait(database.drain_class("fast")).unwrap();
    assert_eq!(mirrored(&database), 0);
    wait(bench.volume.remove_class("fast")).unwrap();
    check(&database, 8000);
    wait(database.close()).unwrap();
    check(&bench.open(), 8000);
}

/// Reads all of them until what is mirrored is as it is to be.
fn read_until(
    database: &Database,
    numbers: impl Iterator<Item = u64> + Clone,
    is_reached: impl Fn(u64) -> bool,
) {
    let store = database.open_store("a").unwrap();
    let mut rounds = 0;
    while !is_reached(mirrored(database)) {
        rounds += 1;
        assert!(rounds < 300, "{:#?}", database.statistics());
        for no in numbers.clone() {
            assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no));
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

fn with_mirrors_from_now_on(store: &Store) {
    let changes = StoreOverrides { mirrors: Some(true), ..StoreOverrides::default() };
    wait(store.set_settings(&changes)).unwrap();
}

/// Those that had to go never came back, for their leaves had had theirs.
#[test]
fn evicted_mirrors_return_by_reads_when_space_is_free() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    let (database, store) = filled_without(&bench, 8000);
    with_mirrors_from_now_on(&store);
    // More than the cache holds.
    read_until(&database, 0..8000, |bytes| bytes >= 9 << 20);
    let limit = |bytes| DatabaseOverrides { fast_class_bytes: Some(bytes), ..DatabaseOverrides::default() };
    wait(database.set_settings(&limit(Some(3 << 20)))).unwrap();
    read_until(&database, 0..1, |bytes| bytes == 0);
    wait(database.set_settings(&limit(None))).unwrap();
    read_until(&database, 0..8000, |bytes| bytes >= 9 << 20);
    check(&database, 8000);
    wait(database.close()).unwrap();
}

/// Leaves got theirs in the order of their keys, whichever of them was read.
#[test]
fn mirror_space_goes_to_frequently_read_values() {
    let bench = Bench::with_classes(64 << 20, 512 << 20);
    // More than the fastest class has space for, of which the last are read.
    let (database, store) = filled_without(&bench, 80_000);
    with_mirrors_from_now_on(&store);
    let read = || 77_000..80_000u64;
    read_until(&database, read(), |bytes| bytes >= 3 << 20);
    let slow = || {
        let before = bench.read_from("slow");
        read().for_each(|no| drop(wait(store.get(&no.to_be_bytes())).unwrap()));
        bench.read_from("slow") - before
    };
    let mut rounds = 0;
    while slow() > 0 {
        rounds += 1;
        assert!(rounds < 300, "{:#?}", database.statistics());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // And to nothing else.
    assert!(mirrored(&database) < 12 << 20, "{:#?}", database.statistics());
    check(&database, 80_000);
    wait(database.close()).unwrap();
}

/// They stayed, for nobody else wanted their room, and what is read found none.
#[test]
fn unread_mirrors_are_evicted_for_read_ones() {
    let bench = Bench::with_classes(24 << 20, 256 << 20);
    // Three times what there is space for: the first ones have no mirrors any more.
    let (database, store) = filled(&bench, 60_000);
    let slow = || {
        let before = bench.read_from("slow");
        (0..1500u64).for_each(|no| drop(wait(store.get(&no.to_be_bytes())).unwrap()));
        bench.read_from("slow") - before
    };
    assert!(slow() > 1 << 19, "{:#?}", database.statistics());
    let mut rounds = 0;
    while slow() > 0 {
        rounds += 1;
        assert!(rounds < 1000, "{:#?}", database.statistics());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    check(&database, 60_000);
    wait(database.close()).unwrap();
}

/// The root held on to all of a log of which most was garbage.
#[test]
fn values_of_keys_that_are_overwritten_leave_the_log_when_tables_are_written_out() {
    let bench = Bench::new();
    let database = bench.create();
    let store = wait(database.create_store("a", &settings())).unwrap();
    let packed = || {
        let is_packed = |object: &tanada_volume::Object| {
            lies_on(object, 0) && wait(object.read_bytes(0, 8)).is_ok_and(|magic| *magic == *b"TANADAVS")
        };
        bench.objects("segment").into_iter().filter(is_packed).count()
    };
    write(&store, 0..200);
    assert_eq!(packed(), 0, "nothing is overwritten yet");
    let mut most = 0;
    for round in 0..200u64 {
        for no in 0..20u64 {
            wait(store.put(&no.to_be_bytes(), &value(no + round))).unwrap();
        }
        most = most.max(packed());
    }
    assert!(most > 0);
    let check = |database: &Database| {
        let store = database.open_store("a").unwrap();
        for no in 0..200u64 {
            let expected = value(if no < 20 { no + 199 } else { no });
            assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), expected, "{no}");
        }
        assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    };
    check(&database);
    wait(database.close()).unwrap();
    drop((store, database));
    let database = bench.open();
    check(&database);
    wait(database.open_store("a").unwrap().compact()).unwrap();
    check(&database);
    wait(database.close()).unwrap();
}

/// Copies were made that had to go the moment after, ten times what stayed.
#[test]
fn copies_leave_free_the_space_that_mirrors_leave() {
    let bench = Bench::with_classes(24 << 20, 512 << 20);
    let settings =
        DatabaseSettings { memory_bytes: 512 << 20, memory_table_bytes: 32 << 20, ..Bench::settings() };
    let environment = bench.environment.clone();
    let database = wait(Database::create(&bench.volume, "test", &settings, environment)).unwrap();
    let store = fill_without(&database, 40_000);
    with_mirrors_from_now_on(&store);
    wait(database.close()).unwrap();
    let database = bench.open();
    let store = database.open_store("a").unwrap();
    for round in 0..40u64 {
        for no in (0..40_000u64).step_by(7) {
            let no = (no + round) % 40_000;
            assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().unwrap(), value(no));
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let statistics = database.statistics();
    let written = statistics.since_opening.written_by().job_values;
    assert!(written < 2 * mirrored(&database), "{statistics:#?}");
    check(&database, 40_000);
    wait(database.close()).unwrap();
}
