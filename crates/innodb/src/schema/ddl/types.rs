//! Type names -> [`ColumnType`].

use super::super::{Collation, ColumnType, Display, Server};
use super::cursor::Cursor;
use super::tokens::{Kind, NEW_TEMPORAL, OLD_TEMPORAL};
use crate::{Error, ErrorKind, Result};

/// Of a VECTOR without a number, which MySQL alone takes.
const MYSQL_VECTOR_DIMENSIONS: u32 = 2048;

/// A type as written; strings get their collation when the whole table is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RawType {
    /// Needs no collation.
    Settled(ColumnType),
    Char {
        length: u32,
    },
    VarChar {
        length: u32,
    },
    Text {
        length_bytes: u8,
    },
    /// JSON: a type of MySQL, text in MariaDB.
    Json,
    /// VECTOR, which each server stores in its own way.
    Vector {
        dimensions: u32,
    },
}

impl RawType {
    /// The type with its collation. Text in the `binary` character set is bytes.
    pub(super) fn settle(self, collation: Collation, server: Server) -> Result<ColumnType> {
        let is_binary = collation.charset == "binary";
        Ok(match self {
            RawType::Settled(column_type) => column_type,
            RawType::Char { length } if is_binary => ColumnType::Binary { length },
            RawType::Char { length } => ColumnType::Char { length, collation },
            RawType::VarChar { length } if is_binary => ColumnType::VarBinary { length },
            RawType::VarChar { length } => ColumnType::VarChar { length, collation },
            RawType::Text { length_bytes } if is_binary => ColumnType::Blob { length_bytes },
            RawType::Text { length_bytes } => ColumnType::Text { length_bytes, collation },
            RawType::Vector { dimensions } => {
                ColumnType::Vector { dimensions, is_blob: server == Server::MySql }
            }
            RawType::Json if server == Server::MySql => ColumnType::Json,
            RawType::Json => {
                let collation = Collation::with_name("utf8mb4_bin").unwrap_or(collation);
                ColumnType::Text { length_bytes: 4, collation }
            }
        })
    }
}

/// Reads a type: name, lengths or elements, and the words that belong to numbers.
pub(super) fn column_type(cursor: &mut Cursor<'_>) -> Result<(RawType, Display)> {
    let name = cursor.word().ok_or_else(|| cursor.error("a type is missing"))?;
    cursor.skip();
    if let Some(string) = string_type(&name, cursor)? {
        return Ok((string, Display::default()));
    }
    let mut display = Display::default();
    let settled = match name.as_str() {
        "enum" => ColumnType::Enum { elements: elements(cursor)? },
        "set" => ColumnType::Set { elements: elements(cursor)? },
        _ => {
            if name == "double" {
                cursor.eat("precision");
            }
            let numbers = cursor.numbers()?;
            let legacy = cursor.eat(OLD_TEMPORAL);
            cursor.eat(NEW_TEMPORAL);
            let (unsigned, zerofill) = number_words(cursor);
            let plain = plain_type(&name, &numbers, unsigned, legacy, cursor)?;
            display = Display::of_declaration(&plain, &numbers, zerofill);
            plain
        }
    };
    Ok((RawType::Settled(settled), display))
}

/// Whether the words `unsigned`, `signed` and `zerofill` make a number unsigned, and whether they have ZEROFILL, which
/// implies it.
fn number_words(cursor: &mut Cursor<'_>) -> (bool, bool) {
    let (mut unsigned, mut zerofill) = (false, false);
    loop {
        if cursor.eat("unsigned") {
            unsigned = true;
        } else if cursor.eat("zerofill") {
            (unsigned, zerofill) = (true, true);
        } else if !cursor.eat("signed") {
            return (unsigned, zerofill);
        }
    }
}

