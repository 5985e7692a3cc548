//! Tables with columns added and dropped instantly: projections, sums, filters and look-ups give the server's values.

use tanada_innodb::MountOptions;
use tanada_io::Method;

use crate::answers::{Row, assert_same_rows, read};
use crate::fixtures::unpacked;
use crate::sessions::{run, session};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn columns_added_and_dropped_instantly_are_read_alone_summed_and_looked_up() {
    for server in ["mariadb-10.11", "mysql-9.7"] {
        let folder = unpacked("instant").join(server);
        let options = MountOptions { allow_stale: true, ..MountOptions::default() };
        let session = session(Method::Threads);
        session.mount_innodb(&folder, &options).await.unwrap();
        session.use_database("c_instant").unwrap();
        for table in run(&session, "show tables").await.unwrap().rows {
            let table = table[0].clone().unwrap();
            let (header, expected) = read(&folder.join(format!("c_instant/{table}.tsv")));
            for (at, column) in header.iter().enumerate() {
                let what = format!("{server} {table}.{column}");
                let of = |rows: &mut dyn Iterator<Item = &Row>| -> Vec<Row> {
                    rows.map(|row| vec![row[at].clone()]).collect()
                };
                let alone = run(&session, &format!("select `{column}` from `{table}`")).await.unwrap();
                assert_same_rows(alone.rows, of(&mut expected.iter()), &what);
                let numbers: Option<Vec<i64>> =
                    expected.iter().map(|row| row[at].as_ref()?.parse().ok()).collect();
                let Some(numbers) = numbers else { continue };
                let sum = run(&session, &format!("select sum(`{column}`) from `{table}`")).await.unwrap();
                let expected_sum = numbers.iter().sum::<i64>().to_string();
                assert_eq!(sum.rows, [[Some(expected_sum)]], "{what}");
                for row in expected.iter().step_by(expected.len().div_ceil(5)) {
                    let value = row[at].clone().unwrap();
                    let sql = format!("select * from `{table}` where `{column}` = {value}");
                    let equal = expected.iter().filter(|other| other[at] == row[at]).cloned().collect();
                    assert_same_rows(run(&session, &sql).await.unwrap().rows, equal, &sql);
                }
            }
        }
    }
}
