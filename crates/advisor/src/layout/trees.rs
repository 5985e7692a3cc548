//! SQLite: the pages of a B+tree, by the table `dbstat`.
//!
//! `dbstat` reads every page of the tree that it is asked for, so what it says is kept until the file has grown or
//! shrunk by an eighth, or its schema has changed.

use rusqlite::Connection;
use tanada_placement::Extent;

use crate::{Error, IndexPlaces, Result};

/// A B+tree of a database file.
#[derive(Debug, Clone, PartialEq)]
pub struct Tree {
    /// Its place.
    pub places: IndexPlaces,
    /// The table.
    pub table: String,
    /// Its entries.
    pub rows: f64,
}

/// The B+tree `name` of the table `table`, in the database file that `connection` has open at `file`.
///
/// # Errors
/// If the file cannot be read.
pub fn tree(connection: &Connection, file: &std::path::Path, name: &str, table: &str) -> Result<Tree> {
    let failed = |error: rusqlite::Error| Error::io(file.display(), error);
    let mut statement = connection
        .prepare(
            "select pgoffset, pgsize, pagetype, ncell from dbstat where name = ?1 and aggregate = 0 order by pgoffset",
        )
        .map_err(failed)?;
    let mut rows = statement.query([name]).map_err(failed)?;
    let (mut extents, mut leaf_pages, mut page_bytes, mut entries) = (Vec::<Extent>::new(), 0, 4096, 0.0);
    while let Some(row) = rows.next().map_err(failed)? {
        let column = |no: usize| row.get::<_, i64>(no).map(|value| u64::try_from(value).unwrap_or(0));
        let (offset, len) = (column(0).map_err(failed)?, column(1).map_err(failed)?);
        let kind: String = row.get(2).map_err(failed)?;
        page_bytes = u32::try_from(len).unwrap_or(page_bytes);
        if kind == "leaf" {
            leaf_pages += 1;
            entries += column(3).map_err(failed)? as f64;
        }
        match extents.last_mut() {
            Some(last) if last.offset + last.len == offset => last.len += len,
            _ => extents.push(Extent { offset, len }),
        }
    }
    let places = IndexPlaces {
        file: file.to_owned(),
        name: name.to_owned(),
        has_rows: name.eq_ignore_ascii_case(table),
        partition: None,
        extents,
        leaf_pages,
        page_bytes,
    };
    Ok(Tree { places, table: table.to_owned(), rows: entries })
}
