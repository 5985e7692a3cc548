//! `EXPLAIN` says which access is taken and why; the choice follows the predicates.

use tanada_io::Method;
use tanada_query::Session;

use crate::sessions::{SERVERS, run, tpch, value};

async fn explained(session: &Session, sql: &str) -> String {
    let answer = run(session, &format!("explain {sql}")).await.unwrap();
    let physical = answer.rows.iter().find(|row| row[0].as_deref() == Some("physical_plan"));
    physical.unwrap()[1].clone().unwrap()
}

async fn expect(session: &Session, sql: &str, access: &str) {
    let plan = explained(session, sql).await;
    assert!(plan.contains(access), "{sql}: no '{access}' in\n{plan}");
    assert!(plan.contains("why=["), "{plan}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accesses_follow_predicates() {
    for server in SERVERS {
        let session = tpch(server, Method::Threads).await;
        let cases = [
            ("select * from lineitem", "access=full scan"),
            ("select * from orders where o_orderkey = 7", "access=look-up in PRIMARY"),
            ("select * from orders where o_orderkey in (7, 32, 33)", "access=3 look-ups in PRIMARY"),
            ("select * from orders where o_orderkey < 1000", "access=range of PRIMARY"),
            ("select * from lineitem where l_partkey = 7", "access=look-up in i_l_partkey"),
            (
                "select l_shipdate from lineitem where l_shipdate > '1998-11-01'",
                "access=index-only range of i_l_shipdate",
            ),
            ("select count(*) from lineitem", "access=index-only scan of"),
            ("select * from lineitem where l_quantity = 1", "access=full scan"),
            ("select * from lineitem where l_shipdate > '1992-03-01'", "access=full scan"),
        ];
        for (sql, access) in cases {
            expect(&session, sql, access).await;
        }
        run(&session, "set tanada.index_scan = 'never'").await.unwrap();
        expect(&session, "select * from orders where o_orderkey = 7", "access=full scan").await;
        run(&session, "set tanada.index_scan = 'always'").await.unwrap();
        expect(
            &session,
            "select * from lineitem where l_shipdate > '1992-03-01'",
            "access=bookmarks of i_l_shipdate",
        )
        .await;
    }
}

/// Few and many rows, of one value and of ranges: a sample of pages would say thousands for the few.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_an_index_are_estimated_by_its_tree() {
    for server in SERVERS {
        let session = tpch(server, Method::Threads).await;
        for condition in [
            "l_partkey = 5",
            "l_partkey in (5, 6, 4000)",
            "l_partkey < 20",
            "l_orderkey = 7",
            "l_orderkey between 1000 and 1010",
            "l_shipdate > '1998-11-01'",
            "l_shipdate > '1995-06-17'",
            "l_partkey = 1000000",
        ] {
            let sql = format!("select * from lineitem where {condition}");
            let plan = explained(&session, &sql).await;
            let (_, behind) = plan.split_once("estimated_rows=").unwrap();
            let estimated: f64 = behind.split(',').next().unwrap().parse().unwrap();
            let counted = value(&session, &sql.replace('*', "count(*)")).await.unwrap();
            let counted: f64 = counted.parse().unwrap();
            assert!((estimated + 1.0) / (counted + 1.0) < 1.3, "{condition}: {estimated}, {counted}\n{plan}");
            assert!((counted + 1.0) / (estimated + 1.0) < 1.3, "{condition}: {estimated}, {counted}\n{plan}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_limits_and_columns_are_pushed_down() {
    let session = tpch(SERVERS[0], Method::Threads).await;
    let plan = explained(&session, "select l_quantity from lineitem where l_tax = 0.08 limit 7").await;
    assert!(plan.contains("columns=[l_quantity]"), "{plan}");
    assert!(plan.contains("filters=[l_tax@7 = "), "{plan}");
    assert!(plan.contains("limit=7"), "{plan}");
    assert!(!plan.contains("FilterExec"), "{plan}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn analyze_shows_what_was_read() {
    let session = tpch(SERVERS[0], Method::Threads).await;
    let answer = run(&session, "explain analyze select sum(l_quantity) from lineitem").await.unwrap();
    let plan = answer.rows[0][1].clone().unwrap();
    for metric in
        ["output_rows=", "elapsed_compute=", "ios=", "io_bytes=", "cache_hits=", "io_wait=", "io_depth="]
    {
        assert!(plan.contains(metric), "no {metric} in\n{plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_ends_the_scan_early() {
    let session = tpch(SERVERS[0], Method::Threads).await;
    let all = run(&session, "select l_comment from lineitem").await.unwrap().report;
    let some = run(&session, "select l_comment from lineitem limit 10").await.unwrap().report;
    assert_eq!(some.rows, 10);
    assert!(some.bytes < all.bytes, "{some:?} {all:?}");
    assert_eq!(
        value(&session, "select count(*) from (select 1 from lineitem limit 120000) as t").await.as_deref(),
        Some("120000")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_that_compute_for_long_can_be_interrupted() {
    let session = tpch(SERVERS[0], Method::Threads).await;
    let sql = "select count(*) from lineitem a, lineitem b where a.l_comment < b.l_comment";
    let plan = explained(&session, sql).await;
    let lines: Vec<&str> = plan.lines().map(str::trim).collect();
    let join = lines.iter().position(|line| line.starts_with("NestedLoopJoinExec")).unwrap();
    assert!(lines[join - 1].starts_with("CooperativeExec"), "{plan}");
    let slices = lines[join..].iter().find_map(|line| line.strip_prefix("SlicesExec: rows="));
    let rows: usize = slices.unwrap().parse().unwrap();
    assert!((64..2048).contains(&rows), "{plan}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_predicted_and_its_estimates_stand_beside_what_was_counted() {
    let session = tpch(SERVERS[0], Method::Threads).await;
    let row = async |sql: &str| {
        let answer = run(&session, sql).await.unwrap();
        let row = answer.rows.iter().find(|row| row[0].as_deref() == Some("prediction"));
        row.and_then(|row| row[1].clone()).unwrap()
    };
    let query =
        "select count(*) from orders join lineitem on l_orderkey = o_orderkey where o_orderkey < 1000";
    let predicted = row(&format!("explain {query}")).await;
    assert!(predicted.contains(" ms cold: I/O ") && predicted.contains("media: disk "), "{predicted}");
    let analyzed = row(&format!("explain analyze {query}")).await;
    assert!(analyzed.contains("; it took ") && analyzed.contains("scan of orders: "), "{analyzed}");
    let rows = value(&session, "select count(*) from orders where o_orderkey < 1000").await.unwrap();
    let scan = analyzed.lines().find(|line| line.starts_with("scan of orders: ")).unwrap();
    assert!(scan.ends_with(&format!(" estimated, {rows} counted")), "{scan}");
    session.set("tanada.sort_merge_join", "always").await.unwrap();
    session.set("tanada.lookup_join", "never").await.unwrap();
    let predicted = row(&format!("explain {query}")).await;
    assert!(predicted.contains("5(B(R)+B(S))"), "{predicted}");
}
