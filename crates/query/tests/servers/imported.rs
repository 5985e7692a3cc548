//! Tables whose files came by `IMPORT TABLESPACE`: their pages have no LSN, whatever the log has of the file before.

use crate::rows::{mount, printed, run};
use crate::server::{Kind, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn imported_tables_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(Kind::MariaDb, folder.path());
    let tables = folder.path().join("data/c").display().to_string();
    let made = server.run(&format!(
        "create database c; use c; create table a(id int primary key, v varchar(20));
         insert into a values (1, 'x'), (2, 'y');
         create table b like a; insert into b values (9, 'z'); alter table b discard tablespace;
         flush tables a for export;
         \\! cp {tables}/a.ibd {tables}/b.ibd
         unlock tables; alter table b import tablespace;
         insert into b values (3, 'w'); alter table b add c int not null default 7, algorithm=instant;"
    ));
    assert!(made.refusals.is_empty(), "{:?}", made.refusals);
    let session = mount(&server.stop(false), false).await;
    let rows = run(&session, "select * from c.b order by id").await.unwrap().rows;
    assert_eq!(printed(&rows), ["1\tx\t7", "2\ty\t7", "3\tw\t7"]);
}
