//! What a session does beyond answering: reports, cancelling, the cache, default databases.

use futures::StreamExt;
use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::{ErrorKind, Session};

use crate::sessions::{METHODS, SERVERS, run, session, tpch, tpch_directory, value};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_database_is_the_default() {
    let session = session(Method::Threads);
    let error = run(&session, "select * from nation").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("no database is selected"), "{error}");
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    let folder = tpch_directory(SERVERS[1]).join("tpch_pc");
    let (databases, _) = session.mount_innodb(&folder, &options).await.unwrap();
    assert_eq!(databases, ["tpch_pc"]);
    assert_eq!(session.database().as_deref(), Some("tpch_pc"));
    assert_eq!(value(&session, "select count(*) from orders").await.as_deref(), Some("30000"));
    let error = session.mount_innodb(&folder, &options).await.unwrap_err();
    assert!(error.to_string().contains("mounted already"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_count_what_was_read() {
    for method in METHODS {
        let session = tpch(SERVERS[0], method).await;
        let sql = "select sum(l_quantity) from lineitem where l_partkey = 17";
        run(&session, sql).await.unwrap();
        session.clear_cache();
        let cold = run(&session, sql).await.unwrap().report;
        assert_eq!(cold.rows, 1);
        assert!(cold.ios > 0 && cold.bytes >= cold.ios * 4096, "{cold:?}");
        assert!(cold.depth_max >= 1 && cold.depth_mean >= 1.0, "{cold:?}");
        let warm = run(&session, sql).await.unwrap().report;
        assert!(warm.ios < cold.ios && warm.cache_hits > 0, "{warm:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_order_has_one_io_in_flight() {
    let session = tpch(SERVERS[1], Method::Threads).await;
    let sql =
        "select count(*), sum(l_quantity) from part join lineitem on l_partkey = p_partkey where p_size < 5";
    run(&session, "set tanada.execution = 'in_order'").await.unwrap();
    let in_order = run(&session, sql).await.unwrap().report;
    assert_eq!(in_order.depth_max, 1, "{in_order:?}");
    session.clear_cache();
    run(&session, "set tanada.execution = 'out_of_order'").await.unwrap();
    let out_of_order = run(&session, sql).await.unwrap().report;
    assert!(out_of_order.depth_max > 1, "{out_of_order:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_query_leaves_nothing_behind() {
    let session = tpch(SERVERS[0], Method::Uring).await;
    for _ in 0..10 {
        let mut result = session.execute("select * from lineitem").await.unwrap();
        assert!(result.stream().next().await.unwrap().unwrap().num_rows() > 0);
        result.cancel();
        assert!(result.stream().next().await.is_none());
    }
    assert_eq!(value(&session, "select count(*) from lineitem").await.as_deref(), Some("120515"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_run_side_by_side() {
    let session = tpch(SERVERS[0], Method::Uring).await;
    let count = |table: &'static str| {
        let session: Session = session.clone();
        tokio::spawn(async move { value(&session, &format!("select count(*) from {table}")).await })
    };
    let tasks: Vec<_> = ["lineitem", "orders", "customer", "lineitem"].into_iter().map(count).collect();
    let mut counts = Vec::new();
    for task in tasks {
        counts.push(task.await.unwrap().unwrap());
    }
    assert_eq!(counts, ["120515", "30000", "3000", "120515"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_hold_for_the_session() {
    let session = tpch(SERVERS[0], Method::Threads).await;
    session.set("tanada.execution", "in_order").await.unwrap();
    let shown =
        run(&session, "select value from information_schema.df_settings where name = 'tanada.execution'")
            .await;
    assert_eq!(shown.unwrap().rows, [[Some("in_order".to_string())]]);
    let error = session.set("max_connections", "5").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
