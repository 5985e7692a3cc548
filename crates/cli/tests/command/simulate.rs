//! `tanada simulate`: traces, shares and policies in, times out.

use super::tanada;

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
    std::fs::write(&log, lines).unwrap();
    let log = log.display().to_string();
    let text =
        tanada(&["simulate", &log, "--import", "msr", "--policy", "smq", "--fast-share", "50"]).output();
    assert!(text.starts_with("200 I/Os over "), "{text}");
    let error = tanada(&["simulate", &log]).error(1);
    assert!(error.contains("usr.csv"), "{error}");
    std::fs::write(folder.path().join("bad.csv"), "1,usr,0,Read,x,1,1\n").unwrap();
    let bad = folder.path().join("bad.csv").display().to_string();
    let error = tanada(&["simulate", &bad, "--import", "msr"]).error(1);
    assert!(error.contains("line 1"), "{error}");
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
