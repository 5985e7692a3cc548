//! Decoded values into Arrow arrays.

mod columns;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BinaryViewBuilder, PrimitiveBuilder, StringViewBuilder};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Decimal256Type, DurationMicrosecondType,
    DurationMillisecondType, DurationSecondType, Field, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type, i256,
};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use tanada_innodb::{Decimal, Error, ErrorKind, Result, RowSink, Value};

use super::types::{MYSQL_TYPE, SHORT_YEAR};
use super::vector::{self, VectorBuilder};
use super::zero_date;

/// Bytes in which texts and bytes are collected. A builder's blocks would grow to 2 MiB from batch to batch, and the
/// last one of each batch counts as a whole, however little is in it.
const BLOCK_BYTES: u32 = 32 << 10;

/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Builders for the projected columns of a relation. For each row: one `push` a slot, then `end_row`.
#[derive(Debug)]
pub struct ArrowSink {
    schema: SchemaRef,
    columns: Vec<ColumnBuilder>,
    /// Which of them are of YEAR(2), which does not tell the year 0 from 2000.
    short_years: Vec<bool>,
    rows: usize,
    bytes: usize,
    takes_partial_dates: bool,
}

impl ArrowSink {
    /// A sink for `columns` (positions in `schema`, the relation's; slot i is `columns[i]`). Where dates are ordered,
    /// it takes no partial ones (see [`zero_date`]).
    pub fn new(schema: &SchemaRef, columns: &[usize], takes_partial_dates: bool) -> ArrowSink {
        let fields: Vec<_> = columns.iter().map(|column| Arc::clone(&schema.fields()[*column])).collect();
        let builders = fields.iter().map(|field| ColumnBuilder::new(field.data_type())).collect();
        let short_years = fields.iter().map(|field| is_short_year(field)).collect();
        let schema = Arc::new(Schema::new(fields));
        ArrowSink { schema, columns: builders, short_years, rows: 0, bytes: 0, takes_partial_dates }
    }

    /// Fields of the columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whole rows pushed since the last [`ArrowSink::finish`].
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a row that has been pushed; needed after each row (a projection may have no columns).
    pub fn end_row(&mut self) {
        self.rows += 1;
    }

    /// The rows so far; the sink is empty again.
    pub fn finish(&mut self) -> crate::Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let arrays: Vec<ArrayRef> = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        self.rows = 0;
        self.bytes = 0;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options).map_err(|error| {
            crate::Error::new(crate::ErrorKind::Data, format!("rows do not fit their columns: {error}"))
        })
    }

    fn push_value(&mut self, slot: usize, value: &Value<'_>) -> Result<()> {
        if let Value::ZeroDate(text) = value
            && !self.takes_partial_dates
            && zero_date::is_partial(text)
        {
            return Err(self.misfit(slot, value));
        }
        let value = match value {
            Value::UInt(0) if self.short_years[slot] => &Value::UInt(2000),
            value => value,
        };
        match self.columns[slot].push(value) {
            Some(bytes) => {
                self.bytes += bytes;
                Ok(())
            }
            None => Err(self.misfit(slot, value)),
        }
    }

    fn misfit(&self, slot: usize, value: &Value<'_>) -> Error {
        if let Value::ZeroDate(date) = value {
            let name = self.schema.fields().get(slot).map_or("?", |field| field.name().as_str());
            let message = format!(
                "column {name}: the date {date}, which no calendar has, is not supported where dates are ordered"
            );
            return Error::new(ErrorKind::Unsupported, message);
        }
        let (name, data_type) = match self.schema.fields().get(slot) {
            Some(field)
                if matches!((value, field.data_type()), (Value::Decimal(_), DataType::Decimal128(..))) =>
            {
                let message =
                    format!("a number of more than 38 digits ({}) is not computed with", field.name());
                return Error::new(ErrorKind::Unsupported, message);
            }
            Some(field) => (field.name().as_str(), field.data_type().to_string()),
            None => ("?", "no column".to_string()),
        };
        Error::new(ErrorKind::Corrupt, format!("column {name}: {value:?} is no {data_type}"))
    }
}

