//! Tables that went through random ALTERs, on all servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::alterations::history;
use crate::answers::{self, Answer, printed};
use crate::comparison::compare;
use crate::fixtures::unpacked;
use crate::random::Random;
use crate::rows::mount;
use crate::server::{Kind, Server};

/// Tables that one server makes before it is stopped.
const TABLES_OF_A_SERVER: u64 = 125;
/// The page sizes, in KiB, of the servers of a run, one after the other.
const PAGE_KIB: [u64; 8] = [16, 8, 16, 4, 16, 32, 16, 64];
/// Most differences that are shown.
const MOST_SHOWN: usize = 5;
/// Most bytes of a statement that are shown.
const SHOWN_BYTES: usize = 400;
/// The database.
const DATABASE: &str = "c_altered";

/// Precedes the statements of both kinds of campaign.
pub const SETTINGS: &str = "set sql_mode = ''; set innodb_strict_mode = 0;";

/// The number in an environment variable, or `default`.
pub fn number(variable: &str, default: u64) -> u64 {
    let parse = |text: String| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number"));
    std::env::var(variable).map_or(default, parse)
}

/// What a run found.
#[derive(Default)]
struct Findings {
    tables: u64,
    statements: usize,
    refusals: usize,
    differences: Vec<String>,
}

/// Asks the server for the tables of `database`: their names, then their rows.
pub fn print_tables(server: &Server, database: &str) -> BTreeMap<String, Answer> {
    let names = server.run(&answers::list(database)).answers;
    let names: Vec<String> = String::from_utf8(names).unwrap().lines().skip(1).map(str::to_owned).collect();
    let printed_by = server.run(&format!("use {database};\n{}", answers::print(&names)));
    assert!(printed_by.refusals.is_empty(), "{:?}", printed_by.refusals);
    printed(&printed_by.answers)
}

/// Compares all tables of `database` in `folder`; differences begin with the table's name.
pub async fn compare_all(
    folder: &Path,
    stale: bool,
    database: &str,
    tables: &BTreeMap<String, Answer>,
) -> Vec<(String, String)> {
    let session = mount(folder, stale).await;
    session.use_database(database).unwrap();
    crate::rows::run(&session, "set tanada.index_scan = 'always'").await.unwrap();
    let mut differences = Vec::new();
    for (no, (name, expected)) in tables.iter().enumerate() {
        let mut random = Random::new(no as u64);
        if let Some(difference) = compare(&session, name, expected, &mut random).await {
            differences.push((name.clone(), difference));
        }
    }
    differences
}

/// Makes the tables of the seeds from `first` on with one server and compares them.
async fn run_tables(kind: Kind, first: u64, count: u64, page_kib: u64, findings: &mut Findings) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with_pages(kind, folder.path(), page_kib);
    let made: BTreeMap<String, Vec<String>> =
        (first..first + count).map(|seed| (format!("t{seed}"), history(seed, kind))).collect();
    let mut sql = format!("create database {DATABASE}; use {DATABASE}; {SETTINGS}\n");
    for statements in made.values() {
        sql.push_str(&statements.join("\n"));
        sql.push('\n');
    }
    let refusals = server.run(&sql).refusals;
    if std::env::var_os("TANADA_REFUSALS").is_some() {
        eprintln!("{}", refusals.join("\n"));
    }
    let tables = print_tables(&server, DATABASE);
    let data = server.stop(false);
    if let Some(to) = std::env::var_os("TANADA_RECORD").filter(|_| kind.is_mysql()) {
        record(Path::new(&to), &data, &made, &tables);
    }
    let differences = compare_all(&data, false, DATABASE, &tables).await;
    findings.tables += tables.len() as u64;
    findings.statements += made.values().map(Vec::len).sum::<usize>();
    findings.refusals += refusals.len();
    if !differences.is_empty() {
        eprintln!("{kind:?}: the files stay in {}", folder.keep().display());
    }
    for (name, difference) in differences {
        let of = name.trim_end_matches("_other");
        let seed = of.trim_start_matches('t');
        let statements: Vec<String> = made.get(of).into_iter().flatten().map(|sql| shortened(sql)).collect();
        findings.differences.push(format!(
            "{name}: {difference}\n{}\nagain: TANADA_PAGE_KIB={page_kib} TANADA_SEED={seed} TANADA_TABLES=1 cargo test --profile ci -p tanada-query --test servers -- altered",
            statements.join("\n")
        ));
    }
}

/// A statement that fits on a screen.
pub fn shortened(sql: &str) -> String {
    match sql.char_indices().nth(SHOWN_BYTES) {
        Some((end, _)) => format!("{} ...", &sql[..end]),
        None => sql.to_owned(),
    }
}

/// Panics with the first differences, if there are any.
pub fn report(differences: &[String], what: &str) {
    let shown = differences.iter().take(MOST_SHOWN).cloned().collect::<Vec<_>>().join("\n\n");
    assert!(differences.is_empty(), "{what}: {} differences\n{shown}", differences.len());
}

async fn altered_tables(kind: Kind, default_count: u64) {
    if let Err(why) = kind.unpacked() {
        eprintln!("{kind:?} is not run: {why}");
        return;
    }
    let (seed, count) = (number("TANADA_SEED", 1), number("TANADA_TABLES", default_count));
    let mut findings = Findings::default();
    for (no, first) in (seed..seed + count).step_by(TABLES_OF_A_SERVER as usize).enumerate() {
        let page_kib = number("TANADA_PAGE_KIB", PAGE_KIB[no % PAGE_KIB.len()]);
        run_tables(kind, first, (seed + count - first).min(TABLES_OF_A_SERVER), page_kib, &mut findings)
            .await;
    }
    let Findings { tables, statements, refusals, differences } = findings;
    eprintln!("{kind:?}: {tables} tables compared, {statements} statements, {refusals} of them refused");
    assert!(tables * 10 >= count * 9, "only {tables} tables of {count} came to be");
    report(&differences, &format!("{kind:?} with TANADA_SEED={seed} TANADA_TABLES={count}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_altered_at_random_are_read_as_mariadb_prints_them() {
    altered_tables(Kind::MariaDb, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_altered_at_random_are_read_as_mariadb_11_prints_them() {
    altered_tables(Kind::MariaDb11, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_altered_at_random_are_read_as_mysql_prints_them() {
    altered_tables(Kind::MySql, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_tables_altered_at_random_are_read_as_mysql_printed_them() {
    let folder = unpacked("altered-mysql").join("mysql-9.7");
    let tables = printed(&std::fs::read(folder.join("answers.tsv")).unwrap());
    assert!(tables.len() >= 50, "only {}", tables.len());
    let differences = compare_all(&folder, true, DATABASE, &tables).await;
    let differences: Vec<String> =
        differences.into_iter().map(|(name, difference)| format!("{name}: {difference}")).collect();
    report(&differences, "MySQL 9.7, recorded; the statements are beside the files");
}

/// Keeps the tables, what the server printed and the statements.
fn record(to: &Path, data: &Path, made: &BTreeMap<String, Vec<String>>, tables: &BTreeMap<String, Answer>) {
    let folder: PathBuf = to.join("mysql-9.7");
    std::fs::create_dir_all(folder.join(DATABASE)).unwrap();
    for entry in std::fs::read_dir(data.join(DATABASE)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.join(DATABASE).join(entry.file_name())).unwrap();
    }
    let statements: Vec<String> = made.values().flatten().cloned().collect();
    std::fs::write(folder.join("statements.sql"), statements.join("\n")).unwrap();
    std::fs::write(folder.join("answers.tsv"), answers::spelled(tables)).unwrap();
}
