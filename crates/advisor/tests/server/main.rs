//! Advice on servers that run, MariaDB and PostgreSQL, and their clients through the proxy; and on files of SQLite.
//!
//! Where there is no such server its tests say so and pass.

#![allow(clippy::unwrap_used)]

mod advised;
mod mariadb;
mod postgres;
mod proxied;
mod proxied_postgres;
mod sqlite;
mod told_postgres;
