//! A column in a `.frm` -> [`Column`].
//!
//! 17 bytes: display length at 3 (2 bytes), flags at 8 (2), special uses at 10, collation at 14 with its high byte at
//! 11, number of the ENUM or SET elements at 12, type code at 13, length of the comment at 15 (2).

use super::frm_bytes::{Bytes, corrupt};
use super::frm_default::Entry;
use super::frm_extra::Visibility;
use super::text;
use super::{Collation, Column, ColumnType, Declaration, DefaultValue, Display};
use crate::{Error, ErrorKind, Result};

/// Elements of ENUM and SET columns, in the column's character set.
pub(super) type Interval<'a> = Vec<&'a [u8]>;

const FLAG_SIGNED: u16 = 1;
const FLAG_ZEROFILL: u16 = 1 << 2;
const FLAG_NO_DEFAULT: u16 = 1 << 14;
const FLAG_MAYBE_NULL: u16 = 1 << 15;
/// Of ENUM and SET.
const FLAG_HEXADECIMAL: u16 = 1 << 12;
const DECIMALS_SHIFT: u32 = 8;
const DECIMALS_MASK: u16 = 63;
/// At 10: AUTO_INCREMENT.
const NEXT_NUMBER: u8 = 15;
/// At 10: the first TIMESTAMP of a table of before MySQL 4.1.
const TIMESTAMP_OLD: u8 = 18;
/// At 10: DEFAULT CURRENT_TIMESTAMP.
const TIMESTAMP_DEFAULT: u8 = 21;
/// At 10: ON UPDATE CURRENT_TIMESTAMP.
const TIMESTAMP_UPDATE: u8 = 22;
/// At 10: both.
const TIMESTAMP_BOTH: u8 = 23;
/// At 10, for a column that the server compresses; the type is then that of the values.
const COMPRESSED: u8 = 24;
const COMPRESSED_BLOB: u8 = 140;
const COMPRESSED_VARCHAR: u8 = 141;
/// JSON of MySQL 5.7; of MariaDB before 10.2, a generated column.
const JSON_OR_OLD_VIRTUAL: u8 = 245;

/// The types of geometries by their codes, which lie where other columns have their collation.
const GEOMETRIES: [&str; 8] = [
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
];

pub(super) struct FrmColumn {
    pub(super) column: Column,
    pub(super) visibility: Visibility,
    raw: RawColumn,
}

/// Expressions of a column.
#[derive(Debug, Clone, Default)]
pub(super) struct FieldExpressions {
    /// Of a generated column that is not stored.
    pub(super) generated: Option<String>,
    /// Of one that is.
    pub(super) stored: Option<String>,
    pub(super) default: Option<String>,
    pub(super) check: Option<String>,
}

impl FrmColumn {
    /// Comment, visibility and expression are filled in by the caller.
    pub(super) fn read(
        field: Bytes<'_>,
        name: &[u8],
        intervals: &[Interval<'_>],
        data_type: Option<&str>,
        is_of_mysql_57: bool,
    ) -> Result<FrmColumn> {
        let name = String::from_utf8_lossy(name).into_owned();
        let raw = RawColumn {
            length: field.u16(3)?,
            flags: field.u16(8)?,
            type_code: field.u8(13)?,
            collation_id: u16::from(field.u8(11)?) << 8 | u16::from(field.u8(14)?),
            interval_number: field.u8(12)?,
            is_compressed: field.u8(10)? & 0x7f == COMPRESSED,
            is_of_mysql_57,
            position: usize::from(field.u16(5)?) | usize::from(field.u8(7)?) << 16,
            special_use: field.u8(10)? & 0x7f,
        };
        let column_type =
            raw.column_type(intervals, data_type).map_err(|error| error.within(format!("column {name}")))?;
        let decimals = u64::from(raw.decimals());
        let zerofill = raw.flags & FLAG_ZEROFILL != 0;
        let column = Column {
            name,
            display: Display::of_entry(&column_type, raw.length.into(), Some(decimals), zerofill),
            column_type,
            compressed: raw.is_compressed,
            nullable: raw.flags & FLAG_MAYBE_NULL != 0,
            invisible: false,
            virtual_expression: None,
            comment: String::new(),
            declaration: Declaration::default(),
        };
        Ok(FrmColumn { column, visibility: Visibility::VISIBLE, raw })
    }

    /// What its default is read by.
    pub(super) fn entry(&self) -> Entry<'_> {
        Entry {
            column_type: &self.column.column_type,
            position: self.raw.position,
            length: self.raw.length,
            nullable: self.column.nullable,
            compressed: self.raw.is_compressed,
            has_none: self.raw.flags & FLAG_NO_DEFAULT != 0,
        }
    }

