//! Virtual generated columns, computed as the server does.
//!
//! DataFusion's rules for expressions are others than the servers' (digits of a quotient, texts as numbers,
//! NULL in CONCAT, what is cut and what is rounded), so an expression of the dictionary is read and
//! evaluated here:
//!
//! 1. [`tokens`] and [`syntax`] read the text as both servers write it.
//! 2. [`plan`] resolves columns and functions and finds the type of every part, which decides how it is computed.
//! 3. [`node`] evaluates it for a row, [`assign`] stores the value into the column's type.
//!
//! What is not known to be exact is refused: in the plan, or for a row whose values are not.

mod arithmetic;
mod assign;
mod calendar;
mod call;
mod cast;
mod choices;
mod collating;
mod compare;
mod connection;
mod conversions;
mod dates;
mod datum;
mod decimal;
mod described;
mod floating;
mod json;
mod kind;
mod node;
mod notes;
mod numeric;
mod padded;
mod plan;
mod rules;
mod strings;
mod syntax;
#[cfg(test)]
mod tests;
mod tokens;
mod zone;

use crate::relation::zero_date;
use datafusion::arrow::datatypes::i256;
use tanada_innodb::schema::Server;
use tanada_innodb::{ColumnType, TableDefinition, Value};

pub(crate) use call::call;
pub(crate) use collating::{Collating, IMPLICIT, NONE, NUMERIC};
pub use connection::Connection;
pub(crate) use conversions::{branch, digits_of_type};
pub(crate) use datum::Datum;
pub(crate) use floating::Origin;
pub(crate) use json::{
    Item as JsonItem, JsonTable, Otherwise as JsonOtherwise, ValueColumn as JsonValueColumn,
    path as json_path,
};
pub(crate) use json::{KeyOf, add_key};
pub(crate) use kind::Kind;
pub(crate) use node::{Node, Typed, Width};
pub(crate) use notes::{Note, Notes, division_by_zero, noting};
pub(crate) use plan::stored;

pub(crate) use padded::shows_digits;
pub use rules::Rules;
pub use zone::Zone;

/// Why a value cannot be computed.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal(String);

impl Refusal {
    pub(crate) fn new(why: impl Into<String>) -> Refusal {
        Refusal(why.into())
    }

