//! Where the FLOAT and DOUBLE values of a plan's columns come from, which decides how MySQL spells them as texts.

use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan, Operator};

use crate::expression::Origin;

/// The floating-point columns that operators of a plan read as they are stored.
#[derive(Debug, Default)]
pub(super) struct StoredNumbers(Vec<Column>);

impl StoredNumbers {
    /// Of the inputs of a plan.
    pub(super) fn of(plan: &LogicalPlan) -> StoredNumbers {
        let inputs = plan.inputs();
        let of_scan = inputs.is_empty().then_some(plan);
        let columns = inputs.into_iter().chain(of_scan).flat_map(|input| {
            input.schema().iter().enumerate().filter_map(move |(at, (qualifier, field))| {
                let is_stored = field.data_type().is_floating() && is_stored(input, at);
                is_stored.then(|| Column::from((qualifier, field)))
            })
        });
        StoredNumbers(columns.collect())
    }

    /// Where the values of an expression over the inputs come from.
    pub(super) fn origin(&self, expression: &Expr) -> Origin {
        match expression {
            Expr::Column(column) if self.0.contains(column) => Origin::Stored,
            Expr::Alias(alias) => self.origin(&alias.expr),
            Expr::BinaryExpr(of)
                if matches!(of.op, Operator::Plus | Operator::Minus | Operator::Multiply) =>
            {
                Origin::Computed
            }
            Expr::Negative(_) | Expr::ScalarFunction(_) | Expr::Literal(..) => Origin::Computed,
            Expr::Case(case) => {
                let results = case.when_then_expr.iter().map(|(_, result)| result).chain(&case.else_expr);
                let mut origins = results
                    .filter(|result| !matches!(result.as_ref(), Expr::Literal(value, _) if value.is_null()))
                    .map(|result| self.origin(result));
                let first = origins.next().unwrap_or(Origin::Unknown);
                if origins.all(|origin| origin == first) { first } else { Origin::Unknown }
            }
            _ => Origin::Unknown,
        }
    }
}

/// Whether a column of a plan is a column of a table, whatever rows are chosen of it.
fn is_stored(plan: &LogicalPlan, at: usize) -> bool {
    let width = |plan: &LogicalPlan| plan.schema().fields().len();
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::SubqueryAlias(of) => is_stored(&of.input, at),
        LogicalPlan::Filter(of) => is_stored(&of.input, at),
        LogicalPlan::Sort(of) => is_stored(&of.input, at),
        LogicalPlan::Limit(of) => is_stored(&of.input, at),
        LogicalPlan::Distinct(Distinct::All(input)) => is_stored(input, at),
        LogicalPlan::Projection(of) => {
            of.expr.get(at).is_some_and(|expression| is_stored_column(expression, &of.input))
        }
        LogicalPlan::Aggregate(of) => {
            of.group_expr.get(at).is_some_and(|expression| is_stored_column(expression, &of.input))
        }
        LogicalPlan::Window(of) => at < width(&of.input) && is_stored(&of.input, at),
        // What a union gives is kept as a column of its type.
        LogicalPlan::Union(_) => true,
        LogicalPlan::Join(of) => match of.join_type {
            JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                match at.checked_sub(width(&of.left)) {
                    None => is_stored(&of.left, at),
                    Some(at) => is_stored(&of.right, at),
                }
            }
            JoinType::LeftSemi | JoinType::LeftAnti => is_stored(&of.left, at),
            _ => false,
        },
        _ => false,
    }
}

fn is_stored_column(expression: &Expr, input: &LogicalPlan) -> bool {
    let schema: &DFSchema = input.schema();
    match expression {
        Expr::Column(column) => schema.maybe_index_of_column(column).is_some_and(|at| is_stored(input, at)),
        Expr::Alias(alias) => is_stored_column(&alias.expr, input),
        _ => false,
    }
}
