//! A database and the tables in it that were opened.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{SchemaProvider, TableProvider};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::TableType;
use parking_lot::Mutex;
use tanada_innodb::schema::TableDescription;
use tanada_innodb::{Beside, Catalog, DatabaseDescription, ViewDescription};
use tanada_io::Executors;

use super::InnodbTable;
use crate::Result;

/// Stands before the name of each partition in a [`restricted`] name; no name of a server has it.
const PARTITIONS: char = '\0';

/// The name under which [`Database::open_table`] finds a table with some of its partitions alone.
pub(crate) fn restricted(table: &str, partitions: &[&str]) -> String {
    let mut name = table.to_string();
    partitions.iter().for_each(|partition| {
        name.push(PARTITIONS);
        name.push_str(partition);
    });
    name
}

/// A database. Tables are opened when they are first named and stay open.
#[derive(Debug)]
pub struct Database {
    name: String,
    catalog: Arc<Catalog>,
    executors: Arc<Executors>,
    open: Mutex<HashMap<String, Arc<InnodbTable>>>,
}

impl Database {
    pub(super) fn new(name: String, catalog: Arc<Catalog>, executors: Arc<Executors>) -> Arc<Database> {
        Arc::new(Database { name, catalog, executors, open: Mutex::default() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Names of its tables, sorted.
    pub fn tables(&self) -> Vec<String> {
        self.catalog.tables(&self.name)
    }

    /// A table: the exact name, else one that differs in case only. Behind a NUL the name may have the partitions to
    /// which the table is restricted, see [`restricted`].
    pub async fn open_table(&self, name: &str) -> Result<Option<Arc<InnodbTable>>> {
        if let Some((name, partitions)) = name.split_once(PARTITIONS) {
            return Box::pin(self.open_partitions(name, partitions)).await;
        }
        let Some(name) = self.spelling(name) else { return Ok(None) };
        if let Some(table) = self.open.lock().get(&name) {
            return Ok(Some(Arc::clone(table)));
        }
        let (catalog, database, wanted) = (Arc::clone(&self.catalog), self.name.clone(), name.clone());
        let opened = self.executors.spawn(move || async move { catalog.table(&database, &wanted).await });
        let table = InnodbTable::new(opened.await??, Arc::clone(&self.executors));
        // Two who opened it at once get the same one.
        Ok(Some(Arc::clone(self.open.lock().entry(name).or_insert(table))))
    }

    /// The table `name` with those of its partitions that are listed, or whose subpartitions are.
    async fn open_partitions(&self, name: &str, partitions: &str) -> Result<Option<Arc<InnodbTable>>> {
        let Some(whole) = self.open_table(name).await? else { return Ok(None) };
        let named: Vec<&str> = partitions.split(PARTITIONS).collect();
        let all = whole.table().definition().partitions.iter().enumerate();
        let is_named = |partition: &str| {
            let mut parts = partition.split('/');
            parts.any(|part| named.iter().any(|name| name.to_lowercase() == part.to_lowercase()))
        };
        let chosen: Vec<usize> =
            all.filter(|(_, partition)| is_named(&partition.name)).map(|(no, _)| no).collect();
        let key = format!("{}{PARTITIONS}{chosen:?}", whole.table().definition().name);
        if let Some(table) = self.open.lock().get(&key) {
            return Ok(Some(Arc::clone(table)));
        }
        let table = InnodbTable::new(whole.table().of_partitions(&chosen)?, Arc::clone(&self.executors));
        Ok(Some(Arc::clone(self.open.lock().entry(key).or_insert(table))))
    }

    /// What is called `name` and is no table of InnoDB.
    ///
    /// # Errors
    /// If the database's folder cannot be read.
    pub async fn beside(&self, name: &str) -> Result<Option<Beside>> {
        let (catalog, database, wanted) = (Arc::clone(&self.catalog), self.name.clone(), name.to_string());
        let found = self.executors.spawn(move || async move { catalog.beside(&database, &wanted).await });
        Ok(found.await??)
    }

    /// How a table was created.
    ///
    /// # Errors
    /// If there is no such table, or its definition has what is not read.
    pub async fn description(&self, name: &str) -> Result<TableDescription> {
        let name = self.spelling(name).unwrap_or_else(|| name.to_string());
        let (catalog, database) = (Arc::clone(&self.catalog), self.name.clone());
        let read = self.executors.spawn(move || async move { catalog.description(&database, &name).await });
        Ok(read.await??)
    }

    /// Its defaults.
    ///
    /// # Errors
    /// If the dictionary or its file cannot be read.
    pub async fn described(&self) -> Result<DatabaseDescription> {
        let (catalog, database) = (Arc::clone(&self.catalog), self.name.clone());
        let read = self.executors.spawn(move || async move { catalog.database(&database).await });
        Ok(read.await??)
    }

    /// The view called `name`.
    ///
    /// # Errors
    /// If the dictionary or its file cannot be read.
    pub async fn view(&self, name: &str) -> Result<Option<ViewDescription>> {
        let (catalog, database, wanted) = (Arc::clone(&self.catalog), self.name.clone(), name.to_string());
        let read = self.executors.spawn(move || async move { catalog.view(&database, &wanted).await });
        Ok(read.await??)
    }

    /// Names of its views, sorted.
    ///
    /// # Errors
    /// If the executors have ended.
    pub async fn views(&self) -> Result<Vec<String>> {
        let (catalog, database) = (Arc::clone(&self.catalog), self.name.clone());
        Ok(self.executors.spawn(move || async move { catalog.views(&database).await }).await?)
    }

    fn spelling(&self, name: &str) -> Option<String> {
        let mut tables = self.catalog.tables(&self.name);
        let own = self.catalog.system_tables().filter(|(database, _)| *database == self.name);
        tables.extend(own.into_iter().flat_map(|(_, tables)| tables.iter().cloned()));
        let exact = tables.iter().find(|table| *table == name);
        exact.or_else(|| tables.iter().find(|table| table.eq_ignore_ascii_case(name))).cloned()
    }
}

#[async_trait]
impl SchemaProvider for Database {
    fn table_names(&self) -> Vec<String> {
        self.tables()
    }

    /// A table that cannot be opened is left out: `information_schema` asks for all of them, and one must not hide the
    /// others. Whoever names it in a query gets its error from [`Database::open_table`], which the session asks first.
    async fn table(
        &self,
        name: &str,
    ) -> std::result::Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        match self.open_table(name).await {
            Ok(table) => Ok(table.map(|table| table as _)),
            Err(_) => Ok(None),
        }
    }

    async fn table_type(&self, name: &str) -> std::result::Result<Option<TableType>, DataFusionError> {
        Ok(self.spelling(name).map(|_| TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.spelling(name.split(PARTITIONS).next().unwrap_or_default()).is_some()
    }
}
