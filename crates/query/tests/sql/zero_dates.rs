//! Zero and partial dates: queries over the same rows, with the answers of MariaDB 10.11 and MySQL 9.7.
//!
//! `zero_dates.tsv` has a query and both answers in a line: rows between bars, fields between commas, `ERR` for an
//! error.

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::{ErrorKind, Session};

use crate::fixtures::unpacked;
use crate::sessions::{run, session};

/// The servers, the column of their answers, and how many queries that they answer are refused at most.
const SERVERS: [(&str, usize, usize); 2] = [("mariadb-10.11", 1, 70), ("mysql-9.7", 2, 90)];

async fn zeros(server: &str) -> Session {
    let session = session(Method::Threads);
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    session.mount_innodb(&unpacked("zero-dates").join(server).join("zeros"), &options).await.unwrap();
    session
}

/// The rows of an answer in one line, in any order unless the query has one.
fn line(rows: Vec<String>, query: &str) -> String {
    let mut rows = rows;
    if !query.contains(" order by ") {
        rows.sort();
    }
    rows.join(" | ")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zero_and_partial_dates_have_the_servers_answers() {
    for (server, column, max_refused) in SERVERS {
        let session = zeros(server).await;
        let (mut wrong, mut refused) = (Vec::new(), Vec::new());
        for entry in include_str!("zero_dates.tsv").lines().filter(|entry| !entry.starts_with('#')) {
            let fields: Vec<&str> = entry.split('\t').collect();
            let (query, expected) = (fields[0], fields[column]);
            match run(&session, query).await {
                Err(_) if expected == "ERR" => {}
                Err(error) if error.kind() == ErrorKind::Unsupported => {
                    refused.push(format!("{query}: {error}"));
                }
                Err(error) => wrong.push(format!("{query}: {error}")),
                Ok(answer) => {
                    let rows = answer.rows.iter().map(|row| {
                        let fields: Vec<&str> =
                            row.iter().map(|field| field.as_deref().unwrap_or("NULL")).collect();
                        fields.join(",")
                    });
                    let found = line(rows.collect(), query);
                    let expected = line(expected.split(" | ").map(str::to_string).collect(), query);
                    if found != expected {
                        wrong.push(format!("{query}\n  {server}: {expected}\n  Tanada: {found}"));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
        assert!(refused.len() <= max_refused, "{} refused:\n{}", refused.len(), refused.join("\n"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partial_dates_are_refused_where_dates_are_ordered() {
    for (server, ..) in SERVERS {
        let session = zeros(server).await;
        for query in [
            "select id from p order by d",
            "select min(d) from p",
            "select id from p where d < '2000-01-01'",
            "select id, rank() over (order by dt) from p",
            "select a.id from p a join p b on a.d <= b.d",
        ] {
            let error = run(&session, query).await.expect_err(query);
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{query}: {error}");
            assert!(error.to_string().contains("which no calendar has"), "{query}: {error}");
        }
        let answer = run(&session, "select count(*) from z where d < '2000-01-01'").await.unwrap();
        assert_eq!(answer.rows, [[Some("2".to_string())]]);
    }
}
