//! What MariaDB plans, where its files have it, and what a mount's policy makes of it.

use std::path::Path;
use std::sync::Arc;

use tanada_advisor::layout::InnodbLayout;
use tanada_advisor::message::{Announcement, ObjectReads};
use tanada_advisor::proxy::{Address, Connect, Explainer, Protocol, Proxy, explain};
use tanada_advisor::server::MySql;
use tanada_advisor::{Advisor, Client, Guide, Mounts, listen};
use tanada_io::{ExecutorOptions, Executors};
use tanada_placement::Pattern;
use tanada_volume::directory::{ClassConfig, Directory, Settings};
use tanada_volume::{Attributes, VolumeSettings};
use tokio::runtime::Runtime;

use crate::mariadb::MariaDb;

const CHUNK_BYTES: u64 = 256 << 10;

fn executors() -> Arc<Executors> {
    Executors::start(ExecutorOptions { threads: 2, ..ExecutorOptions::default() }).unwrap()
}

/// An advisor to whom the server's folder is a mount.
async fn advisor(server: &MariaDb, executors: &Arc<Executors>) -> Advisor<MySql, InnodbLayout> {
    let connection = MySql::connect(&server.target()).await.unwrap();
    let layout = InnodbLayout::new(connection.data_directory(), executors.clone());
    Advisor::new(connection, layout, Mounts::at(&server.folder().canonicalize().unwrap()))
}

fn told(announcement: &Announcement) -> Vec<String> {
    let of = |access: &tanada_advisor::message::ObjectAccess| {
        let pattern = match access.pattern {
            Pattern::SequentialScan => "scan".to_owned(),
            Pattern::IndexRange => "range".to_owned(),
            Pattern::RandomLookUps { .. } => "look-ups".to_owned(),
        };
        format!("{} {} {pattern}", access.object, access.index)
    };
    announcement.accesses.iter().map(of).collect()
}

#[test]
fn accesses_are_found_in_the_files_of_a_running_server() {
    let Some(server) = MariaDb::get() else { return };
    let executors = executors();
    Runtime::new().unwrap().block_on(async {
        let mut advisor = advisor(&server, &executors).await;
        let mut ask = async |statement: &str| advisor.announcement(Some("shop"), statement).await;
        let scan = ask("select sum(o_total) from orders where o_text like '%x%'").await.unwrap();
        assert_eq!(told(&scan), ["data/shop/orders.ibd orders.PRIMARY scan"]);
        let access = &scan.accesses[0];
        let bytes: u64 = access.extents.iter().map(|extent| extent.len).sum();
        // 30,000 rows of some 260 bytes.
        assert!(bytes > 7 << 20 && access.expected_pages > 450, "{bytes} {}", access.expected_pages);
        let by_alias = ask("select o.o_text from orders as o where o.o_customer in (1, 2)").await.unwrap();
        let both =
            ["data/shop/orders.ibd orders.o_customer range", "data/shop/orders.ibd orders.PRIMARY look-ups"];
        assert_eq!(told(&by_alias), both);
        assert!(by_alias.accesses[1].expected_pages < 100);
        let partition =
            ask("select count(p_text) from part where p_id > 6000 and p_text like 'p%'").await.unwrap();
        let object = "data/shop/part#P#p2.ibd";
        assert_eq!(
            partition.accesses.iter().map(|access| access.object.as_str()).collect::<Vec<_>>(),
            [object]
        );
        let update = ask("update orders o set o_text = 'y' where o_id < 10").await.unwrap();
        assert_eq!(told(&update), ["data/shop/orders.ibd orders.PRIMARY range"]);
        assert!(told(&ask("select 1").await.unwrap()).is_empty());
        assert!(ask("selec 1").await.is_err());
        assert!(ask("select 1; drop table orders").await.is_err());
    });
    assert_eq!(server.ask("select count(*) from shop.orders where o_text = 'y'"), "count(*)\n0\n");
}

/// A volume with an object for each named file, all of it in its second class.
async fn volume(folder: &Path, names: &[&str]) -> Directory {
    let class = |name: &str| ClassConfig::new(name, vec![".".into()], Some(64 << 20));
    let settings = VolumeSettings { chunk_bytes: CHUNK_BYTES, ..VolumeSettings::default() };
    let classes = [class("fast"), class("slow")];
    let directory = Directory::create(folder, &settings, &classes, Settings::default()).await.unwrap();
    for name in names {
        let attributes = Attributes { class: Some("slow".to_owned()), ..Attributes::default() };
        let object = directory.volume().create_object(name, &attributes).unwrap();
        object.write_bytes(0, &vec![1; 12 << 20]).await.unwrap();
    }
    directory
}

