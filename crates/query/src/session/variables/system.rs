//! System variables: their values at both servers as they are installed, and which a session may set.

use tanada_innodb::schema::Server;

use crate::settings::TanadaOptions;

/// What setting a variable does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The server lets nobody set it while it runs, or not in a session.
    Never,
    /// No answer depends on it: the value is kept and shown.
    Shown,
    /// A number, which answers follow.
    Number { least: u64, most: u64 },
    /// Answers depend on it, so no other value is taken.
    Refused,
    /// The time zone, in which only UTC is.
    TimeZone,
    /// The modes of SQL.
    Mode,
    /// A character set or collation of the connection.
    Charset,
}

/// A system variable.
#[derive(Debug, Clone, Copy)]
pub(super) struct SystemVariable {
    pub name: &'static str,
    /// Its value at MySQL 9.7, if that has it; `NULL` is none.
    mysql: Option<&'static str>,
    /// Its value at MariaDB 10.11, if that has it.
    mariadb: Option<&'static str>,
    pub change: Change,
}

/// Variables of two values, which are ON and OFF in SHOW VARIABLES and numbers in expressions.
const SWITCHES: [&str; 19] = [
    "autocommit",
    "big_tables",
    "explicit_defaults_for_timestamp",
    "foreign_key_checks",
    "innodb_strict_mode",
    "low_priority_updates",
    "lower_case_file_system",
    "profiling",
    "read_only",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_log_bin",
    "sql_notes",
    "sql_quote_show_create",
    "sql_safe_updates",
    "sql_warnings",
    "transaction_read_only",
    "tx_read_only",
    "unique_checks",
];

/// What MariaDB 11.8 has otherwise than 10.11.
const OF_MARIADB_11: [(&str, &str); 4] = [
    ("collation_connection", "utf8mb4_uca1400_ai_ci"),
    ("collation_database", "utf8mb4_uca1400_ai_ci"),
    ("collation_server", "utf8mb4_uca1400_ai_ci"),
    ("version", "11.8.9-MariaDB"),
];

/// A value as SHOW VARIABLES has it.
pub(super) fn shown(name: &str, value: String) -> String {
    match value.as_str() {
        "1" if SWITCHES.contains(&name) => "ON".to_string(),
        "0" if SWITCHES.contains(&name) => "OFF".to_string(),
        _ => value,
    }
}

impl SystemVariable {
    /// Its value as the server is installed; `None` if this server has no such variable.
    pub(super) fn value_at(&self, options: &TanadaOptions) -> Option<&'static str> {
        let newer = OF_MARIADB_11.iter().find(|(name, _)| options.is_newer_mariadb && *name == self.name);
        newer.map(|(_, value)| *value).or_else(|| self.value(options.server))
    }

    fn value(&self, server: Server) -> Option<&'static str> {
        match server {
            Server::MySql => self.mysql,
            Server::MariaDb => self.mariadb,
        }
    }
}

/// The variable called `name`, in any case.
pub(super) fn named(name: &str, server: Server) -> Option<&'static SystemVariable> {
    VARIABLES
        .iter()
        .find(|variable| variable.name.eq_ignore_ascii_case(name))
        .filter(|variable| variable.value(server).is_some())
}

/// The variables of a server, by name.
pub(super) fn all(server: Server) -> impl Iterator<Item = &'static SystemVariable> {
    VARIABLES.iter().filter(move |variable| variable.value(server).is_some())
}

const fn both(name: &'static str, value: &'static str, change: Change) -> SystemVariable {
    SystemVariable { name, mysql: Some(value), mariadb: Some(value), change }
}

const fn each(
    name: &'static str,
    mysql: &'static str,
    mariadb: &'static str,
    change: Change,
) -> SystemVariable {
    SystemVariable { name, mysql: Some(mysql), mariadb: Some(mariadb), change }
}

const fn of_mysql(name: &'static str, value: &'static str, change: Change) -> SystemVariable {
    SystemVariable { name, mysql: Some(value), mariadb: None, change }
}

const fn of_mariadb(name: &'static str, value: &'static str, change: Change) -> SystemVariable {
    SystemVariable { name, mysql: None, mariadb: Some(value), change }
}

use Change::{Charset, Mode, Never, Number, Refused, Shown, TimeZone};

