//! Scalar operators and functions of a statement's syntax tree as calls of one function.
//!
//! Clauses that hold if a condition does (WHERE, HAVING, ON, WHEN, the operands of AND, OR and NOT) get truth values;
//! everywhere else an expression is a value. AND, OR, NOT, IS, EXISTS and IN with a subquery, aggregates and windows
//! stay the engine's; their operands are lowered.

mod expression;
mod functions;
mod literal;

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, OrderByExpr, OrderByKind, Query, Select,
    SelectItem, TableWithJoins, VisitMut, VisitorMut,
};

use crate::{Error, ErrorKind, Result};

use expression::{condition, value};

/// Lowers all expressions of a statement.
///
/// # Errors
/// `Unsupported` for syntax that is not known here.
pub(crate) fn lower(mut statement: Statement) -> Result<Statement> {
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_mut();
    }
    if let Statement::Statement(sql) = inner
        && let ControlFlow::Break(error) = sql.visit(&mut Lowering)
    {
        return Err(error);
    }
    Ok(statement)
}

/// What is not lowered, as an error.
fn unsupported(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Unsupported, format!("{what} is not supported here"))
}

struct Lowering;

fn flow(result: Result<()>) -> ControlFlow<Error> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl VisitorMut for Lowering {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let Some(order) = &mut query.order_by else { return ControlFlow::Continue(()) };
        match &mut order.kind {
            OrderByKind::Expressions(keys) => flow(keys.iter_mut().try_for_each(sort_key)),
            OrderByKind::All(_) => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        flow(lower_select(select))
    }
}

fn lower_select(select: &mut Select) -> Result<()> {
    for item in &mut select.projection {
        match item {
            SelectItem::ExprWithAlias { expr, .. } => in_place(expr, value)?,
            SelectItem::UnnamedExpr(expr) if !is_name(expr) => {
                let name = expr.to_string();
                let expr = value(expr.clone())?;
                *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('`', name) };
            }
            _ => {}
        }
    }
    for table in &mut select.from {
        lower_joins(table)?;
    }
    if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
        for key in keys.iter_mut().filter(|key| !is_position(key)) {
            match key {
                Expr::Rollup(parts) => {
                    parts.iter_mut().flatten().try_for_each(|part| in_place(part, value))?;
                }
                key => in_place(key, value)?,
            }
        }
    }
    for clause in [&mut select.selection, &mut select.having].into_iter().flatten() {
        in_place(clause, condition)?;
    }
    Ok(())
}

fn lower_joins(table: &mut TableWithJoins) -> Result<()> {
    use datafusion::sql::sqlparser::ast::TableFactor;
    let mut factors = vec![&mut table.relation];
    for join in &mut table.joins {
        if let Some(JoinConstraint::On(on)) = constraint(&mut join.join_operator) {
            in_place(on, condition)?;
        }
        factors.push(&mut join.relation);
    }
    for factor in factors {
        match factor {
            TableFactor::NestedJoin { table_with_joins, .. } => lower_joins(table_with_joins)?,
            TableFactor::JsonTable { json_expr, .. } => in_place(json_expr, value)?,
            _ => {}
        }
    }
    Ok(())
}

fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    use JoinOperator::{CrossJoin, FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter, StraightJoin};
    match operator {
        Join(of) | Inner(of) | Left(of) | LeftOuter(of) | Right(of) | RightOuter(of) | FullOuter(of)
        | StraightJoin(of) | CrossJoin(of) => Some(of),
        _ => None,
    }
}

fn sort_key(key: &mut OrderByExpr) -> Result<()> {
    if is_position(&key.expr) { Ok(()) } else { in_place(&mut key.expr, value) }
}

fn in_place(expression: &mut Expr, lowered: impl Fn(Expr) -> Result<Expr>) -> Result<()> {
    let taken = std::mem::replace(expression, Expr::value(datafusion::sql::sqlparser::ast::Value::Null));
    *expression = lowered(taken)?;
    Ok(())
}

/// Whether it is a column by its name.
fn is_name(expression: &Expr) -> bool {
    matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::QualifiedWildcard(..))
}

/// Whether it is the number of a column of the result.
fn is_position(expression: &Expr) -> bool {
    matches!(expression, Expr::Value(_))
}
