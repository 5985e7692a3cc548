//! Tables whose files are not in their database's folder, and names that file systems do not take.

use std::path::{Path, PathBuf};

use tanada_innodb::{Catalog, ErrorKind, IndexNo, KeyRange, MountOptions, Result};

use crate::fixtures::unpacked;
use crate::support::{
    environment, run, scan, scan_bookmarks, secondary_indexes, spelled, stored_columns, types,
};

/// A copy of one server's files, of which some are about to be removed.
fn copy(server: &str) -> tempfile::TempDir {
    copied(&unpacked("elsewhere").join(server))
}

/// A copy of a folder.
pub(crate) fn copied(folder: &Path) -> tempfile::TempDir {
    fn files(from: &Path, to: &Path) {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            let target = to.join(path.file_name().unwrap());
            if path.is_dir() {
                files(&path, &target)
            } else {
                std::fs::copy(&path, &target).map(drop).unwrap()
            }
        }
    }
    let copy = tempfile::tempdir().unwrap();
    files(folder, copy.path());
    copy
}

/// Where each server had what is in `far` now.
fn moved(server: &Path) -> MountOptions {
    let far = ["/srv/far", "/srv/farm"].map(|old| (PathBuf::from(old), server.join("far")));
    MountOptions { path_map: far.to_vec(), ..MountOptions::default() }
}

/// The rows of a table, in the order of its clustered index and, sorted, by every other index.
pub(crate) fn rows(path: &Path, options: &MountOptions, database: &str, table: &str) -> Result<Vec<String>> {
    let environment = environment(true);
    let within = environment.clone();
    let (path, options) = (path.to_owned(), options.clone());
    let (database, table) = (database.to_owned(), table.to_owned());
    run(&environment, move || async move {
        let catalog = Catalog::open(&path, &options, &within).await?;
        let table = catalog.table(&database, &table).await?;
        let columns = stored_columns(&table);
        let texts = |rows: &[_]| {
            spelled(rows, &types(&table, &columns)).iter().map(|row| row.join(" ")).collect::<Vec<_>>()
        };
        let found = texts(&scan(&table, &table.access(IndexNo(0), &columns)?, &KeyRange::all()).await?);
        for index in secondary_indexes(&table) {
            let access = table.access(index, &columns)?;
            let rows = match access.covering() {
                true => scan(&table, &access, &KeyRange::all()).await?,
                false => scan_bookmarks(&table, &access, &KeyRange::all()).await?,
            };
            let (mut by_index, mut by_key) = (texts(&rows), found.clone());
            by_index.sort();
            by_key.sort();
            assert_eq!(by_index, by_key);
        }
        Ok(found)
    })
}

/// Databases with their tables.
pub(crate) type Listed = Vec<(String, Vec<String>)>;

/// What a mount lists, and its warnings.
pub(crate) fn listed(path: &Path, options: &MountOptions) -> Result<(Listed, Vec<String>)> {
    let environment = environment(true);
    let within = environment.clone();
    let (path, options) = (path.to_owned(), options.clone());
    run(&environment, move || async move {
        let catalog = Catalog::open(&path, &options, &within).await?;
        let tables = catalog.databases().into_iter().map(|name| {
            let tables = catalog.tables(&name);
            (name, tables)
        });
        Ok((tables.collect(), catalog.warnings()))
    })
}

const ROWS_FAR: [(&str, &[&str]); 3] = [
    ("here", &["1 here"]),
    ("there", &["1 there", "2 far"]),
    ("parts", &["1 p0", "11 p1", "12 p1", "21 p2"]),
];

#[test]
fn files_elsewhere_are_found_by_the_dictionary_and_the_path_map() {
    for server in ["mysql-9.7", "mariadb-10.11"] {
        let folder = unpacked("elsewhere").join(server);
        let options = moved(&folder);
        for path in [folder.join("data"), folder.join("data/far")] {
            for (table, expected) in ROWS_FAR {
                assert_eq!(rows(&path, &options, "far", table).unwrap(), expected, "{server} {table}");
            }
            let system = rows(&path, &options, "far", "sys_1").unwrap();
            assert_eq!(system, ["1 system", "2 space"], "{server}");
        }
    }
}

