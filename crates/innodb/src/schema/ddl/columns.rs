//! A column in the list of `CREATE TABLE`.

use super::super::{Collation, Column, ColumnType, Declaration, Display, Server};
use super::cursor::Cursor;
use super::keys::RawKey;
use super::tokens::Kind;
use super::types::{self, RawType};
use crate::{Error, ErrorKind, Result};

/// A column before the table's character set is known.
pub(super) struct RawColumn {
    name: String,
    raw_type: RawType,
    display: Display,
    charset: Option<String>,
    collation: Option<String>,
    nullable: bool,
    invisible: bool,
    expression: Option<String>,
    stored: bool,
    compressed: bool,
    comment: String,
}

/// Reads a column up to the comma or parenthesis that ends it. Keys declared with it are added to `keys`.
pub(super) fn column(cursor: &mut Cursor<'_>, keys: &mut Vec<RawKey>) -> Result<RawColumn> {
    let name = cursor.name()?;
    let is_serial = cursor.word().as_deref() == Some("serial");
    let (raw_type, display) =
        types::column_type(cursor).map_err(|error| error.within(format!("column {name}")))?;
    let mut column = RawColumn {
        name,
        raw_type,
        display,
        charset: None,
        collation: None,
        nullable: !is_serial,
        invisible: false,
        expression: None,
        stored: false,
        compressed: false,
        comment: String::new(),
    };
    while !cursor.is_at_item_end() {
        attribute(cursor, &mut column, keys)?;
    }
    if is_serial {
        keys.push(RawKey::of_column(&column.name, false));
    }
    Ok(column)
}

fn attribute(cursor: &mut Cursor<'_>, column: &mut RawColumn, keys: &mut Vec<RawKey>) -> Result<()> {
    if cursor.eat_all(&["character", "set"]) || cursor.eat("charset") {
        column.charset = Some(cursor.name()?);
    } else if cursor.eat("collate") {
        column.collation = Some(cursor.name()?);
    } else if cursor.eat_all(&["not", "null"]) {
        column.nullable = false;
    } else if cursor.eat("default") {
        default_value(cursor)?;
    } else if cursor.eat("comment") {
        column.comment = cursor.text()?;
    } else if cursor.eat_all(&["as", "row"]) {
        // The start or the end of a row: never NULL, though nothing says so.
        column.nullable = false;
        cursor.skip_piece()?;
    } else if cursor.eat("as") {
        column.expression = cursor.group()?.map(str::to_owned);
    } else if cursor.eat("stored") || cursor.eat("persistent") {
        column.stored = true;
    } else if cursor.eat("invisible") {
        column.invisible = true;
    } else if cursor.eat("compressed") {
        column.compressed = true;
        if cursor.eat_symbol('=') {
            cursor.skip_piece()?;
        }
    } else if cursor.eat_all(&["primary", "key"]) || cursor.eat("primary") {
        column.nullable = false;
        keys.push(RawKey::of_column(&column.name, true));
    } else if cursor.eat_all(&["unique", "key"]) || cursor.eat("unique") {
        keys.push(RawKey::of_column(&column.name, false));
    } else {
        cursor.skip_piece()?;
    }
    Ok(())
}

/// Steps over a default: a literal with sign or introducer, a word, a call, or an expression in parentheses.
fn default_value(cursor: &mut Cursor<'_>) -> Result<()> {
    if cursor.group()?.is_some() {
        return Ok(());
    }
    while cursor.eat_symbol('-') || cursor.eat_symbol('+') {}
    let is_word = matches!(cursor.peek(), Some(Kind::Word(_)));
    cursor.skip();
    if is_word {
        // _utf8mb4'text', b'01', current_timestamp(6)
        if matches!(cursor.peek(), Some(Kind::Text(_))) {
            cursor.skip();
        }
        cursor.group()?;
    }
    Ok(())
}

impl RawColumn {
    /// A column that MariaDB adds for system versioning, unseen.
    pub(super) fn of_period(name: &str) -> RawColumn {
        let timestamp = ColumnType::Timestamp { fsp: 6, legacy: false };
        RawColumn {
            name: name.to_owned(),
            raw_type: RawType::Settled(timestamp),
            display: Display::default(),
            charset: None,
            collation: None,
            nullable: false,
            invisible: true,
            expression: None,
            stored: false,
            compressed: false,
            comment: String::new(),
        }
    }

    pub(super) fn settle(self, table: &Collation, server: Server) -> Result<Column> {
        let place =
            |what: String| Error::new(ErrorKind::InvalidInput, format!("column {}: {what}", self.name));
        let collation =
            types::collation(self.charset.as_deref(), self.collation.as_deref(), Some(table), server)
                .map_err(place)?;
        Ok(Column {
            name: self.name,
            column_type: self.raw_type.settle(collation, server)?,
            display: self.display,
            compressed: self.compressed,
            nullable: self.nullable,
            invisible: self.invisible,
            virtual_expression: self.expression.filter(|_| !self.stored),
            comment: self.comment,
            declaration: Declaration::default(),
        })
    }
}
