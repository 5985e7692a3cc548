//! Databases that earlier versions wrote are read, key by key: one for each version of the format in `fixtures/`, as a
//! stop left it, so that there is a log to be replayed, too. In `contents.tsv` stands what is in it: store, key in
//! hexadecimal digits, length and CRC-32C of the value.
//!
//! For a new version of a format, and only then (`formats.rs` of the crate says when): raise `VERSION`, keep the older
//! fixtures in `VERSIONS`, and `cargo test --profile ci -p tanada-kv --test kv -- --ignored format::write_a_fixture`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::{Device, DeviceOptions};
use tanada_kv::blocking::wait;
use tanada_kv::{
    Compression, CursorOptions, Database, DatabaseSettings, Durability, Environment, OpenOptions,
    PolicyTemplate, Store, StoreSettings, ThreadEnvironment, WriteOptions,
};
use tanada_volume::{ClassSettings, Parts, Volume, VolumeSettings};

/// What is written now.
const VERSION: u32 = 4;

/// What can be read.
const VERSIONS: [u32; 4] = [1, 2, 3, 4];

const FILES: [&str; 3] = ["metadata", "fast", "slow"];

fn archive(version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/kv-format-{version}.tar.zst"))
}

fn parts(folder: &Path) -> Parts {
    let options = DeviceOptions { create: true, ..DeviceOptions::default() };
    let device = |name: &str| Device::open(folder.join(name), &options).unwrap();
    let [metadata, fast, slow] = FILES;
    Parts::new(device(metadata)).with_class(fast, vec![device(fast)]).with_class(slow, vec![device(slow)])
}

/// The same bytes for the same number.
fn value(no: u64) -> Vec<u8> {
    let len = match no % 5 {
        0 => 0,
        1 => 20 + no % 200,
        _ => 256 + no * 7 % 1500,
    };
    // Half of each can be compressed.
    (0..len).map(|at| if at % 2 == 0 { 0 } else { (no * 31 + at * at) as u8 }).collect()
}

fn key(no: u64) -> Vec<u8> {
    let mut key = format!("key/{:04}", no * 7919 % 1000).into_bytes();
    if no.is_multiple_of(50) {
        key.resize(5000, b'k');
    }
    key
}

fn settings(name: &str) -> StoreSettings {
    let settings = StoreSettings::default();
    match name {
        "lz4" => StoreSettings { compression: Compression::Lz4, ..settings },
        "zstd" => StoreSettings { compression: Compression::Zstd, ..settings },
        // For seventy years.
        "expiring" => StoreSettings { time_to_live_s: Some(70 * 365 * 86_400), ..settings },
        "staging" => StoreSettings { policy: PolicyTemplate::StagingOnly.into(), ..settings },
        "small pages" => StoreSettings { page_bytes: 16 << 10, filter_bits_per_key: 0, ..settings },
        _ => settings,
    }
}

const STORES: [&str; 6] = ["plain", "lz4", "zstd", "expiring", "staging", "small pages"];

/// One line for each key.
fn contents(database: &Database) -> String {
    let mut lines = String::new();
    let mut names = database.stores();
    names.sort();
    for name in names {
        let store = database.open_store(&name).unwrap();
        let mut cursor = store.cursor(CursorOptions::default());
        while let Some((key, value)) = wait(cursor.next()).unwrap() {
            assert_eq!(wait(store.get(&key)).unwrap().as_ref(), Some(&value));
            let hexadecimal: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
            writeln!(lines, "{name}\t{hexadecimal}\t{}\t{:08x}", value.len(), crc32c::crc32c(&value))
                .unwrap();
        }
    }
    lines
}

fn fill(store: &Store, range: std::ops::Range<u64>) {
    range.for_each(|no| wait(store.put(&key(no), &value(no))).unwrap());
}

#[test]
fn databases_of_every_version_are_read() {
    for version in VERSIONS {
        let folder = tempfile::tempdir().unwrap();
        let packed = std::fs::File::open(archive(version)).unwrap();
        tar::Archive::new(zstd::Decoder::new(packed).unwrap()).unpack(folder.path()).unwrap();
        let expected = std::fs::read_to_string(folder.path().join("contents.tsv")).unwrap();
        assert!(expected.lines().count() > 500);
        let volume =
            wait(Volume::open(parts(folder.path()), &tanada_volume::OpenOptions::default())).unwrap();
        let environment: Arc<dyn Environment> = ThreadEnvironment::new();
        let open = |options| wait(Database::open(&volume, "shop", &options, environment.clone())).unwrap();
        let database = open(OpenOptions { read_only: true, ..OpenOptions::default() });
        assert!(contents(&database) == expected, "version {version}, read-only");
        wait(database.close()).unwrap();
        let database = open(OpenOptions::default());
        assert!(contents(&database) == expected, "version {version}");
        assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
        let store = database.open_store("plain").unwrap();
        wait(store.put(b"new", b"value")).unwrap();
        wait(store.compact()).unwrap();
        wait(store.delete(b"new")).unwrap();
        wait(database.close()).unwrap();
        let database = open(OpenOptions::default());
        assert!(contents(&database) == expected, "version {version}, written to and opened again");
        wait(database.close()).unwrap();
    }
}