impl RowSink for ArrowSink {
    fn push(&mut self, slot: usize, value: Value<'_>) -> Result<()> {
        if slot < self.columns.len() { self.push_value(slot, &value) } else { Err(self.misfit(slot, &value)) }
    }
}

fn is_short_year(field: &Field) -> bool {
    field.metadata().get(MYSQL_TYPE).is_some_and(|name| name == SHORT_YEAR)
}

/// One column under construction, by Arrow type.
#[derive(Debug)]
enum ColumnBuilder {
    Int8(PrimitiveBuilder<Int8Type>),
    Int16(PrimitiveBuilder<Int16Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    UInt8(PrimitiveBuilder<UInt8Type>),
    UInt16(PrimitiveBuilder<UInt16Type>),
    UInt32(PrimitiveBuilder<UInt32Type>),
    UInt64(PrimitiveBuilder<UInt64Type>),
    Float32(PrimitiveBuilder<Float32Type>),
    Float64(PrimitiveBuilder<Float64Type>),
    Decimal128(PrimitiveBuilder<Decimal128Type>, i8),
    Decimal256(PrimitiveBuilder<Decimal256Type>, i8),
    Date(PrimitiveBuilder<Date32Type>),
    TimestampSeconds(PrimitiveBuilder<TimestampSecondType>),
    TimestampMillis(PrimitiveBuilder<TimestampMillisecondType>),
    TimestampMicros(PrimitiveBuilder<TimestampMicrosecondType>),
    DurationSeconds(PrimitiveBuilder<DurationSecondType>),
    DurationMillis(PrimitiveBuilder<DurationMillisecondType>),
    DurationMicros(PrimitiveBuilder<DurationMicrosecondType>),
    Binary(BinaryViewBuilder),
    Vector(VectorBuilder),
    /// Also any type that relations do not have: then every value but NULL is a misfit.
    Text(StringViewBuilder),
}

impl ColumnBuilder {
    fn new(data_type: &DataType) -> ColumnBuilder {
        fn primitive<T: ArrowPrimitiveType>(data_type: &DataType) -> PrimitiveBuilder<T> {
            PrimitiveBuilder::new().with_data_type(data_type.clone())
        }
        match data_type {
            DataType::Int8 => ColumnBuilder::Int8(primitive(data_type)),
            DataType::Int16 => ColumnBuilder::Int16(primitive(data_type)),
            DataType::Int32 => ColumnBuilder::Int32(primitive(data_type)),
            DataType::Int64 => ColumnBuilder::Int64(primitive(data_type)),
            DataType::UInt8 => ColumnBuilder::UInt8(primitive(data_type)),
            DataType::UInt16 => ColumnBuilder::UInt16(primitive(data_type)),
            DataType::UInt32 => ColumnBuilder::UInt32(primitive(data_type)),
            DataType::UInt64 => ColumnBuilder::UInt64(primitive(data_type)),
            DataType::Float32 => ColumnBuilder::Float32(primitive(data_type)),
            DataType::Float64 => ColumnBuilder::Float64(primitive(data_type)),
            DataType::Decimal128(_, scale) => ColumnBuilder::Decimal128(primitive(data_type), *scale),
            DataType::Decimal256(_, scale) => ColumnBuilder::Decimal256(primitive(data_type), *scale),
            DataType::Date32 => ColumnBuilder::Date(primitive(data_type)),
            DataType::Timestamp(TimeUnit::Second, _) => ColumnBuilder::TimestampSeconds(primitive(data_type)),
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                ColumnBuilder::TimestampMillis(primitive(data_type))
            }
            DataType::Timestamp(_, _) => ColumnBuilder::TimestampMicros(primitive(data_type)),
            DataType::Duration(TimeUnit::Second) => ColumnBuilder::DurationSeconds(primitive(data_type)),
            DataType::Duration(TimeUnit::Millisecond) => ColumnBuilder::DurationMillis(primitive(data_type)),
            DataType::Duration(_) => ColumnBuilder::DurationMicros(primitive(data_type)),
            DataType::BinaryView => {
                ColumnBuilder::Binary(BinaryViewBuilder::new().with_fixed_block_size(BLOCK_BYTES))
            }
            DataType::FixedSizeList(_, dimensions) if vector::is_vector(data_type) => {
                ColumnBuilder::Vector(vector::builder(*dimensions))
            }
            _ => ColumnBuilder::Text(StringViewBuilder::new().with_fixed_block_size(BLOCK_BYTES)),
        }
    }

