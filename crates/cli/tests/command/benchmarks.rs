//! `tanada bench ycsb` and `hse`: with next to no data, what they write is whole, and nothing of theirs is left.
//! `tanada bench pst`: what it takes. `tanada bench page-compression`: a server, next to no data.

use std::path::Path;

use crate::{Outcome, directory, tanada, tanada_in};

/// Runs one in a folder of its own; its result.
fn result(arguments: &[&str]) -> serde_json::Value {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let json = folder.path().join("result.json").display().to_string();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    let common = ["--rounds", "1", "--memory", "8MiB", "--json", &json, "--dir", data.to_str().unwrap()];
    let output = tanada(&[&["bench"] as &[&str], arguments, &common].concat()).output();
    assert!(output.contains("memory_over_budget"), "{output}");
    assert!(is_empty(&data));
    serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap()
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// What any benchmark has to say of itself, its phases in their order, and its summary's keys.
fn check(result: &serde_json::Value, name: &str, phases: &[&str], summary: &[&str]) {
    assert_eq!(result["benchmark"], name);
    for of_environment in ["tanada", "kernel", "cpu", "cores", "memory_mib", "file_system", "date"] {
        assert!(!result["environment"][of_environment].is_null(), "{of_environment}");
    }
    let runs = result["runs"].as_array().unwrap();
    let found: Vec<_> = runs.iter().map(|run| run["phase"].as_str().unwrap_or("none")).collect();
    assert_eq!(found, phases, "{}", runs[0]);
    for run in runs {
        assert!(run["operations_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{run}");
    }
    let keys: Vec<_> = result["summary"].as_object().unwrap().keys().map(String::as_str).collect();
    let missing: Vec<_> = summary.iter().filter(|key| !keys.contains(key)).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {keys:?}");
    assert!(result["summary"].as_object().unwrap().values().all(serde_json::Value::is_number));
}

#[test]
fn ycsb_of_a_few_records() {
    let of_data = ["ycsb", "--media", "folder", "--records", "5000", "--operations", "1000"];
    let of_time = ["--workloads", "ae", "--seconds", "1", "--warm-up", "0"];
    let result = result(&[&of_data as &[&str], &of_time].concat());
    let summary =
        ["capacity_bytes_over_logical_load", "staging_bytes_over_logical_load", "memory_over_budget"];
    check(&result, "ycsb", &["load", "a", "e"], &summary);
    assert_eq!(result["settings"]["records"]["count"], 5000);
}

#[test]
fn hse_of_a_few_records() {
    let result = result(&["hse", "--records", "5000", "--operations", "1000", "--workloads", "ac"]);
    let summary =
        ["capacity_bytes_reduction_load", "staging_over_capacity_a", "staging_over_capacity_c_p999"];
    check(&result, "hse", &["load", "a", "c", "load", "a", "c"], &summary);
}

#[test]
fn invalid_benchmark_options_are_refused_before_the_run() {
    let refused = |arguments: &[&str], code: i32| -> String {
        let outcome: Outcome = tanada(&[&["bench"] as &[&str], arguments].concat());
        outcome.error(code)
    };
    assert!(refused(&["ycsb", "--workloads", "xyz"], 2).contains("xyz"));
    assert!(refused(&["hse", "--dir", "/no/such/folder"], 1).contains("/no/such/folder"));
}

#[test]
fn tpch_queries_are_compared_with_a_baseline_and_with_the_servers_answers() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let json = folder.path().join("tpch.json").display().to_string();
    let data = directory("mysql-9.7").display().to_string();
    let of_data = ["bench", "tpch", "--innodb", &data, "--queries", "6,14", "--json", &json];
    let of_runs = ["--quick", "--baseline", env!("CARGO_BIN_EXE_tanada")];
    let shown = tanada(&[&of_data as &[&str], &of_runs].concat()).output();
    assert!(shown.contains("warm over baseline"), "{shown}");
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert_eq!(result["settings"]["is_sample"], true);
    let runs: Vec<_> = result["runs"].as_array().unwrap().iter().collect();
    let sides: Vec<_> = runs.iter().map(|run| (&run["query"], run["build"].as_str().unwrap())).collect();
    assert_eq!(
        sides.iter().map(|(query, build)| format!("{} {build}", query.as_str().unwrap())).collect::<Vec<_>>(),
        ["q6 measured", "q6 baseline", "q14 measured", "q14 baseline"]
    );
    for key in
        ["total_over_baseline", "warm_total_over_baseline", "q6_cold_over_baseline", "cpu_total_seconds"]
    {
        assert!(
            result["summary"][key].as_f64().is_some_and(|figure| figure > 0.0),
            "{key}: {}",
            result["summary"]
        );
    }
}

#[test]
fn a_baseline_that_is_missing_or_answers_otherwise_ends_the_tpch_benchmark() {
    let data = directory("mysql-9.7").display().to_string();
    let with = |baseline: &str| {
        let of_data = ["bench", "tpch", "--innodb", &data, "--queries", "6", "--runs", "1"];
        tanada(&[&of_data as &[&str], &["--baseline", baseline]].concat()).error(1)
    };
    assert!(with("/no/such/program").contains("/no/such/program"));
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = folder.path().join("other");
    let script = "#!/bin/sh\nprintf '1\\n1\\n'\necho '1 row, 0.001 s' >&2\n\
                  for i in 1 2 3 4 5 6; do printf 'revenue\\n12.5\\n'; echo '1 row, 0.001 s' >&2; done\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let error = with(program.to_str().unwrap());
    assert!(error.contains("q6") && error.contains("12.5"), "{error}");
}

#[test]
fn mirrors_are_compared_with_pages_and_with_the_servers_answers() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let json = folder.path().join("columnar.json").display().to_string();
    let data = directory("mariadb-10.11").display().to_string();
    let of_data = ["bench", "tpch", "--columnar", "--innodb", &data, "--queries", "1,6,14", "--json", &json];
    let of_runs = ["--quick", "--python", "/no/such/python"];
    let shown = tanada(&[&of_data as &[&str], &of_runs].concat()).output();
    assert!(shown.contains("mirrored") && shown.contains("without"), "{shown}");
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(result["setup"].as_str().unwrap().contains("DuckDB is left out"));
    for key in
        ["first_run_over_without", "mirrored_total_over_without", "mirror_bytes", "q6_mirrored_seconds"]
    {
        let figure = result["summary"][key].as_f64();
        assert!(figure.is_some_and(|figure| figure > 0.0), "{key}: {}", result["summary"]);
    }
    assert!(result["summary"]["mirrored_total_over_duckdb"].is_null());
}

