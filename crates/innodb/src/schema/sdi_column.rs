//! A column in MySQL's dictionary -> [`Column`] and [`ColumnType`].
//!
//! Lengths of strings are in bytes. Columns that were dropped instantly lack some properties, which then follow from
//! the display length.

use serde::Deserialize;

use super::expression_text::expression_text;
use super::text::{self, decode_base64};
use super::{Collation, Column, ColumnType, Declaration, DefaultValue, Display};
use crate::{Error, ErrorKind, Result};

#[derive(Deserialize)]
pub(super) struct SdiColumn {
    pub(super) name: String,
    #[serde(rename = "type")]
    type_code: u8,
    pub(super) is_nullable: bool,
    #[serde(default)]
    is_unsigned: bool,
    #[serde(default)]
    pub(super) is_virtual: bool,
    #[serde(default)]
    hidden: u8,
    #[serde(default)]
    char_length: u64,
    #[serde(default)]
    numeric_precision: u32,
    #[serde(default)]
    numeric_scale: u32,
    /// Whether a FLOAT or DOUBLE has no fixed number of digits after the point.
    #[serde(default)]
    numeric_scale_null: bool,
    #[serde(default)]
    is_zerofill: bool,
    #[serde(default)]
    datetime_precision: u32,
    #[serde(default)]
    comment: String,
    #[serde(default)]
    generation_expression: String,
    #[serde(default)]
    generation_expression_utf8: String,
    #[serde(default)]
    pub(super) se_private_data: String,
    #[serde(default)]
    elements: Vec<SdiColumnElement>,
    #[serde(default)]
    collation_id: u16,
    #[serde(default)]
    has_no_default: bool,
    #[serde(default)]
    default_value_utf8: String,
    #[serde(default)]
    default_value_utf8_null: bool,
    #[serde(default)]
    default_option: String,
    #[serde(default)]
    update_option: String,
    #[serde(default)]
    is_auto_increment: bool,
    #[serde(default)]
    column_type_utf8: String,
}

#[derive(Deserialize)]
struct SdiColumnElement {
    /// Base64 of the name in the column's character set.
    name: String,
}

const HIDDEN_BY_ENGINE: u8 = 2;
const HIDDEN_BY_SQL: u8 = 3;
const HIDDEN_BY_USER: u8 = 4;

impl SdiColumn {
    /// Whether SQL cannot name it.
    pub(super) fn is_hidden(&self) -> bool {
        matches!(self.hidden, HIDDEN_BY_ENGINE | HIDDEN_BY_SQL)
    }
    /// Whether it was dropped instantly and still has its place in old records.
    pub(super) fn is_dropped(&self) -> bool {
        self.hidden == HIDDEN_BY_ENGINE && private_value(&self.se_private_data, "version_dropped").is_some()
    }
    /// Whether the table has row versions (instant ADD or DROP since 8.0.29).
    pub(super) fn has_physical_position(&self) -> bool {
        private_value(&self.se_private_data, "physical_pos").is_some()
    }

    pub(super) fn column(&self) -> Result<Column> {
        let column_type = self.column_type()?;
        let decimals = (!self.numeric_scale_null).then_some(self.numeric_scale.into());
        Ok(Column {
            compressed: false,
            name: self.name.clone(),
            display: Display::of_entry(&column_type, self.char_length, decimals, self.is_zerofill),
            column_type,
            nullable: self.is_nullable,
            invisible: self.hidden == HIDDEN_BY_USER,
            virtual_expression: self
                .is_virtual
                .then(|| expression_text(&self.generation_expression, &self.generation_expression_utf8)),
            comment: self.comment.clone(),
            declaration: self.declaration(),
        })
    }

    fn declaration(&self) -> Declaration {
        let is_generated = !self.generation_expression.is_empty();
        let default = match () {
            () if is_generated || self.has_no_default || self.is_auto_increment => DefaultValue::None,
            () if !self.default_option.is_empty() => DefaultValue::Expression(self.default_option.clone()),
            () if self.default_value_utf8_null => DefaultValue::Null,
            () => DefaultValue::Value(self.default_value_utf8.clone()),
        };
        Declaration {
            type_text: self.column_type_utf8.clone(),
            default,
            on_update: (!self.update_option.is_empty()).then(|| self.update_option.clone()),
            auto_increment: self.is_auto_increment,
            stored_expression: (is_generated && !self.is_virtual)
                .then(|| expression_text(&self.generation_expression, &self.generation_expression_utf8)),
            collation: matches!(self.type_code, 22 | 23).then(|| self.collation().ok()).flatten(),
            is_document: false,
        }
    }

