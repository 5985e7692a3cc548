//! The text of `SHOW CREATE TABLE`, as the table's server prints it.
//!
//! | | MySQL | MariaDB |
//! |---|---|---|
//! | defaults of numbers | in quotes | plain |
//! | TEXT and BLOB without a default | nothing | `DEFAULT NULL` |
//! | character set of a column | if it was named, or is not the table's | if its collation is not the table's |
//! | INVISIBLE | in a comment, last | before the default; behind it since 11.8 |
//! | defaults of bytes | as texts | as texts; in hexadecimal digits since 11.8 |
//! | `ON DELETE RESTRICT`, `NO ACTION` | the first is printed | the second is printed |
//!
//! What is not known of a column or a table is an error: no text is better than another one.

use tanada_innodb::schema::Server;
use tanada_innodb::schema::description::{
    ColumnDescription, DATA_DIRECTORY, ForeignKey, KeyDescription, KeyKind, KeyPart, KeyPartOf,
    ReferenceRule, TableDescription,
};
use tanada_innodb::{Collation, Column, ColumnType, DefaultValue, TableDefinition};

use super::described::{Spelling, bytes_as_text, hexadecimal, type_text};
use crate::{Error, ErrorKind, Result};

/// The statement.
///
/// # Errors
/// `Unsupported` for what is not known exactly.
pub(super) fn text(definition: &TableDefinition, description: &TableDescription) -> Result<String> {
    if description.is_sequence {
        return Err(unsupported("a sequence"));
    }
    if let Some(why) = &description.unprinted {
        let message = format!("the definition of {}.{}: {why}", definition.database, definition.name);
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let is_mysql = definition.server == Server::MySql;
    let printer = Printer { definition, description, is_mysql, spelling: Spelling::of(Some(description)) };
    let mut lines = Vec::new();
    for (column, described) in definition.columns.iter().zip(&description.columns) {
        if !described.is_hidden {
            lines.push(printer.column(column, described)?);
        }
    }
    for key in &description.keys {
        lines.push(printer.key(key)?);
    }
    if let Some((start, end)) = &description.period {
        lines.push(format!("PERIOD FOR SYSTEM_TIME ({}, {})", quoted(start), quoted(end)));
    }
    lines.extend(description.foreign_keys.iter().map(|key| printer.foreign_key(key)));
    for check in &description.checks {
        let state = if check.enforced { "" } else { " /*!80016 NOT ENFORCED */" };
        lines.push(format!("CONSTRAINT {} CHECK ({}){state}", quoted(&check.name), check.expression));
    }
    Ok(format!(
        "CREATE TABLE {} (\n  {}\n){}{}",
        quoted(&definition.name),
        lines.join(",\n  "),
        printer.options()?,
        description.partitioning
    ))
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("SHOW CREATE TABLE of {what} is not run"))
}

/// A name in backticks.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text in quotes, with the escapes that both servers write.
pub(super) fn literal(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 2);
    escaped.push('\'');
    for character in text.chars() {
        match character {
            '\0' => escaped.push_str("\\0"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\\' => escaped.push_str("\\\\"),
            '\'' => escaped.push_str("''"),
            other => escaped.push(other),
        }
    }
    escaped.push('\'');
    escaped
}

/// The default of a column of bytes, which MySQL's dictionary has in hexadecimal digits, with zeros up to `length`.
fn binary(column: &Column, value: &str, length: u32) -> Result<String> {
    let wrong = || unsupported(&format!("column {}, whose default is no text", column.name));
    let digits = value.strip_prefix("0x").filter(|digits| digits.is_ascii());
    let Some(digits) = digits.or_else(|| value.is_empty().then_some("")) else { return Err(wrong()) };
    let mut text = String::new();
    for no in (0..digits.len()).step_by(2) {
        let byte = digits.get(no..no + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok());
        text.push(char::from(byte.filter(u8::is_ascii).ok_or_else(wrong)?));
    }
    while text.len() < length as usize {
        text.push('\0');
    }
    Ok(text)
}

/// The comment of a column, behind a blank.
fn comment(column: &Column) -> String {
    match column.comment.as_str() {
        "" => String::new(),
        text => format!(" COMMENT {}", literal(text)),
    }
}

struct Printer<'a> {
    definition: &'a TableDefinition,
    description: &'a TableDescription,
    is_mysql: bool,
    spelling: Spelling,
}

