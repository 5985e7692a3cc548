//! `tanada simulate`: traces, shares and policies in, times out.

use std::io::Write;

use super::{tanada, tanada_with_stdin};

#[test]
fn policies_are_compared_on_a_synthetic_trace() {
    let arguments = ["simulate", "--synthetic", "0.005", "--policy", "off,benefit", "--fast-share", "20,60"];
    let small = ["--chunk-size", "64KiB"];
    let text = tanada(&[&arguments as &[&str], &small].concat()).output();
    assert!(text.contains("all emulated, in virtual time"), "{text}");
    let json = tanada(&[&arguments as &[&str], &small, &["--json"]].concat()).output();
    let outcomes: serde_json::Value = serde_json::from_str(&json).unwrap();
    let of = |policy: &str, share: f64| {
        let mut outcomes = outcomes.as_array().unwrap().iter();
        let outcome = outcomes.find(|o| o["policy"] == policy && o["fast_share"] == share).unwrap();
        outcome["total_s"].as_f64().unwrap()
    };
    assert!(of("benefit", 0.2) < of("off", 0.2));
    assert!(of("benefit", 0.6) < of("benefit", 0.2));
    assert!((of("off", 0.2) - of("off", 0.6)).abs() < 1e-9);
}

/// Relocations, hits, bytes written and what was prepared were in the JSON alone.
#[test]
fn simulation_tables_and_json_have_the_same_figures() {
    let arguments =
        ["simulate", "--synthetic", "0.02", "--policy", "lru,static,benefit", "--fast-share", "20"];
    let text = tanada(&arguments).output();
    let json = tanada(&[&arguments as &[&str], &["--json"]].concat()).output();
    let outcomes: serde_json::Value = serde_json::from_str(&json).unwrap();
    let row = |title: &str| -> Vec<f64> {
        let table = text.split_once(&format!("\n{title}\n")).unwrap_or_else(|| panic!("{title} in {text}")).1;
        let (header, row) = (table.lines().next().unwrap(), table.lines().nth(1).unwrap());
        assert_eq!(header.split_whitespace().collect::<Vec<_>>(), ["fast", "%", "lru", "static", "benefit"]);
        row.split_whitespace().skip(1).map(|figure| figure.parse().unwrap()).collect()
    };
    for (title, key, unit) in [
        ("seconds in all", "total_s", 1.0),
        ("requests to the slow class, relocations left out", "slow_ios", 1.0),
        ("MiB that relocations copied", "relocation_bytes", f64::from(1 << 20)),
        ("requests of relocations to the slow class", "relocation_slow_ios", 1.0),
        ("requests of relocations to the fast class", "relocation_fast_ios", 1.0),
        ("% of the bytes read that came from the fast class", "hit_rate", 0.01),
        ("MiB written to the fast class while queries ran", "fast_bytes_written", f64::from(1 << 20)),
        ("MiB put into the fast class beforehand, in no time", "prepared_bytes", f64::from(1 << 20)),
    ] {
        let shown = row(title);
        for (no, outcome) in outcomes.as_array().unwrap().iter().enumerate() {
            let expected = outcome[key].as_f64().unwrap() / unit;
            assert!((shown[no] - expected).abs() <= 1.0, "{title}: {shown:?}, {outcome}");
        }
        assert!(shown.iter().any(|figure| *figure > 0.0), "{title}: {shown:?} compare nothing");
    }
}

#[test]
fn logs_of_other_tools_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("usr.csv");
    let lines: String = (0..200u64)
        .map(|no| {
            format!(
                "{},usr,0,Read,{},8192,100\n",
                128_166_372_003_061_629 + no * 10_000,
                (no % 20) * (4 << 20)
            )
        })
        .collect();
    std::fs::write(&log, &lines).unwrap();
    let log = log.display().to_string();
    let options = ["--import", "msr", "--policy", "smq", "--fast-share", "50"];
    let replayed = |log: &str, stdin: &[u8]| {
        tanada_with_stdin(&[&["simulate", log] as &[&str], &options].concat(), stdin).output()
    };
    let text = replayed(&log, b"");
    assert!(text.starts_with("200 I/Os over "), "{text}");
    // Compressed, and from stdin.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(lines.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    std::fs::write(folder.path().join("usr.csv.gz"), &gzip).unwrap();
    let compressed = folder.path().join("usr.csv.gz").display().to_string();
    assert_eq!(replayed(&compressed, b""), text);
    assert_eq!(replayed("-", lines.as_bytes()), text);
    assert_eq!(replayed("-", &gzip), text);
    let error = tanada_with_stdin(&["simulate", "-", "--import", "msr"], &gzip[..40]).error(1);
    assert!(error.contains("stdin: reading the log from line 1 on"), "{error}");
    let error = tanada(&["simulate", &log]).error(1);
    assert!(error.contains("usr.csv"), "{error}");
    std::fs::write(folder.path().join("bad.csv"), "1,usr,0,Read,x,1,1\n").unwrap();
    let bad = folder.path().join("bad.csv").display().to_string();
    let error = tanada(&["simulate", &bad, "--import", "msr"]).error(1);
    assert!(error.contains("line 1"), "{error}");
    std::fs::write(folder.path().join("usr.csv.xz"), b"\xfd7zXZ\x00\x00\x04").unwrap();
    let others = folder.path().join("usr.csv.xz").display().to_string();
    let error = tanada(&["simulate", &others, "--import", "msr"]).error(1);
    assert!(error.contains("usr.csv.xz") && error.contains("unxz"), "{error}");
}