    /// Fills in how it is declared.
    pub(super) fn declare(&mut self, default: DefaultValue, expressions: FieldExpressions) {
        let raw = &self.raw;
        let column = &mut self.column;
        let fsp = match column.column_type {
            ColumnType::DateTime { fsp, .. } | ColumnType::Timestamp { fsp, .. } if fsp > 0 => {
                fsp.to_string()
            }
            _ => String::new(),
        };
        let now = || format!("current_timestamp({fsp})");
        let is_now = matches!(raw.special_use, TIMESTAMP_DEFAULT | TIMESTAMP_BOTH | TIMESTAMP_OLD);
        let is_generated = expressions.generated.is_some() || expressions.stored.is_some();
        let default = match (expressions.default, default) {
            _ if is_generated || raw.special_use == NEXT_NUMBER => DefaultValue::None,
            (Some(text), _) => DefaultValue::Expression(default_expression(text)),
            _ if is_now => DefaultValue::Expression(now()),
            (None, DefaultValue::Value(digits)) if column.display.zerofill => {
                let width = usize::from(column.display.width.unwrap_or_default());
                DefaultValue::Value(format!("{digits:0>width$}"))
            }
            (None, DefaultValue::Value(number)) => DefaultValue::Value(match column.display.decimals {
                Some(decimals) => with_decimals(&number, usize::from(decimals)),
                None => number,
            }),
            (None, default) => default,
        };
        column.declaration = Declaration {
            type_text: raw.type_text(&column.column_type).unwrap_or_default(),
            default,
            on_update: matches!(raw.special_use, TIMESTAMP_UPDATE | TIMESTAMP_BOTH | TIMESTAMP_OLD).then(now),
            auto_increment: raw.special_use == NEXT_NUMBER,
            stored_expression: expressions.stored,
            collation: match column.column_type {
                ColumnType::Enum { .. } | ColumnType::Set { .. } => raw.collation().ok(),
                _ => None,
            },
            is_document: expressions.check.is_some_and(|check| is_call(&check, "json_valid"))
                && !matches!(column.column_type, ColumnType::Enum { .. } | ColumnType::Set { .. }),
        };
        column.virtual_expression = expressions.generated;
    }
}

/// The default of a FLOAT(M,D) with its D digits.
fn with_decimals(number: &str, decimals: usize) -> String {
    number.parse::<f64>().map_or_else(|_| number.to_owned(), |number| format!("{number:.decimals$}"))
}

/// The text of a default's expression as the server prints it: in parentheses, unless it is a call or a literal.
fn default_expression(text: String) -> String {
    let is_literal =
        text.starts_with('\'') && text.ends_with('\'') && !text.contains("' ") || text.parse::<f64>().is_ok();
    let name = name_length(&text);
    let is_call = name > 0 && is_call(&text, &text[..name]);
    if is_literal || is_call || name == text.len() { text } else { format!("({text})") }
}

/// Length of the name that an expression begins with.
fn name_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

/// Whether all of an expression is a call of a function.
fn is_call(text: &str, name: &str) -> bool {
    let length = name_length(text);
    let mut depth = 0_i32;
    let closes = text[length..].char_indices().find_map(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        (depth == 0).then_some(length + at + c.len_utf8())
    });
    let is_named = text[..length].eq_ignore_ascii_case(name);
    is_named && text[length..].starts_with('(') && closes == Some(text.len())
}

struct RawColumn {
    length: u16,
    flags: u16,
    type_code: u8,
    collation_id: u16,
    interval_number: u8,
    is_compressed: bool,
    is_of_mysql_57: bool,
    /// Where its default lies in the row of defaults, from 1.
    position: usize,
    special_use: u8,
}

