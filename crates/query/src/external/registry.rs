//! Which tables over files there are.
//!
//! A table belongs to a schema: to a database that is mounted, to a folder that is mounted, or to the schema `files`,
//! which is there when a table was made without a default database.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::DataFusionError;
use parking_lot::RwLock;
use tanada_innodb::schema::Server;
use tanada_io::Executors;

use super::format::FileFormat;
use super::table::{FileTable, FileTableProvider};
use crate::store::{FileStore, Medium};
use crate::{Error, ErrorKind, Result};

/// The schema of tables that were made without a default database.
pub(crate) const FILES: &str = "files";

/// A folder whose files and folders are tables.
#[derive(Debug, Clone)]
struct MountedFolder {
    medium: Arc<dyn Medium>,
    folder: String,
}

/// The tables of one schema.
#[derive(Debug, Default)]
struct FileSchema {
    name: String,
    folder: Option<MountedFolder>,
    /// Tables that were made by statements or named before, by their names in lower case.
    tables: BTreeMap<String, Arc<FileTable>>,
    /// Names, in lower case, of the tables of the folder among them.
    of_folder: Vec<String>,
}

/// All tables over files.
#[derive(Debug)]
pub(crate) struct FileTables {
    executors: Arc<Executors>,
    /// By their names in lower case.
    schemas: RwLock<BTreeMap<String, FileSchema>>,
    /// Whose rules hold.
    server: RwLock<Server>,
}

impl FileTables {
    pub(crate) fn new(executors: Arc<Executors>) -> Arc<FileTables> {
        Arc::new(FileTables { executors, schemas: RwLock::default(), server: RwLock::new(Server::MySql) })
    }

    /// Has texts compared by the rules of `server` from now on.
    pub(crate) fn set_server(&self, server: Server) {
        *self.server.write() = server;
    }

    /// Names of schemas that no database need have.
    pub(crate) fn schema_names(&self) -> Vec<String> {
        self.schemas.read().values().map(|schema| schema.name.clone()).collect()
    }

    /// A schema's name as it is spelled.
    pub(crate) fn schema_named(&self, name: &str) -> Option<String> {
        self.schemas.read().get(&name.to_lowercase()).map(|schema| schema.name.clone())
    }

