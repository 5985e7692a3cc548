//! FLOAT(M,D), DOUBLE(M,D), ZEROFILL and YEAR(2) in expressions.
//!
//! A comparison of a FLOAT(M,D) with a number that has a fixed number of digits, too, takes both for equal if they differ
//! by less than half a digit behind the longer of them (both servers, `Arg_comparator`). `1.1` of a FLOAT(5,2) is the
//! single 1.10000002, so `f = 1.1` holds, and `f > 1.1` does not. Sums and averages have D digits and D + 4.
//!
//! An analyzer rule rewrites these comparisons before types are coerced. What else would be made of such columns is
//! refused, since the number of digits that the server shows depends on the function. So are results that keep the type of
//! a ZEROFILL or YEAR(2) column here and lose it on the servers: unions, scalar subqueries and windows.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, binary_expr, cast, lit,
};
use datafusion::optimizer::AnalyzerRule;

use super::stored_order::SHORT_YEAR;
use super::text::TEXT;
use crate::relation::types::MYSQL_TYPE;
use crate::text::NumberFormat;
use crate::{Error, ErrorKind};

/// Aggregates that show the digits of their argument, or are of its number alone.
const AGGREGATES: [&str; 3] = ["sum", "avg", "count"];

/// Digits after the point of a FLOAT(M,D) or DOUBLE(M,D), by the name of its type.
pub(super) fn digits_of(mysql_type: Option<&String>) -> Option<usize> {
    NumberFormat::of_type(mysql_type?).decimals()
}

/// The rule.
#[derive(Debug)]
pub struct FixedDigitsRule;

impl AnalyzerRule for FixedDigitsRule {
    fn name(&self) -> &str {
        "fixed_digits"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let rewrite_plan = |plan: LogicalPlan| {
            let schema = merge_schema(&plan.inputs());
            if let LogicalPlan::Join(join) = &plan {
                for (left, right) in &join.on {
                    if type_of(left, &schema) != type_of(right, &schema)
                        && (digits(left, &schema).is_some() || digits(right, &schema).is_some())
                    {
                        return refused();
                    }
                }
            }
            if matches!(plan, LogicalPlan::Union(_)) {
                check_union(&plan)?;
            }
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expression| {
                let name = names.save(&expression);
                let rewritten = expression.transform_up(|node| rewrite(node, &schema))?;
                if is_cast_of_digits(&rewritten.data, &schema) {
                    return refused();
                }
                Ok(rewritten.update_data(|expression| name.restore(expression)))
            })
        };
        plan.transform_up_with_subqueries(rewrite_plan).data()
    }
}

fn refused<T>() -> Result<T> {
    unsupported(
        "a FLOAT(M,D) or DOUBLE(M,D) is compared with numbers, summed and averaged; what else is made of it shows other \
         digits on the server and is not supported",
    )
}

fn padded<T>(what: &str) -> Result<T> {
    unsupported(&format!("{what} of a ZEROFILL or YEAR(2) column is not supported"))
}

fn unsupported<T>(message: &str) -> Result<T> {
    Err(Error::new(ErrorKind::Unsupported, message).into())
}

/// Whether a type fills numbers with zeros, or is YEAR(2).
fn is_padded(mysql_type: Option<&String>) -> bool {
    mysql_type.is_some_and(|name| name.ends_with(" zerofill") || name == SHORT_YEAR)
}

/// A union shows a ZEROFILL column without zeros, and rounds a FLOAT(M,D) to the digits of all its parts.
fn check_union(union: &LogicalPlan) -> Result<()> {
    for column in 0..union.schema().fields().len() {
        let types: Vec<Option<String>> = union
            .inputs()
            .iter()
            .map(|input| input.schema().field(column).metadata().get(MYSQL_TYPE).cloned())
            .collect();
        if types.iter().any(|name| is_padded(name.as_ref())) {
            return padded("a union");
        }
        let is_mixed = types.windows(2).any(|pair| pair[0] != pair[1]);
        if is_mixed && types.iter().any(|name| digits_of(name.as_ref()).is_some()) {
            return refused();
        }
    }
    Ok(())
}

fn rewrite(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if digits(&left, schema).is_some() || digits(&right, schema).is_some() =>
        {
            compared(*left, op, *right, schema)
        }
        Expr::ScalarSubquery(subquery) => {
            let fields = subquery.subquery.schema().fields();
            match fields.first().is_some_and(|field| is_padded(field.metadata().get(MYSQL_TYPE))) {
                true => padded("a subquery"),
                false => Ok(Transformed::no(Expr::ScalarSubquery(subquery))),
            }
        }
        Expr::WindowFunction(window) => {
            let has = |test: &dyn Fn(&Expr) -> bool| window.params.args.iter().any(test);
            if has(&|argument| digits(argument, schema).is_some()) {
                return refused();
            }
            if has(&|argument| is_padded(type_of(argument, schema).as_ref())) {
                return padded("a window");
            }
            Ok(Transformed::no(Expr::WindowFunction(window)))
        }
        Expr::AggregateFunction(aggregate)
            if aggregate.func.name() != "count"
                && aggregate
                    .params
                    .args
                    .iter()
                    .any(|argument| type_of(argument, schema).is_some_and(|name| name == SHORT_YEAR)) =>
        {
            padded("an aggregate")
        }
        other if shows_digits(&other) => Ok(Transformed::no(other)),
        other => {
            if is_below(&other, |child| digits(child, schema).is_some())? {
                return refused();
            }
            let is_compared = matches!(&other, Expr::InList(_) | Expr::Between(_))
                || matches!(&other, Expr::BinaryExpr(binary) if is_comparison(binary.op));
            // The engine gives some results the type of an operand.
            let keeps_type = matches!(&other, Expr::BinaryExpr(_))
                || matches!(&other, Expr::ScalarFunction(function) if function.name() == "coalesce");
            let is_wrong = |child: &Expr| {
                type_of(uncast(child), schema)
                    .is_some_and(|name| name == SHORT_YEAR || keeps_type && is_padded(Some(&name)))
            };
            match !is_compared && is_below(&other, is_wrong)? {
                true => padded("an expression"),
                false => Ok(Transformed::no(other)),
            }
        }
    }
}

