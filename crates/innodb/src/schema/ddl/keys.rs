//! A key in the list of `CREATE TABLE`.

use super::super::{Column, ColumnNo, ColumnType, Index, IndexKind, IndexPart, Server, layout};
use super::cursor::Cursor;
use super::tokens::Kind;
use crate::{Error, ErrorKind, Result};

/// No B+tree key of InnoDB is longer; MariaDB makes a longer UNIQUE one over hashes.
const LONGEST_KEY_BYTES: u32 = 3072;

/// An item of the list.
pub(super) enum Item {
    Key(RawKey),
    /// A check, a foreign key or a period of the application.
    Other,
    /// The period of system versioning: the column that ends it.
    SystemTime(String),
    /// Nothing was taken: it is a column.
    Column,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Primary,
    Unique,
    Plain,
    Fulltext,
    /// SPATIAL.
    Other,
}

/// A key before its columns are known.
pub(super) struct RawKey {
    name: String,
    kind: KeyKind,
    parts: Vec<RawPart>,
    is_hash: bool,
}

struct RawPart {
    /// `None` is an expression.
    column: Option<String>,
    length: Option<u32>,
    descending: bool,
    is_period: bool,
}

/// Reads a key, or steps over what else is no column.
pub(super) fn key(cursor: &mut Cursor<'_>) -> Result<Item> {
    // A column may be called like a keyword, but the servers quote it then.
    let mut constraint = None;
    if cursor.eat("constraint") && matches!(cursor.peek(), Some(Kind::Name(_))) {
        constraint = Some(cursor.name()?);
    }
    let kind = if cursor.eat_all(&["primary", "key"]) {
        KeyKind::Primary
    } else if cursor.eat("unique") {
        KeyKind::Unique
    } else if cursor.eat("fulltext") {
        KeyKind::Fulltext
    } else if cursor.eat("spatial") {
        KeyKind::Other
    } else if eat_vector_key(cursor) {
        // It is a table of its own.
        cursor.skip_item()?;
        return Ok(Item::Other);
    } else if matches!(cursor.word().as_deref(), Some("key" | "index")) {
        KeyKind::Plain
    } else if matches!(cursor.word().as_deref(), Some("foreign" | "check")) || constraint.is_some() {
        cursor.skip_item()?;
        return Ok(Item::Other);
    } else if cursor.eat_all(&["period", "for"]) {
        if cursor.eat("system_time") {
            cursor.expect_symbol('(')?;
            cursor.name()?;
            cursor.expect_symbol(',')?;
            let end = cursor.name()?;
            cursor.expect_symbol(')')?;
            return Ok(Item::SystemTime(end));
        }
        cursor.skip_item()?;
        return Ok(Item::Other);
    } else {
        return Ok(Item::Column);
    };
    let _ = cursor.eat("key") || cursor.eat("index");
    let mut key = RawKey { name: constraint.unwrap_or_default(), kind, parts: Vec::new(), is_hash: false };
    if kind == KeyKind::Primary {
        key.name = "PRIMARY".to_owned();
    } else if matches!(cursor.peek(), Some(Kind::Name(_) | Kind::Word(_)))
        && cursor.word().as_deref() != Some("using")
    {
        key.name = cursor.name()?;
    }
    key.algorithm(cursor);
    key.parts = parts(cursor)?;
    while !cursor.is_at_item_end() {
        if !key.algorithm(cursor) {
            cursor.skip_piece()?;
        }
    }
    Ok(Item::Key(key))
}

/// `VECTOR KEY`; the word alone may be a column's name.
fn eat_vector_key(cursor: &mut Cursor<'_>) -> bool {
    cursor.eat_all(&["vector", "key"]) || cursor.eat_all(&["vector", "index"])
}

fn parts(cursor: &mut Cursor<'_>) -> Result<Vec<RawPart>> {
    cursor.expect_symbol('(')?;
    let mut parts = Vec::new();
    loop {
        let mut part = RawPart { column: None, length: None, descending: false, is_period: false };
        if cursor.group()?.is_none() {
            part.column = Some(cursor.name()?);
            part.length = cursor.numbers()?.first().copied();
        }
        while !cursor.is_at_item_end() {
            if cursor.eat("desc") {
                part.descending = true;
            } else {
                part.is_period |= cursor.eat("without");
                cursor.skip_piece()?;
            }
        }
        parts.push(part);
        if !cursor.eat_symbol(',') {
            break;
        }
    }
    cursor.expect_symbol(')')?;
    Ok(parts)
}

