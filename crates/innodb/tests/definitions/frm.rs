//! `.frm` files that MariaDB 10.11 wrote for tables with everything the samples lack, with what SHOW CREATE TABLE
//! printed.

use std::path::{Path, PathBuf};

use tanada_innodb::schema::{IndexKind, table_from_ddl, table_from_frm};
use tanada_innodb::{ColumnNo, ColumnType, Error, ErrorKind, Server, TableDefinition};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions/mariadb-10.11")
}

fn definition(name: &str) -> Result<TableDefinition, Error> {
    table_from_frm(&std::fs::read(folder().join(name).with_extension("frm")).unwrap(), "d", name)
}

#[test]
fn each_frm_says_what_its_statement_says() {
    let mut compared = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "sql") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        // One table has a name that no file should have.
        let called = if name == "names" { "tàble ñ#1" } else { &name };
        let mut printed =
            table_from_ddl(&text, "d", called, Server::MariaDb).unwrap().expect("the statement is there");
        printed.name.clone_from(&name);
        let mut read = definition(&name).unwrap();
        crate::declared::compare(&mut read, &text);
        assert_eq!(read, printed, "{name}");
        compared += 1;
    }
    assert_eq!(compared, 18);
}

#[test]
fn types_that_only_mariadb_has() {
    let table = definition("uuids").unwrap();
    let types: Vec<&ColumnType> = table.columns[..3].iter().map(|column| &column.column_type).collect();
    assert_eq!(types, [&ColumnType::Uuid, &ColumnType::Inet6, &ColumnType::Inet4]);
    assert!(table.columns[3].invisible);
    assert_eq!(table.columns[5].virtual_expression.as_deref(), Some("concat(`n`,'x')"));
    assert_eq!(table.columns[6].virtual_expression, None);
    let old = definition("oldt").unwrap();
    assert_eq!(old.columns[4].column_type, ColumnType::DateTime { fsp: 2, legacy: true });
    let names = definition("names").unwrap();
    assert_eq!(
        names.columns[2].column_type,
        ColumnType::Enum { elements: vec!["a".to_owned(), "б".to_owned()] }
    );
}

#[test]
fn hidden_columns_and_indexes_of_innodb_are_known() {
    let fulltext = definition("ft").unwrap();
    let kinds: Vec<(&str, IndexKind)> =
        fulltext.indexes.iter().map(|index| (index.name.as_str(), index.kind)).collect();
    assert_eq!(
        kinds[..3],
        [("PRIMARY", IndexKind::BTree), ("FTS_DOC_ID_INDEX", IndexKind::Other), ("k", IndexKind::BTree)]
    );
    assert_eq!(fulltext.stored_fields.last().unwrap().column, None);
    // A key of its own that InnoDB keeps as a tree over hashes of the values.
    let long = definition("lu").unwrap();
    assert_eq!(long.indexes[1].kind, IndexKind::Other);
    assert_eq!(long.columns.len(), 3);
    // Prefixes in the primary key: the columns come again in full.
    let prefixes = definition("prefpk").unwrap();
    let stored: Vec<Option<ColumnNo>> = prefixes.stored_fields.iter().map(|field| field.column).collect();
    assert_eq!(stored, [Some(ColumnNo(0)), Some(ColumnNo(1)), Some(ColumnNo(2))]);
    assert_eq!(prefixes.indexes[0].parts[0].prefix_bytes, Some(40));
    // The first unique key without NULL is the clustered one; a period's key ends with its end and start.
    assert_eq!(definition("nn").unwrap().indexes[0].name, "u2");
    assert_eq!(definition("prefpk2").unwrap().indexes[0].name, "GEN_CLUST_INDEX");
    let period: Vec<ColumnNo> =
        definition("perpk").unwrap().indexes[0].parts.iter().map(|part| part.column).collect();
    assert_eq!(period, [ColumnNo(0), ColumnNo(2), ColumnNo(1)]);
}

#[test]
fn compressed_columns_and_ends_of_rows_are_told() {
    let compressed = definition("cc").unwrap();
    assert_eq!(compressed.columns.iter().map(|column| column.compressed).collect::<Vec<_>>(), [false, true]);
    assert_eq!(compressed.stored_fields[0].column_type, ColumnType::Blob { length_bytes: 2 });
    let versioned = definition("sv").unwrap();
    let row_end = versioned.row_end.unwrap();
    assert_eq!((row_end.0 + 1, versioned.columns[row_end.0].nullable), (versioned.columns.len(), false));
    assert_eq!(versioned.indexes[0].parts.last().unwrap().column, row_end);
}

#[test]
fn views_and_truncated_frm_files_are_refused() {
    assert_eq!(
        table_from_frm(b"TYPE=VIEW\nquery=select 1\n", "d", "v").unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    assert_eq!(table_from_frm(b"", "d", "t").unwrap_err().kind(), ErrorKind::Corrupt);
}

/// Servers before MariaDB 10.2 gave it to tables without VARCHAR columns.
#[test]
fn a_frm_of_format_9_is_read_like_one_of_format_10() {
    let mut frm = std::fs::read(folder().join("red.frm")).unwrap();
    assert_eq!((frm[2], frm[33]), (10, 5));
    frm[2] = 9;
    assert_eq!(table_from_frm(&frm, "d", "red").unwrap(), definition("red").unwrap());
    // By MySQL 4.1, whose VARCHAR was another one.
    frm[33] = 0;
    let error = table_from_frm(&frm, "d", "red").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("before MySQL 5.0"), "{error}");
}

/// MariaDB 10.11 takes such a column for JSON of MySQL 5.7, too, and converts its values from MySQL's form.
#[test]
fn json_in_a_frm_of_mysql_5_7_is_read() {
    let word = |frm: &[u8], at: usize| usize::from(u16::from_le_bytes([frm[at], frm[at + 1]]));
    let mut frm = std::fs::read(folder().join("prefpk.frm")).unwrap();
    let extra_end = 64 + word(&frm, 4);
    let form = word(&frm, extra_end) | word(&frm, extra_end + 2) << 16;
    let fields = form + 288 + word(&frm, form + 260);
    let column = (0..).find(|no| frm[fields + 17 * no + 13] == 252).unwrap();
    frm[fields + 17 * column + 13] = 245;
    let error = table_from_frm(&frm, "d", "prefpk").unwrap_err();
    assert!(error.to_string().contains("generated columns"), "{error}");
    frm[51..55].copy_from_slice(&50_744u32.to_le_bytes());
    let table = table_from_frm(&frm, "d", "prefpk").unwrap();
    assert_eq!(table.columns[column].column_type, ColumnType::Json);
}
