//! Whether files are those of the table that their names say.
//!
//! A tablespace copied over another one's file, or a `.frm` of another table beside it, may fit by its shape and would
//! then be read as if it were the right one. What is known beside the names is compared:
//!
//! 1. the id of each tablespace with the one that the server's dictionary has for this file;
//! 2. MySQL: the table that the file's own dictionary information names with the file's name, and the tablespaces that
//!    it names for its partitions with those that are there;
//! 3. MariaDB: the `.frm`'s columns and indexes with those that the dictionary has for the table, and the roots of the
//!    indexes with what their pages say. (Whether a `.frm` without a dictionary fits is found out from the pages when
//!    the table is opened.)
//!
//! A contradiction is an error. A single file that is mounted by name is read as it is, with a warning: that is the way
//! to look at a stray file. It keeps its file's name. So does a database folder away from its server, which may have
//! been renamed; a file in it that says that it is of another table is worth a warning.

use std::collections::HashMap;
use std::path::Path;

use super::definition::Sources;
use super::listing::TableFiles;
use super::sys_tables::{SystemColumn, SystemIndex, SystemTable, SystemTables};
use crate::page::header::u64_at;
use crate::page::page_type;
use crate::schema::{ColumnType, IndexKind, SdiTableSpaces};
use crate::{Error, ErrorKind, Index, Result, Server, TableDefinition, Tablespace};

/// The place of the index id on a page of a B+tree.
const INDEX_ID: usize = 66;
/// InnoDB's main types of numbers.
const MAIN_TYPE_INT: u32 = 6;
const MAIN_TYPE_FLOAT: u32 = 9;
const MAIN_TYPE_DOUBLE: u32 = 10;
/// What InnoDB adds to tables with full-text indexes.
const FTS_DOC_ID: &str = "FTS_DOC_ID";
/// What MariaDB adds for UNIQUE keys that are too long for a tree.
const HASH_COLUMN: &str = "DB_ROW_HASH_";
/// Before names that are not spelled as file names (MySQL 5.0 and earlier).
const OLD_NAME: &str = "#mysql50#";

/// Compares what is known of one table's files; gathers what is odd but no error.
pub(super) struct Belonging<'a> {
    pub(super) sources: &'a Sources<'a>,
    pub(super) files: &'a TableFiles,
    pub(super) warnings: Vec<String>,
}

