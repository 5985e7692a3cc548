//! What instant ALTER TABLE of MariaDB (10.3 on) left in the clustered index.
//!
//! The root page counts the *core* fields, those every record had before the first instant ALTER. The first record of
//! the leftmost leaf is then no row but metadata (status 4, flag min-rec):
//!
//! 1. Its key is all zero, variable-length parts empty, so the fields after the key are found without knowing more.
//! 2. After an ALTER that dropped or reordered columns it has the delete flag and, after the roll pointer, a reference
//!    to a BLOB that lists what each stored field is: a column by its position among the stored columns, or a dropped
//!    one by its length.
//! 3. Its fields from the core on hold what rows show that were written before the field was added.
//!
//! Facts: `dict_table_t::serialise_columns`, `field_map_element_t`, `btr_cur_instant_init_low` of MariaDB.

use super::{ColumnNo, ColumnType, Index, StoredField, TableDefinition};
use crate::record::FieldShape;
use crate::{Error, ErrorKind, PageNo, Result};

/// Transaction id and roll pointer.
const SYSTEM_BYTES: usize = 6 + 7;
const SYSTEM_FIELDS: usize = 2;
const ROW_ID_BYTES: usize = 6;
const REFERENCE_BYTES: usize = 20;
const HEADER_BYTES: usize = 5;
const INFO_DELETED: u8 = 0x20;
const FIL_PAGE_DATA: u32 = 38;
/// A field list is one page at most; longer is damage.
const LONGEST_BLOB: u32 = 64 << 10;

const DROPPED: u16 = 1 << 15;
const DROPPED_NOT_NULL: u16 = 1 << 14;
const NUMBER: u16 = (1 << 14) - 1;
/// Under [`DROPPED`], the number tells the length: variable up to 255 bytes, variable and longer, or the fixed length
/// plus this.
const DROPPED_SHORT: u16 = 0;
const DROPPED_LONG: u16 = 1;

/// The page and the length of the BLOB that the metadata record at `origin` of `page` refers to; `None` if it has none,
/// columns having only been added at the end.
///
/// # Errors
/// `Corrupt` if the record does not fit the page or the reference is none.
pub(crate) fn metadata_blob(
    definition: &TableDefinition,
    page: &[u8],
    origin: usize,
) -> Result<Option<(PageNo, u32)>> {
    let record = Record { page, origin };
    if record.before(HEADER_BYTES)? & INFO_DELETED == 0 {
        return Ok(None);
    }
    let reference =
        record.bytes(key_bytes(clustered(definition)?, definition)? + SYSTEM_BYTES, REFERENCE_BYTES)?;
    blob_of(reference).map(Some)
}

/// The page and the length of the BLOB that `reference` names.
fn blob_of(reference: &[u8]) -> Result<(PageNo, u32)> {
    let damaged = || corrupt("the reference to the list of fields is damaged");
    let (words, _) = reference.as_chunks::<4>();
    let &[_, page_no, offset, long, len] = words else { return Err(damaged()) };
    let [page_no, offset, long, len] = [page_no, offset, long, len].map(u32::from_be_bytes);
    if offset != FIL_PAGE_DATA || long != 0 || len == 0 || len > LONGEST_BLOB {
        return Err(damaged());
    }
    Ok((PageNo(page_no), len))
}

/// What a metadata record has of a field: its bytes, and whether they end in a reference to an off-page value.
pub(crate) type Held<'a> = (&'a [u8], bool);

/// The positions among the stored fields of those whose default lies off-page. The definition has what the record has
/// of them.
pub(crate) type OffPageDefaults = Vec<usize>;

/// A REDUNDANT metadata record. It says itself where its fields are: `field` gives each, `None` for NULL and past the
/// last.
pub(crate) struct RedundantMetadata<'a, F: Fn(usize) -> Option<Held<'a>>> {
    /// Whether the record has the delete flag, and so a list of fields.
    pub(crate) listed: bool,
    /// Its fields.
    pub(crate) field: F,
}

