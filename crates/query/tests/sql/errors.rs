//! Damage is an error that names the place, never an answer.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::{ErrorKind, Session, SessionOptions};

use crate::sessions::{METHODS, SERVERS, run, session, tpch_directory, value};

/// A database folder with one table file.
fn copy_of(table: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("tpch");
    std::fs::create_dir(&database).unwrap();
    let from = tpch_directory(SERVERS[0]).join("tpch").join(format!("{table}.ibd"));
    std::fs::copy(from, database.join(format!("{table}.ibd"))).unwrap();
    folder
}

fn flip_bits(path: &Path, offset: u64) {
    let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(&[0xA5; 64]).unwrap();
}

async fn mounted(session: &Session, folder: &Path) {
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    session.mount_innodb(&folder.join("tpch"), &options).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_page_is_named() {
    for method in METHODS {
        let folder = copy_of("orders");
        let path = folder.path().join("tpch/orders.ibd");
        // A leaf of the clustered index: not the root, not the dictionary, not the last extent.
        flip_bits(&path, 6 * 16_384 + 5_000);
        let session = session(method);
        mounted(&session, folder.path()).await;
        let error = run(&session, "select sum(o_totalprice), max(o_comment) from orders").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        let text = error.to_string();
        assert!(text.contains("orders.ibd") && text.contains("page 6:"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_was_cut_off_is_an_error() {
    let folder = copy_of("orders");
    let path = folder.path().join("tpch/orders.ibd");
    let length = std::fs::metadata(&path).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length / 4).unwrap();
    let session = session(Method::Threads);
    mounted(&session, folder.path()).await;
    let error = run(&session, "select sum(o_totalprice) from orders").await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Data | ErrorKind::Io), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_cannot_be_opened_says_why_and_hides_no_other() {
    let folder = copy_of("nation");
    std::fs::copy(tpch_directory(SERVERS[0]).join("tpch/region.ibd"), folder.path().join("tpch/region.ibd"))
        .unwrap();
    // The root of the clustered index.
    flip_bits(&folder.path().join("tpch/region.ibd"), 4 * 16_384);
    let session = session(Method::Threads);
    mounted(&session, folder.path()).await;
    let error = run(&session, "select * from region").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    assert_eq!(value(&session, "select count(*) from nation").await.as_deref(), Some("25"));
    let tables =
        run(&session, "select table_name from information_schema.tables where table_schema = 'tpch'").await;
    assert_eq!(tables.unwrap().rows.len(), 2);
    let columns =
        run(&session, "select count(*) from information_schema.columns where table_name = 'nation'").await;
    assert_eq!(columns.unwrap().rows, [[Some("4".to_string())]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_little_memory_is_a_clear_error() {
    let options = SessionOptions { memory_bytes: 100_000, executors: 2, ..SessionOptions::default() };
    let session = Session::new(options).unwrap();
    session.mount_innodb(&tpch_directory(SERVERS[0]), &MountOptions::default()).await.unwrap();
    session.use_database("tpch").unwrap();
    let groups =
        "select count(*) from (select o_comment, count(*) from orders group by o_comment) as comments";
    let error = run(&session, groups).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Resources, "{error}");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
}
