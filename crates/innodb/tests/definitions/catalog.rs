//! What a mount lists, and what it says about what it cannot read.

use std::path::Path;

use tanada_innodb::{Catalog, Error, ErrorKind, MountOptions, TableDefinition};

use crate::{fixtures, mounted};

fn open(path: &Path, options: MountOptions) -> Result<Catalog, Error> {
    mounted(path, options, |catalog| async { catalog })
}

fn definition(
    path: &Path,
    options: MountOptions,
    database: &str,
    table: &str,
) -> Result<TableDefinition, Error> {
    let (database, table) = (database.to_owned(), table.to_owned());
    mounted(path, options, move |catalog| async move { catalog?.definition(&database, &table).await })
}

fn case(name: &str) -> std::path::PathBuf {
    fixtures::unpacked("cases").join(name)
}

#[test]
fn a_folder_of_databases_lists_them_all() {
    let catalog = open(&fixtures::unpacked("cases").join("mariadb-10.11"), MountOptions::default()).unwrap();
    assert_eq!(catalog.databases(), ["c_compact", "c_crc32", "c_dynamic", "c_pc_lz4", "c_pc_zlib_crc32"]);
    assert_eq!(catalog.tables("c_compact").len(), 11);
    assert!(catalog.tables("elsewhere").is_empty());
}

#[test]
fn a_single_file_is_its_table_with_all_partitions() {
    for file in ["mysql-9.7/c_dynamic/part_hash#p#p2.ibd", "mariadb-10.11/c_dynamic/part_hash#P#p2.ibd"] {
        let catalog = open(&case(file), MountOptions::default()).unwrap();
        assert_eq!(
            (catalog.databases(), catalog.tables("c_dynamic")),
            (vec!["c_dynamic".to_owned()], vec!["part_hash".to_owned()])
        );
        let definition = definition(&case(file), MountOptions::default(), "c_dynamic", "part_hash").unwrap();
        assert_eq!(definition.partitions.len(), 4);
        let catalog = open(&case("mysql-9.7/c_dynamic/no_pk.ibd"), MountOptions::default()).unwrap();
        assert_eq!(catalog.tables("c_dynamic"), ["no_pk"]);
    }
}

#[test]
fn a_path_without_tables_says_what_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    let error = open(folder.path(), MountOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("expected a data directory"), "{error}");
    let file = folder.path().join("notes.txt");
    std::fs::write(&file, "x").unwrap();
    assert_eq!(open(&file, MountOptions::default()).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        open(&folder.path().join("none"), MountOptions::default()).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn a_broken_table_leaves_other_tables_readable() {
    let folder = tempfile::tempdir().unwrap();
    let copy = |name: &str| {
        std::fs::copy(case("mariadb-10.11/c_dynamic").join(name), folder.path().join(name)).unwrap()
    };
    for name in ["str_pk.ibd", "str_pk.frm", "no_pk.frm", "empty_t.ibd"] {
        copy(name);
    }
    std::fs::write(folder.path().join("broken.ibd"), b"not a tablespace").unwrap();
    let database = open(folder.path(), MountOptions::default()).unwrap().databases().remove(0);
    let catalog = open(folder.path(), MountOptions::default()).unwrap();
    assert_eq!(catalog.tables(&database), ["broken", "empty_t", "no_pk", "str_pk"]);
    let of = |table: &str| definition(folder.path(), MountOptions::default(), &database, table);
    assert!(of("str_pk").is_ok());
    assert_eq!(of("broken").unwrap_err().kind(), ErrorKind::Corrupt);
    assert!(of("no_pk").unwrap_err().to_string().contains("no .ibd file"));
    let undefined = of("empty_t").unwrap_err();
    assert_eq!(undefined.kind(), ErrorKind::NotFound);
    assert!(undefined.to_string().contains("--ddl"), "{undefined}");
    assert_eq!(of("absent").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_statement_defines_a_table_that_has_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let source = case("mariadb-10.11/c_dynamic");
    std::fs::copy(source.join("str_pk.ibd"), folder.path().join("str_pk.ibd")).unwrap();
    let database = open(folder.path(), MountOptions::default()).unwrap().databases().remove(0);
    let ddl = folder.path().join("dump.sql");
    let dump = "-- dump\nDROP TABLE IF EXISTS `str_pk`;\nCREATE TABLE `other` (broken;\n";
    let statement = std::fs::read_to_string(source.join("str_pk.create.sql")).unwrap();
    std::fs::write(&ddl, format!("{dump}{statement};\nINSERT INTO x VALUES (1);\n")).unwrap();
    let options = MountOptions { ddl: vec![ddl], ..MountOptions::default() };
    let definition = definition(folder.path(), options, &database, "str_pk").unwrap();
    assert_eq!(definition.columns.len(), 2);
    assert_eq!(definition.indexes[1].name, "n");
}

/// A server's own redo log, system tablespace and dictionary, and tables that lie in the system tablespace.
#[test]
fn a_data_directory_that_was_shut_down_mounts_without_a_warning() {
    let folder = fixtures::unpacked("shared").join("mariadb-10.11");
    for path in [folder.clone(), folder.join("c_shared")] {
        let catalog = open(&path, MountOptions::default()).unwrap();
        assert_eq!(catalog.warnings(), [""; 0]);
        assert_eq!(catalog.tables("c_shared"), ["o-w n", "t", "u"]);
    }
    let definition = definition(&folder, MountOptions::default(), "c_shared", "t").unwrap();
    assert!(definition.partitions[0].path.ends_with("ibdata1"));
    // Away from its system tablespace there is nothing to read.
    let copy = tempfile::tempdir().unwrap();
    for name in ["t.frm", "o@002dw@0020n.frm", "o@002dw@0020n.ibd"] {
        std::fs::copy(folder.join("c_shared").join(name), copy.path().join(name)).unwrap();
    }
    let database = copy.path().file_name().unwrap().to_str().unwrap().to_owned();
    let (path, options) = (copy.path().to_owned(), MountOptions::default());
    let error = mounted(&path, options, |catalog| async move { catalog?.definition(&database, "t").await });
    assert_eq!(error.unwrap_err().kind(), ErrorKind::NotFound);
}
