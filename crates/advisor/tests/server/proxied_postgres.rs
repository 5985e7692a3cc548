//! Clients of PostgreSQL through the proxy: they see what they would see without it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tanada_advisor::proxy::{Address, Event, Protocol, Proxy};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::JoinHandle;

use crate::postgres::Postgres;

struct Proxied {
    server: Arc<Postgres>,
    /// Where clients look for the proxy's socket.
    folder: PathBuf,
    events: Receiver<Event>,
    serving: JoinHandle<()>,
    // Last: tasks live in it.
    _runtime: Runtime,
}

impl Proxied {
    fn new(name: &str) -> Option<Proxied> {
        let server = Postgres::get()?;
        let runtime = Runtime::new().unwrap();
        let folder = server.folder().join(name);
        std::fs::create_dir(&folder).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&folder, open).unwrap();
        let path = folder.join(".s.PGSQL.5432");
        let at = Address::Unix(path.clone());
        let listen = Proxy::listen(&at, Address::Unix(server.socket()), Protocol::Postgres);
        let proxy = runtime.block_on(listen).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(&path, open).unwrap();
        let (events, received) = channel(1024);
        let serving = runtime.spawn(proxy.serve(events));
        Some(Proxied { server, folder, events: received, serving, _runtime: runtime })
    }

    fn ask(&self, statements: &str) -> Result<String, String> {
        self.server.try_ask(&self.folder, &[], statements)
    }

    /// The statements that were seen so far, and how many have ended.
    fn seen(&mut self) -> (Vec<String>, usize) {
        let (mut statements, mut ended) = (Vec::new(), 0);
        while let Ok(event) = self.events.try_recv() {
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

impl Drop for Proxied {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

#[test]
fn answers_of_postgres_through_the_proxy_are_those_without_it() {
    let Some(proxied) = Proxied::new("identical") else { return };
    let rows: String = (1..50_000).map(|no| format!("{no}\trow number {no}\n")).collect();
    let statements = format!(
        "drop table if exists shop.u;
         create table shop.u (n int, body text);
         copy shop.u from stdin;\n{rows}\\.
         select count(*), sum(n), max(body) from shop.u;
         select count(*), sum(o_total) from shop.orders where o_text like '%x%';
         select * from shop.orders where o_customer = 17 order by o_id;
         prepare s (int) as select o_id, o_total from shop.orders where o_id < $1 order by 1;
         execute s (9);
         select md5(repeat('y', 20000000)), length(repeat('y', 20000000));
         select repeat('z', 5000000);
         copy (select * from shop.u where n < 1000 order by n) to stdout;
         begin; declare c cursor for select n from shop.u order by n; fetch 3 from c; rollback;
         select 'it''s; one' \\; select 2;
         listen nothing;
         drop table shop.u;
         select 'the end';\n"
    );
    let direct = proxied.server.ask(&statements);
    assert!(direct.len() > 5_000_000 && direct.ends_with("the end\n"), "{}", direct.len());
    assert!(proxied.ask(&statements).unwrap() == direct, "the answers differ");
    let wrong = "select no_such_column from shop.orders;";
    let refusals = [proxied.server.folder().to_owned(), proxied.folder.clone()]
        .map(|folder| proxied.server.try_ask(&folder, &[], wrong));
    assert!(refusals[0].is_err());
    assert_eq!(refusals[0], refusals[1]);
}

#[test]
fn statements_of_clients_of_postgres_are_seen_with_values_and_ends() {
    let Some(mut proxied) = Proxied::new("seen") else { return };
    proxied
        .ask("select sum(o_total) from shop.orders; analyze shop.part; select count(*) from shop.part;")
        .unwrap();
    // Prepared statements whose values are texts.
    let script = proxied.server.folder().join("script");
    std::fs::write(&script, "\\set c 17\nselect o_id from shop.orders where o_customer = :c;\n").unwrap();
    let mut bench = proxied.server.command("pgbench");
    bench.arg("-h").arg(&proxied.folder).args(["-U", "postgres", "-n", "-M", "prepared", "-t", "2", "-f"]);
    let ran = bench.arg(&script).arg("postgres").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    std::thread::sleep(Duration::from_millis(500));
    let (mut statements, ended) = proxied.seen();
    // What pgbench asks for itself.
    statements.retain(|statement| statement.contains("shop.") || statement == "plans change");
    assert_eq!(
        statements,
        [
            "postgres: select sum(o_total) from shop.orders",
            "plans change",
            "postgres: select count(*) from shop.part",
            "postgres: select o_id from shop.orders where o_customer = '17'",
            "postgres: select o_id from shop.orders where o_customer = '17'",
        ]
    );
    assert!(ended >= 4, "{ended}");
}