/// A..B was refused, though `tanada simulate` takes it.
#[test]
fn the_tiering_benchmark_takes_shares_as_the_simulation_does() {
    let said = |arguments: &[&str]| {
        tanada(&[&["bench", "pst", "--innodb", "/no/such/folder"] as &[&str], arguments].concat()).stderr
    };
    let taken =
        said(&["--fast-share", "0..100", "--live-share", "20..40", "--policy", "lru:fifo,skip-sequential"]);
    assert!(taken.contains("/no/such/folder"), "{taken}");
    assert!(said(&["--fast-share", "40..20"]).contains("--fast-share: 40..20 is empty"));
    assert!(said(&["--live-share", "0..20"]).contains("write per cent from 1 to 100"));
}

/// Without --innodb the parser's words were all that there was, though the data of the paper may be there.
#[test]
fn the_tiering_benchmark_finds_its_data_or_says_how_to_make_it() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let error = tanada_in(folder.path(), &["bench", "pst"]).error(2);
    for part in ["work/tpch-sf1/data", "scripts/make-tpch work/tpch-sf1 1", "--quick"] {
        assert!(error.contains(part), "{error}");
    }
    // It is taken, and has no database.
    std::fs::create_dir_all(folder.path().join("work/tpch-sf1/data")).unwrap();
    let error = tanada_in(folder.path(), &["bench", "pst"]).error(1);
    assert!(error.contains("work/tpch-sf1/data") && !error.contains("make-tpch"), "{error}");
}

