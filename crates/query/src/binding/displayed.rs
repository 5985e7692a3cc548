//! Columns with ZEROFILL, YEAR(2), FLOAT(M,D) and DOUBLE(M,D) where operators of a plan read them.
//!
//! A column keeps its zeros as a key of groups, in joins and in derived tables. What a UNION, a window or a scalar
//! subquery makes of it has none. MIN and MAX have none either, but the servers show them in groups by some of their
//! plans, so that those are refused. Numbers with a fixed number of digits keep it in sums, averages and extremes.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, binary_expr, lit,
};

use super::as_field::AsField;
use super::field::{kind_of, metadata_of};
use super::rule::Argument;
use super::unsupported;
use crate::expression::{Kind, Refusal, Rules};
use crate::functions::{GROUP_CONCAT, JSON_ARRAYAGG, JSON_OBJECTAGG};
use crate::relation::types::{MYSQL_TYPE, SHORT_YEAR, ZEROS};

/// Digits that an average has more than its argument, and most that a number shows.
const AVERAGE_DIGITS: u8 = 4;
const MAX_DIGITS: u8 = 30;

/// Aggregates whose results have the digits of their argument.
const KEEPS_DIGITS: [&str; 9] =
    ["sum", "avg", "min", "max", "first_value", "last_value", "nth_value", "lag", "lead"];

/// Other aggregates of numbers.
const OF_NUMBERS: [&str; 7] = ["stddev", "stddev_pop", "var", "var_pop", "bit_and", "bit_or", "bit_xor"];

fn is_padded(field: &Field) -> bool {
    field.metadata().contains_key(ZEROS) || is_short_year(field)
}

fn is_short_year(field: &Field) -> bool {
    field.metadata().get(MYSQL_TYPE).is_some_and(|name| name == SHORT_YEAR)
}

/// The digits after the point that a FLOAT(M,D), a DOUBLE(M,D) or what is made of them shows.
fn digits_of(field: &Field) -> Option<u8> {
    let decimals = |kind: &Kind| match kind {
        Kind::Double { decimals } if field.data_type().is_floating() => *decimals,
        _ => None,
    };
    match kind_of(field) {
        Ok(Kind::Padded { of, .. }) => decimals(&of),
        Ok(kind) => decimals(&kind),
        Err(_) => None,
    }
}

fn refused<T>(what: &str, why: &str) -> Result<T> {
    Err(unsupported(what, &Refusal::new(why)))
}

/// The field without zeros before its numbers.
fn plain(field: &FieldRef) -> FieldRef {
    let mut metadata = field.metadata().clone();
    metadata.remove(ZEROS);
    if let Ok(kind) = kind_of(field) {
        metadata.extend(metadata_of(&kind));
    }
    Arc::new(field.as_ref().clone().with_metadata(metadata))
}

/// The operand without zeros before its number.
pub(super) fn without(of: &Argument) -> Expr {
    match is_padded(&of.field) {
        true => AsField::of(of.expression.clone(), &plain(&of.field)),
        false => of.expression.clone(),
    }
}

/// The plan with its columns without zeros before their numbers.
fn without_zeros(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    if !schema.fields().iter().any(|field| is_padded(field)) {
        return Ok(plan);
    }
    let mut columns = Vec::new();
    for (qualifier, field) in schema.iter() {
        let column = Expr::Column(Column::from((qualifier, field)));
        columns.push(match is_padded(field) {
            true if is_short_year(field) => return refused("YEAR(2)", "of a union or a subquery"),
            true => AsField::of(column, &plain(field)).alias_qualified(qualifier.cloned(), field.name()),
            false => column,
        });
    }
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// The operator as it reads such columns.
///
/// # Errors
/// If it is not known what the server shows.
pub(super) fn read(plan: LogicalPlan, rules_of_mysql: bool) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Union(mut union) => {
            for column in 0..union.schema.fields().len() {
                let digits = |input: &Arc<LogicalPlan>| digits_of(input.schema().field(column));
                let first = union.inputs.first().and_then(digits);
                let is_mixed = union.inputs.iter().any(|input| digits(input) != first);
                if is_mixed {
                    return refused("a UNION", "columns that show several numbers of digits");
                }
            }
            let inputs = union.inputs.into_iter();
            union.inputs = inputs
                .map(|input| without_zeros(Arc::unwrap_or_clone(input)).map(Arc::new))
                .collect::<Result<_>>()?;
            Ok(LogicalPlan::Union(union))
        }
        LogicalPlan::RecursiveQuery(query) => {
            let fields =
                query.static_term.schema().fields().iter().chain(query.recursive_term.schema().fields());
            for field in fields {
                if is_padded(field) || digits_of(field).is_some() {
                    return refused(
                        "a recursive query",
                        "a column with ZEROFILL or a fixed number of digits",
                    );
                }
            }
            Ok(LogicalPlan::RecursiveQuery(query))
        }
        // MariaDB shows numbers of a BIT, or the bits, by its plan.
        LogicalPlan::Sort(sort) if !rules_of_mysql && sorts_distinct_bits(&sort.input) => {
            refused("DISTINCT with ORDER BY", "a column of BIT; add 0 to it")
        }
        LogicalPlan::Join(join) => {
            let (left, right) = (join.left.schema(), join.right.schema());
            for (one, other) in &join.on {
                let fields = (one.to_field(left), other.to_field(right));
                let (Ok((_, one)), Ok((_, other))) = fields else { continue };
                let is_unlike = digits_of(&one) != digits_of(&other) || one.data_type() != other.data_type();
                if (digits_of(&one).is_some() || digits_of(&other).is_some()) && is_unlike
                    || is_short_year(&one) != is_short_year(&other)
                {
                    return refused("a join", "columns that show several numbers of digits");
                }
            }
            Ok(LogicalPlan::Join(join))
        }
        LogicalPlan::Aggregate(aggregate) => {
            let schema = merge_schema(&[&aggregate.input]);
            let rolls_up = matches!(aggregate.group_expr.as_slice(), [Expr::GroupingSet(_)]);
            if rolls_up && rules_of_mysql {
                for key in aggregate.group_expr_without_sets()? {
                    if key.to_field(&schema).is_ok_and(|(_, field)| is_padded(&field)) {
                        return refused("ROLLUP", "a column with ZEROFILL");
                    }
                }
            }
            Ok(LogicalPlan::Aggregate(aggregate))
        }
        other => Ok(other),
    }
}

