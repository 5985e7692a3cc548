//! The phases of an arm: load, requests, rewrite, scan, drop.
//!
//! The rewrite updates every row three times. Each time the payload is rotated, so that each page is written with other
//! bytes of the same kind. What the rows then hold is checked: their versions have grown by three.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use serde::Serialize;
use tanada_base::SplitMix64;

use super::graph::{Graph, link_types};
use super::operation::{MIX, Operation, Requester};
use super::server::{DATABASE, Server, failed};
use crate::{Error, Result};

/// Connections that load and rewrite.
const LOADERS: u64 = 8;

/// Nodes of one statement of the load and of the rewrite.
const NODES_PER_STATEMENT: u64 = 256;

/// How often each row is updated.
const REWRITES: u64 = 3;

/// Errors after which a transaction is to be tried again: a deadlock, and a lock that was not to be had.
const RETRIED: [u16; 2] = [1213, 1205];

/// The tables as LinkBench has them, each with the end of its definition.
const TABLES: [(&str, &str, &str); 3] = [
    (
        "nodetable",
        "id bigint unsigned not null auto_increment, type int unsigned not null, version bigint unsigned not null, \
         time bigint unsigned not null, data mediumtext not null, primary key (id)",
        "",
    ),
    (
        "linktable",
        "id1 bigint unsigned not null default 0, id2 bigint unsigned not null default 0, \
         link_type bigint unsigned not null default 0, visibility tinyint not null default 0, \
         data varchar(255) not null default '', time bigint unsigned not null default 0, \
         version int unsigned not null default 0, primary key (link_type, id1, id2), \
         key id1_type (id1, link_type, visibility, time, id2, version, data)",
        "partition by key (id1) partitions 16",
    ),
    (
        "counttable",
        "id bigint unsigned not null default 0, link_type bigint unsigned not null default 0, \
         count int unsigned not null default 0, time bigint unsigned not null default 0, \
         version bigint unsigned not null default 0, primary key (id, link_type)",
        "",
    ),
];

/// Makes the tables; `create_options` are those of the arm.
pub(super) async fn create(server: &Server, create_options: &str) -> Result<()> {
    let mut conn = server.connect(DATABASE).await?;
    for (name, columns, end) in TABLES {
        let sql =
            format!("create table {name} ({columns}) engine=innodb charset=latin1 {create_options} {end}");
        conn.query_drop(sql).await.map_err(failed)?;
        // What the server does not do it only says in a warning.
        let warnings: Vec<(String, u16, String)> = conn.query("show warnings").await.map_err(failed)?;
        if let Some((_, _, text)) = warnings.first() {
            return Err(Error::failed(format!("MariaDB makes {name} otherwise than asked for: {text}")));
        }
    }
    Ok(())
}

/// Loads the graph; fails unless all rows are there then.
pub(super) async fn load(server: &Server, graph: &Graph) -> Result<f64> {
    let begun = Instant::now();
    by_ranges(server, graph, |first, last| {
        let mut random = SplitMix64::new(first);
        let mut nodes = b"insert into nodetable (id, type, version, time, data) values ".to_vec();
        let mut links =
            b"insert into linktable (id1, id2, link_type, visibility, data, time, version) values ".to_vec();
        let mut counts = b"insert into counttable (id, link_type, count, time, version) values ".to_vec();
        let lens = [nodes.len(), links.len(), counts.len()];
        for id in first..=last {
            nodes.extend_from_slice(format!("({id},2048,1,{},'", random.below(1 << 20)).as_bytes());
            nodes.extend(graph.node_payload(&mut random));
            nodes.extend_from_slice(b"'),");
            for link_type in link_types() {
                let count = Graph::links(id, link_type);
                for no in 0..count {
                    links.extend_from_slice(format!("({id},{},{link_type},1,'", id + no).as_bytes());
                    links.extend(graph.link_payload(&mut random));
                    links.extend_from_slice(format!("',{},0),", random.below(1 << 20)).as_bytes());
                }
                if count > 0 {
                    counts.extend_from_slice(format!("({id},{link_type},{count},0,0),").as_bytes());
                }
            }
        }
        let mut statements = vec![nodes, links, counts];
        for (statement, len) in statements.iter_mut().zip(lens) {
            // Without rows there is nothing to do; else a comma is the last.
            let is_empty = statement.len() == len;
            statement.truncate(if is_empty { 0 } else { statement.len() - 1 });
        }
        statements.retain(|statement| !statement.is_empty());
        statements
    })
    .await?;
    let seconds = begun.elapsed().as_secs_f64();
    let rows = rows(server).await?;
    if rows != graph.rows() {
        return Err(Error::failed(format!("loaded {:?} rows, and {rows:?} are there", graph.rows())));
    }
    Ok(seconds)
}

