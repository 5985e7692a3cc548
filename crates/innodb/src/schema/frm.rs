//! MariaDB's `.frm`: binary table definition -> [`TableDefinition`].
//!
//! 1. The header (64 bytes) says where the keys and the form are, and has the row format and the character set of the
//!    table.
//! 2. MariaDB's extra segment follows the header: type, length, value; field flags (invisible columns) and names of
//!    data types that have no code of their own (`uuid`, `inet6`, ...) are taken from it ([`super::frm_extra`]).
//! 3. The keys: per key flags and parts, then all key names ([`super::frm_key`]).
//! 4. The form: numbers of columns and lengths of the lists after it, 17 bytes a column ([`super::frm_column`]), the
//!    names, the elements of ENUM and SET, the comments, and the expressions of generated columns, defaults and checks.
//!
//! A `.frm` says nothing of roots and index ids (they are in `ibdata1`, or found from the file itself) and shows
//! columns in SQL order only: what instant ALTER did to the stored order is in the clustered index
//! ([`super::instant_mariadb`]).

use super::description::Check;
use super::frm_bytes::{Bytes, corrupt, names};
use super::frm_column::{FieldExpressions, FrmColumn, Interval};
use super::frm_default::DefaultRow;
use super::frm_extra::Extra;
use super::frm_key::{self, FrmKey};
use super::layout;
use super::{
    Collation, Column, ColumnNo, ColumnType, DefaultValue, Index, IndexKind, IndexPart, Partition, RowFormat,
    Server, TableDefinition,
};
use crate::{Error, ErrorKind, Result};

const HEADER_LEN: usize = 64;
const FORM_LEN: usize = 288;
const FIELD_LEN: usize = 17;
/// Of a table without VARCHAR columns, by servers before MariaDB 10.2; the layout is that of the next version.
const VERSION_NO_VARCHAR: u8 = 9;
/// In the header of every `.frm` since MySQL 5.0. Before, version 9 meant the VARCHAR of that time, which lost its
/// trailing spaces.
const MADE_BY_MYSQL_5: u8 = 5;
const VERSION_EXPRESSIONS: u8 = 11;
/// In the header: the version of the server that wrote it.
pub(super) const SERVER_VERSION: usize = 51;
const MYSQL_57: std::ops::Range<u32> = 50_700..50_800;
const ENGINE_INNODB: u8 = 12;
const ENGINE_PARTITION: u8 = 20;
/// Bytes before the first expression.
const EXPRESSIONS_BASE: usize = 16;
const EXPRESSION_HEADER: usize = 6;
const GENERATED_VIRTUAL: u8 = 0;
const GENERATED_STORED: u8 = 1;
const DEFAULT: u8 = 2;
const CHECK_OF_FIELD: u8 = 3;
const CHECK_OF_TABLE: u8 = 4;
/// Field number of an expression that belongs to the table.
const NO_FIELD: u16 = u16::MAX;

/// Whether `frm` (its first 64 bytes are enough) describes an InnoDB table, partitioned or not.
pub fn is_innodb_frm(frm: &[u8]) -> bool {
    let engine = |offset: usize| frm.get(offset).copied();
    frm.starts_with(&[0xfe, 0x01])
        && (engine(3) == Some(ENGINE_INNODB)
            || engine(3) == Some(ENGINE_PARTITION) && engine(61) == Some(ENGINE_INNODB))
}

/// The table `database.name` that a `.frm` file describes. Roots are unknown; the one partition has neither name nor
/// path yet.
///
/// # Errors
/// `Corrupt` if the file contradicts itself, `Unsupported` for what is not read: other engines, files of servers before
/// MySQL 5.0 or with generated columns of before MariaDB 10.2.
pub fn table_from_frm(frm: &[u8], database: &str, name: &str) -> Result<TableDefinition> {
    definition(Bytes::new(frm), database, name)
        .map_err(|error| error.within(format!("definition of {database}.{name}")))
}

/// The extra segment, and the form with its position.
pub(super) fn parts(frm: Bytes<'_>) -> Result<(Extra<'_>, usize, Form<'_>)> {
    let extra_len = frm.size16(4)?;
    let extra = Extra::read(frm.slice(HEADER_LEN, extra_len)?)?;
    let form_at = frm.size32(HEADER_LEN + extra_len)?;
    Ok((extra, form_at, Form::locate(frm, form_at)?))
}

