//! Known faults of DataFusion do not show: each kind has a file of statements with the servers' answers
//! (`docs/datafusion.md` lists them), run over both servers' files.

use std::path::PathBuf;

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::Session;

use crate::corpus::run_file;
use crate::fixtures::unpacked;
use crate::sessions::{EXECUTIONS, SERVERS, run, session};

/// A session over a server's tables.
async fn faults(server: &str) -> Session {
    let session = session(Method::Threads);
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    session.mount_innodb(&unpacked("faults").join(server).join("faults"), &options).await.unwrap();
    let kind = server.split('-').next().unwrap();
    run(&session, &format!("set tanada.server = '{kind}'")).await.unwrap();
    session
}

async fn statements_of(file: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/faults").join(file);
    let mut failures = Vec::new();
    for (server, _) in SERVERS {
        let session = faults(server).await;
        for execution in EXECUTIONS {
            failures.extend(run_file(&session, &path, server, execution).await);
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_decide_nothing_where_they_do_not_hold() {
    statements_of("keys.slt").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grouped_queries_show_a_row_of_the_group() {
    statements_of("grouping.slt").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subqueries_know_unknown() {
    statements_of("subqueries.slt").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_operations_count_copies() {
    statements_of("set_operations.slt").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn merged_columns_have_the_value_of_either_side() {
    statements_of("using.slt").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn negative_zero_is_zero() {
    statements_of("zero.slt").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn simplification_keeps_null() {
    statements_of("simplification.slt").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_count_rows_in_order() {
    statements_of("limits.slt").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregates_are_the_servers() {
    statements_of("aggregates.slt").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn windows_are_the_servers() {
    statements_of("windows.slt").await;
}
