//! Rows of a leaf, decoded column by column: the loop over the rows is inside the decoder of one type, and values go
//! straight to where the caller keeps a column.
//!
//! 1. The leaf's records are walked once; the places of the projected fields are put down row by row.
//! 2. The caller may drop rows by what their values are, before anything else of them is decoded.
//! 3. It asks for the columns of the rows that are left. What has no loop of its own is decoded as [`Value`]s.
//!
//! Rows with values outside of their page cannot be decoded without waiting: they are handed out one by one between
//! the others, in their order.

use std::ops::ControlFlow;

use super::row::{Projection, Slot};
use super::scan::{LeafReader, each_row};
use super::{LeafRun, Row, Table, scan};
use crate::record::{Span, Spans};
use crate::tree::{KeyRange, Node, Tree};
use crate::value::Decoder;
use crate::{Access, Error, ErrorKind, PageNo, Result, Value};

/// Takes rows as they come: many of a page at once, or one.
pub trait RowReceiver {
    /// Some rows of a page.
    ///
    /// # Errors
    /// What ends the scan.
    fn rows(&mut self, rows: &mut Rows<'_>) -> Result<ControlFlow<()>>;

    /// A single row.
    ///
    /// # Errors
    /// What ends the scan.
    fn row(&mut self, row: &Row<'_>) -> Result<ControlFlow<()>>;
}

/// Rows of one page, all of whose values lie in it.
#[derive(Debug)]
pub struct Rows<'a> {
    page: &'a [u8],
    page_no: PageNo,
    projection: &'a Projection,
    tree: &'a Tree,
    /// By row, then slot.
    spans: &'a [Span],
    /// The rows that are left, ascending.
    left: &'a mut Vec<u32>,
}

impl Rows<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// One column of all rows.
    ///
    /// # Errors
    /// `InvalidInput` for a slot that is not there.
    pub fn column(&self, slot: usize) -> Result<Column<'_>> {
        let missing = || Error::new(ErrorKind::InvalidInput, format!("slot {slot} is not in the projection"));
        let own = self.projection.slots.get(slot).ok_or_else(missing)?;
        Ok(Column { rows: self, no: slot, slot: own })
    }

    /// Drops the rows whose value in `slot` is not to be kept.
    ///
    /// # Errors
    /// As [`column`](Self::column), and `Corrupt` for a damaged value.
    pub fn retain(&mut self, slot: usize, mut keep: impl FnMut(&Value<'_>) -> bool) -> Result<()> {
        let mut kept = Vec::with_capacity(self.len());
        self.column(slot)?.values(|value| {
            kept.push(keep(&value));
            Ok(())
        })?;
        self.drop_rows(&kept);
        Ok(())
    }

    /// The same for numbers of up to 64 bits with their sign, DECIMALs of up to 18 digits (without their point) and
    /// DATEs (days since 1970): NULL is not kept, what no number stands for is. `false`, and nothing is dropped, if the
    /// column is of another type.
    ///
    /// # Errors
    /// As [`retain`](Self::retain).
    pub fn retain_numbers(&mut self, slot: usize, mut keep: impl FnMut(i64) -> bool) -> Result<bool> {
        let column = self.column(slot)?;
        let mut kept = Vec::with_capacity(self.len());
        let done = column.integers(|value| kept.push(value.is_some_and(&mut keep)))?
            || column.decimals(|value| kept.push(value.is_some_and(&mut keep)))?
            || column.dates(|value| {
                kept.push(match value {
                    Ok(days) => days.is_some_and(|days| keep(days.into())),
                    Err(_) => true,
                });
            })?;
        if done {
            self.drop_rows(&kept);
        }
        Ok(done)
    }

    fn drop_rows(&mut self, kept: &[bool]) {
        let mut kept = kept.iter();
        self.left.retain(|_| kept.next().copied().unwrap_or(true));
    }
}

/// A column of some rows. Of the typed loops exactly one fits a column, or none.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    rows: &'a Rows<'a>,
    no: usize,
    slot: &'a Slot,
}

