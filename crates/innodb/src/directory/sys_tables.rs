//! MariaDB's own dictionary in `ibdata1`: which page is the root of which index.
//!
//! A `.frm` says nothing of roots, and a file alone tells only which pages are roots and their index ids, whose order is that of the `.frm` unless
//! indexes were added later. `SYS_TABLES` and `SYS_INDEXES` have it exactly: clustered trees of REDUNDANT records, whose roots the dictionary
//! header on page 7 names.
//!
//! 1. Walk each tree's leaves from the leftmost one; every chain is limited by the pages in the file.
//! 2. Table names are paths, spelled as the files are: `database/table#P#partition`. A table without a file of its own
//!    (`innodb_file_per_table = OFF`) has space 0: it lies in `ibdata1` too.
//! 3. A root is only believed if its page says that it belongs to that index: the files may have come from another server.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tanada_io::IoContext;

use super::listing::TableFiles;
use crate::files::Files;
use crate::page::header::{u16_at, u32_at, u64_at};
use crate::page::page_type;
use crate::schema::Index;
use crate::{Environment, Page, PageNo, Result, SpaceId, TableDefinition, Tablespace};

const SYSTEM_SPACE: SpaceId = SpaceId(0);
const DICTIONARY_HEADER: PageNo = PageNo(7);
const TABLES_ROOT: usize = 38 + 32;
const INDEXES_ROOT: usize = 38 + 44;
const LEVEL: usize = 64;
const INDEX_ID: usize = 66;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SystemTable {
    id: u64,
    space: SpaceId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SystemIndex {
    name: String,
    id: u64,
    root: PageNo,
}

/// Tables by the path of their file without extension, and indexes by table id.
#[derive(Debug)]
pub(super) struct SystemTables {
    ibdata1: PathBuf,
    tables: HashMap<String, SystemTable>,
    indexes: HashMap<u64, Vec<SystemIndex>>,
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
        let mut system =
            SystemTables { ibdata1: ibdata1.to_owned(), tables: HashMap::new(), indexes: HashMap::new() };
        let tree = Tree { space: &space, context };
        let tables_root = PageNo(u32_at(header.bytes(), TABLES_ROOT));
        tree.rows(tables_root, &mut |row| system.add_table(row)).await?;
        let indexes_root = PageNo(u32_at(header.bytes(), INDEXES_ROOT));
        tree.rows(indexes_root, &mut |row| system.add_index(row)).await?;
        Ok(system)
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

    /// The file of a table that has none of its own: `ibdata1`, if the table lies there.
    pub(super) fn shared_file(&self, folder: &Path, stem: &str) -> Option<&Path> {
        let table = self.tables.get(&name_of(folder, stem)?)?;
        (table.space == SYSTEM_SPACE).then_some(&self.ibdata1)
    }

    /// Fills in ids and roots of the indexes of `definition`, as far as the dictionary knows them and the files agree.
    pub(super) async fn place_roots(
        &self,
        definition: &mut TableDefinition,
        files: &TableFiles,
        environment: &Arc<Environment>,
        context: &IoContext,
    ) -> Result<()> {
        let is_partitioned = definition.partitions.len() > 1;
        for (no, partition) in definition.partitions.iter().enumerate() {
            let path = match partition.path == self.ibdata1 {
                true => name_of(&files.folder, &files.stem),
                false => table_path(&*environment.files, &partition.path),
            };
            let Some(table) = path.and_then(|path| self.tables.get(&path)) else {
                continue;
            };
            let space = Tablespace::open(&partition.path, environment).await?;
            if space.id() != table.space {
                continue;
            }
            for index in self.indexes.get(&table.id).into_iter().flatten() {
                let Some(own) = definition.indexes.iter_mut().find(|own| own.name == index.name) else {
                    continue;
                };
                if is_root(&space, index, context).await {
                    place(own, no, index, is_partitioned);
                }
            }
        }
        Ok(())
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

/// `database/table` of `/some/where/database/table.ibd`.
fn table_path(files: &dyn Files, path: &Path) -> Option<String> {
    let path = files.real_path(path).ok()?;
    name_of(path.parent()?, path.file_stem()?.to_str()?)
}

fn name_of(folder: &Path, stem: &str) -> Option<String> {
    Some(format!("{}/{stem}", folder.file_name()?.to_str()?))
}

/// Whether the page that the dictionary calls the root of `index` says so too. A page that cannot be read is found out by who needs it.
async fn is_root(space: &Tablespace, index: &SystemIndex, context: &IoContext) -> bool {
    let Ok(page) = space.page(index.root, context).await else { return false };
    matches!(page.page_type(), page_type::INDEX | page_type::INSTANT | page_type::RTREE)
        && u64_at(page.bytes(), INDEX_ID) == index.id
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
    fn field(&self, no: usize) -> Option<&'a [u8]> {
        self.fields.get(no).copied().flatten()
    }
}
