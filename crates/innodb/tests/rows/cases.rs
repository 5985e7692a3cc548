//! The sample tables of both servers against what the servers answered.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tanada_innodb::{ColumnNo, Environment, IndexNo, KeyRange, Table, Value};

use crate::fixtures::unpacked;
use crate::support::{
    Answer, Values, assert_same_rows, context, environment, lookup, mount, run, scan, scan_bookmarks,
    secondary_indexes, spelled, stored_columns, types,
};

/// Folders of servers, and how many tables each has. `forms` was made with the statements in `fixtures/forms-sql`, by
/// MySQL 8.0.28 (the last with the old instant ADD) and 9.7.4 and MariaDB 10.11.19. The tables of `altered` went
/// through random instant ALTERs, in three row formats. Two of those of `shared` lie in the system tablespace. `rare`
/// has system-versioned tables, whose past rows no answer has, compressed columns, and every byte of every character
/// set of single bytes. `instant` has columns added and dropped instantly behind fixed ones that are never NULL, and
/// short columns whose values lie outside of their page. `texts` has keys in many collations, every character of East
/// Asian sets, and odd elements of ENUM and SET. `compressed` has ROW_FORMAT=COMPRESSED with each KEY_BLOCK_SIZE, under
/// pages of 16, 8 and 4 KiB.
const SERVERS: [(&str, &str, usize); 19] = [
    ("cases", "mysql-9.7", 3 * 11),
    ("cases", "mariadb-10.11", 5 * 11),
    ("forms", "mysql-8.0", 3),
    ("forms", "mysql-9.7", 14),
    ("forms", "mariadb-10.11", 14),
    ("change-buffer", "mariadb-10.11", 4),
    ("altered", "mariadb-10.11", 15),
    ("shared", "mariadb-10.11", 3),
    ("rare", "mariadb-10.11", 13),
    ("instant", "mariadb-10.11", 16 + 5),
    ("instant", "mysql-9.7", 16 + 5),
    ("texts", "mysql-9.7", 39),
    ("texts", "mariadb-11.8", 53),
    ("compressed", "mariadb-10.11", 5 * 8),
    ("compressed", "mariadb-10.11-4k", 3 * 8),
    ("compressed", "mariadb-10.11-8k", 4 * 8),
    ("compressed", "mysql-9.7", 5 * 9),
    ("compressed", "mysql-9.7-4k", 3 * 9),
    ("compressed", "mysql-9.7-8k", 4 * 9),
];

/// Runs `check` on every table of every database of the cases.
fn for_each_table<F>(check: impl Fn(Case) -> F + Send + Copy + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let environment = environment(true);
    for (archive, server, expected) in SERVERS {
        let mut tables = 0;
        for entry in std::fs::read_dir(unpacked(archive).join(server)).unwrap() {
            let folder = entry.unwrap().path();
            // The logs and the system tablespace of a server.
            if folder.is_file() {
                continue;
            }
            let within = environment.clone();
            tables += run(&environment, move || check_database(folder, within, check));
        }
        assert_eq!(tables, expected, "{archive} {server}");
    }
}

struct Case {
    label: String,
    table: Arc<Table>,
    answer: Answer,
}

async fn check_database<F: Future<Output = ()>>(
    folder: PathBuf,
    environment: Arc<Environment>,
    check: impl Fn(Case) -> F,
) -> usize {
    let catalog = mount(&folder, &environment).await;
    let mut tables = 0;
    for database in catalog.databases() {
        for name in catalog.tables(&database) {
            let label = format!("{}/{name}", folder.display());
            let table =
                catalog.table(&database, &name).await.unwrap_or_else(|error| panic!("{label}: {error}"));
            let answer = Answer::read(&folder.join(format!("{name}.tsv")));
            check(Case { label, table, answer }).await;
            tables += 1;
        }
    }
    tables
}

#[test]
fn scans_give_the_servers_rows() {
    for_each_table(|Case { label, table, answer }| async move {
        let columns = stored_columns(&table);
        let access = table.access(IndexNo(0), &columns).unwrap();
        let rows =
            scan(&table, &access, &KeyRange::all()).await.unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_same_rows(spelled(&rows, &types(&table, &columns)), answer.rows(&table, &columns), &label);
    });
}

#[test]
fn every_secondary_index_leads_to_all_rows() {
    for_each_table(|Case { label, table, answer }| async move {
        let columns = stored_columns(&table);
        for index in secondary_indexes(&table) {
            let access = table.access(index, &columns).unwrap();
            if access.covering() {
                continue;
            }
            let rows = scan_bookmarks(&table, &access, &KeyRange::all()).await;
            let rows = rows.unwrap_or_else(|error| panic!("{label}: {error}"));
            let what = format!("{label} by {}", table.definition().indexes[index.0].name);
            assert_same_rows(spelled(&rows, &types(&table, &columns)), answer.rows(&table, &columns), &what);
        }
    });
}