fn fast_chunks(directory: &Directory, name: &str) -> usize {
    let volume = directory.volume();
    let fast = volume.classes()[0].number;
    let object = volume.open_object(name).unwrap();
    object.chunks(0..u64::MAX).iter().filter(|chunk| chunk.lies_in(fast)).count()
}

#[test]
fn announced_indexes_go_up_and_come_back_when_their_query_is_over() {
    let Some(server) = MariaDb::get() else { return };
    let executors = executors();
    let folder = tempfile::tempdir().unwrap();
    let (orders, other) = ("data/shop/orders.ibd", "data/shop/other.ibd");
    let path = folder.path().to_owned();
    let directory = executors.block_on(move || async move { volume(&path, &[orders, other]).await }).unwrap();
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let guide = Guide::start(&directory, "plan", None, &executors).await.unwrap();
        let listening = listen(folder.path(), guide.clone()).unwrap();
        let mut advisor = advisor(&server, &executors).await;
        let mut client = Client::connect(folder.path()).await.unwrap();
        let reads = |object: &str| ObjectReads { object: object.to_owned(), reads: 1000, bytes: 1000 << 14 };
        client.count(vec![reads(orders), reads(other)]).await.unwrap();
        let statement = "select sum(o_total) from orders where o_text like '%x%'";
        let announcement = advisor.announcement(Some("shop"), statement).await.unwrap();
        let forecast = client.forecast(&announcement).await.unwrap();
        assert!(forecast.policy == "plan" && forecast.move_count > 20, "{forecast:?}");
        assert_eq!(forecast.classes[0].len(), 1, "{:?}", forecast.classes);
        assert_eq!(fast_chunks(&directory, orders), 0, "a forecast moves nothing");
        let query = client.begin(&announcement).await.unwrap();
        client.settle().await.unwrap();
        assert!(fast_chunks(&directory, orders) > 20 && fast_chunks(&directory, other) == 0);
        let placed = client.placed(0).await.unwrap();
        assert!(
            placed.iter().all(|placed| placed.refusal.is_none() && placed.object == orders),
            "{placed:?}"
        );
        client.end(query).await.unwrap();
        // A client that is gone has ended its queries.
        let mut gone = Client::connect(folder.path()).await.unwrap();
        gone.begin(&announcement).await.unwrap();
        drop((gone, listening));
        assert!(Client::connect(folder.path()).await.is_err());
        guide.stop(&executors).await.unwrap();
    });
    executors.block_on(move || async move { directory.close().await.unwrap() }).unwrap();
}

/// Statements of a compressed connection cannot be seen on their way, nor can those that TLS hides.
#[test]
fn statements_of_unseen_connections_are_found_in_the_servers_list() {
    let Some(server) = MariaDb::get() else { return };
    let executors = executors();
    let folder = tempfile::tempdir().unwrap();
    let orders = "data/shop/orders.ibd";
    let path = folder.path().to_owned();
    let directory = executors.block_on(move || async move { volume(&path, &[orders]).await }).unwrap();
    let runtime = Runtime::new().unwrap();
    let socket = server.folder().join("compressed");
    let guide = runtime.block_on(async {
        let guide = Guide::start(&directory, "plan", None, &executors).await.unwrap();
        guide.count(&[ObjectReads { object: orders.to_owned(), reads: 1000, bytes: 1000 << 14 }]);
        guide
    });
    let listening = runtime.block_on(async { listen(folder.path(), guide.clone()).unwrap() });
    let connect: Connect<MySql, InnodbLayout> = {
        let (server, executors, folder) = (server.clone(), executors.clone(), folder.path().to_owned());
        Box::new(move || {
            let (server, executors, folder) = (server.clone(), executors.clone(), folder.clone());
            Box::pin(async move {
                let advisor = advisor(&server, &executors).await;
                Ok(Explainer { advisor, client: Client::connect(&folder).await? })
            })
        })
    };
    let at = Address::Unix(socket.clone());
    let proxy =
        runtime.block_on(Proxy::listen(&at, Address::Unix(server.socket()), Protocol::MySql)).unwrap();
    let (events, received) = tokio::sync::mpsc::channel(16);
    let explaining = runtime.spawn(explain(connect, received, proxy.unseen()));
    let serving = runtime.spawn(proxy.serve(events));
    let statement = "select count(o_text), sleep(2) from shop.orders where o_text like '%x%';";
    server.try_ask(&socket, &["--compress"], statement).unwrap();
    assert!(fast_chunks(&directory, orders) > 20);
    serving.abort();
    explaining.abort();
    drop(listening);
    runtime.block_on(guide.stop(&executors)).unwrap();
    executors.block_on(move || async move { directory.close().await.unwrap() }).unwrap();
}