/// Whether an expression gives right results of columns with fixed digits as it is.
fn shows_digits(expression: &Expr) -> bool {
    match expression {
        Expr::Alias(_) | Expr::Column(_) | Expr::IsNull(_) | Expr::IsNotNull(_) => true,
        // The planner's, around a side of a comparison or an operand.
        cast @ Expr::Cast(_) => !std::ptr::eq(uncast(cast), cast),
        Expr::AggregateFunction(aggregate) => AGGREGATES.contains(&aggregate.func.name()),
        Expr::ScalarFunction(function) => function.name() == TEXT,
        _ => false,
    }
}

fn is_below(expression: &Expr, test: impl Fn(&Expr) -> bool) -> Result<bool> {
    let mut found = false;
    expression.apply_children(|child| {
        found |= test(child);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// A comparison of which one side at least has fixed digits.
fn compared(left: Expr, operator: Operator, right: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    use Operator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    if !matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
        return refused();
    }
    let sides = (comparable(uncast(&left), schema)?, comparable(uncast(&right), schema)?);
    let digits = match sides {
        (Digits::Null, _) | (_, Digits::Null) => {
            return Ok(Transformed::no(binary_expr(left, operator, right)));
        }
        // One of them has any number of digits, so that the doubles themselves are compared.
        (Digits::Any, _) | (_, Digits::Any) => {
            let double = |side| cast(side, DataType::Float64);
            return Ok(Transformed::yes(binary_expr(double(left), operator, double(right))));
        }
        (Digits::Fixed(left), Digits::Fixed(right)) => left.max(right),
    };
    let tolerance = format!("5e-{}", digits + 1).parse::<f64>().unwrap_or(0.0);
    let double = |side| cast(side, DataType::Float64);
    let (left, right) = (double(left), double(right));
    let above = |a: Expr, b: Expr| binary_expr(binary_expr(a, Operator::Minus, b), GtEq, lit(tolerance));
    let (less, greater) = (above(right.clone(), left.clone()), above(left, right));
    Ok(Transformed::yes(match operator {
        Lt => less,
        Gt => greater,
        LtEq => Expr::Not(Box::new(greater)),
        GtEq => Expr::Not(Box::new(less)),
        NotEq => less.or(greater),
        _ => Expr::Not(Box::new(less.or(greater))),
    }))
}

/// How many digits a side of a comparison has.
enum Digits {
    Null,
    Fixed(usize),
    Any,
}

fn comparable(side: &Expr, schema: &DFSchema) -> Result<Digits> {
    if let Some(digits) = digits(side, schema) {
        return Ok(Digits::Fixed(digits));
    }
    let is_literal = matches!(side, Expr::Literal(..));
    if matches!(side, Expr::Literal(value, _) if value.is_null()) {
        return Ok(Digits::Null);
    }
    let data_type = match side {
        Expr::Literal(value, _) => ScalarValue::data_type(value),
        side => side.get_type(schema)?,
    };
    match data_type {
        integer if integer.is_integer() => Ok(Digits::Fixed(0)),
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            Ok(Digits::Fixed(usize::try_from(scale).unwrap_or(0)))
        }
        // The servers count the digits of such a literal, or do not.
        DataType::Float32 | DataType::Float64 if !is_literal && type_of(side, schema).is_some() => {
            Ok(Digits::Any)
        }
        _ => refused(),
    }
}

fn digits(expression: &Expr, schema: &DFSchema) -> Option<usize> {
    digits_of(type_of(uncast(expression), schema).as_ref())
}

/// What a cast to DOUBLE is of, or the expression itself.
fn uncast(expression: &Expr) -> &Expr {
    match expression {
        Expr::Cast(cast) if *cast.field.data_type() == DataType::Float64 => uncast(&cast.expr),
        other => other,
    }
}

/// Whether a value that is shown is a FLOAT(M,D) as a double of its own.
fn is_cast_of_digits(expression: &Expr, schema: &DFSchema) -> bool {
    match expression {
        Expr::Alias(alias) => is_cast_of_digits(&alias.expr, schema),
        cast @ Expr::Cast(_) => digits(cast, schema).is_some(),
        _ => false,
    }
}

/// The server's type of a column.
fn type_of(expression: &Expr, schema: &DFSchema) -> Option<String> {
    match expression {
        Expr::Column(column) => schema.field_from_column(column).ok()?.metadata().get(MYSQL_TYPE).cloned(),
        Expr::Alias(alias) => type_of(&alias.expr, schema),
        Expr::OuterReferenceColumn(field, _) => field.metadata().get(MYSQL_TYPE).cloned(),
        _ => None,
    }
}

fn is_comparison(operator: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}
