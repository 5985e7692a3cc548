//! The comparison itself, small, on Tanada alone: every key is there, and nothing is left behind.

#![allow(clippy::unwrap_used, reason = "a test fails so")]

use std::os::unix::fs::PermissionsExt;
use tanada_ycsb::Error;

use parking_lot::Mutex;
use tanada_report::Report;
use tanada_ycsb::bench::{Peer, YcsbOptions, html, run_ycsb, run_ycsb_with};
use tanada_ycsb::drive::Clients;
use tanada_ycsb::measure::Run;
use tanada_ycsb::media::MediaKind;
use tanada_ycsb::workload::{Records, Workload};

fn assert_figures(report: &Report, keys: &[&str]) {
    for key in keys {
        let figure = report.summary[*key].as_f64();
        assert!(figure.is_some_and(|figure| figure.is_finite()), "{key}: {:?}", report.summary);
    }
    let page = html(report).unwrap();
    assert!(page.contains("<svg") && page.contains(keys[0]));
}

#[test]
fn all_workloads_run_with_staging_and_without() {
    for clients in [Clients::Threads(2), Clients::Tasks(16)] {
        let folder = tempfile::tempdir().unwrap();
        let options = YcsbOptions {
            media: MediaKind::Folder,
            tiers: vec!["capacity".to_owned(), "staging".to_owned()],
            records: Records { count: 3000, ..Records::default() },
            operations: 500,
            warm_up_s: 0.05,
            memory_bytes: 8 << 20,
            clients,
            ..YcsbOptions::quick(folder.path())
        };
        let report = run_ycsb(&options, |_| {}).unwrap();
        assert_eq!(report.runs.len(), 2 * 7);
        assert_figures(
            &report,
            &[
                "capacity_bytes_over_logical_load",
                "staging_bytes_over_logical_load",
                "memory_over_budget",
                "c_misses_per_second",
            ],
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something is left behind");
    }
}

#[test]
fn each_round_is_there_to_be_saved() {
    let folder = tempfile::tempdir().unwrap();
    let options = YcsbOptions {
        media: MediaKind::Folder,
        records: Records { count: 1000, ..Records::default() },
        operations: 100,
        workloads: vec![Workload::C],
        memory_bytes: 8 << 20,
        rounds: 3,
        ..YcsbOptions::quick(folder.path())
    };
    let mut saved = Vec::new();
    let save = |report: &Report| {
        saved.push((report.runs.len(), report.summary.contains_key("c_misses_per_second")));
        if saved.len() == 2 { Err(Error::failed("the disk is full")) } else { Ok(()) }
    };
    let error = run_ycsb_with(&options, |_| {}, save).unwrap_err();
    assert_eq!((saved, error.to_string().as_str()), (vec![(2, true), (4, true)], "the disk is full"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something is left behind");
}

/// A program that takes what it is told for done.
fn peer_that_does_nothing(folder: &std::path::Path, records: u64) -> Peer {
    let run = Run { engine: "rocksdb".to_owned(), records, ..Run::default() };
    let program = folder.join("peer");
    std::fs::write(folder.join("run.json"), serde_json::to_vec(&run).unwrap()).unwrap();
    std::fs::write(&program, "#!/bin/sh\ncat > /dev/null; cat \"${0%/*}/run.json\"\n").unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    Peer { program, engine: "rocksdb".to_owned() }
}

#[test]
fn engines_take_turns_at_each_phase() {
    let folder = tempfile::tempdir().unwrap();
    let options = YcsbOptions {
        media: MediaKind::Folder,
        records: Records { count: 1000, ..Records::default() },
        operations: 100,
        workloads: vec![Workload::A, Workload::C],
        memory_bytes: 8 << 20,
        rounds: 2,
        against: vec![peer_that_does_nothing(folder.path(), 1000)],
        ..YcsbOptions::quick(folder.path())
    };
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let report = run_ycsb(&options, |what| {
        if let [engine, _, phase, _] = what.split(", ").collect::<Vec<_>>()[..] {
            SAID.lock().push(format!("{engine} {phase}"));
        }
    });
    let report = report.unwrap();
    assert_eq!(report.runs.len(), 2 * 2 * 3);
    let first = ["tanada load", "rocksdb load", "rocksdb a", "tanada a", "tanada c", "rocksdb c"];
    let second = ["rocksdb load", "tanada load", "tanada a", "rocksdb a", "rocksdb c", "tanada c"];
    assert_eq!(*SAID.lock(), [first, second].concat());
}