/// Whether rows with a BIT are made distinct.
fn sorts_distinct_bits(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Distinct(_) => {
            plan.schema().fields().iter().any(|field| matches!(kind_of(field), Ok(Kind::Bit { .. })))
        }
        LogicalPlan::Projection(projection) => sorts_distinct_bits(&projection.input),
        _ => false,
    }
}

trait Keys {
    fn group_expr_without_sets(&self) -> Result<Vec<Expr>>;
}

impl Keys for Aggregate {
    fn group_expr_without_sets(&self) -> Result<Vec<Expr>> {
        Ok(match self.group_expr.as_slice() {
            [Expr::GroupingSet(sets)] => sets.distinct_expr().into_iter().cloned().collect(),
            keys => keys.to_vec(),
        })
    }
}

/// A field of integers in the place of one of YEAR, and of BIT where MariaDB shows it as a number: the year 0 is 0.
fn as_number(field: &FieldRef, rules_of_mysql: bool) -> Option<FieldRef> {
    let is_number = match kind_of(field) {
        Ok(Kind::Year) => true,
        Ok(Kind::Bit { .. }) => !rules_of_mysql,
        _ => false,
    };
    is_number.then(|| {
        let mut metadata = field.metadata().clone();
        metadata.remove(MYSQL_TYPE);
        metadata.extend(metadata_of(&Kind::Int { unsigned: true }));
        Arc::new(field.as_ref().clone().with_metadata(metadata))
    })
}

/// The argument of a window that gives one of its values: a YEAR is a number there.
pub(super) fn year_of_window(argument: Expr, schema: &DFSchema) -> Result<Expr> {
    let field = argument.to_field(schema)?.1;
    let number = as_number(&field, true);
    Ok(number.map_or(argument.clone(), |number| AsField::of(argument, &number)))
}

/// The plan of one column with its YEAR or BIT as a number.
fn with_number(plan: LogicalPlan, rules_of_mysql: bool) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let mut first = schema.iter().take(1).map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
    let Some((qualifier, field)) = first.next().filter(|_| schema.fields().len() == 1) else {
        return Ok(plan);
    };
    let Some(number) = as_number(&field, rules_of_mysql) else { return Ok(plan) };
    let column = Expr::Column(Column::from((qualifier.as_ref(), &field)));
    let column = AsField::of(column, &number).alias_qualified(qualifier, field.name());
    LogicalPlanBuilder::from(plan).project(vec![column])?.build()
}

/// A subquery of one value, without zeros before it, and IN over columns that are alike.
pub(super) fn subquery(expression: Expr, schema: &DFSchema, rules_of_mysql: bool) -> Result<Expr> {
    match expression {
        Expr::ScalarSubquery(mut subquery) => {
            let plan = Arc::unwrap_or_clone(subquery.subquery);
            subquery.subquery = Arc::new(with_number(without_zeros(plan)?, rules_of_mysql)?);
            Ok(Expr::ScalarSubquery(subquery))
        }
        Expr::InSubquery(of) => {
            let value = of.expr.to_field(schema)?.1;
            let item = of.subquery.subquery.schema().field(0);
            let is_alike = digits_of(&value) == digits_of(item) && value.data_type() == item.data_type();
            let is_fixed = digits_of(&value).is_some() || digits_of(item).is_some();
            if is_fixed && !is_alike || is_short_year(&value) != is_short_year(item) {
                return refused("IN", "columns that show several numbers of digits");
            }
            Ok(Expr::InSubquery(of))
        }
        other => Ok(other),
    }
}