#[test]
fn tables_of_shared_tablespaces_are_listed_with_their_databases() {
    let folder = unpacked("elsewhere").join("mysql-9.7");
    let options = moved(&folder);
    let far = ["far_1", "here", "near_1", "parts", "sys_1", "there"];
    let (databases, warnings) = listed(&folder.join("data"), &options).unwrap();
    let names: Vec<&str> = databases.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["aux", "d", "d2", "far", "other", "vec"]);
    assert_eq!(databases[3].1, far);
    assert_eq!(databases[4].1, ["far_2", "sys_2"]);
    // The sample was made without them.
    assert!(warnings.iter().all(|warning| warning.contains("undo_001")), "{warnings:?}");
    // A database's folder alone has its own tables only.
    let (databases, _) = listed(&folder.join("data/far"), &options).unwrap();
    assert_eq!(databases, [("far".to_owned(), far.map(str::to_owned).to_vec())]);
    for (database, table, row) in [
        ("far", "near_1", "1 10|2 20".to_owned()),
        ("far", "far_1", "1 100".to_owned()),
        ("other", "far_2", format!("1 {}", "x".repeat(30_000))),
        ("other", "sys_2", format!("1 {}", "y".repeat(20_000))),
    ] {
        assert_eq!(rows(&folder.join("data"), &options, database, table).unwrap().join("|"), row, "{table}");
    }
}

#[test]
fn missing_files_are_named() {
    for server in ["mysql-9.7", "mariadb-10.11"] {
        let folder = copy(server);
        let options = moved(folder.path());
        let data = folder.path().join("data");
        let separator = if server == "mysql-9.7" { "p" } else { "P" };
        let partition = format!("far/far/parts#{separator}#p1.ibd");
        std::fs::remove_file(folder.path().join(&partition)).unwrap();
        let error = rows(&data, &options, "far", "parts").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        let text = error.to_string();
        assert!(text.contains("partition p1 of table far.parts") && text.contains(&partition), "{text}");
        assert!(text.contains("--path-map"), "{text}");
        // Nothing says where the files went.
        let error = rows(&data, &MountOptions::default(), "far", "there").unwrap_err();
        assert!(error.to_string().contains("/far/there.ibd"), "{error}");
        assert_eq!(rows(&data, &MountOptions::default(), "far", "here").unwrap(), ["1 here"]);
    }
    let folder = unpacked("elsewhere").join("mysql-9.7");
    let error = rows(&folder.join("data"), &MountOptions::default(), "other", "far_2").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("tablespace ts_far is not there: /srv/far/ts_far.ibd"), "{error}");
    let (databases, warnings) = listed(&folder.join("data/far"), &MountOptions::default()).unwrap();
    assert!(databases[0].1.contains(&"far_1".to_owned()));
    assert!(warnings.iter().any(|warning| warning.contains("ts_far")), "{warnings:?}");
}

#[test]
fn tables_of_an_encrypted_tablespace_are_listed_and_say_the_way_out() {
    let folder = copy("mysql-9.7");
    let path = folder.path().join("data/ts_near.ibd");
    let mut image = std::fs::read(&path).unwrap();
    // The flag of the space, and other types of all pages but the first, of which only the headers are in the clear.
    image[54 + 2] |= 1 << 5;
    for (no, page) in image.chunks_mut(16384).enumerate() {
        if no > 0 {
            page[24..26].copy_from_slice(&15u16.to_be_bytes());
            page[38..16376].fill(0x5e);
        }
        let crc = crc32c::crc32c(&page[4..26]) ^ crc32c::crc32c(&page[38..16376]);
        page[..4].copy_from_slice(&crc.to_be_bytes());
        page[16376..16380].copy_from_slice(&crc.to_be_bytes());
    }
    std::fs::write(&path, image).unwrap();
    for mounted in ["data", "data/far"] {
        let (databases, warnings) = listed(&folder.path().join(mounted), &moved(folder.path())).unwrap();
        let far = databases.iter().find(|(name, _)| name == "far").unwrap();
        assert!(far.1.contains(&"near_1".to_owned()), "{mounted}: {far:?}");
        assert!(warnings.iter().any(|warning| warning.contains("ts_near.ibd")), "{warnings:?}");
        let error = rows(&folder.path().join(mounted), &moved(folder.path()), "far", "near_1").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(text.contains("ts_near.ibd") && text.contains("ENCRYPTION = 'N'"), "{text}");
    }
}

#[test]
fn a_file_that_was_moved_home_is_read_there() {
    let folder = copy("mysql-9.7");
    let home = folder.path().join("data/far/there.ibd");
    std::fs::rename(folder.path().join("far/far/there.ibd"), home).unwrap();
    let found = rows(&folder.path().join("data"), &MountOptions::default(), "far", "there").unwrap();
    assert_eq!(found, ["1 there", "2 far"]);
}

#[test]
fn tables_named_like_devices_are_read() {
    for server in ["mysql-9.7", "mariadb-10.11"] {
        let data = unpacked("elsewhere").join(server).join("data");
        let options = MountOptions::default();
        for (database, table, expected) in [
            ("d2", "con", &["1 con", "2 x"][..]),
            ("d2", "nul", &["2", "1", "3"]),
            ("d2", "LPT1", &["7"]),
            ("d2", "p", &["1", "11"]),
            ("aux", "com1", &["8"]),
        ] {
            assert_eq!(rows(&data, &options, database, table).unwrap(), expected, "{server} {table}");
        }
    }
}

