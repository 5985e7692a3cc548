//! UUID, INET6 and INET4 compare and sort by their stored bytes, YEAR takes years of two digits.
//!
//! Such values travel as the text that the server prints, one for each value, so that equality of columns,
//! groups and joins need nothing. An analyzer rule does the rest before types are coerced:
//!
//! - a literal is respelled as the text of its value, so that `=` and `IN` find it, by an index too;
//! - `<`, `>`, BETWEEN and ORDER BY compare [`KEY`] of the column, the stored bytes;
//! - whatever else would order the texts (MIN, MAX, windows), or compares with another type, is refused.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, ScalarUDF, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;
use tanada_innodb::ColumnType;
use tanada_innodb::value::{address_key, address_text};

use super::simple::Simple;
use crate::relation::types::MYSQL_TYPE;

/// Name of the function that gives the stored bytes of a UUID, INET6 or INET4.
const KEY: &str = "stored_key";

/// Functions that order their arguments.
const ORDERING: [&str; 4] = ["min", "max", "greatest", "least"];

/// The function [`KEY`].
pub(super) fn key_function() -> ScalarUDF {
    Simple::function(KEY, |_| Ok(DataType::Binary), keys)
}

fn keys(arrays: &[ArrayRef], fields: &[FieldRef]) -> Result<ArrayRef> {
    let ([array], [field]) = (arrays, fields) else { return plan_err!("{KEY} takes one value") };
    let Some(column_type) = address_type(field.metadata().get(MYSQL_TYPE).map_or("", String::as_str)) else {
        return plan_err!("{KEY} takes a UUID or an address");
    };
    let texts = cast(array, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    let keys = (0..texts.len()).map(|row| match texts.is_null(row) {
        true => Ok(None),
        false => match address_key(&column_type, texts.value(row)) {
            Some(key) => Ok(Some(key)),
            None => plan_err!("'{}' is no {column_type:?}", texts.value(row)),
        },
    });
    Ok(Arc::new(keys.collect::<Result<BinaryArray>>()?))
}

fn address_type(mysql_type: &str) -> Option<ColumnType> {
    match mysql_type {
        "uuid" => Some(ColumnType::Uuid),
        "inet6" => Some(ColumnType::Inet6),
        "inet4" => Some(ColumnType::Inet4),
        _ => None,
    }
}

/// The rule.
#[derive(Debug)]
pub struct StoredOrderRule;

impl AnalyzerRule for StoredOrderRule {
    fn name(&self) -> &str {
        "order_of_stored_values"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let rewrite_plan = |plan: LogicalPlan| {
            let schema = merge_schema(&plan.inputs());
            if let LogicalPlan::Join(join) = &plan {
                for (left, right) in &join.on {
                    same_type(left, right, &schema)?;
                }
            }
            let sorts = matches!(plan, LogicalPlan::Sort(_));
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expression| {
                let name = names.save(&expression);
                let rewritten = expression.transform_up(|node| rewrite(node, &schema))?;
                let keyed =
                    rewritten.transform_data(|node| match sorts && address(&node, &schema).is_some() {
                        true => Ok(Transformed::yes(key(node))),
                        false => Ok(Transformed::no(node)),
                    })?;
                Ok(keyed.update_data(|expression| if sorts { expression } else { name.restore(expression) }))
            })
        };
        plan.transform_up_with_subqueries(rewrite_plan).data()
    }
}

fn rewrite(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            compared(*left, op, *right, schema)
        }
        Expr::Between(between) if is_special(&between.expr, schema) => {
            let low = compared((*between.expr).clone(), Operator::GtEq, *between.low, schema)?.data;
            let high = compared(*between.expr, Operator::LtEq, *between.high, schema)?.data;
            let both = low.and(high);
            Ok(Transformed::yes(if between.negated { Expr::Not(Box::new(both)) } else { both }))
        }
        Expr::InList(mut list) if is_special(&list.expr, schema) => {
            for item in &mut list.list {
                *item = respelled(&list.expr, item.clone(), schema)?;
            }
            Ok(Transformed::yes(Expr::InList(list)))
        }
        Expr::InSubquery(within) if address(&within.expr, schema).is_some() => {
            let inner = within.subquery.subquery.schema();
            let same = mysql_type(&within.expr, schema).as_deref()
                == inner
                    .fields()
                    .first()
                    .and_then(|field| field.metadata().get(MYSQL_TYPE))
                    .map(String::as_str);
            if same { Ok(Transformed::no(Expr::InSubquery(within))) } else { unlike() }
        }
        Expr::AggregateFunction(aggregate) => {
            let orders = ORDERING.contains(&aggregate.func.name());
            let sorted = aggregate.params.order_by.iter().any(|sort| address(&sort.expr, schema).is_some());
            let of = aggregate.params.args.iter().any(|argument| address(argument, schema).is_some());
            if sorted || (orders && of) {
                unordered()
            } else {
                Ok(Transformed::no(Expr::AggregateFunction(aggregate)))
            }
        }
        Expr::WindowFunction(window) => {
            let params = &window.params;
            let orders = ORDERING.contains(&window.fun.name());
            let sorted = params.order_by.iter().any(|sort| address(&sort.expr, schema).is_some());
            let of = params.args.iter().any(|argument| address(argument, schema).is_some());
            if sorted || (orders && of) {
                unordered()
            } else {
                Ok(Transformed::no(Expr::WindowFunction(window)))
            }
        }
        Expr::ScalarFunction(function) if ORDERING.contains(&function.name()) => {
            match function.args.iter().any(|argument| address(argument, schema).is_some()) {
                true => unordered(),
                false => Ok(Transformed::no(Expr::ScalarFunction(function))),
            }
        }
        other => Ok(Transformed::no(other)),
    }
}

fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn unordered<T>() -> Result<T> {
    plan_err!(
        "a UUID, INET6 or INET4 is ordered by its bytes, which is done for comparisons and ORDER BY alone; use these"
    )
}

fn unlike<T>() -> Result<T> {
    plan_err!(
        "a UUID, INET6 or INET4 is compared with another type; compare it with a literal or a column of its type"
    )
}

/// A comparison; as it is if neither side is of these types.
fn compared(left: Expr, operator: Operator, right: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if !is_special(&left, schema) && !is_special(&right, schema) {
        return Ok(Transformed::no(binary_expr(left, operator, right)));
    }
    if address(&left, schema).is_some() || address(&right, schema).is_some() {
        same_type(&left, &right, schema)?;
    }
    let ordered = matches!(operator, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    let side = |of: Expr, other: &Expr| -> Result<Expr> {
        let of_address = address(other, schema).or_else(|| address(&of, schema));
        match (of_address, text(&of)) {
            (Some(column_type), Some(text)) if ordered => match address_key(&column_type, text) {
                Some(bytes) => Ok(lit(ScalarValue::Binary(Some(bytes)))),
                None => no_address(text),
            },
            (Some(_), None) if ordered && !is_null(&of) => Ok(key(of)),
            _ => respelled(other, of, schema),
        }
    };
    let compared = (side(left.clone(), &right)?, side(right, &left)?);
    Ok(Transformed::yes(binary_expr(compared.0, operator, compared.1)))
}

fn no_address<T>(text: &str) -> Result<T> {
    plan_err!("'{text}' is no value of the column's type; write it as the column shows it")
}

/// The literal `item` as the column `of` spells it; as it is if it is no literal.
fn respelled(of: &Expr, item: Expr, schema: &DFSchema) -> Result<Expr> {
    if let Some(column_type) = address(of, schema) {
        return match text(&item) {
            Some(text) => match address_text(&column_type, text) {
                Some(text) => Ok(lit(text)),
                None => no_address(text),
            },
            None => {
                same_type(of, &item, schema)?;
                Ok(item)
            }
        };
    }
    if mysql_type(of, schema).as_deref() != Some("year") {
        return Ok(item);
    }
    let year = match (&item, text(&item)) {
        (_, Some(text)) => match year_of_text(text) {
            Some(year) => year,
            None => return plan_err!("'{text}' is no year; write it with four digits"),
        },
        (Expr::Literal(ScalarValue::Int64(Some(year @ 1..=99)), _), _) => with_century(*year),
        _ => return Ok(item),
    };
    Ok(lit(year))
}

/// The year that a text means; `None` of what is no year of one, two or four digits.
fn year_of_text(text: &str) -> Option<i64> {
    let year: i64 = text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())??;
    match text.len() {
        1 | 2 => Some(with_century(year)),
        4 if year == 0 || (1901..=2155).contains(&year) => Some(year),
        _ => None,
    }
}

/// 0 to 69 are of this century, 70 to 99 of the last.
fn with_century(year: i64) -> i64 {
    if year < 70 { 2000 + year } else { 1900 + year }
}

fn same_type(left: &Expr, right: &Expr, schema: &DFSchema) -> Result<()> {
    let is_literal = |side: &Expr| text(side).is_some() || is_null(side);
    let types = (address(left, schema), address(right, schema));
    match types.0 == types.1 || is_literal(left) || is_literal(right) {
        true => Ok(()),
        false => unlike(),
    }
}

fn key(column: Expr) -> Expr {
    key_function().call(vec![column])
}

fn is_special(expression: &Expr, schema: &DFSchema) -> bool {
    let name = mysql_type(expression, schema);
    name.is_some_and(|name| name == "year" || address_type(&name).is_some())
}

/// The type of a column of UUIDs or addresses.
fn address(expression: &Expr, schema: &DFSchema) -> Option<ColumnType> {
    address_type(&mysql_type(expression, schema)?)
}

/// The server's type of a column.
fn mysql_type(expression: &Expr, schema: &DFSchema) -> Option<String> {
    match expression {
        Expr::Column(column) => schema.field_from_column(column).ok()?.metadata().get(MYSQL_TYPE).cloned(),
        Expr::Alias(alias) => mysql_type(&alias.expr, schema),
        Expr::OuterReferenceColumn(field, _) => field.metadata().get(MYSQL_TYPE).cloned(),
        _ => None,
    }
}

fn text(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

fn is_null(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(value, _) if value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_of_two_digits_get_their_century() {
        for (text, year) in [("99", Some(1999)), ("69", Some(2069)), ("0", Some(2000)), ("5", Some(2005))] {
            assert_eq!(year_of_text(text), year, "{text}");
        }
        assert_eq!(year_of_text("1999"), Some(1999));
        assert_eq!(year_of_text("0000"), Some(0));
        assert_eq!(year_of_text("1800"), None);
        assert_eq!(year_of_text("x"), None);
    }
}
