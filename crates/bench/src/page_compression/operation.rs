//! LinkBench's ten operations and their mix.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Params};
use tanada_base::SplitMix64;

use super::access::Access;
use super::graph::{FIRST_LINK_TYPE, Graph, LINK_TYPES, unit};

/// Most links that one list gives.
const LONGEST_LIST: u64 = 10_000;

/// Of 1,000 lists so many ask for older links.
const HISTORY_OF_1000: u64 = 300;

/// The chance that a further link is asked for in the same request.
const ONE_MORE_LINK: f64 = 1.0 - 0.382;

/// Most links that one request asks for.
const MOST_LINKS: usize = 128;

/// How often what is asked for is likely to be there.
const GET_EXISTING: f64 = 0.5;
const CHANGE_EXISTING: f64 = 0.9;
const ADD_EXISTING: f64 = 0.05;

/// An operation of the request phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    AddLink,
    DeleteLink,
    UpdateLink,
    CountLink,
    GetLink,
    GetLinkList,
    GetNode,
    AddNode,
    UpdateNode,
    DeleteNode,
}

/// Each with its part of the requests in per cent, as in `FBWorkload.properties`.
pub(super) const MIX: [(Operation, &str, f64); 10] = [
    (Operation::AddLink, "add_link", 8.988_660_1),
    (Operation::DeleteLink, "delete_link", 2.990_766_4),
    (Operation::UpdateLink, "update_link", 8.012_212_5),
    (Operation::CountLink, "count_link", 4.886_356_7),
    (Operation::GetLink, "get_link", 0.526_114_2),
    (Operation::GetLinkList, "get_link_list", 50.711_914_5),
    (Operation::GetNode, "get_node", 12.932_668_3),
    (Operation::AddNode, "add_node", 2.573_278_9),
    (Operation::UpdateNode, "update_node", 7.366_437),
    (Operation::DeleteNode, "delete_node", 1.011_591_4),
];

impl Operation {
    /// One of the mix.
    pub(super) fn draw(random: &mut SplitMix64) -> Operation {
        let mut left = unit(random) * 100.0;
        for (operation, _, part) in MIX {
            left -= part;
            if left < 0.0 {
                return operation;
            }
        }
        Operation::GetLinkList
    }

    /// Its place in [`MIX`].
    pub(super) fn no(self) -> usize {
        MIX.iter().position(|(operation, ..)| *operation == self).unwrap_or_default()
    }
}

/// The distributions of LinkBench's `FBWorkload.properties`.
#[derive(Debug, Clone, Copy)]
struct Accesses {
    link_read: Access,
    link_write: Access,
    node_read: Access,
    node_update: Access,
}

impl Accesses {
    fn new(nodes: u64) -> Accesses {
        Accesses {
            link_read: Access::new(nodes, 0.8, 995),
            link_write: Access::new(nodes, 0.741, 950),
            node_read: Access::new(nodes, 0.625, 1000),
            node_update: Access::new(nodes, 0.606, 1000),
        }
    }
}

/// One that makes requests.
pub(super) struct Requester<'a> {
    graph: &'a Graph,
    accesses: Accesses,
    pub(super) random: SplitMix64,
    /// Grows with each request: the time that rows get.
    time: u64,
}

/// The links of one type of a node.
#[derive(Debug, Clone, Copy)]
struct LinkKey {
    id1: u64,
    link_type: u64,
}

