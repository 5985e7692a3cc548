//! Columns of many rows at once into builders.

use datafusion::arrow::array::{ArrowPrimitiveType, PrimitiveBuilder};
use tanada_innodb::{Error, ErrorKind, Result, Rows, StoredColumn};

use super::{ArrowSink, ColumnBuilder};

impl ArrowSink {
    /// Takes all columns of some rows.
    ///
    /// # Errors
    /// If a value is damaged or does not fit its column.
    pub(crate) fn extend(&mut self, rows: &Rows<'_>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        for slot in 0..self.columns.len() {
            let column = rows.column(slot)?;
            let extended = match self.short_years[slot] {
                true => None,
                false => self.columns[slot].extend(&column, rows.len())?,
            };
            match extended {
                Some(bytes) => self.bytes += bytes,
                None => column.values(|value| self.push_value(slot, &value))?,
            }
        }
        self.rows += rows.len();
        Ok(())
    }
}

impl ColumnBuilder {
    /// Appends a column of `rows` rows by the loop for its type and gives the bytes it takes; `None`, and nothing is
    /// appended, if there is no such loop.
    fn extend(&mut self, column: &StoredColumn<'_>, rows: usize) -> Result<Option<usize>> {
        match self {
            ColumnBuilder::Int8(builder) => integers(builder, column, rows),
            ColumnBuilder::Int16(builder) => integers(builder, column, rows),
            ColumnBuilder::Int32(builder) => integers(builder, column, rows),
            ColumnBuilder::Int64(builder) => integers(builder, column, rows),
            ColumnBuilder::UInt8(builder) => integers(builder, column, rows),
            ColumnBuilder::UInt16(builder) => integers(builder, column, rows),
            ColumnBuilder::UInt32(builder) => integers(builder, column, rows),
            ColumnBuilder::Decimal128(builder, scale)
                if column.scale().is_some_and(|own| own.cast_signed() == *scale) =>
            {
                let done = column.decimals(|value| builder.append_option(value.map(i128::from)))?;
                Ok(done.then_some(rows * size_of::<i128>()))
            }
            ColumnBuilder::Text(builder) => {
                let mut bytes = 0;
                let done = column.texts(|text| {
                    let Some(text) = text else {
                        bytes += 1;
                        builder.append_null();
                        return Ok(());
                    };
                    bytes += 16 + text.len();
                    builder.try_append_value(text).map_err(|_| too_long())
                })?;
                Ok(done.then_some(bytes))
            }
            _ => Ok(None),
        }
    }
}

fn integers<T: ArrowPrimitiveType<Native: TryFrom<i64>>>(
    builder: &mut PrimitiveBuilder<T>,
    column: &StoredColumn<'_>,
    rows: usize,
) -> Result<Option<usize>> {
    let mut misfits = false;
    let done = column.integers(|value| match value.map(T::Native::try_from) {
        Some(Ok(value)) => builder.append_value(value),
        Some(Err(_)) => misfits = true,
        None => builder.append_null(),
    })?;
    match misfits {
        true => Err(Error::new(ErrorKind::Corrupt, format!("a number is no {}", T::DATA_TYPE))),
        false => Ok(done.then_some(rows * size_of::<T::Native>())),
    }
}

fn too_long() -> Error {
    Error::new(ErrorKind::Corrupt, "a text is too long for its column")
}
