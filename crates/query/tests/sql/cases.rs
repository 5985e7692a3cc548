//! All case tables read as the servers read them: every type at its extremes, all row formats, partitions, instant
//! columns.

use tanada_io::Method;

use crate::answers::{assert_same_rows, read};
use crate::fixtures::unpacked;
use crate::sessions::{EXECUTIONS, METHODS, SERVERS, mount_cases, run, session};

async fn all_tables(server: &str, method: Method, execution: &str) {
    let session = session(method);
    let databases = mount_cases(&session, server).await;
    run(&session, &format!("set tanada.execution = '{execution}'")).await.unwrap();
    let mut tables = 0;
    for database in databases {
        session.use_database(&database).unwrap();
        for row in run(&session, "show tables").await.unwrap().rows {
            let table = row[0].clone().unwrap();
            let what = format!("{server}/{database}.{table} {method:?} {execution}");
            let (mut header, expected) =
                read(&unpacked("cases").join(format!("{server}/{database}/{table}.tsv")));
            if header == [""] {
                // The server prints nothing at all for a table without rows.
                let described = run(&session, &format!("describe `{table}`")).await.unwrap();
                header = described.rows.into_iter().map(|row| row[0].clone().unwrap()).collect();
            }
            let columns: Vec<String> = header
                .iter()
                .map(|name| match name.strip_suffix("__hex") {
                    Some(name) => format!("hex(`{name}`) as `{name}__hex`"),
                    None => format!("`{name}`"),
                })
                .collect();
            let sql = format!("select {} from `{table}`", columns.join(", "));
            let answer = run(&session, &sql).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(answer.header, header, "{what}");
            assert_eq!(answer.report.rows, expected.len() as u64, "{what}");
            assert_same_rows(answer.rows, expected, &what);

            let plain: Vec<&str> = header.iter().map(|name| name.trim_end_matches("__hex")).collect();
            let all = run(&session, &format!("select * from `{table}`")).await.unwrap();
            assert_eq!(all.header, plain, "{what}");
            tables += 1;
        }
    }
    assert!(tables >= 33, "only {tables} tables in {server}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_of_both_servers() {
    for (server, _) in SERVERS {
        all_tables(server, Method::Uring, EXECUTIONS[0]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_by_all_methods_and_in_order() {
    for method in METHODS {
        all_tables(SERVERS[0].0, method, EXECUTIONS[1]).await;
    }
}
