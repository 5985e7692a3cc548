//! Clients of MariaDB through the proxy: they see what they would see without it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder};
use tanada_advisor::layout::InnodbLayout;
use tanada_advisor::proxy::{Address, Connect, Event, Protocol, Proxy, Unseen, explain};
use tanada_advisor::server::MySql;
use tanada_advisor::{Error, ErrorKind};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use crate::mariadb::MariaDb;

struct Proxied {
    server: Arc<MariaDb>,
    runtime: Runtime,
    socket: PathBuf,
    serving: JoinHandle<()>,
    unseen: Arc<Unseen>,
    events: Option<Receiver<Event>>,
}

impl Proxied {
    /// A proxy whose queue has space for so many events.
    fn new(name: &str, space: usize) -> Option<Proxied> {
        let server = MariaDb::get()?;
        let runtime = Runtime::new().unwrap();
        let socket = server.folder().join(name);
        let (events, received) = channel(space);
        let at = Address::Unix(socket.clone());
        let listen = Proxy::listen(&at, Address::Unix(server.socket()), Protocol::MySql);
        let proxy = runtime.block_on(listen).unwrap();
        let unseen = proxy.unseen();
        let serving = runtime.spawn(proxy.serve(events));
        Some(Proxied { server, runtime, socket, serving, unseen, events: Some(received) })
    }

    fn ask(&self, options: &[&str], statements: &str) -> Result<String, String> {
        self.server.try_ask(&self.socket, options, statements)
    }

    async fn connect(socket: &Path) -> Conn {
        let options = OptsBuilder::default().user(Some("root")).db_name(Some("shop")).prefer_socket(false);
        Conn::new(options.socket(Some(socket.display().to_string()))).await.unwrap()
    }

    /// The statements that were seen so far, and how many have ended.
    fn seen(&mut self) -> (Vec<String>, usize) {
        let (mut statements, mut ended) = (Vec::new(), 0);
        let events = self.events.as_mut().unwrap();
        while let Ok(event) = events.try_recv() {
            match event {
                Event::Begins { statement, database, .. } => {
                    statements.push(format!("{}: {}", database.unwrap_or_default(), statement.trim()));
                }
                Event::Ends { .. } => ended += 1,
                Event::PlansChange => statements.push("plans change".to_owned()),
            }
        }
        (statements, ended)
    }
}

/// Statements of all kinds, with answers of all kinds.
fn statements(file: &Path) -> String {
    let long = "x".repeat(20 << 20);
    format!(
        "use shop;
         create or replace table u (n int primary key, text longtext);
         select count(*), sum(o_total) from orders where o_text like '%x%';
         select * from orders where o_customer = 17;
         insert into u values (1, 'it''s; one'), (2, null);
         select * from u;
         prepare s from 'select o_id, ? from orders where o_id < ?';
         set @a = 'v', @b = 9;
         execute s using @a, @b;
         load data local infile '{}' into table u fields terminated by ',';
         select count(*), sum(n), max(text) from u;
         insert into u values (0, '{long}');
         select length(text), md5(text) from u where n = 0;
         select repeat('y', 30000000) as long_answer;
         show warnings;
         delimiter //
         select 1; select 2; select 3 //
         delimiter ;
         drop table u;
         select 'the end';\n",
        file.display()
    )
}

#[test]
fn answers_through_the_proxy_are_those_without_it() {
    let Some(proxied) = Proxied::new("identical", 1024) else { return };
    let file = proxied.server.folder().join("rows.csv");
    let rows: String = (10..120_000).map(|no| format!("{no},row number {no}\n")).collect();
    std::fs::write(&file, rows).unwrap();
    let statements = statements(&file);
    let direct = proxied.server.ask(&statements);
    assert!(direct.len() > 30_000_000 && direct.ends_with("the end\nthe end\n"), "{}", direct.len());
    assert!(proxied.ask(&[], &statements).unwrap() == direct, "the answers differ");
    assert!(!proxied.unseen.is_any());
    assert!(proxied.ask(&["--compress"], &statements).unwrap() == direct, "the compressed answers differ");
    assert!(proxied.unseen.is_any());
    let wrong = "select no_such_column from shop.orders;";
    let refusals = [proxied.server.socket(), proxied.socket.clone()]
        .map(|socket| proxied.server.try_ask(&socket, &[], wrong));
    assert!(refusals[0].is_err());
    assert_eq!(refusals[0], refusals[1]);
}