impl RawKey {
    /// `PRIMARY KEY` or `UNIQUE` written at a column.
    pub(super) fn of_column(column: &str, primary: bool) -> RawKey {
        let (name, kind) = if primary { ("PRIMARY", KeyKind::Primary) } else { (column, KeyKind::Unique) };
        let part =
            RawPart { column: Some(column.to_owned()), length: None, descending: false, is_period: false };
        RawKey { name: name.to_owned(), kind, parts: vec![part], is_hash: false }
    }

    pub(super) fn is_primary(&self) -> bool {
        self.kind == KeyKind::Primary
    }

    pub(super) fn is_fulltext(&self) -> bool {
        self.kind == KeyKind::Fulltext
    }

    /// Takes `USING BTREE` if it comes next.
    fn algorithm(&mut self, cursor: &mut Cursor<'_>) -> bool {
        if !cursor.eat("using") {
            return false;
        }
        self.is_hash = cursor.word().as_deref() == Some("hash");
        cursor.skip();
        true
    }

    /// MariaDB adds the end of the row to the keys that keep rows apart, since there are several of each.
    pub(super) fn add_row_end(&mut self, row_end: &str) {
        let keeps_apart = matches!(self.kind, KeyKind::Primary | KeyKind::Unique);
        let is_it =
            |part: &RawPart| part.column.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(row_end));
        if keeps_apart && !self.parts.iter().any(is_it) {
            let column = Some(row_end.to_owned());
            self.parts.push(RawPart { column, length: None, descending: false, is_period: false });
        }
    }

    /// The columns of a primary key are never NULL, said or not.
    pub(super) fn forbid_null(&self, columns: &mut [Column]) {
        for name in self.parts.iter().filter_map(|part| part.column.as_ref()) {
            if let Some(no) = position(columns, name) {
                columns[no.0].nullable = false;
            }
        }
    }

    pub(super) fn settle(&self, columns: &[Column], server: Server) -> Result<Index> {
        let mut parts = Vec::with_capacity(self.parts.len());
        let mut length_bytes = 0u32;
        for part in &self.parts {
            let Some(name) = part.column.as_ref().filter(|_| !part.is_period) else { continue };
            let unknown = || {
                Error::new(ErrorKind::InvalidInput, format!("key {}: there is no column {name}", self.name))
            };
            let column = position(columns, name).ok_or_else(unknown)?;
            let column_type = &columns[column.0].column_type;
            let part_bytes = part_bytes(column_type, part.length);
            length_bytes = length_bytes.saturating_add(part_bytes.unwrap_or(0));
            let prefix_bytes = part_bytes.and_then(|bytes| layout::prefix_bytes(column_type, bytes));
            parts.push(IndexPart { column, prefix_bytes, descending: part.descending });
        }
        let is_over_hashes = server == Server::MariaDb && self.is_hash && length_bytes > LONGEST_KEY_BYTES;
        let is_tree = !matches!(self.kind, KeyKind::Fulltext | KeyKind::Other);
        let readable = is_tree && parts.len() == self.parts.len() && !is_over_hashes;
        if self.is_primary() && !readable {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "a primary key over a period or an expression is not read",
            ));
        }
        Ok(Index {
            name: self.name.clone(),
            id: 0,
            roots: vec![None],
            unique: matches!(self.kind, KeyKind::Primary | KeyKind::Unique),
            kind: if readable { IndexKind::BTree } else { IndexKind::Other },
            parts: if readable { parts } else { Vec::new() },
        })
    }
}

fn position(columns: &[Column], name: &str) -> Option<ColumnNo> {
    let exact = columns.iter().position(|column| column.name == name);
    exact
        .or_else(|| columns.iter().position(|column| column.name.to_lowercase() == name.to_lowercase()))
        .map(ColumnNo)
}

/// Bytes of a part of strings, given in characters; what has no length is whole. `None` for types that have no
/// prefixes.
fn part_bytes(column_type: &ColumnType, length: Option<u32>) -> Option<u32> {
    let (whole, character_bytes) = match column_type {
        ColumnType::Char { length, collation } | ColumnType::VarChar { length, collation } => {
            (*length, collation.max_bytes)
        }
        ColumnType::Text { collation, .. } => (u32::MAX, collation.max_bytes),
        ColumnType::Binary { length } | ColumnType::VarBinary { length } => (*length, 1),
        ColumnType::Blob { .. } | ColumnType::Geometry | ColumnType::Json => (u32::MAX, 1),
        _ => return None,
    };
    Some(length.unwrap_or(whole).saturating_mul(u32::from(character_bytes)))
}
