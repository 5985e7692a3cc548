//! What the resolution of names knows of a table.

use datafusion::sql::sqlparser::ast::Query;
use tanada_innodb::TableDefinition;

/// A table under a name of the statement.
#[derive(Debug, Clone, Default)]
pub(in crate::session) struct NamedTable {
    /// Its database, spelled as it is.
    pub database: String,
    /// Its name, spelled as it is.
    pub name: String,
    pub columns: Vec<TableColumn>,
    /// Positions of the columns of each key that no two rows share: of the primary key, and of unique keys of columns
    /// that are never NULL.
    pub keys: Vec<Vec<usize>>,
    /// Positions of the columns of each index whose columns are whole.
    pub index_columns: Vec<Vec<usize>>,
    /// Its partitions; empty if it is not partitioned.
    pub partitions: Vec<String>,
    /// Its indexes.
    pub indexes: Vec<String>,
    /// The schema under which the engine finds it, if that is not its database.
    pub schema: Option<&'static str>,
    /// Whether it is a view of the server that is computed here.
    pub is_view: bool,
    /// Names of a view's columns; empty if they are those of its query.
    pub view_columns: Vec<String>,
    /// The query of a view, whose columns are its own.
    pub view: Option<Box<Query>>,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(in crate::session) struct TableColumn {
    pub name: String,
    /// Whether a `*` leaves it out.
    pub invisible: bool,
}

impl NamedTable {
    /// The table of a definition.
    pub(in crate::session) fn of(definition: &TableDefinition) -> NamedTable {
        let columns = definition.columns.iter();
        let columns =
            columns.map(|column| TableColumn { name: column.name.clone(), invisible: column.invisible });
        let is_known = |index: &&tanada_innodb::Index| {
            let mut parts = index.parts.iter();
            index.unique
                && !index.parts.is_empty()
                && parts.all(|part| {
                    let column = definition.columns.get(part.column.0);
                    part.prefix_bytes.is_none() && column.is_some_and(|column| !column.nullable)
                })
        };
        let keys = definition.indexes.iter().filter(is_known);
        let is_whole =
            |index: &&tanada_innodb::Index| index.parts.iter().all(|part| part.prefix_bytes.is_none());
        let whole = definition.indexes.iter().filter(is_whole);
        NamedTable {
            database: definition.database.clone(),
            name: definition.name.clone(),
            columns: columns.collect(),
            keys: keys.map(|index| index.parts.iter().map(|part| part.column.0).collect()).collect(),
            index_columns: whole
                .map(|index| index.parts.iter().map(|part| part.column.0).collect())
                .collect(),
            partitions: definition
                .partitions
                .iter()
                .map(|partition| partition.name.clone())
                .filter(|name| !name.is_empty())
                .collect(),
            indexes: definition.indexes.iter().map(|index| index.name.clone()).collect(),
            schema: None,
            is_view: false,
            view_columns: Vec::new(),
            view: None,
        }
    }
}
