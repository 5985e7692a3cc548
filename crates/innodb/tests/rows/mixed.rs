//! Tables of MySQL whose partitions lie in the system tablespace, some or all of them; and tables whose files are gone.

use std::fs;
use std::path::Path;

use tanada_innodb::schema::description::{KeyKind, KeyPart, KeyPartOf};
use tanada_innodb::{Catalog, ErrorKind, MountOptions, Result};

use crate::fixtures::unpacked;
use crate::outside::{copied, listed, rows};
use crate::support::{environment, run};

const TABLES: [&str; 12] = [
    "chosen",
    "discarded",
    "first",
    "keyed",
    "later",
    "own",
    "parts",
    "removed",
    "same",
    "subs",
    "wide_compact",
    "wide_redundant",
];

/// Rows of tables by database and name, in the order of their partitions and keys.
const ROWS: [(&str, &str, &str); 11] = [
    ("mix", "chosen", "1|2|3"),
    ("mix", "first", "1 1|7 7"),
    ("mix", "keyed", "z 3 11:00:00.5 a|x 1 10:00:00.0 b|y 2 NULL ü"),
    ("mix", "later", "1 p0|7 p1|15 p2"),
    ("mix", "own", "1"),
    ("mix", "parts", "3 2 b|3 1 a|4 3 c"),
    ("mix", "removed", "1"),
    ("mix", "same", "1"),
    ("mix", "subs", "2 8|1 9|8 6|7 7|16 4|15 5"),
    ("mix2", "parts", "other 3"),
    ("mix2", "same", "other 2"),
];

#[test]
fn partitions_of_the_system_tablespace_are_read_beside_those_with_files() {
    let data = unpacked("mixed").join("data");
    for (database, table, expected) in ROWS {
        let mounts = [data.clone(), data.join(database)];
        for path in mounts.iter().filter(|path| **path == data || database == "mix") {
            let found = rows(path, &MountOptions::default(), database, table).unwrap();
            assert_eq!(found.join("|"), expected, "{} {database}.{table}", path.display());
        }
    }
}

#[test]
fn tables_whose_files_are_missing_are_listed_and_name_them() {
    let folder = copied(&unpacked("mixed"));
    let data = folder.path().join("data");
    for file in ["removed.ibd", "later#p#p1.ibd", "first#p#p1.ibd"] {
        fs::remove_file(data.join("mix").join(file)).unwrap();
    }
    for path in [data.clone(), data.join("mix")] {
        let (databases, _) = listed(&path, &MountOptions::default()).unwrap();
        let expected = ("mix".to_owned(), TABLES.map(str::to_owned).to_vec());
        assert_eq!(databases.first(), Some(&expected));
        for (table, names) in [
            ("removed", "table mix.removed"),
            ("discarded", "table mix.discarded"),
            ("later", "partition p1 of table mix.later"),
            ("first", "partition p1 of table mix.first"),
        ] {
            let error = rows(&path, &MountOptions::default(), "mix", table).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            let text = error.to_string();
            let file = format!("/mix/{table}");
            assert!(text.contains(names) && text.contains(&file) && text.contains("is missing"), "{text}");
        }
        assert_eq!(rows(&path, &MountOptions::default(), "mix", "own").unwrap(), ["1"]);
    }
    // A database whose folder was not copied has the tables in the system tablespace alone.
    fs::rename(data.join("mix"), folder.path().join("away")).unwrap();
    let (databases, _) = listed(&data, &MountOptions::default()).unwrap();
    let expected = ["first", "keyed", "parts", "same"].map(str::to_owned).to_vec();
    assert_eq!(databases.first(), Some(&("mix".to_owned(), expected)));
    let error = rows(&data, &MountOptions::default(), "mix", "first").unwrap_err();
    assert!(error.to_string().contains("its partition p1 is tablespace"), "{error}");
    fs::rename(folder.path().join("away"), data.join("mix")).unwrap();
    // Nothing says which file a partition has that is not in the system tablespace.
    fs::remove_file(data.join("mysql.ibd")).unwrap();
    let error = rows(&data.join("mix"), &MountOptions::default(), "mix", "later").unwrap_err();
    assert!(error.to_string().contains("has no .ibd file"), "{error}");
}

#[test]
fn tables_of_a_shared_tablespace_are_described_by_their_own_object() {
    fn described(path: &Path, database: &'static str, table: &'static str) -> (Vec<String>, String) {
        let environment = environment(true);
        let (path, within) = (path.to_owned(), environment.clone());
        run(&environment, move || async move {
            let catalog = Catalog::open(&path, &MountOptions::default(), &within).await?;
            let opened = catalog.table(database, table).await?;
            let description = catalog.description(database, table).await?;
            let columns = &opened.definition().columns;
            let primary = description.keys.iter().find(|key| key.kind == KeyKind::Primary).unwrap();
            let name = |part: &KeyPart| match &part.of {
                KeyPartOf::Column(no) => columns[no.0].name.clone(),
                KeyPartOf::Expression(text) => text.clone(),
            };
            let parts = description.shown_parts(primary).map(name).collect();
            Result::Ok((parts, description.partitioning.replace('\n', " ")))
        })
        .unwrap()
    }
    let data = unpacked("mixed").join("data");
    for (database, table, key, partitioning) in [
        ("mix", "parts", "id", " /*!50100 PARTITION BY HASH (`id`) PARTITIONS 2 */"),
        ("mix2", "parts", "y", " /*!50100 PARTITION BY HASH (`y`) PARTITIONS 2 */"),
        ("mix", "same", "a", ""),
        ("mix2", "same", "y", ""),
        ("mix", "keyed", "id", " /*!50100 PARTITION BY HASH (`id`) PARTITIONS 3 */"),
    ] {
        let found = described(&data, database, table);
        assert_eq!(found, (vec![key.to_owned()], partitioning.to_owned()), "{database}.{table}");
    }
}

#[test]
fn dictionary_information_behind_a_prefix_is_read() {
    let data = unpacked("mixed").join("data");
    let nulls = |count: usize| vec!["NULL"; count].join(" ");
    for (table, expected) in
        [("wide_compact", format!("1 {} 2", nulls(149))), ("wide_redundant", format!("3 4 {}", nulls(149)))]
    {
        assert_eq!(rows(&data, &MountOptions::default(), "mix", table).unwrap(), [expected], "{table}");
    }
}