/// All fields, those that SQL does not know among them.
pub(super) fn fields(frm: Bytes<'_>, form: &Form<'_>, extra: &Extra<'_>) -> Result<Vec<FrmColumn>> {
    let is_of_mysql_57 = MYSQL_57.contains(&frm.u32(SERVER_VERSION)?);
    form.columns(extra, is_of_mysql_57, DefaultRow::locate(frm).ok())
}

/// What lies behind the row of defaults.
pub(super) fn behind_defaults(frm: Bytes<'_>) -> Result<Bytes<'_>> {
    let keys_len = match frm.u16(14)? {
        u16::MAX => frm.size32(47)?,
        len => usize::from(len),
    };
    frm.rest(frm.size16(6)?.saturating_add(keys_len).saturating_add(frm.size16(16)?))
}

fn definition(frm: Bytes<'_>, database: &str, name: &str) -> Result<TableDefinition> {
    check_header(frm)?;
    let (extra, _, form) = parts(frm)?;
    let fields = fields(frm, &form, &extra)?;
    let (columns, numbers) = shown(fields);
    let row_end = extra
        .row_end
        .map(|field| {
            let column = numbers.get(field).copied().flatten();
            column.ok_or_else(|| corrupt(format!("its rows end by column {field}, which is not there")))
        })
        .transpose()?;
    let keys = frm_key::read(frm.rest(frm.size16(6)?)?)?;
    let has_fulltext = keys.iter().any(|key| key.fulltext);
    let of_table = keys.into_iter().filter(|key| !key.is_vector);
    let mut indexes = of_table.map(|key| index(key, &columns, &numbers)).collect::<Result<Vec<Index>>>()?;
    layout::clustered_first(&mut indexes, &columns);
    let mut stored_fields = layout::stored_fields(&columns, &indexes[0]);
    if has_fulltext {
        layout::add_document_id(&columns, &mut indexes, &mut stored_fields);
    }
    Ok(TableDefinition {
        database: database.to_owned(),
        name: name.to_owned(),
        server: Server::MariaDb,
        row_format: row_format(frm.u8(40)?),
        columns,
        indexes,
        stored_fields,
        row_versions: false,
        row_end,
        instant_columns: Vec::new(),
        collation: Collation::with_id(u16::from(frm.u8(41)?) << 8 | u16::from(frm.u8(38)?)),
        partitions: vec![Partition { name: String::new(), path: std::path::PathBuf::new() }],
    })
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Unsupported, message)
}

pub(super) fn check_header(frm: Bytes<'_>) -> Result<()> {
    if frm.as_slice().starts_with(b"TYPE=") {
        return Err(unsupported("it is a view"));
    }
    if frm.u8(0)? != 0xfe || frm.u8(1)? != 0x01 {
        return Err(corrupt("the file does not begin like a .frm"));
    }
    let version = frm.u8(2)?;
    if version < VERSION_NO_VARCHAR || version == VERSION_NO_VARCHAR && frm.u8(33)? != MADE_BY_MYSQL_5 {
        return Err(unsupported(
            "its .frm is of a server before MySQL 5.0; run ALTER TABLE ... FORCE on the server",
        ));
    }
    if !is_innodb_frm(frm.as_slice()) {
        return Err(unsupported("its engine is not InnoDB"));
    }
    Ok(())
}

fn row_format(code: u8) -> RowFormat {
    match code {
        3 => RowFormat::Compressed,
        4 => RowFormat::Redundant,
        5 => RowFormat::Compact,
        _ => RowFormat::Dynamic,
    }
}

/// The form and the lists after it.
pub(super) struct Form<'a> {
    fields: usize,
    fields_at: Bytes<'a>,
    names: Bytes<'a>,
    intervals: Bytes<'a>,
    interval_count: usize,
    comments: Bytes<'a>,
    expressions: Bytes<'a>,
}