/// Shares are written as `tanada simulate` takes them; the policies of live runs are `benefit` and `static`, or those
/// named; the sweep is compared with real time.
#[test]
fn the_tiering_benchmark_runs_policies_on_a_volume() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (json, data) = (folder.path().join("pst.json"), directory("mariadb-10.11").display().to_string());
    let run = |arguments: &[&str]| -> serde_json::Value {
        let common = ["bench", "pst", "--innodb", &data, "--runs", "1", "--json", json.to_str().unwrap()];
        tanada(&[&common as &[&str], arguments].concat()).output();
        serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap()
    };
    let of_shares = ["--fast-share", "30..40", "--live-share", "30"];
    let result = run(&[&["--queries", "4,10", "--policy", "benefit,static"] as &[&str], &of_shares].concat());
    assert_eq!(result["settings"]["shares"], serde_json::json!([30, 40]));
    let live = result["runs"].as_array().unwrap().iter().filter(|run| run["kind"] == "live");
    let live: Vec<_> =
        live.map(|run| (run["policy"].as_str().unwrap(), run["time"].as_str().unwrap())).collect();
    let both = [("benefit", "virtual"), ("benefit", "real"), ("static", "virtual"), ("static", "real")];
    assert_eq!(live, [both, both].concat());
    for key in ["replay_over_real_time", "virtual_over_real_time"] {
        assert!(result["summary"][key]["least"].is_number(), "{key}: {}", result["summary"]);
    }
    for key in ["live_virtual_benefit_over_static", "live_real_benefit_over_static"] {
        assert!(result["summary"][key]["in_order"]["most"].is_number(), "{key}: {}", result["summary"]);
    }
    let arguments = ["bench", "pst", "--innodb", &data, "--live-policy", "benefit,lru:fifo"];
    let error = tanada(&arguments).error(2);
    assert!(
        error.contains("lru places blocks") && error.contains("benefit, off, static, plan, history"),
        "{error}"
    );
}

