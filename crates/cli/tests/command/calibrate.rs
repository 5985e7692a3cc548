//! `tanada calibrate`: what is measured is kept, used and named; what cannot be used is said.

use std::path::Path;
use std::process::Command;

use crate::{Outcome, directory, run, tanada};

/// Runs `tanada` with a cache folder of its own.
fn tanada_with_cache(cache: &Path, arguments: &[&str]) -> Outcome {
    run(Command::new(env!("CARGO_BIN_EXE_tanada")).args(arguments).env("XDG_CACHE_HOME", cache), "")
}

#[test]
fn a_calibration_is_kept_and_used_by_queries() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let cache = folder.path().join("cache");
    let measured = folder.path().display().to_string();
    let arguments = ["calibrate", "--quick", "--size", "8MiB", "--json", &measured];
    let outcome = tanada_with_cache(&cache, &arguments);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let printed: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    let medium = &printed["media"][0];
    assert_eq!(medium["costs"]["random_reads"].as_array().unwrap().len(), 6);
    assert_eq!((&medium["emulated"], &printed["drifted"]), (&false.into(), &serde_json::json!([])));
    let kept = cache.join("tanada/calibration.json");
    assert_eq!(printed["kept"].as_str().map(Path::new), Some(kept.as_path()));

    let data = directory("mariadb-10.11").display().to_string();
    let explain = ["sql", "--innodb", &data, "--database", "tpch", "-c", "explain select count(*) from part"];
    let explained = tanada_with_cache(&cache, &explain).output();
    assert!(explained.contains("ms cold: I/O") && explained.contains("as measured"), "{explained}");

    std::fs::write(&kept, "{}").unwrap();
    let warned = tanada_with_cache(&cache, &explain);
    assert!(warned.code == 0 && warned.stdout.contains(", defaults"), "{warned:?}");
    assert!(warned.stderr.starts_with("tanada: warning: cannot use the calibration"), "{}", warned.stderr);
}

#[test]
fn an_emulated_class_is_measured_on_its_model() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let volume = folder.path().join("vol").display().to_string();
    let class = format!("slow={volume}/slow,size=64MiB,model=3xhdd-7200");
    tanada(&["volume", "create", &volume, "--class", &class]).output();
    let cache = folder.path().join("cache");
    let measured = tanada_with_cache(&cache, &["calibrate", "--volume", &volume, "--quick"]);
    assert_eq!(measured.code, 0, "{}", measured.stderr);
    assert!(measured.stdout.contains("3xhdd-7200 (emulated)"), "{}", measured.stdout);
    assert!(
        folder.path().join("vol/calibration.json").is_file()
            && !cache.join("tanada/calibration.json").exists()
    );
    let missing = folder.path().join("missing").display().to_string();
    let error = tanada_with_cache(&cache, &["calibrate", &missing]).error(1);
    assert!(error.contains("cannot measure"), "{error}");
}
