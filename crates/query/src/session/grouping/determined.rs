//! Which columns the group keys determine: MySQL's functional dependence.
//!
//! Determined are the group keys; columns that a WHERE or an inner join sets equal to a determined column or a
//! constant; columns that an outer join compares with determined ones; and all columns of a table with a key of
//! determined ones.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, Select, TableFactor, TableWithJoins,
};

use super::refusal;
use super::scope::Scope;
use crate::Result;

type Column = (usize, String);

/// Refuses columns that are not determined. Those of derived tables are not looked at.
///
/// # Errors
/// Names the first one.
pub(super) fn check(columns: &[Expr], keys: &[Expr], scope: &Scope<'_>, select: &Select) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    let mut equalities = Vec::new();
    if let Some(condition) = &select.selection {
        conjuncts(condition, &mut equalities);
    }
    for table in &select.from {
        of_joins(table, &mut equalities);
    }
    let determined = closure(keys, &equalities, scope);
    for column in columns {
        let Some(resolved) = scope.resolve(column) else { continue };
        let is_known = scope.tables.get(resolved.0).is_some_and(|table| table.shape.is_some());
        if is_known && !determined.contains(&resolved) {
            return Err(refusal(column));
        }
    }
    Ok(())
}

fn closure(keys: &[Expr], equalities: &[(Expr, Expr)], scope: &Scope<'_>) -> HashSet<Column> {
    let mut determined: HashSet<Column> = keys.iter().filter_map(|key| scope.resolve(key)).collect();
    loop {
        let before = determined.len();
        for (left, right) in equalities {
            let sides = (scope.resolve(left), scope.resolve(right));
            let is_fixed = |side: &Option<Column>, of: &Expr| match side {
                Some(column) => determined.contains(column),
                None => is_constant(of),
            };
            let (left_fixed, right_fixed) = (is_fixed(&sides.0, left), is_fixed(&sides.1, right));
            match sides {
                (Some(column), _) if right_fixed => _ = determined.insert(column),
                (_, Some(column)) if left_fixed => _ = determined.insert(column),
                _ => {}
            }
        }
        for (no, table) in scope.tables.iter().enumerate() {
            let Some(shape) = table.shape else { continue };
            let has_key = shape
                .keys
                .iter()
                .any(|key| key.iter().all(|column| determined.contains(&(no, column.to_lowercase()))));
            if has_key {
                determined.extend(shape.columns.iter().map(|column| (no, column.to_lowercase())));
            }
        }
        if determined.len() == before {
            return determined;
        }
    }
}

fn is_constant(expression: &Expr) -> bool {
    match expression {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_constant(inner),
        _ => false,
    }
}

fn conjuncts(condition: &Expr, equalities: &mut Vec<(Expr, Expr)>) {
    match condition {
        Expr::Nested(inner) => conjuncts(inner, equalities),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(left, equalities);
            conjuncts(right, equalities);
        }
        Expr::BinaryOp { left, op: BinaryOperator::Eq | BinaryOperator::Spaceship, right } => {
            equalities.push((left.as_ref().clone(), right.as_ref().clone()));
        }
        _ => {}
    }
}

fn of_joins(table: &TableWithJoins, equalities: &mut Vec<(Expr, Expr)>) {
    let nested = |factor: &TableFactor, equalities: &mut Vec<(Expr, Expr)>| {
        if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
            of_joins(table_with_joins, equalities);
        }
    };
    nested(&table.relation, equalities);
    for join in &table.joins {
        nested(&join.relation, equalities);
        if let Some(JoinConstraint::On(condition)) = constraint(&join.join_operator) {
            conjuncts(condition, equalities);
        }
    }
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator::{CrossJoin, Inner, Join, Left, LeftOuter, Right, RightOuter, StraightJoin};
    match operator {
        Join(constraint)
        | Inner(constraint)
        | CrossJoin(constraint)
        | StraightJoin(constraint)
        | Left(constraint)
        | LeftOuter(constraint)
        | Right(constraint)
        | RightOuter(constraint) => Some(constraint),
        _ => None,
    }
}
