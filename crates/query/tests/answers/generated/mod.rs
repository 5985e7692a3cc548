//! Random schemas, rows and queries, asked of a running MariaDB and of Tanada on its files.
//!
//! Everything follows from a seed:
//!
//! - `TANADA_SEED` is the seed of the first database, `TANADA_QUERIES` how many queries there are.
//! - `TANADA_RECORD` is a file that gets the tables' files, for `fixtures/answers/generated.tar.zst`.

mod both;
mod choose;
mod loose;
mod node;
mod oracles;
mod schema;
mod templates;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use both::{Asked, Both};
use choose::Chooser;
use schema::Database;

use crate::printed::Answer;
use crate::random::Random;
use crate::verdict::{Verdict, shown};

/// Queries over one database.
const QUERIES_OF_A_DATABASE: u64 = 250;
/// Databases that one server makes.
const DATABASES_OF_A_SERVER: u64 = 20;
/// Queries of `make test`.
const QUERIES: u64 = 3000;
/// Most of 1,000 queries that may be wrong and refused. These only ever become less.
const MAX_WRONG_PER_1000: u64 = 5;
const MAX_REFUSED_PER_1000: u64 = 45;
/// Wrong queries that are shrunk, and queries that are asked for one.
const MAX_SHRUNK: usize = 60;
const SHRINKING_TRIES: usize = 400;
/// Sets of rows that are tried for one.
const ROW_TRIES: usize = 30;

/// The number in an environment variable, or `default`.
fn number(variable: &str, default: u64) -> u64 {
    let parse = |text: String| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number"));
    std::env::var(variable).map_or(default, parse)
}

#[derive(Default)]
struct Findings {
    counts: [u64; 3],
    errors: u64,
    refusals: BTreeMap<String, (u64, String)>,
    wrong: Vec<String>,
}

impl Findings {
    fn add(&mut self, asked: &Asked) {
        self.counts[asked.verdict as usize] += 1;
        self.errors += u64::from(matches!(asked.server, Answer::Error(_)));
        if let (Verdict::Refused, Answer::Error(error)) = (asked.verdict, &asked.tanada) {
            let entry = self.refusals.entry(without_names(error)).or_default();
            entry.0 += 1;
            entry.1 = asked.query.to_string();
        }
    }

    /// What was found, as text.
    fn told(&self) -> String {
        let [equal, refused, wrong] = self.counts;
        let mut text = format!(
            "{equal} equal (errors of both among {}), {refused} refused, {wrong} wrong\n",
            self.errors
        );
        let mut refusals: Vec<_> = self.refusals.iter().collect();
        refusals.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (message, (count, example)) in refusals {
            text += &format!("{count:6} refused: {message}\n         {example}\n");
        }
        text + "\n" + &self.wrong.join("\n\n")
    }
}

/// A message with its names and numbers left out, so that like ones can be counted.
fn without_names(message: &str) -> String {
    let mut text = String::new();
    for (no, piece) in message.split(['\'', '`', '"']).enumerate() {
        text += if no % 2 == 0 { piece } else { "…" };
    }
    let text: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
    text.chars().take(160).collect()
}

/// Queries over the database of a seed.
fn queries(database: &Database, seed: u64, count: u64) -> Vec<node::Query> {
    let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9) ^ 0xa5);
    (0..count).map(|_| Chooser::new(&mut random, database).query()).collect()
}

/// Asks `count` queries over databases from the seed `first` on.
async fn run(first: u64, count: u64, findings: &mut Findings) {
    let seeds: Vec<u64> = (first..first + count.div_ceil(QUERIES_OF_A_DATABASE)).collect();
    let databases: Vec<Database> = seeds.iter().map(|seed| Database::random(*seed)).collect();
    let both = Both::start(&databases).await;
    if let Some(to) = std::env::var_os("TANADA_RECORD") {
        record(Path::new(&to), &both.files());
    }
    let mut left = count;
    for (seed, database) in seeds.iter().zip(&databases) {
        let some = left.min(QUERIES_OF_A_DATABASE);
        left -= some;
        for asked in both.ask(&database.name, queries(database, *seed, some)).await {
            findings.add(&asked);
            if asked.verdict != Verdict::Wrong {
                continue;
            }
            let whole = asked.query.to_string();
            let mut told =
                format!("-- TANADA_SEED={seed}\n{whole};\n{}", shown(&asked.server, &asked.tanada));
            if findings.wrong.len() < number("TANADA_SHRUNK", 0).min(MAX_SHRUNK as u64) as usize {
                let small = both.shrink(&database.name, asked, SHRINKING_TRIES).await;
                let (tables, small) = both.shrink_rows(database, &small, ROW_TRIES).await;
                told = format!(
                    "-- TANADA_SEED={seed}\n{};\n{}\n-- of: {whole}\n{tables}",
                    small.query,
                    shown(&small.server, &small.tanada)
                );
            }
            findings.wrong.push(told);
        }
    }
}

/// Keeps the tables' files.
fn record(to: &Path, files: &Path) {
    let packed = zstd::Encoder::new(fs::File::create(to).unwrap(), 19).unwrap();
    let mut archive = tar::Builder::new(packed);
    archive.append_dir_all(".", files).unwrap();
    archive.into_inner().unwrap().finish().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_queries_have_the_servers_answers() {
    let (seed, count) = (number("TANADA_SEED", 1), number("TANADA_QUERIES", QUERIES));
    let mut findings = Findings::default();
    let step = QUERIES_OF_A_DATABASE * DATABASES_OF_A_SERVER;
    for done in (0..count).step_by(step as usize) {
        run(seed + done / QUERIES_OF_A_DATABASE, (count - done).min(step), &mut findings).await;
        eprintln!("{} of {count}: {:?} equal, refused, wrong", (done + step).min(count), findings.counts);
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("answers-generated.txt");
    fs::write(&file, findings.told()).unwrap();
    let [equal, refused, wrong] = findings.counts;
    eprintln!("{equal} equal, {refused} refused, {wrong} wrong of {count}: {}", file.display());
    assert!(equal + refused > findings.errors + count / 3, "most queries have to be answered by the server");
    let file = file.display();
    assert!(wrong * 1000 <= MAX_WRONG_PER_1000 * count, "{wrong} of {count} queries are wrong, see {file}");
    assert!(refused * 1000 <= MAX_REFUSED_PER_1000 * count, "{refused} of {count} are refused, see {file}");
}
