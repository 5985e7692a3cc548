//! What SQLite plans, and where its file has it. The library makes the file and explains.

use std::fs;

use rusqlite::Connection;
use tanada_advisor::server::Sqlite;
use tanada_advisor::{AccessKind, Advisor, FileLayout, Mounts, PlanSource, Statistics};
use tokio::runtime::Runtime;

const SCHEMA: &str = "
    pragma page_size = 4096;
    create table customer (c_id integer primary key, c_nation int, c_text text);
    create table orders (o_id integer primary key, o_customer int, o_text text);
    with recursive n (n) as (select 1 union all select n + 1 from n where n < 3000)
        insert into customer select n, n % 25, 'client' || n || hex(zeroblob(40)) from n;
    with recursive n (n) as (select 1 union all select n + 1 from n where n < 20000)
        insert into orders select n, n % 3000, 'ordered' || n || hex(zeroblob(40)) from n;
    create index o_customer on orders (o_customer);
    create index c_nation on customer (c_nation);
    analyze;";

fn shop() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.db");
    Connection::open(&file).unwrap().execute_batch(SCHEMA).unwrap();
    (folder, file)
}

#[test]
fn sqlite_accesses_are_found_in_its_file() {
    let (folder, file) = shop();
    let open = || Sqlite::open(&file).unwrap();
    let mounts = Mounts::at(&folder.path().canonicalize().unwrap());
    let mut advisor = Advisor::new(open(), open(), mounts);
    Runtime::new().unwrap().block_on(async {
        let mut told = async |statement: &str| {
            let announcement = advisor.announcement(None, statement).await.unwrap();
            assert!(announcement.accesses.iter().all(|access| access.object == "shop.db"));
            announcement.accesses.iter().map(|access| access.index.clone()).collect::<Vec<_>>()
        };
        assert_eq!(told("select count(*) from orders where o_text like '%x%'").await, ["orders"]);
        let joined = "select count(o_text) from customer join orders on o_customer = c_id where c_nation = 3";
        assert_eq!(told(joined).await, ["customer.c_nation", "orders.o_customer", "orders"]);
        assert_eq!(told("update orders set o_text = 'y' where o_id < 10").await[0], "orders");
        assert!(told("select 1").await.is_empty());
        let mut refused = async |statement: &str| advisor.announcement(None, statement).await.is_err();
        assert!(refused("selec 1").await);
    });
    let written = Connection::open(&file).unwrap();
    let changed = written.query_row("select count(*) from orders where o_text = 'y'", [], |row| row.get(0));
    assert_eq!(changed, Ok(0));
}

#[test]
fn rows_of_a_table_lie_where_sqlites_layout_says() {
    let (_folder, file) = shop();
    let mut sqlite = Sqlite::open(&file).unwrap();
    let bytes = fs::read(&file).unwrap();
    Runtime::new().unwrap().block_on(async {
        for (table, mark) in [("orders", "ordered"), ("customer", "client")] {
            let places = sqlite.places("", table).await.unwrap();
            assert_eq!(places.len(), 2, "{places:?}");
            let rows = places.iter().find(|place| place.has_rows).unwrap();
            let is_in = |at: usize| {
                rows.extents
                    .iter()
                    .any(|extent| (extent.offset..extent.offset + extent.len).contains(&(at as u64)))
            };
            let marks: Vec<usize> = bytes
                .windows(mark.len() + 1)
                .enumerate()
                .filter(|(_, window)| {
                    window.starts_with(mark.as_bytes()) && window[mark.len()].is_ascii_digit()
                })
                .map(|(at, _)| at)
                .collect();
            assert!(marks.len() >= 3000);
            assert!(marks.iter().all(|at| is_in(*at)), "{table}");
            let inside: u64 = rows.extents.iter().map(|extent| extent.len).sum();
            assert!(inside < bytes.len() as u64, "others lie in the file too");
            assert!(sqlite.rows("", table).await.unwrap().is_some_and(|rows| rows >= 3000.0));
        }
        let accesses = sqlite.accesses(None, "select * from orders where o_customer = 5").await.unwrap();
        assert!(accesses.iter().any(|access| access.kind != AccessKind::FullScan), "{accesses:?}");
    });
}
