//! The columns of `information_schema` as each server has them.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use tanada_innodb::schema::{Server, table_from_ddl};
use tanada_innodb::{Column, ColumnType, DefaultValue, TableDefinition};

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

/// Columns of MySQL with a default: those of numbers that it is 0, those of texts an empty one.
const WITH_DEFAULTS: [(&str, &[&str]); 6] = [
    ("COLLATIONS", &["ID", "IS_DEFAULT", "IS_COMPILED"]),
    ("COLUMNS", &["IS_NULLABLE"]),
    ("ENGINES", &["ENGINE", "SUPPORT", "COMMENT", "TRANSACTIONS", "XA", "SAVEPOINTS"]),
    ("KEY_COLUMN_USAGE", &["ORDINAL_POSITION"]),
    ("STATISTICS", &["NON_UNIQUE", "NULLABLE", "INDEX_TYPE", "COMMENT", "IS_VISIBLE"]),
    ("TABLE_CONSTRAINTS", &["CONSTRAINT_TYPE", "ENFORCED"]),
];

/// A table as `server` describes it, where integers of MariaDB have a width.
pub(super) fn described(table: &str, server: Server) -> Option<TableDefinition> {
    let mut definition = definition(table, server)?;
    let (_, declared) = MARIADB.split_once(&format!("create table {} (", definition.name))?;
    for column in &mut definition.columns {
        if server == Server::MariaDb && matches!(column.column_type, ColumnType::Integer { .. }) {
            let (_, behind) = declared.split_once(&format!("`{}` ", column.name))?;
            let line = behind.lines().next()?.trim_end_matches(',');
            column.declaration.type_text = line.trim_end_matches(" not null").to_string();
        }
    }
    Some(definition)
}

/// A table at `server`; its name may be in any case.
fn definition(table: &str, server: Server) -> Option<TableDefinition> {
    let table = TABLES.iter().find(|name| name.eq_ignore_ascii_case(table))?;
    let text = if server == Server::MySql { MYSQL } else { MARIADB };
    let mut definition = table_from_ddl(text, INFORMATION_SCHEMA, table, server).ok()??;
    let with_defaults = WITH_DEFAULTS.iter().find(|(name, _)| name == table && server == Server::MySql);
    for column in &mut definition.columns {
        if with_defaults.is_some_and(|(_, columns)| columns.contains(&column.name.as_str())) {
            let is_number = matches!(column.column_type, ColumnType::Integer { .. });
            let default = if is_number { "0" } else { "" };
            column.declaration.default = DefaultValue::Value(default.to_string());
        }
    }
    Some(definition)
}

/// The columns of a table at `server`, whose name may be in any case.
pub(super) fn columns(table: &str, server: Server) -> Option<Vec<Column>> {
    let mut columns = definition(table, server)?.columns;
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
