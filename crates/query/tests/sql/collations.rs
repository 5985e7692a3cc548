//! Texts compare, join, group and sort by collation: answers of MySQL 9.7 and MariaDB 10.11 on the same tables.
//!
//! The fixture holds the tables `words`, `marks` and `codes` of both servers, questions, and what each server printed.

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::Session;

use crate::answers::{Row, field};
use crate::fixtures::unpacked;
use crate::sessions::{run, session};

/// What is refused here, and answered by the servers.
const REFUSED: [&str; 4] = ["e = 'BETA'", "'ALPHA'", "concat(g, u)", "regexp '^MALM'"];

async fn words(server: &str) -> Session {
    let session = session(Method::Threads);
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    session.mount_innodb(&unpacked("collations").join(server).join("words"), &options).await.unwrap();
    session.use_database("words").unwrap();
    session
}

/// Questions and a server's answers; `None` where the server refuses.
fn questions(server: &str) -> Vec<(String, Option<String>)> {
    let read = |name: String| std::fs::read_to_string(unpacked("collations").join(name)).unwrap();
    let answers: Vec<Option<String>> = serde_json::from_str(&read(format!("{server}.json"))).unwrap();
    let questions = read("questions.sql".to_string());
    let questions: Vec<String> = questions.lines().map(str::to_string).collect();
    assert_eq!(questions.len(), answers.len());
    questions.into_iter().zip(answers).collect()
}

/// How an answer differs from the server's; `None` if it does not.
async fn difference(
    session: &Session,
    sql: &str,
    expected: Option<&str>,
    refused: &[&str],
) -> Option<String> {
    let found = match (run(session, sql).await, expected) {
        (Err(_), None) => return None,
        (Err(_), Some(_)) if refused.iter().any(|part| sql.contains(part)) => return None,
        (Err(error), Some(_)) => return Some(format!("refused: {error}")),
        (Ok(found), None) => return Some(format!("{:?} where the server refuses", found.rows)),
        (Ok(found), Some(_)) => found.rows,
    };
    let expected = expected.unwrap_or_default();
    let rows: Vec<Row> = expected.lines().map(|line| line.split('\t').map(field).collect()).collect();
    let ordered = sql.contains("order by");
    let sorted = |mut rows: Vec<Row>| {
        if !ordered {
            rows.sort();
        }
        rows
    };
    let (found, rows) = (sorted(found), sorted(rows));
    (found != rows).then(|| format!("found {found:?}\n  expected {rows:?}"))
}

async fn assert_answers(server: &str) {
    let session = words(server).await;
    let mut wrong = Vec::new();
    for (sql, expected) in questions(server) {
        if let Some(difference) = difference(&session, &sql, expected.as_deref(), &REFUSED).await {
            wrong.push(format!("{sql}\n  {difference}"));
        }
    }
    assert!(wrong.is_empty(), "{} on {server}:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_mysql_compare_by_collation() {
    assert_answers("mysql-9.7").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_mariadb_compare_by_collation() {
    assert_answers("mariadb-10.11").await;
}

/// Queries that give the same rows.
const SAME_ROWS: [(&str, &str); 8] = [
    // Aggregates keep the character set.
    ("select hex(max(l)) from words", "select hex(l) from words order by l desc, id limit 1"),
    // Parts of calls are told apart.
    ("select count(*) from words where hex(greatest(g, 'c')) = hex(least(g, 'c'))", "select 0"),
    (
        "select length(group_concat(distinct g separator ',')) - length(group_concat(distinct g separator '')) + 1 \
         from words",
        "select count(distinct g) from words",
    ),
    // NULL is an empty text where an aggregate has an order.
    (
        "select group_concat(id order by if(id in (11, 18), null, g), id) from words",
        "select group_concat(id order by if(id in (11, 18), '', ifnull(g, '')), id) from words",
    ),
    // The first query's text is shown.
    (
        "select g from words where id = 12 union select g from words where id = 11",
        "select g from words where id = 12",
    ),
    (
        "select g from words where id = 11 union select g from words where id = 12",
        "select g from words where id = 11",
    ),
    (
        "select id from words where (g, k) in (('ZURICH', 1), ('A', 2)) order by id",
        "select id from words where g = 'ZURICH' and k = 1 or g = 'A' and k = 2 order by id",
    ),
    (
        "select id from words w where g > (select min(g) from marks m where m.v > w.k) order by id",
        "select w.id from words w where exists (select 1 from marks m where m.v > w.k and m.g < w.g) order by 1",
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_texts_keep_their_collations() {
    for server in ["mysql-9.7", "mariadb-10.11"] {
        let session = words(server).await;
        for (sql, same) in SAME_ROWS {
            let (found, expected) = (run(&session, sql).await.unwrap(), run(&session, same).await.unwrap());
            assert_eq!(found.rows, expected.rows, "{server}: {sql}");
        }
    }
}

/// A text as a literal.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// Columns are compared by sort keys, constants without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_compare_with_constants_as_with_columns() {
    for server in ["mysql-9.7", "mariadb-10.11"] {
        let session = words(server).await;
        for column in ["g", "u", "l"] {
            let texts =
                run(&session, &format!("select id, {column} from words where {column} is not null")).await;
            let texts: Vec<(String, String)> = texts
                .unwrap()
                .rows
                .into_iter()
                .map(|row| (row[0].clone().unwrap(), row[1].clone().unwrap()))
                .collect();
            assert!(texts.len() > 10, "{server}");
            for (no, (id, text)) in texts.iter().enumerate() {
                let (other, next) = &texts[(no + 5) % texts.len()];
                let (own, next) = (quoted(text), quoted(next));
                let joined = format!(
                    "select a.id from words a join words b on b.id = {id} join words c on c.id = {other}"
                );
                let (constant, variable) = (column.to_string(), format!("a.{column}"));
                for (by_constant, by_column) in [
                    (format!("= {own}"), format!("= b.{column}")),
                    (format!("<> {own}"), format!("<> b.{column}")),
                    (format!("< {own}"), format!("< b.{column}")),
                    (format!(">= {own}"), format!(">= b.{column}")),
                    (format!("between {own} and {next}"), format!("between b.{column} and c.{column}")),
                    (format!("not in ({own}, {next})"), format!("not in (b.{column}, c.{column})")),
                ] {
                    let sql = format!("select id from words where {constant} {by_constant} order by id");
                    let same = format!("{joined} where {variable} {by_column} order by a.id");
                    let (found, expected) =
                        (run(&session, &sql).await.unwrap(), run(&session, &same).await.unwrap());
                    assert_eq!(found.rows, expected.rows, "{server}: {sql}");
                    let case = format!("case when {constant} {by_constant} then 1 else 0 end");
                    let case = format!(
                        "select id from (select id, {case} c from words limit 100) x where c order by id"
                    );
                    let found = run(&session, &case).await.unwrap();
                    assert_eq!(found.rows, expected.rows, "{server}: {case}");
                }
            }
        }
    }
}
