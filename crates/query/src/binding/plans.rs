//! Operators of a plan as they are to be before and after their expressions are bound.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result};
use datafusion::logical_expr::expr_rewriter::coerce_plan_expr_for_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, RecursiveQuery, Union, cast};
use datafusion::optimizer::analyzer::type_coercion::coerce_union_schema;

use super::as_field::AsField;
use super::bound::BoundCall;
use super::field::shown_digits;

/// A union whose inputs have the types of its result, by which what is above is bound.
pub(super) fn with_common_types(union: Union) -> Result<LogicalPlan> {
    let schema = coerce_union_schema(&union.inputs)?;
    let inputs = union.inputs.into_iter().map(|input| {
        let input = Arc::unwrap_or_clone(input).recompute_schema()?;
        coerce_plan_expr_for_schema(input, &schema).map(Arc::new)
    });
    Union::try_new(inputs.collect::<Result<Vec<_>>>()?).map(LogicalPlan::Union)
}

/// A recursive query whose recursive part has the fields of the other one, as the engine wants it.
pub(super) fn with_types_of_beginning(query: RecursiveQuery) -> Result<LogicalPlan> {
    let beginning = query.static_term.schema();
    let recursive = query.recursive_term.schema();
    let is_same = |(of, with): (&FieldRef, &FieldRef)| {
        of.metadata() == with.metadata() && of.data_type() == with.data_type()
    };
    if beginning.fields().len() != recursive.fields().len()
        || beginning.fields().iter().zip(recursive.fields()).all(is_same)
    {
        return Ok(LogicalPlan::RecursiveQuery(query));
    }
    let columns = recursive.iter().zip(beginning.fields()).map(|((qualifier, field), wanted)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        let is_integer = field.data_type().is_integer() && wanted.data_type().is_integer();
        match field.data_type() == wanted.data_type() || is_integer {
            true => AsField::of(column, wanted).alias(field.name()),
            false => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let recursive =
        LogicalPlanBuilder::from(query.recursive_term.as_ref().clone()).project(columns)?.build()?;
    let query =
        RecursiveQuery::try_new(query.name, query.static_term, Arc::new(recursive), query.is_distinct)?;
    Ok(LogicalPlan::RecursiveQuery(query))
}

/// Whether it is a column under whatever name.
pub(super) fn is_column(expression: &Expr) -> bool {
    match expression {
        Expr::Column(_) => true,
        Expr::Alias(alias) => is_column(&alias.expr),
        _ => false,
    }
}

/// The plan with the digits that the types of its columns show.
pub(super) fn shown(plan: LogicalPlan) -> Result<LogicalPlan> {
    if plan.schema().fields().iter().all(|field| shown_digits(field).is_none()) {
        return Ok(plan);
    }
    let schema = Arc::clone(plan.schema());
    let columns = schema.iter().map(|(qualifier, field)| {
        let column = Expr::Column(Column::from((qualifier, field)));
        match shown_digits(field) {
            Some(_) => Ok(rounded(column, &schema)?.data.alias_qualified(qualifier.cloned(), field.name())),
            None => Ok(column),
        }
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    LogicalPlanBuilder::from(plan).project(columns)?.build()
}

/// Columns with more digits than their type shows, rounded where they are no operand of a bound call.
pub(super) fn rounded(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expression.transform_down(|node| {
        if BoundCall::of(&node).is_some() {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        let Expr::Column(column) = &node else { return Ok(Transformed::no(node)) };
        let Ok(field) = schema.field_from_column(column) else { return Ok(Transformed::no(node)) };
        let Some(digits) = shown_digits(field) else { return Ok(Transformed::no(node)) };
        let shown = DataType::Decimal128(DECIMAL128_MAX_PRECISION, digits.cast_signed());
        Ok(Transformed::new(cast(node, shown), true, TreeNodeRecursion::Jump))
    })
}
