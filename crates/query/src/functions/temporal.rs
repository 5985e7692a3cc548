//! Dates and times in comparisons: with strings, with each other.
//!
//! - A TIME is an Arrow duration, since it may be negative or longer than a day. DataFusion compares durations of one
//!   unit only, and no strings.
//! - A DATETIME reaches from the year 1000 to 9999, but DataFusion would compare it with strings and dates in
//!   nanoseconds, which reach from 1677 to 2262 only.
//!
//! So both sides are brought to one type here, in whole microseconds at the finest: while the SQL is planned for
//! operators, in an analyzer rule (before types are coerced) for BETWEEN and IN. A literal takes the column's own unit,
//! so that the comparison can be answered by an index; if it has finer digits, the comparison is with the tick before
//! or after it.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, cast, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::floating;

/// For comparison operators.
#[derive(Debug)]
pub struct TemporalPlanner;

impl ExprPlanner for TemporalPlanner {
    fn plan_binary_op(
        &self,
        mut raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let operator = match raw.op {
            BinaryOperator::Eq => Operator::Eq,
            BinaryOperator::NotEq => Operator::NotEq,
            BinaryOperator::Lt => Operator::Lt,
            BinaryOperator::LtEq => Operator::LtEq,
            BinaryOperator::Gt => Operator::Gt,
            BinaryOperator::GtEq => Operator::GtEq,
            BinaryOperator::Plus | BinaryOperator::Minus => {
                return Ok(PlannerResult::Original(moved(raw, schema)?));
            }
            _ => return Ok(PlannerResult::Original(raw)),
        };
        let before = (raw.left.clone(), raw.right.clone());
        Ok(match compared(raw.left, operator, raw.right, schema)? {
            Expr::BinaryExpr(compared)
                if compared.op == operator
                    && (&*compared.left, &*compared.right) == (&before.0, &before.1) =>
            {
                (raw.left, raw.right) = before;
                PlannerResult::Original(raw)
            }
            planned => PlannerResult::Planned(planned),
        })
    }
}

/// A date or time and an interval: a part of a day, or of a second, is not lost because the date has none.
fn moved(mut raw: RawBinaryExpr, schema: &DFSchema) -> Result<RawBinaryExpr> {
    let (Ok(left), Ok(right)) = (raw.left.get_type(schema), raw.right.get_type(schema)) else {
        return Ok(raw);
    };
    let nanoseconds = |expression: &Expr| match expression {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) => interval.nanoseconds,
        _ => 0,
    };
    let before = raw.left.clone();
    for (operand, of, other, other_type) in
        [(&mut raw.left, &left, raw.right.clone(), &right), (&mut raw.right, &right, before, &left)]
    {
        no_number(of, other_type)?;
        let nanoseconds = nanoseconds(&other);
        let unit = match of {
            DataType::Date32 if nanoseconds % 1_000_000_000 == 0 && nanoseconds != 0 => TimeUnit::Second,
            DataType::Date32 | DataType::Timestamp(TimeUnit::Second | TimeUnit::Millisecond, _)
                if nanoseconds % 1_000_000_000 != 0 =>
            {
                TimeUnit::Microsecond
            }
            _ => continue,
        };
        *operand = cast(operand.clone(), DataType::Timestamp(unit, None));
    }
    Ok(raw)
}

/// A date and a number: the server makes a number like 20210305 of the date, DataFusion one like 18691.
fn no_number(left: &DataType, right: &DataType) -> Result<()> {
    let mixed = |date: &DataType, number: &DataType| {
        matches!(date, DataType::Date32 | DataType::Timestamp(..)) && number.is_numeric()
    };
    match mixed(left, right) || mixed(right, left) {
        true => plan_err!("a date meets a number; write it as '2021-03-05', and a span as INTERVAL 1 DAY"),
        false => Ok(()),
    }
}

/// For BETWEEN and IN; of floating-point numbers, too, since that is the same walk.
#[derive(Debug)]
pub struct TemporalRule;

