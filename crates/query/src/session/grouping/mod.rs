//! Columns of a grouped query that are neither grouped nor aggregated: MariaDB, and MySQL where the groups determine
//! them, show the value of a row of the group.
//!
//! DataFusion refuses them, so they become `FIRST_VALUE(column)`:
//!
//! 1. A SELECT is grouped if it has GROUP BY, or an aggregate in its list, HAVING or ORDER BY.
//! 2. In these clauses, what equals a group key stays, and so does what stands inside of an aggregate or a subquery.
//! 3. Other columns of the FROM become `FIRST_VALUE`, of one table in the order of its primary key, which is the
//!    order in which the servers read it. `*` becomes its columns.
//! 4. By MySQL's rules (ONLY_FULL_GROUP_BY) the group keys must determine them ([`determined`]).

mod determined;
mod scope;

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, GroupByExpr, Ident, ObjectName, OrderByExpr, OrderByKind, OrderByOptions, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Value, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};
use tanada_innodb::schema::Server;

use crate::{Error, ErrorKind, Result};
use scope::{Scope, is_same};
pub(super) use scope::{Shape, Shapes};

/// The function that gives the value of a row of the group.
const OF_A_ROW: &str = "first_value";

/// Aggregates that MySQL, MariaDB or DataFusion know.
const AGGREGATES: [&str; 29] = [
    "any_value",
    "approx_distinct",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "count",
    "first_value",
    "group_concat",
    "grouping",
    "json_arrayagg",
    "json_objectagg",
    "last_value",
    "max",
    "median",
    "min",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "st_collect",
    "string_agg",
    "sum",
    "var_pop",
    "var_samp",
    "variance",
    "corr",
    "covar_pop",
];

/// Makes columns of a row of each group explicit, by the rules of `server`.
///
/// # Errors
/// By MySQL's rules, if the groups do not determine such a column.
pub(super) fn complete(mut statement: Statement, shapes: &Shapes, server: Server) -> Result<Statement> {
    let mut inner = &mut statement;
    while let Statement::Explain(explain) = inner {
        inner = explain.statement.as_mut();
    }
    if let Statement::Statement(sql) = inner
        && let ControlFlow::Break(error) = VisitMut::visit(sql.as_mut(), &mut Queries { shapes, server })
    {
        return Err(error);
    }
    Ok(statement)
}

struct Queries<'a> {
    shapes: &'a Shapes,
    server: Server,
}

impl VisitorMut for Queries<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let order = match query.order_by.as_mut().map(|order| &mut order.kind) {
            Some(OrderByKind::Expressions(keys)) => keys.as_mut_slice(),
            _ => &mut [],
        };
        match self.body(query.body.as_mut(), order) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

impl Queries<'_> {
    fn body(&self, body: &mut SetExpr, order: &mut [OrderByExpr]) -> Result<()> {
        match body {
            SetExpr::Select(select) => self.select(select, order),
            SetExpr::SetOperation { left, right, .. } => {
                self.body(left, &mut [])?;
                self.body(right, &mut [])
            }
            // Queries in parentheses are visited for themselves.
            _ => Ok(()),
        }
    }

    fn select(&self, select: &mut Select, order: &mut [OrderByExpr]) -> Result<()> {
        let GroupByExpr::Expressions(keys, _) = &select.group_by else { return Ok(()) };
        let keys = keys.clone();
        if keys.is_empty() && !has_aggregate(select, order) {
            return Ok(());
        }
        let scope = Scope::of(&select.from, self.shapes);
        let keys = resolved(&keys, &select.projection, &scope);
        let mut completion = Completion::new(&scope, &keys);
        expand_stars(&mut select.projection, &scope);
        for item in &mut select.projection {
            completion.item(item);
        }
        for clause in select.having.iter_mut().chain(order.iter_mut().map(|key| &mut key.expr)) {
            completion.aliases = aliases(&select.projection);
            let _: ControlFlow<()> = VisitMut::visit(clause, &mut completion);
        }
        if self.server == Server::MySql {
            determined::check(&completion.completed, &keys, &scope, select)?;
        }
        Ok(())
    }
}

/// Whether a clause aggregates without GROUP BY.
fn has_aggregate(select: &mut Select, order: &mut [OrderByExpr]) -> bool {
    let mut search = AggregateSearch { subqueries: 0 };
    let mut clauses = select.projection.iter_mut().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
            Some(expression)
        }
        _ => None,
    });
    let mut found = |clause: &mut Expr| VisitMut::visit(clause, &mut search).is_break();
    clauses.any(&mut found)
        || select.having.iter_mut().any(&mut found)
        || order.iter_mut().any(|key| found(&mut key.expr))
}

struct AggregateSearch {
    subqueries: usize,
}

