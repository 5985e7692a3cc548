//! GROUP BY, DISTINCT and the like: groups by sort keys, and shows the first text of each.
//!
//! ```text
//! Aggregate: groupBy=[city], aggr=[count(1)]
//! ```
//!
//! becomes
//!
//! ```text
//! Projection: first_text(city) AS city, count(1)
//!   Aggregate: groupBy=[sort_key(city)], aggr=[first_text(city), count(1)]
//! ```

use std::sync::Arc;

use crate::expression::Connection;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, GroupingSet};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, DistinctOn, Expr, LogicalPlan, Projection, Union, lit, when};

use super::chosen::Choice;
use super::comparing::Scope;
use super::index;

/// The aggregate over sort keys, if it groups by texts.
pub(super) fn aggregate(aggregate: Aggregate, connection: Connection) -> Result<Transformed<LogicalPlan>> {
    grouped(aggregate, None, connection)
}

/// The aggregate, which shows the texts with the least `rank`; of all texts if there is none.
fn grouped(
    aggregate: Aggregate,
    rank: Option<&Expr>,
    connection: Connection,
) -> Result<Transformed<LogicalPlan>> {
    let plan = LogicalPlan::Aggregate(aggregate.clone());
    let scope = Scope::of(&plan, connection)?;
    let names = NamePreserver::new(&plan);
    let mut changed = false;
    let mut results = Vec::with_capacity(aggregate.aggr_expr.len());
    let by_index: Vec<bool> = index::extremes(&aggregate);
    for (expression, by_index) in aggregate.aggr_expr.into_iter().zip(by_index) {
        let name = names.save(&expression);
        let numbered = if by_index { scope.by_index(expression)? } else { Transformed::no(expression) };
        changed |= numbered.transformed;
        let mut rewritten = scope.rewritten(numbered.data)?;
        if by_index {
            rewritten.data = index::last_of_equal(rewritten.data)?;
        }
        changed |= rewritten.transformed;
        results.push(name.restore(rewritten.data));
    }
    let mut group_expr = Vec::with_capacity(aggregate.group_expr.len());
    for group in aggregate.group_expr {
        let name = names.save(&group);
        let rewritten = scope.rewritten(group)?;
        changed |= rewritten.transformed;
        // A grouping set has no name.
        group_expr.push(match rewritten.data {
            set @ Expr::GroupingSet(_) => set,
            group => name.restore(group),
        });
    }
    let groups: Vec<Expr> = grouping_set_to_exprlist(&group_expr)?.into_iter().cloned().collect();
    let keys: Vec<Option<Expr>> = groups.iter().map(|group| scope.key(group)).collect::<Result<_>>()?;
    if keys.iter().all(Option::is_none) {
        let same = Aggregate::try_new(aggregate.input, group_expr, results)?;
        return Ok(Transformed::new_transformed(LogicalPlan::Aggregate(same), changed));
    }
    let keyed = |expression: Expr| -> Expr {
        let at = groups.iter().position(|group| *group == expression);
        let key = at.and_then(|at| Some(keys[at].clone()?.alias(key_name(at))));
        key.unwrap_or(expression)
    };
    let is_grouping_set = matches!(group_expr.as_slice(), [Expr::GroupingSet(_)]);
    let group_expr = group_expr.into_iter().map(|group| each_group(group, &keyed)).collect();
    let firsts = keys.iter().enumerate().filter(|(_, key)| key.is_some()).map(|(at, _)| {
        let choice = if rank.is_some() { Choice::Least } else { Choice::First };
        let mut arguments = vec![unaliased(groups[at].clone())];
        arguments.extend(rank.cloned());
        let first = AggregateFunction::new_udf(choice.aggregate(), arguments, false, None, vec![], None);
        Expr::AggregateFunction(first).alias(first_name(at))
    });
    let results: Vec<Expr> =
        results.into_iter().map(|result| grouping_of_keys(result, &keyed)).chain(firsts).collect();
    let inner = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input, group_expr, results)?);
    // What GROUPING makes of the number of a grouping set is a column of its own.
    let columns = aggregate.schema.iter().enumerate();
    let columns = columns.filter(|(_, (_, field))| field.name() != Aggregate::INTERNAL_GROUPING_ID);
    let shown = columns.map(|(at, (qualifier, field))| {
        let own = match keys.get(at) {
            Some(Some(_)) => {
                let first = Expr::Column(Column::from_name(first_name(at)));
                // A row of a greater grouping set has no value of this group.
                let shown = match is_grouping_set {
                    true => when(Expr::Column(Column::from_name(key_name(at))).is_not_null(), first)
                        .otherwise(lit(ScalarValue::try_from(field.data_type())?))?,
                    false => first,
                };
                shown.alias_qualified(qualifier.cloned(), field.name())
            }
            _ => Expr::Column(Column::new(qualifier.cloned(), field.name())),
        };
        Ok(own)
    });
    let projection = Projection::try_new(shown.collect::<Result<_>>()?, Arc::new(inner))?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

fn key_name(group: usize) -> String {
    format!("sort_key_{group}")
}

