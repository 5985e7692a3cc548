//! Random statements on a server. A read view stays open behind some of them, so that what they delete and update is
//! not purged when the server stops.

use crate::alterations::alter;
use crate::campaign::{SETTINGS, compare_all, number, print_tables, report, shortened};
use crate::random::Random;
use crate::server::{Kind, Server};
use crate::tables::Table;

/// Statements of one server; a fresh one runs the next ones.
const STATEMENTS_OF_A_SERVER: u64 = 500;
/// Tables that the statements begin with.
const TABLES: usize = 12;
/// The database.
const DATABASE: &str = "c_statements";

/// The tables that statements choose from.
struct Tables {
    kind: Kind,
    all: Vec<Table>,
    made: usize,
}

impl Tables {
    fn create(&mut self, random: &mut Random) -> Vec<String> {
        self.made += 1;
        let mut table = Table::any(format!("s{}", self.made), self.kind, random);
        let statements = vec![table.create(random), table.insert(random)];
        self.all.push(table);
        statements
    }

    /// The next statements: one, or those of a transaction.
    fn next(&mut self, random: &mut Random) -> Vec<String> {
        let at = random.below(self.all.len() as u64) as usize;
        match random.below(100) {
            0..=4 => self.create(random),
            5..=19 => alter(&mut self.all[at], random),
            20..=27 => {
                let changes = (0..random.between(1, 4)).flat_map(|_| change(&mut self.all[at], random));
                let changes: Vec<String> = changes.collect();
                let end = random.pick(&["commit;", "rollback;"]);
                [vec!["start transaction;".to_owned()], changes, vec![end.to_owned()]].concat()
            }
            28 | 29 => {
                self.made += 1;
                let table = &mut self.all[at];
                let old = std::mem::replace(&mut table.name, format!("s{}", self.made));
                vec![format!("rename table {old} to {};", table.name)]
            }
            30 if self.all.len() > TABLES / 2 => vec![format!("drop table {};", self.all.remove(at).name)],
            31 => {
                let of = self.all[at].name.clone();
                self.made += 1;
                vec![format!("create table s{} engine=innodb as select * from {of};", self.made)]
            }
            _ => change(&mut self.all[at], random),
        }
    }
}

/// A statement that changes rows.
fn change(table: &mut Table, random: &mut Random) -> Vec<String> {
    match random.below(10) {
        0..=4 => vec![table.insert(random)],
        5..=7 => table.update(random).into_iter().collect(),
        _ => vec![table.delete(random)],
    }
}

/// Runs statements of `seed` on a server and compares what it prints in the end.
async fn run_statements(kind: Kind, seed: u64, count: u64) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut tables = Tables { kind, all: Vec::new(), made: 0 };
    let mut statements: Vec<String> = (0..TABLES).flat_map(|_| tables.create(&mut random)).collect();
    while (statements.len() as u64) < count {
        statements.extend(tables.next(&mut random));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(kind, folder.path());
    // ALTERs wait for a read view of their table's rows, so it is of an empty one.
    let (before, after) = statements.split_at(statements.len() / 2);
    let start = format!("use {DATABASE}; {SETTINGS}\n");
    server.run(&format!("create database {DATABASE};\n{start}{}", before.join("\n")));
    server.hold_read_view();
    server.run(&format!("{start}{}", after.join("\n")));
    let printed = print_tables(&server, DATABASE);
    let data = server.stop(true);
    let differences = compare_all(&data, false, DATABASE, &printed).await;
    eprintln!("{kind:?}: {} tables of {} statements compared", printed.len(), statements.len());
    if !differences.is_empty() {
        let folder = folder.keep();
        std::fs::write(folder.join("all.sql"), statements.join("\n")).unwrap();
        eprintln!("{kind:?}: the files stay in {}, with all statements in all.sql", folder.display());
    }
    let of_table = |name: &str| {
        let word =
            |sql: &&String| sql.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
        statements.iter().filter(word).map(|sql| shortened(sql)).collect::<Vec<_>>().join("\n")
    };
    let told = |(name, difference): (String, String)| {
        format!(
            "{name}: {difference}\n{}\nagain: TANADA_SEED={seed} TANADA_STATEMENTS={count} cargo test --profile ci -p tanada-query --test servers -- statements",
            of_table(&name)
        )
    };
    differences.into_iter().map(told).collect()
}

async fn statements(kind: Kind, default_count: u64) {
    if let Err(why) = kind.unpacked() {
        eprintln!("{kind:?} is not run: {why}");
        return;
    }
    let (seed, count) = (number("TANADA_SEED", 1), number("TANADA_STATEMENTS", default_count));
    let mut differences = Vec::new();
    for (round, first) in (0..count).step_by(STATEMENTS_OF_A_SERVER as usize).enumerate() {
        let count = (count - first).min(STATEMENTS_OF_A_SERVER);
        differences.extend(run_statements(kind, seed + round as u64, count).await);
    }
    report(&differences, &format!("{kind:?} with TANADA_SEED={seed} TANADA_STATEMENTS={count}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_statements_leave_the_rows_that_mariadb_prints() {
    statements(Kind::MariaDb, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_statements_leave_the_rows_that_mysql_prints() {
    statements(Kind::MySql, 200).await;
}
