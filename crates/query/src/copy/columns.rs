//! Columns of a result as columns of a file.
//!
//! Types that only Arrow knows become the nearest that every reader knows: seconds milliseconds, truth values the
//! servers' numbers. The servers' types go along as the fields' metadata.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Field, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
    TimestampMillisecondType,
};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};

use crate::binding::KIND;
use crate::relation::types::MYSQL_TYPE;
use crate::relation::zero_date;
use crate::{Error, ErrorKind, Result};

/// The fields of a file for a result.
///
/// # Errors
/// If the result has no columns, or two of one name.
pub(super) fn file_schema(result: &Schema) -> Result<SchemaRef> {
    let mut names = HashSet::new();
    if result.fields().is_empty() {
        return Err(Error::new(ErrorKind::InvalidInput, "a file needs at least one column"));
    }
    for field in result.fields() {
        if !names.insert(field.name().to_lowercase()) {
            let message = format!(
                "two columns of the file would be called '{}'; give one another name with AS",
                field.name()
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
    }
    let fields = result.fields().iter().map(|field| {
        let mut metadata = field.metadata().clone();
        metadata.retain(|key, _| key == KIND || key == MYSQL_TYPE);
        Field::new(field.name(), file_type(field.data_type()), true).with_metadata(metadata)
    });
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

fn file_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Boolean => DataType::Int8,
        DataType::Null => DataType::Utf8View,
        DataType::Timestamp(TimeUnit::Second, zone) => {
            DataType::Timestamp(TimeUnit::Millisecond, zone.clone())
        }
        DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
        DataType::Dictionary(_, values) => file_type(values),
        other => other.clone(),
    }
}

/// A batch of the result as one of the file.
///
/// # Errors
/// `Unsupported` for dates that no calendar has: other readers would take them for other dates.
pub(super) fn file_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let internal = |error: datafusion::arrow::error::ArrowError| {
        Error::new(ErrorKind::Internal, format!("a result does not fit its columns: {error}"))
    };
    let mut arrays = Vec::with_capacity(batch.num_columns());
    for (array, field) in batch.columns().iter().zip(schema.fields()) {
        let array = cast(array, field.data_type()).map_err(internal)?;
        if has_no_date(&array) {
            let name = field.name();
            let message = format!(
                "column {name} has a date that no calendar has (such as 0000-00-00), which a Parquet file \
                 cannot hold; write it as text with CAST({name} AS CHAR), or as NULL with NULLIF({name}, '0000-00-00')"
            );
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        arrays.push(array);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options).map_err(internal)
}

/// Whether a date or time among the values is of no calendar.
fn has_no_date(array: &ArrayRef) -> bool {
    let least = match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            return days.iter().flatten().any(|days| zero_date::civil(days.into()).is_some());
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            let values = array.as_primitive::<TimestampMillisecondType>();
            datafusion::arrow::compute::min(values).map(|least| least.saturating_mul(1000))
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            datafusion::arrow::compute::min(array.as_primitive::<TimestampMicrosecondType>())
        }
        _ => None,
    };
    least.is_some_and(zero_date::is_none_of_calendar)
}