#[test]
fn statements_of_clients_are_seen_with_values_and_ends() {
    let Some(mut proxied) = Proxied::new("seen", 1024) else { return };
    let socket = proxied.socket.clone();
    proxied.runtime.block_on(async move {
        let mut connection = Proxied::connect(&socket).await;
        let rows: Vec<(i32,)> = connection
            .exec("select o_id from orders where o_customer = ? and o_text <> ?", (17, "it's"))
            .await
            .unwrap();
        assert_eq!(rows.len(), 30);
        connection.query_drop("select sum(o_total) from orders; select 2").await.unwrap();
        connection.query_drop("analyze table part").await.unwrap();
        connection.query_drop("use mysql").await.unwrap();
        connection.query_drop("select count(*) from shop.part").await.unwrap();
        // The last statement ends by itself, though the connection stays open.
        tokio::time::sleep(Duration::from_millis(500)).await;
        drop(connection);
    });
    let (mut statements, ended) = proxied.seen();
    // What the client's library asks for itself when it connects.
    statements.retain(|statement| !statement.contains("@@"));
    assert_eq!(
        statements,
        [
            "shop: select o_id from orders where o_customer = 17 and o_text <> 'it''s'",
            "shop: select sum(o_total) from orders",
            "shop: select 2",
            "plans change",
            "mysql: select count(*) from shop.part",
        ]
    );
    assert!(ended >= 3, "{ended}");
}

/// Asks many statements; the longest that one took.
fn slowest(proxied: &Proxied) -> Duration {
    let socket = proxied.socket.clone();
    proxied.runtime.block_on(async move {
        let mut connection = Proxied::connect(&socket).await;
        let mut slowest = Duration::ZERO;
        for no in 0..300 {
            let begun = Instant::now();
            let statement = format!("select {no}, count(*) from orders where o_customer = {}", no % 10);
            let rows: Vec<(i32, i64)> = connection.query(statement).await.unwrap();
            assert_eq!(rows, [(no, 30)]);
            slowest = slowest.max(begun.elapsed());
        }
        slowest
    })
}

type Connecting = Connect<MySql, InnodbLayout>;

#[test]
fn failing_and_hanging_advisors_delay_no_statement() {
    let Some(mut proxied) = Proxied::new("failing", 2) else { return };
    // Nobody takes events out of a queue that has space for two.
    assert!(slowest(&proxied) < Duration::from_secs(2));
    let fails: Connecting = Box::new(|| Box::pin(async { Err(Error::new(ErrorKind::Server, "it is down")) }));
    let failing =
        proxied.runtime.spawn(explain(fails, proxied.events.take().unwrap(), proxied.unseen.clone()));
    assert!(slowest(&proxied) < Duration::from_secs(2));
    failing.abort();
    drop(proxied);
    let Some(mut proxied) = Proxied::new("hanging", 2) else { return };
    let hangs: Connecting = Box::new(|| Box::pin(std::future::pending()));
    let hanging =
        proxied.runtime.spawn(explain(hangs, proxied.events.take().unwrap(), proxied.unseen.clone()));
    assert!(slowest(&proxied) < Duration::from_secs(2));
    hanging.abort();
}

#[test]
fn a_proxy_that_ends_under_load_breaks_its_connections_alone() {
    let Some(proxied) = Proxied::new("killed", 16) else { return };
    proxied.server.ask("use shop; truncate t;");
    let Proxied { server, runtime, socket, serving, .. } = proxied;
    let client = |no: u32| {
        let socket = socket.clone();
        runtime.spawn(async move {
            let mut connection = Proxied::connect(&socket).await;
            let mut committed = Vec::new();
            for row in (no..).step_by(16) {
                let insert = format!("insert into t values ({row}, 'row {row}')");
                match connection.query_drop(insert).await {
                    Ok(()) => committed.push(row),
                    Err(_) => break,
                }
            }
            committed
        })
    };
    let clients: Vec<_> = (0..16).map(client).collect();
    // As if its process was killed: the listener and all connections are gone at once.
    std::thread::sleep(Duration::from_millis(700));
    serving.abort();
    let other = runtime.handle().clone();
    let committed = std::thread::spawn(move || {
        let mut all = Vec::new();
        for client in clients {
            client.abort();
            // Who was not at its end yet has said nothing.
            all.extend(other.block_on(client).unwrap_or_default());
        }
        all
    });
    let committed = committed.join().unwrap();
    drop(runtime);
    let found = server.ask("select count(*) from shop.t; check table shop.t extended;");
    assert!(found.contains("status\tOK"), "{found}");
    let count: usize = found.lines().nth(1).unwrap().parse().unwrap();
    assert!(count >= committed.len() && count > 0, "{count} {}", committed.len());
}
