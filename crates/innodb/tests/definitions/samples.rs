//! Table definitions of the sample tables, from every source there is.

use std::path::Path;

use tanada_innodb::schema::{table_from_ddl, table_from_sdi};
use tanada_innodb::{MountOptions, TableDefinition};

use crate::{fixtures, mounted};

/// The definitions of all tables at `path`.
fn definitions(path: &Path) -> Vec<TableDefinition> {
    mounted(path, MountOptions::default(), |catalog| async {
        let catalog = catalog.unwrap();
        let mut definitions = Vec::new();
        for database in catalog.databases() {
            for table in catalog.tables(&database) {
                definitions.push(catalog.definition(&database, &table).await.unwrap());
            }
        }
        definitions
    })
}

const CASES: [&str; 11] = [
    "all_types",
    "deleted_rows",
    "desc_idx",
    "empty_t",
    "instant_add",
    "instant_drop",
    "no_pk",
    "part_hash",
    "part_range",
    "str_pk",
    "uniq_notnull",
];

#[test]
fn every_sample_table_has_a_definition() {
    let cases = fixtures::unpacked("cases");
    for server in ["mysql-9.7", "mariadb-10.11"] {
        for folder in std::fs::read_dir(cases.join(server)).unwrap() {
            let folder = folder.unwrap().path();
            let definitions = definitions(&folder);
            let names: Vec<&str> = definitions.iter().map(|definition| definition.name.as_str()).collect();
            assert_eq!(names, CASES, "{}", folder.display());
            for definition in &definitions {
                for partition in &definition.partitions {
                    assert!(partition.path.exists(), "{}", partition.path.display());
                }
                for index in &definition.indexes {
                    assert_eq!(index.roots.len(), definition.partitions.len());
                }
            }
        }
    }
}

/// Without what `CREATE TABLE` does not say: roots, ids, files.
fn without_places(mut definition: TableDefinition) -> TableDefinition {
    definition.partitions.clear();
    for index in &mut definition.indexes {
        index.id = 0;
        index.roots.clear();
    }
    definition
}

#[test]
fn the_definition_is_what_show_create_table_prints() {
    for server in ["cases/mysql-9.7", "cases/mariadb-10.11", "rare/mariadb-10.11"] {
        let (archive, server) = server.split_once('/').unwrap();
        let folders = std::fs::read_dir(fixtures::unpacked(archive).join(server)).unwrap();
        for folder in folders.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            for definition in definitions(&folder) {
                let text =
                    std::fs::read_to_string(folder.join(format!("{}.create.sql", definition.name))).unwrap();
                let printed =
                    table_from_ddl(&text, &definition.database, &definition.name, definition.server).unwrap();
                let mut printed = without_places(printed.expect("the statement is there"));
                let mut read = without_places(definition);
                crate::declared::compare(&mut read, &text);
                if read.name.starts_with("instant_") {
                    // The statement does not tell the order that instant ALTER left.
                    printed.stored_fields.clear();
                    read.stored_fields.clear();
                    printed.row_versions = read.row_versions;
                }
                assert_eq!(read, printed, "{} {}", folder.display(), read.name);
            }
        }
    }
}

#[test]
fn the_system_tables_know_the_roots_of_mariadb() {
    let folder = fixtures::unpacked("tpch-sf0.02-mariadb-10.11").join("mariadb-10.11");
    let definitions = definitions(&folder);
    assert!(!definitions.is_empty());
    for definition in definitions {
        for index in &definition.indexes {
            assert!(index.roots.iter().all(Option::is_some), "{} {}", definition.name, index.name);
            assert_ne!(index.id, 0);
        }
    }
}

/// MySQL 8.0.11 to 8.0.15 wrote elements of indexes without the property `hidden`.
#[test]
fn elements_of_mysql_8_0_11_that_do_not_say_so_are_hidden_by_their_length() {
    let mut compared = 0;
    for folder in ["c_compact", "c_dynamic"] {
        for entry in std::fs::read_dir(fixtures::unpacked("cases").join("mysql-9.7").join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_string_lossy().ends_with(".sdi.json") {
                continue;
            }
            let text = std::fs::read(&path).unwrap();
            let objects: serde_json::Value = serde_json::from_slice(&text).unwrap();
            for object in objects.as_array().unwrap() {
                let Some(mut object) = object.get("object").cloned() else { continue };
                let own = table_from_sdi(object.to_string().as_bytes()).unwrap();
                let indexes =
                    object.pointer_mut("/dd_object/indexes").and_then(|indexes| indexes.as_array_mut());
                let elements =
                    indexes.into_iter().flatten().filter_map(|index| index["elements"].as_array_mut());
                for element in elements.flatten() {
                    assert!(element.as_object_mut().unwrap().remove("hidden").is_some());
                }
                assert_eq!(table_from_sdi(object.to_string().as_bytes()).unwrap(), own, "{}", path.display());
                compared += usize::from(own.is_some());
            }
        }
    }
    assert!(compared > 10, "{compared}");
}

/// MySQL 8.0.12 to 8.0.28. The number of the table was taken for partitions that have none.
#[test]
fn partitions_have_instant_columns_of_their_own() {
    let path = fixtures::unpacked("cases").join("mysql-9.7/c_dynamic/part_range#p#p0.sdi.json");
    let objects: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let object = objects.as_array().unwrap().iter().find_map(|object| {
        let object = object.get("object")?;
        (object["dd_object_type"] == "Table").then(|| object.clone())
    });
    let with = |table: &str, partitions: &[&str]| {
        let mut object = object.clone().unwrap();
        object["dd_object"]["se_private_data"] = table.into();
        for (at, data) in partitions.iter().enumerate() {
            object["dd_object"]["partitions"][at]["se_private_data"] = (*data).into();
        }
        table_from_sdi(object.to_string().as_bytes()).unwrap().unwrap().instant_columns
    };
    assert_eq!(with("autoinc=0;", &[]), []);
    assert_eq!(with("instant_col=2;", &[]), []);
    assert_eq!(
        with("instant_col=2;", &["instant_col=2;", "", "instant_col=3;"])[..3],
        [Some(2), None, Some(3)]
    );
}
