//! Whose rules an expression follows, and the settings of the session that its value depends on.

use tanada_innodb::schema::Server;

use super::collating::Collating;
use super::connection::Connection;
use super::zone::Zone;

/// What values depend on besides their operands. It is passed to the plan of every expression.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// MySQL's rules hold; otherwise MariaDB's.
    pub mysql: bool,
    /// MariaDB is 11.5 or later.
    pub newer_mariadb: bool,
    /// How texts compare that name no collation.
    pub connection: Connection,
    /// `time_zone`.
    pub zone: Zone,
    /// The statement's start in microseconds since 1970-01-01 UTC (`timestamp`); `None` where an expression has no
    /// statement, as a virtual column.
    pub now_micros: Option<i64>,
    /// `default_week_format`: 0 to 7.
    pub default_week_format: u8,
    /// `div_precision_increment`: 0 to 30.
    pub div_precision_increment: u8,
    /// Whether the server may keep rows of the statement in a table of its own, where texts are cut to the lengths of
    /// their types.
    pub keeps_rows: bool,
}

impl Rules {
    /// The rules of a server with its default settings, the time zone being UTC.
    pub fn new(mysql: bool) -> Rules {
        Rules {
            mysql,
            newer_mariadb: false,
            connection: Connection::new(if mysql { Server::MySql } else { Server::MariaDb }),
            zone: Zone::UTC,
            now_micros: None,
            default_week_format: 0,
            div_precision_increment: 4,
            keeps_rows: false,
        }
    }

    /// The server.
    pub(crate) fn server(&self) -> Server {
        if self.mysql { Server::MySql } else { Server::MariaDb }
    }

    /// How literals of a statement compare; `None` where an expression has no statement.
    pub(super) fn literals(&self) -> Option<Collating> {
        self.now_micros.map(|_| Collating::connection(&self.connection))
    }
}
