//! Placement killed with -9 at any moment: the volume opens, checks clean and gives the server's answers.
//!
//! 1. The tiering paper's nine queries run in a loop, placed by `benefit`, and are killed within the first second, each
//!    time from another query on.
//! 2. After each kill the volume is checked, and two of the nine are asked, in turn; after the last all nine.
//! 3. The paper's evaluation is killed while it runs on a volume, placed by each policy that can; that volume is
//!    checked and asked as well.
//!
//! `TANADA_KILLS=200` kills more often: `make test-long` does.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tanada_sample::answer;
use tanada_sample::{SampleQuery, TIERING};

use crate::{directory, tanada};

/// Kills of an ordinary run,
const KILLS: u64 = 16;
/// on so many volumes at once: most of the time is spent waiting.
const VOLUMES: u64 = 2;

/// Queries that are asked after each kill: all nine would take most of the time.
const ASKED: usize = 2;

/// Policies of which one run of the paper's evaluation each is killed, at one of so many kills of the others.
const OF_BENCHMARKS: [&str; 4] = ["benefit", "plan", "static", "history"];
const KILLS_OF_A_BENCHMARK: u64 = 4;

/// How often to kill.
fn kills() -> u64 {
    std::env::var("TANADA_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS)
}

#[test]
fn a_volume_survives_placement_that_is_killed() {
    let kills = kills();
    std::thread::scope(|scope| {
        for no in 0..VOLUMES {
            scope.spawn(move || kill(no, kills / VOLUMES + u64::from(no < kills % VOLUMES)));
        }
    });
}

/// Kills so often what places the chunks of a volume.
fn kill(seed: u64, kills: u64) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let volume = folder.path().join("vol").display().to_string();
    let class = |name: &str, model: &str| format!("{name}={volume}/{name},size=64MiB,model={model}");
    let classes = [class("staging", "sata-ssd"), class("capacity", "3xhdd-7200")];
    tanada(&["volume", "create", &volume, "--class", &classes[0], "--class", &classes[1]]).output();
    let data = directory("mariadb-10.11").display().to_string();
    tanada(&["volume", "adopt", &volume, &data, "--name", "data"]).output();

    let query = [
        "sql",
        "--volume",
        &volume,
        "--database",
        "tpch",
        "--set",
        "tanada.lookup_join=always",
        "--cache",
        "4MiB",
    ];
    let nine = |first: usize| TIERING.iter().cycle().skip(first % TIERING.len()).take(TIERING.len());
    let ask = |queries: &[&SampleQuery], when: &str| {
        let answers = tanada(&[&query as &[&str], &["-c", &statements(queries)]].concat()).output();
        compare(&answers, queries, when);
    };
    let all: Vec<&SampleQuery> = nine(0).collect();
    ask(&all, "before the first kill");
    // With placement off nothing moves, not even when the volume is mounted.
    let moved = "select count(*) from tanada.placements where session = 2";
    let off = tanada(&["sql", "--volume", &volume, "--set", "tanada.placement=off", "-c", moved]).output();
    assert_eq!(off, "count(*)\n0\n");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_add(seed);
    for kill in 0..kills as usize {
        let rounds: Vec<&SampleQuery> = nine(kill).cycle().take(20 * TIERING.len()).collect();
        let mut running = Command::new(env!("CARGO_BIN_EXE_tanada"))
            .args(query)
            .args(["-c", &statements(&rounds)])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(20 + (random >> 40) % 1_000));
        running.kill().unwrap();
        running.wait().unwrap();
        let checked = tanada(&["volume", "check", &volume]);
        assert_eq!(checked.code, 0, "kill {kill}: {checked:?}");
        let asked: Vec<&SampleQuery> = nine(kill * ASKED).take(ASKED).collect();
        ask(&asked, &format!("after kill {kill}"));
    }
    ask(&all, "after the last kill");
    // What the sessions that ended in peace decided can be asked for.
    let explain = |chunk: u64| {
        tanada(&["volume", "heat", &volume, "data/tpch/orders.ibd", "--explain", &chunk.to_string()]).output()
    };
    assert!(
        (0..5).any(|chunk| explain(chunk).contains("by policy benefit: mirrored to staging")),
        "{}",
        explain(0)
    );
}