impl Printer<'_> {
    fn column(&self, column: &Column, described: &ColumnDescription) -> Result<String> {
        let mut text = format!("{} {}", quoted(&column.name), type_text(column));
        if column.compressed {
            text.push_str(" /*M!100301 COMPRESSED*/");
        }
        text.push_str(&self.collation(column, described)?);
        if let Some(boundary) = described.row_period {
            text.push_str(&format!(" GENERATED ALWAYS AS ROW {boundary}"));
            text.push_str(if column.invisible { " INVISIBLE" } else { "" });
            text.push_str(&comment(column));
            return Ok(text);
        }
        let is_generated = self.generated(column, &mut text);
        let is_timestamp = matches!(column.column_type, ColumnType::Timestamp { .. });
        if !column.nullable {
            // MariaDB's generated columns have no NOT NULL.
            text.push_str(if is_generated && !self.is_mysql { "" } else { " NOT NULL" });
        } else if is_timestamp && (self.is_mysql || !is_generated) {
            text.push_str(" NULL");
        }
        if let Some(srid) = described.srid {
            text.push_str(&format!(" /*!80003 SRID {srid} */"));
        }
        if let Some(storage) = described.storage {
            text.push_str(&format!(" /*!50606 STORAGE {storage} */"));
        }
        if let Some(format) = described.column_format {
            text.push_str(&format!(" /*!50606 COLUMN_FORMAT {format} */"));
        }
        if column.invisible && !self.is_mysql && self.spelling == Spelling::Unknown {
            return Err(self.misspelled(column));
        }
        if column.invisible && !self.is_mysql && self.spelling == Spelling::Of10 {
            text.push_str(" INVISIBLE");
        }
        if !is_generated {
            text.push_str(&self.default(column)?);
        }
        if described.without_versioning {
            text.push_str(" WITHOUT SYSTEM VERSIONING");
        }
        if column.declaration.auto_increment {
            text.push_str(" AUTO_INCREMENT");
        }
        if column.invisible && self.is_mysql {
            text.push_str(" /*!80023 INVISIBLE */");
        }
        if column.invisible && !self.is_mysql && self.spelling == Spelling::Of11 {
            text.push_str(" INVISIBLE");
        }
        text.push_str(&comment(column));
        if let Some(check) = &described.check {
            text.push_str(&format!(" CHECK ({check})"));
        }
        Ok(text)
    }

    /// The error about a column whose spelling by the table's server is not known.
    fn misspelled(&self, column: &Column) -> Error {
        unsupported(&format!(
            "column {}, which MariaDB after 10.11 and before 11.8 may spell otherwise",
            column.name
        ))
    }

    /// Adds the expression of a generated column; tells whether it is one.
    fn generated(&self, column: &Column, text: &mut String) -> bool {
        let of_virtual = column.virtual_expression.as_ref().map(|expression| (expression, "VIRTUAL"));
        let stored = column.declaration.stored_expression.as_ref();
        let generated = of_virtual.or_else(|| stored.map(|expression| (expression, "STORED")));
        if let Some((expression, kind)) = generated {
            text.push_str(&format!(" GENERATED ALWAYS AS ({expression}) {kind}"));
        }
        generated.is_some()
    }

    fn collation(&self, column: &Column, described: &ColumnDescription) -> Result<String> {
        let Some(collation) = column.declaration.text_collation(&column.column_type) else {
            return Ok(String::new());
        };
        if collation.charset == "binary" {
            return Ok(String::new());
        }
        let of_table = self.table_collation()?;
        let both = format!(" CHARACTER SET {} COLLATE {}", collation.charset, collation.name);
        Ok(match (self.is_mysql, collation.name == of_table.name) {
            (_, false) => both,
            (true, true) if described.explicit_collation => both,
            (true, true) if !self.is_default(collation) => format!(" COLLATE {}", collation.name),
            _ => String::new(),
        })
    }

    fn table_collation(&self) -> Result<&Collation> {
        self.definition.collation.as_ref().ok_or_else(|| unsupported("a table of unknown collation"))
    }

    fn is_default(&self, collation: &Collation) -> bool {
        Collation::default_of(&collation.charset, self.definition.server)
            .is_some_and(|default| default.name == collation.name)
    }

    fn default(&self, column: &Column) -> Result<String> {
        let is_large = matches!(column.column_type, ColumnType::Text { .. } | ColumnType::Blob { .. });
        let mut text = match &column.declaration.default {
            DefaultValue::Unknown => {
                return Err(unsupported(&format!("column {}, whose default is not known", column.name)));
            }
            DefaultValue::None => String::new(),
            // Of a column that has to be named, the definition of MariaDB has no flag if it cannot be NULL.
            DefaultValue::Null if self.is_mysql && is_large => String::new(),
            DefaultValue::Null if !column.nullable => String::new(),
            DefaultValue::Null => " DEFAULT NULL".to_owned(),
            DefaultValue::Value(value) => format!(" DEFAULT {}", self.value(column, value)?),
            DefaultValue::Bytes(_) if self.spelling == Spelling::Unknown => {
                return Err(self.misspelled(column));
            }
            DefaultValue::Bytes(bytes) if self.spelling == Spelling::Of11 => {
                format!(" DEFAULT {}", hexadecimal(bytes))
            }
            DefaultValue::Bytes(bytes) => format!(" DEFAULT {}", literal(&bytes_as_text(bytes))),
            DefaultValue::Expression(text)
                if self.is_mysql && !text.to_ascii_uppercase().starts_with("CURRENT_TIMESTAMP") =>
            {
                format!(" DEFAULT ({text})")
            }
            DefaultValue::Expression(text) => format!(" DEFAULT {text}"),
        };
        if let Some(value) = &column.declaration.on_update {
            text.push_str(&format!(" ON UPDATE {value}"));
        }
        Ok(text)
    }

    fn value(&self, column: &Column, value: &str) -> Result<String> {
        let is_number = matches!(
            column.column_type,
            ColumnType::Integer { .. }
                | ColumnType::Decimal { .. }
                | ColumnType::Float
                | ColumnType::Double
                | ColumnType::Year
        );
        Ok(match column.column_type {
            ColumnType::Bit { .. } => value.to_owned(),
            ColumnType::Binary { length } if self.is_mysql => literal(&binary(column, value, length)?),
            ColumnType::VarBinary { .. } if self.is_mysql => literal(&binary(column, value, 0)?),
            _ if is_number && !self.is_mysql => value.to_owned(),
            _ => literal(value),
        })
    }

    fn key(&self, key: &KeyDescription) -> Result<String> {
        let parts = self.description.shown_parts(key).map(|part| self.part(part));
        let parts = parts.collect::<Result<Vec<_>>>()?.join(",");
        let mut text = match key.kind {
            KeyKind::Primary => format!("PRIMARY KEY ({parts})"),
            KeyKind::Unique => format!("UNIQUE KEY {} ({parts})", quoted(&key.name)),
            KeyKind::Plain => format!("KEY {} ({parts})", quoted(&key.name)),
            KeyKind::FullText => format!("FULLTEXT KEY {} ({parts})", quoted(&key.name)),
            KeyKind::Spatial => format!("SPATIAL KEY {} ({parts})", quoted(&key.name)),
            KeyKind::Vector => format!("VECTOR KEY {} ({parts})", quoted(&key.name)),
        };
        if let Some(algorithm) = key.algorithm {
            text.push_str(&format!(" USING {algorithm}"));
        }
        if let Some(size) = key.block_size {
            text.push_str(&format!(" KEY_BLOCK_SIZE={size}"));
        }
        if !key.comment.is_empty() {
            text.push_str(&format!(" COMMENT {}", literal(&key.comment)));
        }
        if let Some(parser) = &key.parser {
            text.push_str(&format!(" /*!50100 WITH PARSER {} */ ", quoted(parser)));
        }
        if key.ignored {
            text.push_str(if self.is_mysql { " /*!80000 INVISIBLE */" } else { " IGNORED" });
        }
        Ok(text)
    }

    fn part(&self, part: &KeyPart) -> Result<String> {
        let mut text = match &part.of {
            KeyPartOf::Column(no) => {
                let column = self.definition.columns.get(no.0);
                quoted(&column.ok_or_else(|| unsupported("a key of unknown columns"))?.name)
            }
            KeyPartOf::Expression(expression) => format!("({expression})"),
        };
        if let Some(characters) = part.prefix {
            text.push_str(&format!("({characters})"));
        }
        if part.descending {
            text.push_str(" DESC");
        }
        Ok(text)
    }

    fn foreign_key(&self, key: &ForeignKey) -> String {
        let names = |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        let is_here = key.parent_database == self.definition.database;
        let database = if is_here { String::new() } else { format!("{}.", quoted(&key.parent_database)) };
        let mut text = format!(
            "CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {database}{} ({})",
            quoted(&key.name),
            names(&key.columns),
            quoted(&key.parent_table),
            names(&key.parent_columns)
        );
        let silent = if self.is_mysql { ReferenceRule::NoAction } else { ReferenceRule::Restrict };
        for (event, rule) in [("DELETE", key.on_delete), ("UPDATE", key.on_update)] {
            if rule != silent {
                text.push_str(&format!(" ON {event} {}", rule.words()));
            }
        }
        text
    }

    fn options(&self) -> Result<String> {
        let description = self.description;
        let mut text = format!("{} ENGINE=InnoDB", description.before_engine);
        if let Some(next) = description.auto_increment.filter(|next| *next > 1) {
            text.push_str(&format!(" AUTO_INCREMENT={next}"));
        }
        let collation = self.table_collation()?;
        text.push_str(&format!(" DEFAULT CHARSET={}", collation.charset));
        if !self.is_mysql || collation.charset == "utf8mb4" || !self.is_default(collation) {
            text.push_str(&format!(" COLLATE={}", collation.name));
        }
        let late = |name: &str| matches!(name, "CONNECTION" | DATA_DIRECTORY) || name.starts_with('`');
        for (name, value) in description.options.iter().filter(|(name, _)| !late(name)) {
            text.push_str(&format!(" {name}={value}"));
        }
        if !description.comment.is_empty() {
            text.push_str(&format!(" COMMENT={}", literal(&description.comment)));
        }
        for (name, value) in description.options.iter().filter(|(name, _)| late(name)) {
            text.push_str(&format!(" {name}={value}"));
        }
        if description.system_versioning {
            text.push_str(" WITH SYSTEM VERSIONING");
        }
        Ok(text)
    }
}
