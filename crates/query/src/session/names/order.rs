//! ORDER BY: positions, results by their names, and other expressions.

use datafusion::sql::sqlparser::ast::{Expr, Ident, OrderBy, OrderByExpr, OrderByKind, UnaryOperator, Value};

use super::expression::Aliases;
use super::item::Item;
use super::query::{Output, Surroundings};
use super::scope::same;
use super::{Clause, Names, invalid, quoted, unsupported};
use crate::Result;

/// What rows are ordered by.
#[derive(Debug, Clone)]
pub(super) enum Key {
    /// The result at this position, from 0.
    Result(usize),
    Expression(Box<Expr>),
}

/// The expressions of an ORDER BY.
pub(super) fn expressions(order_by: Option<OrderBy>) -> Result<Vec<OrderByExpr>> {
    match order_by {
        None => Ok(Vec::new()),
        Some(OrderBy { kind: OrderByKind::Expressions(expressions), .. }) => Ok(expressions),
        Some(_) => Err(unsupported("ORDER BY ALL is not run")),
    }
}

/// An ORDER BY of expressions.
pub(super) fn order_by(expressions: Vec<OrderByExpr>) -> Option<OrderBy> {
    let kind = OrderByKind::Expressions(expressions);
    let is_empty = matches!(&kind, OrderByKind::Expressions(all) if all.is_empty());
    (!is_empty).then_some(OrderBy { kind, interpolate: None })
}

/// The position as ORDER BY takes it.
pub(super) fn position(no: usize) -> Expr {
    Expr::value(Value::Number((no + 1).to_string(), false))
}

/// A position that an expression is, from 1.
pub(super) fn as_position(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) if number.bytes().all(|byte| byte.is_ascii_digit()) => Some(number),
            _ => None,
        },
        Expr::Nested(inner) => as_position(inner),
        _ => None,
    }
}

impl Names<'_> {
    /// What an ORDER BY orders by; constants order nothing and are left out.
    pub(super) fn keys(
        &mut self,
        expressions: Vec<OrderByExpr>,
        items: &[Item],
        inner: &Surroundings<'_>,
    ) -> Result<Vec<(Key, OrderByExpr)>> {
        let mut keys = Vec::with_capacity(expressions.len());
        for mut ordered in expressions {
            let key = match &mut ordered.expr {
                expression if self.is_no_position(expression) => {
                    return Err(self.unknown(&[quoted(&expression.to_string())], Clause::Order));
                }
                expression if as_position(expression).is_some() => {
                    let number = as_position(expression).unwrap_or_default();
                    Key::Result(self.at(number, items.len(), Clause::Order)?)
                }
                Expr::Value(_) => continue,
                Expr::Identifier(name) if !name.value.starts_with('@') => {
                    match self.result_called(name, items)? {
                        Some(no) => Key::Result(no),
                        None => self.key_of(&mut ordered.expr, items, inner)?,
                    }
                }
                expression => self.key_of(expression, items, inner)?,
            };
            keys.push((key, ordered));
        }
        Ok(keys)
    }

    fn key_of(&mut self, expression: &mut Expr, items: &[Item], inner: &Surroundings<'_>) -> Result<Key> {
        self.expression_with(expression, inner, Clause::Order, Aliases::AfterColumns(items))?;
        Ok(match items.iter().position(|item| item.expression == *expression) {
            Some(no) => Key::Result(no),
            None => Key::Expression(Box::new(expression.clone())),
        })
    }

    /// MariaDB takes a negative number for a position, and there is none.
    pub(super) fn is_no_position(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Nested(inner) => self.is_no_position(inner),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
                !self.is_mysql() && as_position(expr).is_some()
            }
            _ => false,
        }
    }

    /// The result that an unqualified name means.
    pub(super) fn result_called(&self, name: &Ident, items: &[Item]) -> Result<Option<usize>> {
        let mut named = items.iter().enumerate().filter(|(_, item)| same(&item.name, &name.value));
        let Some((first, item)) = named.next() else { return Ok(None) };
        if named.any(|(_, other)| other.expression != item.expression) {
            let clause = Clause::Order.text(self.context.server);
            return Err(invalid(format!("Column '{}' in {clause} is ambiguous", name.value)));
        }
        Ok(Some(first))
    }

    /// The index of a position.
    pub(super) fn at(&self, number: &str, count: usize, clause: Clause) -> Result<usize> {
        let no = number.parse::<usize>().ok().and_then(|no| no.checked_sub(1)).filter(|no| *no < count);
        no.ok_or_else(|| self.unknown(&[quoted(number)], clause))
    }

    /// An expression of an ORDER BY over rows whose columns are `output`.
    pub(super) fn order_by_output(&mut self, expression: &mut Expr, output: &[Output]) -> Result<()> {
        let clause = Clause::Order;
        if let Some(number) = as_position(expression) {
            self.at(number, output.len(), clause)?;
            return Ok(());
        }
        if let Expr::Identifier(name) = expression {
            let found = output.iter().position(|column| same(&column.name, &name.value));
            *expression = position(found.ok_or_else(|| self.unknown(std::slice::from_ref(name), clause))?);
            return Ok(());
        }
        let columns = output.iter().map(|column| super::scope::ScopeColumn {
            name: column.name.clone(),
            expression: Expr::Identifier(quoted(&column.emitted)),
            invisible: false,
            is_derived: true,
        });
        let scope = super::scope::Scope { row: columns.collect(), ..super::scope::Scope::default() };
        let scopes = super::scope::Scopes { inner: Some(&scope), outer: None };
        self.expression(expression, &Surroundings { scopes, ..Surroundings::default() }, clause)
    }
}
