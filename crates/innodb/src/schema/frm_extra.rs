//! The extra segment of MariaDB's `.frm`: what the old format has no place for.

use super::frm_bytes::{Bytes, corrupt};
use crate::{Error, ErrorKind, Result};

const PERIOD_FOR_SYSTEM_TIME: u8 = 4;
/// From here on a reader that does not know the value must not read the file.
const IMPORTANT: u8 = 128;
const ENGINE_TABLE_OPTIONS: u8 = 128;
const FIELD_FLAGS: u8 = 129;
const FIELD_DATA_TYPE_INFO: u8 = 130;
const PERIOD_WITHOUT_OVERLAPS: u8 = 131;

/// How far a column is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Visibility(u8);

impl Visibility {
    pub(super) const VISIBLE: Visibility = Visibility(0);
    /// Left out of `SELECT *`.
    pub(super) fn is_invisible(self) -> bool {
        self.0 != 0
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
    field_flags: &'a [u8],
    data_types: Vec<(usize, &'a str)>,
}

impl<'a> Extra<'a> {
    pub(super) fn read(segment: Bytes<'a>) -> Result<Extra<'a>> {
        let mut extra = Extra { row_end: None, field_flags: &[], data_types: Vec::new() };
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
                PERIOD_FOR_SYSTEM_TIME => extra.row_end = Some(value.size16(2)?),
                FIELD_FLAGS => extra.field_flags = value.as_slice(),
                FIELD_DATA_TYPE_INFO => extra.data_types = data_types(value)?,
                ENGINE_TABLE_OPTIONS | PERIOD_WITHOUT_OVERLAPS => {}
                IMPORTANT.. => {
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