impl Column<'_> {
    /// Whole numbers that fit `i64` whatever their value; `None` is NULL. `false` if the column has other values.
    ///
    /// # Errors
    /// `Corrupt` for a damaged value.
    pub fn integers(&self, each: impl FnMut(Option<i64>)) -> Result<bool> {
        match *self.slot.decoder() {
            Decoder::Integer { bytes: 8, unsigned: true } => Ok(false),
            Decoder::Integer { bytes: 1, unsigned } => self.integers_of::<1>(unsigned, each),
            Decoder::Integer { bytes: 2, unsigned } => self.integers_of::<2>(unsigned, each),
            Decoder::Integer { bytes: 3, unsigned } => self.integers_of::<3>(unsigned, each),
            Decoder::Integer { bytes: 4, unsigned } => self.integers_of::<4>(unsigned, each),
            Decoder::Integer { bytes: 8, unsigned } => self.integers_of::<8>(unsigned, each),
            _ => Ok(false),
        }
    }

    /// Unscaled DECIMALs that take at most 8 bytes; `None` is NULL. `false` if the column has other values.
    ///
    /// # Errors
    /// `Corrupt` for a damaged value.
    pub fn decimals(&self, mut each: impl FnMut(Option<i64>)) -> Result<bool> {
        let Decoder::Decimal { short: Some(short), .. } = self.slot.decoder() else { return Ok(false) };
        self.each(|stored| {
            each(stored.map(|stored| self.placed(short.decode(stored))).transpose()?);
            Ok(())
        })?;
        Ok(true)
    }

    /// Digits after the point of DECIMALs.
    pub fn scale(&self) -> Option<u8> {
        match self.slot.decoder() {
            Decoder::Decimal { scale, .. } => Some(*scale),
            _ => None,
        }
    }

    /// DATEs, as days since 1970-01-01; `None` is NULL, an error the value of a date that no calendar has. `false` if
    /// the column has other values.
    ///
    /// # Errors
    /// `Corrupt` for a damaged value.
    pub fn dates(&self, mut each: impl FnMut(std::result::Result<Option<i32>, Value<'_>>)) -> Result<bool> {
        let decoder = self.slot.decoder();
        if !matches!(decoder, Decoder::Date) {
            return Ok(false);
        }
        self.each(|stored| {
            each(match stored.map(|stored| self.placed(decoder.decode(stored))).transpose()? {
                None => Ok(None),
                Some(Value::Date(days)) => Ok(Some(days)),
                Some(other) => Err(other),
            });
            Ok(())
        })?;
        Ok(true)
    }

    /// Strings of character sets; `None` is NULL. `false` if the column has other values.
    ///
    /// # Errors
    /// `Corrupt` for a damaged value, and what `each` returns.
    pub fn texts(&self, mut each: impl FnMut(Option<&str>) -> Result<()>) -> Result<bool> {
        let decoder = self.slot.decoder();
        if !matches!(decoder, Decoder::Text { .. }) {
            return Ok(false);
        }
        self.each(|stored| match stored.map(|stored| self.placed(decoder.decode(stored))).transpose()? {
            Some(Value::Text(text)) => each(Some(text.as_ref())),
            _ => each(None),
        })?;
        Ok(true)
    }

    /// Values of any type.
    ///
    /// # Errors
    /// `Corrupt` for a damaged value, and what `each` returns.
    pub fn values(&self, mut each: impl FnMut(Value<'_>) -> Result<()>) -> Result<()> {
        let decoder = self.slot.decoder();
        self.each(|stored| match stored {
            Some(stored) => each(self.placed(decoder.decode(stored))?),
            None => each(Value::Null),
        })
    }

    fn integers_of<const BYTES: usize>(
        &self,
        unsigned: bool,
        mut each: impl FnMut(Option<i64>),
    ) -> Result<bool> {
        let shift = 64 - 8 * BYTES as u32;
        // The sign bit is stored flipped.
        let flip = if unsigned { 0 } else { 1 << (8 * BYTES - 1) };
        self.each(|stored| {
            let Some(stored) = stored else {
                each(None);
                return Ok(());
            };
            let stored: &[u8; BYTES] = stored.try_into().map_err(|_| {
                self.damaged(&format!("a value has {} bytes instead of {BYTES}", stored.len()))
            })?;
            let number = stored.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)) ^ flip;
            each(Some(if unsigned { number as i64 } else { (number << shift).cast_signed() >> shift }));
            Ok(())
        })?;
        Ok(true)
    }

    /// The stored value of each row, `None` for NULL.
    #[inline]
    fn each(&self, mut visit: impl FnMut(Option<&[u8]>) -> Result<()>) -> Result<()> {
        let slots = self.rows.projection.slots.len();
        for row in self.rows.left.iter() {
            let span = self.rows.spans.get(*row as usize * slots + self.no).copied().unwrap_or(Span::ABSENT);
            let stored = match (span.is_null(), span.is_absent()) {
                (false, false) => Some(span.bytes(self.rows.page)),
                (true, _) => None,
                (_, true) => match self.slot.default() {
                    Some(default) => default,
                    None => return Err(self.damaged("the row ends before it")),
                },
            };
            visit(stored)?;
        }
        Ok(())
    }

    /// A decoded value, or the error with its place.
    #[inline]
    fn placed<T>(&self, decoded: Result<T>) -> Result<T> {
        decoded.map_err(|error| self.damaged(&error.to_string()))
    }

    #[cold]
    fn damaged(&self, what: &str) -> Error {
        let what = format!("a row's projected column {}: {what}", self.no);
        self.rows.tree.space.corrupt(self.rows.page_no, &what)
    }
}

