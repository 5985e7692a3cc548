//! `IS NULL` of a DATE or DATETIME that is NOT NULL: where a condition chooses rows, it finds the zero dates.
//!
//! MariaDB reads it so anywhere under AND, OR and NOT, MySQL only where all of the condition depends on it and the rows
//! come from tables.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ExprSchema, Result};
use datafusion::logical_expr::expr::{ScalarFunction, Sort};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, JoinType, LogicalPlan, Operator, binary_expr, lit};
use tanada_innodb::schema::Server;

use super::bound::BoundCall;
use super::call::ServerCall;
use super::unsupported;
use crate::expression::Refusal;
use crate::functions::{GROUP_CONCAT, JSON_ARRAYAGG};
use crate::relation::types::NOT_NULL_DATE;
use crate::relation::zero_date;

/// The plan with such conditions written out.
pub(super) fn found(plan: LogicalPlan, server: Server) -> Result<LogicalPlan> {
    let is_mysql = server == Server::MySql;
    Ok(match plan {
        LogicalPlan::Filter(filter) if is_mysql && keeps_rows(&filter.input) => {
            let is_found = |of: &Expr| zeros(of, filter.input.schema()).is_some();
            let asks =
                filter.predicate.exists(|part| Ok(matches!(part, Expr::IsNull(of) if is_found(of))))?;
            if asks {
                let why = Refusal::new("of a DATE that is NOT NULL in a derived table");
                return Err(unsupported("IS NULL", &why));
            }
            LogicalPlan::Filter(filter)
        }
        LogicalPlan::Filter(mut filter) if !is_mysql || is_of_tables(&filter.input) => {
            filter.predicate = condition(filter.predicate, filter.input.schema(), is_mysql);
            LogicalPlan::Filter(filter)
        }
        LogicalPlan::Join(mut join) if !is_mysql && join.join_type == JoinType::Inner => {
            join.filter = join.filter.map(|filter| condition(filter, &join.schema, is_mysql));
            LogicalPlan::Join(join)
        }
        other => other,
    })
}

/// Whether MySQL keeps rows of a derived table.
fn keeps_rows(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Distinct(_) | LogicalPlan::Union(_) | LogicalPlan::Aggregate(_) => true,
        LogicalPlan::SubqueryAlias(alias) => keeps_rows(&alias.input),
        LogicalPlan::Projection(projection) => keeps_rows(&projection.input),
        _ => false,
    }
}

/// Whether rows are those of tables and their joins, under whatever names.
fn is_of_tables(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_of_tables(&alias.input),
        LogicalPlan::Join(join) => is_of_tables(&join.left) && is_of_tables(&join.right),
        _ => false,
    }
}

fn condition(expression: Expr, schema: &DFSchema, is_mysql: bool) -> Expr {
    let inner = |of: Box<Expr>| Box::new(condition(*of, schema, is_mysql));
    match expression {
        Expr::BinaryExpr(mut of) if of.op == Operator::And || (of.op == Operator::Or && !is_mysql) => {
            (of.left, of.right) = (inner(of.left), inner(of.right));
            Expr::BinaryExpr(of)
        }
        Expr::Not(of) => match *of {
            Expr::IsNotNull(of) => condition(Expr::IsNull(of), schema, is_mysql),
            other => Expr::Not(Box::new(other)),
        },
        Expr::IsNull(of) => zeros(&of, schema).unwrap_or(Expr::IsNull(of)),
        Expr::ScalarFunction(function) => {
            called(&function).and_then(|of| zeros(of, schema)).unwrap_or(Expr::ScalarFunction(function))
        }
        other => other,
    }
}

/// The operand of `ISNULL(x)`.
fn called(function: &ScalarFunction) -> Option<&Expr> {
    function.func.inner().downcast_ref::<ServerCall>()?;
    match function.args.as_slice() {
        [Expr::Literal(name, _), of] if name.try_as_str().flatten() == Some("isnull") => Some(of),
        _ => None,
    }
}

/// The condition that finds NULL, which an outer join makes, and zero dates; `None` for other columns.
fn zeros(of: &Expr, schema: &DFSchema) -> Option<Expr> {
    let Expr::Column(column) = of else { return None };
    let field = schema.field_from_column(column).ok()?;
    field.metadata().contains_key(NOT_NULL_DATE).then_some(())?;
    let zero = binary_expr(of.clone(), Operator::Eq, lit(zero_date::scalar(field.data_type())?));
    Some(if field.is_nullable() { zero.or(of.clone().is_null()) } else { zero })
}

/// Whether a plan puts dates in order, among which there is no room for partial ones.
pub(crate) fn orders_dates(plan: &LogicalPlan, server: Server) -> Result<bool> {
    let mut orders = false;
    plan.apply_with_subqueries(|node| {
        let schema = match node {
            LogicalPlan::TableScan(scan) => {
                DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?
            }
            other => merge_schema(&other.inputs()),
        };
        // MySQL makes zero dates of them where it keeps rows in a table of its own.
        let keeps_rows = matches!(
            node,
            LogicalPlan::Aggregate(_)
                | LogicalPlan::Distinct(_)
                | LogicalPlan::Union(_)
                | LogicalPlan::Window(_)
        );
        let has_dates = || schema.fields().iter().any(|field| is_date_type(field.data_type()));
        orders |= server == Server::MySql && keeps_rows && has_dates();
        if let LogicalPlan::Sort(sort) = node {
            orders |= sort.expr.iter().any(|key| is_date(&key.expr, &schema));
        }
        node.apply_expressions(|expression| {
            orders |= expression.exists(|part| Ok(puts_in_order(part, &schema)))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(if orders { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(orders)
}

fn is_date(expression: &Expr, schema: &DFSchema) -> bool {
    expression.get_type(schema).is_ok_and(|of| is_date_type(&of))
}

fn is_date_type(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Timestamp(..))
}

fn puts_in_order(expression: &Expr, schema: &DFSchema) -> bool {
    let any_is_date = |expressions: &[Expr]| expressions.iter().any(|of| is_date(of, schema));
    let any_key_is_date = |keys: &[Sort]| keys.iter().any(|key| is_date(&key.expr, schema));
    match expression {
        Expr::BinaryExpr(of) => {
            matches!(of.op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq)
                && (is_date(&of.left, schema) || is_date(&of.right, schema))
                && !(of.op == Operator::Lt && is_begin_of_calendar(&of.right))
        }
        Expr::Between(of) => is_date(&of.expr, schema),
        Expr::AggregateFunction(of) => {
            let counts = ["count", "sum", "avg", GROUP_CONCAT, JSON_ARRAYAGG].contains(&of.func.name());
            any_key_is_date(&of.params.order_by) || (!counts && any_is_date(&of.params.args))
        }
        Expr::WindowFunction(of) => {
            any_key_is_date(&of.params.order_by)
                || (matches!(of.fun.name(), "min" | "max") && any_is_date(&of.params.args))
        }
        Expr::ScalarFunction(of) => {
            matches!(of.func.name(), "greatest" | "least")
                && of.func.inner().downcast_ref::<BoundCall>().is_none()
                && any_is_date(&of.args)
        }
        _ => false,
    }
}

/// Whether it is the date that tells the dates of the calendar from the others.
fn is_begin_of_calendar(expression: &Expr) -> bool {
    match expression {
        Expr::Literal(value, _) => zero_date::begin_of_calendar(&value.data_type()).as_ref() == Some(value),
        _ => false,
    }
}
