//! Columns of files as columns of the servers' types.
//!
//! A column that was written from a server's files says in its field's metadata which type it had; where its values fit
//! that type, it has it again. Other columns have the type of the servers that holds their values:
//!
//! | in the file | type | kept exactly |
//! |---|---|---|
//! | integers of 8 to 64 bits, signed or not, booleans | TINYINT to BIGINT, UNSIGNED | yes |
//! | FLOAT, DOUBLE, half precision | FLOAT, DOUBLE, FLOAT | yes; NaN and infinities, too |
//! | DECIMAL of up to 65 digits and scale 30 | DECIMAL | yes |
//! | text, dictionary of texts | LONGTEXT, utf8mb4, compared by bytes | yes |
//! | bytes | LONGBLOB | yes |
//! | DATE, TIMESTAMP without and with zone | DATE, DATETIME, TIMESTAMP | years 0 to 9999, microseconds, else errors |
//! | TIME, durations | TIME | up to 838:59:59, microseconds; others are errors |
//! | lists, structures, maps, intervals | none | such a column is refused when it is read |

use std::collections::HashMap;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use tanada_innodb::schema::Server;

use crate::binding::{KIND, metadata_of};
use crate::expression::{Collating, Kind};
use crate::relation::types::MYSQL_TYPE;
use crate::relation::vector::is_vector;

/// Most digits of a DECIMAL.
const MAX_PRECISION: u8 = 65;
/// Most digits of a DECIMAL after the point.
const MAX_SCALE: i8 = 30;
/// Fractional digits of a time whose file does not say how many it shows.
const MICROSECONDS: u8 = 6;

/// How values of a file become values of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// They are cast, which loses nothing, and dates and times are checked to be in range.
    Cast,
    /// Nanoseconds become microseconds if nothing is lost.
    Nanoseconds,
    /// A time of day becomes a TIME.
    TimeOfDay,
    /// There is no type for them.
    Refused,
}

/// A column of a file and of its table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileColumn {
    /// The field of the table.
    pub(crate) field: Field,
    /// The type in the file.
    pub(crate) file_type: DataType,
    pub(crate) conversion: Conversion,
}

impl FileColumn {
    /// The column that a field of a file is for a session of `server`.
    pub(crate) fn new(field: &FieldRef, server: Server) -> FileColumn {
        let file_type = field.data_type().clone();
        let (data_type, kind, conversion) = plain(&file_type, server);
        let kept = kept_metadata(field, &data_type);
        let metadata = match (&kept, kind) {
            (Some(metadata), _) => metadata.clone(),
            (None, Some(kind)) => described(&kind, &data_type),
            (None, None) => HashMap::from([(MYSQL_TYPE.to_string(), nested_name(&file_type).to_string())]),
        };
        let conversion = match (conversion, &kept) {
            // Vectors have a type, but no expression.
            (Conversion::Refused, Some(_)) => Conversion::Cast,
            (conversion, _) => conversion,
        };
        let field = Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata);
        FileColumn { field, file_type, conversion }
    }

    /// Whether bounds of its values in a file bound those of the table.
    pub(crate) fn keeps_bounds(&self) -> bool {
        let is_text = |of: &DataType| of.is_string();
        let is_binary =
            |of: &DataType| matches!(of, DataType::Binary | DataType::LargeBinary | DataType::BinaryView);
        let (from, to) = (&self.file_type, self.field.data_type());
        let same = from == to || is_text(from) && is_text(to) || is_binary(from) && is_binary(to);
        self.conversion == Conversion::Cast && same && !to.is_floating()
    }
}

