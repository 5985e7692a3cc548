//! The row under a cursor and the projection that reads it.

use std::sync::Arc;

use crate::record::{Layout, Span, longest_bytes};
use crate::tree::Tree;
use crate::value::Decoder;
use crate::{ColumnNo, Error, ErrorKind, PageNo, Result, RowSink, TableDefinition, Value};

/// One projected column of one index: its field, how it is read, and what older rows show.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) field: usize,
    decoder: Arc<Decoder>,
    default: Option<Option<Vec<u8>>>,
    /// Most bytes a value may have.
    pub(super) longest: u64,
}

impl Slot {
    pub(super) fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The stored value that rows from before the column show, `None` in it for NULL; `None` if there are no such rows.
    pub(super) fn default(&self) -> Option<Option<&[u8]>> {
        self.default.as_ref().map(Option::as_deref)
    }
}

/// The projected columns of the records of one index.
#[derive(Debug)]
pub(super) struct Projection {
    pub(super) slots: Vec<Slot>,
    /// Leading fields that must be found to reach them.
    pub(super) fields: usize,
    /// Whether a projected value may lie outside of its record.
    pub(super) may_be_external: bool,
}

impl Projection {
    /// Compiles the columns; `None` if the index does not hold one of them in full, or not what tells current rows from
    /// past ones.
    pub(super) fn new(
        definition: &TableDefinition,
        layout: &Layout,
        columns: &[ColumnNo],
    ) -> Result<Option<Projection>> {
        if definition.row_end.is_some() && layout.row_end.is_none() {
            // Past rows could not be told from current ones.
            return Ok(None);
        }
        let mut slots = Vec::with_capacity(columns.len());
        for ColumnNo(no) in columns {
            let Some(column) = definition.columns.get(*no) else {
                let what = format!("table {} has no column {no}", definition.name);
                return Err(Error::new(ErrorKind::InvalidInput, what));
            };
            let Some(field) = layout.columns.get(*no).copied().flatten() else { return Ok(None) };
            let place = || format!("column {}.{}.{}", definition.database, definition.name, column.name);
            let decoder = Decoder::of_column(column).map_err(|error| error.within(place()))?;
            slots.push(Slot {
                field,
                decoder: Arc::new(decoder),
                default: layout.defaults.get(field).cloned().flatten(),
                longest: longest_bytes(&column.stored_type()),
            });
        }
        let fields = slots.iter().map(|slot| slot.field + 1).max().unwrap_or(0);
        let fields = fields.max(layout.current_fields());
        let may_be_external = slots.iter().any(|slot| layout.shape.fields[slot.field].big);
        Ok(Some(Projection { slots, fields, may_be_external }))
    }
}

/// Off-page values of one row by slot; empty if it has none.
pub(super) type Externals = Vec<Option<Vec<u8>>>;

/// The row under a cursor.
#[derive(Debug)]
pub struct Row<'a> {
    pub(super) page: &'a [u8],
    pub(super) page_no: PageNo,
    pub(super) spans: &'a [Span],
    pub(super) projection: &'a Projection,
    pub(super) tree: &'a Tree,
    /// `None`: off-page values were not fetched and show as NULL.
    pub(super) externals: Option<&'a Externals>,
}

impl Row<'_> {
    /// Decodes the projected columns into `sink`, in slot order.
    ///
    /// # Errors
    /// `Corrupt` if a value is damaged, and what the sink returns.
    pub fn decode(&self, sink: &mut dyn RowSink) -> Result<()> {
        for (no, slot) in self.projection.slots.iter().enumerate() {
            sink.push(no, self.value_of(no, slot)?)?;
        }
        Ok(())
    }

    /// Decodes some of the projected columns, in the order of `slots`. Cheap to call twice: filter columns first, the
    /// rest for rows that pass.
    ///
    /// # Errors
    /// As [`decode`](Self::decode), and `InvalidInput` for a slot that is not there.
    pub fn decode_slots(&self, slots: &[usize], sink: &mut dyn RowSink) -> Result<()> {
        for no in slots {
            sink.push(*no, self.value(*no)?)?;
        }
        Ok(())
    }

    /// The value of one projected column.
    ///
    /// # Errors
    /// As [`decode_slots`](Self::decode_slots).
    pub fn value(&self, slot: usize) -> Result<Value<'_>> {
        let missing = || Error::new(ErrorKind::InvalidInput, format!("slot {slot} is not in the projection"));
        self.value_of(slot, self.projection.slots.get(slot).ok_or_else(missing)?)
    }

    /// Whether the value of one projected column lies outside of the row's page. A sample shows it as NULL.
    pub fn is_off_page(&self, slot: usize) -> bool {
        let slot = self.projection.slots.get(slot);
        slot.and_then(|slot| self.spans.get(slot.field)).is_some_and(|span| span.is_external())
    }

    #[inline]
    fn value_of<'a>(&'a self, no: usize, slot: &'a Slot) -> Result<Value<'a>> {
        let span = self.spans.get(slot.field).copied().unwrap_or(Span::ABSENT);
        let stored = if span.is_external() {
            match self.externals.map(|externals| externals.get(no).and_then(Option::as_deref)) {
                None => return Ok(Value::Null),
                Some(Some(fetched)) => fetched,
                Some(None) => return Err(self.damaged(no, "an off-page value was not fetched")),
            }
        } else if span.is_null() {
            return Ok(Value::Null);
        } else if span.is_absent() {
            match &slot.default {
                Some(Some(stored)) => stored,
                Some(None) => return Ok(Value::Null),
                None => return Err(self.damaged(no, "the row ends before it")),
            }
        } else {
            span.bytes(self.page)
        };
        slot.decoder.decode(stored).map_err(|error| self.damaged(no, &error.to_string()))
    }

    #[cold]
    fn damaged(&self, slot: usize, what: &str) -> Error {
        self.tree.space.corrupt(self.page_no, &format!("a row's projected column {slot}: {what}"))
    }
}