/// Runs the statements that `make` gives for ranges of nodes, several connections at once.
async fn by_ranges(
    server: &Server,
    graph: &Graph,
    make: impl Fn(u64, u64) -> Vec<Vec<u8>> + Copy,
) -> Result<()> {
    let loaders = (0..LOADERS).map(|loader| async move {
        let mut conn = server.connect(DATABASE).await?;
        let mut first = 1 + loader * NODES_PER_STATEMENT;
        while first <= graph.nodes {
            let last = (first + NODES_PER_STATEMENT - 1).min(graph.nodes);
            for statement in make(first, last) {
                retried(&mut conn, &statement).await?;
            }
            first += LOADERS * NODES_PER_STATEMENT;
        }
        Ok::<(), Error>(())
    });
    try_join_all(loaders).await.map(drop)
}

/// Runs a statement until no other transaction is in its way.
async fn retried(conn: &mut Conn, statement: &[u8]) -> Result<()> {
    loop {
        match conn.query_drop(statement).await {
            Err(error) if is_retried(&error) => {}
            done => return done.map_err(failed),
        }
    }
}

fn is_retried(error: &mysql_async::Error) -> bool {
    matches!(error, mysql_async::Error::Server(error) if RETRIED.contains(&error.code))
}

/// Rows of the three tables.
async fn rows(server: &Server) -> Result<[u64; 3]> {
    let mut conn = server.connect(DATABASE).await?;
    let mut rows = [0; 3];
    for (count, table) in rows.iter_mut().zip(["nodetable", "linktable", "counttable"]) {
        *count = number(&mut conn, &format!("select count(*) from {table}")).await?;
    }
    Ok(rows)
}

async fn number(conn: &mut Conn, sql: &str) -> Result<u64> {
    let found: Option<u64> = conn.query_first(sql).await.map_err(failed)?;
    found.ok_or_else(|| Error::failed(format!("MariaDB gives no row for {sql}")))
}

/// Latencies of one kind of operation.
#[derive(Debug, Clone, Serialize)]
pub struct Latencies {
    /// Requests.
    pub requests: u64,
    /// Half of them took no longer than this, in microseconds.
    pub p50_us: u64,
    /// 95 of 100.
    pub p95_us: u64,
    /// 99 of 100.
    pub p99_us: u64,
}

impl Latencies {
    fn of(mut all: Vec<u64>) -> Latencies {
        all.sort_unstable();
        let at = |part: f64| {
            let place = (all.len() as f64 * part) as usize;
            all.get(place.min(all.len().saturating_sub(1))).copied().unwrap_or_default()
        };
        Latencies { requests: all.len() as u64, p50_us: at(0.5), p95_us: at(0.95), p99_us: at(0.99) }
    }
}

/// What the request phase came to.
#[derive(Debug)]
pub(super) struct Requested {
    pub(super) requests_per_second: f64,
    /// Transactions that were tried again after a deadlock.
    pub(super) retries: u64,
    pub(super) operations: BTreeMap<&'static str, Latencies>,
}

