//! UNION, EXCEPT and INTERSECT of columns of several types: each becomes the servers' common type of them.
//!
//! Types that the engine brings together as the servers do are left to it.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Distinct, Expr, Join, LogicalPlan, Projection};

use super::bound::{BoundCall, input};
use super::field::kind_of;
use super::rule::Inputs;
use super::statement::StatementRules;
use super::unsupported;
use crate::expression::{Datum, Kind, NONE, Refusal, Typed, branch};
use crate::relation::types::MYSQL_TYPE;
use crate::text::double_text;

/// Characters of the types.
const FLOAT_CHARACTERS: usize = 12;
const DOUBLE_CHARACTERS: usize = 22;

/// The name in messages.
const NAME: &str = "a set operation";

/// The inputs of a UNION.
pub(super) fn united(inputs: Vec<Arc<LogicalPlan>>, of: &StatementRules) -> Result<Vec<Arc<LogicalPlan>>> {
    let inputs = common(inputs, of, |left, right| left.is_numeric() && right.is_numeric())?;
    with_one_metadata(inputs)
}

/// The inputs of a UNION with the same metadata of each column that may be NULL in a later input alone, by the last
/// input that has it: there the engine's logical operator goes by the first input and its physical one by the later.
fn with_one_metadata(inputs: Vec<Arc<LogicalPlan>>) -> Result<Vec<Arc<LogicalPlan>>> {
    let count = inputs.iter().map(|input| input.schema().fields().len()).min().unwrap_or(0);
    let merged = |column: usize| {
        let all = || inputs.iter().map(|input| input.schema().field(column).metadata());
        let merged: HashMap<String, String> =
            all().flatten().map(|(key, value)| (key.clone(), value.clone())).collect();
        let is_null = |input: &Arc<LogicalPlan>| input.schema().field(column).is_nullable();
        let is_later = inputs.first().is_some_and(|first| !is_null(first)) && inputs.iter().any(is_null);
        let differs = is_later && all().any(|metadata| *metadata != merged);
        differs.then(|| FieldMetadata::from(merged))
    };
    let merged: Vec<Option<FieldMetadata>> = (0..count).map(merged).collect();
    if merged.iter().all(Option::is_none) {
        return Ok(inputs);
    }
    let projected = |input: Arc<LogicalPlan>| {
        let columns = input.schema().iter().enumerate().map(|(no, (qualifier, field))| {
            let column = Expr::Column(Column::from((qualifier, field)));
            match merged.get(no).cloned().flatten() {
                Some(metadata) => {
                    column.alias_qualified_with_metadata(qualifier.cloned(), field.name(), Some(metadata))
                }
                None => column,
            }
        });
        let columns = columns.collect();
        Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, input)?)))
    };
    inputs.into_iter().map(projected).collect()
}

/// An EXCEPT or INTERSECT, which is a join of rows that are equal.
pub(super) fn joined(mut join: Join, of: &StatementRules) -> Result<LogicalPlan> {
    let is_distinct = matches!(join.left.as_ref(), LogicalPlan::Distinct(Distinct::All(_)));
    let left = match Arc::unwrap_or_clone(join.left) {
        LogicalPlan::Distinct(Distinct::All(input)) => input,
        other => Arc::new(other),
    };
    let mut sides =
        common(vec![left, join.right], of, |left, right| left.is_integer() && right.is_integer())?
            .into_iter();
    let (Some(left), Some(right)) = (sides.next(), sides.next()) else {
        return datafusion::common::internal_err!("a set operation of two sides");
    };
    join.left = match is_distinct {
        true => Arc::new(LogicalPlan::Distinct(Distinct::All(left))),
        false => left,
    };
    join.right = right;
    LogicalPlan::Join(join).recompute_schema()
}

/// The inputs with columns of common types, but for those of which `is_known` says that the engine does it.
fn common(
    inputs: Vec<Arc<LogicalPlan>>,
    of: &StatementRules,
    is_known: impl Fn(&DataType, &DataType) -> bool,
) -> Result<Vec<Arc<LogicalPlan>>> {
    let count = inputs.first().map_or(0, |input| input.schema().fields().len());
    if inputs.iter().any(|input| input.schema().fields().len() != count) {
        return Ok(inputs);
    }
    let mut targets = Vec::with_capacity(count);
    for column in 0..count {
        targets.push(target(&inputs, column, of, &is_known)?);
    }
    if targets.iter().all(Option::is_none) {
        return Ok(inputs);
    }
    inputs.into_iter().map(|input| converted(input, &targets, of)).collect()
}

/// The common type of a column; `None` if the engine's will do.
fn target(
    inputs: &[Arc<LogicalPlan>],
    column: usize,
    of: &StatementRules,
    is_known: &impl Fn(&DataType, &DataType) -> bool,
) -> Result<Option<Kind>> {
    if let Some(kind) = floating(inputs, column, of.rules.mysql) {
        return Ok(kind);
    }
    let mut common: Option<(DataType, Kind)> = None;
    let (mut differs, mut has_bit) = (false, false);
    for input in inputs {
        let field = input.schema().field(column);
        let own = field.data_type().clone();
        if own == DataType::Null {
            continue;
        }
        let Ok(kind) = kind_of(field) else { return Ok(None) };
        let kind = typed(kind, of).kind;
        has_bit |= matches!(kind, Kind::Bit { .. });
        common = Some(match common {
            None => (own, kind),
            Some((with, kind_of_others)) => {
                let is_choice = |kind: &Kind| matches!(kind, Kind::Choice(_));
                let is_known = is_known(&own, &with) || own.is_string() && with.is_string();
                differs |= own != with && !is_known;
                let is_time = |kind: &Kind| matches!(kind, Kind::DateTime { .. } | Kind::Time { .. });
                // Of several fractions of seconds the longest is shown.
                differs |= kind != kind_of_others
                    && (is_choice(&kind)
                        || is_choice(&kind_of_others)
                        || is_time(&kind) && is_time(&kind_of_others));
                if has_bit && kind != kind_of_others {
                    return Err(unsupported(NAME, &Refusal::new("a BIT with another type")));
                }
                let merged = kind_of_others.common(&kind, of.rules.mysql);
                match merged {
                    Ok(merged) => (own, merged),
                    Err(refusal) if differs => return Err(unsupported(NAME, &refusal)),
                    Err(_) => return Ok(None),
                }
            }
        });
    }
    match common {
        Some((_, Kind::Text(own))) if differs && own.strength == NONE => {
            Err(unsupported(NAME, &Refusal::new("Illegal mix of collations for operation 'UNION'")))
        }
        Some((_, kind)) if differs => Ok(Some(kind)),
        _ => Ok(None),
    }
}