/// No fixture is left out, and what is written now has one.
#[test]
fn every_fixture_is_read() {
    let files = std::fs::read_dir(archive(VERSION).parent().unwrap()).unwrap();
    let version =
        |name: String| Some(name.strip_prefix("kv-format-")?.strip_suffix(".tar.zst")?.parse().unwrap());
    let mut found: Vec<u32> =
        files.filter_map(|file| version(file.unwrap().file_name().into_string().unwrap())).collect();
    found.sort_unstable();
    assert_eq!(found, VERSIONS);
    assert_eq!(VERSIONS.last(), Some(&VERSION));
}

/// Writes the fixture of this version; not over one that is there.
#[test]
#[ignore = "writes to fixtures/"]
fn write_a_fixture() {
    assert!(!archive(VERSION).exists(), "a fixture is what its version wrote, and does not change");
    let folder = tempfile::tempdir().unwrap();
    let class = |name: &str| ClassSettings {
        name: name.to_owned(),
        size_bytes: 16 << 20,
        ..ClassSettings::default()
    };
    let of_volume = VolumeSettings {
        id: *b"a volume forever",
        chunk_bytes: 64 << 10,
        journal_bytes: 256 << 10,
        classes: vec![class("fast"), class("slow")],
        ..VolumeSettings::default()
    };
    let volume = wait(Volume::create(parts(folder.path()), &of_volume)).unwrap();
    let of_database = DatabaseSettings {
        memory_bytes: 4 << 20,
        memory_table_bytes: 64 << 10,
        log_segment_bytes: 1 << 20,
        durability: Durability::Sync,
        ..DatabaseSettings::default()
    };
    let environment = ThreadEnvironment::new();
    let database = wait(Database::create(&volume, "shop", &of_database, environment)).unwrap();
    // Leaves that became empty, and mirrors that had to go.
    let queue = StoreSettings { leaf_bytes: 64 << 10, ..StoreSettings::default() };
    let queue = wait(database.create_store("queue", &queue)).unwrap();
    (0..600u64).for_each(|no| wait(queue.put(&no.to_be_bytes(), &value(no))).unwrap());
    wait(queue.compact()).unwrap();
    let leaves = || database.statistics().stores.iter().map(|store| store.leaves).sum::<usize>();
    let before = leaves();
    wait(queue.delete_range(b"", Some(&500u64.to_be_bytes()))).unwrap();
    wait(queue.compact()).unwrap();
    assert!(leaves() < before, "none of {before} leaves was joined");
    wait(database.drain_class("fast")).unwrap();
    wait(volume.fill_class("fast")).unwrap();
    for name in STORES {
        let store = wait(database.create_store(name, &settings(name))).unwrap();
        // In leaves, some of it deleted and some written over; at the root; and in the log alone.
        fill(&store, 0..120);
        wait(store.delete_range(b"key/0100", Some(b"key/0300"))).unwrap();
        wait(store.compact()).unwrap();
        fill(&store, 100..160);
        wait(store.delete(&key(150))).unwrap();
        wait(store.delete_prefix(b"key/07")).unwrap();
        fill(&store, 150..180);
    }
    let load = database.open_store("plain").unwrap();
    let mut load = wait(load.bulk_load()).unwrap();
    (0..30u64).for_each(|no| wait(load.put(format!("loaded/{no:02}").as_bytes(), &value(no))).unwrap());
    wait(load.finish()).unwrap();
    let store = database.open_store("lz4").unwrap();
    let options = WriteOptions { time_to_live_s: Some(60 * 365 * 86_400), ..WriteOptions::sync() };
    wait(store.put_with(b"with a time of its own", &value(4), &options)).unwrap();
    let lines = contents(&database);
    // As a stop would leave it: nothing is closed.
    let stopped = tempfile::tempdir().unwrap();
    for name in FILES {
        std::fs::copy(folder.path().join(name), stopped.path().join(name)).unwrap();
    }
    std::fs::write(stopped.path().join("contents.tsv"), lines).unwrap();
    let mut builder = tar::Builder::new(Vec::new());
    for name in FILES.iter().chain(&["contents.tsv"]) {
        builder.append_path_with_name(stopped.path().join(name), name).unwrap();
    }
    let packed = zstd::encode_all(&builder.into_inner().unwrap()[..], 19).unwrap();
    std::fs::write(archive(VERSION), packed).unwrap();
    wait(database.close()).unwrap();
}
