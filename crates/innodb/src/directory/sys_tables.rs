//! MariaDB's own dictionary in `ibdata1`: which table is in which tablespace, what its columns are, and which page is
//! the root of which index.
//!
//! A `.frm` says nothing of roots, and a file alone tells only which pages are roots and their index ids, whose order
//! is that of the `.frm` unless indexes were added later. `SYS_TABLES`, `SYS_COLUMNS` and `SYS_INDEXES` have it
//! exactly: clustered trees of REDUNDANT records, whose roots the dictionary header on page 7 names.
//!
//! 1. Walk each tree's leaves from the leftmost one; every chain is limited by the pages in the file.
//! 2. Table names are paths, spelled as the files are: `database/table#P#partition`. A table without a file of its own
//!    (`innodb_file_per_table = OFF`) has space 0: it lies in `ibdata1` too.
//! 3. Whether a table's files and definition are those that the dictionary knows is for [`super::belonging`] to say.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::IoContext;

use super::dictionary::names_in;
use super::file_name::TableFileName;
use crate::files::Files;
use crate::page::header::{u16_at, u32_at};
use crate::page::page_type;
use crate::{Environment, Page, PageNo, Result, SpaceId, Tablespace};

const SYSTEM_SPACE: SpaceId = SpaceId(0);
const DICTIONARY_HEADER: PageNo = PageNo(7);
const TABLES_ROOT: usize = 38 + 32;
const COLUMNS_ROOT: usize = 38 + 40;
const INDEXES_ROOT: usize = 38 + 44;
const LEVEL: usize = 64;
const INFIMUM: usize = 101;
const SUPREMUM: usize = 116;
const FIRST_RECORD: usize = 125;
const RECORD_HEADER: usize = 6;
const INFO_DELETED: u8 = 0x20;
const MOST_LEVELS: u16 = 16;
const TABLES_NAME: usize = 0;
const TABLES_ID: usize = 3;
const TABLES_SPACE: usize = 9;
const INDEXES_TABLE: usize = 0;
const INDEXES_ID: usize = 1;
const INDEXES_NAME: usize = 4;
const INDEXES_ROOT_PAGE: usize = 8;
const FOREIGN_TABLE: &str = "SYS_FOREIGN";
const FOREIGN_COLUMNS_TABLE: &str = "SYS_FOREIGN_COLS";
const FOREIGN_ID: usize = 0;
const FOREIGN_CHILD: usize = 3;
const FOREIGN_PARENT: usize = 4;
/// Number of columns, with the bits of what it does in the highest byte.
const FOREIGN_NUMBER: usize = 5;
const FOREIGN_COLUMN: usize = 4;
const PARENT_COLUMN: usize = 5;
const COLUMNS_TABLE: usize = 0;
const COLUMNS_NAME: usize = 4;
const COLUMNS_TYPE: usize = 5;
const COLUMNS_PRECISE_TYPE: usize = 6;
const COLUMNS_LENGTH: usize = 7;
/// In the precise type: the column is not stored (`DATA_VIRTUAL`).
const VIRTUAL: u32 = 8192;

/// A table, or a partition of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SystemTable {
    id: u64,
    /// Where it lies.
    pub(super) space: SpaceId,
}

/// An index of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SystemIndex {
    pub(super) name: String,
    pub(super) id: u64,
    /// `PageNo::NULL` for one without a tree (FULLTEXT).
    pub(super) root: PageNo,
}

/// A stored column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SystemColumn {
    pub(super) name: String,
    /// InnoDB's main type (`data0type.h`).
    pub(super) main_type: u32,
    /// Most bytes of a value.
    pub(super) length_bytes: u32,
}

/// A foreign key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SystemForeignKey {
    /// `database/name`.
    pub(super) id: String,
    /// The parent table, as a path of its file.
    pub(super) parent: String,
    /// What it does with rows of the child: InnoDB's bits.
    pub(super) flags: u32,
    /// Names of its columns and of the parent's.
    pub(super) columns: Vec<(String, String)>,
}

