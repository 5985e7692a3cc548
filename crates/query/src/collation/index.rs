//! MAX of a whole table by an index: of equal texts the servers show the last of the index.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};

use super::chosen::Choice;
use crate::catalog::InnodbTable;

/// Which results of an aggregate over all rows of a table are MIN and MAX of columns that an index begins with.
pub(super) fn extremes(aggregate: &Aggregate) -> Vec<bool> {
    let none = || vec![false; aggregate.aggr_expr.len()];
    if !aggregate.group_expr.is_empty() {
        return none();
    }
    let mut plan = aggregate.input.as_ref();
    while let LogicalPlan::SubqueryAlias(alias) = plan {
        plan = alias.input.as_ref();
    }
    let LogicalPlan::TableScan(scan) = plan else { return none() };
    let Ok(provider) = source_as_provider(&scan.source) else { return none() };
    let Some(table) = provider.downcast_ref::<InnodbTable>() else { return none() };
    let definition = table.table().definition();
    let begins_index = |column: &str| {
        definition.indexes.iter().any(|index| {
            let first = index.parts.first().filter(|part| part.prefix_bytes.is_none() && !part.descending);
            let name =
                first.and_then(|part| definition.columns.get(part.column.0)).map(|column| &column.name);
            name.is_some_and(|name| name == column)
        })
    };
    let is_extreme = |result: &Expr| match result.clone().unalias() {
        Expr::AggregateFunction(function) => match (function.func.name(), function.params.args.as_slice()) {
            ("min" | "max", [Expr::Column(column)]) => begins_index(&column.name),
            _ => false,
        },
        _ => false,
    };
    aggregate.aggr_expr.iter().map(is_extreme).collect()
}

/// The greatest texts are the last of equal ones.
pub(super) fn last_of_equal(expression: Expr) -> Result<Expr> {
    expression
        .transform(|part| match part {
            Expr::AggregateFunction(mut function) if function.func == Choice::Greatest.aggregate() => {
                function.func = Choice::LastGreatest.aggregate();
                Ok(Transformed::yes(Expr::AggregateFunction(function)))
            }
            other => Ok(Transformed::no(other)),
        })
        .data()
}
