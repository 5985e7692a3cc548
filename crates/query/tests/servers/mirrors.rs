//! Columnar mirrors of tables that a server changes between two runs: the answers are the server's, whether mirrors are
//! read or not.

use std::path::Path;

use tanada_innodb::MountOptions;
use tanada_query::text::column_text;
use tanada_query::{Session, SessionOptions};

use crate::server::{Kind, Server};

/// What makes the table that the others are copies of.
const TABLE: &str = "create database d; use d; \
    create table t (id int primary key, n int, word varchar(20)) engine=innodb; \
    insert into t select seq, seq % 7, concat('word', seq % 10) from (\
        with recursive s as (select 1 as seq union all select seq + 1 from s where seq < 900) select * from s) s; \
    set default_storage_engine = innodb;";

/// What the server does to a table between two runs.
const CHANGES: [&str; 12] = [
    "do 0",
    "insert into T values (5000, 1, 'new')",
    "update T set word = 'wxyz5' where id = 5",
    "delete from T where id = 7",
    "alter table T add column more int default 9, algorithm=instant",
    "alter table T drop column word, add column word varchar(20) default 'w'",
    "alter table T modify word varchar(30)",
    "alter table T rename column n to m, add column n int not null default 3",
    "drop table T; create table T (id int primary key, n int, word varchar(20)) engine=innodb; \
        insert into T values (1, 2, 'drop'), (2, 3, 'create')",
    "truncate table T; insert into T values (1, 1, 'truncated')",
    "alter table T engine=innodb",
    "rename table T to other; create table T like other; insert into T select * from other where id < 100; \
        drop table other",
];

const QUERY: &str = "select count(*), sum(id), sum(n), min(word), max(word) from";

async fn asked(session: &Session, table: &str) -> (String, bool) {
    let sql = format!("{QUERY} {table}");
    let mut text = Vec::new();
    for sql in [format!("explain {sql}"), sql] {
        let mut result = session.execute(&sql).await.unwrap();
        let (batches, schema) = (result.collect().await.unwrap(), result.schema());
        let mut fields = Vec::new();
        for batch in &batches {
            for (field, array) in schema.fields().iter().zip(batch.columns()) {
                let texts = column_text(field, array).unwrap().into_iter();
                fields.extend(texts.map(|text| {
                    text.map_or_else(|| "NULL".to_string(), |text| String::from_utf8(text).unwrap())
                }));
            }
        }
        text.push(fields.join("\t"));
    }
    (text[1].clone(), text[0].contains("access=mirrors"))
}

async fn session(data: &Path, cache: &Path) -> Session {
    let options = SessionOptions { executors: 1, cache_bytes: 8 << 20, ..SessionOptions::default() };
    let session = Session::new(options).unwrap();
    session.mount_innodb(data, &MountOptions::default()).await.unwrap();
    session.use_database("d").unwrap();
    session.keep_mirrors(cache.to_str().unwrap()).await.unwrap();
    session.set("tanada.columnar", "always").await.unwrap();
    session
}

/// Stops the server and compares its answers with those of two sessions, of which the second one reads mirrors.
async fn compare(server: Server, kind: Kind, cache: &Path) {
    let tables: Vec<String> = (0..CHANGES.len()).map(|no| format!("t{no}")).collect();
    let questions: Vec<String> = tables.iter().map(|table| format!("{QUERY} {table};")).collect();
    let printed = server.run(&format!("use d; {}", questions.join(" ")));
    let expected = String::from_utf8(printed.answers).unwrap();
    let expected: Vec<&str> = expected.lines().skip(1).step_by(2).collect();
    assert_eq!(expected.len(), tables.len(), "{:?}", printed.refusals);
    let data = server.stop(true);
    for is_mirrored in [false, true] {
        let session = session(&data, cache).await;
        for (no, table) in tables.iter().enumerate() {
            let (answer, reads_mirrors) = asked(&session, table).await;
            assert_eq!(answer, expected[no], "{kind:?} {}", CHANGES[no]);
            assert_eq!(reads_mirrors, is_mirrored, "{kind:?} {}", CHANGES[no]);
        }
        session.make_mirrors(None).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_changes_tables_under_their_mirrors() {
    for kind in [Kind::MariaDb, Kind::MariaDb11, Kind::MySql] {
        if let Err(error) = kind.unpacked() {
            eprintln!("{kind:?} is not run: {error}");
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        let server = Server::start(kind, folder.path());
        let copies: Vec<String> = (0..CHANGES.len())
            .map(|no| format!("create table t{no} like t; insert into t{no} select * from t;"))
            .collect();
        let printed = server.run(&format!("{TABLE} {}", copies.join(" ")));
        assert!(printed.refusals.is_empty(), "{:?}", printed.refusals);
        compare(server, kind, &cache).await;
        let server = Server::start(kind, folder.path());
        for (no, change) in CHANGES.iter().enumerate() {
            let change = change.replace('T', &format!("t{no}"));
            let printed = server.run(&format!("use d; {change};"));
            assert!(printed.refusals.is_empty(), "{change}: {:?}", printed.refusals);
        }
        compare(server, kind, &cache).await;
    }
}
