//! All policies by share of the fast class, on the synthetic nine queries or a recorded run:
//! `cargo bench -p tanada-placement --bench policies -- [depth=N]
//! [trace=FILE] [training=FILE] [scale=S] [cache=SHARE] [seed=N]
//! [policies=a;b] [shares=10,20] [clients=N] [chunk=BYTES] [copies=BYTES]
//! [fast=MODEL] [slow=MODEL] [runs=N] [threads=N] [details]`.
//!
//! Depth 1 is in order. Columns are total virtual seconds, medians of `runs` replays; then how `benefit` stands to
//! `static` and to the best of the others.

#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::BufReader;
use std::time::Instant;

use tanada_placement::TraceReader;
use tanada_replay::synthetic::{Synthetic, nine_queries};
use tanada_replay::{Outcome, POLICIES, Pace, SimulationOptions, sweep_after};

fn argument<T: std::str::FromStr>(name: &str, default: T) -> T {
    let prefix = format!("{name}=");
    let found = std::env::args().find_map(|argument| argument.strip_prefix(&prefix).map(str::to_owned));
    found.and_then(|value| value.parse().ok()).unwrap_or(default)
}

fn main() {
    let what = Synthetic {
        scale: argument("scale", 1.0),
        seed: argument("seed", 1),
        cache_share: argument("cache", 1.0 / 3.0),
        ..Synthetic::default()
    };
    let recorded: String = argument("trace", String::new());
    let read =
        |path: &str| TraceReader::new(BufReader::new(File::open(path).unwrap())).unwrap().read().unwrap().0;
    let trace = match recorded.as_str() {
        "" => nine_queries(&what),
        path => read(path),
    };
    let training = match argument("training", String::new()).as_str() {
        "" => trace.clone(),
        path => read(path),
    };
    println!("{} I/Os, {} MB", trace.ios(), trace.bytes() / 1_000_000);
    let all = POLICIES.map(|policy| policy.name).join(";");
    let policies = argument("policies", all);
    let policies: Vec<&str> = policies.split(';').collect();
    let shares = argument("shares", "10,20,30,40,50,60,70,80,90,100".to_owned());
    let shares: Vec<f64> = shares.split(',').filter_map(|share| share.parse().ok()).collect();
    let pace = match argument("depth", 1) {
        0 | 1 => Pace::InOrder,
        depth => Pace::OutOfOrder { depth },
    };
    let seeds: u64 = argument("runs", 1);
    let usual = SimulationOptions::new("off", 0.0);
    let runs: Vec<SimulationOptions> = policies
        .iter()
        .flat_map(|policy| shares.iter().map(move |share| (policy, share)))
        .flat_map(|(policy, share)| (1..=seeds).map(move |seed| (policy, share, seed)))
        .map(|(policy, share, seed)| SimulationOptions {
            pace,
            seed,
            clients: argument("clients", 1),
            chunk_bytes: argument("chunk", 1 << 20),
            relocation_bytes: argument("copies", 4 << 20),
            fast: argument("fast", usual.fast.clone()),
            slow: argument("slow", usual.slow.clone()),
            ..SimulationOptions::new(policy, share / 100.0)
        })
        .collect();
    let began = Instant::now();
    let outcomes = sweep_after(&training, &trace, None, &runs, argument("threads", 2), &|_| ()).unwrap();
    println!("{} replays in {:.1} s", runs.len(), began.elapsed().as_secs_f64());
    if std::env::args().any(|argument| argument == "details") {
        outcomes.iter().for_each(details);
    }
    let total = |policy: &str, share: f64| {
        let is_meant = |outcome: &&Outcome| outcome.policy == policy && outcome.fast_share == share / 100.0;
        let mut found: Vec<f64> = outcomes.iter().filter(is_meant).map(|outcome| outcome.total_s).collect();
        found.sort_by(f64::total_cmp);
        found.get(found.len() / 2).copied().unwrap_or(f64::NAN)
    };
    print!("| share |");
    policies.iter().for_each(|policy| print!(" {policy} |"));
    println!(" benefit/static | benefit/best other |");
    for share in shares {
        print!("| {share} |");
        policies.iter().for_each(|policy| print!(" {} |", seconds(total(policy, share))));
        let others = policies.iter().filter(|policy| **policy != "benefit");
        let best = others.map(|policy| total(policy, share)).fold(f64::INFINITY, f64::min);
        let benefit = total("benefit", share);
        println!(" {:.3} | {:.3} |", benefit / total("static", share), benefit / best);
    }
}

/// To three places.
fn seconds(seconds: f64) -> String {
    let digits = (2.0 - seconds.log10().floor()).clamp(0.0, 3.0);
    format!("{seconds:.*}", digits as usize)
}

fn details(outcome: &Outcome) {
    println!(
        "{} {:.0} %: {:.1} s, slow {}, hit {:.3}, relocation slow {} fast {}, {} MB copied, refused {}, most {} of {}",
        outcome.policy,
        outcome.fast_share * 100.0,
        outcome.total_s,
        outcome.slow_ios,
        outcome.hit_rate,
        outcome.relocation_slow_ios,
        outcome.relocation_fast_ios,
        outcome.relocation_bytes / 1_000_000,
        outcome.refused,
        outcome.most_chunks,
        outcome.capacity_chunks,
    );
    for query in &outcome.queries {
        print!(" {} {} s {}/{};", query.name, seconds(query.seconds), query.slow_ios, query.ios);
    }
    println!();
}
