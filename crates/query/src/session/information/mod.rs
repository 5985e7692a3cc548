//! `information_schema`: what is said of mounted databases, in the columns that the session's server has there.
//!
//! Rows come from the definitions of tables (`Described`), from the server's dictionary, and, for character sets,
//! collations and engines, from lists of what a server has as it is installed. What files do not tell is NULL: numbers
//! of rows, sizes, cardinalities, times of MariaDB. Of tables that cannot be opened only the names are known, and a
//! warning says so, as the servers do.

mod charsets;
mod columns;
pub(super) mod keys;
mod layout;
pub(super) mod rows;
mod tables;
mod views;

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::common::Result;
use tanada_innodb::TableDefinition;
use tanada_innodb::schema::{Server, TableDescription};

use super::{INFORMATION_SCHEMA, Session, Shared};
use crate::catalog::Database;
use rows::Row;

/// The schema under which the engine finds these tables.
pub(super) const INFORMATION: &str = "tanada_information_schema";

/// The tables of `information_schema`.
#[derive(Clone)]
pub(super) struct InformationSchema {
    session: Weak<Shared>,
}

/// A table as its definition and, where that could be read, its description say.
#[derive(Clone, Copy)]
pub(super) struct Described<'a> {
    pub definition: &'a TableDefinition,
    pub description: Option<&'a TableDescription>,
}

impl InformationSchema {
    pub(super) fn new(session: Weak<Shared>) -> Arc<InformationSchema> {
        Arc::new(InformationSchema { session })
    }

    /// The columns of a table at `server`.
    pub(super) fn schema(table: &str, server: Server) -> Option<SchemaRef> {
        Some(layout::schema(&layout::columns(table, server)?, server))
    }

    /// A table as `server` describes it.
    pub(super) fn definition(table: &str, server: Server) -> Option<TableDefinition> {
        layout::described(table, server)
    }

    /// The rows of `table`, in upper case.
    pub(super) async fn rows(&self, table: &str) -> Result<Vec<Row>> {
        let Some(shared) = self.session.upgrade() else { return Ok(Vec::new()) };
        let session = Session { shared };
        if let Some(rows) = charsets::rows(table, session.options().server) {
            return Ok(rows);
        }
        let mut rows = Vec::new();
        for name in session.database_names() {
            let Ok(database) = session.database_or_default(Some(&name)) else { continue };
            if table == "SCHEMATA" {
                let described = database.described().await.unwrap_or_else(|error| {
                    session.warn(format!("the defaults of database {name} are not known: {error}"));
                    <_>::default()
                });
                rows.push(tables::of_database(&name, &described));
                continue;
            }
            rows.extend(session.rows_of(table, &database).await);
        }
        Ok(rows)
    }
}

impl Session {
    /// The rows of `table`, in upper case, for a database.
    pub(super) async fn rows_of(&self, table: &str, database: &Database) -> Vec<Row> {
        let mut rows = Vec::new();
        self.view_rows(table, database, &mut rows).await;
        if table != "VIEWS" {
            for named in database.tables() {
                self.table_rows(table, database, &named, &mut rows).await;
            }
        }
        rows
    }

    /// Adds a warning to those of the statement that runs.
    fn warn(&self, warning: String) {
        let warnings = self.shared.warnings.read();
        let mut warnings = warnings.lock();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    /// The rows of `table` for the views of a database.
    async fn view_rows(&self, table: &str, database: &Database, rows: &mut Vec<Row>) {
        if !matches!(table, "VIEWS" | "TABLES" | "PARTITIONS" | "COLUMNS") {
            return;
        }
        let names = database.views().await.unwrap_or_default();
        if table == "COLUMNS" {
            if !names.is_empty() {
                self.warn(format!("the columns of the views of database {} are left out", database.name()));
            }
            return;
        }
        for name in names {
            let view = match database.view(&name).await {
                Ok(view) => view.unwrap_or_default(),
                Err(error) => {
                    self.warn(format!("view {}.{name} is not known: {error}", database.name()));
                    <_>::default()
                }
            };
            match table {
                "VIEWS" => rows.push(views::of_view(database.name(), &name, &view, self.options().server)),
                "TABLES" => rows.push(tables::of_view(database.name(), &name, &view)),
                // MySQL has them there, too.
                _ if view.created_seconds.is_some() => {
                    rows.push(tables::view_partition(database.name(), &name, &view));
                }
                _ => {}
            }
        }
    }

    /// The rows of `table` for a table of a database.
    async fn table_rows(&self, table: &str, database: &Database, named: &str, rows: &mut Vec<Row>) {
        let opened = match database.open_table(named).await {
            Ok(Some(opened)) => opened,
            Ok(None) => return,
            Err(error) => {
                self.warn(format!("{}.{named} is not read: {error}", database.name()));
                if table == "TABLES" {
                    rows.push(tables::unknown(database.name(), named));
                }
                return;
            }
        };
        let description = match database.description(named).await {
            Ok(description) => Some(description),
            Err(error) => {
                self.warn(format!("{}.{named} is not described whole: {error}", database.name()));
                None
            }
        };
        let definition = opened.table().definition();
        let described = Described { definition, description: description.as_ref() };
        if matches!(table, "KEY_COLUMN_USAGE" | "TABLE_CONSTRAINTS" | "REFERENTIAL_CONSTRAINTS") {
            let omitted = description.iter().flat_map(|of| &of.omitted);
            for what in omitted.filter(|what| what.starts_with("foreign keys")) {
                self.warn(format!("{}: left out: {what}", database.name()));
            }
        }
        match table {
            "TABLES" => rows.push(tables::of_table(&described)),
            "PARTITIONS" => rows.extend(tables::partitions(&described)),
            "COLUMNS" => rows.extend(columns::of_table(&described)),
            "STATISTICS" => rows.extend(keys::statistics(&described)),
            "KEY_COLUMN_USAGE" => rows.extend(keys::usage(&described)),
            "TABLE_CONSTRAINTS" => rows.extend(keys::constraints(&described)),
            "CHECK_CONSTRAINTS" => rows.extend(keys::checks(&described)),
            "REFERENTIAL_CONSTRAINTS" => {
                for key in keys::foreign_keys(&described) {
                    let parent = match self.database_or_default(Some(&key.parent_database)) {
                        Ok(home) => home.open_table(&key.parent_table).await.ok().flatten(),
                        Err(_) => None,
                    };
                    let parent = parent.as_ref().map(|parent| parent.table().definition().as_ref());
                    rows.push(keys::reference(definition, key, parent));
                }
            }
            _ => {}
        }
    }
}

impl std::fmt::Debug for InformationSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InformationSchema").finish_non_exhaustive()
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        layout::TABLES.iter().map(|name| name.to_ascii_lowercase()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(shared) = self.session.upgrade() else { return Ok(None) };
        let shown = shared.shown.lock().get(name).cloned();
        if let Some(shown) = shown {
            return Ok(Some(Arc::new(MemTable::try_new(shown.schema(), vec![vec![shown]])?)));
        }
        let server = Session { shared }.options().server;
        let Some(schema) = Self::schema(name, server) else { return Ok(None) };
        let rows = self.rows(&name.to_ascii_uppercase()).await?;
        let columns: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let batch = rows::batch(&schema, &columns, &rows)?;
        Ok(Some(Arc::new(MemTable::try_new(schema, vec![vec![batch]])?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        let is_shown = || self.session.upgrade().is_some_and(|shared| shared.shown.lock().contains_key(name));
        layout::TABLES.iter().any(|table| table.eq_ignore_ascii_case(name)) || is_shown()
    }
}
