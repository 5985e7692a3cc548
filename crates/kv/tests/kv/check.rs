//! A check finds damage, and nothing where there is none.

use tanada_kv::blocking::wait;
use tanada_kv::{Database, ErrorKind, FilterMemory, StoreSettings};
use tanada_volume::Object;

use crate::volumes::Bench;

#[test]
fn damage_of_values_and_keys_is_found() {
    let bench = Bench::new();
    let database = bench.create();
    let store =
        wait(database.create_store("a", &StoreSettings { mirrors: false, ..StoreSettings::default() }))
            .unwrap();
    for no in 0..2000u32 {
        wait(store.put(&no.to_be_bytes(), &[no as u8; 700])).unwrap();
    }
    wait(store.compact()).unwrap();
    let report = wait(database.check()).unwrap();
    assert_eq!((report.versions, report.values, report.findings.len()), (2000, 2000, 0), "{report:?}");
    let damage = |kind: &str, wanted: &[u8]| {
        // The log may have it too.
        let mut places = 0;
        for object in bench.objects(kind) {
            let bytes = wait(object.read_bytes(0, 8 << 20)).unwrap();
            if let Some(at) = bytes.windows(wanted.len()).position(|window| window == wanted) {
                wait(object.write_bytes(at as u64 + 1, &[0xee])).unwrap();
                places += 1;
            }
        }
        assert!(places > 0);
    };
    damage("segment", &[77; 600]);
    let report = wait(database.check()).unwrap();
    assert!(!report.findings.is_empty());
    assert!(report.findings[0].contains("checksum"), "{report:?}");
    wait(database.close()).unwrap();
}