    /// Has the files and folders in `folder` as tables of the schema `name`.
    ///
    /// # Errors
    /// If there is such a schema, the folder cannot be read, or has nothing in it that is a table.
    pub(crate) fn mount(&self, name: &str, medium: Arc<dyn Medium>, folder: String) -> Result<()> {
        let mounted = MountedFolder { medium, folder };
        if mounted.tables()?.is_empty() {
            let shown = mounted.medium.shown(&mounted.folder);
            let message = format!(
                "{shown} has no Parquet files: a table is a file that ends with .parquet, or a folder of them"
            );
            return Err(Error::new(ErrorKind::NotFound, message));
        }
        let mut schemas = self.schemas.write();
        if schemas.contains_key(&name.to_lowercase()) {
            let message = format!("a schema '{name}' is mounted already; mount one of the two only");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let schema = FileSchema { name: name.to_owned(), folder: Some(mounted), ..FileSchema::default() };
        schemas.insert(name.to_lowercase(), schema);
        Ok(())
    }

    /// Looks whether the files of a table can be read.
    ///
    /// # Errors
    /// If one cannot be.
    pub(crate) async fn checked(&self, table: &FileTable) -> Result<()> {
        let server = *self.server.read();
        let store = FileStore::unwatched(Arc::clone(table.medium()), Arc::clone(&self.executors));
        table.load(&store, server).await.map(drop)
    }

    /// Adds a table to a schema, which is made if need be; one of its name is replaced.
    pub(crate) fn add(&self, schema: &str, table: FileTable) {
        let mut schemas = self.schemas.write();
        let schemas = schemas
            .entry(schema.to_lowercase())
            .or_insert_with(|| FileSchema { name: schema.to_owned(), ..FileSchema::default() });
        let name = table.name().to_lowercase();
        schemas.of_folder.retain(|other| *other != name);
        schemas.tables.insert(name, Arc::new(table));
    }

    /// Forgets a table that a statement made; whether there was one.
    pub(crate) fn remove(&self, schema: &str, table: &str) -> bool {
        let mut schemas = self.schemas.write();
        let Some(schema) = schemas.get_mut(&schema.to_lowercase()) else { return false };
        let name = table.to_lowercase();
        !schema.of_folder.contains(&name) && schema.tables.remove(&name).is_some()
    }

    /// Names of a schema's tables, sorted.
    ///
    /// # Errors
    /// If its folder cannot be read.
    pub(crate) fn table_names(&self, schema: &str) -> Result<Vec<String>> {
        let schemas = self.schemas.read();
        let Some(schema) = schemas.get(&schema.to_lowercase()) else { return Ok(Vec::new()) };
        let own = schema.tables.iter().filter(|(name, _)| !schema.of_folder.contains(name));
        let mut names: Vec<String> = own.map(|(_, table)| table.name().to_owned()).collect();
        if let Some(folder) = &schema.folder {
            names.extend(folder.tables()?.into_iter().map(|(name, _)| name));
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    /// A table.
    ///
    /// # Errors
    /// If the schema's folder cannot be read, or has two tables of that name.
    pub(crate) fn table(&self, schema: &str, table: &str) -> Result<Option<Arc<FileTable>>> {
        let mut schemas = self.schemas.write();
        let Some(schema) = schemas.get_mut(&schema.to_lowercase()) else { return Ok(None) };
        let key = table.to_lowercase();
        let is_of_folder = schema.of_folder.contains(&key);
        if let Some(known) = schema.tables.get(&key).filter(|_| !is_of_folder) {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(folder) = schema.folder.clone() else { return Ok(None) };
        let mut found = folder.tables()?.into_iter().filter(|(name, _)| name.to_lowercase() == key);
        let Some((name, location)) = found.next() else { return Ok(None) };
        if let Some((_, other)) = found.next() {
            let message = format!(
                "two tables are called {name}: {} and {}; give one of them another name",
                folder.medium.shown(&location),
                folder.medium.shown(&other)
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if let Some(known) = schema.tables.get(&key) {
            return Ok(Some(Arc::clone(known)));
        }
        let medium = Arc::clone(&folder.medium);
        let made = Arc::new(FileTable::new(&name, medium, location, FileFormat::Parquet));
        schema.of_folder.push(key.clone());
        schema.tables.insert(key, Arc::clone(&made));
        Ok(Some(made))
    }

    /// A table with its files as they are now.
    ///
    /// # Errors
    /// As [`table`](Self::table), and if its files cannot be read.
    pub(crate) async fn loaded(&self, schema: &str, table: &str) -> Result<Option<FileTableProvider>> {
        let Some(table) = self.table(schema, table)? else { return Ok(None) };
        let server = *self.server.read();
        let store = FileStore::unwatched(Arc::clone(table.medium()), Arc::clone(&self.executors));
        Ok(Some(FileTableProvider(table.load(&store, server).await?)))
    }
}

impl MountedFolder {
    /// Names and locations of its tables.
    fn tables(&self) -> Result<Vec<(String, String)>> {
        let mut tables = Vec::new();
        for entry in self.medium.entries(&self.folder)? {
            let at = if self.folder.is_empty() {
                entry.name.clone()
            } else {
                format!("{}/{}", self.folder, entry.name)
            };
            if entry.name.starts_with(['.', '_']) {
                continue;
            }
            let is_file = !entry.is_folder && FileFormat::Parquet.has_file(&entry.name);
            if is_file {
                let name = entry.name[..entry.name.len() - ".parquet".len()].to_owned();
                tables.push((name, at));
            } else if entry.is_folder && self.has_files(&at) {
                tables.push((entry.name, at));
            }
        }
        Ok(tables)
    }

    /// Whether Parquet files lie in a folder, or in folders in it: of the latter it is a table that says why it is not
    /// read.
    fn has_files(&self, folder: &str) -> bool {
        let Ok(entries) = self.medium.entries(folder) else { return false };
        entries.iter().any(|entry| match entry.is_folder {
            true => {
                let below = self.medium.entries(&format!("{folder}/{}", entry.name)).unwrap_or_default();
                below.iter().any(|entry| FileFormat::Parquet.has_file(&entry.name))
            }
            false => !entry.name.starts_with(['.', '_']) && FileFormat::Parquet.has_file(&entry.name),
        })
    }
}

/// A schema as DataFusion sees it: tables over files, and beside them those of a database of the same name.
#[derive(Debug)]
pub(crate) struct FilesBeside {
    pub(crate) tables: Arc<FileTables>,
    pub(crate) name: String,
    pub(crate) database: Option<Arc<dyn SchemaProvider>>,
}

#[async_trait]
impl SchemaProvider for FilesBeside {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.tables.table_names(&self.name).unwrap_or_default();
        names.extend(self.database.iter().flat_map(|database| database.table_names()));
        names
    }

    async fn table(
        &self,
        name: &str,
    ) -> std::result::Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if let Some(found) = self.tables.loaded(&self.name, name).await? {
            return Ok(Some(Arc::new(found)));
        }
        match &self.database {
            Some(database) => database.table(name).await,
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.table(&self.name, name).is_ok_and(|table| table.is_some())
            || self.database.as_ref().is_some_and(|database| database.table_exist(name))
    }
}
