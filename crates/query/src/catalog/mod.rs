//! Mounted databases as DataFusion sees them: one catalog, databases as its schemas, tables as table providers.

mod database;
mod table;
mod virtual_column;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::catalog::{CatalogProvider, SchemaProvider};
use parking_lot::RwLock;
use tanada_innodb::Catalog;
use tanada_io::Executors;

use crate::external::{FileTables, FilesBeside};
use crate::{Error, ErrorKind, Result};
pub use database::Database;
pub(crate) use database::restricted;
pub use table::InnodbTable;
pub(crate) use table::unqualified;

/// Name of the catalog.
pub const CATALOG: &str = "tanada";

/// All mounted databases.
#[derive(Debug)]
pub struct Databases {
    executors: Arc<Executors>,
    by_name: RwLock<BTreeMap<String, Arc<Database>>>,
    /// Databases of the servers' own tables, which are not listed, but found by their names.
    unlisted: RwLock<BTreeMap<String, Arc<Database>>>,
    /// Schemas that are no databases, and their names.
    beside: RwLock<Vec<(String, Arc<dyn SchemaProvider>)>>,
    /// Tables over files of other formats.
    files: Arc<FileTables>,
}

impl Databases {
    /// None yet.
    pub fn new(executors: Arc<Executors>) -> Arc<Databases> {
        let files = FileTables::new(Arc::clone(&executors));
        Arc::new(Databases {
            executors,
            files,
            by_name: RwLock::default(),
            unlisted: RwLock::default(),
            beside: RwLock::default(),
        })
    }

    /// Tables over files of other formats.
    pub(crate) fn files(&self) -> &Arc<FileTables> {
        &self.files
    }

    /// Has `schema` beside the databases; one of its name hides it.
    pub fn put_beside(&self, name: &str, schema: Arc<dyn SchemaProvider>) {
        self.beside.write().push((name.to_string(), schema));
    }

    /// Adds the databases of a mount; gives their names.
    ///
    /// # Errors
    /// If a database of that name is mounted already; then none is added.
    pub fn mount(&self, catalog: Catalog) -> Result<Vec<String>> {
        let catalog = Arc::new(catalog);
        let names = catalog.databases();
        let mut by_name = self.by_name.write();
        if let Some(taken) = names.iter().find(|name| by_name.contains_key(*name)) {
            let message = format!("a database '{taken}' is mounted already; mount one of the two only");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        for name in &names {
            let database = Database::new(name.clone(), Arc::clone(&catalog), Arc::clone(&self.executors));
            by_name.insert(name.clone(), database);
        }
        // Of several servers, the first one's.
        if let Some((name, _)) = catalog.system_tables() {
            let database =
                || Database::new(name.to_owned(), Arc::clone(&catalog), Arc::clone(&self.executors));
            self.unlisted.write().entry(name.to_owned()).or_insert_with(database);
        }
        Ok(names)
    }

    /// Names, sorted.
    pub fn names(&self) -> Vec<String> {
        self.by_name.read().keys().cloned().collect()
    }

    /// A database: the exact name, else one that differs in case only.
    pub fn database(&self, name: &str) -> Option<Arc<Database>> {
        let by_name = self.by_name.read();
        let alike = || {
            by_name.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, database)| database)
        };
        let listed = by_name.get(name).or_else(alike).cloned();
        listed.or_else(|| self.unlisted.read().get(&name.to_ascii_lowercase()).cloned())
    }
}

impl CatalogProvider for Databases {
    fn schema_names(&self) -> Vec<String> {
        self.names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let database = self.database(name).map(|database| database as Arc<dyn SchemaProvider>);
        if let Some(name) = self.files.schema_named(name) {
            let tables = Arc::clone(&self.files);
            return Some(Arc::new(FilesBeside { tables, name, database }));
        }
        database.or_else(|| {
            let beside = self.beside.read();
            let named = beside.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
            named.map(|(_, schema)| Arc::clone(schema))
        })
    }
}
