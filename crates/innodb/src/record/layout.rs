//! From a table's definition to the fields of each of its indexes.
//!
//! - Clustered leaf: the key (or the 6-byte row id), transaction id (6), roll pointer (7), then the stored fields.
//! - Secondary leaf: the declared parts, then the parts of the clustered key that are not among them in full.
//! - A node pointer has the clustered key, or all fields of a secondary record, and the child's page number.

use std::sync::Arc;

use super::{FieldShape, Shape, Span};
use crate::{ColumnNo, Error, ErrorKind, IndexNo, IndexPart, Result, TableDefinition};

const ROW_ID_BYTES: u16 = 6;
const TRANSACTION_ID_BYTES: u16 = 6;
const ROLL_POINTER_BYTES: u16 = 7;

/// The records of one index and which columns they hold.
#[derive(Debug)]
pub(crate) struct Layout {
    /// The records.
    pub(crate) shape: Arc<Shape>,
    /// Leading fields that make the search key: the declared parts, or the row id.
    pub(crate) key_fields: usize,
    /// The fields that make the row's clustered key, in its order.
    pub(crate) clustered_key: Vec<usize>,
    /// The field that holds each column in full, if one does.
    pub(crate) columns: Vec<Option<usize>>,
    /// The field that says when a row of a system-versioned table ceased to be, if the index holds it.
    pub(crate) row_end: Option<usize>,
    /// Stored forms of what old rows show for fields added later (`None`: they have the field; `Some(None)`: NULL).
    pub(crate) defaults: Vec<Option<Option<Vec<u8>>>>,
}

impl Layout {
    /// The layout of `index`. `core_fields` is the count on the root page of a clustered index of MariaDB with instant
    /// columns.
    ///
    /// # Errors
    /// `InvalidInput` if the definition contradicts itself.
    pub(crate) fn new(
        definition: &TableDefinition,
        index: IndexNo,
        core_fields: Option<usize>,
    ) -> Result<Layout> {
        if index.0 == 0 { clustered(definition, None, core_fields) } else { secondary(definition, index) }
    }

    /// The layout of the clustered index of a partition of MySQL, which may have had instant columns of its own.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn of_mysql_partition(definition: &TableDefinition, partition: usize) -> Result<Layout> {
        clustered(definition, definition.instant_columns.get(partition).copied().flatten(), None)
    }
}

/// What the end of a current row is: the last second that MariaDB has up to 11.4 and since 11.5, or the last
/// transaction.
const FOR_EVER: [&[u8]; 3] = [b"\x7f\xff\xff\xff\x0f\x42\x3f", b"\xff\xff\xff\xff\x0f\x42\x3f", &[0xff; 8]];

impl Layout {
    /// Leading fields that have to be found to tell current rows from past ones.
    pub(crate) fn current_fields(&self) -> usize {
        self.row_end.map_or(0, |field| field + 1)
    }

    /// Whether the record whose fields are `spans` is a current row, as all are of tables without system versioning.
    #[inline]
    pub(crate) fn is_current(&self, page: &[u8], spans: &[Span]) -> bool {
        self.row_end.is_none_or(|field| self.is_for_ever(field, page, spans))
    }

    fn is_for_ever(&self, field: usize, page: &[u8], spans: &[Span]) -> bool {
        let span = spans.get(field).copied().unwrap_or(Span::ABSENT);
        let default = self.defaults.get(field).and_then(|default| default.as_ref()?.as_deref());
        let end = if span.is_absent() { default.unwrap_or_default() } else { span.bytes(page) };
        FOR_EVER.contains(&end)
    }
}

fn contradiction(what: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("the table definition contradicts itself: {what}"))
}

fn part_shape(definition: &TableDefinition, part: &IndexPart) -> Result<FieldShape> {
    let column =
        definition.columns.get(part.column.0).ok_or_else(|| contradiction("a key part without column"))?;
    Ok(FieldShape::new(&column.column_type, column.nullable, part.prefix_bytes))
}

fn clustered_parts(definition: &TableDefinition) -> Result<&[IndexPart]> {
    let index = definition.indexes.first().ok_or_else(|| contradiction("no clustered index"))?;
    Ok(&index.parts)
}

fn clustered(
    definition: &TableDefinition,
    instant_columns: Option<u32>,
    core_fields: Option<usize>,
) -> Result<Layout> {
    let parts = clustered_parts(definition)?;
    let mut fields = parts.iter().map(|part| part_shape(definition, part)).collect::<Result<Vec<_>>>()?;
    let mut columns = vec![None; definition.columns.len()];
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| part.prefix_bytes.is_none()) {
        columns[part.column.0] = Some(at);
    }
    if parts.is_empty() {
        fields.push(FieldShape::system(ROW_ID_BYTES));
    }
    let key_fields = fields.len();
    fields.push(FieldShape::system(TRANSACTION_ID_BYTES));
    fields.push(FieldShape::system(ROLL_POINTER_BYTES));
    let mut versions = vec![(0, 0); fields.len()];
    let mut defaults = vec![None; fields.len()];
    for stored in &definition.stored_fields {
        if let Some(ColumnNo(column)) = stored.column {
            let slot =
                columns.get_mut(column).ok_or_else(|| contradiction("a stored field without column"))?;
            *slot = Some(fields.len());
        }
        fields.push(FieldShape::new(&stored.column_type, stored.nullable, None));
        versions.push((stored.version_added, stored.version_dropped));
        defaults.push(stored.instant_default.clone());
    }
    let total = fields.len();
    let mut shape = Shape::new(fields, key_fields);
    if definition.row_versions {
        shape = shape.with_versions(&versions);
    }
    if let Some(before) = instant_columns {
        let stored = definition.columns.iter().filter(|column| column.virtual_expression.is_none()).count();
        shape = shape.with_counts(total.saturating_sub(stored.saturating_sub(before as usize)));
    }
    if let Some(core) = core_fields {
        shape = shape.with_added(core);
    }
    Ok(Layout {
        shape: Arc::new(shape),
        key_fields,
        clustered_key: (0..key_fields).collect(),
        row_end: definition.row_end.and_then(|ColumnNo(no)| columns.get(no).copied().flatten()),
        columns,
        defaults,
    })
}

fn secondary(definition: &TableDefinition, index: IndexNo) -> Result<Layout> {
    let index = definition.indexes.get(index.0).ok_or_else(|| contradiction("no such index"))?;
    let clustered = clustered_parts(definition)?;
    let mut parts = index.parts.clone();
    let mut clustered_key = Vec::new();
    for part in clustered {
        let there = |declared: &IndexPart| declared.column == part.column && declared.prefix_bytes.is_none();
        let at = parts.iter().take(index.parts.len()).position(there).unwrap_or_else(|| {
            parts.push(*part);
            parts.len() - 1
        });
        clustered_key.push(at);
    }
    let mut fields = parts.iter().map(|part| part_shape(definition, part)).collect::<Result<Vec<_>>>()?;
    if clustered.is_empty() {
        clustered_key.push(fields.len());
        fields.push(FieldShape::system(ROW_ID_BYTES));
    }
    let mut columns = vec![None; definition.columns.len()];
    for (at, part) in parts.iter().enumerate().filter(|(_, part)| part.prefix_bytes.is_none()) {
        columns[part.column.0] = Some(at);
    }
    let total = fields.len();
    Ok(Layout {
        shape: Arc::new(Shape::new(fields, total)),
        key_fields: index.parts.len(),
        clustered_key,
        row_end: definition.row_end.and_then(|ColumnNo(no)| columns.get(no).copied().flatten()),
        columns,
        defaults: vec![None; total],
    })
}
