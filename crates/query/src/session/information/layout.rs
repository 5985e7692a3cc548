//! The columns of `information_schema` as each server has them.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use tanada_innodb::Column;
use tanada_innodb::schema::{Server, table_from_ddl};

use super::INFORMATION_SCHEMA;
use crate::relation::types::field;

const MARIADB: &str = include_str!("mariadb.sql");
const MYSQL: &str = include_str!("mysql.sql");

/// Names of the tables, in upper case.
pub(super) const TABLES: [&str; 14] = [
    "CHARACTER_SETS",
    "CHECK_CONSTRAINTS",
    "COLLATIONS",
    "COLLATION_CHARACTER_SET_APPLICABILITY",
    "COLUMNS",
    "ENGINES",
    "KEY_COLUMN_USAGE",
    "PARTITIONS",
    "REFERENTIAL_CONSTRAINTS",
    "SCHEMATA",
    "STATISTICS",
    "TABLES",
    "TABLE_CONSTRAINTS",
    "VIEWS",
];

/// The columns of a table at `server`, whose name may be in any case.
pub(super) fn columns(table: &str, server: Server) -> Option<Vec<Column>> {
    let table = TABLES.iter().find(|name| name.eq_ignore_ascii_case(table))?;
    let text = if server == Server::MySql { MYSQL } else { MARIADB };
    let mut columns = table_from_ddl(text, INFORMATION_SCHEMA, table, server).ok()??.columns;
    // What files do not tell is NULL, whatever the servers promise.
    columns.iter_mut().for_each(|column| column.nullable = true);
    Some(columns)
}

/// The fields of `columns`.
pub(super) fn schema(columns: &[Column], server: Server) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|column| field(column, server)).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_the_columns_of_its_server() {
        for (server, counts) in [
            (Server::MariaDb, [4, 6, 6, 5, 22, 6, 12, 25, 11, 6, 17, 23, 6, 11]),
            (Server::MySql, [4, 4, 7, 2, 22, 6, 12, 26, 11, 6, 18, 21, 7, 10]),
        ] {
            for (table, count) in TABLES.iter().zip(counts) {
                let columns = columns(table, server).unwrap();
                assert_eq!(columns.len(), count, "{table}");
                assert_eq!(schema(&columns, server).fields().len(), count);
            }
        }
        assert!(columns("innodb_trx", Server::MySql).is_none());
    }
}