    /// Appends a value and gives the bytes it takes; `None` if it is not of this column's type.
    fn push(&mut self, value: &Value<'_>) -> Option<usize> {
        if *value == Value::Null {
            self.push_null();
            return Some(1);
        }
        match self {
            ColumnBuilder::Int8(builder) => append(builder, signed(value)?.try_into().ok()?),
            ColumnBuilder::Int16(builder) => append(builder, signed(value)?.try_into().ok()?),
            ColumnBuilder::Int32(builder) => append(builder, signed(value)?.try_into().ok()?),
            ColumnBuilder::Int64(builder) => append(builder, signed(value)?),
            ColumnBuilder::UInt8(builder) => append(builder, unsigned(value)?.try_into().ok()?),
            ColumnBuilder::UInt16(builder) => append(builder, unsigned(value)?.try_into().ok()?),
            ColumnBuilder::UInt32(builder) => append(builder, unsigned(value)?.try_into().ok()?),
            ColumnBuilder::UInt64(builder) => append(builder, unsigned(value)?),
            ColumnBuilder::Float32(builder) => append(builder, float(value)?),
            ColumnBuilder::Float64(builder) => append(builder, double(value)?),
            ColumnBuilder::Decimal128(builder, scale) => append(builder, narrow(decimal(value, *scale)?)?),
            ColumnBuilder::Decimal256(builder, scale) => {
                let decimal = decimal(value, *scale)?;
                append(builder, i256::from_parts(decimal.low, decimal.high))
            }
            ColumnBuilder::Date(builder) => append(builder, date(value)?),
            ColumnBuilder::TimestampSeconds(builder) => {
                append(builder, date_time(value)?.div_euclid(1_000_000))
            }
            ColumnBuilder::TimestampMillis(builder) => append(builder, date_time(value)?.div_euclid(1_000)),
            ColumnBuilder::TimestampMicros(builder) => append(builder, date_time(value)?),
            ColumnBuilder::DurationSeconds(builder) => append(builder, time(value)? / 1_000_000),
            ColumnBuilder::DurationMillis(builder) => append(builder, time(value)? / 1_000),
            ColumnBuilder::DurationMicros(builder) => append(builder, time(value)?),
            ColumnBuilder::Text(builder) => {
                let Value::Text(text) = value else { return None };
                builder.try_append_value(text.as_ref()).ok()?;
                Some(16 + text.len())
            }
            ColumnBuilder::Binary(builder) => {
                let Value::Bytes(bytes) = value else { return None };
                builder.try_append_value(bytes.as_ref()).ok()?;
                Some(16 + bytes.len())
            }
            ColumnBuilder::Vector(builder) => {
                let Value::Bytes(bytes) = value else { return None };
                vector::append(builder, bytes.as_ref())
            }
        }
    }