impl<'a> Form<'a> {
    fn locate(frm: Bytes<'a>, position: usize) -> Result<Form<'a>> {
        let form = frm.slice(position, FORM_LEN)?;
        let fields = form.size16(258)?;
        let screens_len = form.size16(260)?;
        let lists = [268, 274, 284, 286].map(|offset| form.size16(offset));
        let mut at = position + FORM_LEN + screens_len;
        let fields_at = frm.slice(at, fields * FIELD_LEN)?;
        at += fields * FIELD_LEN;
        let mut next = |len: Result<usize>| -> Result<Bytes<'a>> {
            let list = frm.slice(at, len?)?;
            at += list.len();
            Ok(list)
        };
        let [names, intervals, comments, expressions] = lists;
        let (names, intervals, comments, expressions) =
            (next(names)?, next(intervals)?, next(comments)?, next(expressions)?);
        if expressions.len() > 0 && frm.u8(2)? < VERSION_EXPRESSIONS {
            return Err(unsupported(
                "its generated columns are in the form of MySQL 5.7, or of MariaDB before 10.2, which is not read; run ALTER TABLE \
                 ... FORCE on the server",
            ));
        }
        Ok(Form {
            fields,
            fields_at,
            names,
            intervals,
            interval_count: form.size16(270)?,
            comments,
            expressions,
        })
    }

    fn columns(
        &self,
        extra: &Extra<'_>,
        is_of_mysql_57: bool,
        mut defaults: Option<DefaultRow<'_>>,
    ) -> Result<Vec<FrmColumn>> {
        let (names, _) = names(self.names)?;
        if names.len() != self.fields {
            return Err(corrupt(format!("{} columns have {} names", self.fields, names.len())));
        }
        let intervals = self.intervals()?;
        let mut expressions = self.expressions()?;
        let mut comment_at = 0;
        let mut columns = Vec::with_capacity(self.fields);
        for (no, name) in names.into_iter().enumerate() {
            let field = self.fields_at.slice(no * FIELD_LEN, FIELD_LEN)?;
            let comment = self.comments.slice(comment_at, field.size16(15)?)?;
            comment_at += comment.len();
            let mut column = FrmColumn::read(field, name, &intervals, extra.data_type(no), is_of_mysql_57)?;
            column.column.comment = String::from_utf8_lossy(comment.as_slice()).into_owned();
            column.visibility = extra.visibility(no);
            column.column.invisible = column.visibility.is_invisible();
            // What only DESCRIBE shows keeps no table from being read.
            let default = defaults.as_mut().and_then(|row| row.next(&column.entry()).ok());
            if default.is_none() {
                defaults = None;
            }
            let of_field = expressions.get_mut(no).map(std::mem::take).unwrap_or_default();
            column.declare(default.unwrap_or(DefaultValue::Unknown), of_field);
            columns.push(column);
        }
        Ok(columns)
    }