impl<'a> Requester<'a> {
    pub(super) fn new(graph: &'a Graph, seed: u64) -> Requester<'a> {
        Requester {
            graph,
            accesses: Accesses::new(graph.nodes),
            random: SplitMix64::new(seed),
            time: 1 << 20,
        }
    }

    fn key(&mut self, access: Access) -> LinkKey {
        let id1 = access.choose(self.graph, &mut self.random);
        LinkKey { id1, link_type: FIRST_LINK_TYPE + self.random.below(LINK_TYPES) }
    }

    /// A node that may be at the end of a link, and is with about this chance.
    fn target(&mut self, key: LinkKey, existing: f64) -> u64 {
        let range = (Graph::links(key.id1, key.link_type) as f64 / existing).ceil().max(1.0) as u64;
        key.id1 + self.random.below(range)
    }

    /// Runs one operation.
    pub(super) async fn run(&mut self, operation: Operation, conn: &mut Conn) -> mysql_async::Result<()> {
        self.time += 1;
        let accesses = self.accesses;
        match operation {
            Operation::GetNode => {
                let id = accesses.node_read.choose(self.graph, &mut self.random);
                let sql = "select id, type, version, time, data from nodetable where id = ?";
                conn.exec_drop(sql, (id,)).await
            }
            Operation::AddNode => {
                let data = self.graph.node_payload(&mut self.random);
                let sql = "insert into nodetable (type, version, time, data) values (2048, 1, ?, ?)";
                conn.exec_drop(sql, (self.time, data)).await
            }
            Operation::UpdateNode => {
                let id = accesses.node_update.choose(self.graph, &mut self.random);
                let data = self.graph.node_payload(&mut self.random);
                let sql = "update nodetable set version = version + 1, time = ?, data = ? where id = ?";
                conn.exec_drop(sql, (self.time, data, id)).await
            }
            Operation::DeleteNode => {
                let id = 1 + self.random.below(self.graph.nodes);
                conn.exec_drop("delete from nodetable where id = ?", (id,)).await
            }
            Operation::CountLink => {
                let LinkKey { id1, link_type } = self.key(accesses.link_read);
                let sql = "select count from counttable where id = ? and link_type = ?";
                conn.exec_drop(sql, (id1, link_type)).await
            }
            Operation::GetLink => self.get_links(conn).await,
            Operation::GetLinkList => self.get_list(conn).await,
            Operation::AddLink => self.put_link(ADD_EXISTING, conn).await,
            Operation::UpdateLink => self.put_link(CHANGE_EXISTING, conn).await,
            Operation::DeleteLink => self.hide_link(conn).await,
        }
    }

    async fn get_links(&mut self, conn: &mut Conn) -> mysql_async::Result<()> {
        let key = self.key(self.accesses.link_read);
        let mut targets = vec![self.target(key, GET_EXISTING)];
        while targets.len() < MOST_LINKS && unit(&mut self.random) < ONE_MORE_LINK {
            targets.push(self.target(key, GET_EXISTING));
        }
        let marks = vec!["?"; targets.len()].join(", ");
        let sql = format!(
            "select id1, id2, link_type, visibility, data, time, version from linktable where id1 = ? and link_type = ? \
             and id2 in ({marks})"
        );
        let mut values = vec![key.id1, key.link_type];
        values.extend(targets);
        let values = values.into_iter().map(mysql_async::Value::from).collect();
        conn.exec_drop(sql, Params::Positional(values)).await
    }

    async fn get_list(&mut self, conn: &mut Conn) -> mysql_async::Result<()> {
        let LinkKey { id1, link_type } = self.key(self.accesses.link_read);
        let is_history = self.random.below(1000) < HISTORY_OF_1000;
        // What was loaded has times below those of requests.
        let most = if is_history { self.random.below(1 << 20) } else { u64::MAX };
        let sql = format!(
            "select id1, id2, link_type, visibility, data, time, version from linktable force index (id1_type) \
             where id1 = ? and link_type = ? and time >= 0 and time <= ? and visibility = 1 \
             order by time desc limit {LONGEST_LIST}"
        );
        conn.exec_drop(sql, (id1, link_type, most)).await
    }

    /// Adds a link, or changes the one that is there, and the count.
    async fn put_link(&mut self, existing: f64, conn: &mut Conn) -> mysql_async::Result<()> {
        let key = self.key(self.accesses.link_write);
        let id2 = self.target(key, existing);
        let data = self.graph.link_payload(&mut self.random);
        let (LinkKey { id1, link_type }, time) = (key, self.time);
        conn.query_drop("begin").await?;
        let sql = "insert into linktable (id1, id2, link_type, visibility, data, time, version) \
                   values (?, ?, ?, 1, ?, ?, 0) on duplicate key update visibility = 1";
        conn.exec_drop(sql, (id1, id2, link_type, &data, time)).await?;
        // The server counts a row that was inserted once, one that became visible twice, and one that was visible not
        // at all.
        let changed = conn.affected_rows();
        if changed != 1 {
            let sql = "update linktable set data = ?, time = ?, version = version + 1 \
                       where id1 = ? and id2 = ? and link_type = ?";
            conn.exec_drop(sql, (data, time, id1, id2, link_type)).await?;
        }
        if changed != 0 {
            self.count(key, 1, conn).await?;
        }
        conn.query_drop("commit").await
    }

    /// Hides a link that is there, and counts it no more.
    async fn hide_link(&mut self, conn: &mut Conn) -> mysql_async::Result<()> {
        let key = self.key(self.accesses.link_write);
        let id2 = self.target(key, CHANGE_EXISTING);
        let LinkKey { id1, link_type } = key;
        conn.query_drop("begin").await?;
        let sql = "update linktable set visibility = 0 where id1 = ? and id2 = ? and link_type = ? and visibility = 1";
        conn.exec_drop(sql, (id1, id2, link_type)).await?;
        if conn.affected_rows() == 1 {
            self.count(key, -1, conn).await?;
        }
        conn.query_drop("commit").await
    }

    async fn count(&mut self, key: LinkKey, by: i64, conn: &mut Conn) -> mysql_async::Result<()> {
        let sql = "insert into counttable (id, link_type, count, time, version) values (?, ?, ?, ?, 0) \
                   on duplicate key update count = greatest(cast(count as signed) + ?, 0), time = values(time), \
                   version = version + 1";
        conn.exec_drop(sql, (key.id1, key.link_type, by.max(0), self.time, by)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_drawn_in_their_parts() {
        assert!((MIX.iter().map(|(.., part)| part).sum::<f64>() - 100.0).abs() < 1e-3);
        let mut random = SplitMix64::new(1);
        let mut counts = [0_u32; 10];
        (0..100_000).for_each(|_| counts[Operation::draw(&mut random).no()] += 1);
        for (count, (_, name, part)) in counts.into_iter().zip(MIX) {
            assert!((f64::from(count) / 1000.0 - part).abs() < 0.5, "{name}: {count}");
        }
    }
}