/// In virtual time, on a volume at one share; the keys of the paper's figures for both executions, and a page of them.
#[test]
fn a_quick_look_at_tiering_has_its_keys_and_its_page() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (json, html) = (folder.path().join("pst.json"), folder.path().join("pst.html"));
    let (data, work) = (directory("mariadb-10.11").display().to_string(), folder.path().join("work"));
    std::fs::create_dir(&work).unwrap();
    let of_data = ["bench", "pst", "--quick", "--innodb", &data, "--work", work.to_str().unwrap()];
    let of_runs = ["--runs", "1", "--policy", "benefit,static,plan,lru", "--fast-share", "20,50"];
    let written = ["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()];
    tanada(&[&of_data as &[&str], &of_runs, &written].concat()).output();
    assert!(is_empty(&work));
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    for execution in ["in_order", "out_of_order"] {
        for key in [
            "benefit_over_static_best",
            "benefit_over_static_worst",
            "plan_over_static_best",
            "lru_over_static_best",
            "q5_benefit_over_static_best",
        ] {
            assert!(result["summary"][key][execution].is_number(), "{key}: {}", result["summary"]);
        }
    }
    let live: Vec<_> =
        result["runs"].as_array().unwrap().iter().filter(|run| run["kind"] == "live").collect();
    assert!(live.len() == 4 && live.iter().all(|run| run["time"] == "virtual" && run["share"] == 50));
    let page = std::fs::read_to_string(&html).unwrap();
    for part in ["<svg", "benefit", "static", "plan", "lru"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn page_compression_of_a_few_nodes() {
    if crate::mount::refusal().is_some() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (json, html, data) = (file("pages.json"), file("pages.html"), folder.path().join("data"));
    std::fs::create_dir(&data).unwrap();
    let of_data =
        ["--nodes", "300", "--seconds", "0.3", "--requesters", "4", "--dir", data.to_str().unwrap()];
    let of_arms = ["--quick", "--arms", "plain,mount_lz4_cleaners_2", "--json", &json, "--html", &html];
    // A plain file system on an emulated device lies behind a loop device.
    let has_loops = Path::new("/dev/loop-control").exists();
    let of_devices = ["--devices", if has_loops { "sata-ssd" } else { "disk" }];
    tanada(&[&["bench", "page-compression"] as &[&str], &of_data, &of_arms, &of_devices].concat()).output();
    assert!(is_empty(&data), "nothing is left, and nothing is mounted");
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let runs = result["runs"].as_array().unwrap();
    assert_eq!(
        runs.iter().map(|run| run["arm"].as_str().unwrap()).collect::<Vec<_>>(),
        ["plain", "mount_lz4_cleaners_2"]
    );
    for run in runs {
        for figure in ["load_seconds", "requests_per_second", "scan_seconds", "drop_seconds", "extents"] {
            assert!(run[figure].as_f64().is_some_and(|figure| figure > 0.0), "{figure}: {run}");
        }
        let bytes = |key: &str| run[key].as_u64().unwrap();
        assert!(bytes("written_bytes_load") > 0 && bytes("written_bytes_requests") > 0, "{run}");
        assert!(run["operations"]["get_link_list"]["requests"].as_u64() > Some(0), "{run}");
    }
    let stored = |no: usize| runs[no]["stored_bytes_load"].as_u64().unwrap();
    assert!(stored(1) < stored(0), "{} of {}", stored(1), stored(0));
    assert!(std::fs::read_to_string(html).unwrap().contains("<svg"));
    let refused = tanada(&["bench", "page-compression", "--arms", "mount_rot13"]).error(2);
    assert!(refused.contains("mount_lz4"), "{refused}");
}

/// In its smallest form: two queries, one share, devices that are quick.
#[test]
fn a_server_on_a_mounted_volume_answers_as_without_and_is_placed_by_its_plans() {
    if crate::mount::refusal().is_some() || crate::mounted_servers::MariaDb::find().is_none() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (json, html, work) = (file("pst.json"), file("pst.html"), folder.path().join("w"));
    std::fs::create_dir(&work).unwrap();
    let data = directory("mariadb-10.11").display().to_string();
    let of_data = ["bench", "pst", "--quick", "--rdbms", "mariadb", "--innodb", &data, "--queries", "4,10"];
    let of_devices = ["--fast", "nvme", "--slow", "2xsata-qlc", "--work", work.to_str().unwrap()];
    let of_runs =
        ["--policy", "static,lru,plan,benefit", "--fast-share", "40", "--json", &json, "--html", &html];
    tanada(&[&of_data as &[&str], &of_devices, &of_runs].concat()).output();
    assert!(is_empty(&work), "nothing is left, and nothing is mounted");
    let result: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let runs = result["runs"].as_array().unwrap();
    let found: Vec<String> = runs
        .iter()
        .map(|run| format!("{} {} {}", run["kind"], run["policy"], run["share"]).replace('"', ""))
        .collect();
    assert_eq!(
        found,
        [
            "live off 0",
            "live static 40",
            "live plan 40",
            "live benefit 40",
            "replay lru 40",
            "replay static 40",
            "proxy null null"
        ]
    );
    // Without a fast class to speak of almost all goes to the slow one; `plan` was told of the queries, and moved.
    assert!(runs[0]["slow_ios"].as_u64() > Some(500), "{}", runs[0]);
    for run in &runs[1..4] {
        assert!(run["slow_ios"].as_u64() < runs[0]["slow_ios"].as_u64(), "{run}");
        assert!(run["queries"].as_array().unwrap().iter().all(|query| query["seconds"].as_f64() > Some(0.0)));
    }
    assert!(runs[2]["relocation_slow_ios"].as_u64() > Some(0), "{}", runs[2]);
    let numbers = ["benefit_over_static_best", "plan_over_static_worst", "lru_over_static_best"];
    let of_proxy = ["proxy_added_us_p50", "proxy_throughput_16_clients"];
    for key in numbers.iter().chain(&of_proxy) {
        assert!(result["summary"][key].is_number(), "{key}: {}", result["summary"]);
    }
    assert!(result["summary"]["slow_ios"]["plan"]["40"].is_number(), "{}", result["summary"]);
    assert!(std::fs::read_to_string(html).unwrap().contains("<svg"));
    let refused = tanada(&["bench", "pst", "--rdbms", "oracle"]).error(2);
    assert!(refused.contains("mariadb"), "{refused}");
}

#[test]
fn the_cost_model_is_measured_by_forced_plans() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let json = folder.path().join("result.json").display().to_string();
    let data = directory("mariadb-10.11").display().to_string();
    let common = ["--innodb", &data, "--media", "nvme", "--runs", "1", "--json", &json];
    let result = |benchmark: &[&str]| -> serde_json::Value {
        let printed = tanada(&[&["bench"] as &[&str], benchmark, &common].concat());
        assert_eq!(printed.code, 0, "{}", printed.stderr);
        serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap()
    };
    let model = result(&["cost-model", "--queries", "6,14"]);
    assert_eq!(model["runs"].as_array().unwrap().len(), 2 * 5);
    for key in ["prediction_error_median", "choice_over_best_p90", "choice_over_best_max", "q_error_median"] {
        assert!(
            model["summary"][key].as_f64().is_some_and(|figure| figure >= 0.0),
            "{key}: {}",
            model["summary"]
        );
    }
    let html = folder.path().join("page.html").display().to_string();
    let choice = result(&["join-choice", "--shares", "0.1,100", "--html", &html]);
    assert!(choice["summary"]["choice_over_best_max"].as_f64().is_some_and(|ratio| ratio > 0.0));
    assert_eq!(std::fs::read_to_string(html).unwrap().matches("<svg").count(), 1);
}
