//! SQLite, through its library: there is no server. The file is opened to be read only.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use futures::FutureExt;
use futures::future::BoxFuture;
use rusqlite::{Connection, OpenFlags};

use crate::layout::trees::{Tree, tree};
use crate::plan::program::{Step, TreeAccess, accesses};
use crate::{
    AccessKind, Error, FileLayout, FileReads, IndexPlaces, PlanSource, PlannedAccess, Result,
    RunningStatement, Statistics,
};

/// Keys of a look-up within the loop of a tree of which nothing is known.
const UNKNOWN_ROWS: f64 = 100.0;

/// A database file of SQLite.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
    file: PathBuf,
    /// By root page, with the pages that the file had.
    trees: HashMap<i64, (Tree, i64)>,
    schema: i64,
}

impl Sqlite {
    /// Opens `file`.
    ///
    /// # Errors
    /// If it is no database of SQLite.
    pub fn open(file: &Path) -> Result<Sqlite> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |error: rusqlite::Error| Error::io(file.display(), error);
        let connection = Connection::open_with_flags(file, flags).map_err(failed)?;
        let mut sqlite = Sqlite { connection, file: file.to_owned(), trees: HashMap::new(), schema: 0 };
        sqlite.schema = sqlite.pragma("schema_version")?;
        Ok(sqlite)
    }

    fn pragma(&self, name: &str) -> Result<i64> {
        let value = self.connection.query_row(&format!("pragma {name}"), [], |row| row.get(0));
        value.map_err(|error| Error::io(self.file.display(), error))
    }

    /// Runs a statement that only reads, and counts its rows.
    ///
    /// # Errors
    /// The library's.
    pub fn run(&self, statement: &str) -> Result<u64> {
        let mut prepared = self.connection.prepare(statement).map_err(Error::server)?;
        let mut rows = prepared.query([]).map_err(Error::server)?;
        let mut count = 0;
        while rows.next().map_err(Error::server)?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    fn program(&self, statement: &str) -> Result<Vec<Step>> {
        let statement = statement.trim().trim_end_matches(';');
        let mut prepared = self.connection.prepare(&format!("explain {statement}")).map_err(Error::server)?;
        let steps = prepared.query_map([], |row| {
            Ok(Step {
                address: row.get(0)?,
                opcode: row.get(1)?,
                p1: row.get(2)?,
                p2: row.get(3)?,
                p3: row.get(4)?,
            })
        });
        let steps: std::result::Result<Vec<Step>, _> = steps.map_err(Error::server)?.collect();
        steps.map_err(Error::server)
    }

    /// The B+tree at a root page.
    fn tree(&mut self, root: i64) -> Result<Option<Tree>> {
        let schema = self.pragma("schema_version")?;
        if schema != self.schema {
            self.trees.clear();
            self.schema = schema;
        }
        let pages = self.pragma("page_count")?;
        if let Some((known, then)) = self.trees.get(&root)
            && (pages - then).abs() <= then / 8
        {
            return Ok(Some(known.clone()));
        }
        let names = self.connection.query_row(
            "select name, tbl_name from sqlite_schema where rootpage = ?1",
            [root],
            |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)),
        );
        // The schema's own tree has no row.
        let Ok((name, table)) = names else { return Ok(None) };
        let found = tree(&self.connection, &self.file, &name, &table)?;
        self.trees.insert(root, (found.clone(), pages));
        Ok(Some(found))
    }

    fn planned(&mut self, statement: &str) -> Result<Vec<PlannedAccess>> {
        let found = accesses(&self.program(statement)?);
        let mut planned: Vec<PlannedAccess> = Vec::new();
        // Rows of the loops around, by their depth.
        let mut rows_at = vec![1.0];
        for TreeAccess { root, kind, depth, .. } in found.into_iter().filter(|access| access.database == 0) {
            let Some(tree) = self.tree(root)? else { continue };
            let depth = depth as usize;
            let loops = rows_at.get(depth).or(rows_at.last()).copied().unwrap_or(1.0);
            let rows = match kind {
                AccessKind::FullScan | AccessKind::IndexScan => tree.rows,
                AccessKind::Range => UNKNOWN_ROWS.min(tree.rows),
                AccessKind::LookUp => 1.0,
            };
            rows_at.truncate(depth + 1);
            rows_at.push((loops * rows).max(1.0));
            let is_index = !tree.places.has_rows;
            let kind = if kind == AccessKind::FullScan && is_index { AccessKind::IndexScan } else { kind };
            planned.push(PlannedAccess {
                database: String::new(),
                table: tree.table,
                index: is_index.then_some(tree.places.name),
                kind,
                rows: Some(rows),
                loops,
                // The program names the table's tree itself where rows are looked up in it.
                is_covering: true,
                partitions: None,
                stage: 0,
            });
        }
        Ok(planned)
    }
}

impl PlanSource for Sqlite {
    fn accesses<'a>(
        &'a mut self,
        _database: Option<&'a str>,
        statement: &'a str,
    ) -> BoxFuture<'a, Result<Vec<PlannedAccess>>> {
        let planned = self.planned(statement);
        async move { planned }.boxed()
    }
}

impl FileLayout for Sqlite {
    fn places<'a>(
        &'a mut self,
        _database: &'a str,
        table: &'a str,
    ) -> BoxFuture<'a, Result<Vec<IndexPlaces>>> {
        let places = || {
            let roots = self
                .connection
                .prepare("select rootpage from sqlite_schema where tbl_name = ?1 and rootpage > 0");
            let mut roots = roots.map_err(Error::server)?;
            let roots = roots.query_map([table], |row| row.get::<_, i64>(0)).map_err(Error::server)?;
            let roots: Vec<i64> = roots.filter_map(std::result::Result::ok).collect();
            Ok(roots)
        };
        let found = places().and_then(|roots: Vec<i64>| {
            let mut found = Vec::new();
            for root in roots {
                found.extend(self.tree(root)?.map(|tree| tree.places));
            }
            Ok(found)
        });
        async move { found }.boxed()
    }

    fn forget(&mut self) {
        self.trees.clear();
    }
}

impl Statistics for Sqlite {
    fn rows<'a>(&'a mut self, _database: &'a str, table: &'a str) -> BoxFuture<'a, Result<Option<f64>>> {
        let known = self.trees.values().find(|(tree, _)| tree.table == table && tree.places.has_rows);
        let rows = known.map(|(tree, _)| tree.rows);
        async move { Ok(rows) }.boxed()
    }

    fn file_reads(&mut self) -> BoxFuture<'_, Result<Vec<FileReads>>> {
        // The library counts none.
        async { Ok(Vec::new()) }.boxed()
    }

    fn statements(&mut self) -> BoxFuture<'_, Result<Vec<RunningStatement>>> {
        // Other processes are not seen.
        async { Ok(Vec::new()) }.boxed()
    }
}