impl<'a, F: Fn(usize) -> Option<Held<'a>>> RedundantMetadata<'a, F> {
    /// As [`metadata_blob`].
    ///
    /// # Errors
    /// `Corrupt` if the reference is none.
    pub(crate) fn blob(&self, definition: &TableDefinition) -> Result<Option<(PageNo, u32)>> {
        if !self.listed {
            return Ok(None);
        }
        let leading = clustered(definition)?.parts.len().max(1) + SYSTEM_FIELDS;
        blob_of((self.field)(leading).unwrap_or_default().0).map(Some)
    }

    /// As [`apply`].
    ///
    /// # Errors
    /// `Corrupt` if record, list and definition contradict each other.
    pub(crate) fn apply(
        &self,
        definition: &mut TableDefinition,
        core_fields: usize,
        blob: Option<&[u8]>,
    ) -> Result<OffPageDefaults> {
        if let Some(list) = blob {
            definition.stored_fields = listed_fields(definition, list)?;
        }
        let leading = clustered(definition)?.parts.len().max(1) + SYSTEM_FIELDS;
        let values = leading + usize::from(blob.is_some());
        let added = core_fields.saturating_sub(leading);
        let mut off_page = Vec::new();
        for (no, field) in definition.stored_fields.iter_mut().enumerate().skip(added) {
            let held = (self.field)(values + no);
            off_page.extend(held.is_some_and(|(_, external)| external).then_some(no));
            field.instant_default = Some(held.map(|(bytes, _)| bytes.to_vec()));
        }
        Ok(off_page)
    }
}

/// Brings `stored_fields` into the stored order and fills in what old rows show for fields added instantly.
/// `core_fields` counts key and system fields too; `blob` is what [`metadata_blob`] refers to.
///
/// # Errors
/// `Corrupt` if record, list and definition contradict each other.
pub(crate) fn apply(
    definition: &mut TableDefinition,
    page: &[u8],
    origin: usize,
    core_fields: usize,
    blob: Option<&[u8]>,
) -> Result<OffPageDefaults> {
    if let Some(list) = blob {
        definition.stored_fields = listed_fields(definition, list)?;
    }
    let clustered = clustered(definition)?;
    let key_fields = clustered.parts.len().max(1);
    let leading = key_fields + SYSTEM_FIELDS;
    let total = leading + definition.stored_fields.len();
    if core_fields < leading || core_fields > total {
        return Err(corrupt(format!("{core_fields} core fields do not fit a record of {total}")));
    }
    let record = Record { page, origin };
    let mut values = Values::start(record, definition, core_fields, total, blob.is_some())?;
    values.data += key_bytes(clustered, definition)? + SYSTEM_BYTES;
    if blob.is_some() {
        values.data += REFERENCE_BYTES;
    }
    let mut off_page = Vec::new();
    for (no, field) in definition.stored_fields.iter_mut().enumerate() {
        let held = values.next(field)?;
        if leading + no >= core_fields {
            off_page.extend(held.is_some_and(|(_, external)| external).then_some(no));
            field.instant_default = Some(held.map(|(bytes, _)| bytes.to_vec()));
        }
    }
    Ok(off_page)
}

fn corrupt(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Corrupt, format!("metadata record of instant ALTER: {}", message.into()))
}

fn clustered(definition: &TableDefinition) -> Result<&Index> {
    definition
        .indexes
        .first()
        .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "the table has no clustered index"))
}

/// Bytes of the metadata record's key, whose variable-length parts are empty.
fn key_bytes(clustered: &Index, definition: &TableDefinition) -> Result<usize> {
    if clustered.parts.is_empty() {
        return Ok(ROW_ID_BYTES);
    }
    let mut bytes = 0;
    for part in &clustered.parts {
        let column = definition
            .columns
            .get(part.column.0)
            .ok_or_else(|| corrupt("the key names a column that is not there"))?;
        let fixed = column.column_type.fixed_bytes();
        bytes += fixed.map_or(0, |fixed| part.prefix_bytes.map_or(fixed, |prefix| prefix as usize));
    }
    Ok(bytes)
}

/// The stored fields that the BLOB lists.
fn listed_fields(definition: &TableDefinition, list: &[u8]) -> Result<Vec<StoredField>> {
    let (count, entries) =
        list.split_at_checked(4).ok_or_else(|| corrupt("the list of fields has no length"))?;
    let count = u32::from_be_bytes([count[0], count[1], count[2], count[3]]) as usize;
    if count.checked_mul(2).is_none_or(|bytes| bytes > entries.len()) {
        return Err(corrupt(format!("the list says {count} fields and ends before")));
    }
    let stored: Vec<ColumnNo> = (0..definition.columns.len())
        .filter(|no| definition.columns[*no].virtual_expression.is_none())
        .map(ColumnNo)
        .collect();
    let hidden = definition.stored_fields.iter().find(|field| field.column.is_none());
    let mut fields = Vec::with_capacity(count);
    for entry in entries.chunks_exact(2).take(count) {
        let entry = u16::from_be_bytes([entry[0], entry[1]]);
        if entry & DROPPED != 0 {
            fields.push(StoredField::plain(
                None,
                dropped_type(entry & NUMBER),
                entry & DROPPED_NOT_NULL == 0,
            ));
            continue;
        }
        let number = usize::from(entry & NUMBER);
        let field = match (stored.get(number), hidden) {
            (Some(column), _) => {
                let shown = &definition.columns[column.0];
                StoredField::plain(Some(*column), shown.column_type.clone(), shown.nullable)
            }
            (None, Some(hidden)) if number == stored.len() => hidden.clone(),
            _ => return Err(corrupt(format!("the list names column {number} of {}", stored.len()))),
        };
        fields.push(field);
    }
    Ok(fields)
}

