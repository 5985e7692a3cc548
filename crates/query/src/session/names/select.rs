//! SELECT: its clauses in the order in which their names mean something.
//!
//! 1. FROM gives the columns; ON, WHERE, the select list and its windows use these alone.
//! 2. GROUP BY takes columns before results, positions, and expressions.
//! 3. HAVING takes results and groups, ORDER BY results before columns.
//! 4. What is grouped becomes two queries ([`super::grouping`]); what is ordered by a subquery does, too.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, GroupByExpr, GroupByWithModifier, Ident, OrderBy, OrderByExpr, Query, Select,
    SelectItem, SetExpr, TableFactor, VisitMut, VisitorMut,
};

use super::expression::{Aliases, has_aggregate, has_subquery, has_window, is_aggregate};
use super::item::{Item, emitted};
use super::order::{self, Key};
use super::quantified::{derived, query_of, select_of};
use super::query::{Output, Surroundings};
use super::scope::Scopes;
use super::{Clause, Names, invalid, quoted, unsupported, windows};
use crate::Result;

/// What a SELECT groups by.
#[derive(Debug, Clone, Default)]
pub(super) struct Groups {
    pub expressions: Vec<Expr>,
    pub has_rollup: bool,
    /// Whether there was a GROUP BY at all.
    pub is_given: bool,
}

/// The resolved clauses behind WHERE.
#[derive(Debug)]
pub(super) struct Clauses {
    pub items: Vec<Item>,
    pub outputs: Vec<Output>,
    pub groups: Groups,
    pub having: Option<Expr>,
    pub keys: Vec<(Key, OrderByExpr)>,
}

impl Names<'_> {
    /// Resolves a SELECT with the ORDER BY behind it.
    pub(super) fn select(
        &mut self,
        select: &mut Select,
        order_by: &mut Option<OrderBy>,
        around: &Surroundings<'_>,
    ) -> Result<Vec<Output>> {
        refuse_foreign(select)?;
        select.optimizer_hints.clear();
        select.select_modifiers = None;
        leave_out_dual(select);
        windows::write(select, order_by)?;
        let mut scope = self.from(&mut select.from, around)?;
        {
            let scopes = Scopes { inner: Some(&scope), outer: Some(&around.scopes) };
            let inner = around.within(scopes);
            if let Some(condition) = &mut select.selection {
                if has_aggregate(condition) {
                    return Err(invalid("Invalid use of group function"));
                }
                self.expression(condition, &inner, Clause::Where)?;
            }
        }
        if let Some(condition) = &select.selection {
            scope.note_equalities(condition);
        }
        let scopes = Scopes { inner: Some(&scope), outer: Some(&around.scopes) };
        let inner = around.within(scopes);
        let items = self.items(std::mem::take(&mut select.projection), &scope, &inner, around.is_top)?;
        let outputs = self.outputs(&items, around.names.as_ref())?;
        let groups = self.groups(select, &items, &inner)?;
        let mut having = select.having.take();
        if let Some(condition) = &mut having {
            let aliases = Aliases::Having { items: &items, groups: &groups.expressions };
            self.expression_with(condition, &inner, Clause::Having, aliases)?;
        }
        let keys = self.keys(order::expressions(order_by.take())?, &items, &inner)?;
        let aggregates = items.iter().any(|item| has_aggregate(&item.expression))
            || having.as_ref().is_some_and(has_aggregate)
            || keys.iter().any(|(key, _)| matches!(key, Key::Expression(key) if has_aggregate(key)));
        let is_single = !groups.is_given
            && (items.iter().any(|item| has_aggregate(&item.expression))
                || having.as_ref().is_some_and(has_aggregate));
        // A single row has no order.
        let keys = if is_single { Vec::new() } else { keys };
        let clauses = Clauses { items, outputs, groups, having, keys };
        match clauses.groups.is_given || aggregates {
            true => self.grouped(select, order_by, clauses, &scope),
            false => ungrouped(self, select, order_by, clauses),
        }
    }

    fn groups(&mut self, select: &mut Select, items: &[Item], inner: &Surroundings<'_>) -> Result<Groups> {
        let none = GroupByExpr::Expressions(Vec::new(), Vec::new());
        let GroupByExpr::Expressions(given, modifiers) = std::mem::replace(&mut select.group_by, none) else {
            return Err(unsupported("GROUP BY ALL is not run"));
        };
        let mut groups = Groups { is_given: !given.is_empty(), ..Groups::default() };
        for modifier in modifiers {
            match modifier {
                GroupByWithModifier::Rollup => groups.has_rollup = true,
                _ => return Err(unsupported("of the modifiers of GROUP BY only WITH ROLLUP is run")),
            }
        }
        let mut given = given;
        if let [Expr::Rollup(parts)] = given.as_slice() {
            if !self.is_mysql() {
                return Err(unsupported("GROUP BY ROLLUP (...) is MySQL's; write WITH ROLLUP"));
            }
            groups.has_rollup = true;
            given = parts.iter().flatten().cloned().collect();
        }
        for mut group in given {
            while let Expr::Nested(inside) = group {
                group = *inside;
            }
            if matches!(group, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_)) {
                return Err(unsupported("neither MySQL nor MariaDB has grouping sets"));
            }
            if self.is_no_position(&group) {
                return Err(self.unknown(&[quoted(&group.to_string())], Clause::Group));
            }
            let resolved = match order::as_position(&group) {
                Some(number) => {
                    let item = &items[self.at(number, items.len(), Clause::Group)?];
                    item.expression.clone()
                }
                None => {
                    self.expression_with(&mut group, inner, Clause::Group, Aliases::AfterColumns(items))?;
                    group
                }
            };
            if has_aggregate(&resolved) {
                return Err(invalid("Can't group on an aggregate"));
            }
            groups.expressions.push(resolved);
        }
        Ok(groups)
    }
}

