//! `tanada volume` and `tanada sql --volume`, from making a volume to removing a class.

use std::collections::HashSet;
use std::path::Path;

use serde_json::Value;

use super::{Outcome, directory, tanada, work_folder};

/// A folder with a volume of two classes.
struct Made {
    folder: tempfile::TempDir,
    volume: String,
}

impl Made {
    fn new() -> Made {
        let folder = tempfile::tempdir_in(work_folder()).unwrap();
        let volume = folder.path().join("vol").display().to_string();
        let class = |name: &str| format!("{name}={volume}/{name},size=160MiB");
        let made = tanada(&[
            "volume",
            "create",
            &volume,
            "--class",
            &class("staging"),
            "--class",
            &format!("{},stripe=256KiB", class("capacity")),
        ]);
        assert!(made.output().ends_with("2 classes (staging 160 MiB, capacity 160 MiB)\n"));
        Made { folder, volume }
    }

    /// One of modelled devices, in which a query has had chunks placed.
    fn placed() -> Made {
        let folder = tempfile::tempdir_in(work_folder()).unwrap();
        let volume = folder.path().join("vol").display().to_string();
        let class = |name: &str, model: &str| format!("{name}={volume}/{name},size=64MiB,model={model}");
        let classes = [class("staging", "sata-ssd"), class("capacity", "3xhdd-7200")];
        tanada(&["volume", "create", &volume, "--class", &classes[0], "--class", &classes[1]]).output();
        let made = Made { folder, volume };
        made.run("adopt", &[&directory("mariadb-10.11").display().to_string(), "--name", "data"]).output();
        let join = "select sum(o_totalprice) from lineitem join orders on o_orderkey = l_orderkey where l_partkey < 400";
        made.sql(&["--database", "tpch", "--set", "tanada.lookup_join=always", "-c", join]).output();
        made
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// `tanada volume COMMAND VOLUME ARGUMENTS`.
    fn run(&self, command: &str, arguments: &[&str]) -> Outcome {
        let words: Vec<&str> = command.split(' ').collect();
        tanada(&[&["volume"], &words[..], &[&self.volume], arguments].concat())
    }

    fn json(&self, command: &str, arguments: &[&str]) -> Value {
        let output = self.run(command, &[arguments, &["--json"]].concat()).output();
        serde_json::from_str(&output).unwrap_or_else(|error| panic!("{error}: {output}"))
    }

    fn sql(&self, arguments: &[&str]) -> Outcome {
        tanada(&[&["sql", "--volume", &self.volume] as &[&str], arguments].concat())
    }

    #[track_caller]
    fn assert_sound(&self) {
        let output = self.run("check", &[]).output();
        assert!(output.starts_with("sound: "), "{output}");
    }
}

/// A file with a hole and an odd end.
fn holey(path: &str) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::create(path).unwrap();
    let random = |seed: u8, len: usize| -> Vec<u8> { (0..len).map(|i| (i % 251) as u8 ^ seed).collect() };
    file.write_all_at(&random(1, 1_500_000), 0).unwrap();
    file.write_all_at(&random(2, 300_001), 9 << 20).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn imported_files_are_exported_unchanged() {
    let made = Made::new();
    let bytes = holey(&made.path("in"));
    let imported = made.run("import", &[&made.path("in"), "--name", "some/file", "--class", "staging"]);
    assert!(imported.output().starts_with("1 file imported, "));
    let listed = made.json("ls", &[]);
    assert_eq!((&listed[0]["name"], &listed[0]["size_bytes"]), (&"some/file".into(), &bytes.len().into()));
    assert!(listed[0]["allocated_bytes"].as_u64().unwrap() <= 4 << 20, "the hole takes no space: {listed}");
    let lies = made.json("stat", &["some/file"]);
    assert_eq!((&lies[0]["chunks"]["capacity"], lies[0]["chunks"]["staging"].is_u64()), (&Value::Null, true));

    made.run("export", &["some/file", &made.path("out")]).output();
    assert!(std::fs::read(made.path("out")).unwrap() == bytes);
    made.run("export", &["some", &made.path("all")]).output();
    assert!(std::fs::read(made.path("all/file")).unwrap() == bytes);
    let error = made.run("export", &["some/file", &made.path("out")]).error(1);
    assert!(error.contains("is there already"), "{error}");
    let error = made.run("import", &[&made.path("in"), "--name", "some/file"]).error(1);
    assert!(error.contains("some/file"), "{error}");

    made.assert_sound();
    assert_eq!(made.run("rm", &["some"]).output(), "1 object removed\n");
    assert_eq!(made.json("ls", &[]), serde_json::json!([]));
    let information = made.json("info", &[]);
    assert_eq!((&information["objects"], &information["was_clean"]), (&0.into(), &true.into()));
    assert_eq!(information["classes"][0]["used_bytes"], 0, "its space is free: {information}");
}

#[test]
fn adopted_folders_answer_as_the_servers_and_heat_shows_their_reads() {
    let made = Made::new();
    let data = directory("mariadb-10.11");
    made.run("adopt", &[&data.display().to_string(), "--name", "backup"]).output();
    assert_eq!(made.run("heat", &[]).output(), "nothing was read or written yet\n");
    for execution in ["out_of_order", "in_order"] {
        for query in tanada_sample::queries() {
            let set = format!("tanada.execution={execution}");
            let output = made.sql(&["--database", "tpch", "--set", &set, "-c", query.sql]).output();
            let rows = output.lines().skip(1).map(str::to_owned).collect();
            tanada_sample::answer::check(rows, query.answer)
                .unwrap_or_else(|error| panic!("{execution} {}: {error}", query.name));
        }
    }
    let heat = made.json("heat", &["backup/tpch", "--top", "3"]);
    assert_eq!(heat.as_array().unwrap().len(), 3);
    assert!(heat[0]["reads"].as_u64().unwrap() > 10 && heat[0]["class"].is_null(), "{heat}");
    let lies = made.json("stat", &["backup/tpch/lineitem.ibd"]);
    assert!(lies[0]["bytes_read"].as_u64().unwrap() > 1 << 20, "{lies}");
    made.assert_sound();
}

#[test]
fn imported_folders_answer_as_the_servers() {
    let made = Made::new();
    made.run("import", &[&directory("mysql-9.7").display().to_string(), "--name", "copy"]).output();
    let queries: Vec<_> = tanada_sample::queries().collect();
    for query in &queries[..2] {
        let output = made.sql(&["--database", "tpch", "-c", query.sql]).output();
        let rows = output.lines().skip(1).map(str::to_owned).collect();
        tanada_sample::answer::check(rows, query.answer)
            .unwrap_or_else(|error| panic!("{}: {error}", query.name));
    }
    made.assert_sound();
}

#[test]
fn pins_mirrors_and_their_reasons() {
    let made = Made::new();
    let table = directory("mariadb-10.11").join("tpch/orders.ibd").display().to_string();
    made.run("adopt", &[&table]).output();
    let pinned = made.run("pin", &["orders.ibd", "--to", "staging", "--budget", "1GiB"]).output();
    assert!(pinned.starts_with("1 object pinned to staging, "), "{pinned}");
    let listed = made.json("ls", &["orders.ibd"]);
    assert_eq!(listed[0]["pin"], "staging");
    assert!(listed[0]["mirrored_bytes"].as_u64() >= listed[0]["size_bytes"].as_u64(), "{listed}");
    let why = made.run("heat", &["orders.ibd", "--explain", "0"]).output();
    assert!(why.contains("mirror in class staging") && why.contains("by the user: pin to staging"), "{why}");
    let error = made.run("mirror", &["orders.ibd", "--to", "capacity"]).error(1);
    assert!(error.contains("pinned to class staging"), "{error}");
    // It was told as if it had been done, and the pin no more.
    let why = made.run("heat", &["orders.ibd", "--explain", "0"]).output();
    assert!(why.contains("by the user: pin to staging") && !why.contains("any more"), "{why}");
    assert!(
        why.contains("mirror to capacity") && why.contains("Refused: ") && why.contains("pinned"),
        "{why}"
    );
    assert!(why.contains("\nIts object is pinned to class staging.\n"), "{why}");
    made.assert_sound();
    made.run("pin", &["orders.ibd", "--off"]).output();
    let dropped = made.run("drop", &["orders.ibd", "--chunks", "0..2"]).output();
    assert_eq!(dropped, "2 mirrors dropped\n");
    let why = made.run("heat", &["orders.ibd", "--explain", "1"]).output();
    assert!(why.contains("drop, chunks 0 to 1"), "{why}");
    made.assert_sound();
}

/// The last decision was told as if the chunk lay there still.
#[test]
fn explain_names_a_decision_that_no_longer_holds() {
    let made = Made::new();
    let original = directory("mariadb-10.11").join("tpch/orders.ibd");
    let table = format!("{}/../copy.ibd", made.volume);
    std::fs::copy(original, &table).unwrap();
    made.run("adopt", &[&table]).output();
    made.run("mirror", &["copy.ibd", "--to", "staging"]).output();
    let explain = ["copy.ibd", "--explain", "1"];
    let why = made.run("heat", &explain).output();
    assert!(why.contains("mirror to staging") && !why.contains("any more"), "{why}");
    // Whoever mirrored it was killed before it could note that.
    let notes = format!("{}/decisions.jsonl", made.volume);
    let noted = std::fs::read(&notes).unwrap();
    std::fs::remove_file(&notes).unwrap();
    let why = made.run("heat", &explain).output();
    assert!(why.contains("remembered: who made its mirror is not known."), "{why}");
    std::fs::write(&notes, noted).unwrap();

    let file = std::fs::File::options().write(true).open(&table).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    made.run("quota", &["copy.ibd", "--size", "64MiB"]).output();
    let why = made.run("heat", &explain).output();
    assert!(why.contains("mirror to staging") && why.contains("It is not so any more: "), "{why}");
    assert_eq!(made.json("heat", &explain)["is_outdated"], true);
}

/// Those that ended while the session closed were left out.
#[test]
fn every_decision_of_placement_is_remembered() {
    let made = Made::placed();
    let notes = std::fs::read_to_string(format!("{}/decisions.jsonl", made.volume)).unwrap();
    let noted = notes.lines().filter(|line| line.contains("policy benefit") && !line.contains("\"refusal\""));
    let done = "select count(*) from tanada.placements where session = 1 and refusal is null";
    let done = made.sql(&["--set", "tanada.placement=off", "-c", done]).output();
    assert_eq!(done.lines().nth(1), Some(noted.count().to_string().as_str()), "{notes}");
    assert_ne!(done, "count(*)\n0\n");
    // And with what it gains.
    let chunk = "select max(chunk) from tanada.volume_stats where mirror = 'staging' and object = 'data/tpch/orders.ibd'";
    let chunk = made.sql(&["--set", "tanada.placement=off", "-c", chunk]).output();
    let explain = ["data/tpch/orders.ibd", "--explain", chunk.lines().nth(1).unwrap()];
    assert!(made.json("heat", &explain)["decision"]["gain_s"].as_f64().unwrap() > 0.0);
    let why = made.run("heat", &explain).output();
    assert!(why.contains("mirrored to staging") && why.contains("; gain ") && why.contains(" ms."), "{why}");
}

/// It said that no decision was remembered, and no more.
#[test]
fn explain_names_what_keeps_a_chunk_from_the_first_class() {
    let made = Made::new();
    let table = directory("mariadb-10.11").join("tpch/orders.ibd").display().to_string();
    made.run("import", &[&table]).output();
    let explain = ["orders.ibd", "--explain", "1"];
    let why = made.run("heat", &explain).output();
    assert!(why.ends_with("Class staging has room: 160 of 160 chunks are free.\n"), "{why}");
    made.run("quota", &["orders.ibd", "--size", "64MiB"]).output();
    made.run("pin", &["orders.ibd", "--to", "capacity"]).output();
    // What users decided is a decision, too; without it what it left is told.
    let notes = format!("{}/decisions.jsonl", made.volume);
    let noted = std::fs::read_to_string(&notes).unwrap();
    let pinned: Value = serde_json::from_str(noted.lines().next().unwrap()).unwrap();
    std::fs::remove_file(&notes).unwrap();
    let why = made.run("heat", &explain).output();
    assert!(why.contains("pinned to class capacity.\n"), "{why}");
    assert!(why.contains("quota of 64 chunks, 0 are used in class staging.\n"), "{why}");
    let told = made.json("heat", &explain);
    let first = &told["first_class"];
    assert_eq!((&told["pin"], &first["quota_chunks"]), (&"capacity".into(), &64.into()));
    assert_eq!((&first["taken_chunks"], &first["chunks"]), (&0.into(), &160.into()));
    // A copy that found no room.
    let object = &pinned["object"];
    let refused = format!(
        r#"{{"at":1,"object":{object},"first":1,"end":2,"action":"mirrored","class":"staging","who":"policy benefit","why":"it is read","gain_s":0.5,"refusal":"no free chunk"}}"#
    );
    std::fs::write(&notes, refused).unwrap();
    let why = made.run("heat", &explain).output();
    assert!(why.contains("it is read; gain 500.0 ms. Refused: no free chunk.\n"), "{why}");
    assert_eq!(made.json("heat", &explain)["refused"]["refusal"], "no free chunk");
}

/// Only what was imported could have one, from then on for good.
#[test]
fn an_object_is_given_a_quota_and_freed_of_it() {
    let made = Made::new();
    holey(&made.path("in"));
    made.run("import", &[&made.path("in"), "--name", "some/file"]).output();
    let quota = made.run("quota", &["some", "--size", "8MiB"]).output();
    assert_eq!(quota, "1 object, 8 MiB each at most\n");
    let quota = || made.json("stat", &["some/file"])[0]["quota_bytes"].clone();
    assert_eq!(quota(), 8 << 20);
    assert_eq!(made.run("quota", &["some/file", "--off"]).output(), "1 object without a quota\n");
    assert_eq!(quota(), Value::Null);
    assert_eq!(made.run("quota", &["some/file"]).code, 2);
    made.assert_sound();
}

#[test]
fn classes_come_and_go_while_the_data_stay() {
    let made = Made::new();
    let bytes = holey(&made.path("in"));
    made.run("import", &[&made.path("in"), "--name", "file"]).output();
    let middle = format!("middle={}/middle,size=64MiB,model=nvme", made.volume);
    made.run("class add", &[&middle, "--before", "capacity"]).output();
    let information = made.json("info", &[]);
    let names: Vec<&str> = information["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["staging", "middle", "capacity"]);
    assert_eq!(information["classes"][1]["model"], "nvme");

    let moved = made.run("move", &["file", "--to", "middle", "--chunks", "0..1"]).output();
    assert_eq!(moved, "1 chunk moved to middle, 1 MiB\n");
    let error = made.run("class remove", &["capacity"]).error(1);
    assert!(error.contains("drain"), "{error}");
    let drained = made.run("class drain", &["capacity"]).output();
    assert!(drained.starts_with("class capacity drained: "), "{drained}");
    made.run("class remove", &["capacity"]).output();
    assert!(!Path::new(&made.volume).join("capacity").exists(), "the file that was made for it is gone");
    made.run("class resize", &["staging", "32MiB"]).output();
    made.run("export", &["file", &made.path("out")]).output();
    assert!(std::fs::read(made.path("out")).unwrap() == bytes);
    assert_eq!(made.json("info", &[])["classes"][0]["size_bytes"], 32 << 20);
    made.assert_sound();
}

/// It had to be drained first, of what nobody can read.
#[test]
fn a_missing_class_with_mirrors_only_is_removed_at_once() {
    let made = Made::new();
    let bytes = holey(&made.path("in"));
    made.run("import", &[&made.path("in"), "--name", "file"]).output();
    made.run("mirror", &["file", "--to", "staging"]).output();
    std::fs::remove_file(Path::new(&made.volume).join("staging")).unwrap();
    let removed = made.run("class remove", &["staging"]);
    assert_eq!((removed.code, removed.stdout.as_str()), (0, "class staging removed\n"), "{}", removed.stderr);
    made.run("export", &["file", &made.path("out")]).output();
    assert!(std::fs::read(made.path("out")).unwrap() == bytes);
    made.assert_sound();
}

/// Quotas bound what placement brings to the first class, and what was brought there by hand was not bounded.
#[test]
fn manual_moves_and_mirrors_obey_quotas_and_pins() {
    let made = Made::new();
    let table = directory("mariadb-10.11").join("tpch").display().to_string();
    made.run("adopt", &[&table, "--name", "data"]).output();
    let name = "data/orders.ibd";
    made.run("quota", &[name, "--size", "4MiB"]).output();
    let error = made.run("mirror", &[name, "--to", "staging"]).error(1);
    assert!(error.contains("data/orders.ibd has a quota of 4 MiB, 4 chunks: 0 of them are used"), "{error}");
    let mirror = |chunks: &str| made.run("mirror", &[name, "--to", "staging", "--chunks", chunks]);
    mirror("0..3").output();
    let error = mirror("2..5").error(1);
    assert!(error.contains("3 of them are used in class staging, and 2 more would go beyond it"), "{error}");
    assert!(
        !std::fs::read_to_string(format!("{}/decisions.jsonl", made.volume)).unwrap().contains("\"end\":5")
    );
    mirror("1..4").output();
    // What is there already may stay, and folders are looked at as a whole before anything moves.
    assert_eq!(mirror("0..4").output(), "0 chunks mirrored to staging, 0 B\n");
    made.run("mirror", &["data", "--to", "staging"]).error(1);
    let mirrored = "select count(*) from tanada.volume_stats where mirror = 'staging'";
    assert_eq!(made.sql(&["--set", "tanada.placement=off", "-c", mirrored]).stdout, "count(*)\n4\n");
    made.run("quota", &[name, "--off"]).output();
    made.run("pin", &[name, "--to", "staging"]).output();

    // A quota that was made smaller counts for moves, too.
    std::fs::write(made.path("in"), vec![3; 4 << 20]).unwrap();
    made.run("import", &[&made.path("in"), "--name", "file"]).output();
    made.run("quota", &["file", "--size", "1MiB"]).output();
    let error = made.run("move", &["file", "--to", "staging"]).error(1);
    assert!(error.contains("file has a quota of 1 MiB, 1 chunk: 0 of them are used"), "{error}");
    made.run("move", &["file", "--to", "staging", "--chunks", "2..3"]).output();
    made.run("move", &["file", "--to", "capacity"]).output();
    made.run("pin", &["file", "--to", "capacity"]).output();
    made.run("quota", &["file", "--off"]).output();
    let error = made.run("mirror", &["file", "--to", "staging"]).error(1);
    assert!(error.contains("pinned to class capacity"), "{error}");
}

#[test]
fn a_class_that_cannot_be_emptied_says_that_it_takes_no_more() {
    let made = Made::new();
    made.run("class resize", &["staging", "2MiB"]).output();
    std::fs::write(made.path("in"), vec![3; 8 << 20]).unwrap();
    let import = |name: &str| made.run("import", &[&made.path("in"), "--name", name]);
    import("one").output();
    let error = made.run("class drain", &["capacity"]).error(1);
    assert!(error.contains("staging (2 of 2 chunks taken)") && error.contains("class fill"), "{error}");
    let error = import("two").error(1);
    assert!(error.contains("it is being drained"), "{error}");
    made.run("class fill", &["capacity"]).output();
    import("three").output();
    made.assert_sound();
}

/// It was forgotten where the class lies that is there.
#[test]
fn a_class_that_cannot_be_added_leaves_everything_as_it_was() {
    let made = Made::new();
    let bytes = holey(&made.path("in"));
    made.run("import", &[&made.path("in"), "--name", "file"]).output();
    for (code, name, file, size) in [
        (1, "staging", "new", "64MiB"),
        (2, "tiny", "tiny", "1KiB"),
        (2, "own", "metadata", "64MiB"),
        (2, "own", "./volume.json.creating", "64MiB"),
    ] {
        made.run("class add", &[&format!("{name}={}/{file},size={size}", made.volume)]).error(code);
    }
    for file in ["new", "tiny", "volume.json.creating"] {
        assert!(!Path::new(&made.volume).join(file).exists(), "{file}");
    }
    made.run("export", &["file", &made.path("out")]).output();
    assert!(std::fs::read(made.path("out")).unwrap() == bytes);
    assert_eq!(made.json("info", &[])["classes"].as_array().unwrap().len(), 2);
    made.assert_sound();
    let class = format!("own={}/metadata,size=64MiB", made.path("other"));
    let error = tanada(&["volume", "create", &made.path("other"), "--class", &class]).error(2);
    assert!(error.contains("the volume's own"), "{error}");
}

/// They went without a word.
#[test]
fn damaged_mirrors_are_reported_once_per_object() {
    let made = Made::new();
    let data = directory("mariadb-10.11");
    made.run("adopt", &[&data.display().to_string(), "--name", "data"]).output();
    let file = "tpch/lineitem.ibd";
    made.run("mirror", &[&format!("data/{file}"), "--to", "staging"]).output();
    let bytes = std::fs::read(data.join(file)).unwrap();
    let pages: HashSet<&[u8]> =
        bytes.chunks(16 << 10).filter(|page| page.iter().any(|byte| *byte != 0)).collect();
    let staging = format!("{}/staging", made.volume);
    let mut class = std::fs::read(&staging).unwrap();
    for block in class.chunks_mut(16 << 10).filter(|block| pages.contains(&**block)) {
        block[5000] ^= 1;
    }
    std::fs::write(&staging, class).unwrap();

    let answer =
        made.sql(&["--database", "tpch", "-c", "select count(*) as n from lineitem where l_comment <> 'x'"]);
    assert_eq!((answer.code, &*answer.stdout), (0, "n\n120515\n"), "{}", answer.stderr);
    let told: Vec<&str> =
        answer.stderr.lines().filter(|line| line.contains("is damaged: it is dropped")).collect();
    assert!(matches!(&told[..], [one] if one.contains(file) && one.contains("staging")), "{}", answer.stderr);
}

#[test]
fn a_changed_file_is_found_and_never_served_from_its_mirror() {
    let made = Made::new();
    std::fs::write(made.path("f"), vec![1; 2 << 20]).unwrap();
    made.run("adopt", &[&made.path("f")]).output();
    made.run("mirror", &["f", "--to", "staging"]).output();
    std::fs::write(made.path("f"), vec![2; 2 << 20]).unwrap();
    let found = made.run("check", &[]);
    assert_eq!(found.code, 1);
    assert!(found.stdout.contains("has changed") && found.stderr.contains("--repair"), "{found:?}");
    made.run("export", &["f", &made.path("out")]).output();
    assert!(std::fs::read(made.path("out")).unwrap() == vec![2; 2 << 20]);
    let repaired = made.run("check", &["--repair"]).output();
    assert!(repaired.starts_with("sound: ") && repaired.contains("repaired"), "{repaired}");
}

#[test]
fn errors_of_volume_commands_say_what_to_do() {
    let made = Made::new();
    for (code, command, arguments, expected) in [
        (1, "stat", &["nothing"] as &[&str], "no object \"nothing\""),
        (1, "move", &["nothing", "--to", "staging"], "no object"),
        (1, "adopt", &["/nowhere/at/all"], "/nowhere/at/all"),
        (1, "import", &["/nowhere/at/all"], "/nowhere/at/all"),
        (1, "class drain", &["tape"], "there are staging, capacity"),
        (2, "class add", &["x=/", "--before", "capacity"], "size="),
    ] {
        let error = made.run(command, arguments).error(code);
        assert!(error.contains(expected), "{command}: {error}");
    }
    let error = tanada(&["volume", "info", &made.path("none")]).error(1);
    assert!(error.contains("holds no volume; tanada volume create makes one"), "{error}");
    let class = format!("a={}/a,size=1MiB", made.volume);
    let error = tanada(&["volume", "create", &made.volume, "--class", &class]).error(1);
    assert!(error.contains("holds a volume already"), "{error}");
    let error = made.sql(&["-c", "select 1"]).error(1);
    assert!(error.contains("tanada volume adopt"), "{error}");
    for arguments in [
        &["volume"] as &[&str],
        &["volume", "create", "v"],
        &["volume", "create", "v", "--class", "fast"],
        &["volume", "create", "v", "--class", "fast=x,size=1GiB,model=tape"],
        &["volume", "move", "v", "o"],
        &["volume", "move", "v", "o", "--to", "c", "--chunks", "9..3"],
        &["volume", "pin", "v", "o"],
        &["volume", "heat", "v", "--explain", "1"],
    ] {
        let outcome = tanada(arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments:?}");
    }
    let small = made.path("small");
    let class = format!("a={small}/a,size=16MiB");
    let error = tanada(&["volume", "create", &small, "--class", &class, "--chunk-size", "3MiB"]).error(2);
    assert!(error.contains("power of two"), "{error}");
    for command in ["create", "info", "heat", "move", "class", "check", "adopt"] {
        assert!(tanada(&["volume", command, "--help"]).output().contains("Examples:"), "{command}");
    }
}

#[test]
fn compressed_objects_are_imported_altered_optimized_and_exported_with_their_holes() {
    use std::os::unix::fs::MetadataExt;
    let made = Made::new();
    let bytes = holey(&made.path("in"));
    let import = ["--name", "some/file", "--compression", "zstd:3", "--page-size", "32KiB"];
    made.run("import", &[&[made.path("in").as_str()], &import[..]].concat()).output();
    let lies = &made.json("stat", &["some/file"])[0];
    assert_eq!((&lies["compression"], &lies["page_bytes"]), (&"zstd:3".into(), &32768.into()), "{lies}");
    assert_eq!(lies["pages"]["zstd"], 46 + 10, "{lies}");
    assert!(lies["stored_bytes"].as_u64().unwrap() < 56 * 8192, "{lies}");
    assert!(lies["allocated_bytes"].as_u64().unwrap() <= 1 << 20, "{lies}");

    let altered = made.run("alter", &["some", "compression=lz4"]);
    assert_eq!(altered.output(), "1 object altered\n");
    let lies = &made.json("stat", &["some/file"])[0];
    assert_eq!((&lies["compression"], &lies["pages"]["zstd"]), (&"lz4".into(), &56.into()), "{lies}");
    let optimized = made.run("optimize", &["some/file"]).output();
    assert!(optimized.starts_with("1 object optimized, 1 MiB before, "), "{optimized}");
    assert_eq!(made.json("stat", &["some/file"])[0]["pages"]["lz4"], 56);
    let shown = made.run("stat", &["some/file"]).output();
    assert!(shown.contains("  compression lz4 in pages of 32 KiB\n"), "{shown}");

    made.run("export", &["some/file", &made.path("out")]).output();
    assert!(std::fs::read(made.path("out")).unwrap() == bytes);
    let out = std::fs::metadata(made.path("out")).unwrap();
    assert!(out.blocks() * 512 < 3 << 20, "the holes are holes: {}", out.blocks());

    for (words, why) in [
        (&["alter", "some/file", "compression=gzip"] as &[&str], "zstd:LEVEL"),
        (&["alter", "some/file", "compression=zlib:10"], "1 to 9"),
        (&["alter", "some/file", "page_size=16KiB"], "cannot change"),
        (&["alter", "some/file", "encryption=1"], "TANADA_KEY"),
    ] {
        let outcome = made.run(words[0], &words[1..]);
        let code = if words[2].starts_with("compression") { 2 } else { 1 };
        let error = outcome.error(code);
        assert!(error.contains(why), "{words:?}: {error}");
    }
    made.assert_sound();
}
