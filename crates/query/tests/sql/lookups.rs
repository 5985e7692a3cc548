//! Look-up joins give what hash joins give: all join types, keys of all kinds, both execution modes.

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::{Session, SessionOptions};

use crate::sessions::{EXECUTIONS, SERVERS, mount_cases, run, session, tpch, tpch_directory};

/// Joins over TPC-H; the index that must be searched where look-ups are forced, or none if only a hash join is right.
const JOINS: [(&str, Option<&str>); 19] = [
    (
        "select l_orderkey, l_linenumber, o_totalprice from lineitem join orders on o_orderkey = l_orderkey where l_partkey < 20",
        Some("orders.PRIMARY"),
    ),
    (
        "select p_name, l_orderkey, l_linenumber from part join lineitem on l_partkey = p_partkey where p_size = 7 and l_quantity > 30",
        Some("lineitem.i_l_partkey + rows"),
    ),
    (
        "select c_custkey, o_orderkey from customer left join orders on o_custkey = c_custkey where c_custkey < 200",
        Some("orders.i_o_custkey"),
    ),
    (
        "select c_custkey, o_orderkey, o_comment from customer left join orders on o_custkey = c_custkey and o_totalprice > c_acctbal * 30 where c_custkey < 200",
        Some("orders.i_o_custkey + rows"),
    ),
    (
        "select o_orderkey from orders where o_orderkey < 500 and exists (select 1 from lineitem where l_orderkey = o_orderkey)",
        Some("lineitem."),
    ),
    (
        "select o_orderkey from orders where o_orderkey < 500 and not exists (select 1 from lineitem where l_orderkey = o_orderkey and l_quantity > 45)",
        Some("lineitem.PRIMARY"),
    ),
    (
        "select o_orderkey from orders where o_orderkey < 500 and not exists (select 1 from lineitem where l_orderkey = o_orderkey and l_shipdate > o_orderdate + interval '90' day)",
        Some("lineitem.PRIMARY"),
    ),
    (
        "select o_orderkey from orders where o_orderkey < 500 and (o_totalprice > 200000 or exists (select 1 from lineitem where l_orderkey = o_orderkey and l_tax = 0.08))",
        Some("lineitem.PRIMARY"),
    ),
    (
        "select ps_partkey, ps_suppkey, l_orderkey from lineitem join partsupp on ps_partkey = l_partkey and ps_suppkey = l_suppkey where l_orderkey < 300",
        Some("partsupp."),
    ),
    (
        "select o_orderkey, l_partkey from orders join lineitem on l_orderkey = o_orderkey and l_linenumber = 2 where o_custkey < 100",
        Some("lineitem.PRIMARY"),
    ),
    (
        "select a.p_partkey, b.p_name from part a join part b on b.p_partkey = a.p_partkey + 1 where a.p_size = 3",
        Some("part.PRIMARY"),
    ),
    // Wider than the key: most of them are no part's number, nor any that its column holds.
    (
        "select a.p_partkey, b.p_name from part a left join part b on b.p_partkey = a.p_partkey * 1000 - 3000 where a.p_partkey < 3000",
        Some("part.PRIMARY"),
    ),
    (
        "select a.p_partkey, b.p_name from part a join part b on b.p_partkey = cast(a.p_partkey - 2 as decimal(20, 0)) where a.p_size = 3",
        Some("part.PRIMARY"),
    ),
    (
        "select a.l_orderkey, b.l_orderkey, b.l_linenumber from lineitem a join lineitem b on b.l_shipdate = a.l_commitdate where a.l_orderkey < 20",
        Some("lineitem.i_l_shipdate"),
    ),
    (
        "select c_name, o_orderdate, l_quantity, p_brand from customer join orders on o_custkey = c_custkey join lineitem on l_orderkey = o_orderkey join part on p_partkey = l_partkey where c_custkey < 40",
        Some("part.PRIMARY"),
    ),
    (
        "select count(*) from customer join orders on o_custkey = c_custkey where c_nationkey = 3",
        Some("orders.i_o_custkey,"),
    ),
    (
        "select n_name, s_name from nation join supplier on s_nationkey = n_nationkey where n_regionkey = 2",
        Some("supplier.i_s_nationkey + rows"),
    ),
    (
        "select x.m, o_comment from (select min(l_orderkey) as m from lineitem group by l_partkey) as x join orders on o_orderkey = x.m where x.m < 9000",
        Some("orders.PRIMARY"),
    ),
    ("select c_custkey from customer where c_custkey not in (select o_custkey from orders)", None),
];

async fn sorted(session: &Session, sql: &str) -> Vec<Vec<Option<String>>> {
    let mut rows = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")).rows;
    rows.sort();
    rows
}

async fn plan(session: &Session, sql: &str) -> String {
    let rows = run(session, &format!("explain {sql}")).await.unwrap().rows;
    rows.iter().find(|row| row[0].as_deref() == Some("physical_plan")).unwrap()[1].clone().unwrap()
}

