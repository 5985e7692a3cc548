//! Replays: what they count, and that they are repeatable.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use tanada_placement::{
    Layout, Mark, ObjectNo, Policy, Record, Rule, Tier, TraceReader, TraceWriter, import,
};
use tanada_replay::{Pace, SimulationOptions, policy, simulate, sweep};

use crate::{options, small};

#[test]
fn without_a_policy_everything_is_read_from_the_slow_class() {
    let trace = small();
    let outcome = simulate(&trace, None, &options("off", 0.5)).unwrap();
    assert_eq!((outcome.ios, outcome.fast_ios, outcome.hit_rate), (trace.ios(), 0, 0.0));
    assert_eq!(outcome.queries.len(), 9);
    let queries: f64 = outcome.queries.iter().map(|query| query.seconds).sum();
    assert!((queries - outcome.total_s).abs() < 1e-6, "one query after the other");
    assert_eq!(outcome.queries.iter().map(|query| query.ios).sum::<u64>(), trace.ios());
}

#[test]
fn static_with_full_capacity_reads_nothing_from_the_slow_class() {
    let trace = small();
    let outcome = simulate(&trace, None, &options("static", 1.0)).unwrap();
    assert_eq!((outcome.slow_ios, outcome.hit_rate, outcome.relocation_bytes), (0, 1.0, 0));
    assert!(outcome.prepared_bytes > 0);
}

#[test]
fn relocations_take_time_and_are_counted() {
    let trace = small();
    let plan = |bytes_per_second| {
        let limited =
            SimulationOptions { relocation_bytes_per_second: bytes_per_second, ..options("plan", 0.5) };
        simulate(&trace, None, &limited).unwrap()
    };
    let (free, throttled) = (plan(None), plan(Some(1 << 20)));
    assert!(free.relocation_slow_ios > 0 && free.relocation_bytes >= free.relocation_slow_ios * 1000);
    assert!(throttled.relocation_bytes < free.relocation_bytes);
    assert!(throttled.relocation_bytes as f64 <= (throttled.total_s + 1.0) * f64::from(2 << 20));
}

#[test]
fn the_same_seed_gives_the_same_outcome_and_depth_helps() {
    let trace = small();
    let deep = SimulationOptions { pace: Pace::OutOfOrder { depth: 32 }, ..options("benefit", 0.3) };
    let runs = [options("benefit", 0.3), options("benefit", 0.3), deep];
    let outcomes = sweep(&trace, None, &runs, 2, &|_| ()).unwrap();
    assert_eq!(outcomes[0], outcomes[1]);
    assert!(outcomes[2].total_s < outcomes[0].total_s / 2.0);
}

#[test]
fn expectations_beyond_all_bounds_are_replayed() {
    let trace = small();
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes).unwrap();
    for mut record in trace.records_since(&mut Mark::default()) {
        if let Record::Begins(query) = &mut record {
            query.footprint.accesses.iter_mut().for_each(|access| access.expected_pages = u64::MAX);
        }
        writer.push(&record).unwrap();
    }
    writer.finish().unwrap();
    let (trace, _) = TraceReader::new(&bytes[..]).unwrap().read().unwrap();
    for policy in ["benefit", "plan", "history", "priority"] {
        assert_eq!(simulate(&trace, None, &options(policy, 0.2)).unwrap().ios, trace.ios(), "{policy}");
    }
}

/// A recording that was killed ends within a query, which no client took.
#[test]
fn a_query_without_an_end_is_replayed_by_clients_too() {
    let trace = small();
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes).unwrap();
    let records: Vec<Record> = trace.records_since(&mut Mark::default()).collect();
    let last = records.iter().rposition(|record| matches!(record, Record::Ends(_))).unwrap();
    records[..last].iter().for_each(|record| writer.push(record).unwrap());
    writer.finish().unwrap();
    let (cut, _) = TraceReader::new(&bytes[..]).unwrap().read().unwrap();
    for clients in [1, 2, 8] {
        let run = SimulationOptions { clients, ..options("off", 0.5) };
        assert_eq!(simulate(&cut, None, &run).unwrap().ios, trace.ios(), "{clients} clients");
    }
}

#[test]
fn clients_share_the_queries_and_the_devices() {
    let trace = small();
    let run =
        |clients| simulate(&trace, None, &SimulationOptions { clients, ..options("off", 0.5) }).unwrap();
    let (one, eight) = (run(1), run(8));
    assert_eq!((eight.ios, eight.queries.len()), (one.ios, 9));
    let work =
        |outcome: &tanada_replay::Outcome| outcome.queries.iter().map(|query| query.seconds).sum::<f64>();
    assert!(eight.total_s < one.total_s, "three disks serve eight clients better than one");
    assert!(work(&eight) > work(&one), "and each of them worse");
}

#[test]
fn pins_hold_whatever_the_policy() {
    let trace = small();
    let mut rules = trace.layout(64 << 10);
    rules.set_rule(ObjectNo(0), Rule { pin: Some(Tier::Slow), quota_chunks: None });
    rules.set_rule(ObjectNo(1), Rule { pin: Some(Tier::Fast), quota_chunks: None });
    let lineitem = |rules: Option<&Layout>, policy| {
        let outcome = simulate(&trace, rules, &options(policy, 1.0)).unwrap();
        (outcome.slow_ios, outcome.most_chunks)
    };
    let (slow_ios, most) = lineitem(Some(&rules), "static");
    assert!(slow_ios > 0, "lineitem is pinned to the slow class");
    assert!(most < lineitem(None, "static").1);
    // Without a policy, what is pinned up is there.
    assert!(lineitem(Some(&rules), "off").0 < lineitem(None, "off").0);
}

#[test]
fn traces_too_large_to_replay_are_refused_before_the_run() {
    // One read at 3 TiB: three million chunks, but two hundred million blocks.
    let log = format!("1,h,0,Read,{},4096,1\n", 3u64 << 40);
    let trace = import::msr(log.as_bytes(), "far").unwrap();
    let ran = AtomicUsize::new(0);
    let runs = ["off", "off", "lru"].map(|policy| SimulationOptions::new(policy, 0.1));
    let error = sweep(&trace, None, &runs, 1, &|_| _ = ran.fetch_add(1, Relaxed)).unwrap_err().to_string();
    assert!(error.contains("policy lru") && error.contains("at most 134217728"), "{error}");
    assert_eq!(ran.load(Relaxed), 0);
}

#[test]
fn an_outcome_is_data() {
    let outcome = simulate(&small(), None, &options("plan", 0.2)).unwrap();
    let json = serde_json::to_string(&outcome).unwrap();
    assert_eq!(serde_json::from_str::<tanada_replay::Outcome>(&json).unwrap(), outcome);
    let options = options("lru:fifo", 0.2);
    let json = serde_json::to_string(&options).unwrap();
    assert_eq!(serde_json::from_str::<SimulationOptions>(&json).unwrap(), options);
    let policy: Box<dyn Policy> = policy("smq", 0).unwrap();
    assert!(!policy.learns());
}
