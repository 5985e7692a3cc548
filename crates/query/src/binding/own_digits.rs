//! CASE and IF of MySQL show the digits that each branch has where nothing keeps rows between them and the client:
//! `IF(paid, price, 0)` gives `0`, not `0.00`.
//!
//! As a key, beside a window, in a set operation, with DISTINCT, or out of a derived table that is made for itself they
//! have the digits of their type. A sort of one table and a derived table that is merged keep nothing. So the columns
//! of the result are followed down to the select lists that they come from ([`traced`]), and become texts there. What a
//! sorted join or the keys of groups give depends on the server's plan: a value is refused whose two texts differ.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, Result};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{
    Distinct, Expr, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias,
};

use super::bound::BoundCall;
use super::statement::StatementRules;
use crate::catalog::InnodbTable;
use crate::expression::Rules;
use crate::rules::is_set_operation;

/// The aggregate that takes a row's value, which is none to the server.
const ANY_ROW: &str = "first_value";

/// The plan with such columns as they are shown.
pub(super) fn shown(plan: LogicalPlan, of: &StatementRules) -> Result<LogicalPlan> {
    if !of.rules.mysql {
        return Ok(plan);
    }
    let schema = Arc::clone(plan.schema());
    let wanted: Vec<Wanted> = (0..schema.fields().len()).map(|no| Wanted { at: no, no }).collect();
    let (plan, found) = traced(plan, wanted, Path::default(), &of.rules)?;
    if found.is_empty() {
        return Ok(plan);
    }
    let columns = schema.iter().enumerate().map(|(no, (qualifier, field))| {
        match found.iter().find(|(of, _)| *of == no) {
            Some((_, text)) => Expr::Column(text.clone()).alias_qualified(qualifier.cloned(), field.name()),
            None => Expr::Column(Column::from((qualifier, field))),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// A column of an operator that is followed: its place there, and its place in the result.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    at: usize,
    no: usize,
}

/// The texts that were found, by the columns' places in the result.
type Found = Vec<(usize, Column)>;

/// What lies between an operator and the client.
#[derive(Debug, Clone, Copy, Default)]
struct Path {
    sorts: bool,
    /// Several tables meet, also in a subquery of a condition.
    joins: bool,
    /// It is in a derived table.
    is_derived: bool,
}

/// The operator with the texts of the columns as further columns.
fn traced(
    plan: LogicalPlan,
    wanted: Vec<Wanted>,
    mut path: Path,
    rules: &Rules,
) -> Result<(LogicalPlan, Found)> {
    if wanted.is_empty() {
        return Ok((plan, Found::new()));
    }
    match plan {
        LogicalPlan::Sort(mut sort) => {
            let is_random = sort.expr.iter().any(|key| key.expr.is_volatile());
            if is_random || path.is_derived && sort.fetch.is_some() {
                return Ok((LogicalPlan::Sort(sort), Found::new()));
            }
            path.sorts = true;
            path.joins |= sort.expr.iter().any(|key| has_subquery(&key.expr));
            let (input, found) = traced(Arc::unwrap_or_clone(sort.input), wanted, path, rules)?;
            sort.input = Arc::new(input);
            Ok((LogicalPlan::Sort(sort), found))
        }
        LogicalPlan::Limit(mut limit) if !path.is_derived && !path.sorts => {
            let (input, found) = traced(Arc::unwrap_or_clone(limit.input), wanted, path, rules)?;
            limit.input = Arc::new(input);
            Ok((LogicalPlan::Limit(limit), found))
        }
        LogicalPlan::Filter(mut filter) => {
            path.joins |= has_subquery(&filter.predicate);
            let (input, found) = traced(Arc::unwrap_or_clone(filter.input), wanted, path, rules)?;
            filter.input = Arc::new(input);
            Ok((LogicalPlan::Filter(filter), found))
        }
        // Rows that a key tells apart are not compared.
        LogicalPlan::Distinct(Distinct::All(input)) if !path.is_derived && is_unique(&input) => {
            let (input, found) = traced(Arc::unwrap_or_clone(input), wanted, path, rules)?;
            Ok((LogicalPlan::Distinct(Distinct::All(Arc::new(input))), found))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            path.is_derived |= !is_of_groups(&alias.input);
            let (input, found) = traced(Arc::unwrap_or_clone(alias.input), wanted, path, rules)?;
            let found = found
                .into_iter()
                .map(|(no, column)| (no, Column::new(Some(alias.alias.clone()), column.name)))
                .collect();
            Ok((LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(input), alias.alias)?), found))
        }
        LogicalPlan::Join(join) if !is_set_operation(&join) => through_join(join, wanted, path, rules),
        LogicalPlan::Projection(projection) => through_projection(projection, wanted, path, rules),
        other => Ok((other, Found::new())),
    }
}

fn through_join(
    mut join: Join,
    wanted: Vec<Wanted>,
    mut path: Path,
    rules: &Rules,
) -> Result<(LogicalPlan, Found)> {
    use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right};
    path.joins = true;
    let count = join.left.schema().fields().len();
    let (left, right): (Vec<Wanted>, Vec<Wanted>) = match join.join_type {
        Inner | Left | Right | Full => wanted.into_iter().partition(|of| of.at < count),
        LeftSemi | LeftAnti | LeftMark => {
            (wanted.into_iter().filter(|of| of.at < count).collect(), Vec::new())
        }
        _ => (Vec::new(), Vec::new()),
    };
    let right = right.into_iter().map(|of| Wanted { at: of.at - count, no: of.no }).collect();
    let (left, mut found) = traced(Arc::unwrap_or_clone(join.left), left, path, rules)?;
    let (right, others) = traced(Arc::unwrap_or_clone(join.right), right, path, rules)?;
    found.extend(others);
    (join.left, join.right) = (Arc::new(left), Arc::new(right));
    let plan = LogicalPlan::Join(join);
    Ok((if found.is_empty() { plan } else { plan.recompute_schema()? }, found))
}

