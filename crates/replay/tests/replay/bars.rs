//! How the policies stand to each other on nine queries: what is claimed for `benefit`.

use tanada_replay::synthetic::{Synthetic, nine_queries};
use tanada_replay::{POLICIES, Pace, SimulationOptions, simulate, simulate_after, sweep};

const SHARES: [f64; 6] = [0.1, 0.3, 0.5, 0.6, 0.8, 1.0];

fn check(pace: Pace, most_of_static: f64) {
    let trace = nine_queries(&Synthetic { scale: 0.25, ..Synthetic::default() });
    let names = POLICIES.map(|policy| policy.name);
    let pairs = names.iter().flat_map(|policy| SHARES.iter().map(move |share| (*policy, *share)));
    let runs: Vec<SimulationOptions> = pairs
        .map(|(policy, share)| SimulationOptions {
            pace,
            chunk_bytes: 256 << 10,
            ..SimulationOptions::new(policy, share)
        })
        .collect();
    let outcomes = sweep(&trace, None, &runs, 2, &|_| ()).unwrap();
    let total = |policy: &str, share: f64| {
        let mut of_both =
            outcomes.iter().filter(|outcome| outcome.policy == policy && outcome.fast_share == share);
        of_both.next().unwrap().total_s
    };
    let mut best: f64 = 1.0;
    for share in SHARES {
        let (benefit, fixed) = (total("benefit", share), total("static", share));
        println!("{pace:?} {share}: benefit {benefit:.1} s, static {fixed:.1} s");
        assert!(benefit <= fixed * 1.02, "at {share}: {benefit} s, static {fixed} s");
        best = best.min(benefit / fixed);
        for other in names {
            let other_s = total(other, share);
            assert!(benefit <= other_s * 1.05, "at {share}: {benefit} s, {other} {other_s} s");
        }
    }
    assert!(best <= most_of_static, "at its best {best} of static");
}

#[test]
fn benefit_matches_or_beats_all_policies_in_order() {
    check(Pace::InOrder, 0.6);
}

#[test]
fn benefit_is_never_behind_out_of_order_either() {
    check(Pace::OutOfOrder { depth: 32 }, 0.7);
    check(Pace::OutOfOrder { depth: 256 }, 0.7);
}

#[test]
fn benefit_is_not_behind_when_queries_run_at_once() {
    let trace = nine_queries(&Synthetic { scale: 0.25, ..Synthetic::default() });
    for share in [0.1, 0.3, 0.5, 1.0] {
        let total = |policy: &str| {
            let options = SimulationOptions {
                clients: 8,
                chunk_bytes: 256 << 10,
                ..SimulationOptions::new(policy, share)
            };
            simulate(&trace, None, &options).unwrap().total_s
        };
        let (benefit, fixed) = (total("benefit"), total("static"));
        println!("{share}: benefit {benefit:.1} s, static {fixed:.1} s");
        assert!(benefit <= fixed * 1.02, "at {share}: {benefit} s, static {fixed} s");
    }
}

#[test]
fn benefit_is_not_behind_when_statements_come_back_with_other_parameters() {
    let nine = |seed| nine_queries(&Synthetic { scale: 0.25, seed, ..Synthetic::default() });
    let (training, trace) = (nine(1), nine(2));
    for share in [0.1, 0.3, 0.5, 1.0] {
        let total = |policy: &str| {
            let options =
                SimulationOptions { chunk_bytes: 256 << 10, ..SimulationOptions::new(policy, share) };
            simulate_after(&training, &trace, None, &options).unwrap().total_s
        };
        let (benefit, fixed) = (total("benefit"), total("static"));
        println!("{share}: benefit {benefit:.1} s, static {fixed:.1} s");
        assert!(benefit <= fixed * 1.02, "at {share}: {benefit} s, static {fixed} s");
    }
}

#[test]
fn benefit_knows_enough_from_plans_alone() {
    let trace = nine_queries(&Synthetic { scale: 0.25, ..Synthetic::default() });
    let total = |policy: &str| {
        let options = SimulationOptions {
            trains: false,
            chunk_bytes: 256 << 10,
            ..SimulationOptions::new(policy, 0.5)
        };
        simulate(&trace, None, &options).unwrap().total_s
    };
    let (benefit, off) = (total("benefit"), total("off"));
    println!("benefit {benefit:.1} s, off {off:.1} s");
    assert!(benefit < off * 0.25, "{benefit} s without training, {off} s without placement");
}

/// Arrays and SSDs that are as fast as the fast class, or faster at some of it: what does not pay back has to stay.
#[test]
fn benefit_is_never_behind_leaving_everything_where_it_is() {
    let trace = nine_queries(&Synthetic { scale: 0.1, ..Synthetic::default() });
    for (fast, slow, depth, shares) in [
        ("sata-ssd", "64xhdd-7200", 256, &[0.3, 1.0][..]),
        ("sata-ssd", "64xhdd-7200", 32, &[1.0]),
        ("sata-ssd", "sata-qlc", 32, &[0.1, 0.5]),
        ("sata-ssd", "sata-ssd", 1, &[0.5]),
        ("sata-ssd", "sata-ssd", 32, &[0.5]),
        ("hdd-7200", "8xhdd-7200", 64, &[0.1, 0.5]),
        ("hdd-7200", "8xhdd-7200", 1, &[0.5]),
        ("nvme", "8xhdd-7200", 32, &[0.1]),
    ] {
        let total = |policy: &str, share: f64| {
            let options = SimulationOptions {
                fast: fast.parse().unwrap(),
                slow: slow.parse().unwrap(),
                pace: if depth == 1 { Pace::InOrder } else { Pace::OutOfOrder { depth } },
                ..SimulationOptions::new(policy, share)
            };
            simulate(&trace, None, &options).unwrap().total_s
        };
        let off = total("off", 0.0);
        for share in shares {
            let benefit = total("benefit", *share);
            println!("{fast} over {slow}, {depth}, {share}: benefit {benefit:.2} s, off {off:.2} s");
            assert!(benefit <= off * 1.03, "{fast} over {slow}, {depth}, {share}: {benefit} s, off {off} s");
        }
    }
}