/// Tables by the path of their file without extension, and indexes by table id.
#[derive(Debug)]
pub(super) struct SystemTables {
    ibdata1: PathBuf,
    tables: HashMap<String, SystemTable>,
    indexes: HashMap<u64, Vec<SystemIndex>>,
    columns: HashMap<u64, Vec<SystemColumn>>,
    /// By the child's path, sorted by name.
    foreign_keys: HashMap<String, Vec<SystemForeignKey>>,
}

impl SystemTables {
    /// Reads the dictionary of the system tablespace `ibdata1`.
    ///
    /// # Errors
    /// If it cannot be read, or is damaged.
    pub(super) async fn read(
        ibdata1: &Path,
        environment: &Arc<Environment>,
        context: &IoContext,
    ) -> Result<SystemTables> {
        let space = Tablespace::open(ibdata1, environment).await?;
        let header = space.page(DICTIONARY_HEADER, context).await?;
        let mut system = SystemTables {
            ibdata1: ibdata1.to_owned(),
            tables: HashMap::new(),
            indexes: HashMap::new(),
            columns: HashMap::new(),
            foreign_keys: HashMap::new(),
        };
        let tree = Tree { space: &space, context };
        let tables_root = PageNo(u32_at(header.bytes(), TABLES_ROOT));
        tree.rows(tables_root, &mut |row| system.add_table(row)).await?;
        let indexes_root = PageNo(u32_at(header.bytes(), INDEXES_ROOT));
        tree.rows(indexes_root, &mut |row| system.add_index(row)).await?;
        let columns_root = PageNo(u32_at(header.bytes(), COLUMNS_ROOT));
        tree.rows(columns_root, &mut |row| system.add_column(row)).await?;
        system.read_foreign_keys(&tree).await?;
        Ok(system)
    }

    /// Their two tables are tables like others, whose roots the indexes name.
    async fn read_foreign_keys(&mut self, tree: &Tree<'_>) -> Result<()> {
        let root = |name: &str| {
            let table = self.tables.get(name)?;
            self.indexes.get(&table.id)?.first().map(|index| index.root).filter(|root| *root != PageNo::NULL)
        };
        let (Some(keys_root), Some(columns_root)) = (root(FOREIGN_TABLE), root(FOREIGN_COLUMNS_TABLE)) else {
            return Ok(());
        };
        let mut columns: HashMap<String, Vec<(String, String)>> = HashMap::new();
        tree.rows(columns_root, &mut |row| {
            let names = (row.text(FOREIGN_COLUMN)?, row.text(PARENT_COLUMN)?);
            columns.entry(row.text(FOREIGN_ID)?).or_default().push(names);
            Some(())
        })
        .await?;
        let mut keys: HashMap<String, Vec<SystemForeignKey>> = HashMap::new();
        tree.rows(keys_root, &mut |row| {
            let id = row.text(FOREIGN_ID)?;
            let number = u32::from_be_bytes(row.field(FOREIGN_NUMBER)?.try_into().ok()?);
            let columns = columns.remove(&id).unwrap_or_default();
            let key =
                SystemForeignKey { parent: row.text(FOREIGN_PARENT)?, flags: number >> 24, columns, id };
            keys.entry(row.text(FOREIGN_CHILD)?).or_default().push(key);
            Some(())
        })
        .await?;
        self.foreign_keys = keys;
        Ok(())
    }