fn through_projection(
    projection: Projection,
    wanted: Vec<Wanted>,
    mut path: Path,
    rules: &Rules,
) -> Result<(LogicalPlan, Found)> {
    let below = Below::of(&projection.input);
    let schema = Arc::clone(projection.input.schema());
    let (mut texts, mut columns, mut further) = (Vec::new(), Vec::new(), Vec::new());
    for of in wanted {
        let expression = projection.expr[of.at].clone().unalias();
        if let Expr::Column(column) = &expression {
            further.push(Wanted { at: schema.index_of_column(column)?, no: of.no });
            continue;
        }
        let is_computed = below.has_groups && is_computed_of_aggregates(&expression, &projection.input);
        if below.has_windows || below.has_groups && path.is_derived {
            continue;
        }
        let is_clear = match below.has_groups {
            true => is_computed,
            false => !(path.sorts && (path.joins || below.joins)),
        };
        if let Some(text) = BoundCall::with_own_digits(expression, rules, is_clear)? {
            texts.push(text.alias(text_name(of.no)));
            columns.push((of.no, Column::new_unqualified(text_name(of.no))));
        }
    }
    path.joins |= below.joins;
    let (input, found) = traced(Arc::unwrap_or_clone(projection.input), further, path, rules)?;
    for (no, column) in found {
        texts.push(Expr::Column(column).alias(text_name(no)));
        columns.push((no, Column::new_unqualified(text_name(no))));
    }
    let expressions = projection.expr.into_iter().chain(texts).collect();
    let projection = Projection::try_new(expressions, Arc::new(input))?;
    Ok((LogicalPlan::Projection(projection), columns))
}

fn text_name(no: usize) -> String {
    format!("own digits {no}")
}

fn has_subquery(expression: &Expr) -> bool {
    let is_subquery = |of: &Expr| {
        let of_rows = matches!(of, Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_));
        of_rows || matches!(of, Expr::ScalarSubquery(_))
    };
    expression.exists(|of| Ok(is_subquery(of))).unwrap_or(true)
}

