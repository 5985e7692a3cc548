//! FLOAT(M,D), DOUBLE(M,D), ZEROFILL and YEAR(2): values are printed as the servers print them, and an expression of
//! one gives what the server gives, or is refused. Virtual columns that store values into other types, and comparisons
//! of years, too.

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::Session;

use crate::answers::{Row, field};
use crate::fixtures::unpacked;
use crate::sessions::{SERVERS, run, session};

/// A query with the server's answer.
struct Recorded {
    sql: String,
    rows: Vec<Row>,
    /// Whether it may be refused.
    may_be_refused: bool,
}

/// The recorded answers of a server: a line `> query`, or `? query` if it may be refused, then the answer and an empty
/// line.
fn recorded(fixture: &str, server: &str) -> Vec<Recorded> {
    let path = unpacked(fixture).join(server).join(fixture).join("answers.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("\n\n").filter(|block| !block.trim().is_empty());
    blocks
        .map(|block| {
            let mut lines = block.split_terminator('\n');
            let (mark, sql) = lines.next().unwrap_or_default().split_at(2);
            // The header is not compared.
            let rows = lines.skip(1).map(|line| line.split('\t').map(field).collect()).collect();
            Recorded { sql: sql.to_string(), rows, may_be_refused: mark == "? " }
        })
        .collect()
}

/// The rows as they are printed, sorted if the query gives no order.
fn shown(sql: &str, rows: Vec<Row>) -> Vec<Vec<String>> {
    let field = |field: Option<String>| field.unwrap_or_else(|| "NULL".to_string());
    let mut rows: Vec<Vec<String>> =
        rows.into_iter().map(|row| row.into_iter().map(field).collect()).collect();
    if !sql.contains(" order by ") {
        rows.sort();
    }
    rows
}

async fn mounted(fixture: &str, server: &str) -> Session {
    let session = session(Method::Threads);
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    session.mount_innodb(&unpacked(fixture).join(server).join(fixture), &options).await.unwrap();
    session
}

/// Runs all queries of a fixture.
async fn check(fixture: &str) {
    let mut failures = String::new();
    for (server, _) in SERVERS {
        let session = mounted(fixture, server).await;
        let all = recorded(fixture, server);
        assert!(all.len() > 100, "{server}: {}", all.len());
        let mut wrong = Vec::new();
        for Recorded { sql, rows, may_be_refused } in all {
            match run(&session, &sql).await {
                // QUOTE of NULL is a text that is printed as NULL is.
                Ok(answer) if shown(&sql, answer.rows.clone()) == shown(&sql, rows.clone()) => {}
                Ok(answer) => {
                    wrong.push(format!("{sql}\n  found {:?}\n  expected {rows:?}", answer.rows));
                }
                Err(_) if may_be_refused => {}
                Err(error) => wrong.push(format!("{sql}\n  {error}")),
            }
        }
        if !wrong.is_empty() {
            failures.push_str(&format!("{server}: {}\n{}\n", wrong.len(), wrong.join("\n")));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_printed_with_the_digits_and_zeros_of_their_columns() {
    check("displays").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn virtual_columns_store_values_of_other_types_as_the_servers_do() {
    check("stores").await;
}
