//! Tanada against running servers: random statements are run by a server, which prints its tables and is stopped. Then
//! Tanada reads its files and has to give the same rows.
//!
//! Everything follows from a seed. A failure prints how to run the one table again:
//!
//! - `TANADA_SEED` is the seed of the first table, `TANADA_TABLES` and `TANADA_STATEMENTS` are how many there are.
//! - `TANADA_PAGE_KIB` is the page size of all servers; otherwise those of a long run have all sizes in turn.
//! - `TANADA_SERVERS` is the folder of `scripts/servers`. Without it MariaDB 11.8 and MySQL 9.7 are not run.
//! - `TANADA_RECORD` is a folder that gets the tables of MySQL and what it printed, for
//!   `fixtures/altered-mysql.tar.zst`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alterations;
mod answers;
mod campaign;
mod columns;
mod comparison;
mod created;
mod described;
#[path = "../../../innodb/tests/fixtures/mod.rs"]
mod fixtures;
mod imported;
mod informed;
mod kinds;
mod mirrors;
mod random;
mod rows;
mod server;
mod statements;
mod tables;