impl AnalyzerRule for TemporalRule {
    fn name(&self) -> &str {
        "comparisons_of_one_type"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let rewrite_plan = |plan: LogicalPlan| {
            let schema = merge_schema(&plan.inputs());
            // What is above refers to outputs by name.
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expression| {
                let name = names.save(&expression);
                let rewritten = expression.transform_up(|node| rewrite(node, &schema))?;
                Ok(rewritten.update_data(|expression| name.restore(expression)))
            })
        };
        plan.transform_up_with_subqueries(rewrite_plan).data()
    }
}

fn rewrite(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (any, negated) = match expression {
        Expr::Between(between) if is_temporal(&between.expr, schema) => {
            let low = compared((*between.expr).clone(), Operator::GtEq, *between.low, schema)?;
            let high = compared(*between.expr, Operator::LtEq, *between.high, schema)?;
            (low.and(high), between.negated)
        }
        Expr::InList(list) if is_temporal(&list.expr, schema) => {
            let equals =
                list.list.into_iter().map(|item| compared((*list.expr).clone(), Operator::Eq, item, schema));
            let any = equals.collect::<Result<Vec<_>>>()?.into_iter().reduce(Expr::or);
            (any.unwrap_or_else(|| lit(false)), list.negated)
        }
        other => return floating::rewrite(other, schema),
    };
    Ok(Transformed::yes(if negated { Expr::Not(Box::new(any)) } else { any }))
}

fn is_temporal(expression: &Expr, schema: &DFSchema) -> bool {
    let data_type = expression.get_type(schema);
    matches!(data_type, Ok(DataType::Duration(_) | DataType::Timestamp(..) | DataType::Date32))
}

