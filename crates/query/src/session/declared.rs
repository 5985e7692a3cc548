//! Columns that `CREATE EXTERNAL TABLE` declares of text files.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::sql::sqlparser::ast::{ColumnDef, ColumnOption, DataType, ExactNumberInfo};

use crate::{Error, ErrorKind, Result};

/// Digits and scale of a DECIMAL that names none.
const DECIMAL: (u8, i8) = (10, 0);

/// The declared columns; `None` if there are none.
///
/// # Errors
/// `Unsupported` for types that are not read from text files, and for properties other than NULL.
pub(super) fn declared(columns: &[ColumnDef]) -> Result<Option<SchemaRef>> {
    if columns.is_empty() {
        return Ok(None);
    }
    let field = |column: &ColumnDef| {
        let name = &column.name.value;
        if let Some(option) = column.options.iter().find(|option| option.option != ColumnOption::Null) {
            let message = format!("column {name}: {} is not supported of files", option.option);
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let data_type = arrow_type(&column.data_type).ok_or_else(|| {
            let message = format!(
                "column {name}: {} is not read from text files; use integers, DECIMAL, FLOAT, DOUBLE, VARCHAR, TEXT, DATE or DATETIME",
                column.data_type
            );
            Error::new(ErrorKind::Unsupported, message)
        })?;
        Ok(Field::new(name, data_type, true))
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Some(Arc::new(Schema::new(fields))))
}

fn arrow_type(data_type: &DataType) -> Option<ArrowType> {
    Some(match data_type {
        DataType::Bool | DataType::Boolean | DataType::TinyInt(_) => ArrowType::Int8,
        DataType::TinyIntUnsigned(_) => ArrowType::UInt8,
        DataType::SmallInt(_) => ArrowType::Int16,
        DataType::SmallIntUnsigned(_) => ArrowType::UInt16,
        DataType::MediumInt(_) | DataType::Int(_) | DataType::Integer(_) => ArrowType::Int32,
        DataType::MediumIntUnsigned(_) | DataType::IntUnsigned(_) | DataType::IntegerUnsigned(_) => {
            ArrowType::UInt32
        }
        DataType::BigInt(_) => ArrowType::Int64,
        DataType::BigIntUnsigned(_) => ArrowType::UInt64,
        DataType::Float(_) => ArrowType::Float32,
        DataType::Double(_) | DataType::DoublePrecision => ArrowType::Float64,
        DataType::Decimal(of) | DataType::Numeric(of) | DataType::Dec(of) => decimal(of)?,
        DataType::Char(_)
        | DataType::Varchar(_)
        | DataType::Text
        | DataType::TinyText
        | DataType::MediumText
        | DataType::LongText => ArrowType::Utf8,
        DataType::Date => ArrowType::Date32,
        DataType::Datetime(digits) => ArrowType::Timestamp(
            match digits {
                None | Some(0) => TimeUnit::Second,
                Some(1..=3) => TimeUnit::Millisecond,
                Some(4..=6) => TimeUnit::Microsecond,
                Some(_) => return None,
            },
            None,
        ),
        _ => return None,
    })
}

fn decimal(of: &ExactNumberInfo) -> Option<ArrowType> {
    let (precision, scale) = match of {
        ExactNumberInfo::None => DECIMAL,
        ExactNumberInfo::Precision(precision) => (u8::try_from(*precision).ok()?, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => {
            (u8::try_from(*precision).ok()?, i8::try_from(*scale).ok()?)
        }
    };
    let is_valid =
        (1..=65).contains(&precision) && (0..=30).contains(&scale) && scale.unsigned_abs() <= precision;
    is_valid.then_some(match precision {
        0..=38 => ArrowType::Decimal128(precision, scale),
        _ => ArrowType::Decimal256(precision, scale),
    })
}
