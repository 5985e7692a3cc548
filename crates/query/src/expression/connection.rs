//! How the texts of a statement compare that name no collation.

use tanada_collation::{Collation, Server};

/// The collation of a session's literals, and the default collations of its character sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// The server whose rules hold.
    pub server: Server,
    /// `collation_connection`: the collation of literals.
    pub collation: &'static str,
    /// Whether character sets of Unicode have `uca1400_ai_ci` as their default, as `character_set_collations` of
    /// MariaDB 11.5 and later says.
    pub has_uca1400_defaults: bool,
}

/// Character sets that `character_set_collations` of MariaDB 11.5 and later names.
const UCA1400_CHARSETS: [&str; 6] = ["ucs2", "utf16", "utf32", "utf8", "utf8mb3", "utf8mb4"];

impl Connection {
    /// A connection with the defaults of MySQL 9.7 or MariaDB 10.11.
    pub fn new(server: Server) -> Connection {
        let collation = match server {
            Server::MySql => "utf8mb4_0900_ai_ci",
            Server::MariaDb => "utf8mb4_general_ci",
        };
        Connection { server, collation, has_uca1400_defaults: false }
    }

    /// A connection with the defaults of MariaDB 11.5 and later.
    pub fn of_mariadb_11() -> Connection {
        let collation = "utf8mb4_uca1400_ai_ci";
        Connection { server: Server::MariaDb, collation, has_uca1400_defaults: true }
    }

    /// The same with literals of the collation `name`; `None` if its order is not known or it is not one of `utf8mb4`.
    pub fn with_collation(self, name: &str) -> Option<Connection> {
        let own = super::Collating::column(name, self.server).collation?;
        let known = Collation::names(self.server).find(|known| known.eq_ignore_ascii_case(&own))?;
        known.starts_with("utf8mb4_").then_some(Connection { collation: known, ..self })
    }

    /// The default collation of `charset`; `None` if there is no such set.
    pub(crate) fn default_of(&self, charset: &str) -> Option<String> {
        let lower = charset.to_ascii_lowercase();
        if self.has_uca1400_defaults && UCA1400_CHARSETS.contains(&lower.as_str()) {
            let charset = if lower == "utf8" { "utf8mb3" } else { &lower };
            return Some(format!("{charset}_uca1400_ai_ci"));
        }
        tanada_innodb::Collation::default_of(charset, self.server).map(|collation| collation.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_sets_of_mariadb_11_have_newer_defaults() {
        let (old, new) = (Connection::new(Server::MariaDb), Connection::of_mariadb_11());
        for (charset, of_old, of_new) in [
            ("utf8mb4", "utf8mb4_general_ci", "utf8mb4_uca1400_ai_ci"),
            ("utf8", "utf8mb3_general_ci", "utf8mb3_uca1400_ai_ci"),
            ("latin1", "latin1_swedish_ci", "latin1_swedish_ci"),
        ] {
            assert_eq!(old.default_of(charset).as_deref(), Some(of_old));
            assert_eq!(new.default_of(charset).as_deref(), Some(of_new));
        }
        assert_eq!(old.default_of("no_such"), None);
    }

    #[test]
    fn literals_have_a_collation_whose_order_is_known() {
        let with = |server, name| Connection::new(server).with_collation(name).map(|own| own.collation);
        assert_eq!(with(Server::MySql, "utf8mb4_general_ci"), Some("utf8mb4_general_ci"));
        assert_eq!(with(Server::MySql, "utf8mb4_swedish_ci"), None);
        assert_eq!(with(Server::MySql, "latin1_swedish_ci"), None);
        assert_eq!(with(Server::MariaDb, "utf8mb4_0900_as_cs"), Some("utf8mb4_uca1400_nopad_as_cs"));
    }
}
