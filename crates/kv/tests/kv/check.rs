//! A check finds damage, and nothing where there is none.

use tanada_kv::blocking::wait;
use tanada_kv::{ErrorKind, StoreSettings};

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