/// The elements are in the dictionary information as base64 in lines of 76 digits.
#[test]
fn long_elements_of_enum_and_set_are_read() {
    let folder = unpacked("elsewhere").join("mysql-9.7/data");
    let found = rows(&folder, &MountOptions::default(), "d", "e").unwrap();
    let digits = "0123456789".repeat(20);
    let set = format!("{}x", &digits[..70]);
    assert_eq!(found[0], format!("1 {} a,{set}", &digits[..58]));
    assert_eq!(found[1], format!("2 {} a,{set},é日本{}", &digits[..59], &digits[..70]));
    assert_eq!(found[2], format!("3 {} a", &digits[..150]));
}

/// Literals of generated columns are in their own character sets, so that the dictionary information is not UTF-8.
#[test]
fn expressions_with_literals_of_any_character_set_harm_no_table() {
    let folder = unpacked("elsewhere").join("mysql-9.7/data");
    for table in ["g", "l", "sj", "bi"] {
        rows(&folder, &MountOptions::default(), "d", table).unwrap();
    }
    let environment = environment(true);
    let within = environment.clone();
    let expressions = run(&environment, move || async move {
        let catalog = Catalog::open(&folder, &MountOptions::default(), &within).await.unwrap();
        let mut expressions = Vec::new();
        for table in ["g", "l", "sj", "bi"] {
            let definition = catalog.definition("d", table).await.unwrap();
            expressions.extend(definition.columns.into_iter().filter_map(|column| column.virtual_expression));
        }
        expressions
    });
    let expected = [
        "concat(`v`,_utf8mb4'it\\'s',_utf8mb4'\"q\"',_utf8mb4'\\\\',_utf8mb4'é日本',_utf8mb4'tab\t')",
        "concat(`v`,_latin1'xe9')",
        "concat(`v`,_utf8mb4'ö',_binary'x',0x41)",
        "(`id` + 1)",
        "(`we``ird` * 2)",
        "concat(`v`,_latin1'éè')",
        "concat(`v`,_latin1'é')",
        "(`id` + 1)",
        "(`sé` + 1)",
        "concat(`v`,_sjis'表ア')",
        "concat(`v`,0xFFFE)",
    ];
    assert_eq!(expressions, expected);
}

/// The server's own tables are not listed, but can be asked for.
#[test]
fn tables_of_the_dictionary_are_read_by_name() {
    let folder = unpacked("elsewhere").join("mysql-9.7/data");
    let environment = environment(true);
    let within = environment.clone();
    let (databases, names) = run(&environment, move || async move {
        let catalog = Catalog::open(&folder, &MountOptions::default(), &within).await.unwrap();
        let table = catalog.table("mysql", "schemata").await.unwrap();
        let name = table.definition().column("name").unwrap();
        let access = table.access(IndexNo(0), &[name]).unwrap();
        let rows = scan(&table, &access, &KeyRange::all()).await.unwrap();
        assert!(catalog.table("mysql", "no_such").await.is_err());
        (catalog.databases(), spelled(&rows, &types(&table, &[name])).concat())
    });
    assert!(!databases.contains(&"mysql".to_owned()));
    assert!(names.contains(&"far".to_owned()) && names.contains(&"mysql".to_owned()), "{names:?}");
}

/// MariaDB has the nodes of a vector index in a table of its own.
#[test]
fn vectors_are_read_and_their_indexes_left_out() {
    let folder = unpacked("elsewhere").join("mariadb-11.8/vec");
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    let (databases, _) = listed(&folder, &options).unwrap();
    assert_eq!(databases[0].1, ["n", "u", "v"]);
    let vectors = |table| rows(&folder, &options, "vec", table).unwrap();
    assert_eq!(vectors("v"), ["1 0000803F0000004000004040", "2 0000003F0000A0BFF9021550"]);
    assert_eq!(vectors("n"), ["1 0000000000008242 a", "2 NULL b", "3 6162630A41000000 c"]);
    assert_eq!(vectors("u"), [format!("1 78 {}00000040", "0000C03F".repeat(69))]);
    let of_mysql = unpacked("elsewhere").join("mysql-9.7/data");
    assert_eq!(
        rows(&of_mysql, &MountOptions::default(), "vec", "n").unwrap(),
        ["1 0000000000008242 0000803F0000004000004040 a", "2 NULL NULL b", "3 6162630A41000000 00000000 c"]
    );
}
