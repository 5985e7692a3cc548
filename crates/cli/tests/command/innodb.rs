//! `tanada innodb info`: what lies in the files of both servers.

use super::{directory, tanada};

fn info(server: &str, more: &[&str]) -> super::Outcome {
    let path = directory(server).display().to_string();
    tanada(&[&["innodb", "info", &path] as &[&str], more].concat())
}

#[test]
fn tables_and_indexes_are_described() {
    for server in ["mysql-9.7", "mariadb-10.11"] {
        let text = info(server, &["--table", "tpch.lineitem"]).output();
        assert!(text.starts_with("tpch.lineitem: DYNAMIC, pages of 16 KiB, about "), "{text}");
        assert!(text.contains("i_l_partkey"), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&info(server, &["--table", "tpch", "--json"]).output()).unwrap();
        let tables = json.as_array().unwrap();
        assert_eq!(tables.len(), 8, "{server}");
        for table in tables {
            let bytes = |key: &str| table[key].as_u64().unwrap();
            let indexes = table["indexes"].as_array().unwrap();
            let allocated: u64 = indexes.iter().map(|index| index["allocated_bytes"].as_u64().unwrap()).sum();
            assert_eq!(
                allocated + bytes("free_bytes") + bytes("other_bytes"),
                bytes("file_bytes"),
                "{table}"
            );
            assert_eq!(indexes.iter().filter(|index| index["clustered"] == true).count(), 1, "{table}");
        }
    }
}

#[test]
fn a_missing_table_or_folder_is_named() {
    let error = info("mysql-9.7", &["--table", "tpch.lineitems"]).error(1);
    assert!(error.contains("no table 'tpch.lineitems'"), "{error}");
    let error = tanada(&["innodb", "info", "/nowhere/at/all"]).error(1);
    assert!(error.contains("/nowhere/at/all"), "{error}");
}