impl Belonging<'_> {
    /// What contradicts the server's own dictionary.
    fn wrong(&mut self, path: &Path, what: &str) -> Result<()> {
        if self.sources.is_single_file {
            self.warnings.push(format!("{}: {what}; it is read as it is", path.display()));
            return Ok(());
        }
        let ways = "restore the right file, or mount this one alone by its own path to read it as it is";
        Err(Error::new(ErrorKind::Corrupt, format!("{}: {what}; {ways}", path.display())))
    }

    /// Compares the tablespace of each partition with the dictionary's. Hands out whether all are those that the server
    /// knows.
    pub(super) async fn check_spaces(&mut self, definition: &TableDefinition) -> Result<bool> {
        let Some(dictionary) = self.sources.dictionary else { return Ok(false) };
        let disk = &*self.sources.environment.files;
        let mut all_known = true;
        for partition in &definition.partitions {
            if partition.path == dictionary.path() {
                continue;
            }
            let known = dictionary.space_of(disk, &self.files.folder, &partition.path);
            let found = Tablespace::open(&partition.path, self.sources.environment).await?.id();
            all_known &= known == Some(found);
            if let Some(known) = known.filter(|known| *known != found) {
                let what = format!(
                    "it is tablespace {found}, but the server's dictionary ({}) has tablespace {known} for table {}.{} here: it is the file \
                     of another table, or of another server or time",
                    dictionary.path().display(),
                    definition.database,
                    definition.name
                );
                self.wrong(&partition.path, &what)?;
            }
        }
        Ok(all_known)
    }

    /// Compares the table that the dictionary information of the file at `path` names with the one that the file's name
    /// says.
    pub(super) fn check_sdi_name(
        &mut self,
        path: &Path,
        database: &str,
        table: &str,
        sdi: &TableDefinition,
    ) -> Result<()> {
        let own = |name: &str| name.strip_prefix(OLD_NAME).unwrap_or(name).to_lowercase();
        let same_table = own(&sdi.name) == own(table);
        let named = format!("{}.{}", sdi.database, sdi.name);
        let of_server = self.sources.dictionary.is_some();
        if of_server && !(same_table && own(&sdi.database) == own(database)) {
            let what = format!(
                "its own dictionary information says that it is table {named}, not {database}.{table}"
            );
            return self.wrong(path, &what);
        }
        if !same_table {
            self.warnings.push(format!(
                "{}: its own dictionary information says that it is table {named}; it is shown as {database}.{table}, after its file",
                path.display()
            ));
        }
        Ok(())
    }

    /// Compares the tablespaces that the dictionary information names for the partitions with those of their files, of
    /// which no two are the same.
    pub(super) async fn check_partitions(
        &self,
        definition: &TableDefinition,
        named: &SdiTableSpaces,
    ) -> Result<()> {
        if definition.partitions.len() < 2 {
            return Ok(());
        }
        let mut seen = HashMap::new();
        let is_shared = |path: &Path| self.sources.dictionary.is_some_and(|own| own.is_shared(path));
        for (no, partition) in definition.partitions.iter().enumerate() {
            if is_shared(&partition.path) {
                continue;
            }
            let found = Tablespace::open(&partition.path, self.sources.environment).await?.id();
            if let Some(other) = seen.insert(found, &partition.path) {
                let what = format!(
                    "{} and {} are the same tablespace {found}: one is a copy of the other; restore the right file",
                    other.display(),
                    partition.path.display()
                );
                return Err(Error::new(ErrorKind::Corrupt, what));
            }
            let named = named.get(no).copied().flatten();
            if let Some(named) = named.filter(|named| *named != found) {
                let what = format!(
                    "{}: it is tablespace {found}, but table {}.{} has tablespace {named} for partition {}: it is the file of another table, or \
                     of another server or time; restore the right file",
                    partition.path.display(),
                    definition.database,
                    definition.name,
                    partition.name
                );
                return Err(Error::new(ErrorKind::Corrupt, what));
            }
        }
        Ok(())
    }

    /// Compares a `.frm` with MariaDB's dictionary, and fills in ids and roots of the indexes. `all_known`: the files
    /// are the dictionary's.
    pub(super) async fn place_roots(
        &mut self,
        definition: &mut TableDefinition,
        system: &SystemTables,
        all_known: bool,
    ) -> Result<()> {
        if !all_known || definition.server != Server::MariaDb {
            return Ok(());
        }
        let disk = &*self.sources.environment.files;
        for no in 0..definition.partitions.len() {
            let path = definition.partitions[no].path.clone();
            let (folder, stem) = (&self.files.folder, &self.files.stem);
            let name = &definition.partitions[no].name;
            let table = match path == system.path() {
                true if name.is_empty() => system.table(disk, folder, stem),
                true => {
                    let mut partitions = system.shared_partitions(disk, folder, stem).into_iter();
                    partitions
                        .find(|(own, _)| own.to_lowercase() == name.to_lowercase())
                        .map(|(_, table)| table)
                }
                false => {
                    let stem = path.file_stem().and_then(|stem| stem.to_str());
                    stem.and_then(|stem| system.table(disk, folder, stem))
                }
            };
            let Some(table) = table else { continue };
            if let Some(what) = difference(definition, system, table) {
                let place = self.files.frm.as_deref().unwrap_or(&path);
                let what = format!(
                    "the definition of {}.{} is of another table or another time: {what} (by the server's dictionary in {})",
                    definition.database,
                    definition.name,
                    system.path().display()
                );
                return self.wrong(place, &what);
            }
            let space = Tablespace::open(&path, self.sources.environment).await?;
            for index in system.indexes(table) {
                let Some(at) = definition.indexes.iter().position(|own| own.name == index.name) else {
                    continue;
                };
                if self.is_root(&space, index).await? {
                    let is_partitioned = definition.partitions.len() > 1;
                    place(&mut definition.indexes[at], no, index, is_partitioned);
                }
            }
        }
        Ok(())
    }

    /// Whether the page that the dictionary calls the root of `index` is one. A page that is damaged or all zeros does
    /// not contradict the dictionary; the query that reads it fails.
    async fn is_root(&mut self, space: &Tablespace, index: &SystemIndex) -> Result<bool> {
        let Ok(page) = space.page(index.root, self.sources.context).await else { return Ok(true) };
        if page.bytes().iter().all(|byte| *byte == 0) {
            return Ok(true);
        }
        let is_tree = matches!(page.page_type(), page_type::INDEX | page_type::INSTANT | page_type::RTREE);
        let found = u64_at(page.bytes(), INDEX_ID);
        if is_tree && found == index.id {
            return Ok(true);
        }
        let is = if is_tree { format!("is of index {found}") } else { "is no page of an index".to_owned() };
        let what = format!(
            "page {} {is}, but the server's dictionary has the root of index {} ({}) there",
            index.root, index.id, index.name
        );
        self.wrong(space.path(), &what).map(|()| false)
    }
}