#[test]
fn indexes_that_cover_are_read_alone() {
    for_each_table(|Case { label, table, answer }| async move {
        for index in secondary_indexes(&table) {
            let parts = &table.definition().indexes[index.0].parts;
            let columns: Vec<ColumnNo> =
                parts.iter().filter(|part| part.prefix_bytes.is_none()).map(|part| part.column).collect();
            let access = table.access(index, &columns).unwrap();
            let definition = table.definition();
            if definition.row_end.is_some() && definition.indexes[0].parts.is_empty() {
                // Such an index does not tell current rows from past ones.
                assert!(!access.covering());
                continue;
            }
            assert!(access.covering());
            let rows = scan(&table, &access, &KeyRange::all()).await;
            let rows = rows.unwrap_or_else(|error| panic!("{label}: {error}"));
            let what = format!("{label} by {} alone", table.definition().indexes[index.0].name);
            assert_same_rows(spelled(&rows, &types(&table, &columns)), answer.rows(&table, &columns), &what);
        }
    });
}

#[test]
fn look_ups_find_every_row_by_every_index() {
    for_each_table(|Case { label, table, .. }| async move {
        let context = context();
        let columns = stored_columns(&table);
        let clustered = table.access(IndexNo(0), &columns).unwrap();
        let all = scan(&table, &clustered, &KeyRange::all()).await.unwrap();
        let indexes = std::iter::once(IndexNo(0)).chain(secondary_indexes(&table));
        for index in indexes {
            let parts = &table.definition().indexes[index.0].parts;
            let usable = (0..parts.len()).take_while(|part| table.searchable(index, *part));
            let places: Vec<Option<usize>> =
                usable.map(|part| columns.iter().position(|column| *column == parts[part].column)).collect();
            // A virtual column is not among the rows.
            let Some(places) = places.into_iter().collect::<Option<Vec<usize>>>() else { continue };
            let access = table.access(index, &columns).unwrap();
            for count in 1..=places.len() {
                let values_of =
                    |row: &Values| -> Values { places[..count].iter().map(|at| row[*at].clone()).collect() };
                let exact = (0..count).all(|part| table.ordered(index, part));
                let mut expected: HashMap<String, usize> = HashMap::new();
                all.iter().for_each(|row| *expected.entry(format!("{:?}", values_of(row))).or_default() += 1);
                // A key of few distinct values has too many rows to look each of them up.
                let step = if expected.len() * 4 < all.len() { 97 } else { 1 };
                for row in all.iter().step_by(step) {
                    let values = values_of(row);
                    if values.iter().any(|value| matches!(value, Value::ZeroDate(_))) {
                        continue;
                    }
                    let key =
                        table.key(index, &values).unwrap().unwrap_or_else(|| panic!("{label}: {values:?}"));
                    let found = lookup(&table, &access, &key, &context).await.unwrap();
                    assert!(found.contains(row), "{label} by index {} {values:?}", index.0);
                    if exact {
                        assert_eq!(
                            found.len(),
                            expected[&format!("{values:?}")],
                            "{label} by index {} {values:?}",
                            index.0
                        );
                    }
                }
            }
        }
    });
}

/// Counted rows are those that look-ups find; with secondary indexes of marked rows, at least those.
#[test]
fn rows_between_two_descents_are_counted_or_estimated() {
    for_each_table(|Case { label, table, .. }| async move {
        let context = context();
        let columns = stored_columns(&table);
        let clustered = table.access(IndexNo(0), &columns).unwrap();
        let all = scan(&table, &clustered, &KeyRange::all()).await.unwrap();
        let whole = table.range_rows(IndexNo(0), &KeyRange::all(), &context).await.unwrap();
        match whole.exact {
            true => assert_eq!(whole.rows, all.len() as f64, "{label}"),
            false => assert!((0.5..2.0).contains(&(whole.rows / all.len() as f64)), "{label}: {whole:?}"),
        }
        for index in std::iter::once(IndexNo(0)).chain(secondary_indexes(&table)) {
            if !table.searchable(index, 0) {
                continue;
            }
            let first = table.definition().indexes[index.0].parts[0].column;
            let Some(place) = columns.iter().position(|column| *column == first) else { continue };
            let access = table.access(index, &columns).unwrap();
            // In large tables many rows have a key.
            let keys = if all.len() > 5000 { 2 } else { 20 };
            for row in all.iter().step_by(all.len() / keys + 1) {
                let value = row[place].clone();
                if matches!(value, Value::ZeroDate(_)) {
                    continue;
                }
                let key = table.key(index, &[value]).unwrap().unwrap();
                let found = lookup(&table, &access, &key, &context).await.unwrap().len() as f64;
                let size = table.range_rows(index, &KeyRange::equal(key), &context).await.unwrap();
                let place = format!("{label} by index {}: {found} found, {size:?}", index.0);
                match size.exact {
                    true => assert!(size.rows >= found, "{place}"),
                    false => assert!((0.3..3.0).contains(&(size.rows / found)), "{place}"),
                }
            }
        }
    });
}
