//! JSON_TABLE in FROM: it becomes a derived table, LATERAL if its document is made of columns.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, SelectItem, SetExpr, TableFactor, TableWithJoins, visit_expressions,
};

use super::from::table_alias;
use super::quantified::{query_of, select_of};
use super::query::{Output, Surroundings};
use super::scope::{Scope, Scopes};
use super::{Clause, Names, invalid, quoted};
use crate::Result;
use crate::json_table;

impl Names<'_> {
    /// Rewrites a JSON_TABLE to `(SELECT columns FROM JSON_TABLE(...))`; `before` is what its document sees.
    pub(super) fn json_table(
        &mut self,
        factor: &mut TableFactor,
        surroundings: &Surroundings<'_>,
        before: Scopes<'_>,
    ) -> Result<Scope> {
        let mut table = factor.clone();
        let TableFactor::JsonTable { json_expr, columns, alias, .. } = &mut table else {
            return Err(invalid("this is no JSON_TABLE"));
        };
        let Some(given) = alias.take() else {
            return Err(invalid("Every table function must have an alias."));
        };
        self.expression(json_expr, &surroundings.within(before), Clause::From)?;
        let has_columns = visit_expressions(&*json_expr, |part| match part {
            Expr::CompoundIdentifier(_) | Expr::Subquery(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        let names = json_table::names(columns);
        let inner = self.alias("json_table");
        *alias = Some(table_alias(inner.clone()));
        let output: Vec<Output> =
            names.into_iter().map(|name| Output { emitted: name.clone(), name }).collect();
        let (relation, emitted) = self.derived(&given.name.value, &output, None)?;
        let item = |column: &Output| {
            let column = vec![inner.clone(), quoted(&column.emitted)];
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(column))
        };
        let mut select = select_of(output.iter().map(item).collect());
        select.from = vec![TableWithJoins { relation: table, joins: Vec::new() }];
        *factor = TableFactor::Derived {
            lateral: has_columns.is_break(),
            subquery: Box::new(query_of(SetExpr::Select(Box::new(select)))),
            alias: Some(emitted),
            sample: None,
        };
        Ok(Scope::of(relation))
    }
}
