//! Tables over Parquet files: what is read, what is left out, and what is refused.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Float32Array, Float64Array, Int32Array, Int64Array, ListArray,
    StringArray, TimestampMicrosecondArray, TimestampNanosecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::Int32Type;
use datafusion::arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use tanada_io::Method;
use tanada_query::{ErrorKind, Session};

use crate::sessions::{METHODS, run, session, value};

/// Writes a file with `rows_of_group` rows a row group.
pub fn write(path: &Path, columns: Vec<(&str, ArrayRef)>, rows_of_group: usize) {
    let bounds = EnabledStatistics::Page;
    write_with(path, columns, WriterProperties::builder().set_statistics_enabled(bounds), rows_of_group);
}

fn write_with(
    path: &Path,
    columns: Vec<(&str, ArrayRef)>,
    properties: parquet::file::properties::WriterPropertiesBuilder,
    rows_of_group: usize,
) {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let properties = properties.set_max_row_group_row_count(Some(rows_of_group)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// A session with a folder of files mounted as its default schema.
pub async fn mounted(folder: &Path, method: Method) -> Session {
    let session = session(method);
    session.mount_parquet(folder).await.unwrap();
    session
}

fn folder() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("lake").tempdir().unwrap()
}

async fn texts(session: &Session, sql: &str) -> Vec<Vec<String>> {
    let rows = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")).rows;
    let text = |field: Option<String>| field.unwrap_or_else(|| "NULL".to_string());
    rows.into_iter().map(|row| row.into_iter().map(text).collect()).collect()
}

async fn refused(session: &Session, sql: &str) -> (ErrorKind, String) {
    match run(session, sql).await {
        Ok(answer) => panic!("{sql}: {:?}", answer.rows),
        Err(error) => (error.kind(), error.to_string()),
    }
}

fn numbers(name: &'static str, range: std::ops::Range<i64>) -> (&'static str, ArrayRef) {
    (name, Arc::new(Int64Array::from_iter_values(range)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_and_folders_are_tables_of_a_mounted_folder() {
    let folder = folder();
    write(&folder.path().join("a.parquet"), vec![numbers("id", 0..100)], 10);
    std::fs::create_dir(folder.path().join("parts")).unwrap();
    for part in 0..3 {
        let path = folder.path().join(format!("parts/{part}.PARQUET"));
        write(&path, vec![numbers("id", part * 10..part * 10 + 10)], 1000);
    }
    std::fs::write(folder.path().join("readme.txt"), "x").unwrap();
    for method in METHODS {
        let session = mounted(folder.path(), method).await;
        assert_eq!(texts(&session, "show tables").await, [["a"], ["parts"]]);
        assert_eq!(
            texts(&session, "select count(*), sum(id), max(id) from parts").await,
            [["30", "435", "29"]]
        );
        let sql = "select a.id from a join parts p on a.id = p.id + 95 order by 1";
        let expected: Vec<Vec<String>> = (95..100).map(|id| vec![id.to_string()]).collect();
        assert_eq!(texts(&session, sql).await, expected);
        assert_eq!(value(&session, "select count(*) from A").await.as_deref(), Some("100"));
        assert_eq!(texts(&session, "describe a").await, [["id", "bigint", "YES", "", "NULL", ""]]);
        let report = run(&session, "select id from a limit 3").await.unwrap().report;
        assert!(report.rows == 3 && report.ios > 0, "{report:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn row_groups_that_cannot_pass_are_not_read() {
    let folder = folder();
    let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|no| format!("n{:02}", no))));
    write(&folder.path().join("a.parquet"), vec![numbers("id", 0..100), ("name", names)], 10);
    let session = mounted(folder.path(), Method::Uring).await;
    for (filter, groups) in [
        ("id = 42", "1 of 10"),
        ("id between 38 and 51", "3 of 10"),
        ("id in (1, 99)", "2 of 10"),
        ("id is null", "0 of 10"),
        ("id > 1000", "0 of 10"),
        ("name = 'n42'", "1 of 10"),
        ("id < 5 or name > 'n95'", "2 of 10"),
        ("id % 7 = 3", "10 of 10"),
    ] {
        let plan = texts(&session, &format!("explain select * from a where {filter}")).await;
        let plan = plan.iter().flatten().find(|text| text.contains("FileScanExec")).unwrap().clone();
        assert!(plan.contains(&format!("row_groups={groups}")), "{filter}: {plan}");
    }
    let few = run(&session, "select id from a where id = 42").await.unwrap();
    assert_eq!(few.rows, [[Some("42".to_string())]]);
    let all = run(&session, "select id from a").await.unwrap();
    assert!(few.report.bytes < all.report.bytes, "{:?} {:?}", few.report, all.report);
}

/// Each comparison with each value gives the rows that it gives where there are no bounds at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_nan_and_negative_zero_are_never_left_out() {
    let groups: [[Option<f64>; 4]; 8] = [
        [Some(1.0), Some(2.0), Some(f64::NAN), Some(3.0)],
        [Some(f64::NAN), Some(f64::NAN), Some(f64::NAN), Some(f64::NAN)],
        [Some(-0.0), Some(-0.0), Some(-0.0), Some(-0.0)],
        [Some(0.0), Some(-0.0), None, Some(0.0)],
        [Some(5.0), Some(5.0), Some(5.0), Some(f64::NAN)],
        [None, None, None, None],
        [Some(-f64::NAN), Some(-7.5), Some(f64::INFINITY), Some(f64::NEG_INFINITY)],
        [Some(5.0), Some(5.0), Some(5.0), Some(5.0)],
    ];
    let values: Vec<Option<f64>> = groups.concat();
    let folder = folder();
    let doubles: ArrayRef = Arc::new(Float64Array::from(values.clone()));
    let floats: Float32Array = values.iter().map(|value| value.map(|value| value as f32)).collect();
    let columns = || {
        vec![numbers("id", 0..32), ("d", Arc::clone(&doubles)), ("f", Arc::new(floats.clone()) as ArrayRef)]
    };
    write(&folder.path().join("bounded.parquet"), columns(), 4);
    let none = WriterProperties::builder().set_statistics_enabled(EnabledStatistics::None);
    write_with(&folder.path().join("plain.parquet"), columns(), none, 1000);
    let session = mounted(folder.path(), Method::Uring).await;
    let mut asked = 0;
    for column in ["d", "f"] {
        let constants = ["0", "-0e0", "5", "2.5", "1e300"];
        let operators = ["=", "<>", "<", "<=", ">", ">=", "<=>"];
        let compared = constants
            .iter()
            .flat_map(|constant| operators.map(|operator| format!("{column} {operator} {constant}")));
        let others = [
            "{} is null",
            "{} is not null",
            "{} between 2 and 5",
            "{} not between 0 and 4",
            "{} in (0, 5)",
            "{} not in (0, 5)",
            "not ({} < 4)",
            "{} = {}",
            "{} <> {}",
            "{} > 4 or {} < -1",
            "{}",
        ];
        for filter in compared.chain(others.map(|other| other.replace("{}", column))) {
            let of = |table: &str| format!("select id from {table} where {filter} order by id");
            let (bounded, plain) = (run(&session, &of("bounded")).await, run(&session, &of("plain")).await);
            match (bounded, plain) {
                (Ok(bounded), Ok(plain)) => assert_eq!(bounded.rows, plain.rows, "{filter}"),
                (bounded, plain) => {
                    assert_eq!(bounded.unwrap_err().to_string(), plain.unwrap_err().to_string(), "{filter}");
                    continue;
                }
            }
            asked += 1;
        }
        for asked in ["min({})", "max({})", "count({})", "count(distinct {})"] {
            let of = |table: &str| format!("select {} from {table}", asked.replace("{}", column));
            let (bounded, plain) = (run(&session, &of("bounded")).await, run(&session, &of("plain")).await);
            let text = |answer: tanada_query::Result<crate::sessions::Answer>| {
                answer.map(|answer| answer.rows).map_err(|error| error.to_string())
            };
            assert_eq!(text(bounded), text(plain), "{asked}");
        }
        let sql =
            format!("select b.id, p.id from bounded b join plain p on b.{column} = p.{column} order by 1, 2");
        let turned = sql.replace("bounded b", "plain b").replace("plain p", "bounded p");
        assert_eq!(texts(&session, &sql).await, texts(&session, &turned).await);
    }
    assert!(asked > 70, "{asked}");
}

/// What is guarded against: the engine's own scan loses rows of NaN where its bounds hide them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_engines_own_scan_loses_rows_of_nan() {
    let folder = folder();
    let path = folder.path().join("t.parquet");
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![1.0, f64::NAN, 3.0, 2.0]));
    let columns = || vec![numbers("id", 0..4), ("d", Arc::clone(&doubles))];
    let mut counts = Vec::new();
    for bounds in [EnabledStatistics::None, EnabledStatistics::Page] {
        write_with(&path, columns(), WriterProperties::builder().set_statistics_enabled(bounds), 2);
        let engine = datafusion::prelude::SessionContext::new();
        let options = datafusion::prelude::ParquetReadOptions::default();
        engine.register_parquet("t", path.to_str().unwrap(), options).await.unwrap();
        let found = engine.sql("select id from t where d > 100").await.unwrap().collect().await.unwrap();
        counts.push(found.iter().map(RecordBatch::num_rows).sum::<usize>());
    }
    assert_eq!(counts, [1, 0]);
    let session = mounted(folder.path(), Method::Uring).await;
    assert_eq!(texts(&session, "select id from t where d > 100").await, [["1"]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_of_the_servers_types() {
    let folder = folder();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("big", Arc::new(UInt64Array::from(vec![u64::MAX, 0, 1]))),
        ("day", Arc::new(Date32Array::from(vec![Some(0), None, Some(19_000)]))),
        ("at", Arc::new(TimestampMicrosecondArray::from(vec![0, 1_500_000, -1]))),
        ("nanos", Arc::new(TimestampNanosecondArray::from(vec![0, 1_500, -1_000]))),
        ("text", Arc::new(StringArray::from(vec!["a", "A", "a "]))),
    ];
    write(&folder.path().join("t.parquet"), columns, 100);
    let session = mounted(folder.path(), Method::Threads).await;
    let rows = texts(&session, "select flag, big, day, at, text from t").await;
    assert_eq!(rows[0], ["1", "18446744073709551615", "1970-01-01", "1970-01-01 00:00:00.000000", "a"]);
    assert_eq!(rows[1], ["0", "0", "NULL", "1970-01-01 00:00:01.500000", "A"]);
    let (kind, error) = refused(&session, "select nanos from t").await;
    assert_eq!(kind, ErrorKind::Unsupported);
    assert!(error.contains("column nanos of") && error.contains("nanoseconds"), "{error}");
    // Texts of files are compared by their bytes.
    assert_eq!(texts(&session, "select count(*) from t where text = 'a'").await, [["1"]]);
    assert_eq!(texts(&session, "select count(distinct text), min(text) from t").await, [["3", "A"]]);
    assert_eq!(
        texts(&session, "select big + 0, year(day), flag + 1 from t where flag").await,
        [["18446744073709551615", "1970", "2"]]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_without_a_type_are_refused_when_they_are_read() {
    let folder = folder();
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(1)]), None]);
    let tags: ArrayRef = Arc::new(lists);
    write(&folder.path().join("t.parquet"), vec![numbers("id", 0..2), ("tags", tags)], 10);
    let session = mounted(folder.path(), Method::Uring).await;
    assert_eq!(texts(&session, "select id from t where id > 0").await, [["1"]]);
    assert_eq!(value(&session, "select count(*) from t").await.as_deref(), Some("2"));
    for sql in ["select * from t", "select tags from t", "select id from t where tags is null"] {
        let (kind, error) = refused(&session, sql).await;
        assert_eq!(kind, ErrorKind::Unsupported, "{sql}");
        assert!(error.contains("tags of t is a list, which is not supported"), "{sql}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_cannot_be_read_say_so_and_leave_the_others_alone() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    write(&at("good.parquet"), vec![numbers("id", 0..10_000)], 1000);
    let good = std::fs::read(at("good.parquet")).unwrap();
    std::fs::write(at("empty.parquet"), "").unwrap();
    std::fs::write(at("short.parquet"), "PAR1").unwrap();
    std::fs::write(at("text.parquet"), "id,name\n1,a\n2,b\n").unwrap();
    std::fs::write(at("cut.parquet"), &good[..good.len() - 100]).unwrap();
    std::fs::write(at("footer.parquet"), [&good[..good.len() - 8], &[0xFF; 4], b"PAR1"].concat()).unwrap();
    std::fs::write(at("encrypted.parquet"), [&good[..good.len() - 4], b"PARE"].concat()).unwrap();
    std::fs::create_dir_all(at("mixed")).unwrap();
    write(&at("mixed/1.parquet"), vec![numbers("id", 0..3)], 10);
    write(&at("mixed/2.parquet"), vec![("id", Arc::new(StringArray::from(vec!["x"])) as ArrayRef)], 10);
    std::fs::create_dir_all(at("more")).unwrap();
    write(&at("more/1.parquet"), vec![numbers("id", 0..3)], 10);
    write(&at("more/2.parquet"), vec![numbers("id", 0..3), numbers("extra", 0..3)], 10);
    std::fs::create_dir_all(at("spread/year=2020")).unwrap();
    write(&at("spread/year=2020/1.parquet"), vec![numbers("id", 0..3)], 10);
    write(&at("twice.parquet"), vec![numbers("id", 0..3), numbers("ID", 0..3)], 10);
    write(&at("a b'c`d%20é.parquet"), vec![numbers("id", 0..3)], 10);
    let session = mounted(folder.path(), Method::Uring).await;
    for (table, why) in [
        ("empty", "is no Parquet file: it is empty"),
        ("short", "is no Parquet file: it is too short"),
        ("text", "is no Parquet file: it does not begin as one"),
        ("cut", "is no Parquet file: its end is missing"),
        ("footer", "is no Parquet file: the length of its footer is wrong"),
        ("encrypted", "is encrypted"),
        ("mixed", "files of one table differ"),
        ("more", "has a column extra which the other has not"),
        ("spread", "has folders in it (year=2020)"),
        ("twice", "has two columns called id"),
        ("nothing", "no table 'nothing'"),
    ] {
        let (_, error) = refused(&session, &format!("select count(*) from {table}")).await;
        assert!(error.contains(why), "{table}: {error}");
        assert!(error.contains(table) && !error.contains('\n'), "{table}: {error}");
    }
    assert_eq!(value(&session, "select sum(id) from good").await.as_deref(), Some("49995000"));
    assert_eq!(value(&session, "select sum(id) from `a b'c``d%20é`").await.as_deref(), Some("3"));
    let error = session.mount_parquet(&at("nowhere")).await.unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
    std::fs::create_dir(at("none")).unwrap();
    let error = session.mount_parquet(&at("none")).await.unwrap_err();
    assert!(error.to_string().contains("has no Parquet files"), "{error}");
}

/// Damage anywhere in a file is an error or goes unnoticed by the format (which has no checksums here), but never
/// stops the program.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_files_never_stop_the_program() {
    let folder = folder();
    let path = folder.path().join("t.parquet");
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..500).map(|no| format!("text {no}"))));
    let small: ArrayRef = Arc::new(Int32Array::from_iter_values((0..500).map(|no| no % 5)));
    write(&path, vec![numbers("id", 0..500), ("text", texts), ("small", small)], 200);
    let good = std::fs::read(&path).unwrap();
    let session = mounted(folder.path(), Method::Uring).await;
    let mut state = 7u64;
    let mut failed = 0;
    for _ in 0..60 {
        let mut bytes = good.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % bytes.len();
            bytes[at] = (state >> 20) as u8;
        }
        std::fs::write(&path, &bytes).unwrap();
        let sql = "select count(*), sum(id), max(text), sum(small) from t where id > 10";
        if let Err(error) = run(&session, sql).await {
            let text = error.to_string();
            assert!(error.kind() != ErrorKind::Internal && !text.contains('\n'), "{:?} {text}", error.kind());
            failed += 1;
        }
    }
    assert!(failed > 5, "{failed}");
    std::fs::write(&path, &good).unwrap();
    assert_eq!(value(&session, "select count(*) from t").await.as_deref(), Some("500"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_statement_sees_files_as_they_are() {
    let folder = folder();
    let path = folder.path().join("t.parquet");
    write(&path, vec![numbers("id", 0..10)], 5);
    let session = mounted(folder.path(), Method::Threads).await;
    assert_eq!(value(&session, "select count(*) from t").await.as_deref(), Some("10"));
    write(&path, vec![numbers("id", 0..20), numbers("more", 0..20)], 1);
    assert_eq!(texts(&session, "select count(*), max(more) from t").await, [["20", "19"]]);
    // A file that changes between the plan and the end.
    let mut result = session.execute("select id from t").await.unwrap();
    write(&path, vec![numbers("id", 0..30), numbers("more", 0..30)], 5);
    let error = result.collect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Data);
    assert!(error.to_string().contains("t.parquet has changed while it was read"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn external_tables_are_made_and_dropped() {
    let folder = folder();
    let path = folder.path().join("x.parquet");
    write(&path, vec![numbers("id", 0..10)], 5);
    let session = session(Method::Uring);
    let create = format!("create external table t stored as parquet location '{}'", path.display());
    run(&session, &create).await.unwrap();
    assert_eq!(session.database().as_deref(), Some("files"));
    assert_eq!(texts(&session, "select sum(id) from files.t").await, [["45"]]);
    let (_, error) = refused(&session, &create).await;
    assert!(error.contains("there is a table 't' in 'files' already"), "{error}");
    run(&session, &create.replace("table t", "table if not exists t")).await.unwrap();
    run(&session, &create.replace("create external", "create or replace external")).await.unwrap();
    run(&session, "drop table t").await.unwrap();
    let (kind, _) = refused(&session, "select * from t").await;
    assert_eq!(kind, ErrorKind::NotFound);
    run(&session, "drop table if exists t").await.unwrap();
    assert!(refused(&session, "drop table t").await.1.contains("no table 't'"));
    for (sql, why) in [
        ("create external table t stored as orc location 'x'", "STORED AS ORC is not known"),
        (
            "create external table t stored as parquet location '/nowhere/x.parquet'",
            "cannot open /nowhere/x.parquet",
        ),
        ("create external table t stored as parquet location 's3://b/x'", "is no place of files"),
        ("create external table t stored as parquet location 'volume:x'", "none is mounted"),
        ("create external table no.t stored as parquet location 'x'", "no database 'no' is mounted"),
        ("create table t (a int)", "only read"),
    ] {
        let (_, error) = refused(&session, sql).await;
        assert!(error.contains(why), "{sql}: {error}");
    }
}