impl RawColumn {
    /// The type as MariaDB spells it; `None` where the type alone says it.
    fn type_text(&self, column_type: &ColumnType) -> Option<String> {
        let mut text = match column_type {
            ColumnType::Integer { bytes, .. } => {
                let name = match bytes {
                    1 => "tinyint",
                    2 => "smallint",
                    3 => "mediumint",
                    4 => "int",
                    _ => "bigint",
                };
                format!("{name}({})", self.length)
            }
            ColumnType::Decimal { precision, scale, .. } => format!("decimal({precision},{scale})"),
            ColumnType::Float | ColumnType::Double => {
                let name = if *column_type == ColumnType::Float { "float" } else { "double" };
                match self.decimals() {
                    decimals @ 0..=30 => format!("{name}({},{decimals})", self.length),
                    _ => name.to_owned(),
                }
            }
            ColumnType::Year => return Some(format!("year({})", self.length)),
            ColumnType::Geometry => {
                let kind = usize::from(self.collation_id & 0xff);
                return GEOMETRIES.get(kind).map(|name| (*name).to_owned());
            }
            _ => return None,
        };
        if self.flags & FLAG_SIGNED == 0 {
            text.push_str(" unsigned");
        }
        if self.flags & FLAG_ZEROFILL != 0 {
            text.push_str(" zerofill");
        }
        Some(text)
    }

