//! Rules of both servers, each with its source, an expression and the answers of MySQL 9.7 and MariaDB 10.11:
//! `rules.tsv`. Where the answers differ, Tanada's depends on `tanada.server`.

use tanada_io::Method;
use tanada_query::{Session, SessionOptions};

use crate::asking::ask;
use crate::printed::{Answer, ask_server};
use crate::server::{Kind, Server};

/// Rules that are refused here.
const REFUSED: [&str; 2] = ["hex(binary 'a' | binary 'b')", "timediff('2024-01-02', '2024-01-01')"];

/// An answer where the server has an error.
const ERROR: &str = "ERROR";

struct Rule {
    states: &'static str,
    expression: &'static str,
    mysql: &'static str,
    mariadb: &'static str,
}

fn rules() -> Vec<Rule> {
    let lines = include_str!("rules.tsv").lines().filter(|line| !line.starts_with('#'));
    let rule = |line: &'static str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [states, source, expression, mysql, mariadb] = fields[..] else {
            panic!("not five fields: {line}")
        };
        assert!(!source.is_empty(), "{states}: a rule has a source");
        Rule { states, expression, mysql, mariadb }
    };
    lines.map(rule).collect()
}

fn is_answer(answer: &Answer, expected: &str) -> bool {
    match answer {
        Answer::Error(_) => expected == ERROR,
        Answer::Rows { rows, .. } => rows.len() == 1 && rows[0] == expected,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_hold_here_by_server() {
    let mut wrong = Vec::new();
    for server in ["mysql", "mariadb"] {
        let options = SessionOptions { executors: 1, method: Method::Threads, ..SessionOptions::default() };
        let session = Session::new(options).unwrap();
        ask(&session, &format!("set tanada.server = '{server}'")).await;
        ask(&session, "set time_zone = '+00:00'").await;
        for rule in rules() {
            let expected = if server == "mysql" { rule.mysql } else { rule.mariadb };
            let found = ask(&session, &format!("select {} as v", rule.expression)).await;
            let is_refused = matches!(found, Answer::Error(_)) && REFUSED.contains(&rule.expression);
            if !is_refused && !is_answer(&found, expected) {
                wrong.push(format!(
                    "{server}: {}: {} is {expected}, not {found:?}",
                    rule.states, rule.expression
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} rules:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn rules_are_those_of_mariadb() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(Kind::MariaDb, folder.path());
    let rules = rules();
    let queries: Vec<String> = rules.iter().map(|rule| format!("select {} as v", rule.expression)).collect();
    assert!(server.run("set global time_zone = '+00:00'; create database rules;").refusals.is_empty());
    let answers = ask_server(&server, "rules", &queries);
    for (rule, answer) in rules.iter().zip(&answers) {
        assert!(is_answer(answer, rule.mariadb), "{}: {}: {answer:?}", rule.states, rule.expression);
    }
}
