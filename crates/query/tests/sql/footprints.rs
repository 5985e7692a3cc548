//! Footprints: what a plan says that it is going to read, before anything runs.

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_placement::Pattern;
use tanada_query::relation::FileFootprint;
use tanada_query::{ErrorKind, Session};

use crate::sessions::{SERVERS, mount_cases, session, tpch_directory};

async fn mounted() -> Session {
    let session = session(Method::Uring);
    session.mount_innodb(&tpch_directory(SERVERS[1]), &MountOptions::default()).await.unwrap();
    session.use_database("tpch").unwrap();
    session
}

fn pages(footprint: &[FileFootprint]) -> u64 {
    footprint.iter().map(|part| part.pages).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_footprint_names_index_columns_extents_and_pattern() {
    let session = mounted().await;
    let found = session.footprint("select sum(o_totalprice) from orders where o_orderkey > 9").await.unwrap();
    let [orders] = found.as_slice() else { panic!("{found:?}") };
    assert!(orders.path.ends_with("tpch/orders.ibd") && orders.index == "orders.PRIMARY", "{orders:?}");
    assert_eq!(orders.columns, ["o_totalprice", "o_orderkey"]);
    assert!(matches!(orders.pattern, Pattern::SequentialScan | Pattern::IndexRange), "{orders:?}");
    let bytes: u64 = orders.extents.iter().map(|extent| extent.len).sum();
    assert!(orders.pages > 50 && orders.pages * u64::from(orders.page_bytes) <= bytes, "{orders:?}");
    assert!(orders.extents.windows(2).all(|pair| pair[0].offset + pair[0].len < pair[1].offset));
    // Nothing has run.
    let by_key = session.footprint("select o_totalprice from orders where o_orderkey = 7").await.unwrap();
    assert!(matches!(by_key[0].pattern, Pattern::RandomLookUps { expected: 1 }), "{by_key:?}");
    let explained =
        session.footprint("explain select o_totalprice from orders where o_orderkey = 7").await.unwrap();
    assert_eq!(explained, by_key);
    let error = session.footprint("show tables").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn footprints_leave_out_pages_beyond_a_limit() {
    let session = mounted().await;
    session.set("tanada.lookup_join", "always").await.unwrap();
    let of = async |sql: &str| pages(&session.footprint(sql).await.unwrap());
    let all = of("select * from lineitem").await;
    assert!(all > 200, "{all}");
    let join = "select o_orderdate, l_quantity from lineitem join orders on o_orderkey = l_orderkey";
    for few in [
        "select * from lineitem limit 5",
        "select l_quantity + 1 from lineitem limit 3 offset 4",
        "select * from (select * from lineitem limit 5) as t order by l_partkey",
        "select * from lineitem where l_quantity < 30 limit 5",
        &format!("{join} limit 5"),
    ] {
        let pages = of(few).await;
        assert!(pages > 0 && pages <= 16, "{few}: {pages} of {all}");
    }
    for whole in [
        "select * from lineitem order by l_comment limit 5",
        "select count(*) from lineitem limit 1",
        "select l_comment, count(*) from lineitem group by l_comment limit 5",
    ] {
        let (without, _) = whole.split_once(" limit").unwrap();
        assert_eq!(of(whole).await, of(without).await, "{whole}");
    }
    assert!(of("select * from lineitem limit 1000000").await >= all);
    assert!(of(join).await > all / 2);
}

/// They lay in the extents, and no read of them was expected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_do_not_fit_their_rows_are_expected_where_they_are_read() {
    for (server, _) in SERVERS {
        let session = session(Method::Uring);
        mount_cases(&session, server).await;
        let of = async |sql: &str| pages(&session.footprint(sql).await.unwrap());
        let (rows, values) = (
            of("select count(*) from c_dynamic.all_types where id + 0 > 5").await,
            of("select * from c_dynamic.all_types").await,
        );
        assert!(rows < 100 && values > 500, "{server}: {rows} and {values} pages");
        let few = of("select * from c_dynamic.all_types limit 3").await;
        assert!(few < 10, "{server}: {few} pages");
    }
}