fn place(own: &mut Index, partition: usize, index: &SystemIndex, is_partitioned: bool) {
    if let Some(root) = own.roots.get_mut(partition) {
        *root = Some(index.root);
    }
    if !is_partitioned {
        own.id = index.id;
    }
}

/// The first difference between a definition and what the dictionary has for the table.
fn difference(definition: &TableDefinition, system: &SystemTables, table: SystemTable) -> Option<String> {
    let known = system.columns(table);
    let of_name = |name: &str| known.iter().find(|column| column.name.to_lowercase() == name.to_lowercase());
    let mut own = Vec::new();
    for column in definition.columns.iter().filter(|column| column.virtual_expression.is_none()) {
        let Some(stored) = of_name(&column.name) else {
            return Some(format!("it has a column {}, which the table has not", column.name));
        };
        if !is_of_type(&column.column_type, stored) {
            return Some(format!("its column {} is of another type", column.name));
        }
        own.push(column.name.to_lowercase());
    }
    let is_hidden = |name: &str| name == FTS_DOC_ID || name.starts_with(HASH_COLUMN);
    let lacking =
        known.iter().find(|column| !is_hidden(&column.name) && !own.contains(&column.name.to_lowercase()));
    if let Some(column) = lacking {
        return Some(format!("it lacks column {}", column.name));
    }
    let indexes = system.indexes(table);
    let trees = definition.indexes.iter().filter(|index| index.kind == IndexKind::BTree);
    let strange =
        trees.map(|index| &index.name).find(|name| !indexes.iter().any(|index| index.name == **name));
    strange.map(|name| format!("it has an index {name}, which the table has not"))
}

/// Whether a column of `column_type` may be stored as the dictionary says, as far as numbers and widths tell.
fn is_of_type(column_type: &ColumnType, stored: &SystemColumn) -> bool {
    let main_type = match column_type {
        ColumnType::Integer { .. } => Some(MAIN_TYPE_INT),
        ColumnType::Float => Some(MAIN_TYPE_FLOAT),
        ColumnType::Double => Some(MAIN_TYPE_DOUBLE),
        _ => None,
    };
    let width = column_type.fixed_bytes().is_none_or(|bytes| bytes == stored.length_bytes as usize);
    width && main_type.is_none_or(|main_type| main_type == stored.main_type)
}