#[test]
fn a_volume_survives_a_benchmark_that_is_killed() {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let kills = kills().div_ceil(KILLS_OF_A_BENCHMARK);
    for (kill, policy) in (0..kills as usize).zip(OF_BENCHMARKS.iter().cycle()) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut after = Duration::from_millis(50 + (random >> 40) % 1_500);
        loop {
            match kill_benchmark(kill, policy, after) {
                Killed::Running => break,
                Killed::Making => after *= 2,
                Killed::Removed => after /= 2,
            }
        }
    }
}

/// What the benchmark was at when it was killed.
enum Killed {
    /// It had not put all files into the volume.
    Making,
    Running,
    /// It had done with the volume, which is gone.
    Removed,
}

/// Kills the paper's evaluation so long after its volume was made, and looks at that.
fn kill_benchmark(kill: usize, policy: &str, after: Duration) -> Killed {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (data, work) =
        (directory("mariadb-10.11").display().to_string(), folder.path().display().to_string());
    let mut running = Command::new(env!("CARGO_BIN_EXE_tanada"))
        .args(["bench", "pst", "--innodb", &data, "--work", &work, "--runs", "1", "--no-real-time"])
        .args(["--policy", "static", "--fast-share", "40", "--live-share", "40", "--live-policy", policy])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let made = made_volume(folder.path(), &mut running);
    std::thread::sleep(after);
    running.kill().unwrap();
    if running.wait().unwrap().signal() != Some(9) || !made.join("volume.json").exists() {
        return Killed::Removed;
    }
    let volume = made.display().to_string();
    let when = format!("kill {kill}, {policy}, after {after:?}");
    let checked = tanada(&["volume", "check", &volume]);
    assert_eq!(checked.code, 0, "{when}: {checked:?}");
    // The last one of the database.
    if !tanada(&["volume", "ls", &volume]).output().contains("tpch/supplier.ibd") {
        return Killed::Making;
    }
    let asked: Vec<&SampleQuery> = TIERING.iter().cycle().skip(kill * ASKED).take(ASKED).collect();
    let query = ["sql", "--volume", &volume, "--database", "tpch", "-c", &statements(&asked)];
    compare(&tanada(&query).output(), &asked, &when);
    Killed::Running
}

/// Waits until a volume has been begun in `work`, which takes the recordings before it.
fn made_volume(work: &Path, running: &mut Child) -> PathBuf {
    let begun = Instant::now();
    loop {
        let entries = std::fs::read_dir(work).unwrap().flatten();
        if let Some(entry) = entries.into_iter().find(|entry| entry.path().join("volume.json").exists()) {
            return entry.path();
        }
        assert_eq!(running.try_wait().unwrap(), None, "it ended without a volume");
        assert!(begun.elapsed() < Duration::from_secs(300), "no volume in {}", work.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// One text of several statements.
fn statements(queries: &[&SampleQuery]) -> String {
    queries.iter().map(|query| query.sql.trim_end().trim_end_matches(';')).collect::<Vec<_>>().join(";\n")
}

/// Compares the answers to `queries`, one after the other, with the server's.
#[track_caller]
fn compare(answers: &str, queries: &[&SampleQuery], when: &str) {
    let mut lines = answers.lines();
    for query in queries {
        let rows = lines.by_ref().take(query.answer.lines().count()).skip(1).map(str::to_owned).collect();
        answer::check(rows, query.answer).unwrap_or_else(|error| panic!("{}, {when}: {error}", query.name));
    }
    assert_eq!(lines.next(), None, "{when}");
}
