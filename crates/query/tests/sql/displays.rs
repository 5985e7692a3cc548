//! FLOAT(M,D), ZEROFILL and YEAR(2): values are printed as the servers print them, and an expression of one gives what
//! the server gives, or is refused.

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::Session;

use crate::answers::{Row, parse};
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
fn recorded(server: &str) -> Vec<Recorded> {
    let path = unpacked("displays").join(server).join("displays/answers.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let blocks = text.split("\n\n").filter(|block| !block.is_empty());
    blocks
        .map(|block| {
            let (query, answer) = block.split_once('\n').unwrap_or((block, ""));
            let (mark, sql) = query.split_at(2);
            let (_, rows) = parse(answer);
            Recorded { sql: sql.to_string(), rows, may_be_refused: mark == "? " }
        })
        .collect()
}

/// The rows, sorted if the query gives no order.
fn in_order(sql: &str, mut rows: Vec<Row>) -> Vec<Row> {
    if !sql.contains(" order by ") {
        rows.sort();
    }
    rows
}

async fn displays(server: &str) -> Session {
    let session = session(Method::Threads);
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    session.mount_innodb(&unpacked("displays").join(server).join("displays"), &options).await.unwrap();
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_are_printed_with_the_digits_and_zeros_of_their_columns() {
    for (server, _) in SERVERS {
        let session = displays(server).await;
        let mut wrong = Vec::new();
        for Recorded { sql, rows, may_be_refused } in recorded(server) {
            match run(&session, &sql).await {
                Ok(answer) if in_order(&sql, answer.rows.clone()) == in_order(&sql, rows.clone()) => {}
                Ok(answer) => wrong.push(format!("{sql}\n  found {:?}\n  expected {rows:?}", answer.rows)),
                Err(_) if may_be_refused => {}
                Err(error) => wrong.push(format!("{sql}\n  {error}")),
            }
        }
        assert!(wrong.is_empty(), "{server}:\n{}", wrong.join("\n"));
    }
}