impl VisitorMut for AggregateSearch {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        match self.subqueries == 0 && is_aggregate(expression) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn is_aggregate(expression: &Expr) -> bool {
    let Expr::Function(function) = expression else { return false };
    let name = function.name.to_string().to_ascii_lowercase();
    function.over.is_none() && AGGREGATES.contains(&name.as_str())
}

/// Group keys with positions and aliases replaced by what they mean.
fn resolved(keys: &[Expr], items: &[SelectItem], scope: &Scope<'_>) -> Vec<Expr> {
    let named = |name: &Ident| {
        items.iter().find_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } if alias.value.eq_ignore_ascii_case(&name.value) => {
                Some(expr.clone())
            }
            _ => None,
        })
    };
    let at = |position: &str| {
        let position: usize = position.parse().ok()?;
        match items.get(position.checked_sub(1)?)? {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr.clone()),
            _ => None,
        }
    };
    let mut all = Vec::with_capacity(keys.len());
    for key in keys {
        let meant = match key {
            Expr::Value(value) => match &value.value {
                Value::Number(position, _) => at(position),
                _ => None,
            },
            // A column of the tables comes before an alias.
            Expr::Identifier(name) if !scope.has_column(name) => named(name),
            _ => None,
        };
        all.push(key.clone());
        all.extend(meant);
    }
    all
}

fn aliases(items: &[SelectItem]) -> Vec<String> {
    let alias = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        _ => None,
    };
    items.iter().filter_map(alias).collect()
}

/// Replaces `*` by the columns of tables that are known.
fn expand_stars(items: &mut Vec<SelectItem>, scope: &Scope<'_>) {
    let is_plain = |options: &WildcardAdditionalOptions| {
        options.opt_except.is_none()
            && options.opt_exclude.is_none()
            && options.opt_replace.is_none()
            && options.opt_rename.is_none()
            && options.opt_ilike.is_none()
    };
    let expanded = std::mem::take(items).into_iter().flat_map(|item| {
        let columns = match &item {
            SelectItem::Wildcard(options) if is_plain(options) => scope.all_columns(),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                if is_plain(options) =>
            {
                scope.columns_of(name)
            }
            _ => None,
        };
        match columns {
            Some(columns) => columns.into_iter().map(SelectItem::UnnamedExpr).collect(),
            None => vec![item],
        }
    });
    *items = expanded.collect();
}

/// Replaces columns in one clause after the other.
struct Completion<'a> {
    scope: &'a Scope<'a>,
    keys: &'a [Expr],
    /// Names of the list's items, which HAVING and ORDER BY may use.
    aliases: Vec<String>,
    /// For each expression that is being visited, whether it is left as it is with all it contains.
    kept: Vec<bool>,
    subqueries: usize,
    /// What was replaced.
    completed: Vec<Expr>,
}

impl<'a> Completion<'a> {
    fn new(scope: &'a Scope<'a>, keys: &'a [Expr]) -> Completion<'a> {
        let (aliases, kept, completed) = (Vec::new(), Vec::new(), Vec::new());
        Completion { scope, keys, aliases, kept, subqueries: 0, completed }
    }

    fn item(&mut self, item: &mut SelectItem) {
        match item {
            SelectItem::UnnamedExpr(expression) => {
                let name = match &*expression {
                    Expr::Identifier(name) => Some(name.clone()),
                    Expr::CompoundIdentifier(parts) => parts.last().cloned(),
                    _ => None,
                };
                let before = expression.clone();
                let _: ControlFlow<()> = VisitMut::visit(expression, self);
                if let Some(name) = name.filter(|_| *expression != before) {
                    let alias = Ident::with_quote('`', name.value);
                    *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
                }
            }
            SelectItem::ExprWithAlias { expr, .. } => {
                let _: ControlFlow<()> = VisitMut::visit(expr, self);
            }
            _ => {}
        }
    }

    fn is_column(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Identifier(name) => {
                let is_alias = self.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(&name.value));
                !is_alias && self.scope.may_have_column(name)
            }
            Expr::CompoundIdentifier(parts) => self.scope.has_qualified(parts),
            _ => false,
        }
    }
}

impl VisitorMut for Completion<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let inherited = self.kept.last().copied().unwrap_or(false) || self.subqueries > 0;
        let is_key = || self.keys.iter().any(|key| is_same(key, expression, self.scope));
        self.kept.push(inherited || is_aggregate(expression) || is_key());
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        let is_kept = self.kept.pop().unwrap_or(true);
        if !is_kept && self.is_column(expression) {
            self.completed.push(expression.clone());
            *expression = of_a_row(expression.clone(), self.scope.reading_order());
        }
        ControlFlow::Continue(())
    }
}

/// The value of the first row of the group, in an order if there is one.
fn of_a_row(column: Expr, order: Vec<Expr>) -> Expr {
    let keys: Vec<OrderByExpr> = order
        .into_iter()
        .map(|expr| OrderByExpr { expr, options: OrderByOptions::default(), with_fill: None })
        .collect();
    let clauses = if keys.is_empty() { Vec::new() } else { vec![FunctionArgumentClause::OrderBy(keys)] };
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(OF_A_ROW)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(column))],
            clauses,
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

fn refusal(column: &Expr) -> Error {
    let message = format!(
        "column {column} is neither in GROUP BY nor determined by it (MySQL's ONLY_FULL_GROUP_BY); group by it, or use ANY_VALUE({column})"
    );
    Error::new(ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests;
