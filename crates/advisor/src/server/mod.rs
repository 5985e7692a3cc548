//! Connections to other systems: what they plan, where their files lie, what they have counted.

pub mod credentials;
mod mysql;
mod postgres;
mod sqlite;

pub use mysql::MySql;
pub use postgres::Postgres;
pub use sqlite::Sqlite;
