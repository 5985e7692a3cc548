//! Short columns that are never NULL and whose values lie outside of their page: samples do not fetch them, queries do.

use tanada_innodb::MountOptions;
use tanada_io::Method;

use crate::answers::{Row, assert_same_rows, read};
use crate::fixtures::unpacked;
use crate::sessions::{run, session};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn off_page_values_of_columns_that_are_never_null_are_read() {
    for server in ["mariadb-10.11", "mysql-9.7"] {
        let folder = unpacked("instant").join(server);
        let options = MountOptions { allow_stale: true, ..MountOptions::default() };
        let session = session(Method::Threads);
        session.mount_innodb(&folder, &options).await.unwrap();
        session.use_database("c_off_page").unwrap();
        let tables = run(&session, "show tables").await.unwrap().rows;
        assert_eq!(tables.len(), 5, "{server}");
        for table in tables {
            let table = table[0].clone().unwrap();
            let what = format!("{server} {table}");
            let (header, expected) = read(&folder.join(format!("c_off_page/{table}.tsv")));
            let columns = header.iter().map(|name| match name.strip_suffix("__hex") {
                Some(bytes) => format!("hex({bytes}) as {name}"),
                None => name.clone(),
            });
            let columns = columns.collect::<Vec<_>>().join(", ");
            let answer = run(&session, &format!("select {columns} from {table}")).await;
            let answer = answer.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(answer.header, header, "{what}");
            assert_same_rows(answer.rows, expected.clone(), &what);
            for (at, column) in header.iter().enumerate() {
                if column.ends_with("__hex") {
                    continue;
                }
                let longest =
                    expected.iter().filter_map(|row| row[at].clone()).max_by_key(String::len).unwrap();
                let has_it = |row: &&Row| row[at].as_ref() == Some(&longest);
                let rows: Vec<Row> = expected.iter().filter(has_it).map(|row| vec![row[0].clone()]).collect();
                let sql = format!("select id from {table} where {column} = '{longest}'");
                let answer =
                    run(&session, &sql).await.unwrap_or_else(|error| panic!("{what}.{column}: {error}"));
                assert_same_rows(answer.rows, rows, &format!("{what} by {column}"));
            }
        }
    }
}