/// The Arrow type and the server's type of a type of files.
fn plain(file_type: &DataType, server: Server) -> (DataType, Option<Kind>, Conversion) {
    use Conversion::{Cast, Nanoseconds, Refused, TimeOfDay};
    let int = |unsigned| Some(Kind::Int { unsigned });
    let time = |unit: TimeUnit| Some(Kind::Time { fsp: digits(unit) });
    match file_type {
        DataType::Boolean => (DataType::Int8, int(false), Cast),
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            (file_type.clone(), int(false), Cast)
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            (file_type.clone(), int(true), Cast)
        }
        DataType::Float16 | DataType::Float32 => (DataType::Float32, Some(Kind::Float), Cast),
        DataType::Float64 => (DataType::Float64, Some(Kind::Double { decimals: None }), Cast),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale)
            if *precision <= MAX_PRECISION && (0..=MAX_SCALE).contains(scale) =>
        {
            let data_type = match precision {
                0..=38 => DataType::Decimal128(*precision, *scale),
                _ => DataType::Decimal256(*precision, *scale),
            };
            (data_type, Some(Kind::Decimal { scale: scale.unsigned_abs() }), Cast)
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let collating = Collating::column("utf8mb4_0900_bin", server);
            (DataType::Utf8View, Some(Kind::Text(collating)), Cast)
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            (DataType::BinaryView, Some(Kind::Bytes), Cast)
        }
        DataType::Date32 => (DataType::Date32, Some(Kind::Date), Cast),
        DataType::Date64 => {
            let kind = Kind::DateTime { fsp: digits(TimeUnit::Millisecond) };
            (DataType::Timestamp(TimeUnit::Millisecond, None), Some(kind), Cast)
        }
        DataType::Timestamp(unit, zone) => {
            let fsp = digits(*unit);
            let kind = if zone.is_some() { Kind::Timestamp { fsp } } else { Kind::DateTime { fsp } };
            let (unit, conversion) = match unit {
                TimeUnit::Nanosecond => (TimeUnit::Microsecond, Nanoseconds),
                unit => (*unit, Cast),
            };
            (DataType::Timestamp(unit, zone.as_ref().map(|_| "+00:00".into())), Some(kind), conversion)
        }
        DataType::Time32(unit) | DataType::Time64(unit) | DataType::Duration(unit) => {
            let is_duration = matches!(file_type, DataType::Duration(_));
            let conversion = match (unit, is_duration) {
                (TimeUnit::Nanosecond, _) => Nanoseconds,
                (_, true) => Cast,
                (_, false) => TimeOfDay,
            };
            let target = if *unit == TimeUnit::Nanosecond { TimeUnit::Microsecond } else { *unit };
            (DataType::Duration(target), time(*unit), conversion)
        }
        DataType::Dictionary(_, values) => {
            let (data_type, kind, conversion) = plain(values, server);
            // Only what is cast as it is.
            match conversion {
                Cast => (data_type, kind, Cast),
                _ => (file_type.clone(), None, Refused),
            }
        }
        DataType::Null => (DataType::Utf8View, Some(Kind::Null), Cast),
        other => (other.clone(), None, Refused),
    }
}

fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond | TimeUnit::Nanosecond => MICROSECONDS,
    }
}

/// The metadata of a column without a server's.
fn described(kind: &Kind, data_type: &DataType) -> HashMap<String, String> {
    let mut metadata = metadata_of(kind);
    let name = match (kind, data_type) {
        (Kind::Int { .. }, of) => Some(integer_name(of).to_string()),
        (
            Kind::Decimal { .. },
            DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale),
        ) => Some(format!("decimal({precision},{scale})")),
        (Kind::Double { .. }, _) => Some("double".to_string()),
        (Kind::Float, _) => Some("float".to_string()),
        (Kind::Text(_) | Kind::Null, _) => Some("longtext".to_string()),
        (Kind::Bytes, _) => Some("longblob".to_string()),
        (Kind::Timestamp { fsp: 0 }, _) => Some("timestamp".to_string()),
        (Kind::Timestamp { fsp }, _) => Some(format!("timestamp({fsp})")),
        _ => None,
    };
    if let Some(name) = name {
        metadata.insert(MYSQL_TYPE.to_string(), name);
    }
    metadata
}