/// A SELECT without groups: HAVING filters the rows, too.
fn ungrouped(
    names: &mut Names<'_>,
    select: &mut Select,
    order_by: &mut Option<OrderBy>,
    clauses: Clauses,
) -> Result<Vec<Output>> {
    let Clauses { items, outputs, having, keys, .. } = clauses;
    if let Some(having) = having {
        if has_window(&having) {
            return Err(invalid("HAVING cannot use window functions"));
        }
        select.selection = Some(both(select.selection.take(), having));
    }
    finish(names, select, order_by, items, outputs, keys)
}

/// Writes the select list and the ORDER BY. `select` has its FROM and WHERE.
pub(super) fn finish(
    names: &mut Names<'_>,
    select: &mut Select,
    order_by: &mut Option<OrderBy>,
    items: Vec<Item>,
    outputs: Vec<Output>,
    keys: Vec<(Key, OrderByExpr)>,
) -> Result<Vec<Output>> {
    let is_free = |key: &Key| matches!(key, Key::Expression(_));
    let is_above = select.distinct.is_some() && keys.iter().any(|(key, _)| is_free(key));
    let alias = names.alias("ordered");
    let mut keys = keys;
    if is_above {
        for (key, _) in &mut keys {
            if let Key::Expression(expression) = key
                && !of_results(expression, &items, &outputs, &alias)
            {
                return Err(unsupported("a DISTINCT ordered by what is not in its select list is not run"));
            }
        }
    }
    let projection = items.into_iter().zip(&outputs).map(|(item, output)| emitted(item.expression, output));
    select.projection = projection.collect();
    let hides = keys.iter().any(|(key, _)| matches!(key, Key::Expression(key) if has_subquery(key)));
    let mut ordered = Vec::with_capacity(keys.len());
    let mut hidden = Vec::new();
    for (key, mut by) in keys {
        by.expr = match key {
            Key::Result(no) => order::position(no),
            Key::Expression(expression) if hides && !is_above => {
                let name = quoted(&format!("key_{}", names.number()));
                hidden.push(SelectItem::ExprWithAlias { expr: *expression, alias: name.clone() });
                Expr::CompoundIdentifier(vec![alias.clone(), name])
            }
            Key::Expression(expression) => *expression,
        };
        ordered.push(by);
    }
    if hides || is_above {
        select.projection.extend(hidden);
        let column = |output: &Output| {
            let parts = vec![alias.clone(), quoted(&output.emitted)];
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))
        };
        let mut outer = select_of(outputs.iter().map(column).collect());
        let inner = std::mem::replace(select, select_of(Vec::new()));
        outer.from = vec![derived(Box::new(query_of(SetExpr::Select(Box::new(inner)))), alias.clone())];
        *select = outer;
    }
    *order_by = order::order_by(ordered);
    Ok(outputs)
}

/// Has an expression name the columns of the rows that are selected, which are called `alias`; false if it is made of
/// others, too.
fn of_results(expression: &mut Expr, items: &[Item], outputs: &[Output], alias: &Ident) -> bool {
    struct Results<'a> {
        items: &'a [Item],
        outputs: &'a [Output],
        alias: &'a Ident,
    }
    impl VisitorMut for Results<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }

        fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
            let mut results = self.items.iter().zip(self.outputs);
            if let Some((_, output)) = results.find(|(item, _)| item.expression == *expression) {
                let column = vec![self.alias.clone(), quoted(&output.emitted)];
                *expression = Expr::CompoundIdentifier(column);
                return ControlFlow::Continue(());
            }
            match expression {
                Expr::CompoundIdentifier(parts) if parts.first() == Some(self.alias) => {
                    ControlFlow::Continue(())
                }
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                Expr::Function(of) if of.over.is_some() || is_aggregate(of) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expression.visit(&mut Results { items, outputs, alias }).is_continue()
}

/// `one AND other`
pub(super) fn both(one: Option<Expr>, other: Expr) -> Expr {
    match one {
        None => other,
        Some(one) => Expr::BinaryOp {
            left: Box::new(Expr::Nested(Box::new(one))),
            op: BinaryOperator::And,
            right: Box::new(Expr::Nested(Box::new(other))),
        },
    }
}

/// `FROM DUAL` is no table.
fn leave_out_dual(select: &mut Select) {
    if let [only] = select.from.as_slice()
        && only.joins.is_empty()
        && let TableFactor::Table { name, .. } = &only.relation
        && name.to_string().eq_ignore_ascii_case("dual")
    {
        select.from.clear();
    }
}

/// What the parser takes and no server has.
fn refuse_foreign(select: &Select) -> Result<()> {
    if select.into.is_some() {
        return Err(unsupported("SELECT ... INTO is not run: files of MySQL and MariaDB are only read"));
    }
    let foreign = select.top.is_some()
        || select.exclude.is_some()
        || select.qualify.is_some()
        || select.prewhere.is_some()
        || !select.lateral_views.is_empty()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || select.value_table_mode.is_some();
    match foreign {
        true => Err(unsupported("neither MySQL nor MariaDB has this clause of SELECT")),
        false => Ok(()),
    }
}