    pub(super) fn column_type(&self) -> Result<ColumnType> {
        let unsigned = self.is_unsigned;
        let column_type = match self.type_code {
            1 | 21 => self.decimal()?,
            2 => ColumnType::Integer { bytes: 1, unsigned },
            3 => ColumnType::Integer { bytes: 2, unsigned },
            4 => ColumnType::Integer { bytes: 4, unsigned },
            5 => ColumnType::Float,
            6 => ColumnType::Double,
            8 => ColumnType::Timestamp { fsp: 0, legacy: true },
            9 => ColumnType::Integer { bytes: 8, unsigned },
            10 => ColumnType::Integer { bytes: 3, unsigned },
            11 => ColumnType::Date,
            12 => ColumnType::Time { fsp: 0, legacy: true },
            13 => ColumnType::DateTime { fsp: 0, legacy: true },
            14 => ColumnType::Year,
            15 => ColumnType::Date,
            16 | 28 => self.string(false)?,
            17 => ColumnType::Bit {
                bits: self.narrow(u64::from(self.numeric_precision).max(self.char_length), 1, 64)?,
            },
            18 => ColumnType::Timestamp { fsp: self.fsp(19)?, legacy: false },
            19 => ColumnType::DateTime { fsp: self.fsp(19)?, legacy: false },
            20 => ColumnType::Time { fsp: self.fsp(10)?, legacy: false },
            22 => ColumnType::Enum { elements: self.elements()? },
            23 => ColumnType::Set { elements: self.elements()? },
            24 => self.large(1)?,
            25 => self.large(3)?,
            26 => self.large(4)?,
            27 => self.large(2)?,
            29 => self.string(true)?,
            30 => ColumnType::Geometry,
            31 => ColumnType::Json,
            32 => {
                let dimensions = u32::try_from(self.char_length / 4).unwrap_or(u32::MAX);
                ColumnType::Vector { dimensions, is_blob: true }
            }
            code => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("column {}: type {code} is not known", self.name),
                ));
            }
        };
        Ok(column_type)
    }

    fn wrong(&self, what: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Corrupt, format!("column {}: {what} in the SDI", self.name))
    }

    fn narrow(&self, value: u64, least: u8, most: u8) -> Result<u8> {
        let narrow = u8::try_from(value).ok().filter(|value| (least..=most).contains(value));
        narrow.ok_or_else(|| self.wrong(format!("{value} where {least} to {most} is possible")))
    }

    /// A dropped column has no precision, but the display length: digits, point and sign.
    fn decimal(&self) -> Result<ColumnType> {
        let scale = self.narrow(self.numeric_scale.into(), 0, 65)?;
        let precision = match self.numeric_precision {
            0 => self
                .char_length
                .saturating_sub(u64::from(scale > 0))
                .saturating_sub(u64::from(!self.is_unsigned)),
            precision => precision.into(),
        };
        let precision = self.narrow(precision, scale.max(1), 65)?;
        Ok(ColumnType::Decimal { precision, scale, unsigned: self.is_unsigned })
    }

    /// The digits of the second, which a dropped column shows in its display length alone.
    fn fsp(&self, whole_length: u64) -> Result<u8> {
        let fsp = match self.datetime_precision {
            0 => self.char_length.saturating_sub(whole_length).saturating_sub(1),
            fsp => fsp.into(),
        };
        self.narrow(fsp, 0, 6)
    }

    fn collation(&self) -> Result<Collation> {
        Collation::with_id(self.collation_id)
            .ok_or_else(|| self.wrong(format!("unknown collation {}", self.collation_id)))
    }

    fn string(&self, fixed: bool) -> Result<ColumnType> {
        let collation = self.collation()?;
        let bytes = u32::try_from(self.char_length).ok().filter(|bytes| *bytes <= 65_535);
        let bytes = bytes.ok_or_else(|| self.wrong(format!("length {}", self.char_length)))?;
        let length = bytes / u32::from(collation.max_bytes);
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

    fn elements(&self) -> Result<Vec<String>> {
        let collation = self.collation()?;
        let name = |element: &SdiColumnElement| {
            let bytes =
                decode_base64(&element.name).ok_or_else(|| self.wrong("an element that is not base64"))?;
            Ok(text::decode(&collation.charset, &bytes))
        };
        self.elements.iter().map(name).collect()
    }
}

/// The value of `key` in `key=value;key=value;`. Values of interest here have no escapes.
pub(super) fn private_value<'a>(data: &'a str, key: &str) -> Option<&'a str> {
    data.split(';')
        .find_map(|pair| pair.split_once('=').filter(|(name, _)| *name == key).map(|(_, value)| value))
}

/// The text of `key` in `key=value;key=value;`, in which a backslash stands before `=`, `;` and itself.
pub(super) fn private_text_of(data: &str, key: &str) -> Option<String> {
    let at = match data.strip_prefix(key).is_some_and(|rest| rest.starts_with('=')) {
        true => 0,
        false => data.find(&format!(";{key}="))? + 1,
    };
    let mut text = String::new();
    let mut characters = data[at + key.len() + 1..].chars();
    while let Some(character) = characters.next().filter(|character| *character != ';') {
        text.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    (!text.is_empty()).then_some(text)
}

/// The number of `key` in `key=value;key=value;`.
pub(crate) fn private_number<T: std::str::FromStr>(data: &str, key: &str) -> Option<T> {
    private_value(data, key)?.parse().ok()
}
