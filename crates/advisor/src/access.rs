//! What a plan is going to read, as data between the parts: accesses, the places of indexes, what is known of tables.

use std::path::PathBuf;

use futures::future::BoxFuture;
use tanada_placement::Extent;

use crate::Result;

/// How a plan reads a table or an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKind {
    /// All rows of the table, in the order in which they lie.
    FullScan,
    /// All entries of an index.
    IndexScan,
    /// A range of an index.
    Range,
    /// Single keys of an index.
    LookUp,
}

/// One access of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedAccess {
    /// The database or schema; empty where the plan does not say.
    pub database: String,
    /// The table.
    pub table: String,
    /// The index; `None` is the table itself.
    pub index: Option<String>,
    /// How it is read.
    pub kind: AccessKind,
    /// Rows that are read each time; `None` where the plan does not say.
    pub rows: Option<f64>,
    /// How many times.
    pub loops: f64,
    /// Whether the index has all that is needed, so that rows are not looked up in the table.
    pub is_covering: bool,
    /// The partitions that are read; `None` is all.
    pub partitions: Option<Vec<String>>,
    /// When in the statement it begins: 0 first.
    pub stage: u32,
}

/// Where an index lies in one file.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexPlaces {
    /// The file.
    pub file: PathBuf,
    /// Its name; empty for rows that are in no index.
    pub name: String,
    /// Whether it holds the rows.
    pub has_rows: bool,
    /// The partition of the table, where it has some.
    pub partition: Option<String>,
    /// Its bytes, ascending.
    pub extents: Vec<Extent>,
    /// Pages with entries.
    pub leaf_pages: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
}

/// Finds out what a statement is going to read, without running it.
pub trait PlanSource: Send {
    /// The accesses of the plan that the server makes now for `statement`, whose default database is `database`.
    ///
    /// # Errors
    /// If the server does not explain it, or its answer is not understood.
    fn accesses<'a>(
        &'a mut self,
        database: Option<&'a str>,
        statement: &'a str,
    ) -> BoxFuture<'a, Result<Vec<PlannedAccess>>>;
}

/// Knows where tables and indexes lie in files. It asks the files.
pub trait FileLayout: Send {
    /// All indexes of a table in all of its files.
    ///
    /// # Errors
    /// If there is no such table, or its files cannot be read.
    fn places<'a>(&'a mut self, database: &'a str, table: &'a str)
    -> BoxFuture<'a, Result<Vec<IndexPlaces>>>;

    /// Forgets what it has read: definitions may have changed.
    fn forget(&mut self);
}

/// What a server has counted. The chunk counts of the volume go before it.
pub trait Statistics: Send {
    /// The rows of a table, as the server estimates them.
    ///
    /// # Errors
    /// If the server cannot be asked.
    fn rows<'a>(&'a mut self, database: &'a str, table: &'a str) -> BoxFuture<'a, Result<Option<f64>>>;

    /// Reads of files that the server has counted since it started.
    ///
    /// # Errors
    /// If the server cannot be asked.
    fn file_reads(&mut self) -> BoxFuture<'_, Result<Vec<FileReads>>>;

    /// The statements that other clients run now, as far as they may be seen.
    ///
    /// # Errors
    /// If the server cannot be asked.
    fn statements(&mut self) -> BoxFuture<'_, Result<Vec<RunningStatement>>>;
}

/// A statement that a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningStatement {
    /// The server's number of the connection.
    pub connection: u64,
    /// The default database.
    pub database: Option<String>,
    /// The text.
    pub statement: String,
}

/// Reads of a file that a server has counted.
#[derive(Debug, Clone, PartialEq)]
pub struct FileReads {
    /// The file.
    pub file: PathBuf,
    /// Read calls.
    pub reads: u64,
    /// Bytes read.
    pub bytes: u64,
}