fn first_name(group: usize) -> String {
    format!("first_text_{group}")
}

fn unaliased(expression: Expr) -> Expr {
    match expression {
        Expr::Alias(alias) => unaliased(*alias.expr),
        other => other,
    }
}

/// `keyed` of each expression of a group.
fn each_group(group: Expr, keyed: &impl Fn(Expr) -> Expr) -> Expr {
    let all = |groups: Vec<Expr>| groups.into_iter().map(keyed).collect::<Vec<_>>();
    match group {
        Expr::GroupingSet(GroupingSet::Rollup(groups)) => Expr::GroupingSet(GroupingSet::Rollup(all(groups))),
        Expr::GroupingSet(GroupingSet::Cube(groups)) => Expr::GroupingSet(GroupingSet::Cube(all(groups))),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => {
            Expr::GroupingSet(GroupingSet::GroupingSets(sets.into_iter().map(all).collect()))
        }
        other => keyed(other),
    }
}

/// GROUPING names what is grouped by.
fn grouping_of_keys(result: Expr, keyed: &impl Fn(Expr) -> Expr) -> Expr {
    let name = result.qualified_name();
    match unaliased(result.clone()) {
        Expr::AggregateFunction(mut function) if function.func.name() == "grouping" => {
            function.params.args = function.params.args.into_iter().map(keyed).collect();
            Expr::AggregateFunction(function).alias_qualified(name.0, name.1)
        }
        _ => result,
    }
}

/// DISTINCT as the grouping that it is, if there are texts among the columns.
pub(super) fn distinct(input: Arc<LogicalPlan>, connection: Connection) -> Result<Option<LogicalPlan>> {
    let columns = input
        .schema()
        .iter()
        .map(|(qualifier, field)| Expr::Column(Column::new(qualifier.cloned(), field.name())));
    let columns: Vec<Expr> = columns.collect();
    let (input, rank) = match input.as_ref() {
        LogicalPlan::Union(union) if has_equal_fields(union) => {
            (Arc::new(ranked(union)?), Some(Expr::Column(Column::from_name(RANK))))
        }
        _ => (input, None),
    };
    let grouped = grouped(Aggregate::try_new(input, columns, vec![])?, rank.as_ref(), connection)?;
    Ok(grouped.transformed.then_some(grouped.data))
}

/// The column with the number of a UNION's query.
const RANK: &str = "union_rank";

/// Whether the columns of all queries of a UNION have the same names and types.
fn has_equal_fields(union: &Union) -> bool {
    let mut queries = Vec::new();
    leaves(union, &mut queries);
    queries.iter().all(|query| {
        query.schema().fields().iter().zip(union.schema.fields().iter()).all(|(own, output)| {
            own.name() == output.name()
                && own.data_type() == output.data_type()
                && own.metadata() == output.metadata()
        })
    })
}

/// A UNION whose rows have the number of their query: of texts that are equal the first query's is shown.
fn ranked(union: &Union) -> Result<LogicalPlan> {
    let mut queries = Vec::new();
    leaves(union, &mut queries);
    let mut inputs = Vec::new();
    for (number, query) in queries.into_iter().enumerate() {
        let columns = query
            .schema()
            .iter()
            .map(|(qualifier, field)| Expr::Column(Column::new(qualifier.cloned(), field.name())));
        let number = u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes().to_vec();
        let rank = lit(ScalarValue::BinaryView(Some(number))).alias(RANK);
        let columns = columns.chain([rank]).collect();
        inputs.push(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, query)?)));
    }
    let fields = union.schema.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
    let rank = Arc::new(Field::new(RANK, DataType::BinaryView, false));
    let fields = fields.chain([(None, rank)]).collect();
    let schema = DFSchema::new_with_metadata(fields, union.schema.metadata().clone())?;
    Ok(LogicalPlan::Union(Union { inputs, schema: Arc::new(schema) }))
}

/// The queries of a UNION ALL in their order.
fn leaves(union: &Union, queries: &mut Vec<Arc<LogicalPlan>>) {
    for input in &union.inputs {
        match input.as_ref() {
            LogicalPlan::Union(inner) => leaves(inner, queries),
            _ => queries.push(Arc::clone(input)),
        }
    }
}

/// DISTINCT ON by sort keys.
pub(super) fn distinct_on(mut on: DistinctOn, connection: Connection) -> Result<Transformed<LogicalPlan>> {
    let plan = LogicalPlan::Distinct(datafusion::logical_expr::Distinct::On(on.clone()));
    let scope = Scope::of(&plan, connection)?;
    let mut changed = false;
    for expression in &mut on.on_expr {
        if let Some(key) = scope.key(expression)? {
            *expression = key;
            changed = true;
        }
    }
    for sort in on.sort_expr.iter_mut().flatten() {
        if let Some(key) = scope.key(&sort.expr)? {
            sort.expr = key;
            changed = true;
        }
    }
    let on = LogicalPlan::Distinct(datafusion::logical_expr::Distinct::On(on));
    Ok(Transformed::new_transformed(on, changed))
}