/// How an aggregate or window takes its first argument, and the type that its result shows, if that is the argument's.
pub(super) fn aggregated(
    name: &str,
    arguments: &mut [Expr],
    schema: &DFSchema,
    is_grouped: bool,
) -> Result<Option<Kind>> {
    let Some(first) = arguments.first_mut() else { return Ok(None) };
    if name == "count" {
        return Ok(None);
    }
    let field = first.to_field(schema)?.1;
    let takes_text = matches!(name, GROUP_CONCAT | JSON_ARRAYAGG | JSON_OBJECTAGG);
    let is_known = takes_text || KEEPS_DIGITS.contains(&name) || OF_NUMBERS.contains(&name);
    if (is_padded(&field) || digits_of(&field).is_some()) && !is_known {
        return refused(name, "a column with ZEROFILL or a fixed number of digits");
    }
    let shown = digits_of(&field).filter(|_| KEEPS_DIGITS.contains(&name)).map(|digits| {
        let more = if name == "avg" { AVERAGE_DIGITS } else { 0 };
        Kind::Double { decimals: Some((digits + more).min(MAX_DIGITS)) }
    });
    if !is_padded(&field) || takes_text {
        return Ok(shown);
    }
    if is_short_year(&field) {
        return refused(name, "a column of YEAR(2)");
    }
    if is_grouped && matches!(name, "min" | "max") {
        return refused(name, "a column with ZEROFILL in groups; add 0 to it");
    }
    *first = AsField::of(first.clone(), &plain(&field));
    Ok(shown)
}

/// A comparison of a FLOAT(M,D) of MySQL with literals, which it takes as FLOAT. `None` if it is none.
///
/// # Errors
/// If it is compared with another constant.
pub(super) fn with_float(name: &str, operands: &[Argument], rules: &Rules) -> Result<Option<Expr>> {
    let is_float = |of: &Argument| {
        *of.field.data_type() == DataType::Float32
            && digits_of(&of.field).is_some()
            && matches!(of.expression, Expr::Column(_))
    };
    let operator = match name {
        "=" => Operator::Eq,
        "<>" => Operator::NotEq,
        "<" => Operator::Lt,
        "<=" => Operator::LtEq,
        ">" => Operator::Gt,
        ">=" => Operator::GtEq,
        "<=>" => Operator::IsNotDistinctFrom,
        "between" => Operator::And,
        _ => return Ok(None),
    };
    let [first, rest @ ..] = operands else { return Ok(None) };
    // MariaDB's IN of a subquery compares all digits.
    let is_unlike = |of: &Argument| digits_of(&of.field) != digits_of(&first.field);
    let has_outer = operands.iter().any(|of| of.expression.contains_outer());
    if has_outer && rest.iter().any(is_unlike) && operands.iter().any(|of| digits_of(&of.field).is_some()) {
        return refused(name, "columns that show several numbers of digits");
    }
    let is_constant = |of: &Argument| !of.expression.any_column_refs() && !of.expression.contains_outer();
    if !rules.mysql || !operands.iter().any(is_float) || !operands.iter().any(is_constant) {
        return Ok(None);
    }
    let other = |of: &Argument| match of.literal() {
        Some(ScalarValue::Null) => Ok(lit(ScalarValue::Float32(None))),
        Some(value) => {
            single(value).map_or_else(|| refused(name, "a FLOAT(M,D) and such a constant"), |of| Ok(lit(of)))
        }
        None if is_float(of) => Ok(of.expression.clone()),
        None => refused(name, "a FLOAT(M,D) and others"),
    };
    let value = other(first)?;
    let compared = match rest {
        [low, high] => binary_expr(
            binary_expr(value.clone(), Operator::GtEq, other(low)?),
            Operator::And,
            binary_expr(value, Operator::LtEq, other(high)?),
        ),
        [right] => binary_expr(value, operator, other(right)?),
        _ => return Ok(None),
    };
    Ok(Some(compared))
}

/// A literal number as FLOAT.
fn single(value: &ScalarValue) -> Option<f32> {
    let number: f64 = match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => text.parse().ok()?,
        value if value.data_type().is_numeric() => match value.cast_to(&DataType::Float64) {
            Ok(ScalarValue::Float64(Some(number))) => number,
            _ => return None,
        },
        _ => return None,
    };
    Some(number as f32).filter(|number| number.is_finite())
}
