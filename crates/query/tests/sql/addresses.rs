//! UUID, INET6, INET4 and YEAR of MariaDB: comparisons and orders are the server's.

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::Session;

use crate::fixtures::unpacked;
use crate::sessions::{run, session};

async fn addresses() -> Session {
    let session = session(Method::Threads);
    let options = MountOptions { allow_stale: true, ..MountOptions::default() };
    session.mount_innodb(&unpacked("addresses").join("addresses"), &options).await.unwrap();
    session
}

/// The ids of a query's rows.
async fn ids(session: &Session, sql: &str) -> String {
    let answer = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let ids: Vec<String> = answer.rows.into_iter().map(|row| row[0].clone().unwrap()).collect();
    ids.join(",")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_sort_by_their_stored_bytes() {
    let session = addresses().await;
    for (order, expected) in
        [("u", "5,4,2,3,1"), ("i", "5,1,4,2,3"), ("f", "5,4,1,3,2"), ("u desc", "1,3,2,4,5")]
    {
        assert_eq!(ids(&session, &format!("select id from t order by {order}")).await, expected, "{order}");
    }
    let sql = "select a.id from t a join t b on a.u < b.u where b.id = 1 order by a.id";
    assert_eq!(ids(&session, sql).await, "2,3,4");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn literals_are_compared_as_the_server_compares_them() {
    let session = addresses().await;
    for (condition, expected) in [
        ("u < '20000000-0000-0000-0000-000000000000'", "2,3,4"),
        ("u between '018f2f6e7b7a6c318c5d1b2c3d4e5f60' and '223E4567-E89B-42D3-A456-026655440000'", "2,3,4"),
        ("u in ('123E4567E89B12D3A456426655440000', '018f2f6e-7b7a-7c31-8c5d-1b2c3d4e5f60')", "1,2"),
        ("u <> '123e4567e89b12d3a456426655440000'", "2,3,4"),
        ("i > '::2:4'", "2,3"),
        ("i = '0:0:0:0:0:0:0:1'", "1"),
        ("'::ffff:1.2.3.4' = i", "2"),
        ("f > '2.0.0.0'", "2,3"),
        ("y = 99", "1"),
        ("y = '99'", "1"),
        ("y < 10", "1,2,3,5"),
        ("y = 0", "5"),
        ("y = '0'", ""),
        ("y = '5'", "2"),
        ("y in (99, '70')", "1,3"),
        ("y between 70 and '99'", "1,3"),
        ("y > '69'", ""),
    ] {
        let sql = format!("select id from t where {condition} order by id");
        assert_eq!(ids(&session, &sql).await, expected, "{condition}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_of_addresses_that_are_not_the_servers_are_refused() {
    let session = addresses().await;
    for sql in [
        "select min(u) from t",
        "select greatest(i, '::1') from t",
        "select row_number() over (order by f) from t",
        "select id from t where u = concat('1', '2')",
        "select id from t where u > 'zz'",
    ] {
        assert!(run(&session, sql).await.is_err(), "{sql}");
    }
}
