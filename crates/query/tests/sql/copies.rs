//! `COPY ... TO`: files of a server's tables hold the same rows, and what fails leaves nothing behind.

use std::path::Path;

use futures::StreamExt;
use tanada_io::Method;
use tanada_query::{ErrorKind, Session};

use crate::answers::{assert_alike, assert_same_rows, read};
use crate::fixtures::unpacked;
use crate::sessions::{SERVERS, mount_cases, run, session, tpch, value};
use crate::volumes::{Way, volume_with};

const TPCH: [&str; 8] =
    ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"];

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

async fn refused(session: &Session, sql: &str) -> (ErrorKind, String) {
    match run(session, sql).await {
        Ok(answer) => panic!("{sql}: {:?}", answer.rows),
        Err(error) => (error.kind(), error.to_string()),
    }
}

/// The 22 queries over Parquet files that COPY made of a server's tables give the server's answers.
async fn tpch_over_parquet(server: (&str, &str)) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let lake = folder.path().join("lake");
    std::fs::create_dir(&lake).unwrap();
    let source = tpch(server, Method::Uring).await;
    for table in TPCH {
        let target = lake.join(format!("{table}.parquet"));
        let sql = format!(
            "copy (select * from {table}) to '{}' options (max_row_group_size 20000)",
            target.display()
        );
        let answer = run(&source, &sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(answer.header, ["rows", "bytes", "file"]);
        let bytes = std::fs::metadata(&target).unwrap().len().to_string();
        assert_eq!(answer.rows[0][1..], [Some(bytes), Some(target.display().to_string())]);
        let count = value(&source, &format!("select count(*) from {table}")).await;
        assert_eq!(answer.rows[0][0], count, "{table}");
    }
    assert_eq!(names(&lake).len(), TPCH.len());
    let session = session(Method::Uring);
    run(&session, &format!("set tanada.server = '{}'", server.0.split('-').next().unwrap())).await.unwrap();
    session.mount_parquet(&lake).await.unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tpch-sf0.02-golden");
    for name in (1..=22).map(|no| format!("q{no}")).chain(["ooode".to_string()]) {
        let sql = std::fs::read_to_string(golden.join(format!("sql/{name}.sql"))).unwrap();
        let statement = Session::split(&sql).unwrap().remove(0);
        let answer = run(&session, &statement).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let (header, rows) = read(&golden.join(format!("tsv/{name}.tsv")));
        assert_eq!(answer.header, header, "{name}");
        assert_alike(answer.rows, rows, &name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tpch_answers_are_the_same_over_parquet_of_mysql() {
    tpch_over_parquet(SERVERS[0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tpch_answers_are_the_same_over_parquet_of_mariadb() {
    tpch_over_parquet(SERVERS[1]).await;
}

/// All tables of the cases, which have every type: what COPY writes is read back as the same texts and types, or
/// refused with the column's name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_comes_back_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut same, mut refusals) = (0, Vec::new());
    for server in ["mysql-9.7", "mariadb-10.11"] {
        if !unpacked("cases").join(server).exists() {
            continue;
        }
        let session = session(Method::Uring);
        for database in mount_cases(&session, server).await {
            session.use_database(&database).unwrap();
            for table in run(&session, "show tables").await.unwrap().rows {
                let table = table[0].clone().unwrap();
                let Ok(rows) = run(&session, &format!("select * from `{table}`")).await else { continue };
                let path = folder.path().join(format!("{server}-{same}-{}.parquet", refusals.len()));
                match run(&session, &format!("copy `{table}` to '{}'", path.display())).await {
                    Ok(_) => {
                        let create = format!(
                            "create or replace external table back_again stored as parquet location '{}'",
                            path.display()
                        );
                        run(&session, &create).await.unwrap_or_else(|error| panic!("{table}: {error}"));
                        let again = run(&session, "select * from back_again").await;
                        let again =
                            again.unwrap_or_else(|error| panic!("{server} {database}.{table}: {error}"));
                        assert_eq!(again.header, rows.header, "{table}");
                        assert_same_rows(again.rows, rows.rows, &format!("{server} {database}.{table}"));
                        same += 1;
                    }
                    Err(error) => {
                        let text = error.to_string();
                        assert_eq!(error.kind(), ErrorKind::Unsupported, "{table}: {text}");
                        assert!(!path.exists());
                        refusals.push(format!("{table}: {text}"));
                    }
                }
            }
        }
    }
    assert!(same > 10, "{same} {refusals:?}");
    for refusal in &refusals {
        assert!(refusal.contains("which a Parquet file cannot hold"), "{refusal}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_exist_are_replaced_only_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("n.parquet");
    let session = tpch(SERVERS[0], Method::Threads).await;
    let copy = format!("copy (select n_name from nation) to '{}'", target.display());
    run(&session, &copy).await.unwrap();
    let before = std::fs::read(&target).unwrap();
    let (kind, error) = refused(&session, &copy).await;
    assert_eq!(kind, ErrorKind::InvalidInput);
    assert!(error.contains("exists already") && error.contains("overwrite true"), "{error}");
    assert_eq!(std::fs::read(&target).unwrap(), before);
    run(&session, &format!("{copy} options (overwrite true)").replace("n_name", "n_name, n_regionkey"))
        .await
        .unwrap();
    assert!(std::fs::read(&target).unwrap().len() > before.len());
    assert_eq!(names(folder.path()), ["n.parquet"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_that_fails_or_is_cancelled_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let session = tpch(SERVERS[0], Method::Uring).await;
    let at = |name: &str| folder.path().join(name).display().to_string();
    for (sql, why) in [
        (format!("copy (select nothing from nation) to '{}'", at("a.parquet")), "nothing"),
        (
            format!("copy (select 1 as a, 2 as A) to '{}'", at("a.parquet")),
            "two columns of the file would be called 'A'",
        ),
        (format!("copy nation to '{}'", at("a.orc")), "COPY writes PARQUET, CSV and JSON"),
        (format!("copy nation to '{}'", at("no/a.parquet")), "No such file"),
        (format!("copy nation to '{}'", folder.path().display()), "does not say which format"),
        (format!("copy nation to '{}' stored as csv", folder.path().display()), "is a folder"),
        (
            format!("copy (select unhex('ff') as b) to '{}'", at("a.csv")),
            "column b has bytes that are no text",
        ),
        (format!("copy nation to '{}' options (speed 9)", at("a.csv")), "there is no option 'speed'"),
    ] {
        let (_, error) = refused(&session, &sql).await;
        assert!(error.contains(why), "{sql}: {error}");
        assert!(names(folder.path()).is_empty(), "{sql}");
    }
    let copy = format!("copy (select * from lineitem) to '{}'", at("l.parquet"));
    let mut result = session.execute(&copy).await.unwrap();
    assert!(names(folder.path()).iter().all(|name| name.ends_with(".tanada-tmp")));
    let begun = tokio::time::timeout(std::time::Duration::from_millis(30), result.stream().next()).await;
    drop(begun);
    result.cancel();
    assert!(names(folder.path()).iter().all(|name| name == "l.parquet"), "{:?}", names(folder.path()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_are_spelled_as_the_servers_spell_them() {
    let folder = tempfile::tempdir().unwrap();
    let session = tpch(SERVERS[0], Method::Uring).await;
    let query = "select n_nationkey as k, concat(n_name, ',\"') as n, if(n_nationkey = 1, null, 1.50) as d \
        from nation where n_nationkey < 2 order by 1";
    let csv = folder.path().join("n.csv");
    run(&session, &format!("copy ({query}) to '{}'", csv.display())).await.unwrap();
    let written = std::fs::read_to_string(csv).unwrap();
    assert_eq!(written, "k,n,d\n0,\"ALGERIA,\"\"\",1.50\n1,\"ARGENTINA,\"\"\",\\N\n");
    let json = folder.path().join("n.json");
    run(&session, &format!("copy ({query}) to '{}'", json.display())).await.unwrap();
    let written = std::fs::read_to_string(json).unwrap();
    let lines =
        "{\"k\":0,\"n\":\"ALGERIA,\\\"\",\"d\":1.50}\n{\"k\":1,\"n\":\"ARGENTINA,\\\"\",\"d\":null}\n";
    assert_eq!(written, lines);
}

/// Files of a volume are read and written through its classes, and their column chunks are announced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_of_a_volume_are_tables() {
    let lake = tempfile::tempdir().unwrap();
    let source = tpch(SERVERS[1], Method::Uring).await;
    let target = lake.path().join("orders.parquet");
    let copy = format!("copy orders to '{}' options (max_row_group_size 5000)", target.display());
    run(&source, &copy).await.unwrap();
    let volume = volume_with(&[("lake", lake.path().to_owned())], Way::Import).await;
    let session = session(Method::Uring);
    run(&session, "set tanada.server = 'mariadb'").await.unwrap();
    let (schemas, warnings) = session.mount_volume(volume.path(), &Default::default()).await.unwrap();
    assert_eq!((schemas, warnings), (vec!["lake".to_string()], vec![]));
    let sql = "select count(*), sum(o_totalprice), max(o_comment) from orders";
    assert_eq!(run(&session, sql).await.unwrap().rows, run(&source, sql).await.unwrap().rows);
    let all = session.footprint("select o_totalprice from orders").await.unwrap();
    let [all] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!((all.path.to_str(), all.index.as_str()), (Some("lake/orders.parquet"), "orders.o_totalprice"));
    assert_eq!(all.extents.len(), 6);
    let few = session.footprint("select o_totalprice from orders where o_orderkey < 100").await.unwrap();
    let few: Vec<_> = few.iter().map(|part| (part.index.as_str(), part.extents.len())).collect();
    assert_eq!(few, [("orders.o_orderkey", 1), ("orders.o_totalprice", 1)]);
    let copy = "copy (select o_orderkey, o_comment from orders where o_orderkey < 1000) to 'volume:lake/few.parquet'";
    run(&session, copy).await.unwrap();
    let (_, error) = refused(&session, copy).await;
    assert!(error.contains("there is an object lake/few.parquet"), "{error}");
    run(&session, &format!("{copy} options (overwrite true)")).await.unwrap();
    let count = value(&session, "select count(*) from orders where o_orderkey < 1000").await;
    assert_eq!(value(&session, "select count(*) from few").await, count);
    session.close().await.unwrap();
}