/// Makes requests, `requesters` at once, for `seconds`.
pub(super) async fn request(
    server: &Server,
    graph: &Graph,
    requesters: usize,
    seconds: f64,
    seed: u64,
) -> Result<Requested> {
    let conns = try_join_all((0..requesters).map(|_| server.connect(DATABASE))).await?;
    let (begun, limit) = (Instant::now(), Duration::from_secs_f64(seconds));
    let tasks = conns.into_iter().enumerate().map(|(no, mut conn)| async move {
        let mut requester = Requester::new(graph, seed << 32 | no as u64);
        let (mut latencies, mut retries) = (vec![Vec::new(); MIX.len()], 0);
        while begun.elapsed() < limit {
            let operation = Operation::draw(&mut requester.random);
            let started = Instant::now();
            while let Err(error) = requester.run(operation, &mut conn).await {
                if !is_retried(&error) {
                    return Err(failed(error));
                }
                conn.query_drop("rollback").await.map_err(failed)?;
                retries += 1;
            }
            latencies[operation.no()].push(started.elapsed().as_micros() as u64);
        }
        Ok((latencies, retries))
    });
    let done: Vec<(Vec<Vec<u64>>, u64)> = try_join_all(tasks).await?;
    let elapsed = begun.elapsed().as_secs_f64();
    let retries = done.iter().map(|(_, retries)| retries).sum();
    let mut operations = BTreeMap::new();
    let mut requests = 0;
    for (no, (_, name, _)) in MIX.iter().enumerate() {
        let all: Vec<u64> = done.iter().flat_map(|(latencies, _)| latencies[no].iter().copied()).collect();
        requests += all.len();
        operations.insert(*name, Latencies::of(all));
    }
    Ok(Requested { requests_per_second: requests as f64 / elapsed, retries, operations })
}

/// What a rewrite has to add to: rows, and the sum of their versions, of nodes and links.
async fn versions(conn: &mut Conn) -> Result<[u64; 4]> {
    let mut all = [0; 4];
    for (no, table) in ["nodetable", "linktable"].into_iter().enumerate() {
        let sql = format!("select count(*), cast(coalesce(sum(version), 0) as unsigned) from {table}");
        let found: Option<(u64, u64)> = conn.query_first(sql).await.map_err(failed)?;
        (all[2 * no], all[2 * no + 1]) = found.unwrap_or_default();
    }
    Ok(all)
}

/// Updates every row three times.
pub(super) async fn rewrite(server: &Server, graph: &Graph) -> Result<f64> {
    let mut conn = server.connect(DATABASE).await?;
    let before = versions(&mut conn).await?;
    let largest = number(&mut conn, "select coalesce(max(id), 0) from nodetable").await?;
    let begun = Instant::now();
    let rotated = "version = version + 1, data = concat(substr(data, 8), left(data, 7))";
    for _ in 0..REWRITES {
        by_ranges(server, graph, |first, last| {
            // The last range has the nodes, too, that requests have added.
            let last = if last == graph.nodes { largest.max(last) } else { last };
            let mut all = vec![format!("update nodetable set {rotated} where id between {first} and {last}")];
            for link_type in link_types() {
                let rows = format!("link_type = {link_type} and id1 between {first} and {last}");
                all.push(format!("update linktable set {rotated} where {rows}"));
            }
            let rows = format!("id between {first} and {last}");
            all.push(format!("update counttable set version = version + 1, time = time + 1 where {rows}"));
            all.into_iter().map(String::into_bytes).collect()
        })
        .await?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = versions(&mut conn).await?;
    let expected = [before[0], before[1] + REWRITES * before[0], before[2], before[3] + REWRITES * before[2]];
    if after != expected {
        let why = format!("after the rewrite rows and versions are {after:?} instead of {expected:?}");
        return Err(Error::failed(why));
    }
    Ok(seconds)
}

/// Reads the two large tables in the order of their keys.
pub(super) async fn scan(server: &Server) -> Result<f64> {
    let mut conn = server.connect(DATABASE).await?;
    let begun = Instant::now();
    for table in ["nodetable", "linktable force index (primary)"] {
        number(&mut conn, &format!("select cast(coalesce(sum(length(data)), 0) as unsigned) from {table}"))
            .await?;
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// Drops the tables; that they are gone is durable when this returns.
pub(super) async fn drop_tables(server: &Server, folder: &Path) -> Result<f64> {
    let mut conn = server.connect(DATABASE).await?;
    let begun = Instant::now();
    for (table, ..) in TABLES {
        conn.query_drop(format!("drop table {table}")).await.map_err(failed)?;
    }
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|error| Error::at_path("sync", folder, &error))?;
    Ok(begun.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_latencies() {
        let all = Latencies::of((1..=100).rev().collect());
        assert_eq!((all.requests, all.p50_us, all.p95_us, all.p99_us), (100, 51, 96, 100));
        assert_eq!(Latencies::of(Vec::new()).p99_us, 0);
    }
}
