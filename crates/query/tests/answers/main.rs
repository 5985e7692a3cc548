//! Answers of Tanada against those of real servers, query by query: rows spelled as the servers' clients print them.
//!
//! - `recorded`: queries whose answers a MariaDB 10.11 gave once, on files that the installed MariaDB makes now.
//! - `generated`: random schemas, rows and queries, asked of a running MariaDB and of Tanada on its files. A difference
//!   is shrunk to a small case. `oracles` needs no server: what a query says about itself has to be consistent.
//! - `rules`: rules that users ask about, each with the answers of both servers.
//! - `collection`: files in the format of sqllogictest, as SQLite's public collection has them.
//!
//! A query on a server's files gives the rows that the server gives, or an error. Both kinds of failure are counted
//! apart (docs/testing.md).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod asking;
mod collection;
mod generated;
mod known;
mod printed;
#[path = "../servers/random.rs"]
mod random;
mod recorded;
mod rules;
#[path = "../servers/server.rs"]
#[allow(dead_code, reason = "shared with the tests of tables, which hold read views")]
mod server;
mod verdict;
