//! SHOW, DESCRIBE and `information_schema` of tables of MySQL in the system tablespace, and of tables without files.

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::Session;

use crate::answers::{Row, field};
use crate::fixtures::unpacked;
use crate::sessions::{run, session};

async fn mounted() -> Session {
    let session = session(Method::Threads);
    session.mount_innodb(&unpacked("mixed").join("data"), &MountOptions::default()).await.unwrap();
    session
}

#[tokio::test]
async fn tables_with_shared_partitions_are_shown_as_mysql_shows_them() {
    let session = mounted().await;
    let recorded = std::fs::read_to_string(unpacked("mixed").join("answers.txt")).unwrap();
    let blocks: Vec<&str> = recorded.split("\n\n").filter(|block| !block.trim().is_empty()).collect();
    assert_eq!(blocks.len(), 29);
    for block in blocks {
        let (question, answer) = block.split_once('\n').unwrap();
        let sql = question.trim_start_matches("> ");
        let rows = answer.split_terminator('\n').skip(1);
        let mut expected: Vec<Row> = rows.map(|line| line.split('\t').map(field).collect()).collect();
        let mut found = run(&session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")).rows;
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "{sql}");
    }
    // The server's own tables lie in the system tablespace, too.
    let own =
        run(&session, "select table_name from information_schema.tables where table_schema = 'sys'").await;
    assert!(own.unwrap().rows.is_empty());
}

#[tokio::test]
async fn a_table_without_its_file_is_shown_and_its_query_names_the_file() {
    let session = mounted().await;
    let shown = run(&session, "show tables from mix like 'disc%'").await.unwrap();
    assert_eq!(shown.rows, [[Some("discarded".to_string())]]);
    for sql in ["select * from mix.discarded", "describe mix.discarded", "show create table mix.discarded"] {
        let text = run(&session, sql).await.unwrap_err().to_string();
        assert!(text.contains("/mix/discarded.ibd") && text.contains("DISCARD TABLESPACE"), "{sql}: {text}");
    }
    let listed = "select table_name, engine, row_format from information_schema.tables \
                  where table_name = 'discarded'";
    let found = run(&session, listed).await.unwrap();
    assert_eq!(found.rows, [[Some("discarded".to_string()), Some("InnoDB".to_string()), None]]);
    let warnings = run(&session, "show warnings").await.unwrap();
    assert!(format!("{:?}", warnings.rows).contains("mix.discarded is not read"), "{:?}", warnings.rows);
}
