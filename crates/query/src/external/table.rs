//! A table that is made of files: which files they are now, and the columns that all of them have.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as DataFusionResult};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use parking_lot::Mutex;
use tanada_innodb::schema::Server;

use super::columns::{Conversion, FileColumn};
use super::convert::refused;
use super::format::{FileFormat, TableFile};
use super::scan::FileScanExec;
use crate::catalog::unqualified;
use crate::session::context::QueryContext;
use crate::store::{FileStore, Identity, Medium};
use crate::{Error, ErrorKind, Result};

/// Most files of a table.
const MAX_FILES: usize = 100_000;

/// A table over files, which are looked at anew by each statement that names it.
#[derive(Debug)]
pub(crate) struct FileTable {
    name: String,
    medium: Arc<dyn Medium>,
    /// A file, or a folder of files.
    location: String,
    format: FileFormat,
    loaded: Mutex<Option<Arc<LoadedTable>>>,
}

/// A table as its files were when a statement was planned.
#[derive(Debug)]
pub(crate) struct LoadedTable {
    pub(crate) name: String,
    pub(crate) format: FileFormat,
    pub(crate) files: Vec<TableFile>,
    /// The table's columns, which are those of each file, in the order of the first.
    pub(crate) columns: Vec<FileColumn>,
    schema: SchemaRef,
    medium: Arc<dyn Medium>,
    server: Server,
}

