//! What PostgreSQL plans, and where its files have it.

use std::fs;

use tanada_advisor::server::Postgres as Connection;
use tanada_advisor::{AccessKind, Advisor, FileLayout, Mounts, PlanSource, Statistics};
use tokio::runtime::Runtime;

use crate::postgres::Postgres;

async fn connect(server: &Postgres) -> Connection {
    Connection::connect(&server.target(), None).await.unwrap()
}

#[test]
fn postgres_accesses_are_found_in_the_files_of_a_running_server() {
    let Some(server) = Postgres::get() else { return };
    Runtime::new().unwrap().block_on(async {
        let connection = connect(&server).await;
        let mounts = Mounts::at(&server.folder().canonicalize().unwrap());
        let mut advisor = Advisor::new(connection.clone(), connection, mounts);
        let mut ask = async |statement: &str| advisor.announcement(Some("postgres"), statement).await;
        let path = |relation: &str| {
            let asked = server.ask(&format!("select pg_relation_filepath('shop.{relation}');"));
            format!("data/{}", asked.trim())
        };
        let scan = ask("select sum(o_total) from shop.orders where o_text like '%x%'").await.unwrap();
        let [access] = &scan.accesses[..] else { panic!("{scan:?}") };
        assert_eq!((access.object.as_str(), access.index.as_str()), (path("orders").as_str(), "orders"));
        let bytes: u64 = access.extents.iter().map(|extent| extent.len).sum();
        let file = fs::metadata(server.folder().join(&access.object)).unwrap().len();
        assert_eq!((bytes, access.expected_pages), (file, file / 8192));
        let by_index = ask("select o_text from shop.orders o where o_customer = 17").await.unwrap();
        let objects: Vec<&str> = by_index.accesses.iter().map(|access| access.object.as_str()).collect();
        assert_eq!(objects, [path("o_customer"), path("orders")]);
        assert!(by_index.accesses[1].expected_pages <= 40, "{by_index:?}");
        let partition = ask("select count(p_text) from shop.part where p_id > 6000").await.unwrap();
        let objects: Vec<&str> = partition.accesses.iter().map(|access| access.object.as_str()).collect();
        assert_eq!(objects, [path("part_2")]);
        let update = ask("update shop.orders set o_text = 'y' where o_id < 10").await.unwrap();
        assert!(update.accesses.iter().any(|access| access.object == path("orders_pkey")), "{update:?}");
        assert!(ask("select 1").await.unwrap().accesses.is_empty());
        assert!(ask("selec 1").await.is_err());
    });
    assert_eq!(server.ask("select count(*) from shop.orders where o_text = 'y';"), "0\n");
}

/// A backslash ends no text here, so what looks like one statement may be several, which the explanation ran.
#[test]
fn explained_text_runs_nothing_even_if_it_is_several_statements() {
    let Some(server) = Postgres::get() else { return };
    server.ask("drop table if exists shop.hit; create table shop.hit (n int);");
    Runtime::new().unwrap().block_on(async {
        let mut connection = connect(&server).await;
        for text in [
            "select 1; commit; begin read write; insert into shop.hit values (1); commit",
            "select 'a\\'; commit; begin read write; insert into shop.hit values (2); commit; --'",
        ] {
            connection.accesses(None, text).await.unwrap_err();
        }
        assert!(connection.accesses(None, "select * from shop.orders").await.is_ok());
    });
    assert_eq!(server.ask("select count(*) from shop.hit;"), "0\n");
}

#[test]
fn rows_of_a_table_lie_where_the_layout_says() {
    let Some(server) = Postgres::get() else { return };
    let text = "'mark' || n || repeat('.', 100)";
    server.ask(&format!(
        "create table shop.marked (n int primary key, body text);
         insert into shop.marked select n, {text} from generate_series(1, 5000) n;
         create index marked_body on shop.marked (body);
         alter table shop.marked set (fillfactor = 50);
         vacuum full shop.marked; checkpoint;"
    ));
    Runtime::new().unwrap().block_on(async {
        let mut connection = connect(&server).await;
        let mut counts = Vec::new();
        for place in connection.places("shop", "marked").await.unwrap() {
            let bytes = fs::read(&place.file).unwrap();
            assert_eq!(place.extents.iter().map(|extent| extent.len).sum::<u64>(), bytes.len() as u64);
            let marks = bytes.windows(4).filter(|window| window == b"mark").count();
            counts.push((place.name, place.has_rows, marks >= 5000));
        }
        counts.sort();
        let expected = [("marked", true, true), ("marked_body", false, true), ("marked_pkey", false, false)];
        let expected = expected.map(|(name, has_rows, is_marked)| (name.to_owned(), has_rows, is_marked));
        assert_eq!(counts, expected);
        assert_eq!(connection.rows("shop", "orders").await.unwrap(), Some(30_000.0));
        let accesses = connection.accesses(None, "select n from shop.marked where body = 'x'").await.unwrap();
        assert_eq!(accesses[0].index.as_deref(), Some("marked_body"));
        assert_ne!(accesses[0].kind, AccessKind::FullScan);
        // A table that is gone is refused or has no place.
        server.ask("drop table shop.marked;");
        connection.forget();
        assert!(connection.places("shop", "marked").await.is_ok_and(|places| places.is_empty()));
    });
}