    fn digits() -> Refusal {
        Refusal::new("a number of more digits than are computed here")
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a calendar has a date.
pub(crate) fn is_calendar_date(year: i64, month: i64, day: i64) -> bool {
    calendar::days(year, month, day).is_some()
}

/// How deep virtual columns may be made of virtual columns; a server allows only earlier columns, so a longer chain is
/// damage.
const MAX_DEPTH: usize = 64;

/// A virtual column that can be computed.
#[derive(Debug, Clone)]
pub struct GeneratedColumn {
    expression: Typed,
    column_type: ColumnType,
    inputs: Vec<usize>,
    rules: Rules,
}

impl GeneratedColumn {
    /// Plans the virtual column at position `column`.
    ///
    /// # Errors
    /// If its expression has a part that is not known to be computed exactly.
    pub fn new(definition: &TableDefinition, column: usize) -> Result<GeneratedColumn, Refusal> {
        let rules = Rules::new(definition.server == Server::MySql);
        let mut parts = plan::Parts::default();
        let expression = plan::planned(&definition.columns, column, &rules, &mut parts, 0)?;
        if matches!(expression.kind, Kind::Padded { .. }) {
            return Err(Refusal::new("a column with ZEROFILL or of YEAR(2)"));
        }
        if definition.columns[column].display.decimals.is_some() {
            return Err(Refusal::new("it is stored with the digits of FLOAT(M,D) or DOUBLE(M,D)"));
        }
        let column_type = definition.columns[column].column_type.clone();
        let text = definition.columns[column].virtual_expression.as_deref().unwrap_or_default();
        if assign::hides_digits(&syntax::parse(text)?, &expression.kind, &column_type) {
            return Err(Refusal::new("the digits of a DECIMAL that a function gives, as text"));
        }
        assign::check(&expression, &column_type)?;
        Ok(GeneratedColumn { expression, column_type, inputs: parts.inputs, rules })
    }

    /// Positions of the stored columns that it is made of.
    pub fn inputs(&self) -> &[usize] {
        &self.inputs
    }

    /// The value of a row whose values of [`inputs`](Self::inputs) are `row`.
    ///
    /// # Errors
    /// If it cannot be computed exactly for these values, or the server gives an error.
    pub fn value(&self, row: &[Value<'_>]) -> Result<Value<'static>, Refusal> {
        let row: Vec<Datum> = row.iter().map(datum_of).collect::<Result<_, Refusal>>()?;
        let value = self.expression.value(&row)?;
        if assign::is_unclear(&self.expression, &value, &self.column_type) {
            return Err(Refusal::new("the digits of a computed zero"));
        }
        let stored = assign::stored(value, &self.expression.kind, &self.column_type, &self.rules)?;
        output(stored, &self.column_type)
    }
}

/// A stored value.
pub(crate) fn datum_of(value: &Value<'_>) -> Result<Datum, Refusal> {
    Ok(match value {
        Value::Null => Datum::Null,
        Value::Int(number) => Datum::Int(*number),
        Value::UInt(number) => Datum::UInt(*number),
        Value::Float(number) => Datum::Float(*number),
        Value::Double(number) => Datum::Double(*number),
        Value::Decimal(decimal) => Datum::Decimal(datum::Decimal {
            unscaled: i256::from_parts(decimal.low, decimal.high),
            scale: decimal.scale,
        }),
        Value::Text(text) => Datum::Text(text.to_string()),
        Value::Bytes(bytes) => Datum::Bytes(bytes.to_vec()),
        Value::Date(days) => Datum::Date((*days).into()),
        Value::DateTime(micros) => Datum::DateTime(*micros),
        Value::Time(micros) => Datum::Time(*micros),
        Value::ZeroDate(text) => match (zero_date::moment(text), text.len()) {
            (None, _) => return Err(Refusal::new(format!("a date {text}, which no calendar has"))),
            (Some(micros), ..=10) => Datum::Date(micros.div_euclid(calendar::DAY)),
            (Some(micros), _) => Datum::DateTime(micros),
        },
        #[allow(unreachable_patterns, reason = "kinds of values that are added are refused")]
        other => return Err(Refusal::new(format!("{other:?}"))),
    })
}

/// A value of an expression's type.
pub(crate) fn value_of(datum: Datum, kind: &Kind) -> Result<Value<'static>, Refusal> {
    let decimal = |number: i128| value_of(Datum::Decimal(datum::Decimal::whole(number)), kind);
    Ok(match (datum, kind) {
        (Datum::Decimal(number), Kind::Decimal { scale }) => {
            let number = number.rounded(*scale)?;
            let (low, high) = number.unscaled.to_parts();
            Value::Decimal(tanada_innodb::Decimal { high, low, scale: number.scale })
        }
        (Datum::Int(number), Kind::Decimal { .. }) => return decimal(number.into()),
        (Datum::UInt(number), Kind::Decimal { .. }) => return decimal(number.into()),
        (Datum::DateTime(micros), _) => Value::DateTime(micros),
        (datum, _) => output(datum, &ColumnType::Json)?,
    })
}

/// A value of a column's type.
fn output(datum: Datum, column_type: &ColumnType) -> Result<Value<'static>, Refusal> {
    Ok(match datum {
        Datum::Null => Value::Null,
        Datum::Int(number) => Value::Int(number),
        Datum::UInt(number) => Value::UInt(number),
        Datum::Double(number) => Value::Double(number),
        Datum::Float(number) => Value::Float(number),
        Datum::Decimal(number) => {
            let (low, high) = number.unscaled.to_parts();
            Value::Decimal(tanada_innodb::Decimal { high, low, scale: number.scale })
        }
        Datum::Text(text) => Value::Text(text.into()),
        Datum::Bytes(bytes) => Value::Bytes(bytes.into()),
        Datum::Date(days) => {
            zero_date::date(i32::try_from(days).map_err(|_| Refusal::new("a date out of range"))?)
        }
        Datum::DateTime(_) if matches!(column_type, ColumnType::Timestamp { .. }) => {
            return Err(Refusal::new("a TIMESTAMP, which depends on the session's time zone"));
        }
        Datum::DateTime(micros) => zero_date::date_time(micros),
        Datum::Time(micros) => Value::Time(micros),
    })
}
