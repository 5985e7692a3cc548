//! Operators whose memory is full spill, to a folder or a class of a volume, and give the same rows.

use std::path::Path;
use std::time::Duration;

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::{ErrorKind, Session, SessionOptions};
use tanada_volume::Attributes;

use crate::sessions::{SERVERS, run, tpch, tpch_directory, value};
use crate::volumes::{Way, open, volume_with};

const SORTED: &str =
    "select l_orderkey, l_linenumber, l_comment from lineitem order by l_comment, l_orderkey, l_linenumber";
const LIMITED: &str = "select l_orderkey, l_linenumber, l_comment from lineitem order by l_comment, l_orderkey, l_linenumber \
    limit 110000 offset 7";
const WINDOW: &str = "select l_orderkey, l_linenumber, row_number() over (partition by l_suppkey order by \
    l_comment, l_orderkey, l_linenumber) as n \
    from lineitem order by l_orderkey, l_linenumber";
const GROUPS: &str = "select l_orderkey, l_linenumber, count(*) as n, max(l_extendedprice) from lineitem \
    group by l_orderkey, l_linenumber order by l_orderkey, l_linenumber";
const JOINED: &str = "select o_orderkey, l_linenumber, o_comment, l_comment from orders join lineitem on l_orderkey = o_orderkey \
    order by o_orderkey, l_linenumber";

async fn with_memory(memory_bytes: u64, spill: &Path) -> Session {
    let options = SessionOptions {
        executors: 2,
        method: Method::Threads,
        cache_bytes: 16 << 20,
        memory_bytes,
        ..SessionOptions::default()
    };
    let session = Session::new(options).unwrap();
    session.mount_innodb(&tpch_directory(SERVERS[1]), &MountOptions::default()).await.unwrap();
    session.use_database("tpch").unwrap();
    run(&session, &format!("set tanada.spill = '{}'", spill.display())).await.unwrap();
    session
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sorts_windows_and_groups_spill() {
    let folder = tempfile::tempdir().unwrap();
    let ample = with_memory(2 << 30, folder.path()).await;
    let small = with_memory(24 << 20, folder.path()).await;
    for query in [SORTED, LIMITED, WINDOW, GROUPS] {
        let expected = run(&ample, query).await.unwrap();
        let spilled = run(&small, query).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        assert!(spilled.rows == expected.rows, "{query}");
    }
    let plan = run(&small, &format!("explain analyze {SORTED}")).await.unwrap();
    let plan: String = plan.rows.concat().into_iter().flatten().collect();
    assert!(plan.contains("spill_count=") && !plan.contains("spill_count=0"), "{plan}");
    assert_eq!(files(folder.path()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_whose_repartitions_write_come_to_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let session = with_memory(3_000_000, folder.path()).await;
    let query = "select count(*), max(place) from \
        (select row_number() over (partition by l_orderkey order by l_comment) as place from lineitem) as t";
    // Which of its inputs write at the same time is left to chance.
    for _ in 0..12 {
        let found = tokio::time::timeout(Duration::from_secs(120), run(&session, query)).await;
        let found = found.expect("inputs and outputs of a repartition wait for each other").unwrap();
        assert_eq!(found.rows, [[Some("120515".to_string()), Some("7".to_string())]]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_of_more_than_memory_is_counted_in_next_to_none() {
    let folder = tempfile::tempdir().unwrap();
    let session = with_memory(200_000, folder.path()).await;
    run(&session, "set tanada.lookup_join = 'never'").await.unwrap();
    let query = "select count(*) from orders as a join orders as b on a.o_comment = b.o_comment";
    assert_eq!(value(&session, query).await.as_deref(), Some("30044"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_of_sorted_inputs_take_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let ample = with_memory(2 << 30, folder.path()).await;
    let small = with_memory(64 << 20, folder.path()).await;
    run(&small, "set tanada.lookup_join = 'never'").await.unwrap();
    run(&small, "set tanada.sort_merge_join = 'always'").await.unwrap();
    let plan = run(&small, &format!("explain {JOINED}")).await.unwrap();
    let plan: String = plan.rows.concat().into_iter().flatten().collect();
    assert!(plan.contains("MergeJoin") && plan.contains("ExternalSort"), "{plan}");
    let expected = run(&ample, JOINED).await.unwrap();
    assert!(run(&small, JOINED).await.unwrap().rows == expected.rows);
    assert_eq!(files(folder.path()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spills_over_their_limit_are_refused_and_the_session_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let session = with_memory(24 << 20, folder.path()).await;
    run(&session, "set tanada.spill_bytes = '1MiB'").await.unwrap();
    let error = run(&session, SORTED).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Resources, "{error}");
    assert!(error.to_string().contains("tanada.spill_bytes"), "{error}");
    run(&session, "set tanada.spill_bytes = 0").await.unwrap();
    assert_eq!(run(&session, SORTED).await.unwrap().rows.len(), 120_515);
    assert_eq!(files(folder.path()), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spills_in_a_class_of_a_volume_leave_no_object_behind() {
    let volume = volume_with(&[("data", tpch_directory(SERVERS[1]))], Way::Adopt).await;
    {
        // What a killed process would have left.
        let directory = open(volume.path()).await;
        let left = directory.volume().create_object("tanada.spill.7", &Attributes::default()).unwrap();
        left.write_bytes(0, &[7; 4096]).await.unwrap();
        directory.close().await.unwrap();
    }
    let options = SessionOptions {
        executors: 2,
        method: Method::Threads,
        cache_bytes: 16 << 20,
        memory_bytes: 24 << 20,
        ..SessionOptions::default()
    };
    let session = Session::new(options).unwrap();
    session.mount_volume(volume.path(), &MountOptions::default()).await.unwrap();
    session.use_database("tpch").unwrap();
    let place = volume.path().display().to_string();
    let error = run(&session, &format!("set tanada.spill = 'volume:{place}:none'")).await.unwrap_err();
    assert!(error.to_string().contains("it has fast, slow"), "{error}");
    run(&session, &format!("set tanada.spill = 'volume:{place}:fast'")).await.unwrap();
    assert_eq!(run(&session, SORTED).await.unwrap().rows.len(), 120_515);
    session.close().await.unwrap();
    let directory = open(volume.path()).await;
    let names: Vec<String> = directory.volume().objects().iter().map(|object| object.name()).collect();
    assert!(!names.iter().any(|name| name.starts_with("tanada.spill.")), "{names:?}");
    directory.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_that_cannot_be_written_are_refused() {
    let session = tpch(SERVERS[0], Method::Threads).await;
    for (place, expected) in [
        ("/no/such/folder", "is not a folder"),
        ("/proc", "/proc"),
        ("volume:/no/such/volume", "no volume /no/such/volume is mounted"),
    ] {
        let error = run(&session, &format!("set tanada.spill = '{place}'")).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    assert_eq!(value(&session, "select count(*) from nation").await.as_deref(), Some("25"));
}