    fn column_type(&self, intervals: &[Interval<'_>], data_type: Option<&str>) -> Result<ColumnType> {
        if let Some(named) = data_type.and_then(|name| self.named_type(name)) {
            return Ok(named);
        }
        let unsigned = self.flags & FLAG_SIGNED == 0;
        Ok(match self.type_code {
            1 => ColumnType::Integer { bytes: 1, unsigned },
            2 => ColumnType::Integer { bytes: 2, unsigned },
            3 => ColumnType::Integer { bytes: 4, unsigned },
            8 => ColumnType::Integer { bytes: 8, unsigned },
            9 => ColumnType::Integer { bytes: 3, unsigned },
            4 => ColumnType::Float,
            5 => ColumnType::Double,
            7 => ColumnType::Timestamp { fsp: self.fsp(19)?, legacy: true },
            11 => ColumnType::Time { fsp: self.fsp(10)?, legacy: true },
            12 => ColumnType::DateTime { fsp: self.fsp(19)?, legacy: true },
            17 => ColumnType::Timestamp { fsp: self.fsp(19)?, legacy: false },
            18 => ColumnType::DateTime { fsp: self.fsp(19)?, legacy: false },
            19 => ColumnType::Time { fsp: self.fsp(10)?, legacy: false },
            10 | 14 => ColumnType::Date,
            13 => ColumnType::Year,
            15 | 253 => self.string(false)?,
            254 => self.string(true)?,
            16 => ColumnType::Bit { bits: self.narrow(self.length, 1, 64)? },
            246 => self.decimal(unsigned)?,
            247 => ColumnType::Enum { elements: self.elements(intervals)? },
            248 => ColumnType::Set { elements: self.elements(intervals)? },
            249 => self.large(1)?,
            250 => self.large(3)?,
            251 => self.large(4)?,
            252 => self.large(2)?,
            255 => ColumnType::Geometry,
            code @ (COMPRESSED_BLOB | COMPRESSED_VARCHAR) => {
                return Err(corrupt(format!("type {code} is that of values in memory")));
            }
            JSON_OR_OLD_VIRTUAL if self.is_of_mysql_57 => ColumnType::Json,
            JSON_OR_OLD_VIRTUAL => {
                return Err(unsupported("generated columns of before MariaDB 10.2 are not read"));
            }
            code => return Err(unsupported(format!("type {code} is not known"))),
        })
    }

    fn named_type(&self, name: &str) -> Option<ColumnType> {
        match name.to_ascii_lowercase().as_str() {
            "uuid" => Some(ColumnType::Uuid),
            "inet6" => Some(ColumnType::Inet6),
            "inet4" => Some(ColumnType::Inet4),
            "vector" => Some(ColumnType::Vector { dimensions: u32::from(self.length) / 4, is_blob: false }),
            _ => None,
        }
    }

    fn narrow(&self, value: u16, least: u8, most: u8) -> Result<u8> {
        let narrow = u8::try_from(value).ok().filter(|value| (least..=most).contains(value));
        narrow.ok_or_else(|| corrupt(format!("{value} where {least} to {most} is possible")))
    }

    /// Digits of the second, from the display length: `hh:mm:ss.ffffff`.
    fn fsp(&self, whole_length: u16) -> Result<u8> {
        self.narrow(self.length.saturating_sub(whole_length).saturating_sub(1), 0, 6)
    }

    /// Precision from the display length: digits, point and sign.
    fn decimal(&self, unsigned: bool) -> Result<ColumnType> {
        let scale = self.narrow(self.decimals(), 0, 65)?;
        let precision = self.length.saturating_sub(u16::from(scale > 0)).saturating_sub(u16::from(!unsigned));
        Ok(ColumnType::Decimal { precision: self.narrow(precision, scale.max(1), 65)?, scale, unsigned })
    }

    /// Digits after the point; 31 if their number is not fixed.
    fn decimals(&self) -> u16 {
        self.flags >> DECIMALS_SHIFT & DECIMALS_MASK
    }

    fn collation(&self) -> Result<Collation> {
        Collation::with_id(self.collation_id)
            .ok_or_else(|| unsupported(format!("collation {} is not known", self.collation_id)))
    }

    fn string(&self, fixed: bool) -> Result<ColumnType> {
        let collation = self.collation()?;
        // Of a compressed column the length has room for a header.
        let length = u32::from(self.length.saturating_sub(u16::from(self.is_compressed)));
        let length = length / u32::from(collation.max_bytes);
        Ok(match (collation.charset == "binary", fixed) {
            (true, true) => ColumnType::Binary { length },
            (true, false) => ColumnType::VarBinary { length },
            (false, true) => ColumnType::Char { length, collation },
            (false, false) => ColumnType::VarChar { length, collation },
        })
    }

    fn large(&self, length_bytes: u8) -> Result<ColumnType> {
        let collation = self.collation()?;
        Ok(match collation.charset == "binary" {
            true => ColumnType::Blob { length_bytes },
            false => ColumnType::Text { length_bytes, collation },
        })
    }

    fn elements(&self, intervals: &[Interval<'_>]) -> Result<Vec<String>> {
        let collation = self.collation()?;
        let interval = usize::from(self.interval_number).checked_sub(1).and_then(|no| intervals.get(no));
        let interval =
            interval.ok_or_else(|| corrupt(format!("elements {} are not there", self.interval_number)))?;
        let hexadecimal = self.flags & FLAG_HEXADECIMAL != 0 || collation.min_bytes > 1;
        interval.iter().map(|element| element_text(element, &collation, hexadecimal)).collect()
    }
}

/// Elements are spelled in hexadecimal digits if the character set is without ASCII bytes, or one has a zero byte or
/// another that ends a list.
fn element_text(element: &[u8], collation: &Collation, hexadecimal: bool) -> Result<String> {
    if !hexadecimal {
        return Ok(text::decode(&collation.charset, element));
    }
    let digit =
        |byte: &u8| char::from(*byte).to_digit(16).ok_or_else(|| corrupt("an element is not hexadecimal"));
    let digits = element.iter().map(digit).collect::<Result<Vec<u32>>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8)).collect();
    Ok(text::decode(&collation.charset, &bytes))
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_is_json_valid_if_all_of_it_is_that_call() {
        for check in ["json_valid(`j`)", "JSON_VALID(concat(`a`,`b`))"] {
            assert!(is_call(check, "json_valid"), "{check}");
        }
        for check in ["json_valid(`j`) and 1", "!json_valid(`j`)", "json_valid", "json_valid(`j`) or (1)"] {
            assert!(!is_call(check, "json_valid"), "{check}");
        }
        assert_eq!(default_expression("uuid()".to_owned()), "uuid()");
        assert_eq!(default_expression("uuid() + 1".to_owned()), "(uuid() + 1)");
    }
}