    fn intervals(&self) -> Result<Vec<Interval<'a>>> {
        let mut intervals = Vec::new();
        let mut offset = 0;
        for _ in 0..self.interval_count {
            let (elements, used) = names(self.intervals.rest(offset)?)?;
            intervals.push(elements);
            offset += used;
        }
        Ok(intervals)
    }

    /// The checks of each column, and those of the table.
    pub(super) fn checks(&self) -> Result<(Vec<Option<String>>, Vec<Check>)> {
        let mut of_fields = vec![None; self.fields];
        let mut of_table = Vec::new();
        let list = self.expressions;
        let mut at = EXPRESSIONS_BASE;
        while at < list.len() {
            let (kind, field) = (list.u8(at)?, list.size16(at + 1)?);
            let (text_len, name_len) = (list.size16(at + 3)?, usize::from(list.u8(at + 5)?));
            at += EXPRESSION_HEADER;
            let name = String::from_utf8_lossy(list.slice(at, name_len)?.as_slice()).into_owned();
            let text = list.slice(at + name_len, text_len)?.as_slice();
            let text = String::from_utf8_lossy(text).into_owned();
            at += name_len + text_len;
            match kind {
                CHECK_OF_FIELD => {
                    let slot = of_fields.get_mut(field);
                    *slot.ok_or_else(|| corrupt(format!("a check belongs to column {field}")))? = Some(text);
                }
                CHECK_OF_TABLE => of_table.push(Check { name, expression: text, enforced: true }),
                _ => {}
            }
        }
        Ok((of_fields, of_table))
    }

    /// The expressions of each column.
    fn expressions(&self) -> Result<Vec<FieldExpressions>> {
        let mut expressions = vec![FieldExpressions::default(); self.fields];
        let list = self.expressions;
        let mut at = EXPRESSIONS_BASE;
        while at < list.len() {
            let kind = list.u8(at)?;
            let field = list.u16(at + 1)?;
            let text_len = list.size16(at + 3)?;
            let name_len = usize::from(list.u8(at + 5)?);
            at += EXPRESSION_HEADER + name_len;
            let text = list.slice(at, text_len)?;
            at += text_len;
            let is_known = matches!(kind, GENERATED_VIRTUAL | GENERATED_STORED | DEFAULT | CHECK_OF_FIELD);
            if !is_known || field == NO_FIELD {
                continue;
            }
            let slot = expressions.get_mut(usize::from(field));
            let slot = slot.ok_or_else(|| {
                corrupt(format!("an expression belongs to column {field}, which is not there"))
            })?;
            let text = Some(String::from_utf8_lossy(text.as_slice()).into_owned());
            match kind {
                GENERATED_VIRTUAL => slot.generated = text,
                GENERATED_STORED => slot.stored = text,
                CHECK_OF_FIELD => slot.check = text,
                _ => slot.default = text,
            }
        }
        Ok(expressions)
    }
}

/// The columns SQL can name, and where each field of the `.frm` went. Left out are the hash columns of long unique
/// keys, which are last and not stored.
pub(super) fn shown(fields: Vec<FrmColumn>) -> (Vec<Column>, Vec<Option<ColumnNo>>) {
    let mut columns = Vec::with_capacity(fields.len());
    let mut numbers = Vec::with_capacity(fields.len());
    for field in fields {
        if field.visibility.is_unknown_to_sql() {
            numbers.push(None);
            continue;
        }
        numbers.push(Some(ColumnNo(columns.len())));
        columns.push(field.column);
    }
    (columns, numbers)
}

fn index(key: FrmKey, columns: &[Column], numbers: &[Option<ColumnNo>]) -> Result<Index> {
    let mut parts = Vec::with_capacity(key.parts.len());
    for part in &key.parts {
        let number = numbers
            .get(part.field)
            .ok_or_else(|| corrupt(format!("key {} names column {}", key.name, part.field)))?;
        let Some(column) = *number else { continue };
        let column_type: &ColumnType = &columns[column.0].column_type;
        let prefix_bytes = layout::prefix_bytes(column_type, u32::from(part.length_bytes));
        parts.push(IndexPart { column, prefix_bytes, descending: part.descending });
    }
    let readable = key.is_btree && parts.len() == key.parts.len() && !parts.is_empty();
    Ok(Index {
        name: key.name,
        id: 0,
        roots: vec![None],
        unique: key.unique,
        kind: if readable { IndexKind::BTree } else { IndexKind::Other },
        parts: if readable { parts } else { Vec::new() },
    })
}

/// The partitions' names that a `.par` file lists, as the file system spells them (`p0`, or `p0#SP#p0sp0` with
/// subpartitions).
///
/// # Errors
/// `Corrupt` if the file contradicts itself.
pub fn partition_names(par: &[u8]) -> Result<Vec<String>> {
    let par = Bytes::new(par);
    let words = par.size32(0)?;
    if words.checked_mul(4).is_none_or(|len| len > par.len()) {
        return Err(corrupt("the .par file is shorter than it says"));
    }
    let count = par.size32(8)?;
    let engines_len = count
        .checked_add(3)
        .map(|len| len / 4 * 4)
        .ok_or_else(|| corrupt("the .par file counts too many partitions"))?;
    let names_at = par.slice(12, engines_len)?.len() + 12;
    let text = par.slice(names_at + 4, par.size32(names_at)?)?.as_slice();
    let names: Vec<String> = text
        .split(|byte| *byte == 0)
        .take(count)
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    if names.len() != count {
        return Err(corrupt("the .par file names fewer partitions than it counts"));
    }
    Ok(names)
}