fn integer_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Int8 => "tinyint",
        DataType::Int16 => "smallint",
        DataType::Int32 => "int",
        DataType::UInt8 => "tinyint unsigned",
        DataType::UInt16 => "smallint unsigned",
        DataType::UInt32 => "int unsigned",
        DataType::UInt64 => "bigint unsigned",
        _ => "bigint",
    }
}

/// What a type that neither server has is called.
pub(crate) fn nested_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::List(_)
        | DataType::LargeList(_)
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::FixedSizeList(..) => "list",
        DataType::Struct(_) => "structure",
        DataType::Map(..) => "map",
        DataType::Union(..) => "union",
        DataType::Interval(_) => "interval",
        DataType::Decimal128(..) | DataType::Decimal256(..) => "decimal of too many digits",
        _ => "unknown",
    }
}

/// The metadata of a column that was written from a server's files, if its values can be of that type.
fn kept_metadata(field: &Field, data_type: &DataType) -> Option<HashMap<String, String>> {
    let mysql_type = field.metadata().get(MYSQL_TYPE);
    let Some(text) = field.metadata().get(KIND) else {
        // Types that no expression has.
        let name = mysql_type?;
        let fits = match name.as_str() {
            "uuid" | "inet4" | "inet6" => *data_type == DataType::Utf8View,
            "geometry" => *data_type == DataType::BinaryView,
            vector => vector.starts_with("vector(") && is_vector(data_type),
        };
        return fits.then(|| HashMap::from([(MYSQL_TYPE.to_string(), name.clone())]));
    };
    let kind: Kind = serde_json::from_str(text).ok()?;
    if !holds(&kind, data_type) {
        return None;
    }
    let mut metadata = described(&kind, data_type);
    if let Some(name) = mysql_type.filter(|name| fits(name, &kind)) {
        metadata.insert(MYSQL_TYPE.to_string(), name.clone());
    }
    Some(metadata)
}

/// Whether values of an Arrow type are values of a server's type.
fn holds(kind: &Kind, data_type: &DataType) -> bool {
    match (kind, data_type) {
        (Kind::Int { unsigned }, of) if of.is_integer() => *unsigned == of.is_unsigned_integer(),
        (Kind::Year, DataType::UInt16)
        | (Kind::Bit { bits: 1..=64 }, DataType::UInt64)
        | (Kind::Double { .. }, DataType::Float64)
        | (Kind::Float, DataType::Float32)
        | (Kind::Text(_) | Kind::Choice(_) | Kind::Json, DataType::Utf8View)
        | (Kind::Bytes, DataType::BinaryView)
        | (Kind::Date, DataType::Date32) => true,
        (Kind::Decimal { scale }, DataType::Decimal128(_, has) | DataType::Decimal256(_, has)) => {
            scale.cast_signed() <= *has
        }
        (Kind::Time { fsp }, DataType::Duration(unit))
        | (Kind::DateTime { fsp }, DataType::Timestamp(unit, None))
        | (Kind::Timestamp { fsp }, DataType::Timestamp(unit, Some(_))) => {
            *fsp <= MICROSECONDS && *fsp <= digits(*unit).max(digits(TimeUnit::Millisecond))
        }
        _ => false,
    }
}

