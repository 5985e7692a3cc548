//! Virtual generated columns: their values are the servers', and those that cannot be computed fail the queries that
//! need them alone.

use std::collections::BTreeMap;

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::{ErrorKind, Session};

use crate::answers::read;
use crate::fixtures::unpacked;
use crate::sessions::{SERVERS, run, session};

/// A session over the tables of a server.
async fn virtuals(server: &str) -> Session {
    let session = session(Method::Threads);
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    let folder = unpacked("virtual").join(server).join("virtuals");
    session.mount_innodb(&folder, &options).await.unwrap();
    session
}

/// Columns of the fixture that are refused because one of their rows is not known to be computed exactly.
fn refused(server: &str) -> &'static [&'static str] {
    match server {
        "mysql-9.7" => &MYSQL_REFUSED,
        _ => &MARIADB_REFUSED,
    }
}

const MYSQL_REFUSED: [&str; 0] = [];
const MARIADB_REFUSED: [&str; 0] = [];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn virtual_columns_have_the_values_of_the_servers() {
    for (server, _) in SERVERS {
        let session = virtuals(server).await;
        let (header, rows) = read(&unpacked("virtual").join(server).join("virtuals/computed.tsv"));
        let mut wrong = BTreeMap::new();
        for (at, name) in header.iter().enumerate().skip(1) {
            let column = match name.strip_suffix("__hex") {
                Some(name) => format!("hex(`{name}`)"),
                None => format!("`{name}`"),
            };
            let expected: Vec<Option<String>> = rows.iter().map(|row| row[at].clone()).collect();
            match run(&session, &format!("select {column} from computed order by id")).await {
                Ok(answer) => {
                    let found: Vec<Option<String>> =
                        answer.rows.into_iter().map(|row| row[0].clone()).collect();
                    assert_eq!(found, expected, "{server}: {name}");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unsupported, "{server}: {name}: {error}");
                    wrong.insert(name.as_str(), error.to_string());
                }
            }
        }
        let names: Vec<&str> = wrong.keys().copied().collect();
        assert_eq!(names, refused(server), "{server}: {wrong:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn star_shows_a_virtual_column_that_cannot_be_computed_as_null() {
    for (server, _) in SERVERS {
        let session = virtuals(server).await;
        for sql in [
            "select * from mixed order by id",
            "select m.* from mixed m order by m.id",
            "select * from (select * from mixed) as m order by id",
            "with m as (select * from mixed) select * from m order by id",
        ] {
            let answer = run(&session, sql).await.unwrap_or_else(|error| panic!("{server}: {sql}: {error}"));
            assert_eq!(answer.header, ["id", "s", "double_id", "matches"], "{sql}");
            let row = |id: &str, s: Option<&str>, double: &str| {
                vec![Some(id.to_string()), s.map(str::to_string), Some(double.to_string()), None]
            };
            assert_eq!(
                answer.rows,
                [row("1", Some("abc"), "2"), row("2", Some("xyz"), "4"), row("3", None, "6")]
            );
            let warnings = answer.report.warnings.join("\n");
            assert!(warnings.contains("virtual column mixed.matches is shown as NULL"), "{sql}: {warnings}");
        }
        let answer = run(&session, "select double_id from mixed where id = 2").await.unwrap();
        assert_eq!(answer.rows, [[Some("4".to_string())]]);
        assert!(answer.report.warnings.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_that_need_a_virtual_column_that_cannot_be_computed_fail() {
    for (server, _) in SERVERS {
        let session = virtuals(server).await;
        for sql in [
            "select matches from mixed",
            "select *, matches from mixed",
            "select id from mixed where matches = 1",
            "select distinct * from mixed",
            "select matches from (select * from mixed) as m",
            "select * from mixed union select * from mixed",
            "select * from mixed order by 4",
            "select count(*) from mixed group by matches",
            "select a.id from mixed a join mixed b using (matches)",
        ] {
            let error = run(&session, sql).await.expect_err(sql);
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{sql}: {error}");
            assert!(error.to_string().contains("virtual column mixed.matches cannot be computed"), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn virtual_columns_of_zero_dates_have_the_values_of_the_servers() {
    for (server, _) in SERVERS {
        let session = virtuals(server).await;
        let answer = run(&session, "select d, y from dates order by id").await.unwrap();
        let row = |d: Option<&str>, y: Option<&str>| vec![d.map(str::to_string), y.map(str::to_string)];
        let expected =
            [row(Some("2024-01-05"), Some("2024")), row(Some("0000-00-00"), Some("0")), row(None, None)];
        assert_eq!(answer.rows, expected, "{server}");
    }
}
