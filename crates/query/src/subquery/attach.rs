//! A plan to which the results of subqueries are attached as further columns.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    AggregateUDF, EmptyRelation, Expr, JoinType, LogicalPlan, LogicalPlanBuilder, Subquery, ident, lit,
};

use super::aggregates::single_value;
use super::apply::{Apply, Kind};
use super::columns::{fresh, has_outer};
use super::domain::Domain;
use super::keyed;
use super::rule::{rewritten, unsupported};

/// A plan, and the subqueries whose results it has.
pub(super) struct Attached {
    pub plan: LogicalPlan,
    known: Vec<(Expr, Expr)>,
}

/// An aggregate over one argument.
pub(super) fn aggregate(function: Arc<AggregateUDF>, argument: Expr) -> Expr {
    Expr::AggregateFunction(AggregateFunction::new_udf(
        function,
        vec![argument],
        false,
        None,
        Vec::new(),
        None,
    ))
}

impl Attached {
    pub(super) fn to(plan: LogicalPlan) -> Attached {
        Attached { plan, known: Vec::new() }
    }

    /// The expression with its subqueries' results instead of them.
    pub(super) fn rewrite(&mut self, expression: Expr) -> Result<Expr> {
        let replaced = expression.transform_down(|part| match part {
            Expr::ScalarSubquery(_) | Expr::Exists(_) => Ok(Transformed::yes(self.result(part)?)),
            Expr::InSubquery(_) | Expr::SetComparison(_) => {
                Err(unsupported("this comparison with a subquery is not run"))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok(replaced.data)
    }

    /// Whether all outer columns of the subqueries in `expression` and its other columns are this plan's.
    pub(super) fn covers(&self, expression: &Expr) -> Result<bool> {
        let schema: &DFSchema = self.plan.schema();
        let mut covers = true;
        let is_own = |column: &datafusion::common::Column| schema.has_column(column);
        expression.apply(|part| {
            let outer = match part {
                Expr::ScalarSubquery(subquery) => subquery.outer_ref_columns.clone(),
                Expr::Exists(exists) => exists.subquery.outer_ref_columns.clone(),
                Expr::Column(column) => {
                    // A column of the other side may stand beside the subquery, but not in it.
                    let _ = column;
                    Vec::new()
                }
                _ => Vec::new(),
            };
            covers &= outer.iter().all(|column| match column {
                Expr::OuterReferenceColumn(_, column) => is_own(column),
                _ => false,
            });
            Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
        })?;
        Ok(covers)
    }

    /// The result of a subquery, as a column or an expression of columns.
    fn result(&mut self, subquery: Expr) -> Result<Expr> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| *known == subquery) {
            return Ok(known.clone());
        }
        let result = match &subquery {
            Expr::ScalarSubquery(Subquery { subquery, .. }) => {
                self.scalar(rewritten(subquery.as_ref().clone())?)?
            }
            Expr::Exists(exists) => {
                let plan = rewritten(exists.subquery.subquery.as_ref().clone())?;
                let found = self.exists(plan)?;
                if exists.negated { Expr::Not(Box::new(found)) } else { found }
            }
            _ => return Err(unsupported("this subquery is not run")),
        };
        self.known.push((subquery, result.clone()));
        Ok(result)
    }

    fn scalar(&mut self, subquery: LogicalPlan) -> Result<Expr> {
        if !has_outer(&subquery) {
            let name = fresh("scalar");
            let column = only_column(&subquery)?;
            let one = match has_one_row(&subquery) {
                true => LogicalPlanBuilder::from(subquery).project(vec![column.alias(&name)])?.build()?,
                false => LogicalPlanBuilder::from(subquery)
                    .aggregate(Vec::<Expr>::new(), vec![aggregate(single_value(), column).alias(&name)])?
                    .build()?,
            };
            self.cross(one)?;
            return Ok(ident(name));
        }
        if let Some((plan, result)) = keyed::attached(&self.plan, &subquery)? {
            self.plan = plan;
            return Ok(result);
        }
        let column = only_column(&subquery)?;
        let domain = Domain::of(&subquery, self.plan.schema())?;
        let over = domain.over(&subquery)?;
        let name = fresh("scalar");
        let value = match has_one_row(&subquery) {
            true => LogicalPlanBuilder::from(over.plan)
                .project(vec![Expr::Column(over.id), column.alias(&name)])?
                .build()?,
            false => LogicalPlanBuilder::from(over.plan)
                .aggregate(vec![Expr::Column(over.id)], vec![aggregate(single_value(), column).alias(&name)])?
                .build()?,
        };
        self.apply(domain, value, Kind::Scalar, &name)
    }

    fn exists(&mut self, subquery: LogicalPlan) -> Result<Expr> {
        let name = fresh("exists");
        if !has_outer(&subquery) {
            let counted = fresh("count");
            let count = aggregate(count_udaf(), lit(1_i64)).alias(&counted);
            let one = LogicalPlanBuilder::from(subquery)
                .limit(0, Some(1))?
                .aggregate(Vec::<Expr>::new(), vec![count])?
                .project(vec![ident(counted).gt(lit(0_i64)).alias(&name)])?
                .build()?;
            self.cross(one)?;
            return Ok(ident(name));
        }
        let domain = Domain::of(&subquery, self.plan.schema())?;
        let over = domain.over(&subquery)?;
        let found = LogicalPlanBuilder::from(over.plan)
            .aggregate(vec![Expr::Column(over.id)], Vec::<Expr>::new())?
            .build()?;
        self.apply(domain, found, Kind::Exists, &name)
    }

    fn apply(&mut self, domain: Domain, inner: LogicalPlan, kind: Kind, name: &str) -> Result<Expr> {
        let input = std::mem::replace(&mut self.plan, empty());
        self.plan = Apply::plan(input, inner, domain, kind, name)?;
        Ok(ident(name))
    }

    /// Puts the columns of a plan of one row beside each row.
    fn cross(&mut self, one: LogicalPlan) -> Result<()> {
        let plan = std::mem::replace(&mut self.plan, empty());
        self.plan = match plan {
            LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, .. }) => one,
            plan => LogicalPlanBuilder::from(plan).cross_join(one)?.build()?,
        };
        Ok(())
    }
}

fn empty() -> LogicalPlan {
    LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: Arc::new(DFSchema::empty()) })
}

/// The column of a scalar subquery.
pub(super) fn only_column(plan: &LogicalPlan) -> Result<Expr> {
    match plan.schema().columns().as_slice() {
        [only] => Ok(Expr::Column(only.clone())),
        _ => Err(unsupported("Operand should contain 1 column(s)")),
    }
}

/// Whether a plan has exactly one row, whatever is in its tables.
pub(super) fn has_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Projection(projection) => has_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_one_row(&alias.input),
        LogicalPlan::Sort(sort) => sort.fetch.is_none() && has_one_row(&sort.input),
        LogicalPlan::Window(window) => has_one_row(&window.input),
        LogicalPlan::EmptyRelation(relation) => relation.produce_one_row,
        LogicalPlan::Join(join) => {
            join.join_type == JoinType::Inner
                && join.on.is_empty()
                && join.filter.is_none()
                && has_one_row(&join.left)
                && has_one_row(&join.right)
        }
        LogicalPlan::Extension(extension) => {
            let apply = extension.node.inputs().first().map(|input| has_one_row(input));
            super::apply::is_apply(extension) && apply == Some(true)
        }
        _ => false,
    }
}