/// A comparison with both sides as one type; as they are if that is DataFusion's to do.
fn compared(left: Expr, operator: Operator, right: Expr, schema: &DFSchema) -> Result<Expr> {
    let (Ok(left_type), Ok(right_type)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(binary_expr(left, operator, right));
    };
    no_number(&left_type, &right_type)?;
    if let Some(text) = text(&right) {
        return with_text(left, &left_type, operator, right.clone(), text);
    }
    if let (Some(text), Some(swapped)) = (text(&left), operator.swap()) {
        return with_text(right, &right_type, swapped, left.clone(), text);
    }
    let micros = |expression: Expr, data_type: &DataType| match data_type {
        DataType::Timestamp(_, zone) => {
            cast(expression, DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        DataType::Duration(_) => cast(expression, DataType::Duration(TimeUnit::Microsecond)),
        _ => cast(expression, DataType::Timestamp(TimeUnit::Microsecond, None)),
    };
    use DataType::{Date32, Duration, Timestamp};
    let (left, right) = match (&left_type, &right_type) {
        (Timestamp(..), Date32) => (left, cast(right, left_type)),
        (Date32, Timestamp(unit, _)) if *unit != TimeUnit::Nanosecond => (cast(left, right_type), right),
        (Date32, Timestamp(..)) => (micros(left, &left_type), micros(right, &right_type)),
        (Timestamp(..), Timestamp(..)) | (Duration(_), Duration(_)) if left_type != right_type => {
            (micros(left, &left_type), micros(right, &right_type))
        }
        _ => (left, right),
    };
    Ok(binary_expr(left, operator, right))
}

/// The text of a string literal, or of one that is cast to DataFusion's timestamp, as `TIMESTAMP '...'` is planned.
fn text(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        Expr::Cast(cast) if *cast.field.data_type() == DataType::Timestamp(TimeUnit::Nanosecond, None) => {
            text(&cast.expr)
        }
        _ => None,
    }
}

/// A temporal expression compared with the literal `given`, which says `text`.
fn with_text(
    expression: Expr,
    data_type: &DataType,
    operator: Operator,
    given: Expr,
    text: &str,
) -> Result<Expr> {
    let micros = match data_type {
        DataType::Duration(_) => match parse_time(text) {
            Some(micros) => micros,
            None => return plan_err!("'{text}' is no time; write [-]hours:minutes[:seconds[.fraction]]"),
        },
        DataType::Timestamp(unit, zone) if *unit != TimeUnit::Nanosecond => match parse_date_time(text, zone)
        {
            Some(micros) => micros,
            None => {
                return plan_err!("'{text}' is no date and time; write year-month-day hours:minutes:seconds");
            }
        },
        // A string that is a date alone is compared as one, a time stamp is not.
        DataType::Date32 if !matches!(given, Expr::Literal(..)) || has_clock(text) => {
            match parse_date_time(text, &None) {
                Some(micros) => {
                    let finest = cast(expression, DataType::Timestamp(TimeUnit::Microsecond, None));
                    return Ok(binary_expr(
                        finest,
                        operator,
                        lit(ScalarValue::TimestampMicrosecond(Some(micros), None)),
                    ));
                }
                None => return Ok(binary_expr(expression, operator, given)),
            }
        }
        _ => return Ok(binary_expr(expression, operator, given)),
    };
    let per_tick = match data_type {
        DataType::Duration(TimeUnit::Second) | DataType::Timestamp(TimeUnit::Second, _) => 1_000_000,
        DataType::Duration(TimeUnit::Millisecond) | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000,
        _ => 1,
    };
    let ticks = micros.div_euclid(per_tick);
    let null = || lit(ScalarValue::Boolean(None));
    // A literal between two ticks equals nothing; what is less than it is less than the next tick.
    let ticks = match operator {
        _ if micros.rem_euclid(per_tick) == 0 => ticks,
        Operator::Eq => return Ok(expression.is_null().and(null())),
        Operator::NotEq => return Ok(expression.is_not_null().or(null())),
        Operator::Lt | Operator::GtEq => ticks + 1,
        _ => ticks,
    };
    let ticks = ScalarValue::Int64(Some(ticks)).cast_to(data_type)?;
    Ok(binary_expr(expression, operator, lit(ticks)))
}

/// Whether a date and time is not the beginning of its day.
fn has_clock(text: &str) -> bool {
    const DAY_MICROS: i64 = 86_400_000_000;
    parse_date_time(text, &None).is_some_and(|micros| micros.rem_euclid(DAY_MICROS) != 0)
}

/// Microseconds since the epoch.
fn parse_date_time(text: &str, zone: &Option<Arc<str>>) -> Option<i64> {
    let finest = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
    match ScalarValue::try_from_string(text.to_string(), &finest) {
        Ok(ScalarValue::TimestampMicrosecond(micros, _)) => micros,
        _ => None,
    }
}

/// Microseconds of `[-]hours:minutes[:seconds[.fraction]]`.
fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':').map(|part| {
        let digits = !part.is_empty() && part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
        if digits { part.parse::<i64>().ok() } else { None }
    });
    let hours = parts.next()??;
    let minutes = parts.next()?.filter(|minutes| *minutes < 60)?;
    let seconds = match parts.next() {
        Some(seconds) => seconds.filter(|seconds| *seconds < 60)?,
        None => 0,
    };
    if parts.next().is_some() || fraction.len() > 6 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    Some(sign * (((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        let cases = [
            ("10:11", Some(36_660_000_000)),
            ("-838:59:59", Some(-3_020_399_000_000)),
            ("00:00:01.5", Some(1_500_000)),
            ("10:61:00", None),
            ("10", None),
            ("a:b", None),
            ("1:2:3:4", None),
        ];
        for (text, micros) in cases {
            assert_eq!(parse_time(text), micros, "{text}");
        }
    }

    #[test]
    fn literals_take_the_unit_of_the_column() {
        let column = || datafusion::prelude::col("c");
        let seconds = DataType::Timestamp(TimeUnit::Second, None);
        let at = |seconds| lit(ScalarValue::TimestampSecond(Some(seconds), None));
        let compared = |operator, text| with_text(column(), &seconds, operator, lit(""), text).unwrap();
        assert_eq!(compared(Operator::Lt, "9999-12-31 23:59:59"), column().lt(at(253_402_300_799)));
        // Half a second lies between two ticks.
        assert_eq!(compared(Operator::Lt, "1970-01-01 00:00:00.5"), column().lt(at(1)));
        assert_eq!(compared(Operator::LtEq, "1970-01-01 00:00:00.5"), column().lt_eq(at(0)));
        assert_eq!(compared(Operator::Gt, "1970-01-01 00:00:00.5"), column().gt(at(0)));
        assert_eq!(compared(Operator::GtEq, "1970-01-01 00:00:00.5"), column().gt_eq(at(1)));
        let never = column().is_null().and(lit(ScalarValue::Boolean(None)));
        assert_eq!(compared(Operator::Eq, "1970-01-01 00:00:00.5"), never);
    }
}