/// What another run read most is what `static` puts into the fast class, and not what this one reads.
#[test]
fn policies_learn_from_the_run_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let log = |name: &str, hot_mib: u64| {
        // Both of 8 MiB.
        let touched = (1..=8u64)
            .map(|no| ((no << 20) - 4096, 4096))
            .chain((0..100).map(|no| ((hot_mib << 20) + no * 8192, 8192)));
        let reads: String =
            touched.map(|(offset, bytes)| format!("/dev/x read {offset} {bytes}\n")).collect();
        let path = folder.path().join(name).display().to_string();
        std::fs::write(&path, format!("fio version 2 iolog\n/dev/x add\n/dev/x open\n{reads}")).unwrap();
        path
    };
    let (first, last) = (log("first", 0), log("last", 7));
    let slow_ios = |arguments: &[&str]| {
        let common =
            ["simulate", &first, "--import", "fio", "--policy", "static", "--fast-share", "13", "--json"];
        let json = tanada(&[&common as &[&str], arguments].concat()).output();
        let outcomes: serde_json::Value = serde_json::from_str(&json).unwrap();
        outcomes[0]["slow_ios"].as_u64().unwrap()
    };
    assert!(slow_ios(&[]) <= 8);
    assert_eq!(slow_ios(&["--training", &first]), slow_ios(&[]));
    assert!(slow_ios(&["--training", &last]) > 90);
    let error = tanada(&["simulate", &first, "--import", "fio", "--training", "/nowhere"]).error(1);
    assert!(error.contains("/nowhere"), "{error}");
    let both = ["simulate", &first, "--training", &last, "--no-training"];
    assert!(tanada(&both).error(2).contains("--no-training"));
    let both_from_stdin = ["simulate", "-", "--training", "-", "--import", "fio"];
    assert!(tanada(&both_from_stdin).error(2).contains("stdin"));
    // Of other objects nothing can be learned.
    let other = folder.path().join("other").display().to_string();
    std::fs::write(&other, "fio version 2 iolog\n/dev/y add\n/dev/y open\n/dev/y read 0 4096\n").unwrap();
    let error = tanada(&["simulate", &first, "--import", "fio", "--training", &other]).error(1);
    assert!(error.contains("other objects"), "{error}");
}

#[test]
fn wrong_arguments_of_a_simulation_are_said() {
    for (arguments, said) in [
        (&["--synthetic", "0.005", "--policy", "fastest"] as &[&str], "fastest"),
        (&["--synthetic", "0.005", "--fast-share", "200"], "200"),
        (&["--synthetic", "0.005", "--chunk-size", "1000"], "power of two"),
        (&["--synthetic", "0.005", "--fast", "floppy"], "floppy"),
    ] {
        let error = tanada(&[&["simulate"] as &[&str], arguments].concat()).error(2);
        assert!(error.contains(said), "{error}");
    }
    let error = tanada(&["simulate", "/nowhere.trace"]).error(1);
    assert!(error.contains("/nowhere.trace"), "{error}");
}

#[test]
fn both_models_are_named_at_once_or_one_by_one() {
    let arguments = ["simulate", "--synthetic", "0.005", "--policy", "off", "--fast-share", "20", "--json"];
    let of = |models: &[&str]| tanada(&[&arguments as &[&str], models].concat());
    let at_once = of(&["--models", "nvme,8xhdd-7200"]).output();
    assert_eq!(at_once, of(&["--fast", "nvme", "--slow", "8xhdd-7200"]).output());
    assert_eq!(of(&["--models", "nvme,8xhdd-7200", "--fast", "nvme"]).code, 2);
    assert!(of(&["--models", "nvme"]).error(2).contains("two models"));
}