impl FileTable {
    /// A table over the file or the files of the folder at `location`.
    pub(crate) fn new(
        name: &str,
        medium: Arc<dyn Medium>,
        location: String,
        format: FileFormat,
    ) -> FileTable {
        FileTable { name: name.to_owned(), medium, location, format, loaded: Mutex::default() }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The table with its files as they are now. What was read of files that have not changed is kept.
    ///
    /// # Errors
    /// `NotFound` if there are no files; if one cannot be read, or has other columns than the first.
    pub(crate) async fn load(&self, store: &FileStore, server: Server) -> Result<Arc<LoadedTable>> {
        let names = self.file_names()?;
        let mut identities = Vec::with_capacity(names.len());
        for name in &names {
            identities.push(store.opened(name)?.identity);
        }
        let known = self.loaded.lock().clone();
        if let Some(known) = known.filter(|known| known.is_of(&names, &identities, server)) {
            return Ok(known);
        }
        let mut files = Vec::with_capacity(names.len());
        for name in names {
            files.push(self.format.open(store, name).await?);
        }
        let columns = self.columns(&files, server)?;
        let schema = Schema::new(columns.iter().map(|column| column.field.clone()).collect::<Vec<_>>());
        let loaded = Arc::new(LoadedTable {
            name: self.name.clone(),
            format: self.format.clone(),
            files,
            columns,
            schema: Arc::new(schema),
            medium: Arc::clone(&self.medium),
            server,
        });
        *self.loaded.lock() = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// The medium's files.
    pub(crate) fn medium(&self) -> &Arc<dyn Medium> {
        &self.medium
    }

    fn file_names(&self) -> Result<Vec<String>> {
        if !self.medium.is_folder(&self.location) {
            return Ok(vec![self.location.clone()]);
        }
        let shown = self.medium.shown(&self.location);
        let mut names = Vec::new();
        for entry in self.medium.entries(&self.location)? {
            if entry.name.starts_with(['.', '_']) {
                continue;
            }
            let name = format!("{}/{}", self.location, entry.name);
            if entry.is_folder {
                let message = format!(
                    "{shown} has folders in it ({}): tables whose rows are spread over folders are not read; make a table of each folder",
                    entry.name
                );
                return Err(Error::new(ErrorKind::Unsupported, message));
            }
            if self.format.has_file(&entry.name) {
                names.push(name);
            }
        }
        match names.len() {
            0 => {
                let message =
                    format!("{shown} has no file that ends with {}", self.format.extensions().join(" or "));
                Err(Error::new(ErrorKind::NotFound, message))
            }
            1..=MAX_FILES => Ok(names),
            _ => {
                let message = format!("{shown} has more than {MAX_FILES} files");
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }

    /// The columns of all files.
    fn columns(&self, files: &[TableFile], server: Server) -> Result<Vec<FileColumn>> {
        let mut table: Vec<FileColumn> = Vec::new();
        for file in files {
            let columns: Vec<FileColumn> =
                file.schema().fields().iter().map(|field| FileColumn::new(field, server)).collect();
            check_names(&columns, &file.shown)?;
            if table.is_empty() {
                table = columns;
                continue;
            }
            let first = &files[0].shown;
            for column in &mut table {
                let name = column.field.name().clone();
                let other = columns.iter().find(|other| *other.field.name() == name);
                let other =
                    other.ok_or_else(|| differs(&name, first, &file.shown, "which the other has not"))?;
                let is_same = column.field.data_type() == other.field.data_type()
                    && column.field.metadata() == other.field.metadata()
                    && column.file_type == other.file_type;
                if !is_same {
                    return Err(differs(&name, first, &file.shown, "of another type than the other"));
                }
                let nullable = column.field.is_nullable() || other.field.is_nullable();
                column.field = column.field.clone().with_nullable(nullable);
            }
            if let Some(more) = columns
                .iter()
                .find(|column| !table.iter().any(|known| known.field.name() == column.field.name()))
            {
                return Err(differs(more.field.name(), &file.shown, first, "which the other has not"));
            }
        }
        Ok(table)
    }
}

fn differs(column: &str, has: &str, other: &str, how: &str) -> Error {
    let message = format!(
        "files of one table differ: {has} has a column {column} {how}, {other}; give each kind of file a folder of its own"
    );
    Error::new(ErrorKind::InvalidInput, message)
}

/// Names of columns are compared without regard to case.
fn check_names(columns: &[FileColumn], file: &str) -> Result<()> {
    let mut names: Vec<String> = columns.iter().map(|column| column.field.name().to_lowercase()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    let message = match (columns.is_empty(), twice) {
        (true, _) => format!("{file} has no columns"),
        (_, Some(pair)) => format!("{file} has two columns called {}, which cannot be told apart", pair[0]),
        _ => return Ok(()),
    };
    Err(Error::new(ErrorKind::Unsupported, message))
}

impl LoadedTable {
    fn is_of(&self, names: &[String], identities: &[Identity], server: Server) -> bool {
        self.server == server
            && self.files.len() == names.len()
            && self.files.iter().zip(names).all(|(file, name)| file.name == *name)
            && self.files.iter().zip(identities).all(|(file, identity)| file.identity == *identity)
    }

    /// Fields of all columns.
    pub(crate) fn fields(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether the scan can be told a predicate.
    fn is_plain(filter: &Expr) -> DataFusionResult<bool> {
        let mut is_plain = !filter.is_volatile();
        filter.apply(|node| {
            is_plain &= !matches!(
                node,
                Expr::ScalarSubquery(_)
                    | Expr::Exists(_)
                    | Expr::InSubquery(_)
                    | Expr::SetComparison(_)
                    | Expr::OuterReferenceColumn(..)
                    | Expr::Placeholder(_)
            );
            Ok(if is_plain { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })?;
        Ok(is_plain)
    }
}

/// What DataFusion sees of a table: it holds what was loaded.
#[derive(Debug)]
pub(crate) struct FileTableProvider(pub(crate) Arc<LoadedTable>);

#[async_trait]
impl TableProvider for FileTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.0.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let table = &self.0;
        let query = state.config().get_extension::<QueryContext>();
        let query = query.ok_or_else(|| Error::new(ErrorKind::Internal, "a table is read by no query"))?;
        let wanted = projection.cloned().unwrap_or_else(|| (0..table.columns.len()).collect());
        let used = wanted.iter().filter_map(|column| table.columns.get(*column));
        if let Some(column) = used.into_iter().find(|column| column.conversion == Conversion::Refused) {
            return Err(refused(column, &table.name).into());
        }
        let fields = DFSchema::try_from(Arc::clone(&table.schema))?;
        let filters: Vec<Arc<dyn PhysicalExpr>> = filters
            .iter()
            .map(|filter| state.create_physical_expr(unqualified(filter)?, &fields))
            .collect::<DataFusionResult<_>>()?;
        let io = query.io().for_operator(0);
        let store = FileStore::new(Arc::clone(&table.medium), Arc::clone(query.executors()), io);
        let partitions = state.config().target_partitions();
        let scan = FileScanExec::new(Arc::clone(table), store, wanted, filters, limit, partitions)?;
        Ok(Arc::new(scan))
    }

    /// The scan leaves out what cannot pass, and no more.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| {
            Ok(match LoadedTable::is_plain(filter)? {
                true => TableProviderFilterPushDown::Inexact,
                false => TableProviderFilterPushDown::Unsupported,
            })
        };
        filters.iter().map(support).collect()
    }
}
