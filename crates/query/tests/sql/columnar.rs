//! Columnar mirrors: the same answers as without them, and never those of files that have changed since.

use std::path::{Path, PathBuf};

use tanada_innodb::MountOptions;
use tanada_io::Method;
use tanada_query::Session;

use crate::corpus;
use crate::fixtures::unpacked;
use crate::sessions::{EXECUTIONS, SERVERS, mount_cases, run, session, tpch, tpch_directory, value};
use crate::volumes::{Way, volume_with};

/// A query whose columns are those of every test.
const QUERY: &str =
    "select count(*), sum(l_orderkey), sum(l_extendedprice), min(l_shipdate), max(l_comment) from lineitem";
/// The file of its table in a data directory.
const FILE: &str = "tpch/lineitem.ibd";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Copies a data directory.
fn copied(from: &Path) -> tempfile::TempDir {
    let folder = folder();
    copy_into(from, folder.path());
    folder
}

fn copy_into(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        let target = to.join(name);
        match path.is_dir() {
            true => {
                std::fs::create_dir(&target).unwrap();
                copy_into(&path, &target);
            }
            false => drop(std::fs::copy(&path, &target).unwrap()),
        }
    }
}

/// A session over a data directory that keeps mirrors in `cache`, of small tables, too.
async fn over(data: &Path, cache: &Path) -> Session {
    let session = session(Method::Uring);
    session.mount_innodb(data, &MountOptions::default()).await.unwrap();
    session.use_database("tpch").unwrap();
    keep(&session, cache).await;
    session
}

async fn keep(session: &Session, cache: &Path) {
    session.keep_mirrors(cache.to_str().unwrap()).await.unwrap();
    run(session, "set tanada.columnar = 'always'").await.unwrap();
}

async fn text(session: &Session, sql: &str) -> String {
    let rows = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")).rows;
    let text = |row: Vec<Option<String>>| {
        let fields: Vec<String> =
            row.into_iter().map(|field| field.unwrap_or_else(|| "NULL".to_string())).collect();
        fields.join("\t")
    };
    rows.into_iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Makes the mirrors of [`QUERY`] and gives its answer.
async fn made(data: &Path, cache: &Path) -> String {
    let session = over(data, cache).await;
    let answer = text(&session, QUERY).await;
    assert_eq!(session.make_mirrors(None).await, 4, "{:?}", files(cache));
    answer
}

/// The scan of [`QUERY`] as EXPLAIN shows it.
async fn scan(session: &Session) -> String {
    let plan = text(session, &format!("explain {QUERY}")).await;
    plan.lines().find(|line| line.contains("RelationScanExec")).unwrap().to_string()
}

async fn assert_mirrors_are_read(session: &Session) {
    let scan = scan(session).await;
    assert!(scan.contains("access=mirrors of 4 columns"), "{scan}");
}

async fn assert_pages_are_read(session: &Session, why: &str) {
    let scan = scan(session).await;
    assert!(!scan.contains("access=mirrors") && scan.contains(why), "{why}: {scan}");
}

/// Names of the mirrors in a folder.
fn files(cache: &Path) -> Vec<PathBuf> {
    let all = std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|extension| extension == "mirror")).collect();
    files.sort();
    files
}