/// A type of the same length as the dropped column had.
fn dropped_type(number: u16) -> ColumnType {
    match number {
        DROPPED_SHORT => ColumnType::VarBinary { length: 255 },
        DROPPED_LONG => ColumnType::VarBinary { length: 65_535 },
        fixed => ColumnType::Binary { length: u32::from(fixed - 1) },
    }
}

#[derive(Clone, Copy)]
struct Record<'a> {
    page: &'a [u8],
    origin: usize,
}

impl<'a> Record<'a> {
    /// The byte `distance` before the origin.
    fn before(&self, distance: usize) -> Result<u8> {
        let byte = self.origin.checked_sub(distance).and_then(|at| self.page.get(at));
        byte.copied().ok_or_else(|| corrupt("it begins outside of its page"))
    }
    fn bytes(&self, offset: usize, len: usize) -> Result<&'a [u8]> {
        let start = self.origin.checked_add(offset);
        let bytes = start.and_then(|start| self.page.get(start..start.checked_add(len)?));
        bytes.ok_or_else(|| corrupt("it ends outside of its page"))
    }
}

/// Walks the fields of the metadata record after key and system columns.
struct Values<'a> {
    record: Record<'a>,
    nulls: usize,
    null_bit: usize,
    lengths: usize,
    data: usize,
}

