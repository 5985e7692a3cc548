//! Damaged files: an error or the right rows with checksums, and whatever without them, but never a panic, a loop, or
//! rows without end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_base::SplitMix64;
use tanada_innodb::{Environment, IndexNo, KeyRange, Result, Table, TableDefinition, Value};

use crate::fixtures::unpacked;
use crate::support::{
    Values, context, environment, lookup, mount, run, scan, scan_bookmarks, secondary_indexes, stored_columns,
};

/// Folders, tables, and the size of their pages in the file.
const TABLES: [(&str, &str, u64); 11] = [
    ("cases/mysql-9.7/c_dynamic", "instant_drop", 16384),
    ("cases/mysql-9.7/c_compact", "desc_idx", 16384),
    ("cases/mysql-9.7/c_pc_lz4", "str_pk", 16384),
    ("cases/mariadb-10.11/c_dynamic", "instant_drop", 16384),
    ("cases/mariadb-10.11/c_crc32", "no_pk", 16384),
    ("cases/mariadb-10.11/c_pc_lz4", "deleted_rows", 16384),
    ("cases/mariadb-10.11/c_compact", "instant_add", 16384),
    ("compressed/mysql-9.7/c_z8", "documents", 8192),
    ("compressed/mysql-9.7-8k/c_z2", "churn", 2048),
    ("compressed/mariadb-10.11/c_z16", "lobs", 16384),
    ("compressed/mariadb-10.11-4k/c_z4", "churn", 4096),
];
const WITH_CHECKSUMS: usize = 25;
const WITHOUT_CHECKSUMS: usize = 60;

/// Flips bytes, most of them where the structure is: page headers, record headers, page directories.
fn damage(bytes: &mut [u8], page_bytes: u64, flips: u64, random: &mut SplitMix64) {
    let pages = bytes.len() as u64 / page_bytes;
    for _ in 0..flips {
        let page = random.below(pages) * page_bytes;
        let within = match random.below(4) {
            0 => random.below(130),
            1 => page_bytes - 1 - random.below(200),
            2 => 94 + random.below(600),
            _ => random.below(page_bytes),
        };
        bytes[(page + within) as usize] ^= 1 << random.below(8) as u8;
    }
}

async fn definition(folder: &Path, name: &str, environment: &Arc<Environment>) -> TableDefinition {
    let catalog = mount(folder, environment).await;
    let table = catalog.table(&catalog.databases()[0], name).await.unwrap();
    (**table.definition()).clone()
}

/// Reads all there is to read, each way: all rows, then those that each secondary index leads to, then some by key.
async fn read(definition: TableDefinition, environment: &Arc<Environment>) -> Result<Vec<Values>> {
    let table: Arc<Table> = Table::open(definition, environment).await?;
    let columns = stored_columns(&table);
    let clustered = table.access(IndexNo(0), &columns)?;
    let rows = scan(&table, &clustered, &KeyRange::all()).await?;
    table.statistics(&context()).await?;
    for index in secondary_indexes(&table) {
        let access = table.access(index, &columns)?;
        let found = match access.covering() {
            true => scan(&table, &access, &KeyRange::all()).await?,
            false => scan_bookmarks(&table, &access, &KeyRange::all()).await?,
        };
        assert!(found.len() <= 100_000);
        if table.searchable(index, 0) {
            for number in [0, 7, 1000] {
                let Ok(Some(key)) = table.key(index, &[Value::Int(number)]) else { continue };
                lookup(&table, &access, &key, &context()).await?;
            }
        }
    }
    Ok(rows)
}

fn sorted(rows: &[Values]) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

/// Damages a copy `times` times and hands what reading it gave to `check`.
fn with_damage(verify: bool, times: usize, flips: u64, check: impl Fn(&[String], Result<Vec<Values>>, &str)) {
    let environment = environment(verify);
    for (folder, name, page_bytes) in TABLES {
        let (archive, rest) = folder.split_once('/').unwrap();
        let folder: PathBuf = unpacked(archive).join(rest);
        let within = environment.clone();
        let (folder_of, name_of) = (folder.clone(), name.to_owned());
        let original =
            run(&environment, move || async move { definition(&folder_of, &name_of, &within).await });
        let (within, sound) = (environment.clone(), original.clone());
        let rows = run(&environment, move || async move { read(sound, &within).await }).unwrap();
        let expected = sorted(&rows);
        let image = std::fs::read(&original.partitions[0].path).unwrap();
        let copy = tempfile::NamedTempFile::with_suffix(".ibd").unwrap();
        for seed in 0..times as u64 {
            let mut bytes = image.clone();
            damage(&mut bytes, page_bytes, flips, &mut SplitMix64::new(seed));
            std::fs::write(copy.path(), bytes).unwrap();
            let mut damaged = original.clone();
            damaged.partitions[0].path = copy.path().to_owned();
            let within = environment.clone();
            let found = run(&environment, move || async move { read(damaged, &within).await });
            check(&expected, found, &format!("{}/{name} seed {seed}", folder.display()));
        }
    }
}

#[test]
fn with_checksums_rows_are_right_or_an_error_says_why() {
    let mut errors = std::cell::Cell::new(0);
    with_damage(true, WITH_CHECKSUMS, 1, |expected, found, what| match found {
        Ok(rows) => assert!(sorted(&rows) == expected, "{what}: other rows and no error"),
        Err(_) => errors.set(errors.get() + 1),
    });
    // Not all damage lies on pages that are read.
    assert!(*errors.get_mut() > TABLES.len() * WITH_CHECKSUMS / 10, "{}", errors.get());
}

#[test]
fn without_checksums_nothing_panics_or_runs_on() {
    with_damage(false, WITHOUT_CHECKSUMS, 3, |expected, found, what| {
        if let Ok(rows) = found {
            assert!(rows.len() <= 4 * expected.len() + 1000, "{what}: {} rows", rows.len());
        }
    });
}

/// It was told that a page lies outside of the file, and not why.
#[test]
fn a_file_that_was_cut_short_is_told_as_one() {
    let environment = environment(true);
    let folder = unpacked("cases").join("mariadb-10.11/c_dynamic");
    let within = environment.clone();
    let original =
        run(&environment, move || async move { definition(&folder, "deleted_rows", &within).await });
    let image = std::fs::read(&original.partitions[0].path).unwrap();
    let copy = tempfile::NamedTempFile::with_suffix(".ibd").unwrap();
    std::fs::write(copy.path(), &image[..4 * 16384]).unwrap();
    let mut cut = original.clone();
    cut.partitions[0].path = copy.path().to_owned();
    let within = environment.clone();
    let error = run(&environment, move || async move { read(cut, &within).await }).unwrap_err().to_string();
    let pages = image.len() / 16384;
    assert!(error.contains(&format!("it was cut short to 4 of {pages} pages")), "{error}");
}