/// A segment that is not what the manifest says is not read at all.
#[test]
fn the_header_of_a_value_segment_is_looked_at() {
    let bench = Bench::new();
    let database = bench.create();
    let settings = StoreSettings { mirrors: false, ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    for no in 0..500u32 {
        wait(store.put(&no.to_be_bytes(), &[no as u8; 700])).unwrap();
    }
    wait(store.compact()).unwrap();
    wait(database.close()).unwrap();
    let has_values = |object: &tanada_volume::Object| {
        object.size_bytes() > 8 && *wait(object.read_bytes(0, 8)).unwrap() == *b"TANADAVS"
    };
    let segments: Vec<_> = bench.objects("segment").into_iter().filter(has_values).collect();
    assert!(!segments.is_empty());
    for segment in &segments {
        wait(segment.write_bytes(17, &[0xee])).unwrap();
    }
    let database = bench.open();
    let store = database.open_store("a").unwrap();
    let error = wait(store.get(&1u32.to_be_bytes())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupted);
    assert!(error.to_string().contains(&segments[0].name()), "{error}");
    assert!(error.to_string().contains("offset 0"), "{error}");
    wait(database.close()).unwrap();
}

fn long_key(no: u32) -> Vec<u8> {
    format!("a key that is long enough for the index to have several levels, number {no:08}").into_bytes()
}

/// A database of key files with an index of several levels and a filter of several parts.
fn with_long_keys(bench: &Bench, filters: FilterMemory, keys: u32) {
    let database = bench.create();
    let settings = StoreSettings { filters, leaf_bytes: 64 << 20, ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    (0..keys).for_each(|no| wait(store.put(&long_key(no), &[7; 200])).unwrap());
    wait(store.compact()).unwrap();
    wait(database.close()).unwrap();
    // What nothing refers to goes.
    wait(bench.open().close()).unwrap();
}

/// The pages of indexes and filters of all key files: each with its file and its kind, 2 or 3.
fn inner_pages(bench: &Bench) -> Vec<(Object, u64, u8)> {
    let mut pages = Vec::new();
    for file in bench.objects("keys") {
        let bytes = wait(file.read_bytes(0, file.size_bytes() as usize)).unwrap();
        // The footer is none, and what stands before it is none of them.
        for offset in (0..file.size_bytes() - 8192).step_by(4096) {
            let kind = bytes[offset as usize + 22];
            pages.extend(matches!(kind, 2 | 3).then(|| (file.clone(), offset, kind)));
        }
    }
    pages
}

/// Those of `0..keys` that cannot be looked up; the others are there.
fn failing(database: &Database, keys: u32) -> usize {
    let store = database.open_store("a").unwrap();
    let is_failing = |no: &u32| match wait(store.get(&long_key(*no))) {
        Ok(value) => *value.unwrap() != [7; 200],
        Err(error) => error.kind() == ErrorKind::Corrupted,
    };
    (0..keys).filter(is_failing).count()
}

/// A check walked the leaf pages alone, and each lookup by a part of a filter that was damaged failed.
#[test]
fn damage_of_an_index_or_a_filter_is_found_and_a_filter_costs_no_answer() {
    const KEYS: u32 = 12_000;
    for filters in [FilterMemory::Small, FilterMemory::Paged, FilterMemory::Resident] {
        let bench = Bench::new();
        with_long_keys(&bench, filters, KEYS);
        let pages = inner_pages(&bench);
        let count = |wanted: u8| pages.iter().filter(|(_, _, kind)| *kind == wanted).count();
        assert!(count(2) > 2 && count(3) > 2, "{} pages of the index, {} of the filter", count(2), count(3));
        let mut inner = 0;
        for (file, offset, kind) in pages {
            let page = wait(file.read_bytes(offset, 4096)).unwrap();
            wait(file.write_bytes(offset + 100, &[!page[100]])).unwrap();
            match bench.try_open() {
                // A root.
                Err(error) => assert_eq!((error.kind(), kind), (ErrorKind::Corrupted, 2)),
                Ok(database) => {
                    assert_eq!(failing(&database, KEYS) == 0, kind == 3, "{filters:?}, offset {offset}");
                    let findings = wait(database.check()).unwrap().findings;
                    let at = format!("at offset {offset}");
                    let is_named = |found: &String| found.contains(&file.name()) && found.contains(&at);
                    assert!(findings.iter().any(is_named), "{filters:?}, offset {offset}: {findings:?}");
                    wait(database.close()).unwrap();
                    inner += u32::from(kind == 2);
                }
            }
            wait(file.write_bytes(offset, &page)).unwrap();
        }
        assert!(inner > 0, "an index has more pages than its root");
        let database = bench.open();
        assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
        wait(database.close()).unwrap();
    }
}

/// Jobs that came upon it ended the writes to all stores, over all openings.
#[test]
fn a_damaged_value_is_moved_as_it_is_and_stays_damaged() {
    let bench = Bench::new();
    let database = bench.create();
    let settings = StoreSettings {
        mirrors: false,
        space_amplification: 1.05,
        leaf_bytes: 1 << 20,
        value_segment_bytes: 256 << 10,
        ..StoreSettings::default()
    };
    let store = wait(database.create_store("a", &settings)).unwrap();
    let write = |store: &tanada_kv::Store, no: u32, version: u32| {
        let value = [&no.to_be_bytes()[..], &version.to_be_bytes(), &[7; 900]].concat();
        wait(store.put(&no.to_be_bytes(), &value)).unwrap();
    };
    (0..3000).for_each(|no| write(&store, no, 1));
    wait(store.compact()).unwrap();
    let wanted = [1000u32.to_be_bytes(), 1u32.to_be_bytes()].concat();
    let mut places = Vec::new();
    for object in bench.objects("segment") {
        let bytes = wait(object.read_bytes(0, object.size_bytes() as usize)).unwrap();
        // As a key it is there, too, with its value behind it.
        let found = bytes.windows(9).position(|window| window[..8] == wanted && window[8] == 7);
        places.extend(found.map(|at| (object.name(), at)));
        if let Some(at) = found {
            wait(object.write_bytes(at as u64 + 100, &[8])).unwrap();
        }
    }
    for version in 2..6 {
        for no in (0..3000).filter(|no| no % 3 != 1000 % 3) {
            write(&store, no, version);
        }
        wait(store.compact()).unwrap();
    }
    let get = |no: u32| wait(store.get(&no.to_be_bytes()));
    assert_eq!(get(1000).unwrap_err().kind(), ErrorKind::Corrupted);
    assert_eq!(get(1003).unwrap().unwrap()[4..8], 1u32.to_be_bytes());
    assert_eq!(get(1001).unwrap().unwrap()[4..8], 5u32.to_be_bytes());
    let report = wait(database.check()).unwrap();
    assert_eq!(report.findings.len(), 1, "{report:?}");
    let (object, _) = &places[0];
    assert!(!report.findings[0].contains(object), "it has not moved from {object}: {report:?}");
    write(&store, 1000, 6);
    wait(store.compact()).unwrap();
    assert_eq!(get(1000).unwrap().unwrap()[4..8], 6u32.to_be_bytes());
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}
