//! The extra segment of MariaDB's `.frm`: what the old format has no place for.

use super::frm_bytes::{Bytes, corrupt};
use crate::{Error, ErrorKind, Result};

const APPLICATION_PERIOD: u8 = 3;
const PERIOD_FOR_SYSTEM_TIME: u8 = 4;
const INDEX_FLAGS: u8 = 5;
/// From here on a reader that does not know the value must not read the file.
const IMPORTANT: u8 = 128;
const ENGINE_TABLE_OPTIONS: u8 = 128;
const FIELD_FLAGS: u8 = 129;
const FIELD_DATA_TYPE_INFO: u8 = 130;
const PERIOD_WITHOUT_OVERLAPS: u8 = 131;

/// In the flags of a field.
const WITHOUT_VERSIONING: u8 = 8;
/// In the flags of a key.
const IGNORED: u8 = 1;
/// The bits of an option's length that are not flags.
const OPTION_LENGTH: usize = 0x3fff;

/// How far a column is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visibility(u8);

impl Visibility {
    pub(super) const VISIBLE: Visibility = Visibility(0);
    /// Left out of `SELECT *`.
    pub(super) fn is_invisible(self) -> bool {
        self.0 != 0
    }
    /// Added by the server for system versioning.
    pub(super) fn is_of_system(self) -> bool {
        self.0 == 2
    }
    /// Not to be named by SQL at all.
    pub(super) fn is_unknown_to_sql(self) -> bool {
        self.0 == 3
    }
}

/// The values this reader takes from the segment.
pub(super) struct Extra<'a> {
    /// Of a system-versioned table: the field that says when a row ceased to be.
    pub(super) row_end: Option<usize>,
    /// Of a system-versioned table: the field that says when a row began to be.
    pub(super) row_start: Option<usize>,
    /// Whether the table has a period that is not the system's.
    pub(super) has_application_period: bool,
    /// Whether a key is WITHOUT OVERLAPS.
    pub(super) is_without_overlaps: bool,
    options: Option<Bytes<'a>>,
    index_flags: &'a [u8],
    field_flags: &'a [u8],
    data_types: Vec<(usize, &'a str)>,
}

impl<'a> Extra<'a> {
    pub(super) fn read(segment: Bytes<'a>) -> Result<Extra<'a>> {
        let mut extra = Extra {
            row_end: None,
            row_start: None,
            has_application_period: false,
            is_without_overlaps: false,
            options: None,
            index_flags: &[],
            field_flags: &[],
            data_types: Vec::new(),
        };
        // Very old files have a path here.
        if segment.len() == 0 || segment.u8(0)? == b'/' {
            return Ok(extra);
        }
        let mut at = 0;
        while at + 3 <= segment.len() {
            let kind = segment.u8(at)?;
            let (len, value_at) = match segment.u8(at + 1)? {
                0 => (segment.size16(at + 2)?, at + 4),
                len => (usize::from(len), at + 2),
            };
            let value = segment.slice(value_at, len)?;
            at = value_at + len;
            match kind {
                // Start and end.
                PERIOD_FOR_SYSTEM_TIME => {
                    extra.row_start = Some(value.size16(0)?);
                    extra.row_end = Some(value.size16(2)?);
                }
                APPLICATION_PERIOD => extra.has_application_period = true,
                INDEX_FLAGS => extra.index_flags = value.as_slice(),
                FIELD_FLAGS => extra.field_flags = value.as_slice(),
                FIELD_DATA_TYPE_INFO => extra.data_types = data_types(value)?,
                ENGINE_TABLE_OPTIONS => extra.options = Some(value),
                PERIOD_WITHOUT_OVERLAPS => extra.is_without_overlaps = true,
                kind if kind >= IMPORTANT => {
                    let message = format!("its .frm has a value of kind {kind}, which a newer MariaDB wrote");
                    return Err(Error::new(ErrorKind::Unsupported, message));
                }
                _ => {}
            }
        }
        Ok(extra)
    }

    pub(super) fn visibility(&self, field: usize) -> Visibility {
        self.field_flags.get(field).map_or(Visibility::VISIBLE, |flags| Visibility(flags & 7))
    }

    /// Whether a change of the field makes no version.
    pub(super) fn is_without_versioning(&self, field: usize) -> bool {
        self.field_flags.get(field).is_some_and(|flags| flags & WITHOUT_VERSIONING != 0)
    }

    /// Whether the optimizer leaves a key alone.
    pub(super) fn is_ignored(&self, key: usize) -> bool {
        self.index_flags.get(key).is_some_and(|flags| flags & IGNORED != 0)
    }

    /// The engine's options of the table. Those of columns and keys, which no engine but the table's own ones has, are
    /// refused.
    pub(super) fn engine_options(&self) -> Result<Vec<(String, String)>> {
        let mut options = Vec::new();
        let Some(list) = self.options else { return Ok(options) };
        let mut at = 0;
        while at < list.len() && list.u8(at)? != 0 {
            let name_len = usize::from(list.u8(at)?);
            let value_len = list.size16(at + 1 + name_len)? & OPTION_LENGTH;
            let text = |bytes: Bytes<'_>| String::from_utf8_lossy(bytes.as_slice()).into_owned();
            let name = text(list.slice(at + 1, name_len)?).replace('`', "``");
            let value = text(list.slice(at + 3 + name_len, value_len)?).replace('\'', "''");
            options.push((format!("`{name}`"), format!("'{value}'")));
            at += 3 + name_len + value_len;
        }
        if list.rest(at)?.as_slice().iter().any(|byte| *byte != 0) {
            let message = "options of the engine at its columns or keys are not read";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(options)
    }

    /// The data type's name where the code is not enough (`uuid`, `inet6`).
    pub(super) fn data_type(&self, field: usize) -> Option<&'a str> {
        self.data_types.iter().find(|(no, _)| *no == field).map(|(_, name)| *name)
    }
}

/// Pairs of field number and name; numbers and lengths are packed as in the client protocol.
fn data_types(value: Bytes<'_>) -> Result<Vec<(usize, &str)>> {
    let mut types = Vec::new();
    let mut at = 0;
    while at < value.len() {
        let field = packed_number(value, &mut at)?;
        let len = packed_number(value, &mut at)?;
        let name = value.slice(at, len)?.as_slice();
        at += len;
        types
            .push((field, std::str::from_utf8(name).map_err(|_| corrupt("a data type's name is not text"))?));
    }
    Ok(types)
}

fn packed_number(value: Bytes<'_>, at: &mut usize) -> Result<usize> {
    let first = value.u8(*at)?;
    *at += 1;
    match first {
        0..=250 => Ok(usize::from(first)),
        252 => {
            *at += 2;
            value.size16(*at - 2)
        }
        _ => Err(corrupt("a number in the .frm is too long")),
    }
}