impl<'a> Values<'a> {
    /// Finds the NULL bitmap and the lengths. The record counts its fields after the core in one or two bytes before
    /// its header.
    fn start(
        record: Record<'a>,
        definition: &TableDefinition,
        core: usize,
        total: usize,
        with_blob: bool,
    ) -> Result<Values<'a>> {
        let mut before = HEADER_BYTES + 1;
        let mut added = usize::from(record.before(before)?);
        if added & 0x80 != 0 {
            before += 1;
            added = added & 0x7f | usize::from(record.before(before)?) << 7;
        }
        let fields = core + 1 + added - usize::from(with_blob);
        if fields != total {
            return Err(corrupt(format!("it has {fields} fields, the table {total}")));
        }
        let nullable = definition.stored_fields.iter().filter(|field| field.nullable).count();
        let nulls = before + 1;
        let mut lengths = nulls + nullable.div_ceil(8);
        // An empty variable-length key part has its length byte too.
        for part in &clustered(definition)?.parts {
            if definition.columns[part.column.0].column_type.fixed_bytes().is_none() {
                lengths += 1;
            }
        }
        Ok(Values { record, nulls, null_bit: 0, lengths, data: 0 })
    }

    fn next(&mut self, field: &StoredField) -> Result<Option<Held<'a>>> {
        if field.nullable {
            let byte = self.record.before(self.nulls + self.null_bit / 8)?;
            let null = byte >> (self.null_bit % 8) & 1 != 0;
            self.null_bit += 1;
            if null {
                return Ok(None);
            }
        }
        let shape = FieldShape::new(&field.column_type, field.nullable, None);
        let (len, external) = match shape.fixed {
            0 => self.variable_length(shape.big)?,
            fixed => (usize::from(fixed), false),
        };
        let value = self.record.bytes(self.data, len)?;
        self.data += len;
        Ok(Some((value, external)))
    }

    /// The length of a field, and whether it ends in a reference to an off-page value.
    fn variable_length(&mut self, big: bool) -> Result<(usize, bool)> {
        let first = usize::from(self.record.before(self.lengths)?);
        self.lengths += 1;
        if !big || first & 0x80 == 0 {
            return Ok((first, false));
        }
        let second = usize::from(self.record.before(self.lengths)?);
        self.lengths += 1;
        Ok(((first & 0x3f) << 8 | second, first & 0x40 != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Column, Declaration, IndexKind, IndexPart, RowFormat, Server, layout};

    fn table(columns: &[(&str, ColumnType, bool)]) -> TableDefinition {
        let column = |(name, column_type, nullable): &(&str, ColumnType, bool)| Column {
            compressed: false,
            name: (*name).to_owned(),
            column_type: column_type.clone(),
            display: Default::default(),
            nullable: *nullable,
            invisible: false,
            virtual_expression: None,
            declaration: Declaration::default(),
            comment: String::new(),
        };
        let columns: Vec<Column> = columns.iter().map(column).collect();
        let mut primary = layout::hidden_clustered();
        primary.kind = IndexKind::BTree;
        primary.parts = vec![IndexPart { column: ColumnNo(0), prefix_bytes: None, descending: false }];
        TableDefinition {
            row_end: None,
            database: "d".to_owned(),
            name: "t".to_owned(),
            server: Server::MariaDb,
            row_format: RowFormat::Dynamic,
            stored_fields: layout::stored_fields(&columns, &primary),
            columns,
            indexes: vec![primary],
            row_versions: false,
            instant_columns: Vec::new(),
            collation: None,
            partitions: Vec::new(),
        }
    }

    fn int() -> ColumnType {
        ColumnType::Integer { bytes: 4, unsigned: false }
    }

    fn page(digits: &str) -> Vec<u8> {
        (0..digits.len() / 2).map(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap()).collect()
    }

    /// Bytes that MariaDB 10.11 wrote for a table of (id, a, b) to which c DEFAULT 42, d NOT NULL DEFAULT 'dflt' and e
    /// were added.
    #[test]
    fn added_columns_get_their_defaults() {
        let text = ColumnType::VarChar { length: 30, collation: crate::Collation::with_id(45).unwrap() };
        let date = ColumnType::DateTime { fsp: 0, legacy: false };
        let columns = [
            ("id", int(), false),
            ("a", int(), true),
            ("b", text.clone(), true),
            ("c", int(), true),
            ("d", text, false),
            ("e", date, true),
        ];
        let mut table = table(&columns);
        let bytes = page("040b02100014002080000000000000000f3c11000001d1016b8000002a64666c74");
        assert_eq!(metadata_blob(&table, &bytes, 8).unwrap(), None);
        apply(&mut table, &bytes, 8, 5, None).unwrap();
        let defaults: Vec<_> =
            table.stored_fields.iter().map(|field| field.instant_default.clone()).collect();
        let c = Some(Some(vec![0x80, 0, 0, 42]));
        assert_eq!(defaults, [None, None, c, Some(Some(b"dflt".to_vec())), Some(None)]);
    }

    /// The same for (id, a, b, c) from which b was dropped, and to which x DEFAULT -1 was added after id.
    #[test]
    fn dropped_and_moved_columns_keep_their_places() {
        let big = ColumnType::Integer { bytes: 8, unsigned: false };
        let mut table =
            table(&[("id", int(), false), ("x", big, true), ("a", int(), true), ("c", int(), true)]);
        let bytes = page(
            "0701300014003480000000000000000f5620000001dc025e000001970000000a00000026000000000000000c7fffffffffffffff",
        );
        assert_eq!(metadata_blob(&table, &bytes, 7).unwrap(), Some((PageNo(10), 12)));
        let list = page("000000040002800000030001");
        apply(&mut table, &bytes, 7, 6, Some(&list)).unwrap();
        let places: Vec<_> = table.stored_fields.iter().map(|field| field.column.map(|no| no.0)).collect();
        assert_eq!(places, [Some(2), None, Some(3), Some(1)]);
        assert!(table.stored_fields[1].nullable);
        assert_eq!(
            table.stored_fields[3].instant_default,
            Some(Some(vec![0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]))
        );
    }

    #[test]
    fn damage_is_an_error() {
        let mut table = table(&[("id", int(), false), ("a", int(), true)]);
        let bytes = page(
            "0701300014003480000000000000000f5620000001dc025e000001970000000a00000026000000000000000c7fffff",
        );
        for core in [0, 1, 2, 3, 4, 5, 1000] {
            for origin in [0, 5, 7, 30, 1000] {
                let _ = metadata_blob(&table, &bytes, origin);
                assert!(apply(&mut table.clone(), &bytes, origin, core, None).is_err(), "{core} {origin}");
            }
        }
        for list in ["", "000000", "00000001", "ffffffff0001", "000000010009"] {
            assert!(apply(&mut table, &bytes, 7, 3, Some(&page(list))).is_err(), "{list}");
        }
    }
}
