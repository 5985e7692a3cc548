//! What is dropped half-way, or stopped, leaves nothing that is in anybody's way.

use std::collections::BTreeSet;
use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use tanada_kv::blocking::wait;
use tanada_kv::{Database, Error, ErrorKind, OpenOptions, StoreSettings};
use tanada_volume::Attributes;

use crate::volumes::{Bench, value};

/// Polls a future so often that is not ready, and drops it; what it gives if it is ready before.
fn polled<F: Future>(times: u64, future: F) -> Option<F::Output> {
    let mut future = Box::pin(future);
    let mut left = times;
    wait(std::future::poll_fn(move |context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    }))
}

/// Key files and value segments that are there.
fn written_by_jobs(bench: &Bench) -> BTreeSet<String> {
    let is_of_values = |object: &tanada_volume::Object| {
        wait(object.read_bytes(0, 8)).is_ok_and(|magic| *magic == *b"TANADAVS")
    };
    let segments = bench.objects("segment").into_iter().filter(is_of_values);
    bench.objects("keys").into_iter().chain(segments).map(|object| object.name()).collect()
}

/// They left what they had written until the next opening, which filled the volume.
#[test]
fn a_compaction_that_is_dropped_leaves_nothing() {
    let bench = Bench::new();
    let database = bench.create();
    let settings = StoreSettings { leaf_bytes: 64 << 20, mirrors: false, ..StoreSettings::default() };
    let store = wait(database.create_store("a", &settings)).unwrap();
    (0..5000).for_each(|no: u64| wait(store.put(&no.to_be_bytes(), &value(no, 0))).unwrap());
    wait(store.compact()).unwrap();
    let mut dropped = 0;
    for round in 1..=40 {
        for no in (0..5000u64).step_by(50) {
            wait(store.put(&no.to_be_bytes(), &value(no, round))).unwrap();
        }
        dropped += u64::from(polled(10 + round * 7 % 100, store.compact()).is_none());
    }
    assert!(dropped > 10, "{dropped} of 40");
    let mut rounds = 0;
    while bench.objects("keys").len() as u64 != wait(database.check()).unwrap().kvsets {
        rounds += 1;
        let (files, report) = (bench.objects("keys").len(), wait(database.check()).unwrap());
        assert!(rounds < 500, "{files} key files after {dropped} drops: {report:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    wait(store.compact()).unwrap();
    wait(database.close()).unwrap();
    let before = written_by_jobs(&bench);
    // It deletes what nothing refers to.
    let database = bench.open();
    assert_eq!(before.difference(&written_by_jobs(&bench)).collect::<Vec<_>>(), Vec::<&String>::new());
    let store = database.open_store("a").unwrap();
    for no in 0..5000u64 {
        let version = if no % 50 == 0 { 40 } else { 0 };
        assert_eq!(wait(store.get(&no.to_be_bytes())).unwrap().as_deref(), Some(&value(no, version)[..]));
    }
    assert_eq!(wait(database.check()).unwrap().findings, Vec::<String>::new());
    wait(database.close()).unwrap();
}

fn open(bench: &Bench, name: &str) -> Result<Database, Error> {
    loop {
        match wait(Database::open(&bench.volume, name, &OpenOptions::default(), bench.environment.clone())) {
            // What was under way ends.
            Err(error) if error.kind() == ErrorKind::Locked => std::thread::yield_now(),
            opened => return opened,
        }
    }
}

fn create(bench: &Bench, name: &str) -> Result<Database, Error> {
    wait(Database::create(&bench.volume, name, &Bench::settings(), bench.environment.clone()))
}

/// What a stop leaves of a database's first manifest: no bytes, bytes that were not written, and the beginning of it.
fn begun_manifests(bench: &Bench) -> Vec<Vec<u8>> {
    let whole = wait(bench.objects("manifest")[0].read_bytes(0, 4096)).unwrap();
    let beginning = [&whole[..512], &[0; 4096 - 512]].concat();
    vec![Vec::new(), vec![0; 4096], beginning]
}

fn leave_begun(bench: &Bench, manifest: &[u8]) {
    let object = bench.volume.create_object("kv/begun/manifest-1", &Attributes::default()).unwrap();
    wait(object.write_bytes(0, manifest)).unwrap();
    wait(object.sync()).unwrap();
}

/// It was said to be damaged, and to be restored from a copy; only destroying it helped.
#[test]
fn a_database_that_was_hardly_begun_makes_way() {
    let bench = Bench::new();
    let database = bench.create();
    for manifest in begun_manifests(&bench) {
        leave_begun(&bench, &manifest);
        let error = open(&bench, "begun").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains("was not finished"), "{error}");
        wait(create(&bench, "begun").unwrap().close()).unwrap();
        wait(open(&bench, "begun").unwrap().close()).unwrap();
        wait(Database::destroy(&bench.volume, "begun", bench.environment.clone())).unwrap();
        leave_begun(&bench, &manifest);
        wait(database.checkpoint("begun")).unwrap();
        wait(open(&bench, "begun").unwrap().close()).unwrap();
        wait(Database::destroy(&bench.volume, "begun", bench.environment.clone())).unwrap();
        leave_begun(&bench, &manifest);
        wait(Database::destroy(&bench.volume, "begun", bench.environment.clone())).unwrap();
    }
    wait(database.close()).unwrap();
    with_a_damaged_manifest_it_stays();
}

/// Whatever of a database's manifest is damaged, none is made in its place.
fn with_a_damaged_manifest_it_stays() {
    for (stores, openings) in [(0, 1), (1, 0), (1, 1)] {
        let bench = Bench::new();
        let database = bench.create();
        (0..stores).for_each(|_| drop(wait(database.create_store("a", &StoreSettings::default())).unwrap()));
        wait(database.close()).unwrap();
        (0..openings).for_each(|_| wait(bench.open().close()).unwrap());
        let manifest = bench.objects("manifest").remove(0);
        let bytes = wait(manifest.read_bytes(0, 4096)).unwrap();
        for damaged in [[&bytes[..40], &[0xee; 20], &bytes[60..]].concat(), vec![0; 4096]] {
            wait(manifest.write_bytes(0, &damaged)).unwrap();
            assert_eq!(bench.try_open().unwrap_err().kind(), ErrorKind::Corrupted);
            assert_eq!(create(&bench, "test").unwrap_err().kind(), ErrorKind::AlreadyExists);
        }
        wait(manifest.write_bytes(0, &bytes)).unwrap();
        wait(bench.open().close()).unwrap();
    }
}

#[test]
fn a_creation_that_is_dropped_can_be_made_again() {
    for polls in 0..200 {
        let bench = Bench::new();
        let settings = Bench::settings();
        let create_first = Database::create(&bench.volume, "test", &settings, bench.environment.clone());
        if let Some(created) = polled(polls, create_first) {
            return wait(created.unwrap().close()).unwrap();
        }
        match open(&bench, "test") {
            Ok(database) => wait(database.close()).unwrap(),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotFound, "after {polls} polls: {error}");
                wait(create(&bench, "test").unwrap().close()).unwrap();
            }
        }
    }
    panic!("it never came to its end");
}
