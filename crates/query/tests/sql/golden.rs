//! All TPC-H queries and the out-of-order query give the servers' answers, on both servers' files, in both execution
//! modes.

use std::path::PathBuf;

use tanada_io::Method;

use crate::answers::{assert_alike, read};
use crate::sessions::{EXECUTIONS, SERVERS, run, tpch};

fn golden() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tpch-sf0.02-golden")
}

fn queries() -> Vec<String> {
    let mut names: Vec<String> = (1..=22).map(|number| format!("q{number}")).collect();
    names.push("ooode".to_string());
    names
}

async fn all_queries(server: (&str, &str), execution: &str, settings: &[&str]) {
    let session = tpch(server, Method::Uring).await;
    run(&session, &format!("set tanada.execution = '{execution}'")).await.unwrap();
    for setting in settings {
        run(&session, setting).await.unwrap();
    }
    for name in queries() {
        let sql = std::fs::read_to_string(golden().join(format!("sql/{name}.sql"))).unwrap();
        let what = format!("{name} on {} {execution} {settings:?}", server.0);
        let statements = tanada_query::Session::split(&sql).unwrap();
        assert_eq!(statements.len(), 1, "{what}");
        let answer = run(&session, &statements[0]).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let (header, rows) = read(&golden().join(format!("tsv/{name}.tsv")));
        assert_eq!(answer.header, header, "{what}");
        assert_alike(answer.rows, rows, &what);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_out_of_order() {
    all_queries(SERVERS[0], EXECUTIONS[0], &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mysql_in_order() {
    all_queries(SERVERS[0], EXECUTIONS[1], &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_out_of_order() {
    all_queries(SERVERS[1], EXECUTIONS[0], &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_in_order() {
    all_queries(SERVERS[1], EXECUTIONS[1], &[]).await;
}

/// Whatever the cost model would say: indexes wherever they can be used, and nowhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_everywhere() {
    let settings = ["set tanada.index_scan = 'always'", "set tanada.lookup_join = 'always'"];
    all_queries(SERVERS[0], EXECUTIONS[0], &settings).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_everywhere_in_order() {
    let settings = ["set tanada.index_scan = 'always'", "set tanada.lookup_join = 'always'"];
    all_queries(SERVERS[1], EXECUTIONS[1], &settings).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_nowhere() {
    let settings = ["set tanada.index_scan = 'never'", "set tanada.lookup_join = 'never'"];
    all_queries(SERVERS[1], EXECUTIONS[0], &settings).await;
}

/// Joins of sorted inputs wherever they give the same rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sort_merge_joins_everywhere() {
    let settings = ["set tanada.sort_merge_join = 'always'", "set tanada.lookup_join = 'never'"];
    all_queries(SERVERS[0], EXECUTIONS[0], &settings).await;
}
