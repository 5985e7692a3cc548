//! Layers depend downwards only, and DataFusion stays in the query layer and above.

use crate::{assert_none, files};

/// The house from the ground up. A crate may use those before it.
const HOUSE: [&str; 21] = [
    "tanada-base",
    "tanada-report",
    "tanada-chart",
    "tanada-collation",
    "tanada-io",
    "tanada-volume",
    "tanada-mount",
    "tanada-placement",
    "tanada-replay",
    "tanada-innodb",
    "tanada-advisor",
    "tanada-kv",
    "tanada-capi",
    "tanada-sim",
    "tanada-operators",
    "tanada-query",
    "tanada-sample",
    "tanada-ycsb",
    "tanada-compare",
    "tanada-bench",
    "tanada",
];

/// The lowest crate that links DataFusion.
const LOWEST_WITH_DATAFUSION: &str = "tanada-operators";

#[test]
fn crates_use_only_what_is_below_them() {
    let manifests: Vec<_> =
        files("crates", "toml").into_iter().filter(|(path, _)| path.ends_with("Cargo.toml")).collect();
    assert_eq!(
        manifests.len(),
        HOUSE.len(),
        "a crate has no place in the house: {:?}",
        manifests.iter().map(|(path, _)| path).collect::<Vec<_>>()
    );
    let complaints: Vec<String> = manifests.iter().flat_map(|(path, text)| check(path, text)).collect();
    assert_none(&complaints);
}

#[test]
fn only_io_and_the_border_to_c_may_have_unsafe_code() {
    let roots = files("crates", "rs")
        .into_iter()
        .filter(|(path, _)| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs"));
    let complaints: Vec<String> = roots.filter_map(|(path, text)| check_unsafe(&path, &text)).collect();
    assert_none(&complaints);
}

fn check_unsafe(path: &str, text: &str) -> Option<String> {
    let allowed = path.starts_with("crates/io/") || path.starts_with("crates/capi/");
    (!allowed && !text.contains("#![forbid(unsafe_code)]"))
        .then(|| format!("{path}: does not forbid unsafe code"))
}

fn check(path: &str, manifest: &str) -> Vec<String> {
    let name =
        manifest.lines().find_map(|line| line.strip_prefix("name = ")).unwrap_or_default().trim_matches('"');
    let Some(own) = place(name) else { return vec![format!("{path}: {name:?} has no place in the house")] };
    let mut complaints = Vec::new();
    for dependency in dependencies(manifest) {
        if dependency.starts_with("tanada") && place(&dependency).is_none_or(|other| other >= own) {
            complaints.push(format!("{path}: {name} uses {dependency}, which is not below it"));
        }
        if dependency.starts_with("datafusion")
            && place(LOWEST_WITH_DATAFUSION).is_some_and(|lowest| own < lowest)
        {
            complaints
                .push(format!("{path}: {name} is below {LOWEST_WITH_DATAFUSION} and uses {dependency}"));
        }
        if dependency.starts_with("arrow") && place(LOWEST_WITH_DATAFUSION).is_some_and(|lowest| own < lowest)
        {
            complaints.push(format!("{path}: {name} uses {dependency}, which belongs to the query layer"));
        }
    }
    complaints
}

fn place(name: &str) -> Option<usize> {
    HOUSE.iter().position(|layer| *layer == name)
}

/// Names of all dependencies in a manifest, those of tests and build scripts included.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            inside = section.ends_with("dependencies");
            // [dependencies.name] is a section of its own.
            if let Some((table, name)) = section.rsplit_once('.') {
                found.extend(table.ends_with("dependencies").then(|| name.to_owned()));
            }
        } else if inside && !line.starts_with('#') {
            found.extend(
                line.split(['=', '.', ' ']).next().filter(|name| !name.is_empty()).map(str::to_owned),
            );
        }
    }
    found
}

#[test]
fn a_dependency_upwards_is_noticed() {
    let manifest = "[package]\nname = \"tanada-io\"\n[dependencies]\ntanada-base.workspace = true\n[dev-dependencies]\ntanada-query = { path = \"../query\" }\n";
    assert_eq!(check("io", manifest), ["io: tanada-io uses tanada-query, which is not below it"]);
    assert_eq!(check("io", "name = \"tanada-io\"\n[dependencies.tanada-innodb]\npath = \"x\"\n").len(), 1);
    assert_eq!(check("x", "name = \"tanada-x\"\n").len(), 1);
}

#[test]
fn datafusion_below_the_query_layer_is_noticed() {
    assert_eq!(
        check("innodb", "name = \"tanada-innodb\"\n[dependencies]\ndatafusion.workspace = true\n").len(),
        1
    );
    assert_eq!(
        check("innodb", "name = \"tanada-innodb\"\n[dev-dependencies]\narrow-array = \"59\"\n").len(),
        1
    );
    assert!(
        check("query", "name = \"tanada-query\"\n[dependencies]\ndatafusion.workspace = true\n").is_empty()
    );
}

#[test]
fn unsafe_code_that_is_not_forbidden_is_noticed() {
    assert!(check_unsafe("crates/query/src/lib.rs", "//! Head.\n").is_some());
    assert!(check_unsafe("crates/io/src/lib.rs", "//! Head.\n").is_none());
}