fn plain_type(
    name: &str,
    numbers: &[u32],
    unsigned: bool,
    legacy: bool,
    cursor: &Cursor<'_>,
) -> Result<ColumnType> {
    let integer = |bytes| ColumnType::Integer { bytes, unsigned };
    let narrow = |value: Option<&u32>, default: u8, most: u8| match value {
        None => Ok(default),
        Some(value) => u8::try_from(*value)
            .ok()
            .filter(|v| *v <= most)
            .ok_or_else(|| cursor.error(format!("{value} is too large"))),
    };
    Ok(match name {
        "tinyint" | "int1" | "bool" | "boolean" => integer(1),
        "smallint" | "int2" => integer(2),
        "mediumint" | "int3" | "middleint" => integer(3),
        "int" | "integer" | "int4" => integer(4),
        "bigint" | "int8" => integer(8),
        "serial" => ColumnType::Integer { bytes: 8, unsigned: true },
        "decimal" | "dec" | "numeric" | "fixed" | "number" => {
            let precision = narrow(numbers.first(), 10, 65)?.max(1);
            ColumnType::Decimal { precision, scale: narrow(numbers.get(1), 0, precision)?, unsigned }
        }
        "float" if numbers.len() == 1 && numbers[0] > 24 => ColumnType::Double,
        "float" | "float4" => ColumnType::Float,
        "double" | "real" | "float8" => ColumnType::Double,
        "bit" => ColumnType::Bit { bits: narrow(numbers.first(), 1, 64)?.max(1) },
        "year" => ColumnType::Year,
        "date" => ColumnType::Date,
        "time" => ColumnType::Time { fsp: narrow(numbers.first(), 0, 6)?, legacy },
        "datetime" => ColumnType::DateTime { fsp: narrow(numbers.first(), 0, 6)?, legacy },
        "timestamp" => ColumnType::Timestamp { fsp: narrow(numbers.first(), 0, 6)?, legacy },
        "binary" => ColumnType::Binary { length: numbers.first().copied().unwrap_or(1) },
        "varbinary" => ColumnType::VarBinary { length: numbers.first().copied().unwrap_or(0) },
        "tinyblob" => ColumnType::Blob { length_bytes: 1 },
        "blob" => ColumnType::Blob { length_bytes: length_bytes(numbers.first()) },
        "mediumblob" => ColumnType::Blob { length_bytes: 3 },
        "longblob" => ColumnType::Blob { length_bytes: 4 },
        "geometry" | "point" | "linestring" | "polygon" | "multipoint" | "multilinestring"
        | "multipolygon" | "geometrycollection" | "geomcollection" => ColumnType::Geometry,
        "uuid" => ColumnType::Uuid,
        "inet6" => ColumnType::Inet6,
        "inet4" => ColumnType::Inet4,
        other => return Err(Error::new(ErrorKind::Unsupported, format!("type {other} is not known"))),
    })
}

fn string_type(name: &str, cursor: &mut Cursor<'_>) -> Result<Option<RawType>> {
    let varying = matches!(name, "char" | "character" | "nchar") && cursor.eat("varying");
    Ok(Some(match name {
        "varchar" | "varcharacter" | "nvarchar" | "varchar2" => {
            RawType::VarChar { length: length(cursor, 0)? }
        }
        "char" | "character" | "nchar" if varying => RawType::VarChar { length: length(cursor, 0)? },
        "char" | "character" | "nchar" => {
            let length = length(cursor, 1)?;
            if cursor.eat("byte") {
                return Ok(Some(RawType::Settled(ColumnType::Binary { length })));
            }
            RawType::Char { length }
        }
        "tinytext" => RawType::Text { length_bytes: 1 },
        "text" => RawType::Text { length_bytes: length_bytes(cursor.numbers()?.first()) },
        "mediumtext" | "long" => RawType::Text { length_bytes: 3 },
        "longtext" | "clob" => RawType::Text { length_bytes: 4 },
        "json" => RawType::Json,
        "vector" => RawType::Vector { dimensions: length(cursor, MYSQL_VECTOR_DIMENSIONS)? },
        _ => return Ok(None),
    }))
}

fn length(cursor: &mut Cursor<'_>, default: u32) -> Result<u32> {
    Ok(cursor.numbers()?.first().copied().unwrap_or(default))
}

/// TEXT(n) and BLOB(n) are the smallest kind that holds n bytes.
fn length_bytes(length: Option<&u32>) -> u8 {
    match length {
        None | Some(0) => 2,
        Some(1..=0xff) => 1,
        Some(0x100..=0xffff) => 2,
        Some(0x1_0000..=0xff_ffff) => 3,
        Some(_) => 4,
    }
}

fn elements(cursor: &mut Cursor<'_>) -> Result<Vec<String>> {
    cursor.expect_symbol('(')?;
    let mut elements = Vec::new();
    loop {
        // An element may have the name of its character set before it.
        if matches!(cursor.peek(), Some(Kind::Word(_))) {
            cursor.skip();
        }
        elements.push(cursor.text()?);
        if !cursor.eat_symbol(',') {
            break;
        }
    }
    cursor.expect_symbol(')')?;
    Ok(elements)
}

/// The collation that a character set, a collation, or what is inherited mean; the error says what is unknown.
pub(super) fn collation(
    charset: Option<&str>,
    collation: Option<&str>,
    inherited: Option<&Collation>,
    server: Server,
) -> std::result::Result<Collation, String> {
    let of_charset = |name: &str| {
        Collation::default_of(name, server).ok_or_else(|| format!("character set {name} is not known"))
    };
    if let Some(name) = collation {
        // MariaDB has collations that go with any character set: uca1400_ai_ci.
        let of = charset.map(str::to_owned).or_else(|| inherited.map(|inherited| inherited.charset.clone()));
        let with_charset = of.and_then(|charset| Collation::with_name(&format!("{charset}_{name}")));
        return Collation::with_name(name)
            .or(with_charset)
            .ok_or_else(|| format!("collation {name} is not known"));
    }
    match (charset, inherited) {
        (Some(name), _) => of_charset(name),
        (None, Some(inherited)) => Ok(inherited.clone()),
        (None, None) => of_charset("utf8mb4"),
    }
}
