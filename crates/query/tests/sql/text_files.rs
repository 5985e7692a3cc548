//! Tables over CSV and JSON files: what COPY writes is read back, and lines that do not fit are named.

use std::path::Path;

use tanada_io::Method;
use tanada_query::Session;

use crate::sessions::{METHODS, SERVERS, run, session, tpch};

async fn rows(session: &Session, sql: &str) -> Vec<Vec<String>> {
    let rows = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")).rows;
    let text = |field: Option<String>| field.unwrap_or_else(|| "NULL".to_string());
    rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
}

async fn create(
    session: &Session,
    columns: &str,
    format: &str,
    path: &Path,
    options: &str,
) -> Result<(), String> {
    let place = path.display();
    let sql = format!(
        "create or replace external table t {columns} stored as {format} location '{place}' {options}"
    );
    run(session, &sql).await.map(drop).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_copy_wrote_as_lines_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let session = tpch(SERVERS[0], Method::Uring).await;
    let query = "select o_orderkey, o_totalprice, o_orderdate, if(o_orderkey % 7 = 0, null, o_comment) as o_comment, \
        if(o_orderkey % 5 = 0, '', 'a,\"b\"\\nc') as odd from orders";
    let columns =
        "(o_orderkey bigint, o_totalprice decimal(15,2), o_orderdate date, o_comment varchar(79), odd text)";
    let expected = rows(&session, &format!("{query} order by 1")).await;
    for format in ["csv", "json"] {
        let path = folder.path().join(format!("orders.{format}"));
        run(&session, &format!("copy ({query}) to '{}'", path.display())).await.unwrap();
        create(&session, columns, format, &path, "").await.unwrap();
        let found = rows(&session, "select * from t order by 1").await;
        assert!(found == expected, "{format}: {:?} {:?}", found.first(), expected.first());
        assert_eq!(
            rows(&session, "select count(*) from t where odd = ''").await,
            rows(&session, &format!("select count(*) from ({query}) as q where odd = ''")).await
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_of_lines_are_told_by_the_first_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "id,name,at,share\n1,x,2024-01-02,0.5\n2,\\N,2024-02-03,1\n3,\"\",\\N,2").unwrap();
    for method in METHODS {
        let session = session(method);
        create(&session, "", "csv", &path, "").await.unwrap();
        let expected =
            [["1", "x", "2024-01-02", "0.5"], ["2", "NULL", "2024-02-03", "1"], ["3", "", "NULL", "2"]];
        assert_eq!(rows(&session, "select * from t").await, expected);
        assert_eq!(
            rows(&session, "select count(*), sum(id) from t where name is not null").await,
            [["2", "4"]]
        );
        assert_eq!(rows(&session, "select id from t limit 1").await, [["1"]]);
    }
    let session = session(Method::Threads);
    std::fs::write(&path, "1;a\n2;\n").unwrap();
    let options = "options ('format.delimiter' ';', has_header false, null_regex '^$')";
    create(&session, "(id int, name text)", "csv", &path, options).await.unwrap();
    assert_eq!(rows(&session, "select * from t").await, [["1", "a"], ["2", "NULL"]]);
    let path = folder.path().join("a.json");
    std::fs::write(&path, "{\"id\":1,\"flag\":true}\n{\"id\":2}\n").unwrap();
    create(&session, "", "json", &path, "").await.unwrap();
    assert_eq!(rows(&session, "select id, flag from t").await, [["1", "1"], ["2", "NULL"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lines_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let session = session(Method::Uring);
    for (format, text, columns, why) in [
        ("csv", "id\n1\nx\n", "(id int)", "'x' does not fit column id"),
        ("csv", "a,b\n1,2\n1,2,3\n", "(a int, b int)", "cannot be read as CSV"),
        ("csv", "id\n\\xff\n", "(id json)", "JSON is not read from text files"),
        ("csv", "id\n1\n", "(id int not null)", "NOT NULL is not supported of files"),
        ("csv", "", "", "has no columns"),
        ("json", "{\"id\":1}\n{\"id\":", "(id int)", "cannot be read as JSON"),
        ("json", "[1,2]\n", "", "cannot be read as JSON"),
        ("json", "{\"id\":1}\n", "(id int)", ""),
    ] {
        std::fs::write(&path, text).unwrap();
        let found = match create(&session, columns, format, &path, "").await {
            Ok(()) => run(&session, "select * from t").await.map(drop).map_err(|error| error.to_string()),
            Err(error) => Err(error),
        };
        match (why, found) {
            ("", found) => assert_eq!(found, Ok(())),
            (why, Ok(())) => panic!("{text}: not refused, {why}"),
            (why, Err(error)) => assert!(error.contains(why), "{text}: {error}"),
        }
    }
    let error = create(&session, "", "csv", &path, "options (speed 9)").await.unwrap_err();
    assert!(error.contains("there is no option 'speed'"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn digits_that_a_decimal_column_does_not_keep_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let session = session(Method::Uring);
    for (format, exact, longer) in [
        ("csv", "id,d\n1,1.2500\n2,-3\n", "id,d\n1,1.255\n"),
        ("json", "{\"id\":1,\"d\":1.2500}\n{\"id\":2,\"d\":-3}\n", "{\"id\":1,\"d\":1.255}\n"),
    ] {
        let path = folder.path().join(format!("a.{format}"));
        std::fs::write(&path, exact).unwrap();
        create(&session, "(id bigint, d decimal(10,2))", format, &path, "").await.unwrap();
        assert_eq!(rows(&session, "select d from t order by id").await, [["1.25"], ["-3.00"]]);
        std::fs::write(&path, longer).unwrap();
        create(&session, "(id bigint, d decimal(10,2))", format, &path, "").await.unwrap();
        let error = run(&session, "select d from t").await.unwrap_err().to_string();
        assert!(error.contains("'1.255' has more digits than column d keeps"), "{error}");
    }
}