/// What was found of the rows of a leaf; its memory is used again for the next.
#[derive(Debug, Default)]
struct Found {
    /// By row, then slot.
    spans: Vec<Span>,
    rows: u32,
    /// Rows with values outside of the page: how many others stand before each, and its origin.
    external: Vec<(u32, usize)>,
    /// The rows that are handed out.
    left: Vec<u32>,
}

impl Table {
    /// Reads one run with one I/O past the cache, as [`scan`](Table::scan) does, and hands out its rows many at a time.
    ///
    /// # Errors
    /// As [`scan`](Table::scan).
    pub async fn scan_columns(
        &self,
        access: &Access,
        run: &LeafRun,
        range: &KeyRange,
        context: &tanada_io::IoContext,
        receiver: &mut dyn RowReceiver,
    ) -> Result<()> {
        let mut found = Found::default();
        scan::each_leaf(self, access, run, context, async |reader, leaf| {
            reader.columns(leaf, range, &mut found, receiver).await
        })
        .await
    }
}

impl LeafReader<'_> {
    async fn columns(
        &self,
        leaf: &Node,
        range: &KeyRange,
        found: &mut Found,
        receiver: &mut dyn RowReceiver,
    ) -> Result<ControlFlow<()>> {
        self.find(leaf, range, found).map_err(|error| self.tree.at(leaf.page().number(), &error))?;
        let mut from = 0;
        for at in 0..found.external.len() {
            let (before, origin) = found.external[at];
            if self.hand_out(leaf, from..before, found, receiver)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            from = before;
            if self.rows_at(leaf, &[origin], &mut |row| receiver.row(row)).await?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.hand_out(leaf, from..found.rows, found, receiver)
    }

    /// Walks the rows of `leaf` within `range`.
    fn find(&self, leaf: &Node, range: &KeyRange, found: &mut Found) -> Result<()> {
        (found.rows, found.spans) = (0, std::mem::take(&mut found.spans));
        found.spans.clear();
        found.external.clear();
        let mut spans = Spans::with_capacity(self.projection.fields);
        let _ = each_row(self.tree, leaf, range, |origin| {
            self.parse(leaf, origin, &mut spans)?;
            if !self.tree.layout.is_current(leaf.bytes(), &spans) {
                return Ok(ControlFlow::Continue(()));
            }
            if self.has_external(&spans) {
                found.external.push((found.rows, origin));
                return Ok(ControlFlow::Continue(()));
            }
            let span = |slot: &Slot| spans.get(slot.field).copied().unwrap_or(Span::ABSENT);
            found.spans.extend(self.projection.slots.iter().map(span));
            found.rows += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    }

    fn hand_out(
        &self,
        leaf: &Node,
        rows: std::ops::Range<u32>,
        found: &mut Found,
        receiver: &mut dyn RowReceiver,
    ) -> Result<ControlFlow<()>> {
        if rows.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        found.left.clear();
        found.left.extend(rows);
        receiver.rows(&mut Rows {
            page: leaf.bytes(),
            page_no: leaf.page().number(),
            projection: self.projection,
            tree: self.tree,
            spans: &found.spans,
            left: &mut found.left,
        })
    }
}
