//! Tables of MySQL whose dictionary information is damaged: a statement takes its place.

use std::path::{Path, PathBuf};

use tanada_innodb::{Catalog, ErrorKind, IndexNo, KeyRange, MountOptions, Result};

use crate::fixtures::unpacked;
use crate::support::{
    Answer, assert_same_rows, environment, run, scan, scan_bookmarks, secondary_indexes, spelled,
    stored_columns, types,
};

const PAGE: usize = 16384;
/// Page type: dictionary information.
const SDI: [u8; 2] = 17853u16.to_be_bytes();

fn source() -> PathBuf {
    unpacked("cases").join("mysql-9.7/c_dynamic")
}

/// A folder with the table's file, whose pages of dictionary information were changed by `damage`.
fn damaged(table: &str, damage: impl Fn(&mut [u8])) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut image = std::fs::read(source().join(table).with_extension("ibd")).unwrap();
    let pages = image.chunks_mut(PAGE).filter(|page| page[24..26] == SDI);
    assert_ne!(pages.map(damage).count(), 0);
    std::fs::write(folder.path().join(table).with_extension("ibd"), image).unwrap();
    folder
}

/// Compares all rows with the server's, by every index; returns the table's warnings.
fn check(folder: &Path, table: &str, ddl: Option<PathBuf>) -> Result<Vec<String>> {
    let environment = environment(true);
    let within = environment.clone();
    let options =
        MountOptions { allow_stale: true, ddl: ddl.into_iter().collect(), ..MountOptions::default() };
    let (folder, name) = (folder.to_owned(), table.to_owned());
    run(&environment, move || async move {
        let catalog = Catalog::open(&folder, &options, &within).await?;
        let table = catalog.table(&catalog.databases()[0], &name).await?;
        let columns = stored_columns(&table);
        let expected = Answer::read(&source().join(&name).with_extension("tsv")).rows(&table, &columns);
        let types = types(&table, &columns);
        let found = scan(&table, &table.access(IndexNo(0), &columns)?, &KeyRange::all()).await?;
        assert_same_rows(spelled(&found, &types), expected.clone(), &name);
        // One table has dozens of them.
        for index in secondary_indexes(&table).into_iter().take(3) {
            let access = table.access(index, &columns)?;
            let found = match access.covering() {
                true => scan(&table, &access, &KeyRange::all()).await?,
                false => scan_bookmarks(&table, &access, &KeyRange::all()).await?,
            };
            assert_same_rows(spelled(&found, &types), expected.clone(), &name);
        }
        Ok(table.warnings().to_vec())
    })
}

#[test]
fn a_statement_takes_the_place_of_damaged_dictionary_information() {
    let damages: [fn(&mut [u8]); 2] = [|page| page.fill(0), |page| page[500] ^= 1];
    let tables = ["all_types", "str_pk", "no_pk", "desc_idx"];
    for (table, damage) in tables.into_iter().zip(damages.into_iter().cycle()) {
        let folder = damaged(table, damage);
        let ddl = source().join(format!("{table}.create.sql"));
        let warnings = check(folder.path(), table, Some(ddl)).unwrap();
        let is_told = |warning: &String| warning.contains("its CREATE TABLE statement is read instead");
        assert!(warnings.iter().any(is_told), "{table}: {warnings:?}");
    }
}

#[test]
fn damaged_dictionary_information_is_an_error_that_says_the_way_out() {
    let folder = damaged("str_pk", |page| page.fill(0));
    let error = check(folder.path(), "str_pk", None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    let text = error.to_string();
    assert!(text.contains("str_pk.ibd") && text.contains("(SDI)") && text.contains("--ddl FILE"), "{text}");
}

/// Only the dictionary information tells how the rows of before were.
#[test]
fn a_statement_does_not_define_a_table_with_row_versions() {
    for table in ["instant_add", "instant_drop"] {
        let folder = damaged(table, |page| page.fill(0));
        let ddl = source().join(format!("{table}.create.sql"));
        let error = check(folder.path(), table, Some(ddl)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{table}: {error}");
    }
}