/// Sorted by name.
const VARIABLES: [SystemVariable; 84] = [
    both("auto_increment_increment", "1", Shown),
    both("auto_increment_offset", "1", Shown),
    both("autocommit", "1", Shown),
    both("basedir", "/usr/", Never),
    both("big_tables", "0", Shown),
    both("bulk_insert_buffer_size", "8388608", Shown),
    both("character_set_client", "utf8mb4", Charset),
    both("character_set_connection", "utf8mb4", Charset),
    both("character_set_database", "utf8mb4", Charset),
    both("character_set_results", "utf8mb4", Charset),
    each("character_set_server", "utf8mb4", "utf8mb4", Shown),
    each("character_set_system", "utf8mb3", "utf8mb3", Never),
    each("collation_connection", "utf8mb4_0900_ai_ci", "utf8mb4_general_ci", Charset),
    each("collation_database", "utf8mb4_0900_ai_ci", "utf8mb4_general_ci", Charset),
    each("collation_server", "utf8mb4_0900_ai_ci", "utf8mb4_general_ci", Shown),
    both("completion_type", "NO_CHAIN", Shown),
    of_mysql("cte_max_recursion_depth", "1000", Refused),
    both("default_storage_engine", "InnoDB", Shown),
    both("default_week_format", "0", Number { least: 0, most: 7 }),
    both("div_precision_increment", "4", Refused),
    both("eq_range_index_dive_limit", "200", Shown),
    each("explicit_defaults_for_timestamp", "1", "1", Shown),
    both("foreign_key_checks", "1", Shown),
    both("ft_min_word_len", "4", Never),
    each("group_concat_max_len", "1024", "1048576", Number { least: 4, most: 1 << 40 }),
    both("have_ssl", "DISABLED", Never),
    both("identity", "0", Refused),
    both("innodb_lock_wait_timeout", "50", Shown),
    both("innodb_page_size", "16384", Never),
    both("innodb_strict_mode", "1", Shown),
    both("interactive_timeout", "28800", Shown),
    both("join_buffer_size", "262144", Shown),
    both("last_insert_id", "0", Refused),
    both("lc_messages", "en_US", Shown),
    both("lc_time_names", "en_US", Refused),
    both("license", "GPL", Never),
    each("lock_wait_timeout", "31536000", "86400", Shown),
    both("long_query_time", "10.000000", Shown),
    both("low_priority_updates", "0", Shown),
    both("lower_case_file_system", "0", Never),
    both("lower_case_table_names", "0", Never),
    each("max_allowed_packet", "67108864", "16777216", Never),
    both("max_connections", "151", Never),
    of_mysql("max_execution_time", "0", Shown),
    both("max_heap_table_size", "16777216", Shown),
    each("max_join_size", "18446744073709551615", "18446744073709551615", Refused),
    of_mariadb("max_recursive_iterations", "1000", Refused),
    each("max_sort_length", "1024", "1024", Refused),
    of_mariadb("max_statement_time", "0.000000", Shown),
    both("net_buffer_length", "16384", Never),
    both("net_read_timeout", "30", Shown),
    both("net_write_timeout", "60", Shown),
    of_mariadb("old_mode", "UTF8_IS_UTF8MB3", Refused),
    both("optimizer_prune_level", "1", Shown),
    both("optimizer_search_depth", "62", Shown),
    both("optimizer_switch", "default", Shown),
    both("port", "3306", Never),
    both("profiling", "0", Shown),
    both("protocol_version", "10", Never),
    of_mariadb("query_cache_size", "0", Never),
    of_mariadb("query_cache_type", "OFF", Shown),
    both("read_buffer_size", "131072", Shown),
    both("read_only", "1", Never),
    both("sort_buffer_size", "262144", Shown),
    both("sql_auto_is_null", "0", Refused),
    both("sql_big_selects", "1", Shown),
    both("sql_log_bin", "1", Shown),
    each(
        "sql_mode",
        "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,\
         NO_ENGINE_SUBSTITUTION",
        "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
        Mode,
    ),
    both("sql_notes", "1", Shown),
    both("sql_quote_show_create", "1", Refused),
    both("sql_safe_updates", "0", Shown),
    both("sql_select_limit", "18446744073709551615", Refused),
    both("sql_warnings", "0", Shown),
    both("storage_engine", "InnoDB", Shown),
    both("system_time_zone", "UTC", Never),
    both("time_zone", "SYSTEM", TimeZone),
    of_mysql("transaction_isolation", "REPEATABLE-READ", Shown),
    of_mysql("transaction_read_only", "0", Shown),
    of_mariadb("tx_isolation", "REPEATABLE-READ", Shown),
    of_mariadb("tx_read_only", "0", Shown),
    both("unique_checks", "1", Shown),
    each("version", "9.7.0", "10.11.19-MariaDB", Never),
    each("version_comment", "Tanada", "Tanada", Never),
    both("wait_timeout", "28800", Shown),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_variables_are_sorted_and_of_a_server() {
        assert!(VARIABLES.is_sorted_by(|one, other| one.name < other.name));
        assert!(named("TX_ISOLATION", Server::MariaDb).is_some());
        assert!(named("tx_isolation", Server::MySql).is_none());
        assert!(named("no_such", Server::MySql).is_none());
        assert_eq!(shown("autocommit", "1".to_string()), "ON");
        assert_eq!(shown("port", "1".to_string()), "1");
    }
}
