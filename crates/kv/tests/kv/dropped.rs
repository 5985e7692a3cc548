//! What is dropped half-way, or stopped, leaves nothing that is in anybody's way.

use std::collections::BTreeSet;
use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use tanada_kv::blocking::wait;
use tanada_kv::StoreSettings;

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