/// Numbers, by what a union makes of them beside a FLOAT.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
enum Number {
    /// Integers of up to 24 bits, and years.
    Short,
    Integer,
    /// BIGINT, and what is computed.
    Long,
    Decimal,
    Float,
    Double,
}

impl Number {
    fn of(field: &Field) -> Option<Number> {
        let is_medium =
            field.metadata().get(MYSQL_TYPE).is_some_and(|mysql_type| mysql_type.starts_with("mediumint"));
        Some(match field.data_type() {
            DataType::Int8 | DataType::Int16 | DataType::UInt8 | DataType::UInt16 => Number::Short,
            DataType::Int32 | DataType::UInt32 if is_medium => Number::Short,
            DataType::Int32 | DataType::UInt32 => Number::Integer,
            DataType::Boolean | DataType::Int64 | DataType::UInt64 => Number::Long,
            DataType::Decimal128(..) | DataType::Decimal256(..) => Number::Decimal,
            DataType::Float32 => Number::Float,
            DataType::Float64 => Number::Double,
            _ => return None,
        })
    }

    /// What both become. MySQL keeps a FLOAT before a BIGINT.
    fn with(self, other: Number, mysql: bool) -> Number {
        use Number::{Double, Float, Long, Short};
        match (self, other) {
            (Float, Float | Short) | (Short, Float) => Float,
            (Float, Long) if mysql => Float,
            (Float | Double, _) | (_, Float | Double) => Double,
            (left, right) if left < right => right,
            (left, _) => left,
        }
    }
}

/// What numbers become among which is a FLOAT or DOUBLE, if they are not all of its type; the outer `None` if there is
/// none, or they are not all numbers.
fn floating(inputs: &[Arc<LogicalPlan>], column: usize, mysql: bool) -> Option<Option<Kind>> {
    let mut numbers = Vec::with_capacity(inputs.len());
    for input in inputs {
        let field = input.schema().field(column);
        let has_digits = matches!(kind_of(field), Ok(Kind::Double { decimals: Some(_) } | Kind::Bit { .. }));
        match field.data_type() {
            DataType::Null => {}
            _ if has_digits => return None,
            _ => numbers.push(Number::of(field)?),
        }
    }
    let common = numbers.iter().copied().reduce(|left, right| left.with(right, mysql))?;
    let kind = match common {
        Number::Float => Kind::Float,
        Number::Double => Kind::Double { decimals: None },
        _ => return None,
    };
    Some(numbers.iter().any(|number| *number != common).then_some(kind))
}

/// The one input of a conversion.
fn typed(kind: Kind, of: &StatementRules) -> Typed {
    input(0, kind, &of.rules)
}

/// A number of a column that becomes a text, if the text fits the number's type: the servers spell a FLOAT with the
/// digits of a DOUBLE, and as many as the longest of the texts beside it has letters.
fn number_of_text(of: Typed, target: &Kind) -> Typed {
    let characters = match (&of.kind, target) {
        (Kind::Float, Kind::Text(_) | Kind::Bytes) => FLOAT_CHARACTERS,
        (Kind::Double { decimals: None }, Kind::Text(_) | Kind::Bytes) => DOUBLE_CHARACTERS,
        _ => return of,
    };
    Typed::call(Kind::Double { decimals: None }, vec![of], move |values| {
        let number = match &values[0] {
            Datum::Float(number) => f64::from(*number),
            Datum::Double(number) => *number,
            _ => return Ok(Datum::Null),
        };
        match double_text(number).len() <= characters {
            true => Ok(Datum::Double(number)),
            false => Err(Refusal::new("a number as text of more characters than its type has")),
        }
    })
}

fn converted(
    plan: Arc<LogicalPlan>,
    targets: &[Option<Kind>],
    of: &StatementRules,
) -> Result<Arc<LogicalPlan>> {
    let columns = plan.schema().iter().zip(targets).map(|((qualifier, field), target)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        let Some(target) = target else { return Ok(column) };
        let kind = match field.data_type() {
            DataType::Null => Kind::Null,
            _ => kind_of(field).map_err(|refusal| unsupported(NAME, &refusal))?,
        };
        let typed = match kind {
            Kind::Null => Typed { kind: target.clone(), ..typed(Kind::Null, of) },
            kind => branch(number_of_text(typed(kind, of), target), target, false),
        };
        let inputs = Inputs { expressions: vec![column], parts: Vec::new() };
        let bound = BoundCall::expression(NAME, typed, inputs, &of.query);
        Ok(bound.alias_qualified(qualifier.cloned(), field.name()))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, plan)?)))
}