/// Whether the rows of one table are told apart by a key among their columns.
fn is_unique(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Projection(projection) = plan else { return false };
    let name = |expression: &Expr| match expression.clone().unalias() {
        Expr::Column(column) => Some(column.name),
        _ => None,
    };
    let columns: Vec<String> = projection.expr.iter().filter_map(name).collect();
    !Below::of(plan).joins
        && unique_keys(&projection.input).iter().any(|key| key.iter().all(|part| columns.contains(part)))
}

/// The columns of the keys of which a table has no two rows, nor NULL.
fn unique_keys(plan: &LogicalPlan) -> Vec<Vec<String>> {
    match plan {
        LogicalPlan::Filter(filter) => unique_keys(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => match alias.input.as_ref() {
            scan @ LogicalPlan::TableScan(_) => unique_keys(scan),
            _ => Vec::new(),
        },
        LogicalPlan::TableScan(scan) => {
            let Ok(provider) = source_as_provider(&scan.source) else { return Vec::new() };
            provider.downcast_ref::<InnodbTable>().map_or_else(Vec::new, InnodbTable::unique_keys)
        }
        _ => Vec::new(),
    }
}

/// Whether a derived table is the one that a SELECT with groups is written with.
fn is_of_groups(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_of_groups(&projection.input),
        LogicalPlan::Aggregate(_) => true,
        _ => false,
    }
}

/// What a select list is of.
#[derive(Debug, Clone, Copy, Default)]
struct Below {
    joins: bool,
    has_groups: bool,
    has_windows: bool,
}

impl Below {
    fn of(plan: &LogicalPlan) -> Below {
        match plan {
            LogicalPlan::Projection(of) => Below::of(&of.input),
            LogicalPlan::Sort(of) => Below::of(&of.input),
            LogicalPlan::Limit(of) => Below::of(&of.input),
            LogicalPlan::Filter(of) => {
                let below = Below::of(&of.input);
                Below { joins: below.joins || has_subquery(&of.predicate), ..below }
            }
            LogicalPlan::SubqueryAlias(of) if is_of_groups(&of.input) => {
                Below { has_groups: true, ..Below::default() }
            }
            // Groups and windows of a derived table are done when it is read.
            LogicalPlan::SubqueryAlias(of) => Below { joins: Below::of(&of.input).joins, ..Below::default() },
            LogicalPlan::Window(of) => Below { has_windows: true, ..Below::of(&of.input) },
            LogicalPlan::Aggregate(_) => Below { has_groups: true, ..Below::default() },
            LogicalPlan::Join(_) => Below { joins: true, ..Below::default() },
            _ => Below::default(),
        }
    }
}

/// Whether an aggregate of the groups is in an expression, which is then computed from what is kept.
fn is_computed_of_aggregates(expression: &Expr, input: &LogicalPlan) -> bool {
    let schema = input.schema();
    let columns = expression.column_refs();
    columns.into_iter().any(|column| schema.index_of_column(column).is_ok_and(|at| is_aggregate(input, at)))
}

fn is_aggregate(plan: &LogicalPlan, at: usize) -> bool {
    match plan {
        LogicalPlan::Projection(of) => match of.expr.get(at) {
            Some(expression) => is_computed_of_aggregates(expression, &of.input),
            None => false,
        },
        LogicalPlan::Aggregate(of) => {
            let keys = of.group_expr_len().unwrap_or(0);
            let aggregate = at.checked_sub(keys).and_then(|at| of.aggr_expr.get(at));
            aggregate.is_some_and(|of| match of.clone().unalias() {
                Expr::AggregateFunction(of) => of.func.name() != ANY_ROW,
                _ => true,
            })
        }
        LogicalPlan::SubqueryAlias(of) => is_aggregate(&of.input, at),
        LogicalPlan::Filter(of) => is_aggregate(&of.input, at),
        LogicalPlan::Sort(of) => is_aggregate(&of.input, at),
        LogicalPlan::Limit(of) => is_aggregate(&of.input, at),
        _ => false,
    }
}
