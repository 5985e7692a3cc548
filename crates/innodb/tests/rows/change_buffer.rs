//! Files of a MariaDB that stopped with changes in its change buffer (`innodb_change_buffering = all`,
//! `innodb_fast_shutdown = 1`): the indexes with stale leaves are not read, and a warning names them. That all others
//! give the server's rows, `cases` tests.

use tanada_innodb::{Catalog, IndexNo, MountOptions};

use crate::fixtures::unpacked;
use crate::support::{environment, mount, run};

#[test]
fn indexes_with_changes_in_the_change_buffer_are_not_read() {
    let environment = environment(true);
    let within = environment.clone();
    run(&environment, move || async move {
        let folder = unpacked("change-buffer").join("mariadb-10.11/c_buffered");
        let catalog = mount(&folder, &within).await;
        for (name, stale) in [
            ("buffered", &["u", "a", "b", "vb"][..]),
            ("calm", &[]),
            // In one partition of two.
            ("parts", &["w"]),
            ("redundant", &["a", "b"]),
        ] {
            let table = catalog.table("c_buffered", name).await.unwrap();
            let indexes = table.definition().indexes.iter().enumerate();
            let unread: Vec<&str> = indexes
                .filter(|(no, _)| !table.readable(IndexNo(*no)))
                .map(|(_, index)| index.name.as_str())
                .collect();
            assert_eq!(unread, stale, "{name}");
            match (table.warnings(), stale.is_empty()) {
                ([], true) => {}
                ([warning], false) => {
                    assert!(warning.starts_with(&format!("table c_buffered.{name}: index")), "{warning}");
                    assert!(warning.contains(&format!(" {} ", stale.join(", "))), "{warning}");
                }
                (warnings, _) => panic!("{name}: {warnings:?}"),
            }
        }
    });
}

/// Such a bitmap was taken for that of a server that has no change buffer: rows came by indexes with stale leaves.
#[test]
fn a_bitmap_of_zeros_is_not_believed() {
    const PAGE: usize = 16 << 10;
    let environment = environment(true);
    let within = environment.clone();
    run(&environment, move || async move {
        let original = unpacked("change-buffer").join("mariadb-10.11/c_buffered");
        let folder = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(original).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
        let file = folder.path().join("calm.ibd");
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[PAGE..2 * PAGE].fill(0);
        std::fs::write(&file, bytes).unwrap();
        let options = MountOptions { allow_stale: true, ..MountOptions::default() };
        let catalog = Catalog::open(folder.path(), &options, &within).await.unwrap();
        let table = catalog.table(&catalog.databases()[0], "calm").await.unwrap();
        let secondary = 1..table.definition().indexes.len();
        assert!(!secondary.is_empty() && secondary.into_iter().all(|no| !table.readable(IndexNo(no))));
    });
}