/// Whether a type as it is printed is one of the server's type.
fn fits(name: &str, kind: &Kind) -> bool {
    let base = name.split(['(', ' ']).next().unwrap_or_default();
    match kind {
        Kind::Int { .. } => base.ends_with("int"),
        Kind::Year => base == "year",
        Kind::Bit { bits } => name == format!("bit({bits})"),
        Kind::Decimal { .. } => base == "decimal",
        Kind::Double { decimals: None } => name == "double",
        Kind::Float => base == "float",
        Kind::Text(_) => base.ends_with("char") || base.ends_with("text"),
        Kind::Choice(choice) => base == if choice.is_set { "set" } else { "enum" },
        Kind::Json => base == "json" || base.ends_with("text"),
        Kind::Bytes => base.ends_with("binary") || base.ends_with("blob"),
        Kind::Date => base == "date",
        Kind::Time { .. } | Kind::DateTime { .. } | Kind::Timestamp { .. } => {
            let digits = match kind.fsp() {
                0 => String::new(),
                fsp => format!("({fsp})"),
            };
            ["time", "datetime", "timestamp"].iter().any(|base| name == format!("{base}{digits}"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn column(data_type: DataType, metadata: &[(&str, &str)]) -> FileColumn {
        let metadata = metadata.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string()));
        let field = Field::new("c", data_type, true).with_metadata(metadata.collect());
        FileColumn::new(&Arc::new(field), Server::MySql)
    }

    fn mysql_type(column: &FileColumn) -> &str {
        column.field.metadata().get(MYSQL_TYPE).map_or("", String::as_str)
    }

    #[test]
    fn types_of_files_are_types_of_the_servers() {
        let cases = [
            (DataType::Boolean, DataType::Int8, "tinyint"),
            (DataType::UInt32, DataType::UInt32, "int unsigned"),
            (DataType::Decimal64(9, 2), DataType::Decimal128(9, 2), "decimal(9,2)"),
            (DataType::Decimal256(65, 30), DataType::Decimal256(65, 30), "decimal(65,30)"),
            (DataType::LargeUtf8, DataType::Utf8View, "longtext"),
            (DataType::FixedSizeBinary(3), DataType::BinaryView, "longblob"),
            (
                DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into())),
                DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
                "timestamp(6)",
            ),
            (DataType::Time32(TimeUnit::Millisecond), DataType::Duration(TimeUnit::Millisecond), "time(3)"),
        ];
        for (file_type, data_type, name) in cases {
            let column = column(file_type.clone(), &[]);
            assert_eq!((column.field.data_type(), mysql_type(&column)), (&data_type, name), "{file_type}");
            assert!(column.conversion != Conversion::Refused && column.field.metadata().contains_key(KIND));
        }
        let list = DataType::new_list(DataType::Int32, true);
        for refused in [list, DataType::Decimal256(76, 0), DataType::Decimal128(5, -2)] {
            assert_eq!(column(refused, &[]).conversion, Conversion::Refused);
        }
    }

    #[test]
    fn metadata_is_believed_only_of_values_that_fit_it() {
        let date = [(KIND, "\"Date\""), (MYSQL_TYPE, "date")];
        assert_eq!(mysql_type(&column(DataType::Date32, &date)), "date");
        assert_eq!(mysql_type(&column(DataType::Int32, &date)), "int");
        let year = [(KIND, "\"Year\""), (MYSQL_TYPE, "bit(70)")];
        assert_eq!(mysql_type(&column(DataType::UInt16, &year)), "year");
        assert_eq!(mysql_type(&column(DataType::UInt16, &[(KIND, "{")])), "smallint unsigned");
        assert_eq!(mysql_type(&column(DataType::Utf8, &[(MYSQL_TYPE, "uuid")])), "uuid");
        assert_eq!(mysql_type(&column(DataType::Int64, &[(MYSQL_TYPE, "uuid")])), "bigint");
        let vector = DataType::new_fixed_size_list(DataType::Float32, 3, true);
        assert_eq!(column(vector.clone(), &[(MYSQL_TYPE, "vector(3)")]).conversion, Conversion::Cast);
        assert_eq!(column(vector, &[]).conversion, Conversion::Refused);
    }

    #[test]
    fn bounds_of_floating_numbers_and_of_changed_types_are_not_used() {
        for of in [DataType::Int64, DataType::Utf8, DataType::Binary, DataType::Date32] {
            assert!(column(of.clone(), &[]).keeps_bounds(), "{of}");
        }
        let nanos = DataType::Timestamp(TimeUnit::Nanosecond, None);
        for of in [DataType::Float16, DataType::Float32, DataType::Float64, DataType::Boolean, nanos] {
            assert!(!column(of.clone(), &[]).keeps_bounds(), "{of}");
        }
    }
}