/// A session over the databases of the corpus.
async fn of_corpus(server: (&'static str, &'static str), cache: &Path) -> Session {
    let session = tpch(server, Method::Uring).await;
    mount_cases(&session, &format!("{}/c_dynamic", server.0)).await;
    keep(&session, cache).await;
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_corpus_has_the_same_answers_with_mirrors() {
    for (server, execution) in SERVERS.into_iter().zip(EXECUTIONS) {
        let cache = folder();
        let session = of_corpus(server, cache.path()).await;
        for database in ["tpch", "c_dynamic"] {
            for table in text(&session, &format!("show tables from {database}")).await.lines() {
                // One that cannot be read as a whole has no mirrors.
                let _ = run(&session, &format!("select * from {database}.`{table}`")).await;
            }
        }
        session.make_mirrors(None).await;
        drop(session);
        assert!(files(cache.path()).len() > 60, "{}", files(cache.path()).len());
        let mut failures = Vec::new();
        for file in corpus::files() {
            let session = of_corpus(server, cache.path()).await;
            failures.extend(corpus::run_file(&session, &file, server.0, execution).await);
        }
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

/// Every column of every table of the case databases: all rows as without mirrors, in the same order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_all_types_are_those_of_the_pages() {
    for server in SERVERS {
        let cache = folder();
        let plain = session(Method::Uring);
        let mirrored = session(Method::Uring);
        let databases = mount_cases(&plain, server.0).await;
        assert_eq!(mount_cases(&mirrored, server.0).await, databases);
        keep(&mirrored, cache.path()).await;
        let mut tables = Vec::new();
        for database in &databases {
            for table in text(&plain, &format!("show tables from `{database}`")).await.lines() {
                tables.push(format!("`{database}`.`{table}`"));
            }
        }
        for table in &tables {
            let columns = text(&plain, &format!("show columns from {table}")).await;
            for column in columns.lines().filter_map(|line| line.split('\t').next()) {
                // One that cannot be read has no mirror.
                let _ = run(&mirrored, &format!("select `{column}` from {table}")).await;
            }
        }
        let (mut compared, mut from_mirrors) = (0, 0);
        mirrored.make_mirrors(None).await;
        for table in &tables {
            let columns = text(&plain, &format!("show columns from {table}")).await;
            for column in columns.lines().filter_map(|line| line.split('\t').next()) {
                let sql = format!("select `{column}` from {table}");
                let Ok(expected) = run(&plain, &sql).await else { continue };
                compared += 1;
                let plan = text(&mirrored, &format!("explain {sql}")).await;
                from_mirrors += usize::from(plan.contains("access=mirror of 1 column"));
                let answer = run(&mirrored, &sql).await.unwrap();
                let sorted = |mut rows: Vec<Vec<Option<String>>>| {
                    rows.sort();
                    rows
                };
                assert!(sorted(answer.rows) == sorted(expected.rows), "{sql}: {plan}");
            }
        }
        assert!(from_mirrors * 3 > compared, "{from_mirrors} of {compared} columns");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirrors_are_read_by_the_next_session() {
    let (data, cache) = (tpch_directory(SERVERS[1]), folder());
    let session = over(&data, cache.path()).await;
    assert_pages_are_read(&session, "no mirror of columns l_orderkey").await;
    let expected = text(&session, QUERY).await;
    assert_eq!(session.make_mirrors(None).await, 4);
    assert_eq!(session.make_mirrors(None).await, 0);
    assert_mirrors_are_read(&session).await;
    drop(session);
    let session = over(&data, cache.path()).await;
    assert_mirrors_are_read(&session).await;
    let report = run(&session, QUERY).await.unwrap().report;
    assert_eq!(text(&session, QUERY).await, expected);
    let bytes: u64 = files(cache.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
    assert!(report.bytes < 2 * bytes && report.ios > 0, "{report:?}");
    let rows = text(&session, "select count(*) from lineitem").await;
    assert_eq!(rows, value(&session, "select count(l_orderkey) from lineitem").await.unwrap());
    // One row is looked up in the tree.
    let plan = text(&session, "explain select l_comment from lineitem where l_orderkey = 7").await;
    assert!(!plan.contains("access=mirror"), "{plan}");
    run(&session, "set tanada.columnar = 'off'").await.unwrap();
    let scan = scan(&session).await;
    assert!(!scan.contains("access=mirror") && !scan.contains("columnar="), "{scan}");
    assert_eq!(text(&session, QUERY).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_pass_are_those_of_the_pages() {
    let (data, cache) = (tpch_directory(SERVERS[0]), folder());
    let session = over(&data, cache.path()).await;
    let columns = "l_orderkey, l_partkey, l_quantity, l_shipdate, l_shipmode, l_comment";
    run(&session, &format!("select {columns} from lineitem")).await.unwrap();
    session.make_mirrors(None).await;
    let plain = tpch(SERVERS[0], Method::Uring).await;
    for filter in [
        "l_orderkey between 1000 and 3000 and l_quantity > 10",
        "l_orderkey > 10000000",
        "l_shipdate < '1992-03-01'",
        "l_shipmode = 'AIR' and l_quantity < 3",
        "l_shipmode in ('MAIL', 'ship')",
        "l_comment like '%special%'",
        "l_quantity in (1, 50) and l_partkey % 7 = 3",
        "l_shipdate > '1998-08-02' or l_quantity < 2",
        "l_partkey + 1 < l_orderkey",
    ] {
        let sql = format!("select {columns} from lineitem where {filter} order by 1, 2, 3, 4, 5, 6");
        let plan = text(&session, &format!("explain {sql}")).await;
        assert!(plan.contains("access=mirrors of"), "{plan}");
        assert!(text(&session, &sql).await == text(&plain, &sql).await, "{sql}");
    }
    let few = run(&session, "select l_comment from lineitem limit 11").await.unwrap();
    assert_eq!(few.rows.len(), 11);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirrors_of_changed_files_are_not_read() {
    let (original, cache) = (tpch_directory(SERVERS[1]), folder());
    let data = copied(&original);
    let file = data.path().join(FILE);
    let expected = made(data.path(), cache.path()).await;
    assert_mirrors_are_read(&over(data.path(), cache.path()).await).await;

    // Touched: nothing else tells whether its bytes are the same. A session that had it open notices, too.
    let before = over(data.path(), cache.path()).await;
    assert_mirrors_are_read(&before).await;
    let modified = file.metadata().unwrap().modified().unwrap();
    let open = std::fs::File::options().write(true).open(&file).unwrap();
    open.set_modified(std::time::SystemTime::now()).unwrap();
    assert_pages_are_read(&before, "has changed since it was opened").await;
    assert_eq!(text(&before, QUERY).await, expected);
    assert_pages_are_read(&over(data.path(), cache.path()).await, "no mirror of columns").await;
    drop(before);
    // The time of its last change can be set back, but not that of its last touch.
    open.set_modified(modified).unwrap();
    assert_pages_are_read(&over(data.path(), cache.path()).await, "no mirror of columns").await;

    // Replaced by a file of the same size and age.
    assert_eq!(made(data.path(), cache.path()).await, expected);
    assert_eq!(files(cache.path()).len(), 4);
    let other = data.path().join("other");
    std::fs::copy(&file, &other).unwrap();
    std::fs::File::options().write(true).open(&other).unwrap().set_modified(modified).unwrap();
    std::fs::rename(&other, &file).unwrap();
    let session = over(data.path(), cache.path()).await;
    assert_pages_are_read(&session, "no mirror of columns").await;
    assert_eq!(text(&session, QUERY).await, expected);
    drop(session);

    // A page is damaged: that is told, as without mirrors.
    assert_eq!(made(data.path(), cache.path()).await, expected);
    let mut bytes = std::fs::read(&file).unwrap();
    // In some leaves of the clustered index.
    let first = bytes.len() / 8 / 16384;
    (first..first + 8).for_each(|page| bytes[page * 16384 + 8000] ^= 1);
    std::fs::write(&file, &bytes).unwrap();
    let session = over(data.path(), cache.path()).await;
    assert!(run(&session, QUERY).await.is_err());
    assert_eq!(text(&session, "select distinct state from tanada.columnar_mirrors").await, "stale");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copied_directory_has_no_mirrors_yet() {
    let cache = folder();
    let data = copied(&tpch_directory(SERVERS[1]));
    let expected = made(data.path(), cache.path()).await;
    let copy = copied(data.path());
    let session = over(copy.path(), cache.path()).await;
    assert_pages_are_read(&session, "no mirror of columns").await;
    assert_eq!(text(&session, QUERY).await, expected);
    assert_eq!(session.make_mirrors(None).await, 4);
    // Both are kept: they are of two tables.
    assert_eq!(files(cache.path()).len(), 8);
    assert_mirrors_are_read(&over(data.path(), cache.path()).await).await;
}

/// What a server writes first when it starts: whatever it changes after that may be in its log alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirrors_are_not_read_after_a_server_has_run() {
    let cache = folder();
    let data = copied(&tpch_directory(SERVERS[1]));
    let expected = made(data.path(), cache.path()).await;
    let session = over(data.path(), cache.path()).await;
    assert_mirrors_are_read(&session).await;
    let log = std::fs::File::options().write(true).open(data.path().join("ib_logfile0")).unwrap();
    log.set_modified(std::time::SystemTime::now()).unwrap();
    assert_pages_are_read(&session, "ib_logfile0 has changed since it was mounted").await;
    assert_eq!(text(&session, QUERY).await, expected);
    // Whoever mounts it now sees that the server was shut down, and where its log ends.
    assert_mirrors_are_read(&over(data.path(), cache.path()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_mirrors_are_deleted_and_pages_are_read() {
    let (data, cache) = (tpch_directory(SERVERS[1]), folder());
    let expected = made(&data, cache.path()).await;
    let mirrors = files(cache.path());
    assert_eq!(mirrors.len(), 4);
    let sizes: Vec<u64> = mirrors.iter().map(|path| path.metadata().unwrap().len()).collect();
    for (no, path) in mirrors.iter().enumerate() {
        let bytes = std::fs::read(path).unwrap();
        for place in [100, bytes.len() / 2, bytes.len() - 30, bytes.len() - 6] {
            let mut damaged = bytes.clone();
            damaged[place] ^= 4;
            std::fs::write(path, &damaged).unwrap();
            let session = over(&data, cache.path()).await;
            let answer = run(&session, QUERY).await.unwrap();
            let fields: Vec<String> = answer.rows.concat().into_iter().flatten().collect();
            assert_eq!(fields.join("\t"), expected, "{no} {place}");
            let warnings = answer.report.warnings.join("\n");
            assert!(!path.exists() && warnings.contains("it was deleted"), "{no} {place}: {warnings}");
            std::fs::write(path, &bytes).unwrap();
        }
        // Cut off, or as long as it was but empty.
        for bytes in [&bytes[..bytes.len() / 2], &[][..], &vec![0; bytes.len()]] {
            std::fs::write(path, bytes).unwrap();
            let session = over(&data, cache.path()).await;
            assert_eq!(text(&session, QUERY).await, expected);
            assert!(!path.exists());
        }
        std::fs::write(path, &bytes).unwrap();
    }
    assert_eq!(
        files(cache.path()).iter().map(|path| path.metadata().unwrap().len()).collect::<Vec<_>>(),
        sizes
    );
    assert_mirrors_are_read(&over(&data, cache.path()).await).await;
    // One column's mirror under another column's name.
    std::fs::copy(&mirrors[0], &mirrors[1]).unwrap();
    let session = over(&data, cache.path()).await;
    assert_eq!(text(&session, QUERY).await, expected);
}

/// Rows of a damaged group come from the pages, those of the others from the mirrors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_group_is_read_from_the_pages() {
    let (data, cache) = (tpch_directory(SERVERS[0]), folder());
    made(&data, cache.path()).await;
    let path = files(cache.path()).into_iter().max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes.len() * 9 / 10;
    bytes[place] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let sql = "select l_orderkey, l_extendedprice, l_shipdate, l_comment from lineitem where l_extendedprice > 1000 \
        order by 1, 2, 3, 4";
    let session = over(&data, cache.path()).await;
    let answer = run(&session, sql).await.unwrap();
    let warnings = answer.report.warnings.join("\n");
    assert!(warnings.contains("another checksum"), "{warnings}");
    let plain = tpch(SERVERS[0], Method::Uring).await;
    assert!(run(&plain, sql).await.unwrap().rows == answer.rows);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_budget_is_kept_and_old_mirrors_go_first() {
    let (data, cache) = (tpch_directory(SERVERS[1]), folder());
    made(&data, cache.path()).await;
    let size = |path: &PathBuf| path.metadata().unwrap().len();
    let all: u64 = files(cache.path()).iter().map(size).sum();
    let session = over(&data, cache.path()).await;
    run(&session, &format!("set tanada.columnar_bytes = {all}")).await.unwrap();
    run(&session, "select sum(o_orderkey), max(o_comment) from orders").await.unwrap();
    assert!(session.make_mirrors(None).await > 0);
    let kept: u64 = files(cache.path()).iter().map(size).sum();
    assert!(kept <= all, "{kept} of {all}");
    let names = text(&session, "select table_name from tanada.columnar_mirrors order by 1").await;
    assert!(names.contains("orders") && names.matches("lineitem").count() < 4, "{names}");
    // What is used in this session stays.
    run(&session, "select sum(o_orderkey), max(o_comment) from orders").await.unwrap();
    run(&session, "set tanada.columnar_bytes = '1kB'").await.unwrap();
    run(&session, "select max(p_comment) from part").await.unwrap();
    assert_eq!(session.make_mirrors(None).await, 0);
    let plan = text(&session, "explain select max(p_comment) from part").await;
    assert!(plan.contains("tanada.columnar_bytes"), "{plan}");
    let plan = text(&session, "explain select max(o_comment) from orders").await;
    assert!(plan.contains("access=mirror"), "{plan}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leftovers_of_a_killed_process_are_removed() {
    let (data, cache) = (tpch_directory(SERVERS[1]), folder());
    let left = cache.path().join(".tpch.lineitem.0.mirror.1-0.tanada-tmp");
    std::fs::write(&left, [7; 5000]).unwrap();
    let other = cache.path().join("notes.txt");
    std::fs::write(&other, "mine").unwrap();
    made(&data, cache.path()).await;
    assert!(!left.exists() && other.exists());
    assert_mirrors_are_read(&over(&data, cache.path()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_share_a_folder() {
    let (data, cache) = (tpch_directory(SERVERS[1]), folder());
    let expected = {
        let session = over(&data, cache.path()).await;
        text(&session, QUERY).await
    };
    let work = (0..4).map(|_| async {
        for _ in 0..3 {
            let session = over(&data, cache.path()).await;
            assert_eq!(text(&session, QUERY).await, expected);
            session.make_mirrors(None).await;
            assert_eq!(text(&session, QUERY).await, expected);
        }
    });
    futures::future::join_all(work).await;
    assert_eq!(files(cache.path()).len(), 4);
    assert_mirrors_are_read(&over(&data, cache.path()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_go_on_where_mirrors_cannot_be_written() {
    let data = tpch_directory(SERVERS[1]);
    let cache = folder();
    let session = over(&data, cache.path()).await;
    let expected = text(&session, QUERY).await;
    std::fs::remove_dir_all(cache.path()).unwrap();
    assert_eq!(session.make_mirrors(None).await, 0);
    assert_eq!(text(&session, QUERY).await, expected);
    let file = folder();
    let path = file.path().join("file");
    std::fs::write(&path, "").unwrap();
    let error = session.keep_mirrors(path.to_str().unwrap()).await.unwrap_err();
    assert!(error.to_string().contains("cannot keep mirrors"), "{error}");
    let error = session.keep_mirrors("volume:mirrors").await.unwrap_err();
    assert!(error.to_string().contains("none is mounted"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirrors_in_a_volume_are_objects() {
    let volume = volume_with(&[("data", tpch_directory(SERVERS[1]))], Way::Adopt).await;
    let mut answers = Vec::new();
    for is_first in [true, false] {
        let session = session(Method::Uring);
        session.mount_volume(volume.path(), &MountOptions::default()).await.unwrap();
        session.use_database("tpch").unwrap();
        session.keep_mirrors("volume:mirrors").await.unwrap();
        run(&session, "set tanada.columnar = 'always'").await.unwrap();
        if !is_first {
            assert_mirrors_are_read(&session).await;
        }
        answers.push(text(&session, QUERY).await);
        assert_eq!(session.make_mirrors(None).await, if is_first { 4 } else { 0 });
        let objects = "select count(*) from tanada.objects where object like 'mirrors/%.mirror'";
        assert_eq!(value(&session, objects).await.as_deref(), Some("4"));
        let shown =
            "select place, column_name, row_count, state from tanada.columnar_mirrors order by 2 limit 1";
        let shown = text(&session, shown).await;
        assert!(shown.contains("mirrors in the volume") && shown.ends_with("current"), "{shown}");
        session.close().await.unwrap();
    }
    assert_eq!(answers[0], answers[1]);
}

/// Tables whose objects are the volume's own are read from their pages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_that_tell_no_changes_are_not_mirrored() {
    let volume = volume_with(&[("data", tpch_directory(SERVERS[1]))], Way::Import).await;
    let cache = folder();
    let session = session(Method::Uring);
    session.mount_volume(volume.path(), &MountOptions::default()).await.unwrap();
    session.use_database("tpch").unwrap();
    keep(&session, cache.path()).await;
    text(&session, QUERY).await;
    assert_eq!(session.make_mirrors(None).await, 0);
    assert_pages_are_read(&session, "would not be noticed").await;
    session.close().await.unwrap();
}

/// Queries that order dates refuse those that no calendar has, whatever they are read from.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dates_that_no_calendar_has_are_refused_as_without_mirrors() {
    let cache = folder();
    for server in SERVERS {
        let data = unpacked("zero-dates").join(server.0).join("zeros");
        let options = MountOptions { allow_stale: true, ..MountOptions::default() };
        let (plain, mirrored) = (session(Method::Uring), session(Method::Uring));
        let (databases, _) = plain.mount_innodb(&data, &options).await.unwrap();
        mirrored.mount_innodb(&data, &options).await.unwrap();
        keep(&mirrored, cache.path()).await;
        for database in databases {
            for table in text(&plain, &format!("show tables from `{database}`")).await.lines() {
                let columns = text(&plain, &format!("show columns from `{database}`.`{table}`")).await;
                let columns: Vec<&str> = columns.lines().filter_map(|line| line.split('\t').next()).collect();
                for _ in 0..2 {
                    for column in &columns {
                        for sql in [
                            format!("select `{column}` from `{database}`.`{table}`"),
                            format!("select max(`{column}`) from `{database}`.`{table}`"),
                        ] {
                            let shown = |answer: tanada_query::Result<crate::sessions::Answer>| match answer {
                                Ok(answer) => {
                                    let mut rows = answer.rows;
                                    rows.sort();
                                    format!("{rows:?}")
                                }
                                Err(error) => error.to_string(),
                            };
                            let expected = shown(run(&plain, &sql).await);
                            assert_eq!(shown(run(&mirrored, &sql).await), expected, "{sql}");
                        }
                    }
                    mirrored.make_mirrors(None).await;
                }
            }
        }
    }
    assert!(!files(cache.path()).is_empty());
}