    fn push_null(&mut self) {
        match self {
            ColumnBuilder::Int8(builder) => builder.append_null(),
            ColumnBuilder::Int16(builder) => builder.append_null(),
            ColumnBuilder::Int32(builder) => builder.append_null(),
            ColumnBuilder::Int64(builder) => builder.append_null(),
            ColumnBuilder::UInt8(builder) => builder.append_null(),
            ColumnBuilder::UInt16(builder) => builder.append_null(),
            ColumnBuilder::UInt32(builder) => builder.append_null(),
            ColumnBuilder::UInt64(builder) => builder.append_null(),
            ColumnBuilder::Float32(builder) => builder.append_null(),
            ColumnBuilder::Float64(builder) => builder.append_null(),
            ColumnBuilder::Decimal128(builder, _) => builder.append_null(),
            ColumnBuilder::Decimal256(builder, _) => builder.append_null(),
            ColumnBuilder::Date(builder) => builder.append_null(),
            ColumnBuilder::TimestampSeconds(builder) => builder.append_null(),
            ColumnBuilder::TimestampMillis(builder) => builder.append_null(),
            ColumnBuilder::TimestampMicros(builder) => builder.append_null(),
            ColumnBuilder::DurationSeconds(builder) => builder.append_null(),
            ColumnBuilder::DurationMillis(builder) => builder.append_null(),
            ColumnBuilder::DurationMicros(builder) => builder.append_null(),
            ColumnBuilder::Binary(builder) => builder.append_null(),
            ColumnBuilder::Vector(builder) => vector::append_null(builder),
            ColumnBuilder::Text(builder) => builder.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            ColumnBuilder::Int8(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Int16(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Int32(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Int64(builder) => Arc::new(builder.finish()),
            ColumnBuilder::UInt8(builder) => Arc::new(builder.finish()),
            ColumnBuilder::UInt16(builder) => Arc::new(builder.finish()),
            ColumnBuilder::UInt32(builder) => Arc::new(builder.finish()),
            ColumnBuilder::UInt64(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Float32(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Float64(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Decimal128(builder, _) => Arc::new(builder.finish()),
            ColumnBuilder::Decimal256(builder, _) => Arc::new(builder.finish()),
            ColumnBuilder::Date(builder) => Arc::new(builder.finish()),
            ColumnBuilder::TimestampSeconds(builder) => Arc::new(builder.finish()),
            ColumnBuilder::TimestampMillis(builder) => Arc::new(builder.finish()),
            ColumnBuilder::TimestampMicros(builder) => Arc::new(builder.finish()),
            ColumnBuilder::DurationSeconds(builder) => Arc::new(builder.finish()),
            ColumnBuilder::DurationMillis(builder) => Arc::new(builder.finish()),
            ColumnBuilder::DurationMicros(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Binary(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Vector(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Text(builder) => Arc::new(builder.finish()),
        }
    }
}

fn append<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>, value: T::Native) -> Option<usize> {
    builder.append_value(value);
    Some(size_of::<T::Native>())
}

fn signed(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::UInt(number) => (*number).try_into().ok(),
        _ => None,
    }
}

fn unsigned(value: &Value<'_>) -> Option<u64> {
    match value {
        Value::UInt(number) => Some(*number),
        Value::Int(number) => (*number).try_into().ok(),
        _ => None,
    }
}

fn float(value: &Value<'_>) -> Option<f32> {
    if let Value::Float(number) = value { Some(*number) } else { None }
}

fn double(value: &Value<'_>) -> Option<f64> {
    if let Value::Double(number) = value { Some(*number) } else { None }
}

/// The decimal, if it has the column's scale.
fn decimal(value: &Value<'_>, scale: i8) -> Option<Decimal> {
    match value {
        Value::Decimal(decimal) if decimal.scale.cast_signed() == scale => Some(*decimal),
        _ => None,
    }
}

/// The low half, if it says all.
fn narrow(decimal: Decimal) -> Option<i128> {
    let low = decimal.low.cast_signed();
    (decimal.high == low >> 127).then_some(low)
}

fn date(value: &Value<'_>) -> Option<i32> {
    match value {
        Value::Date(days) => Some(*days),
        Value::ZeroDate(text) => (zero_date::moment(text)? / DAY).try_into().ok(),
        _ => None,
    }
}

fn date_time(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::DateTime(micros) => Some(*micros),
        Value::ZeroDate(text) => zero_date::moment(text),
        _ => None,
    }
}

fn time(value: &Value<'_>) -> Option<i64> {
    if let Value::Time(micros) = value { Some(*micros) } else { None }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use datafusion::arrow::array::AsArray;

    use super::*;

    fn sink(types: Vec<DataType>) -> ArrowSink {
        let fields: Vec<Field> =
            types.into_iter().map(|data_type| Field::new("c", data_type, true)).collect();
        let columns: Vec<usize> = (0..fields.len()).collect();
        ArrowSink::new(&Arc::new(Schema::new(fields)), &columns, false)
    }

    #[test]
    fn values_arrive_in_their_units() {
        let mut sink = sink(vec![
            DataType::Timestamp(TimeUnit::Second, None),
            DataType::Duration(TimeUnit::Millisecond),
            DataType::Decimal128(5, 2),
            DataType::Utf8View,
        ]);
        // One second and a half before the epoch lies in the second before the last.
        sink.push(0, Value::DateTime(-1_500_000)).unwrap();
        sink.push(1, Value::Time(-1_500_000)).unwrap();
        sink.push(2, Value::Decimal(Decimal { high: -1, low: u128::MAX, scale: 2 })).unwrap();
        sink.push(3, Value::Text(Cow::Borrowed("キー"))).unwrap();
        sink.end_row();
        let batch = sink.finish().unwrap();
        assert_eq!(batch.column(0).as_primitive::<TimestampSecondType>().value(0), -2);
        assert_eq!(batch.column(1).as_primitive::<DurationMillisecondType>().value(0), -1_500);
        assert_eq!(batch.column(2).as_primitive::<Decimal128Type>().value(0), -1);
        assert_eq!(batch.column(3).as_string_view().value(0), "キー");
        assert_eq!(sink.rows(), 0);
    }

    /// What operators count before they spill.
    #[test]
    fn memory_of_a_batch_is_about_that_of_its_texts() {
        let mut sink = sink(vec![DataType::Utf8View, DataType::BinaryView]);
        let text = "a text that is too long for a view";
        for batch in 0..40 {
            for _ in 0..2000 {
                sink.push(0, Value::Text(Cow::Borrowed(text))).unwrap();
                sink.push(1, Value::Bytes(Cow::Borrowed(text.as_bytes()))).unwrap();
                sink.end_row();
            }
            let batch_bytes = sink.finish().unwrap().get_array_memory_size();
            let needed = 2 * 2000 * (text.len() + 16);
            assert!(batch_bytes < 2 * needed, "batch {batch}: {batch_bytes} bytes for {needed}");
        }
    }

    #[test]
    fn zero_dates_are_a_day_of_their_own_and_partial_dates_are_refused_in_order() {
        let mut sink = sink(vec![DataType::Date32]);
        sink.push(0, Value::ZeroDate("0000-00-00".to_string())).unwrap();
        sink.end_row();
        let batch = sink.finish().unwrap();
        assert_eq!(batch.column(0).as_primitive::<Date32Type>().value(0), zero_date::ZERO_DATE);
        let error = sink.push(0, Value::ZeroDate("2024-00-10".to_string())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("the date 2024-00-10"), "{error}");
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let mut sink = sink(vec![]);
        sink.end_row();
        sink.end_row();
        assert_eq!(sink.finish().unwrap().num_rows(), 2);
    }

    #[test]
    fn a_value_of_another_type_is_an_error() {
        let mut sink = sink(vec![DataType::Int8]);
        let error = sink.push(0, Value::Int(128)).unwrap_err();
        assert_eq!(error.to_string(), "column c: Int(128) is no Int8");
        assert!(sink.push(1, Value::Null).is_err());
    }
}