    /// The foreign keys of the child whose file is `database/stem`.
    pub(super) fn foreign_keys(&self, name: &str) -> &[SystemForeignKey] {
        self.foreign_keys.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    fn add_table(&mut self, row: &Row<'_>) -> Option<()> {
        let name = String::from_utf8_lossy(row.field(TABLES_NAME)?).into_owned();
        let id = u64::from_be_bytes(row.field(TABLES_ID)?.try_into().ok()?);
        let space = SpaceId(u32::from_be_bytes(row.field(TABLES_SPACE)?.try_into().ok()?));
        self.tables.insert(name, SystemTable { id, space });
        Some(())
    }

    fn add_index(&mut self, row: &Row<'_>) -> Option<()> {
        let table = u64::from_be_bytes(row.field(INDEXES_TABLE)?.try_into().ok()?);
        let id = u64::from_be_bytes(row.field(INDEXES_ID)?.try_into().ok()?);
        let name = String::from_utf8_lossy(row.field(INDEXES_NAME)?).into_owned();
        let root = PageNo(u32::from_be_bytes(row.field(INDEXES_ROOT_PAGE)?.try_into().ok()?));
        self.indexes.entry(table).or_default().push(SystemIndex { name, id, root });
        Some(())
    }

    fn add_column(&mut self, row: &Row<'_>) -> Option<()> {
        let table = u64::from_be_bytes(row.field(COLUMNS_TABLE)?.try_into().ok()?);
        let number = |field| Some(u32::from_be_bytes(row.field(field)?.try_into().ok()?));
        if number(COLUMNS_PRECISE_TYPE)? & VIRTUAL == 0 {
            let name = String::from_utf8_lossy(row.field(COLUMNS_NAME)?).into_owned();
            let (main_type, length_bytes) = (number(COLUMNS_TYPE)?, number(COLUMNS_LENGTH)?);
            self.columns.entry(table).or_default().push(SystemColumn { name, main_type, length_bytes });
        }
        Some(())
    }

    /// The dictionary's file.
    pub(super) fn path(&self) -> &Path {
        &self.ibdata1
    }

    /// The table, or the partition, whose file is called `stem` in `folder`.
    pub(super) fn table(&self, disk: &dyn Files, folder: &Path, stem: &str) -> Option<SystemTable> {
        names_in(disk, folder, stem).find_map(|name| self.tables.get(&name).copied())
    }

    /// The indexes of a table.
    pub(super) fn indexes(&self, table: SystemTable) -> &[SystemIndex] {
        self.indexes.get(&table.id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The stored columns of a table, the hidden ones of every table left out.
    pub(super) fn columns(&self, table: SystemTable) -> &[SystemColumn] {
        self.columns.get(&table.id).map(Vec::as_slice).unwrap_or_default()
    }

    /// The partitions of a table that lie in the system tablespace, by their names.
    pub(super) fn shared_partitions(
        &self,
        disk: &dyn Files,
        folder: &Path,
        stem: &str,
    ) -> Vec<(String, SystemTable)> {
        let partition_of = |name: &str, own: &str| {
            let is_own = own.strip_prefix(name)?.starts_with('#');
            let stem = own.rsplit('/').next().filter(|_| is_own)?;
            TableFileName::parse(stem)?.partition
        };
        for name in names_in(disk, folder, stem) {
            let shared = self.tables.iter().filter(|(_, table)| table.space == SYSTEM_SPACE);
            let found = shared.filter_map(|(own, table)| Some((partition_of(&name, own)?, *table)));
            let mut found: Vec<(String, SystemTable)> = found.collect();
            if !found.is_empty() {
                found.sort_by(|(left, _), (right, _)| left.cmp(right));
                return found;
            }
        }
        Vec::new()
    }

    /// The file of a table that has none of its own: `ibdata1`, if the table lies there.
    pub(super) fn shared_file(&self, disk: &dyn Files, folder: &Path, stem: &str) -> Option<&Path> {
        let table = self.table(disk, folder, stem)?;
        (table.space == SYSTEM_SPACE).then_some(&self.ibdata1)
    }
}

/// A tree of REDUNDANT records in the system tablespace.
struct Tree<'a> {
    space: &'a Tablespace,
    context: &'a IoContext,
}

impl Tree<'_> {
    /// Hands out all rows that are not deleted.
    async fn rows(&self, root: PageNo, on_row: &mut dyn FnMut(&Row<'_>) -> Option<()>) -> Result<()> {
        let mut page = self.leftmost_leaf(root).await?;
        for _ in 0..self.space.pages() {
            for origin in self.records(&page)? {
                let row = self.row(&page, origin)?;
                // A row that is not of the known form says nothing about roots, which are then found from the files.
                let _ = (!row.is_deleted).then(|| on_row(&row));
            }
            match page.next() {
                Some(next) => page = self.index_page(next).await?,
                None => return Ok(()),
            }
        }
        Err(self.damaged(&page, "its chain of leaves is a circle"))
    }

    fn damaged(&self, page: &Page, what: &str) -> crate::Error {
        self.space.corrupt(page.number(), &format!("system tables: {what}"))
    }

    async fn index_page(&self, no: PageNo) -> Result<Page> {
        let page = self.space.page(no, self.context).await?;
        match page.page_type() {
            page_type::INDEX => Ok(page),
            other => Err(self.damaged(&page, &format!("page type {other} in a tree"))),
        }
    }

    async fn leftmost_leaf(&self, root: PageNo) -> Result<Page> {
        let mut page = self.index_page(root).await?;
        let mut level = u16_at(page.bytes(), LEVEL);
        if level > MOST_LEVELS {
            return Err(self.damaged(&page, &format!("{level} levels")));
        }
        while level > 0 {
            let first = self.records(&page)?.into_iter().next();
            let row = first.map(|origin| self.row(&page, origin)).transpose()?;
            let child = row.and_then(|row| row.fields.last().copied().flatten()?.first_chunk::<4>());
            let child = child.ok_or_else(|| self.damaged(&page, "a node without children"))?;
            page = self.index_page(PageNo(u32::from_be_bytes(*child))).await?;
            level -= 1;
            if u16_at(page.bytes(), LEVEL) != level {
                return Err(self.damaged(&page, "a child of another level"));
            }
        }
        Ok(page)
    }

    fn records(&self, page: &Page) -> Result<Vec<usize>> {
        let bytes = page.bytes();
        let most = bytes.len() / RECORD_HEADER;
        let mut origins = Vec::new();
        let mut origin = usize::from(u16_at(bytes, INFIMUM - 2));
        while origin != SUPREMUM {
            if origin < FIRST_RECORD || origin >= bytes.len() || origins.len() > most {
                return Err(self.damaged(page, "its records are not linked"));
            }
            origins.push(origin);
            origin = usize::from(u16_at(bytes, origin - 2));
        }
        Ok(origins)
    }

    /// Takes a record apart: before its header lie the ends of the fields, of one byte or two, the top bit being NULL.
    fn row<'p>(&self, page: &'p Page, origin: usize) -> Result<Row<'p>> {
        let bytes = page.bytes();
        let outside = || self.damaged(page, "a record lies outside of its page");
        let count = usize::from(u16_at(bytes, origin - 4) >> 1 & 0x3ff);
        let is_short = bytes[origin - 3] & 1 != 0;
        let end_bytes = if is_short { 1 } else { 2 };
        let mut fields = Vec::with_capacity(count);
        let mut start = origin;
        for no in 1..=count {
            let at = (origin - RECORD_HEADER).checked_sub(no * end_bytes).ok_or_else(outside)?;
            let (end, is_null) = match is_short {
                true => (usize::from(bytes[at] & 0x7f), bytes[at] & 0x80 != 0),
                false => (usize::from(u16_at(bytes, at) & 0x3fff), u16_at(bytes, at) & 0x8000 != 0),
            };
            let value = bytes.get(start..origin + end).ok_or_else(outside)?;
            fields.push((!is_null).then_some(value));
            start = origin + end;
        }
        Ok(Row { fields, is_deleted: bytes[origin - RECORD_HEADER] & INFO_DELETED != 0 })
    }
}

struct Row<'a> {
    fields: Vec<Option<&'a [u8]>>,
    is_deleted: bool,
}

impl<'a> Row<'a> {
    fn text(&self, no: usize) -> Option<String> {
        self.field(no).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn field(&self, no: usize) -> Option<&'a [u8]> {
        self.fields.get(no).copied().flatten()
    }
}