async fn force(session: &Session, lookup_join: &str, execution: &str) {
    run(session, &format!("set tanada.lookup_join = '{lookup_join}'")).await.unwrap();
    run(session, &format!("set tanada.execution = '{execution}'")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_are_those_of_the_hash_join() {
    for server in SERVERS {
        let session = tpch(server, Method::Threads).await;
        for (sql, index) in JOINS {
            force(&session, "never", EXECUTIONS[0]).await;
            let expected = sorted(&session, sql).await;
            assert!(!expected.is_empty(), "{sql}");
            for execution in EXECUTIONS {
                force(&session, "always", execution).await;
                let plan = plan(&session, sql).await;
                if let Some(index) = index {
                    assert!(
                        plan.contains(&format!("lookup={index}")),
                        "{sql}: {index} is not searched in\n{plan}"
                    );
                }
                assert!(
                    sorted(&session, sql).await == expected,
                    "{sql}: other rows {execution} than by hashing\n{plan}"
                );
            }
        }
    }
}

/// Keys of the case tables: strings, descending indexes, unique keys as clustered ones, partitions, hidden row ids.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_all_kinds() {
    let joins = [
        "select a.k, b.n from c_dynamic.str_pk a join c_dynamic.str_pk b on b.k = a.k",
        "select a.k, b.k from c_dynamic.str_pk a join c_dynamic.str_pk b on b.n = a.n",
        "select a.id, b.id from c_dynamic.desc_idx a join c_dynamic.desc_idx b on b.a = a.a and b.b = a.b",
        "select a.id, b.id, b.b from c_dynamic.desc_idx a left join c_dynamic.desc_idx b on b.id = a.id + 1",
        "select a.u, b.b from c_dynamic.uniq_notnull a join c_dynamic.uniq_notnull b on b.u = a.u where a.u < 700",
        "select a.id, b.id from c_dynamic.deleted_rows a join c_dynamic.deleted_rows b on b.id = a.id",
    ];
    for server in SERVERS {
        let session = session(Method::Threads);
        mount_cases(&session, server.0).await;
        for sql in joins {
            force(&session, "never", EXECUTIONS[0]).await;
            let expected = sorted(&session, sql).await;
            force(&session, "always", EXECUTIONS[0]).await;
            let found = sorted(&session, sql).await;
            assert!(
                found == expected,
                "{sql}: {} rows by look-up, {} by hashing",
                found.len(),
                expected.len()
            );
        }
    }
}

/// The query of the out-of-order paper is a look-up join by cost, and EXPLAIN says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_keys_are_looked_up_by_cost() {
    let golden =
        std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tpch-sf0.02-golden/sql");
    let sql = std::fs::read_to_string(golden.join("ooode.sql")).unwrap();
    let sql = sql.trim().trim_end_matches(';');
    for server in SERVERS {
        let session = tpch(server, Method::Threads).await;
        for execution in EXECUTIONS {
            force(&session, "auto", execution).await;
            let plan = plan(&session, sql).await;
            assert!(plan.contains("lookup=lineitem.i_l_partkey + rows"), "{execution}\n{plan}");
            assert!(plan.contains("outer rows x") && plan.contains("hash "), "{plan}");
        }
        force(&session, "auto", EXECUTIONS[0]).await;
        let all = plan(
            &session,
            "select count(*) from part join lineitem on l_partkey = p_partkey where l_tax > 0.01",
        )
        .await;
        assert!(all.contains("HashJoinExec"), "{all}");
        force(&session, "never", EXECUTIONS[0]).await;
        let plan = plan(&session, sql).await;
        assert!(plan.contains("HashJoinExec"), "{plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn analyze_shows_the_lookups() {
    let session = tpch(SERVERS[0], Method::Threads).await;
    force(&session, "always", EXECUTIONS[0]).await;
    let sql = "explain analyze select sum(l_quantity) from part join lineitem on l_partkey = p_partkey where p_size = 7";
    let plan = run(&session, sql).await.unwrap().rows[0][1].clone().unwrap();
    let join = plan.lines().find(|line| line.contains("OutOfOrderLookupJoinExec")).unwrap();
    for metric in
        ["output_rows=", "outer_rows=", "lookups=", "found_rows=", "ios=", "io_depth=", "elapsed_compute="]
    {
        assert!(join.contains(metric), "no {metric} in\n{join}");
    }
}

/// Ten tables, each looked up by the one before: their rows in flight share one budget, and the query ends with what
/// hash joins give.
const CHAIN: &str = "select count(*), max(p_name), max(o_comment), max(c_comment), max(ps_comment), min(s_name), \
    sum(l_quantity), max(a.n_name), min(b.n_name), max(x.r_name), min(y.r_name) \
    from lineitem join orders on o_orderkey = l_orderkey join customer on c_custkey = o_custkey \
    join nation a on a.n_nationkey = c_nationkey join region x on x.r_regionkey = a.n_regionkey \
    join partsupp on ps_partkey = l_partkey and ps_suppkey = l_suppkey join part on p_partkey = ps_partkey \
    join supplier on s_suppkey = ps_suppkey join nation b on b.n_nationkey = s_nationkey \
    join region y on y.r_regionkey = b.n_regionkey where l_orderkey < 6000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chain_of_ten_tables_shares_one_budget() {
    let options = SessionOptions {
        executors: 2,
        method: Method::Threads,
        cache_bytes: 16 << 20,
        memory_bytes: 24 << 20,
        ..SessionOptions::default()
    };
    let session = Session::new(options).unwrap();
    session.mount_innodb(&tpch_directory(SERVERS[1]), &MountOptions::default()).await.unwrap();
    session.use_database("tpch").unwrap();
    force(&session, "never", EXECUTIONS[0]).await;
    let expected = sorted(&session, CHAIN).await;
    run(&session, "set tanada.lookup_memory_bytes = 4194304").await.unwrap();
    force(&session, "always", EXECUTIONS[0]).await;
    let plan = plan(&session, CHAIN).await;
    assert!(plan.matches("OutOfOrderLookupJoinExec").count() >= 9, "{plan}");
    assert_eq!(sorted(&session, CHAIN).await, expected, "{plan}");
}
